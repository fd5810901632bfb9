"""Merge layers of an experiment: base experiments, fragments, the file itself, a profile, `--set`.

Mappings are merged key by key, except settings with values by host. These settings, and all values that are
not mappings, are replaced by those of the stronger layer. A layer may change flows and loggers by name
({bulk: {size: 1GB}}), and add a flow or logger by giving all required keys. Replaced values stay beside the
new value (Map.overridden), so that `fab explain` can show them, and so that host_settings.py finds values of
hosts that the new value does not name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from samovar.errors import Problem, unknown
from samovar.experiment.keys import FLOW_ENDS, NetworkPath, PartKeys, keys_of
from samovar.experiment.yaml_tree import Map, Node, Seq, Text, node_at

DESIGN = ("factors", "exclude", "include")
INHERITED = tuple(key for key in keys_of(PartKeys) if key != "use")
PART_KEYS = ("title", *INHERITED)
PROFILE_KEYS = ("parts", "order", "figures", "tables", "verdict", "calibrate", *INHERITED)
FRAGMENT_KEYS = tuple(sorted({*PROFILE_KEYS, "expect", "profiles", "title", "use"}))
QUEUE = ("aqm", "buffer")
"""Keys of a path whose single value applies to both directions if both have a rate."""
MAIN = "main"
"""Name of the only part of an experiment without `parts`."""
LISTED: Mapping[str, tuple[str, str]] = {"traffic": ("flow", "generator"), "loggers": ("logger", "at")}
"""Lists whose entries can be changed by name: the key with the name, and a key that new entries need."""
ENTRY_KINDS = {"parts": "part", "traffic": "flow", "loggers": "logger"}
"""The word that messages use for an entry of each mapping or list."""
ALTERNATIVES: Mapping[str, tuple[str, ...]] = {"flow": FLOW_ENDS, "path": NetworkPath.EXCLUSIVE[0]}
"""Mutually exclusive keys. A layer that gives one of them removes the others from weaker layers."""


def nested_keys(key: str) -> tuple[str, ...]:
    """Split a dotted key into nested keys; names of flows, loggers, classes and settings keep their dots."""
    named = re.fullmatch(r"(path\.classes|traffic|loggers)\.(.+?)((?:\.arrivals)?\.[^.]+)", key)
    if named:
        return (*named[1].split("."), named[2], *named[3].split(".")[1:])
    first, _, rest = key.partition(".")
    if first in LISTED and rest:
        return (first, rest)
    return tuple(key.split(".")) if first in ("path", "order", "stop", "verdict") else (key,)


def nodes_at(node: Node | None, steps: Sequence[str]) -> list[Node]:
    """Return the values at nested keys in all layers, the strongest first."""
    if node is None:
        return []
    if not steps or (isinstance(node, Text) and tuple(steps) == ("down",)):  # a single value means downstream
        return [node]
    return [found for one in values_below(node, steps[0]) for found in nodes_at(one, steps[1:])]


def values_below(node: Node | None, key: str) -> list[Node]:
    """Return all values of a key in a mapping, including overridden values.

    In a list of flows, loggers or classes, the key is a name, and the values are the entries of this name.
    """
    if isinstance(node, Seq):
        maps = [one for one in node if isinstance(one, Map)]
        return [one for one in maps if key in (one.get("flow"), one.get("logger"), one.get("name"))]
    if not isinstance(node, Map):
        return []
    return [*([node[key]] if key in node else []), *node.overridden.get(key, ())]


def merge_maps(base: Map, over: Map, problems: list[Problem], kind: str = "part") -> Map:
    """Return `over` merged over the weaker `base`.

    `kind` says what the mappings are: part, flow or logger. For other mappings, `kind` is their key.
    """
    result = base.copied()
    for key, value in over.items():
        was, new = base.get(key), value
        own_kind = ENTRY_KINDS.get(kind, key)
        if kind == "factors":  # a factor's levels are replaced as a whole
            new = _with_targets(was, value)
        elif own_kind in LISTED and isinstance(was, Seq) and isinstance(value, Map):
            new = _change_entries(own_kind, was, value, problems)
        elif isinstance(value, Map) and kind != "settings":  # a weaker layer's host must not win over a role
            was = _by_direction(base, key, value) if kind == "path" else was
            new = merge_maps(was, value, problems, own_kind) if isinstance(was, Map) else value
        remembers = new is not value and kind != "factors"  # a merged mapping has its own `overridden`
        replaced = (result[key],) if key in result and not remembers else ()
        chain = (*over.overridden.get(key, ()), *replaced, *result.overridden.get(key, ()))
        if chain:
            result.overridden[key] = chain
        result.put(key, new, over.key_positions[key])
    for key, values in over.overridden.items():
        if key not in over:
            result.overridden[key] = (*values, *result.overridden.get(key, ()))
    alternatives = ALTERNATIVES.get(kind, ())
    if any(key in over for key in alternatives):  # a flow that gets a size loses its duration
        for key in alternatives:
            if key not in over and key in result:
                result.overridden[key] = (result.pop(key), *result.overridden.get(key, ()))
    return result


def _with_targets(was: Node | None, value: Node) -> Node:
    """Return a factor's new value; bare levels keep the `sets` and `at` of the earlier value."""
    if not isinstance(was, Map) or not {"sets", "at"} & was.keys():
        return value
    if isinstance(value, Map) and {"levels", "sets", "at"} & value.keys():
        return value
    result = was.copied()
    result.position = value.position
    result.put("levels", value, value.position)
    return result


