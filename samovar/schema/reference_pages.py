"""Generate lists and tables of the reference pages from the table of keys, recipes and outputs.yaml.

A page has generated blocks, `<!-- fab schema: NAME -->` to `<!-- end -->`; the rest is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from samovar.events import event_lines
from samovar.experiment import Metric, Output, Outputs, keys
from samovar.experiment import value_types as types
from samovar.installation import SHIPPED
from samovar.recipes import BLOCKS, Catalogue, Header
from samovar.schema.schema_from_keys import SchemaError
from samovar.schema.schema_from_recipes import Recipes

BLOCK = re.compile(r"(<!-- fab schema: (?P<name>[\w., -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
ROOTS: Mapping[str, type[keys.Strict]] = {
    "experiment": keys.Experiment,
    "testbed": keys.Testbed,
    "config": keys.Config,
    "study": keys.StudyReport,
}
WORDS: Mapping[str, str] = {
    "factors": "mapping from [factor](factors.md) to its levels",
    "aqm": "[queue discipline](recipe-aqms.md), or `{down: …, up: …}`",
    "generator": "[generator](recipe-generators.md)",
    "logger": "[logger](recipe-loggers.md)",
    "exclude": "list of `{factor: level or list}`",
    "include": "list of `{factor: level}`",
    "settings": "mapping from [setting](factors.md) to values",
    "traffic": "list of flows, or mapping from label to changes",
    "loggers": "list of loggers, or mapping from recipe to changes",
    "verdict": "[thresholds](config.md#thresholds)",
    "figures": "list of [figures](experiment.md#figures-and-tables)",
    "tables": "list of [tables](experiment.md#figures-and-tables)",
    "profiles": "mapping from name to changes",
    "fragments": "mapping from name to keys",
    "where": "mapping from factor to a level or a list",
    "relative_to": "mapping from factor to a level",
}
"""Types of keys whose type has no suitable description."""
DEFAULTS: Mapping[str, str] = {
    "parts": "one, `main`",
    "traffic": "those of the top level",
}
"""Defaults of keys that a file may omit, although every part must have them."""
SHARED: Mapping[type[keys.Strict], type[keys.Strict]] = {
    keys.Experiment: keys.Part,
    keys.Logger: keys.Capture,
}
"""Maps a model to another model of the page. The page lists keys that both have for the other model only."""
LONGEST_REPEATED = 9
"""A recipe repeats descriptions of up to this many words; for longer ones, it refers to another recipe."""


class Page:
    """One page of the reference. Links to the keys of a model lead to headings of the page."""

    def __init__(self, text: str, root: type[keys.Strict] | None, recipes: Recipes, outputs: Outputs) -> None:
        self._text, self._root, self._recipes, self._outputs = text, root, recipes, outputs
        self._anchors = dict(self._headed())
        self._models = dict(models_below(root)) if root else {}

    def written(self) -> str:
        """Return the page with its generated blocks. Raises SchemaError for an unknown block."""

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
            "factors": lambda _: factor_lines(),
            "recipe names": lambda _: recipe_names(self._recipes),
            "recipes": lambda kind: recipe_lines(self._recipes, kind),
            "figures": lambda _: figure_lines(self._outputs.figures),
            "tables": lambda _: table_lines(self._outputs.tables),
            "metrics": lambda _: metric_lines(self._outputs.metrics),
            "series": lambda _: series_lines(self._outputs),
            "options": lambda _: option_lines([self._outputs.figures, self._outputs.tables]),
            "events": lambda _: event_lines(),
        }
        if what not in makers:
            raise SchemaError(f"no generated block '{name}'; known: {', '.join(makers)}")
        return makers[what](subject)

    def _keys(self, name: str) -> Iterator[str]:
        model = self._models.get(name)
        if model is None:
            raise SchemaError(f"no model '{name}' here; known: {', '.join(self._models)}")
        return self._key_lines(model)

    def _other_keys(self, _: str) -> Iterator[str]:
        """Yield heading and keys of each model (except Thresholds) for which the page has no block.

        Models have no introduction, because the description of the key that leads to a model explains it.
        """
        for name, model in self._models.items():
            if name not in self._anchors and model is not keys.Thresholds:
                yield from (f"### {spaced(name)}", "", *self._key_lines(model), "")

    def _key_lines(self, model: type[keys.Strict]) -> Iterator[str]:
        """Yield a model's keys as list items, except keys that are listed for another model (see SHARED)."""
        elsewhere = keys.keys_of(SHARED[model]).values() if model in SHARED else ()
        known = {self._key_line(key) for key in elsewhere}
        lines = (self._key_line(key) for key in keys.keys_of(model).values())
        yield from (line for line in lines if line not in known)

    def _key_line(self, key: keys.Key) -> str:
        """Return a key's line: its name, type, default (or that it is required) and description."""
        value = WORDS.get(key.name) or self._value(key.field.annotation, key.type)
        if key.name in DEFAULTS:
            value += f"; default {DEFAULTS[key.name]}"
        elif key.field.is_required():
            value += "; required"
        elif key.default is not None:
            value += f"; default `{key.default}`"
        return f"- `{key.name}` ({value}): {key.description}"

    def _value(self, annotation: Any, value_type: types.ValueType | None = None) -> str:
        """Return the words for the type of a key with this annotation."""
        here, value_type = keys.bare(annotation), value_type or keys.type_in(annotation)
        if value_type is not None:
            return _type_words(value_type)
        if isinstance(here, type) and issubclass(here, keys.Strict):
            words = spaced(here.__name__)
            return f"[{words.lower()}](#{self._anchors.get(here.__name__, anchor(words))})"
        below = [self._value(one) for one in get_args(here) if one not in (Ellipsis, type(None))]
        if get_origin(here) is tuple:
            return f"list of {below[0]}" if below[0] else "list"
        if isinstance(get_origin(here), type) and issubclass(get_origin(here), Mapping):
            return f"mapping from name to {below[1]}" if below[1] else "mapping"
        return " or ".join(one for one in below if one)


