"""The generated parts of the reference: tables of keys, factors, recipes and metrics within written pages.

A page holds blocks, `<!-- fab schema: NAME -->` to `<!-- end -->`; what stands between is made anew, what
stands around them is written by people and kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from samovar.experiment.expressions import Distribution
from samovar.experiment.keys import (
    EACH,
    EITHER,
    Choice,
    Config,
    Experiment,
    Strict,
    StudyReport,
    Testbed,
    form_of,
    written_default,
)
from samovar.experiment.metrics import METRICS
from samovar.experiment.outputs import Exhibit, Exhibits
from samovar.schema.model_schema import SchemaError, bare, metadata_of, own_fields
from samovar.schema.recipe_schema import Recipes
from samovar.schema.reference_tables import factor_lines, recipe_lines, recipe_names, table

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
    "use": "name, or list of names",
    "figures": "list of names, or of mappings with `figure` and options",
    "tables": "list of names, or of mappings with `table` and options",
    "profiles": "mapping from name to changes",
    "fragments": "mapping from name to pieces",
    "where": "mapping from factor to a level or a list",
    "relative_to": "mapping from factor to a level",
}
"""What stands at keys whose types do not say it."""

DEFAULTS: Mapping[str, str] = {"parts": "one, `main`", "traffic": "that of the top level"}
"""What holds where keys are left out that the complete experiment must have."""


class Page:
    """One page with its headings, which say where links to models lead."""

    def __init__(self, text: str, root: type[Strict] | None, recipes: Recipes, exhibits: Exhibits) -> None:
        self._text, self._root, self._recipes, self._exhibits = text, root, recipes, exhibits
        self._anchors = dict(self._headed())

    def written(self) -> str:
        """Return the page with each of its blocks made anew; raises SchemaError for an unknown one."""
        return BLOCK.sub(lambda found: f"{found[1]}{self._made(found['name'])}\n{found[3]}", self._text)

    def _made(self, name: str) -> str:
        return "\n".join(self._block(name)).rstrip("\n")

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
            "figures": lambda _: exhibit_lines("figure", self._exhibits["figure"]),
            "tables": lambda _: exhibit_lines("table", self._exhibits["table"]),
            "metrics": lambda _: metric_lines(True),
            "metrics to come": lambda _: metric_lines(False),
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
                yield f"### {spaced(name)}"
                yield ""
                yield " ".join((model.__doc__ or "").split("\n\n")[0].split())
                yield ""
                yield from self._table(model)
                yield ""

    def _models(self) -> dict[str, type[Strict]]:
        return dict(models_below(self._root)) if self._root else {}

    def _table(self, model: type[Strict]) -> Iterator[str]:
        rows = [self._row(key, info) for key, info in own_fields(model)]
        yield from table(("key", "value", "default", "meaning"), rows)

    def _row(self, key: str, info: FieldInfo) -> tuple[str, ...]:
        default = DEFAULTS.get(key) or ("required" if info.is_required() else written_default(info))
        quoted = default or "" if default in (None, "required", *DEFAULTS.values()) else f"`{default}`"
        value = WORDS.get(key) or self._value(info)
        drawn = ", or [drawn](#random-amounts)" if Distribution in get_args(bare(info.annotation)) else ""
        return f"`{key}`", value + drawn, quoted, info.description or ""

    def _value(self, info: FieldInfo) -> str:
        form = form_of(info)
        if form is not None:
            ways = {EITHER: ", or `{down: …, up: …}`", EACH: " in `{down: …, up: …}`"}.get(form.ways, "")
            many = ", or a list" if get_origin(bare(info.annotation)) is tuple and form.ways == "" else ""
            plain = "enum" in form.schema or form.name in ("words", "text", "name")
            shown = "" if plain else f": `{form.examples[-1]}`"
            return f"{form.name}{shown}{ways}{many}"
        return self._typed(info.annotation, list(info.metadata))

    def _typed(self, annotation: Any, metadata: list[Any]) -> str:
        here = bare(annotation)
        known = next((one.known for one in metadata_of(annotation, metadata) if isinstance(one, Choice)), ())
        if known or get_origin(here) is Literal:
            return ", ".join(f"`{one}`" for one in known or get_args(here))
        if isinstance(here, type) and issubclass(here, Strict):
            words = spaced(here.__name__)
            return f"[{words.lower()}](#{self._anchors.get(here.__name__, anchor(words))})"
        below = [self._typed(one, []) for one in get_args(here) if one not in (Ellipsis, type(None))]
        if get_origin(here) is tuple:
            return f"list of {below[0]}" if below[0] else "list"
        if isinstance(get_origin(here), type) and issubclass(get_origin(here), Mapping):
            return f"mapping from name to {below[1]}" if below[1] else "mapping"
        return " or ".join(one for one in below if one)


def models_below(model: type[Strict]) -> Iterator[tuple[str, type[Strict]]]:
    """Yield a model and every one that its fields lead to, each once, in the order of the files."""
    seen: dict[str, type[Strict]] = {}
    todo: list[Any] = [model]
    while todo:
        here = bare(todo.pop(0))
        if isinstance(here, type) and issubclass(here, Strict) and here.__name__ not in seen:
            seen[here.__name__] = here
            todo += [info.annotation for _, info in own_fields(here)]
        elif not isinstance(here, type):
            todo += [one for one in get_args(here) if one is not Ellipsis]
    yield from seen.items()


def exhibit_lines(kind: str, known: Mapping[str, Exhibit]) -> Iterator[str]:
    """Yield the table of the figures or tables that the analysis draws, with the options of their own."""
    options = {name: ", ".join(f"`{option}`" for option in one.options) for name, one in known.items()}
    rows = [(f"`{name}`", options[name], one.title) for name, one in known.items()]
    yield from table((kind, "options", "what"), rows)


def metric_lines(written: bool) -> Iterator[str]:
    """Yield the table of the metrics that the analysis writes, or of those that it does not write yet."""
    rows = [
        (f"`{name}`", metric.unit, metric.description)
        for name, metric in METRICS.items()
        if metric.written == written
    ]
    yield from table(("metric", "unit", "what"), rows)


def anchor(heading: str) -> str:
    """Return the name under which a heading is linked to."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def spaced(name: str) -> str:
    """Write a class's name as words: PathClass as Path class."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