def _by_direction(path: Map, key: str, over: Map) -> Node | None:
    """Return a value of the path as {down: …, up: …} if the stronger layer gives it in that form.

    A single value becomes `down`. with_upstream_queue() makes a single aqm or buffer `up` as well.
    """
    was = path.get(key)
    if not isinstance(was, Text) or not over.keys() <= {"down", "up"}:
        return was
    result = Map(was.position)
    result.put("down", was, path.key_positions[key])
    if key in QUEUE:
        result.overridden["up"] = (was,)
    return result


def with_upstream_queue(part: Map, *, varies: bool = False) -> Map:
    """Return a part whose path takes aqm and buffer upstream from weaker layers if it has a rate upstream.

    With `varies`, a path without any rate takes them too, because a factor may set a rate upstream.
    """
    path = part.get("path")
    has_rate = node_at(path, "rate", "up") is not None
    if not isinstance(path, Map) or not (has_rate or (varies and "rate" not in path)):
        return part
    result, whole = part.copied(), path.copied()
    result["path"] = whole
    for key in QUEUE:
        queue = path.get(key)
        if isinstance(queue, Map) and "up" not in queue and "up" in queue.overridden:
            whole[key] = both = queue.copied()
            up, *weaker = both.overridden.pop("up")
            both.put("up", up, path.key_positions[key])
            both.overridden["up"] = tuple(weaker)
    return result


def _change_entries(key: str, entries: Seq, changes: Map, problems: list[Problem]) -> Seq:
    """Return a list of flows or loggers with changes by name applied, and new complete entries added."""
    what = LISTED[key][0]
    result = Seq(list(entries), entries.position)
    for name, change in changes.items():
        if not isinstance(change, Map):
            message = f"{name}: must be a mapping with the keys that a {what} may have"
            problems.append(change.position.problem(f"{message}; for a list, write [{{{what}: NAME, …}}]"))
            continue
        known = False
        for index, one in enumerate(result):
            if isinstance(one, Map) and one.get(what) == name:
                result[index] = merge_maps(one, change, problems, what)
                known = True
        if not known and _is_complete(key, change):
            entry = Map(change.position)
            entry.put(what, Text(name, changes.key_positions[name]), changes.key_positions[name])
            result.append(merge_maps(entry, change, [], what))
        elif not known:
            message = unknown(what, name, entry_names(key, entries))
            problems.append(changes.key_positions[name].problem(message))
    return result


