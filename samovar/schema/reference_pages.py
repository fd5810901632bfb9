"""Generated parts of the reference pages: tables of keys, factors, recipes and metrics.

A page has generated blocks, `<!-- fab schema: NAME -->` to `<!-- end -->`; the rest is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from samovar.experiment import (
    EACH,
    EITHER,
    OPERATING_SYSTEMS,
    Config,
    Experiment,
    Key,
    Metric,
    Output,
    Outputs,
    ParameterInfo,
    Part,
    Strict,
    StudyReport,
    Testbed,
    ValueType,
    bare,
    keys_of,
    type_in,
)
from samovar.recipes import BLOCKS, Catalogue, Header
from samovar.schema.factor_schema import (
    BOTH_DIRECTIONS,
    LABEL,
    NO_ARRIVALS,
    PER_DIRECTION,
    PER_HOST,
    PLAIN,
    RANDOM,
    LevelTarget,
    built_in_targets,
)
from samovar.schema.model_schema import Definitions, Json, SchemaError, document_of
from samovar.schema.recipe_schema import Recipes, SystemParameter

BLOCK = re.compile(r"(<!-- fab schema: (?P<name>[\w., -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
ROOTS: Mapping[str, type[Strict]] = {
    "experiment": Experiment,
    "testbed": Testbed,
    "config": Config,
    "study": StudyReport,
}
WORDS: Mapping[str, str] = {
    "factors": "mapping from [factor](factors.md) to its levels",
    "exclude": "list of `{factor: level or list}`",
    "include": "list of `{factor: level}`",
    "settings": "mapping from [setting](factors.md) to one value, or one per host or role",
    "traffic": "list of flows, or mapping from label to changes",
    "loggers": "list of loggers, or mapping from recipe to changes",
    "verdict": "[thresholds](config.md#thresholds)",
    "use": "name, or list of names",
    "figures": "list of names, or of mappings with `figure` and options",
    "tables": "list of names, or of mappings with `table` and options",
    "profiles": "mapping from name to changes",
    "fragments": "mapping from name to pieces",
    "where": "mapping from factor to a level or a list",
    "relative_to": "mapping from factor to a level",
}
"""Values of keys whose types do not describe them."""
DEFAULTS: Mapping[str, str] = {"parts": "one, `main`", "traffic": "that of the top level"}
"""Defaults of keys that a complete experiment must have."""
FORMS = {
    PER_HOST: "one, or one per host or role",
    PER_DIRECTION: "one, or `{down: …, up: …}`",
    BOTH_DIRECTIONS: "`{down: …, up: …}`",
    PLAIN: "one",
    RANDOM: "one, or [random](experiment.md#random-amounts)",
}


class Page:
    """One page of the reference; links to models lead to its headings."""

    def __init__(self, text: str, root: type[Strict] | None, recipes: Recipes, outputs: Outputs) -> None:
        self._text, self._root, self._recipes, self._outputs = text, root, recipes, outputs
        self._anchors = dict(self._headed())

    def written(self) -> str:
        """Return the page with its blocks generated; raises SchemaError for an unknown block."""

        def generate(found: re.Match[str]) -> str:
            body = "\n".join(self._block(found["name"])).rstrip("\n")
            return f"{found[1]}{body}\n{found[3]}"

        return BLOCK.sub(generate, self._text)

    def _headed(self) -> Iterator[tuple[str, str]]:
        heading = ""
        for line in self._text.splitlines():
            heading = line.lstrip("# ") if line.startswith("#") else heading
            found = re.fullmatch(r"<!-- fab schema: keys of (\w+) -->", line)
            if found:
                yield found[1], anchor(heading)

    def _block(self, name: str) -> Iterator[str]:
        what, _, subject = name.partition(" of ")
        makers: Mapping[str, Callable[[str], Iterator[str]]] = {
            "keys": self._keys,
            "other keys": self._other_keys,
            "factors": lambda _: factor_lines(self._recipes),
            "recipe names": lambda _: recipe_names(self._recipes),
            "recipes": lambda kind: recipe_lines(self._recipes, kind),
            "figures": lambda _: output_lines("figure", self._outputs.figures),
            "tables": lambda _: output_lines("table", self._outputs.tables),
            "metrics": lambda _: metric_lines(self._outputs.metrics),
        }
        if what not in makers:
            raise SchemaError(f"no generated block '{name}'; known: {', '.join(makers)}")
        return makers[what](subject)

    def _keys(self, name: str) -> Iterator[str]:
        model = self._models().get(name)
        if model is None:
            raise SchemaError(f"no model '{name}' here; known: {', '.join(self._models())}")
        return self._table(model)

    def _other_keys(self, _: str) -> Iterator[str]:
        """Yield the models of the page's file that have no block of their own."""
        for name, model in self._models().items():
            if name not in self._anchors:
                yield from (f"### {spaced(name)}", "", document_of(model), "", *self._table(model), "")

    def _models(self) -> dict[str, type[Strict]]:
        return dict(models_below(self._root)) if self._root else {}

    def _table(self, model: type[Strict]) -> Iterator[str]:
        """Yield a model's table; that of an experiment leaves out the keys that its parts have too."""
        rows = [self._row(key) for key in keys_of(model).values()]
        if model is Experiment:
            of_parts = [self._row(key) for key in keys_of(Part).values()]
            rows = [row for row in rows if row not in of_parts]
        yield from table(("key", "value", "default", "meaning"), rows)

    def _row(self, key: Key) -> tuple[str, ...]:
        default = f"`{key.default}`" if key.default is not None else ""
        default = DEFAULTS.get(key.name) or ("required" if key.field.is_required() else default)
        return (
            f"`{key.name}`",
            WORDS.get(key.name) or self._value(key.field.annotation, key.type),
            default,
            key.description,
        )

    def _value(self, annotation: Any, value_type: ValueType | None = None) -> str:
        """Describe the values of an annotation in the words of a table."""
        here, value_type = bare(annotation), value_type or type_in(annotation)
        if value_type is not None:
            return _type_words(value_type)
        if isinstance(here, type) and issubclass(here, Strict):
            words = spaced(here.__name__)
            return f"[{words.lower()}](#{self._anchors.get(here.__name__, anchor(words))})"
        below = [self._value(one) for one in get_args(here) if one not in (Ellipsis, type(None))]
        if get_origin(here) is tuple:
            return f"list of {below[0]}" if below[0] else "list"
        if isinstance(get_origin(here), type) and issubclass(get_origin(here), Mapping):
            return f"mapping from name to {below[1]}" if below[1] else "mapping"
        return " or ".join(one for one in below if one)


