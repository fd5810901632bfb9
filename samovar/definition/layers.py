"""Later layers over earlier ones: an experiment, its parts, a profile, merged with every place kept.

A mapping is merged key by key, anything else is replaced. Traffic may also be given as a mapping from
a flow's label to what changes in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from samovar.definition.nearest import unknown
from samovar.definition.yamltext import Map, Node, Seq, text
from samovar.errors import Problem

INHERITED = ("path", "duration", "replicates", "traffic", "captures", "loggers")
OF_A_PART = ("title", "factors", *INHERITED)
OF_A_PROFILE = ("parts", "factors", "order", "figures", "tables", *INHERITED)
MAIN = "main"
EXPECTED_CHANGE = "expected a mapping of what changes in the flow"


def merged(base: Map, over: Map, problems: list[Problem]) -> Map:
    """Return base with another mapping over it."""
    result = base.copied()
    for key, value in over.items():
        result.put(key, _merged_value(key, base.get(key), value, problems), over.key_marks[key])
    _drop_alternative(result, over)
    return result


def complete(layers: Sequence[Map], problems: list[Problem]) -> Map:
    """Return the experiment that the layers give together, with every part complete.

    The layers are the experiment as written and, over it, a profile; within each, a part stands over
    the top level.
    """
    result = layers[0].copied()
    for layer in layers[1:]:
        result = _under(result, layer, (*INHERITED, "order", "figures", "tables"))
    names = _part_names(layers[0])
    if "parts" not in layers[0]:
        result.put("parts", _with_main(layers, problems), result.mark)
    elif names and isinstance(layers[0]["parts"], Map):
        parts = layers[0]["parts"].copied()
        for name in names:
            parts[name] = _part(layers, name, problems)
        result["parts"] = parts
    return result


def checked_profile(base: Map, profile: Map, problems: list[Problem]) -> Map:
    """Return the profile without what cannot be meant, reporting that."""
    result = profile.copied()
    for key in [key for key in result if key not in OF_A_PROFILE]:
        problems.append(profile.key_marks[key].problem(unknown("key of a profile", key, OF_A_PROFILE)))
        del result[key]
    if "factors" in result and _part_names(base):
        message = "factors of a profile stand in its parts; expected parts: {...: {factors: ...}}"
        problems.append(profile.key_marks["factors"].problem(message))
        del result["factors"]
    if isinstance(result.get("traffic"), Map):
        _check_flows(base, cast(Map, result["traffic"]), problems)
    if "parts" in result:
        result["parts"] = _known_parts(base, result["parts"], problems)
    return result


def _check_flows(base: Map, changes: Map, problems: list[Problem]) -> None:
    """Report changes of flows that neither the top level nor any part has."""
    parts = base.get("parts")
    holders = [base, *(parts.values() if isinstance(parts, Map) else ())]
    lists = [holder.get("traffic") for holder in holders if isinstance(holder, Map)]
    flows = [flow for one in lists if isinstance(one, Seq) for flow in one if isinstance(flow, Map)]
    labels = [str(flow["flow"]) for flow in flows if "flow" in flow]
    for label, change in changes.items():
        if label not in labels:
            problems.append(changes.key_marks[label].problem(unknown("flow", label, labels)))
        elif not isinstance(change, Map):
            problems.append(change.mark.problem(f"{label}: {EXPECTED_CHANGE}"))


def _known_parts(base: Map, parts: Node, problems: list[Problem]) -> Map:
    names = _part_names(base) or [MAIN]
    kept = Map(parts.mark)
    if not isinstance(parts, Map):
        problems.append(parts.mark.problem(f"parts: expected a mapping with the keys {', '.join(names)}"))
        return kept
    for name, part in parts.items():
        if name not in names:
            problems.append(parts.key_marks[name].problem(unknown("part", name, names)))
        elif not isinstance(part, Map):
            message = f"{name}: expected a mapping with the keys {', '.join(OF_A_PART)}"
            problems.append(part.mark.problem(message))
        else:
            kept.put(name, part, parts.key_marks[name])
    return kept


def _part_names(tree: Map) -> list[str]:
    parts = tree.get("parts")
    return list(parts) if isinstance(parts, Map) else ["?"] if parts is not None else []


def _with_main(layers: Sequence[Map], problems: list[Problem]) -> Map:
    """Return the parts of an experiment that names none: one, of the top-level factors."""
    main = cast(Map, _part(layers, MAIN, problems))
    for layer in layers:
        main = merged(main, _only(layer, ("factors",)), problems)
    for layer in layers[1:]:
        own = layer.get("parts")
        part = own.get(MAIN) if isinstance(own, Map) else None
        main = merged(main, part, problems) if isinstance(part, Map) else main
    parts = Map(layers[0].mark)
    parts.put(MAIN, main, layers[0].mark)
    return parts


def _part(layers: Sequence[Map], name: str, problems: list[Problem]) -> Node:
    part = Map(layers[0].mark)
    for layer in layers:
        part = _under(part, layer, INHERITED)
        parts = layer.get("parts")
        own = parts.get(name) if isinstance(parts, Map) else None
        if own is not None and not isinstance(own, Map):
            return own
        if isinstance(own, Map):
            part = merged(part, own, problems)
            part.mark = own.mark if layer is layers[0] else part.mark
    return part


def _under(base: Map, layer: Map, keys: Sequence[str]) -> Map:
    """Return base with a layer's top level over it; changes of flows that it does not have pass it by."""
    over = _only(layer, keys)
    if isinstance(over.get("traffic"), Map) and isinstance(base.get("traffic"), Seq):
        over = over.copied()
        over["traffic"] = _merged_flows(cast(Seq, base["traffic"]), cast(Map, over["traffic"]), [])
    elif isinstance(over.get("traffic"), Map) and base:
        over.pop("traffic")
    return merged(base, over, [])


def _only(tree: Map, keys: Sequence[str]) -> Map:
    result = Map(tree.mark)
    for key in keys:
        if key in tree:
            result.put(key, tree[key], tree.key_marks[key])
    return result


def _merged_value(key: str, base: Node | None, over: Node, problems: list[Problem]) -> Node:
    if isinstance(base, Map) and isinstance(over, Map):
        return merged(base, over, problems)
    if key == "traffic" and isinstance(base, Seq) and isinstance(over, Map):
        return _merged_flows(base, over, problems)
    return over


def _merged_flows(flows: Seq, changes: Map, problems: list[Problem]) -> Seq:
    labels = [flow.get("flow") if isinstance(flow, Map) else None for flow in flows]
    result = Seq(list(flows), flows.mark)
    for label, change in changes.items():
        mark = changes.key_marks[label]
        if text(label, mark) not in labels:
            problems.append(mark.problem(unknown("flow", label, (str(one) for one in labels if one))))
        elif not isinstance(change, Map):
            problems.append(change.mark.problem(f"{label}: {EXPECTED_CHANGE}"))
        else:
            index = labels.index(text(label, mark))
            flow = flows[index]
            result[index] = merged(flow, change, problems) if isinstance(flow, Map) else flow
    return result


def _drop_alternative(result: Map, over: Map) -> None:
    """A flow ends by size or by duration: a layer that says one takes the other away."""
    if "flow" not in result:
        return
    for key, other in (("size", "duration"), ("duration", "size")):
        if key in over and other not in over:
            result.pop(other, None)
