"""`--set KEY=VALUE`: layers from the command line, over the profile.

KEY is written as a factor's name is: duration, path.rate, traffic.bulk.size, loggers.queue.interval, cc,
tcp.sack; or parts.PART.KEY for one part. Where KEY is a factor, VALUE takes the place of its levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from samovar.errors import DefinitionError, Problem
from samovar.experiment.keys import FLOW_FIELDS, PATH_FIELDS, SETTINGS, is_free
from samovar.experiment.layers.merge import (
    DESIGN,
    LISTED,
    MAIN,
    OF_A_PART,
    OF_A_PROFILE,
    merged,
    names_of_entries,
)
from samovar.experiment.layers.without import WITHOUT, lessened
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, Mark, Node, Seq, parse_value

Steps = tuple[str, ...]
EXPECTED = "expected KEY=VALUE, such as --set duration=10s or --set path.rate=10Mbit"
TOP = tuple(key for key in OF_A_PROFILE if key not in ("parts", *DESIGN))
ANOTHER_FILE = "a file that extends this one"
OF_THE_FILE = {
    "testbed": "--testbed NAME",
    "profiles": "--profile NAME, and --set for what the profile says",
    **dict.fromkeys(("extends", "use", "fragments"), f"--set for what it gives, or {ANOTHER_FILE}"),
    **dict.fromkeys(("experiment", "title", "source", "description", "expect"), ANOTHER_FILE),
}
"""Keys of experiments that --set does not change, and what does."""


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """Read the arguments of --set, later ones over earlier ones; raises DefinitionError."""
    found: dict[str, str] = {}
    for argument in arguments:
        key, sign, value = argument.partition("=")
        if not sign or not key.strip() or not value.strip():
            missing = "no =" if not sign else "no value" if key.strip() else "no key"
            raise DefinitionError([_mark(argument, 1).problem(f"{missing}; {EXPECTED}")])
        found[key.strip()] = value.strip()
    return found


def override_layers(
    layers: Sequence[Map], overrides: Mapping[str, str], problems: list[Problem]
) -> list[Map]:
    """Return one layer for each override, to be laid over an experiment and its profile.

    What the profile or an override takes away is gone before the others are put in their places.
    """
    tree = layers[0]
    for profile in layers[1:]:
        tree = lessened(tree, profile, [])
    made: list[Map] = []
    for key, value in sorted(overrides.items(), key=lambda one: one[0] != WITHOUT):
        argument = f"{key}={value}"
        try:
            node = parse_value(value, _mark(argument, len(key) + 2))
        except DefinitionError as error:
            problems += error.problems
            continue
        problem = _refusal(tree, key)
        if problem:
            problems.append(_mark(argument, 1).problem(problem))
            continue
        made += [_layer(steps, node, _mark(argument, 1)) for steps in _places(tree, key, node)]
        tree = lessened(tree, made[-1], []) if key == WITHOUT else tree
    return made


def _mark(argument: str, column: int) -> Mark:
    return Mark(f"--set {argument}", 0, column, argument)


def _layer(steps: Steps, value: Node, mark: Mark) -> Map:
    """Return nested mappings that hold one value."""
    for step in reversed(steps):
        holder = Map(mark)
        holder.put(step, value, mark)
        value = holder
    return cast(Map, value)


def _refusal(tree: Map, key: str) -> str | None:
    """Say why a key cannot be set, or return None."""
    part, rest = _split_part(key)
    if part is not None and part not in _parts(tree):
        return unknown("part", part, _parts(tree))
    if part is not None and not rest:
        return f"'{key}' is a whole part; expected parts.{part}.KEY=VALUE"
    first = rest.partition(".")[0]
    known = _known(tree, part)
    if first in OF_THE_FILE and first not in known:
        return f"'{first}' is not set here; expected {OF_THE_FILE[first]}"
    if rest in DESIGN and rest not in known:
        return f"'{rest}' stands in the parts; expected parts.PART.{rest}=..."
    if rest in known or first in known or ("." in rest and first != "parts"):
        return _hidden_by_levels(tree, part, rest)
    return unknown("key", rest, known | set(_dotted(tree)), known)


def _dotted(tree: Map) -> Iterator[str]:
    """Yield keys with dots of which the last word alone may have been given."""
    yield from (f"path.{key}" for key in PATH_FIELDS)
    yield from (f"order.{key}" for key in ("kind", "seed"))
    parts = tree.get("parts")
    for holder in (tree, *(parts.values() if isinstance(parts, Map) else ())):
        flows = names_of_entries("traffic", holder.get("traffic")) if isinstance(holder, Map) else ()
        yield from (f"traffic.{flow}.{key}" for flow in flows for key in FLOW_FIELDS)


def _known(tree: Map, part: str | None) -> set[str]:
    factors = {factor for name, own in _factors(tree).items() if part in (None, name) for factor in own}
    design = () if "parts" in tree else DESIGN
    return {*(OF_A_PART if part else TOP), *SETTINGS, *factors, *design}


def _hidden_by_levels(tree: Map, part: str | None, key: str) -> str | None:
    """Say which factor sets a key by its levels, where that is so in every part that is meant."""
    own = [factors for name, factors in _factors(tree).items() if part in (None, name)]
    linked = [_linking(factors, key) for factors in own]
    if not linked or not all(linked):
        return None
    return f"'{key}' is set by the levels of factor '{linked[0]}'; expected --set {linked[0]}=..."


def _linking(factors: Map, key: str) -> str | None:
    """Return the factor, of another name, whose levels set a key."""
    found = (
        name
        for name, spec in factors.items()
        if key in _sets(spec) or any(key in level for level in _mappings(spec))
    )
    return next((name for name in found if name != key), None)


def _sets(spec: Node) -> Sequence[object]:
    sets = spec.get("sets") if isinstance(spec, Map) else None
    return sets if isinstance(sets, Seq) else ()


def _mappings(spec: Node) -> list[Map]:
    levels = spec.get("levels", spec) if isinstance(spec, Map) else spec
    return [one for one in (levels if isinstance(levels, Seq) else [levels]) if isinstance(one, Map)]


def _places(tree: Map, key: str, value: Node) -> Iterator[Steps]:
    """Yield where a value is put: at the factor of that name where a part has it, as a key elsewhere."""
    part, rest = _split_part(key)
    factors = _factors(tree)
    name = rest.removeprefix("factors.")
    parts = list(factors) if part is None else [part]
    having = [one for one in parts if name in factors.get(one, {})]
    if rest.startswith("factors."):
        having = having or parts
    yield from (_in_part(tree, one, ("factors", name)) for one in having)
    levels_alone = having and (is_free(name) or name != rest or not isinstance(value, str))
    if len(having) < len(parts) and not levels_alone:
        steps = _steps(rest)
        yield steps if part is None else _in_part(tree, part, steps)


def _in_part(tree: Map, part: str, steps: Steps) -> Steps:
    return ("parts", part, *steps)


def _steps(key: str) -> Steps:
    """Return the keys that lead to a value: settings keep their dots, and so do labels of flows."""
    first, _, rest = key.partition(".")
    if first in LISTED and "." in rest:
        name, _, own = rest.rpartition(".")
        label, dot, last = name.rpartition(".")
        return (first, label, last, own) if dot and last == "arrivals" else (first, name, own)
    if first in LISTED and rest:
        return (first, rest)
    if first == "settings" and rest:
        return (first, rest)
    if first in ("path", "order", "stop", "verdict"):
        return tuple(key.split("."))
    return (key,) if first in (*OF_A_PART, *TOP) else ("settings", key)


def _split_part(key: str) -> tuple[str | None, str]:
    if not key.startswith("parts."):
        return None, key
    part, _, rest = key.removeprefix("parts.").partition(".")
    return part, rest


def _parts(tree: Map) -> Sequence[str]:
    parts = tree.get("parts")
    return list(parts) if isinstance(parts, Map) else [MAIN]


def _factors(tree: Map) -> dict[str, Map]:
    """Return the factors of each part: those of the top, and its own over them."""
    parts = tree.get("parts")
    holders = parts if isinstance(parts, Map) else {MAIN: Map(tree.mark)}
    return {
        name: merged(_own_factors(tree), _own_factors(one), [], "factors")
        for name, one in holders.items()
        if isinstance(one, Map)
    }


def _own_factors(holder: Map) -> Map:
    factors = holder.get("factors")
    return factors if isinstance(factors, Map) else Map(holder.mark)