def _type_words(value_type: ValueType) -> str:
    if value_type.choices and "enumDescriptions" not in value_type.schema:
        return ", ".join(f"`{one}`" for one in value_type.choices)
    forms = {EITHER: ", or `{down: …, up: …}`", EACH: " in `{down: …, up: …}`"}.get(value_type.directions, "")
    forms += ", or a list" if value_type.is_list else ""
    forms += ", or [random](#random-amounts)" if value_type.is_random else ""
    plain = "enum" in value_type.schema or value_type.name in ("words", "text", "name")
    return f"{value_type.name}{'' if plain else f': `{value_type.examples[-1]}`'}{forms}"


def models_below(model: type[Strict]) -> Iterator[tuple[str, type[Strict]]]:
    """Yield a model and all models below its keys, each once, in the order of the file."""
    seen: dict[str, type[Strict]] = {}
    todo: list[Any] = [model]
    while todo:
        here = bare(todo.pop(0))
        if isinstance(here, type) and issubclass(here, Strict) and here.__name__ not in seen:
            seen[here.__name__] = here
            todo += [key.field.annotation for key in keys_of(here).values()]
        elif not isinstance(here, type):
            todo += [one for one in get_args(here) if one is not Ellipsis]
    yield from seen.items()


def output_lines(kind: str, known: Mapping[str, Output]) -> Iterator[str]:
    """Yield the table of the figures or tables of the analysis, with their own options."""
    options = {name: ", ".join(f"`{option}`" for option in one.options) for name, one in known.items()}
    rows = [(f"`{name}`", options[name], one.what) for name, one in known.items()]
    yield from table((kind, "options", "what"), rows)