def _type_words(value_type: types.ValueType) -> str:
    """Return a type's choices, or else its name, followed by the text of its form, such as `, or a list`."""
    form = value_type.form.value.removeprefix("one value")
    if value_type.choices:
        return _quoted(value_type.choices) + form
    name = value_type.name.replace(" or zero, or a formula", ", zero or formula")
    return name.replace(", or a", " or") + form


def models_below(model: type[keys.Strict]) -> Iterator[tuple[str, type[keys.Strict]]]:
    """Yield a model and all models below its keys, each once, in the order of the file."""
    seen: dict[str, type[keys.Strict]] = {}
    todo: list[Any] = [model]
    while todo:
        here = keys.bare(todo.pop(0))
        if isinstance(here, type) and issubclass(here, keys.Strict) and here.__name__ not in seen:
            seen[here.__name__] = here
            todo += [key.field.annotation for key in keys.keys_of(here).values()]
        elif not isinstance(here, type):
            todo += [one for one in get_args(here) if one is not Ellipsis]
    yield from seen.items()


def figure_lines(figures: Mapping[str, Output]) -> Iterator[str]:
    """Yield the table of the figures of the analysis, with their options and pictures."""
    rows = []
    for name, one in figures.items():
        picture = f"images/figures/{name}.png"
        shown = f"![{name}](../{picture})" if (SHIPPED / "docs" / picture).is_file() else ""
        rows.append((f"`{name}`", _quoted(one.options), one.what, shown))
    yield from table(("figure", "options", "what", "picture"), rows)


def table_lines(tables: Mapping[str, Output]) -> Iterator[str]:
    """Yield the list of the tables of the analysis, with their options."""
    for name, one in tables.items():
        options = f" ({_quoted(one.options)})" if one.options else ""
        yield f"- `{name}`{options}: {one.what}"


def metric_lines(metrics: Mapping[str, Metric]) -> Iterator[str]:
    """Group metrics by the set of quantities that they need; yield a list for each group."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, metric in metrics.items():
        groups.setdefault(", ".join(metric.needs), []).append((f"`{name}`", metric.what))
    for needs, entries in groups.items():
        yield from (
            f"**{needs or 'nothing'}**",
            "",
            *(f"- {names}: {what}" for names, what in _merged(entries)),
            "",
        )


def series_lines(outputs: Outputs) -> Iterator[str]:
    """Yield the list of quantities over time, each with its unit and its sources in order of preference."""
    entries = []
    for name, one in outputs.series.items():
        sources = ", ".join(" and ".join(group) for group in one.sources)
        entries.append((f"`{name}` ({one.unit})", f"{one.what} ({sources})"))
    yield from (f"- {names}: {text}" for names, text in _merged(entries))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _merged(entries: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the entries; those with the same text become one entry, which lists the names."""
    names: dict[str, list[str]] = {}
    for name, text in entries:
        names.setdefault(text, []).append(name)
    return [(", ".join(found), text) for text, found in names.items()]


