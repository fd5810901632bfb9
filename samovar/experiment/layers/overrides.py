"""Turn `--set KEY=VALUE` options into layers, to be merged over the experiment and its profile.

KEY is written like the name of a factor: duration, path.rate, traffic.bulk.size, loggers.queue.interval, cc,
tcp.sack; or parts.PART.KEY for one part. If KEY is a factor, VALUE replaces its levels; factors.KEY makes KEY
a factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from samovar.errors import DefinitionError, Problem, unknown
from samovar.experiment.keys import SETTINGS, Experiment, is_free, keys_of, model_of, type_of, varied_keys
from samovar.experiment.layers import merge
from samovar.experiment.yaml_tree import Map, Node, Position, Seq, map_at, node_at, parse_value

Steps = tuple[str, ...]
USAGE = "write KEY=VALUE, such as --set duration=10s or --set path.rate=10Mbit"
TOP_LEVEL_KEYS = tuple(key for key in merge.PROFILE_KEYS if key not in ("parts", *merge.DESIGN))
FIXED_KEYS = keys_of(Experiment).keys() - {*merge.PROFILE_KEYS}
"""Keys of experiments that neither --set nor a profile can change."""


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """Return the arguments of --set by key; the last argument for a key wins. Raises DefinitionError."""
    found: dict[str, str] = {}
    for argument in arguments:
        key, _, value = (one.strip() for one in argument.partition("="))
        if not key or not value:
            missing = "value" if key else "key"
            raise DefinitionError([_position(argument, 1).problem(f"missing {missing}; {USAGE}")])
        found[key] = value
    return found


def override_layers(tree: Map, overrides: Mapping[str, str], problems: list[Problem]) -> list[Map]:
    """Return the layers of all overrides, to be merged over an experiment; `tree` is its merged tree.

    Unreadable values, and keys that --set cannot change, are added to `problems`.
    """
    made = list[Map]()
    parts = (map_at(tree, "parts") or {}).items()
    factors = {name: map_at(part, "factors") or Map(part.position) for name, part in parts}
    for key, value in overrides.items():
        argument, part, own = f"{key}={value}", None, key
        if key.startswith("parts."):
            part, _, own = key.removeprefix("parts.").partition(".")
        position = _position(argument, 1)
        try:
            node = parse_value(value, _position(argument, len(key) + 2))
        except DefinitionError as error:
            problems += error.problems
            continue
        refusal = _refusal(part, own, node, factors)
        if refusal:
            problems.append(position.problem(refusal))
        else:
            made += [_layer(steps, node, position) for steps in _targets(part, own, node, factors)]
    return made


def _position(argument: str, column: int) -> Position:
    return Position(f"--set {argument}", 0, column, argument)


def _layer(steps: Steps, value: Node, position: Position) -> Map:
    """Return a tree with a single value, at nested keys."""
    holder = Map(position)
    holder.put(steps[0], _layer(steps[1:], value, position) if steps[1:] else value, position)
    return holder


def _refusal(part: str | None, key: str, value: Node, factors: Mapping[str, Map]) -> str | None:
    """Return why --set cannot change a key, or None if it can; `part` is None for keys of the experiment."""
    if part is not None and part not in factors:
        return unknown("part", part, factors)
    if not key:
        return f"'parts.{part}' is a part, not a key; write parts.{part}.KEY=VALUE"
    first = key.partition(".")[0]
    if part is None and first in FIXED_KEYS:
        return f"'{first}' cannot be set; use --testbed, --profile or a file that extends this one"
    if key in varied_keys("path"):
        return f"'{key}' is a key of the path; write path.{key}=..."
    in_parts = [one for name, one in factors.items() if part in (None, name)]
    name = key.removeprefix("factors.")
    linked = is_free(name) and any(name in one and node_at(one, name, "sets") is None for one in in_parts)
    labels = [one for one in (value if isinstance(value, Seq) else [value]) if isinstance(one, str)]
    if linked and labels:
        return f"each level of '{name}' sets several keys; pick levels with --only {name}={','.join(labels)}"
    below = [f"{key}.{one}" for one in value] if isinstance(value, Map) else []
    for one, other in [(name, other) for name in (key, *below) for other in (name, *_alternatives(name))]:
        setters = [_setter(own, key, other) for own in in_parts]
        if setters and all(setters):
            why = f"is set by the levels of factor '{setters[0]}'"
            if other != one:
                why = f"would have no effect, because '{other}' {why}"
            return f"'{one}' {why}; use --set {setters[0]}=..."
    if isinstance(value, Seq) and type_of(key) is not None and not any(key in one for one in in_parts):
        prefix = "" if part is None else f"parts.{part}."
        return f"'{key}' is not a factor here; to make it one, write {prefix}factors.{key}=[...]"
    return None


def _alternatives(key: str) -> list[str]:
    """Return the keys that exclude a key: path.delay for path.rtt."""
    owner, _, own = key.rpartition(".")
    model = model_of(owner)
    groups = [group for group in model.EXCLUSIVE if own in group] if model is not None else []
    return [f"{owner}.{other}" for group in groups for other in group if other != own]


def _setter(factors: Map, key: str, below: str) -> str | None:
    """Return the name of a factor whose levels set `below`, which is `key` or a key within it, or None.

    The factor with the name `key` does not count, because --set replaces its levels.
    """
    target, _, direction = below.removeprefix("settings.").rpartition(".")
    if direction not in ("down", "up"):
        target, direction = below.removeprefix("settings."), ""
    for name, factor in factors.items():
        if name == key:
            continue
        sets, levels = node_at(factor, "sets"), node_at(factor, "levels") or factor
        targets = [name] if sets is None else sets if isinstance(sets, Seq) else [sets]
        for level in levels if isinstance(levels, Seq) else [levels]:
            value = level if target in targets else node_at(level, target)
            given = value if isinstance(value, Map) and value.keys() & {"down", "up"} else (direction,)
            if value is not None and (not direction or direction in given):
                return name
    return None


def _targets(part: str | None, key: str, value: Node, factors: Mapping[str, Map]) -> Iterator[Steps]:
    """Yield the nested keys to set: in parts that have the factor, its levels; in other parts, the key."""
    name = key.removeprefix("factors.")
    parts = list(factors) if part is None else [part]
    having = [one for one in parts if name in factors.get(one, {})]
    if key.startswith("factors."):
        having = having or parts
    yield from (("parts", one, "factors", name) for one in having)
    levels_alone = having and (is_free(name) or name != key or not isinstance(value, str))
    if len(having) < len(parts) and not levels_alone:
        first, _, own = key.partition(".")
        steps: Steps = merge.nested_keys(key)
        if key in SETTINGS or (own and first not in (*merge.LISTED, *merge.PART_KEYS, *TOP_LEVEL_KEYS)):
            steps = ("settings", key)
        elif first == "settings" and own:
            steps = (first, own)
        yield steps if part is None else ("parts", part, *steps)
