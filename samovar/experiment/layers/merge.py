"""Later layers over earlier ones: bases, fragments, an experiment, a profile, with every place kept.

A mapping is merged key by key, anything else is replaced. Flows and loggers may also be given as a mapping
from their names to what changes in them; a name that is not there yet is added when it says enough. What
a value hides is remembered beside it (Map.hidden), so that it can be explained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from samovar.errors import Problem
from samovar.experiment.layers.without import WITHOUT, lessened
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, Node, Seq, Text, text

DESIGN = ("factors", "exclude", "include")
INHERITED = (
    *DESIGN,
    *("path", "duration", "replicates", "traffic", "captures", "loggers", "settings", "stop"),
)
OF_A_PART = ("title", *INHERITED)
OF_A_PROFILE = ("parts", "order", "figures", "tables", "verdict", "calibrate", WITHOUT, *INHERITED)
MAIN = "main"
LISTED: Mapping[str, tuple[str, str, str]] = {
    "traffic": ("flow", "flow", "generator"),
    "loggers": ("logger", "logger", "at"),
}
"""Lists that changes may be given for by name: what an entry is, its name's key, what a new one must say."""
ALTERNATIVES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "flow": (("size",), ("duration",), ("until",)),
    "path": (("rtt",), ("delay",)),
}
"""Groups of keys of which a layer that says one takes the others away."""


def merged(base: Map, over: Map, problems: list[Problem], kind: str = "part") -> Map:
    """Return base with another mapping over it; `kind` says what the mapping is (a part, a flow, a path)."""
    result = base.copied()
    for key, value in over.items():
        own = over.hidden.get(key, ())
        was = _by_direction(base, key, value) if kind == "path" else base.get(key)
        put_over(result, key, _merged_value(key, was, value, problems), over, own)
    for key, values in over.hidden.items():
        if key not in over:
            result.hidden[key] = (*values, *result.hidden.get(key, ()))
    _drop_alternatives(result, over, kind)
    return result


def put_over(result: Map, key: str, value: Node, over: Map, hidden: tuple[Node, ...]) -> None:
    """Set a key that another layer gives, remembering what that hides."""
    was = result.get(key)
    replaced = () if was is None or value is not over[key] else (was,)  # what was merged is hidden further in
    chain = (*hidden, *replaced, *result.hidden.get(key, ()))
    if chain:
        result.hidden[key] = chain
    result.put(key, value, over.key_marks[key])


def overlaid(base: Map, layer: Map, problems: list[Problem]) -> Map:
    """Return an experiment with a layer over it; what the layer says at its top changes the parts as well."""
    for key in LISTED.keys() & layer.keys():
        _check_entries(base, key, layer[key], problems)
    top = _only(layer, [key for key in layer if key not in ("parts", WITHOUT)])
    result = merged(base, _passing(base, top), problems, "")
    parts = base.get("parts")
    if isinstance(parts, Map) and "parts" in result:
        result["parts"] = _parts_under(parts, top, problems)
    if "parts" in layer:
        result = merged(result, _only(layer, ["parts"]), problems, "")
    return result


def complete(layers: Sequence[Map], problems: list[Problem]) -> Map:
    """Return the experiment that the layers give together, with every part complete."""
    with_parts = [in_parts(layer) for layer in layers] if "parts" not in layers[0] else list(layers)
    result = with_parts[0].copied()
    for layer in with_parts[1:]:
        result = overlaid(_lessened(result, layer, problems), layer, problems)
    parts = result.get("parts")
    if isinstance(parts, Map):
        result["parts"] = complete_parts = parts.copied()
        for name, part in parts.items():
            complete_parts[name] = _complete_part(result, part, problems)
    for key in LISTED.keys() & result.keys():
        result[key] = _as_list(key, result[key], problems)
    return result


def _lessened(tree: Map, layer: Map, problems: list[Problem]) -> Map:
    """Return a tree without what a layer takes away; a base's profile may name what is gone already."""
    said: list[Problem] = []
    result = lessened(tree, layer, said)
    problems += [one for one in said if one.line == 0 or one.file == tree.mark.file]
    return result