def _is_complete(key: str, change: Node) -> bool:
    """Return whether a change has the key that a new entry needs: `generator` of a flow, `at` of a logger."""
    return isinstance(change, Map) and LISTED[key][1] in change


def entry_names(key: str, entries: Node | None) -> list[str]:
    """Return the names of the flows or loggers in a list, or in a mapping of changes."""
    if isinstance(entries, Map):
        return list(entries)
    name = LISTED[key][0]
    own = (one.get(name) for one in entries if isinstance(one, Map)) if isinstance(entries, Seq) else ()
    return [str(one) for one in own if isinstance(one, str)]


def merge_layer(base: Map, layer: Map, problems: list[Problem]) -> Map:
    """Return `base` with `layer` merged over it. Top-level keys of the layer also change the parts."""
    parts = base.get("parts")
    holders = [base, *(parts.values() if isinstance(parts, Map) else ())]
    for key in LISTED.keys() & layer.keys():
        _check_changes(key, layer[key], [one.get(key) for one in holders if isinstance(one, Map)], problems)
    top = layer.only([key for key in layer if key != "parts"])
    result = merge_maps(base, _applicable(base, top), problems, "")
    if isinstance(parts, Map) and "parts" in result:
        result["parts"] = changed = parts.copied()
        for name, part in parts.items():
            if isinstance(part, Map):
                own = top.only([key for key in INHERITED if key in part])
                changed[name] = merge_maps(part, _applicable(part, own), problems)
    return merge_maps(result, layer.only(["parts"]), problems, "")


def _check_changes(key: str, changes: Node, lists: Sequence[Node | None], problems: list[Problem]) -> None:
    """Report changes of flows and loggers that neither the top level nor any part has."""
    known = [name for one in lists for name in entry_names(key, one)]
    if not isinstance(changes, Map) or (key == "traffic" and not known):  # the checks report these
        return
    for name, change in changes.items():
        if name not in known and isinstance(change, Map) and not _is_complete(key, change):
            problems.append(changes.key_positions[name].problem(unknown(LISTED[key][0], name, known)))


def _applicable(base: Map, over: Map) -> Map:
    """Return a layer without its changes to flows and loggers that the base does not have."""
    result = over.copied()
    for key in LISTED.keys() & over.keys():
        changes, known = over[key], entry_names(key, base.get(key))
        if isinstance(changes, Map):
            invalid = [name for name, change in changes.items() if not isinstance(change, Map)]
            known += invalid  # to be reported where the changes are made
            kept = [name for name in changes if name in known or _is_complete(key, changes[name])]
            result[key] = changes.only(kept)
            if not kept:
                del result[key]
    return result


def merge_layers(layers: Sequence[Map], problems: list[Problem]) -> Map:
    """Merge layers (the weakest first), and copy the values of the top level into every part.

    An experiment without parts gets the part `main`.
    """
    result = layers[0].copied()
    if "parts" not in result:
        whole = Map(result.position)
        whole.put(MAIN, Map(result.position), result.position)
        result.put("parts", whole, result.position)
    for layer in layers[1:]:
        result = merge_layer(result, layer, problems)
    parts = result.get("parts")
    if isinstance(parts, Map):
        result["parts"] = complete_parts = parts.copied()
        inherited = result.only(INHERITED)
        for name, part in parts.items():
            if isinstance(part, Map):
                filled = _with_lists(merge_maps(inherited, part, problems), problems)
                filled = with_upstream_queue(filled, varies=True)
                filled.position = part.position
                complete_parts[name] = filled
    return _with_lists(result, problems)


def _with_lists(tree: Map, problems: list[Problem]) -> Map:
    """Return an experiment or part in which flows and loggers are lists instead of mappings by name."""
    result = tree.copied()
    for key in LISTED.keys() & tree.keys():
        entries = tree[key]
        if isinstance(entries, Map):
            result[key] = _change_entries(key, Seq([], entries.position), entries, problems)
    return result