def metric_lines(metrics: Mapping[str, Metric]) -> Iterator[str]:
    """Yield the table of the metrics of the analysis."""
    needs = {name: ", ".join(trace.value for trace in metric.needs) for name, metric in metrics.items()}
    rows = [(f"`{name}`", metric.unit, metric.what, needs[name]) for name, metric in metrics.items()]
    yield from table(("metric", "unit", "what", "needs"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table; bars within cells are escaped."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def factor_lines(recipes: Recipes) -> Iterator[str]:
    """Yield the table of the factors that are keys of the language, with the forms of their levels."""
    definitions = Definitions({})
    rows = [_factor_row(definitions, one) for one in built_in_targets(definitions, recipes)]
    yield from table(("factor", "value", "levels"), rows)


def _factor_row(definitions: Definitions, one: LevelTarget) -> tuple[str, ...]:
    name = one.name.strip("^$").replace(NO_ARRIVALS, "").replace("\\.", ".").replace(LABEL, "<flow>")
    return f"`{name}`", _kinds(definitions, one.value), FORMS[one.forms]


def _kinds(definitions: Definitions, value: Json) -> str:
    """Return the types of a value, or its first words if it takes a few words only."""
    if "enum" in value:
        texts = [str(one) for one in value["enum"] if isinstance(one, str)]
        return ", ".join(f"`{one}`" for one in texts[:6]) + (" …" if len(texts) > 6 else "")
    if "$ref" in value:
        shared = definitions.schemas[value["$ref"].removeprefix("#/$defs/")]
        return str(shared.get("title") or _kinds(definitions, shared))
    options = [_kinds(definitions, one) for one in value.get("anyOf", [])]
    return " or ".join(dict.fromkeys(options)) or "text"


def recipe_names(recipes: Recipes) -> Iterator[str]:
    """Yield the names of all recipes that an experiment or a testbed may use, by kind and system."""
    rows = []
    for kind in ("setting", "aqm", "generator", "logger"):
        on_linux = recipes.catalogue.names(kind, "linux")
        for system, os in OPERATING_SYSTEMS.items():
            names = recipes.catalogue.names(kind, system)
            label = kind if system == "linux" else f"{kind} on {os.title}"
            same = system != "linux" and names == on_linux
            rows.append((label, "the same" if same else ", ".join(f"`{name}`" for name in sorted(names))))
    yield from table(("", "recipes"), sorted(rows, key=lambda row: "FreeBSD" in row[0]))


def recipe_lines(recipes: Recipes, kind: str) -> Iterator[str]:
    """Yield a section for each recipe of a kind with a table of its parameters; a table of steps or facts."""
    if kind not in BLOCKS:
        raise SchemaError(f"unknown kind of recipe '{kind}'; known: {', '.join(BLOCKS)}")
    if kind in ("step", "fact"):  # their parameters are samovar's own
        lines = {one: [line for line in _headers(recipes, kind, one) if line] for one in recipes.names(kind)}
        whats = [(f"`{one}`", "<br>".join(below)) for one, below in lines.items()]
        yield from table((kind, "what"), whats)
        return
    for name in recipes.names(kind):
        yield from (f"### {kind} `{name}`", "", *_headers(recipes, kind, name))
        known, systems = recipes.parameters(kind, name), len(recipes.having(kind, name))
        if known:
            rows = [(f"`{key}`", *_parameter_row(found, systems)) for key, found in known.items()]
            yield from (*table(("parameter", "type", "default", "meaning"), rows), "")


def _headers(recipes: Recipes, kind: str, name: str) -> Iterator[str]:
    """Yield the headers of a recipe: one line for the systems that share its summary."""
    headers_of: dict[str, dict[str, Header]] = {}
    for system in recipes.systems:
        if name in recipes.catalogue.names(kind, system) and isinstance(recipes.catalogue, Catalogue):
            header = recipes.catalogue.header(kind, name, system)
            headers_of.setdefault(header.summary, {})[system] = header
    everywhere = len(headers_of) == 1 and len(recipes.having(kind, name)) > 1
    for headers in headers_of.values():
        facts_of = {system: _facts(header) for system, header in headers.items()}
        # A release is not named if its system has the same header.
        named = {
            _title(system): facts
            for system, facts in facts_of.items()
            if "-" not in system or facts != facts_of.get(system.partition("-")[0])
        }
        line = _header_line(next(iter(headers.values())).summary, named)
        yield from (line if everywhere else f"{', '.join(named)}: {line}", "")


def _title(system: str) -> str:
    name, _, release = system.partition("-")
    return f"{OPERATING_SYSTEMS[name].title}{f' {release} and older' if release else ''}"


def _header_line(summary: str, facts_of: Mapping[str, Mapping[str, str]]) -> str:
    """Return a summary with what each system needs; what all of them need is given once."""
    facts = []
    for what in dict.fromkeys(what for one in facts_of.values() for what in one):
        values = {system: one[what] for system, one in facts_of.items() if what in one}
        shared = len(values) == len(facts_of) and len(set(values.values())) == 1
        text = ", ".join(f"on {system} {text}" for system, text in values.items())
        facts.append(f"{what} {next(iter(values.values())) if shared else text}")
    return f"{summary} ({'; '.join(facts)})" if facts else summary


def _facts(header: Header) -> dict[str, str]:
    """Return what a recipe needs, leaves and costs, by the words for it."""
    needs = {
        "needs": header.needs,
        "its client needs": header.client_needs,
        "its server needs": header.server_needs,
        "kernel": header.modules,
        "tracepoints": header.tracepoints,
        "interfaces with": header.interfaces_need,
        "leaves": header.leaves,
    }
    facts = {what: ", ".join(f"`{one}`" for one in names) for what, names in needs.items() if names}
    return facts | ({"a change of its level costs:": header.change} if header.change != "none" else {})


def _parameter_row(found: Sequence[SystemParameter], systems: int) -> tuple[str, str, str]:
    """Return a parameter's type, default and description, per system where they differ."""
    infos = {_title(one.system): one.info for one in found if "-" not in one.system}
    only = f" ({next(iter(infos))} only)" if len(infos) == 1 and systems > 1 else ""
    types = {system: _parameter_type(info) for system, info in infos.items()}
    defaults = {system: str(getattr(info, "default", None) or "") for system, info in infos.items()}
    return _per_system(types), _per_system(defaults), f"{found[0].info.description}{only}"


def _parameter_type(info: ParameterInfo) -> str:
    if info.choices:
        return ", ".join(info.choices)
    has_unit = info.type in ("integer", "number") and info.unit  # other types have it in their values: 10ms
    return f"{info.type} ({info.unit})" if has_unit else info.type


def _per_system(texts: Mapping[str, str]) -> str:
    """Return a text that all systems share, or the text of each."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{system}: {text or 'none'}" for system, text in texts.items())


def anchor(heading: str) -> str:
    """Return the name under which a heading is linked to."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def spaced(name: str) -> str:
    """Return the name of a class as words: Path class for PathClass."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