def in_parts(tree: Map) -> Map:
    """Return a layer of an experiment without parts as one with a part for its factors."""
    result = _only(tree, [key for key in tree if key not in DESIGN])
    parts = result.get("parts", Map(tree.mark))
    own = parts.get(MAIN, Map(tree.mark)) if isinstance(parts, Map) else None
    if isinstance(own, Map) and isinstance(parts, Map):
        result.put("parts", parts.copied(), tree.key_marks.get("parts", tree.mark))
        main = merged(_only(tree, DESIGN), own, [])
        cast(Map, result["parts"]).put(MAIN, main, parts.key_marks.get(MAIN, tree.mark))
    return result


def _complete_part(tree: Map, part: Node, problems: list[Problem]) -> Node:
    if not isinstance(part, Map):
        return part
    whole = merged(_only(tree, INHERITED), part, problems)
    whole.mark = part.mark
    for key in LISTED.keys() & whole.keys():
        whole[key] = _as_list(key, whole[key], problems)
    return whole


def _parts_under(parts: Map, top: Map, problems: list[Problem]) -> Map:
    """Return the parts with a layer's top level over what they say themselves."""
    result = parts.copied()
    for name, part in parts.items():
        if isinstance(part, Map):
            own = _only(top, [key for key in INHERITED if key in part and key in top])
            result[name] = merged(part, _passing(part, own), problems)
    return result


def _passing(base: Map, over: Map) -> Map:
    """Return a layer without the changes of entries that a list of the base does not have."""
    result = over.copied()
    for key in LISTED.keys() & over.keys():
        held, changes = base.get(key), over[key]
        if isinstance(changes, Map):
            known = names_of_entries(key, held)
            kept = [name for name in changes if name in known or _says_enough(key, changes[name])]
            result[key] = _only(changes, kept)
            if not kept:
                del result[key]
    return result


def _says_enough(key: str, change: Node) -> bool:
    return isinstance(change, Map) and LISTED[key][2] in change


def names_of_entries(key: str, entries: Node | None) -> list[str]:
    """Name the entries of a list, or of the mapping that stands for one."""
    if isinstance(entries, Map):
        return list(entries)
    name = LISTED[key][1]
    own = (one.get(name) for one in entries if isinstance(one, Map)) if isinstance(entries, Seq) else ()
    return [str(one) for one in own if isinstance(one, str)]


def _is_named_throughout(key: str, entries: Node | None) -> bool:
    """Say whether every entry has its name: one that has not may be what a later layer changes."""
    if not isinstance(entries, Seq):
        return True
    return len(names_of_entries(key, entries)) == len(entries)


def _check_entries(base: Map, key: str, changes: Node, problems: list[Problem]) -> None:
    """Report changes of entries that neither the top level nor any part has."""
    parts = base.get("parts")
    holders = [base, *(parts.values() if isinstance(parts, Map) else ())]
    lists = [one.get(key) for one in holders if isinstance(one, Map)]
    known = [name for one in lists for name in names_of_entries(key, one)]
    lacking = key == "traffic" and not known  # which is told where it lacks
    if not isinstance(changes, Map) or lacking or not all(_is_named_throughout(key, one) for one in lists):
        return
    for name, change in changes.items():
        if name not in known and not _says_enough(key, change):
            problems.append(changes.key_marks[name].problem(_unknown_entry(key, name, change, known)))


def _unknown_entry(key: str, name: str, change: Node, known: Sequence[str]) -> str:
    what = LISTED[key][0]
    return unknown(what, name, known) if isinstance(change, Map) else _no_change(what, name, change)


def _no_change(what: str, name: str, change: Node) -> str:
    if name == what:
        return f"{name}: expected it in an entry of a list, [{{{what}: {change}, …}}], or what changes"
    return f"{name}: expected a mapping of what changes in the {what}"


def _only(tree: Map, keys: Sequence[str]) -> Map:
    result = Map(tree.mark)
    for key in keys:
        if key in tree:
            result.put(key, tree[key], tree.key_marks[key])
        if key in tree.hidden:
            result.hidden[key] = tree.hidden[key]
    return result


def _merged_value(key: str, base: Node | None, over: Node, problems: list[Problem]) -> Node:
    if key in LISTED and isinstance(over, Map) and isinstance(base, Seq):
        return _merged_entries(key, base, over, problems)
    if not isinstance(base, Map) or not isinstance(over, Map):
        return over
    if key in LISTED:
        return _merged_changes(key, base, over, problems)
    return _replacing(base, over) if key == "factors" else merged(base, over, problems, key)


