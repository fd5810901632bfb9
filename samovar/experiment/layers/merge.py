"""Merge layers of an experiment: base experiments, fragments, the file itself, a profile, `--set`.

Mappings are merged key by key, anything else is replaced. Flows and loggers may also be given as a mapping
from their names to changes of them; a name that the list lacks is added if the change is complete. The values
that are replaced are kept beside the new one (Map.overridden), so that `fab explain` can show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from samovar.errors import Problem
from samovar.experiment.keys import FLOW_ENDS, NetworkPath, PartKeys, keys_of
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml_tree import Map, Node, Seq, Text, text

DESIGN = ("factors", "exclude", "include")
INHERITED = tuple(key for key in keys_of(PartKeys) if key != "use")
PART_KEYS = ("title", *INHERITED)
PROFILE_KEYS = ("parts", "order", "figures", "tables", "verdict", "calibrate", *INHERITED)
FRAGMENT_KEYS = tuple(sorted({*PROFILE_KEYS, "expect", "profiles", "title", "use"}))
REMOVED_KEYS = {
    "without": "`without` is no longer supported: a layer cannot remove keys; extend an experiment that does "
    "not have them, or move them into profiles or fragments that are used only where they are wanted"
}
"""Keys of earlier versions, with the message that refuses them."""
MAIN = "main"
"""Name of the only part of an experiment without `parts`."""
LISTED: Mapping[str, tuple[str, str]] = {"traffic": ("flow", "generator"), "loggers": ("logger", "at")}
"""Lists whose entries can be changed by name, with the key of that name and a key that a new entry needs."""
ALTERNATIVES: Mapping[str, tuple[str, ...]] = {
    "flow": FLOW_ENDS,
    "path": NetworkPath.EXCLUSIVE[0],
}
"""Alternative keys: a layer that gives one of them removes the others of weaker layers."""


def nested_keys(key: str) -> tuple[str, ...]:
    """Return the nested keys of a dotted key; names of flows, loggers and settings keep their dots."""
    first, _, rest = key.partition(".")
    if first in LISTED and "." in rest:
        name, _, own = rest.rpartition(".")
        label, dot, last = name.rpartition(".")
        return (first, label, last, own) if dot and last == "arrivals" else (first, name, own)
    if first in LISTED and rest:
        return (first, rest)
    return tuple(key.split(".")) if first in ("path", "order", "stop", "verdict") else (key,)


def nodes_at(node: Node | None, steps: Sequence[str]) -> list[Node]:
    """Return the values that the layers give at a path of nested keys, the strongest first."""
    if node is None:
        return []
    if not steps or (isinstance(node, Text) and tuple(steps) == ("down",)):  # a plain value is for downstream
        return [node]
    return [found for one in values_below(node, steps[0]) for found in nodes_at(one, steps[1:])]


def values_below(node: Node | None, key: str) -> list[Node]:
    """Return the values of a key of a mapping, or the entries of a list for a flow or logger."""
    if isinstance(node, Seq):
        return [one for one in node if isinstance(one, Map) and key in (one.get("flow"), one.get("logger"))]
    if not isinstance(node, Map):
        return []
    return [*([node[key]] if key in node else []), *node.overridden.get(key, ())]


def unknown_key(what: str, key: str, known: Iterable[str]) -> str:
    """Return the message for an unknown key, or for one of an earlier version."""
    return REMOVED_KEYS.get(key) or unknown(what, key, known)


def merge_maps(base: Map, over: Map, problems: list[Problem], kind: str = "part") -> Map:
    """Return a mapping merged over a weaker one; `kind` is part, flow, logger or the mapping's own key."""
    result = base.copied()
    for key, value in over.items():
        own = over.overridden.get(key, ())
        was = _by_direction(base, key, value) if kind == "path" else base.get(key)
        _replace(result, key, _merge_values(key, was, value, problems), over, own)
    for key, values in over.overridden.items():
        if key not in over:
            result.overridden[key] = (*values, *result.overridden.get(key, ()))
    _drop_alternatives(result, over, kind)
    return result


def _replace(result: Map, key: str, value: Node, over: Map, overridden: tuple[Node, ...]) -> None:
    """Set a key that a stronger layer gives and remember what it overrides."""
    was = result.get(key)
    replaced = () if was is None or value is not over[key] else (was,)  # merged values remember their own
    chain = (*overridden, *replaced, *result.overridden.get(key, ()))
    if chain:
        result.overridden[key] = chain
    result.put(key, value, over.key_positions[key])


