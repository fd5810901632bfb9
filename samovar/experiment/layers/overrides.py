"""Overrides from the command line, `--set KEY=VALUE`: one layer each, merged over the profile.

KEY is written like the name of a factor: duration, path.rate, traffic.bulk.size, loggers.queue.interval, cc,
tcp.sack; or parts.PART.KEY for one part. If KEY is a factor, VALUE replaces its levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from samovar.errors import DefinitionError, Problem
from samovar.experiment.keys import FLOW_FIELDS, PATH_FIELDS, SETTINGS, Order, is_free, keys_of
from samovar.experiment.layers.merge import (
    DESIGN,
    LISTED,
    MAIN,
    PART_KEYS,
    PROFILE_KEYS,
    REMOVED_KEYS,
    entry_names,
    merge_maps,
    nested_keys,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml_tree import Map, Node, Position, Seq, node_at, parse_value

Steps = tuple[str, ...]
USAGE = "write KEY=VALUE, such as --set duration=10s or --set path.rate=10Mbit"
TOP_LEVEL_KEYS = tuple(key for key in PROFILE_KEYS if key not in ("parts", *DESIGN))
ANOTHER_FILE = "write a file that extends this one"
FIXED_KEYS = {
    "testbed": "use --testbed NAME",
    "profiles": "use --profile NAME, and --set for the values of the profile",
    **dict.fromkeys(("extends", "use", "fragments"), f"set the values it gives, or {ANOTHER_FILE}"),
    **dict.fromkeys(("experiment", "title", "source", "description", "expect"), ANOTHER_FILE),
}
"""Keys of experiments that --set cannot change, and what to do instead."""


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """Return the arguments of --set by key, the last of each key; raises DefinitionError."""
    found: dict[str, str] = {}
    for argument in arguments:
        key, sign, value = argument.partition("=")
        if not sign or not key.strip() or not value.strip():
            missing = "=" if not sign else "value" if key.strip() else "key"
            raise DefinitionError([_position(argument, 1).problem(f"missing {missing}; {USAGE}")])
        found[key.strip()] = value.strip()
    return found


def override_layers(
    layers: Sequence[Map], overrides: Mapping[str, str], problems: list[Problem]
) -> list[Map]:
    """Return the layers of all overrides, to be merged over an experiment; reports what cannot be set."""
    tree, made = layers[0], list[Map]()
    for key, value in overrides.items():
        argument = f"{key}={value}"
        try:
            node = parse_value(value, _position(argument, len(key) + 2))
        except DefinitionError as error:
            problems += error.problems
            continue
        problem = _refusal(tree, key)
        if problem:
            problems.append(_position(argument, 1).problem(problem))
            continue
        made += [_layer(steps, node, _position(argument, 1)) for steps in _targets(tree, key, node)]
    return made


def _position(argument: str, column: int) -> Position:
    return Position(f"--set {argument}", 0, column, argument)


def _layer(steps: Steps, value: Node, position: Position) -> Map:
    """Return nested mappings that hold one value."""
    for step in reversed(steps):
        holder = Map(position)
        holder.put(step, value, position)
        value = holder
    return cast(Map, value)


def _refusal(tree: Map, key: str) -> str | None:
    """Return why a key cannot be set, None if it can."""
    part, rest = _split_part(key)
    factors = _factors(tree)
    if part is not None and part not in factors:
        return unknown("part", part, factors)
    if part is not None and not rest:
        return f"'{key}' is a whole part; write parts.{part}.KEY=VALUE"
    first = rest.partition(".")[0]
    concerned = [own for name, own in factors.items() if part in (None, name)]
    known = {
        *(PART_KEYS if part else TOP_LEVEL_KEYS),
        *SETTINGS,
        *(name for own in concerned for name in own),
    }
    known |= set() if "parts" in tree else set(DESIGN)
    if first in REMOVED_KEYS and first not in known:
        return REMOVED_KEYS[first]
    if first in FIXED_KEYS and first not in known:
        return f"'{first}' cannot be changed by --set; {FIXED_KEYS[first]}"
    if rest in DESIGN and rest not in known:
        return f"'{rest}' belongs to the parts; write parts.PART.{rest}=..."
    if rest in known or first in known or ("." in rest and first != "parts"):
        setters = [_setter(own, rest) for own in concerned]
        if not setters or not all(setters):
            return None
        return f"'{rest}' is set by the levels of factor '{setters[0]}'; use --set {setters[0]}=..."
    return unknown("key", rest, known | set(_dotted(tree)), known)


def _dotted(tree: Map) -> Iterator[str]:
    """Yield dotted keys, to suggest for their last word alone."""
    yield from (f"path.{key}" for key in PATH_FIELDS)
    yield from (f"order.{key}" for key in keys_of(Order))
    parts = tree.get("parts")
    for holder in (tree, *(parts.values() if isinstance(parts, Map) else ())):
        flows = entry_names("traffic", holder.get("traffic")) if isinstance(holder, Map) else ()
        yield from (f"traffic.{flow}.{key}" for flow in flows for key in FLOW_FIELDS)


def _setter(factors: Map, key: str) -> str | None:
    """Return the factor, of another name, whose levels set a key."""
    for name, factor in factors.items():
        sets, levels = node_at(factor, "sets"), node_at(factor, "levels") or factor
        linked = [one for one in (levels if isinstance(levels, Seq) else [levels]) if isinstance(one, Map)]
        if name != key and (any(key in one for one in linked) or (isinstance(sets, Seq) and key in sets)):
            return name
    return None


def _targets(tree: Map, key: str, value: Node) -> Iterator[Steps]:
    """Yield where a value is set: the factor of that name in parts that have it, the key itself elsewhere."""
    part, rest = _split_part(key)
    factors = _factors(tree)
    name = rest.removeprefix("factors.")
    parts = list(factors) if part is None else [part]
    having = [one for one in parts if name in factors.get(one, {})]
    if rest.startswith("factors."):
        having = having or parts
    yield from (("parts", one, "factors", name) for one in having)
    levels_alone = having and (is_free(name) or name != rest or not isinstance(value, str))
    if len(having) < len(parts) and not levels_alone:
        steps = _steps(rest)
        yield steps if part is None else ("parts", part, *steps)


def _steps(key: str) -> Steps:
    first, _, rest = key.partition(".")
    if first == "settings" and rest:
        return (first, rest)
    known = first in (*LISTED, *PART_KEYS, *TOP_LEVEL_KEYS)
    return nested_keys(key) if known else ("settings", key)


def _split_part(key: str) -> tuple[str | None, str]:
    if not key.startswith("parts."):
        return None, key
    part, _, rest = key.removeprefix("parts.").partition(".")
    return part, rest


def _factors(tree: Map) -> dict[str, Map]:
    """Return the factors of each part, its own merged over those of the top level."""

    def own(holder: Map) -> Map:
        factors = holder.get("factors")
        return factors if isinstance(factors, Map) else Map(holder.position)

    parts = tree.get("parts")
    holders = parts if isinstance(parts, Map) else {MAIN: Map(tree.position)}
    maps = {name: one for name, one in holders.items() if isinstance(one, Map)}
    return {name: merge_maps(own(tree), own(one), [], "factors") for name, one in maps.items()}