def option_lines(groups: Sequence[Mapping[str, Output]]) -> Iterator[str]:
    """Yield the list of the options of all figures and tables. Equal options share an entry.

    An entry names the figures and tables that have its option only if different options share that name.
    """
    owners: dict[str, dict[tuple[str, str], list[str]]] = {}
    for name, output in (pair for group in groups for pair in group.items()):
        for option, one in output.options.items():
            value = _quoted(one.values) or one.type
            owners.setdefault(option, {}).setdefault((value, one.what), []).append(f"`{name}`")
    entries = []
    for option, variants in sorted(owners.items()):
        for (value, what), names in variants.items():
            of = f" of {', '.join(names)}" if len(variants) > 1 else ""
            entries.append((f"`{option}`{of}", f"({value}): {what}"))
    yield from (f"- {options} {text}" for options, text in _merged(entries))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table without empty columns. Each `|` within a cell is escaped."""
    used = [column for column in range(len(head)) if any(row[column] for row in rows)]
    head, rows = [head[column] for column in used], [[row[column] for column in used] for row in rows]
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def factor_lines() -> Iterator[str]:
    """Yield the table of the factors that are keys of the language, with their levels or a link to them."""
    rows = [
        (f"`{name}`", WORDS.get(name) or _type_words(key.type))
        for name, key in keys.varied_keys("").items()
        if key.type
    ]
    below = {
        "path": "path",
        "path.classes.<class>": "classes",
        "loggers.<logger>": "loggers",
        "stop": "stop",
        "traffic.<flow>": "traffic",
        "traffic.<flow>.arrivals": "arrivals",
    }
    for owner, heading in below.items():
        names = _quoted(name for name, key in keys.varied_keys(owner).items() if key.type)
        rows.append((f"`{owner}.…`: {names}", f"[values of the key](experiment.md#{heading})"))
    yield from table(("factor", "levels"), rows)


def recipe_names(recipes: Recipes) -> Iterator[str]:
    """Yield the names of all recipes that an experiment or a testbed may use, by kind and system."""
    rows = []
    for kind in ("setting", "aqm", "generator", "logger"):
        names = [sorted(recipes.catalogue.names(kind, system)) for system in keys.OPERATING_SYSTEMS]
        cells = [_quoted(found) for found in names]
        rows.append([kind, cells[0], *("the same" if cell == cells[0] else cell for cell in cells[1:])])
    yield from table(("", *(system.title for system in keys.OPERATING_SYSTEMS.values())), rows)


def recipe_lines(recipes: Recipes, kind: str) -> Iterator[str]:
    """Yield a section for each recipe of a kind with its parameters; for steps and facts, one list."""
    if kind not in BLOCKS:
        raise SchemaError(f"unknown kind of recipe '{kind}'; known: {', '.join(BLOCKS)}")
    if kind in ("step", "fact"):  # samovar itself sets their parameters
        lines = {one: [line for line in _headers(recipes, kind, one) if line] for one in recipes.names(kind)}
        yield from (f"- `{one}`: {' '.join(below)}" for one, below in lines.items())
        return
    explained: dict[tuple[str, str], str] = {}
    for name in recipes.names(kind):
        if name not in recipes.quantities:
            yield from (f"### {kind} `{name}`", "", *_headers(recipes, kind, name))
            yield from _parameter_lines(recipes, kind, name, explained)


def _headers(recipes: Recipes, kind: str, name: str) -> Iterator[str]:
    """Yield a line for each summary of a recipe, with the systems whose recipe has this summary."""
    facts_of: dict[str, dict[str, str]] = {}
    for system in recipes.systems:
        if name in recipes.catalogue.names(kind, system) and isinstance(recipes.catalogue, Catalogue):
            header = recipes.catalogue.header(kind, name, system)
            facts, words = facts_of.setdefault(header.summary, {}), _facts(header, kind)
            # A release is left out if its facts are those of its operating system.
            if "-" not in system or facts.get(system.partition("-")[0]) != words:
                facts[system] = words
    everywhere = len(facts_of) == 1 and len(recipes.having(kind, name)) > 1
    for summary, facts in facts_of.items():
        start = "" if everywhere else f"{', '.join(map(_title, facts))}: "
        needed = _per_system({_title(system): one for system, one in facts.items()})
        yield from (f"{start}{summary}{f' ({needed})' if needed else ''}", "")


def _title(system: str) -> str:
    name, _, release = system.partition("-")
    return f"{keys.OPERATING_SYSTEMS[name].title}{f' {release} and older' if release else ''}"


def _facts(header: Header, kind: str) -> str:
    """Return what a recipe needs on hosts, its output format, and what a change of its setting requires.

    Programs are listed for generators only. (For other kinds, `fab check` reports missing programs.) The
    result is empty for steps and facts, which users do not choose.
    """
    if kind in ("step", "fact"):
        return ""
    of_generator = kind == "generator"
    needs = {
        "needs": header.needs if of_generator else (),
        "its client needs": header.client_needs,
        "its server needs": header.server_needs,
        "kernel": header.modules,
        "tracepoints": header.tracepoints,
        "interfaces with": header.interfaces_need,
        "writes": header.leaves if of_generator else (),
    }
    facts = [f"{what} {_quoted(names)}" for what, names in needs.items() if names]
    costs = [f"change: {header.change}"] if header.change != "none" else []
    return "; ".join(facts + costs)


def _parameter_lines(
    recipes: Recipes, kind: str, name: str, explained: dict[tuple[str, str], str]
) -> Iterator[str]:
    """Yield the list of a recipe's parameters: those of all its systems, then those of one system only.

    `explained` maps a parameter and its description to the first recipe that has them. This function adds the
    parameters of the recipe `name` to `explained`.
    """
    groups: dict[str, dict[str, dict[str, str]]] = {}
    interval = {"interval": recipes.interval(name)} if kind == "logger" and recipes.interval(name) else {}
    for key, found in {**interval, **recipes.parameters(kind, name)}.items():
        infos = {_title(system): info for system, info in found.items() if "-" not in system}
        one_system = len(infos) == 1 and len(recipes.having(kind, name)) > 1
        description = next(iter(found.values())).description
        owner = explained.setdefault((key, description), name)
        group = groups.setdefault(next(iter(infos)) if one_system else "", {})
        group.setdefault(owner, {})[f"`{key}` ({_value_words(infos)})"] = description
    for system, group in sorted(groups.items(), key=lambda one: one[0] != ""):  # "" means all systems
        if system:
            yield from (f"{system} only:", "")
        for owner, descriptions in sorted(group.items(), key=lambda one: one[0] != name):
            is_long = len(" ".join(descriptions.values()).split()) > LONGEST_REPEATED
            if owner != name and is_long:
                yield f"- {', '.join(descriptions)}: as for [`{owner}`](#{kind}-{owner})"
            else:
                yield from (f"- {parameter}: {words}" for parameter, words in descriptions.items())
        yield ""


def _value_words(infos: Mapping[str, keys.ParameterInfo]) -> str:
    """Return a parameter's default or, without one, its type; for each system if systems differ.

    Choices are always listed. If the types of two systems differ, they are given beside the defaults.
    """
    types_differ = len({info.type for info in infos.values()}) > 1
    words = {}
    for system, info in infos.items():
        words[system] = _default_or_type(info)
        if types_differ and info.default:
            words[system] = f"{info.type} {words[system]}"
    return _per_system(words)


def _default_or_type(info: keys.ParameterInfo) -> str:
    has_unit = info.type in ("integer", "number") and info.unit  # other types have it in their values: 10ms
    if info.choices:
        return ", ".join(info.choices) + (f"; default `{info.default}`" if info.default else "")
    if not info.default:
        return f"{info.type}, {info.unit}" if has_unit else info.type
    return f"`{info.default}` {info.unit}" if has_unit else f"`{info.default}`"


def _per_system(texts: Mapping[str, str]) -> str:
    """Return a table cell from its text for each system: the text alone if it is the same for all systems."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{system}: {text or 'none'}" for system, text in texts.items())


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as links use it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def spaced(name: str) -> str:
    """Return the name of a class as words: Path class for PathClass."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