def merge_layer(base: Map, layer: Map, problems: list[Problem]) -> Map:
    """Return an experiment with a layer merged over it; the layer's top-level keys change its parts too."""
    for key in LISTED.keys() & layer.keys():
        _check_entries(base, key, layer[key], problems)
    top = _only(layer, [key for key in layer if key != "parts"])
    result = merge_maps(base, _applicable(base, top), problems, "")
    parts = base.get("parts")
    if isinstance(parts, Map) and "parts" in result:
        result["parts"] = _changed_parts(parts, top, problems)
    if "parts" in layer:
        result = merge_maps(result, _only(layer, ["parts"]), problems, "")
    return result


def merge_layers(layers: Sequence[Map], problems: list[Problem]) -> Map:
    """Return the experiment of all layers, weakest first, with inherited values filled into every part."""
    with_parts = [_with_main_part(layer) for layer in layers] if "parts" not in layers[0] else list(layers)
    result = with_parts[0].copied()
    for layer in with_parts[1:]:
        result = merge_layer(result, layer, problems)
    parts = result.get("parts")
    if isinstance(parts, Map):
        result["parts"] = complete_parts = parts.copied()
        for name, part in parts.items():
            complete_parts[name] = _fill_part(result, part, problems)
    for key in LISTED.keys() & result.keys():
        result[key] = _as_list(key, result[key], problems)
    return result


def _with_main_part(tree: Map) -> Map:
    """Return a layer of an experiment without parts with its factors in the part `main`."""
    result = _only(tree, [key for key in tree if key not in DESIGN])
    parts = result.get("parts", Map(tree.position))
    own = parts.get(MAIN, Map(tree.position)) if isinstance(parts, Map) else None
    if isinstance(own, Map) and isinstance(parts, Map):
        result.put("parts", parts.copied(), tree.key_positions.get("parts", tree.position))
        main = merge_maps(_only(tree, DESIGN), own, [])
        cast(Map, result["parts"]).put(MAIN, main, parts.key_positions.get(MAIN, tree.position))
    return result


def _fill_part(tree: Map, part: Node, problems: list[Problem]) -> Node:
    """Return a part merged over the top-level keys that it inherits."""
    if not isinstance(part, Map):
        return part
    filled = merge_maps(_only(tree, INHERITED), part, problems)
    filled.position = part.position
    for key in LISTED.keys() & filled.keys():
        filled[key] = _as_list(key, filled[key], problems)
    return filled


def _changed_parts(parts: Map, top: Map, problems: list[Problem]) -> Map:
    """Return the parts with the top-level keys of a layer merged over their own."""
    result = parts.copied()
    for name, part in parts.items():
        if isinstance(part, Map):
            own = _only(top, [key for key in INHERITED if key in part and key in top])
            result[name] = merge_maps(part, _applicable(part, own), problems)
    return result


def _applicable(base: Map, over: Map) -> Map:
    """Return a layer without changes of flows and loggers that the base does not have."""
    result = over.copied()
    for key in LISTED.keys() & over.keys():
        entries, changes = base.get(key), over[key]
        if isinstance(changes, Map):
            known = entry_names(key, entries)
            kept = [name for name in changes if name in known or _is_complete(key, changes[name])]
            result[key] = _only(changes, kept)
            if not kept:
                del result[key]
    return result


def _is_complete(key: str, change: Node) -> bool:
    """Return whether a change of an entry could be a new entry."""
    return isinstance(change, Map) and LISTED[key][1] in change


def entry_names(key: str, entries: Node | None) -> list[str]:
    """Return the names of the flows or loggers in a list, or in a mapping of changes."""
    if isinstance(entries, Map):
        return list(entries)
    name = LISTED[key][0]
    own = (one.get(name) for one in entries if isinstance(one, Map)) if isinstance(entries, Seq) else ()
    return [str(one) for one in own if isinstance(one, str)]


def _all_named(key: str, entries: Node | None) -> bool:
    """Return whether every entry has a name; an entry that lacks it may be the one that a change means."""
    if not isinstance(entries, Seq):
        return True
    return len(entry_names(key, entries)) == len(entries)


def _check_entries(base: Map, key: str, changes: Node, problems: list[Problem]) -> None:
    """Report changes of flows and loggers that neither the top level nor any part has."""
    parts = base.get("parts")
    holders = [base, *(parts.values() if isinstance(parts, Map) else ())]
    lists = [one.get(key) for one in holders if isinstance(one, Map)]
    known = [name for one in lists for name in entry_names(key, one)]
    no_traffic = key == "traffic" and not known  # is reported as such
    if not isinstance(changes, Map) or no_traffic or not all(_all_named(key, one) for one in lists):
        return
    for name, change in changes.items():
        if name not in known and not _is_complete(key, change):
            problems.append(changes.key_positions[name].problem(_unknown_entry(key, name, change, known)))


def _unknown_entry(key: str, name: str, change: Node, known: Sequence[str]) -> str:
    what = LISTED[key][0]
    return unknown(what, name, known) if isinstance(change, Map) else _not_a_change(what, name, change)


