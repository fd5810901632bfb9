"""Tables of the reference in Markdown: what may vary, and every recipe with its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from samovar.experiment import ParameterInfo
from samovar.recipes import BLOCKS, Catalogue, Header
from samovar.schema.json_schema import Json
from samovar.schema.model_schema import Definitions
from samovar.schema.recipe_schema import Recipes, Taken
from samovar.schema.targets import (
    BOTH_WAYS,
    HOST,
    LABEL,
    LAW,
    NO_ARRIVALS,
    PLAIN,
    WAYS,
    Target,
    targets,
)

SYSTEMS = {"linux": "Linux", "freebsd": "FreeBSD"}
LEVELS = {
    HOST: "one, or one per host or role",
    WAYS: "one, or `{down: …, up: …}`",
    BOTH_WAYS: "`{down: …, up: …}`",
    PLAIN: "one",
    LAW: "one, or [drawn](experiment.md#random-amounts)",
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table; what would end a cell is written so that it does not."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def factor_lines(recipes: Recipes) -> Iterator[str]:
    """Yield the table of everything that a factor may set by its name."""
    definitions = Definitions({})
    rows = [_factor_row(definitions, one) for one in targets(definitions, recipes)]
    yield from table(("factor", "value", "levels", "what"), rows)


def _factor_row(definitions: Definitions, one: Target) -> tuple[str, ...]:
    name = one.name.strip("^$").replace(NO_ARRIVALS, "").replace("\\.", ".")
    name = name.replace(LABEL, "<flow>").replace("[^.]+", "<parameter>")
    words = str(one.told.get("description", "")).replace("\n\n", "; ")
    return f"`{name}`", _kinds(definitions, one.value), LEVELS[one.takes], words


def _kinds(definitions: Definitions, value: Json) -> str:
    """Say of which kinds a value is."""
    if "enum" in value:
        texts = [str(one) for one in value["enum"] if isinstance(one, str)]
        return ", ".join(f"`{one}`" for one in texts[:6]) + (" …" if len(texts) > 6 else "")
    if "$ref" in value:
        return str(definitions.schemas[value["$ref"].removeprefix("#/$defs/")]["title"])
    options = [_kinds(definitions, one) for one in value.get("anyOf", [])]
    return " or ".join(dict.fromkeys(options)) or "text"


def recipe_names(recipes: Recipes) -> Iterator[str]:
    """Yield the names of all recipes that an experiment or a testbed may use, by kind and system."""
    rows = []
    for kind in ("setting", "aqm", "generator", "logger"):
        for system, title in SYSTEMS.items():
            names = sorted(recipes.catalogue.names(kind, system))
            label = kind if system == "linux" else f"{kind} on {title}"
            rows.append((label, ", ".join(f"`{name}`" for name in names)))
    yield from table(("", "recipes"), sorted(rows, key=lambda row: "FreeBSD" in row[0]))


def recipe_lines(recipes: Recipes, kind: str) -> Iterator[str]:
    """Yield a section for each recipe of a kind: on each system what it is for, needs, takes and leaves."""
    if kind not in BLOCKS:
        raise ValueError(f"no kind of recipe '{kind}'")
    for name in recipes.names(kind):
        yield f"### {kind} `{name}`"
        yield ""
        yield from _summaries(recipes, kind, name)
        yield from _parameters(recipes.parameters(kind, name), len(recipes.having(kind, name)))


def _summaries(recipes: Recipes, kind: str, name: str) -> Iterator[str]:
    """Yield what each system's recipe says of itself; what is the same everywhere once."""
    said: dict[str, list[str]] = {}
    for system in recipes.systems:
        own = name in recipes.catalogue.names(kind, system)
        if own and isinstance(recipes.catalogue, Catalogue):
            said.setdefault(_facts(recipes.catalogue.header(kind, name, system)), []).append(_title(system))
    everywhere = len(said) == 1 and len(recipes.having(kind, name)) > 1
    for facts, systems in said.items():
        where = [one for one in systems if not _release_of(one, systems)]
        yield f"{'' if everywhere else ', '.join(where) + ': '}{facts}"
        yield ""


def _release_of(system: str, systems: Sequence[str]) -> bool:
    """Say whether a release needs no word, as its system has the same."""
    return " " in system and system.partition(" ")[0] in systems


def _title(system: str) -> str:
    name, _, release = system.partition("-")
    return f"{SYSTEMS[name]}{f' {release} and older' if release else ''}"


def _facts(header: Header) -> str:
    """Return what a header says in one paragraph."""
    needs = {
        "needs": header.needs,
        "its client needs": header.client_needs,
        "its server needs": header.server_needs,
        "kernel": header.modules,
        "tracepoints": header.tracepoints,
        "interfaces with": header.interfaces_need,
        "leaves": header.leaves,
    }
    said = [f"{what} {', '.join(f'`{one}`' for one in those)}" for what, those in needs.items() if those]
    said += [f"a change of its level costs: {header.change}"] if header.change != "none" else []
    more = f" ({'; '.join(said)})" if said else ""
    return f"{header.summary}{more}"


def _parameters(known: dict[str, list[Taken]], systems: int) -> Iterator[str]:
    if known:
        rows = [(f"`{name}`", *_row(taken, systems)) for name, taken in known.items()]
        yield from table(("parameter", "type", "default", "meaning"), rows)
        yield ""


def _row(taken: list[Taken], systems: int) -> tuple[str, str, str]:
    """Return a parameter's type, default and meaning, with the systems where they are not the same on all."""
    on = [one for one in taken if "-" not in one.system]
    only = f" ({_title(on[0].system)} only)" if len(on) == 1 and systems > 1 else ""
    return _each(on, kind_of), _each(on, default_of), f"{taken[0].info.description}{only}"


def _each(taken: list[Taken], say: Callable[[ParameterInfo], str]) -> str:
    """Say something of a parameter once, or for each system where it is not the same."""
    said = {_title(one.system): say(one.info) for one in taken}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{system}: {words or 'none'}" for system, words in said.items())


def kind_of(info: ParameterInfo) -> str:
    """Say of which type a parameter is, and in which unit the recipe gets it."""
    if info.choices:
        return ", ".join(info.choices)
    return f"{info.type} ({info.unit})" if info.unit not in (None, info.type) else info.type


def default_of(info: ParameterInfo) -> str:
    """Return a parameter's default as an experiment would write it."""
    return str(getattr(info, "default", None) or "")