def _replacing(base: Map, over: Map) -> Map:
    """Return base with each of the other's factors in the place of its own: levels are never mixed."""
    result, own = base.copied(), over.copied()
    for key, value in over.items():
        own[key] = _same_factor(base.get(key), value)
        put_over(result, key, own[key], own, over.hidden.get(key, ()))
    return result


def _same_factor(was: Node | None, value: Node) -> Node:
    """Return levels alone as a factor that goes on setting what it says it sets."""
    if not isinstance(was, Map) or not {"sets", "recipe"} & was.keys():
        return value
    if isinstance(value, Map) and {"levels", "sets", "recipe"} & value.keys():
        return value
    result = was.copied()
    result.mark = value.mark
    result.put("levels", value, value.mark)
    return result


def _by_direction(path: Map, key: str, over: Node) -> Node | None:
    """Return a value of the path per direction where the layer over it names directions.

    One value is that of the way down; a queue's is that of both ways where both have a rate.
    """
    was = path.get(key)
    if not isinstance(was, Text) or not isinstance(over, Map) or not over.keys() <= {"down", "up"}:
        return was
    rate = path.get("rate")
    both = key in ("aqm", "buffer") and isinstance(rate, Map) and "up" in rate
    result = Map(was.mark)
    for direction in ("down", "up") if both else ("down",):
        result.put(direction, was, path.key_marks[key])
    return result


def _merged_changes(key: str, base: Map, over: Map, problems: list[Problem]) -> Map:
    """Return changes by name with others over them."""
    result = base.copied()
    for name, change in over.items():
        was = base.get(name)
        both = isinstance(was, Map) and isinstance(change, Map)
        new = merged(cast(Map, was), cast(Map, change), problems, LISTED[key][0]) if both else change
        put_over(result, name, new, over, over.hidden.get(name, ()))
    return result


def _merged_entries(key: str, entries: Seq, changes: Map, problems: list[Problem]) -> Seq:
    what, name_key, _ = LISTED[key]
    result = Seq(list(entries), entries.mark)
    for name, change in changes.items():
        mark = changes.key_marks[name]
        places = [index for index, one in enumerate(result) if _is_named(one, name_key, name)]
        if not isinstance(change, Map):
            problems.append(change.mark.problem(_no_change(what, name, change)))
        elif not places and not _says_enough(key, change) and _is_named_throughout(key, entries):
            problems.append(mark.problem(_unknown_entry(key, name, change, names_of_entries(key, entries))))
        for index in places if isinstance(change, Map) else ():
            result[index] = merged(cast(Map, result[index]), cast(Map, change), problems, what)
        if not places and isinstance(change, Map) and _says_enough(key, change):
            result.append(_entry(key, name, changes))
    return result


def _is_named(entry: Node, key: str, name: str) -> bool:
    return isinstance(entry, Map) and entry.get(key) == name


def _entry(key: str, name: str, changes: Map) -> Map:
    """Return a named entry as one of a list."""
    change, name_key = cast(Map, changes[name]), LISTED[key][1]
    result = Map(change.mark)
    result.put(name_key, text(name, changes.key_marks[name]), changes.key_marks[name])
    return merged(result, change, [], LISTED[key][0])


def _as_list(key: str, entries: Node, problems: list[Problem]) -> Node:
    """Return a mapping that stands for a list as that list."""
    if not isinstance(entries, Map):
        return entries
    return _merged_entries(key, Seq([], entries.mark), entries, problems)


def _drop_alternatives(result: Map, over: Map, kind: str) -> None:
    """Take away what a layer's words replace: a flow that a layer gives a size has no duration of another."""
    for other in _replaced(over, kind):
        if other in result:
            result.hidden[other] = (result.pop(other), *result.hidden.get(other, ()))


def _replaced(over: Map, kind: str) -> Iterator[str]:
    """Yield the keys that a layer takes away by those it says."""
    groups = ALTERNATIVES.get(kind, ())
    said = [group for group in groups if any(key in over for key in group)]
    return (key for group in groups if said and group not in said for key in group)