def _not_a_change(what: str, name: str, change: Node) -> str:
    if name == what:
        return f"{name}: must be in an entry of a list, [{{{what}: {change}, …}}]"
    return f"{name}: must be a mapping with the keys of the {what} to change"


def _only(tree: Map, keys: Sequence[str]) -> Map:
    result = Map(tree.position)
    for key in keys:
        if key in tree:
            result.put(key, tree[key], tree.key_positions[key])
        if key in tree.overridden:
            result.overridden[key] = tree.overridden[key]
    return result


def _merge_values(key: str, base: Node | None, over: Node, problems: list[Problem]) -> Node:
    if key in LISTED and isinstance(over, Map) and isinstance(base, Seq):
        return _change_entries(key, base, over, problems)
    if not isinstance(base, Map) or not isinstance(over, Map):
        return over
    if key in LISTED:
        return _merge_changes(key, base, over, problems)
    return _merge_factors(base, over) if key == "factors" else merge_maps(base, over, problems, key)


def _merge_factors(base: Map, over: Map) -> Map:
    """Return the factors of two layers; a factor's levels are replaced as a whole."""
    result, own = base.copied(), over.copied()
    for key, value in over.items():
        own[key] = _with_targets(base.get(key), value)
        _replace(result, key, own[key], own, over.overridden.get(key, ()))
    return result


def _with_targets(was: Node | None, value: Node) -> Node:
    """Return new levels of a factor with the `sets` or `recipe` that the factor had, if they give none."""
    if not isinstance(was, Map) or not {"sets", "recipe"} & was.keys():
        return value
    if isinstance(value, Map) and {"levels", "sets", "recipe"} & value.keys():
        return value
    result = was.copied()
    result.position = value.position
    result.put("levels", value, value.position)
    return result


def _by_direction(path: Map, key: str, over: Node) -> Node | None:
    """Return a value of the path by direction if the stronger layer gives it by direction.

    A single value applies downstream; that of a queue to both directions if both have a rate.
    """
    was = path.get(key)
    if not isinstance(was, Text) or not isinstance(over, Map) or not over.keys() <= {"down", "up"}:
        return was
    rate = path.get("rate")
    both = key in ("aqm", "buffer") and isinstance(rate, Map) and "up" in rate
    result = Map(was.position)
    for direction in ("down", "up") if both else ("down",):
        result.put(direction, was, path.key_positions[key])
    return result


def _merge_changes(key: str, base: Map, over: Map, problems: list[Problem]) -> Map:
    """Return changes by name merged over weaker changes by name."""
    result = base.copied()
    for name, change in over.items():
        was = base.get(name)
        both = isinstance(was, Map) and isinstance(change, Map)
        new = merge_maps(cast(Map, was), cast(Map, change), problems, LISTED[key][0]) if both else change
        _replace(result, name, new, over, over.overridden.get(name, ()))
    return result


def _change_entries(key: str, entries: Seq, changes: Map, problems: list[Problem]) -> Seq:
    """Return a list of flows or loggers with changes by name applied, and complete ones added."""
    what = LISTED[key][0]
    result = Seq(list(entries), entries.position)
    for name, change in changes.items():
        position = changes.key_positions[name]
        places = [index for index, one in enumerate(result) if isinstance(one, Map) and one.get(what) == name]
        if not isinstance(change, Map):
            problems.append(change.position.problem(_not_a_change(what, name, change)))
        elif not places and not _is_complete(key, change) and _all_named(key, entries):
            problems.append(position.problem(_unknown_entry(key, name, change, entry_names(key, entries))))
        for index in places if isinstance(change, Map) else ():
            result[index] = merge_maps(cast(Map, result[index]), cast(Map, change), problems, what)
        if not places and isinstance(change, Map) and _is_complete(key, change):
            result.append(_entry(key, name, changes))
    return result


def _entry(key: str, name: str, changes: Map) -> Map:
    """Return an entry given by name as an entry of a list."""
    change, kind = cast(Map, changes[name]), LISTED[key][0]
    result = Map(change.position)
    result.put(kind, text(name, changes.key_positions[name]), changes.key_positions[name])
    return merge_maps(result, change, [], kind)


def _as_list(key: str, entries: Node, problems: list[Problem]) -> Node:
    """Return flows or loggers that are given by name as a list."""
    if not isinstance(entries, Map):
        return entries
    return _change_entries(key, Seq([], entries.position), entries, problems)


def _drop_alternatives(result: Map, over: Map, kind: str) -> None:
    """Remove the alternatives of keys that a layer sets: a flow that gets a size loses its duration."""
    alternatives = ALTERNATIVES.get(kind, ())
    if not any(key in over for key in alternatives):
        return
    for key in alternatives:
        if key not in over and key in result:
            result.overridden[key] = (result.pop(key), *result.overridden.get(key, ()))
