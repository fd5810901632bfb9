"""What makes flows impossible together: labels, ports, ends that never come, windows that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samovar.experiment.checks.check_context import Context, varied
from samovar.experiment.checks.validate import Loc
from samovar.experiment.keys import Flow, Member, Part, members_of, number_of
from samovar.experiment.nearest import unknown

LAST_PORT = 65535


def check_flows(context: Context, name: str, part: Part) -> None:
    """Report what cannot be among the flows of a part taken together."""
    where: Loc = ("parts", name)
    _check_labels(context, where, part)
    _check_ports(context, where, part)
    _check_windows(context, where, part)
    _check_ends(context, where, part)
    _check_stop(context, where, part)


def _check_labels(context: Context, where: Loc, part: Part) -> None:
    seen: dict[str, str] = {}
    for index, flow in enumerate(part.traffic):
        at = (*where, "traffic", index, "flow")
        if flow.label in seen and seen[flow.label] == flow.label:
            message = f"flow '{flow.label}' stands here again; expected a label of its own"
            context.checked.report(at, message)
            continue
        for label in {flow.label, *(member.label for member in _members(context, part, flow))}:
            owner = seen.setdefault(label, flow.label)
            if owner != flow.label:
                message = (
                    f"flow '{flow.label}' has the label '{label}' of a flow of '{owner}'; expected another"
                )
                context.checked.report(at, message)


def _check_ports(context: Context, where: Loc, part: Part) -> None:
    seen: dict[tuple[str, int], str] = {}
    for index, flow in enumerate(part.traffic):
        at = (*where, "traffic", index, "port")
        taken: list[tuple[str, int, str]] = []
        for host, port in _ports(context, part, flow) if flow.port is not None else ():
            first = seen.setdefault((host, port), flow.label)
            taken += [(host, port, first)] if first != flow.label else []
        if taken:
            host, port, first = taken[0]
            message = f"port {port} at {host} is taken by flow '{first}'; expected another"
            context.checked.report(at, message)
        last = (flow.port or 0) + (_most(context, part, flow) or 1) - 1
        if last > LAST_PORT:
            message = f"the ports of {last + 1 - (flow.port or 0)} flows from {flow.port} end at {last}"
            context.checked.report(at, f"{message}; expected {LAST_PORT} at most")


def _ports(context: Context, part: Part, flow: Flow) -> Iterator[tuple[str, int]]:
    members = list(_members(context, part, flow))
    if not members:
        yield flow.to_end, flow.port or 0
    for member in members:
        yield member.to_host, member.port or 0


def _members(context: Context, part: Part, flow: Flow) -> Iterator[Member]:
    if context.testbed is not None:
        yield from members_of(flow, context.testbed, _most(context, part, flow))


def _most(context: Context, part: Part, flow: Flow) -> int | None:
    """Return how many flows a line means at most, its levels of count among them."""
    targets = [f"traffic.{flow.label}.{key}" for key in ("count", "arrivals.count")]
    counts = [
        count
        for factor in part.factors.values()
        for level in factor.levels
        for target in targets
        if isinstance(count := level.values.get(target), int)
    ]
    written = number_of(flow, context.testbed) if context.testbed else flow.count
    return max([*counts, *([] if written is None else [written])], default=None)


def _check_windows(context: Context, where: Loc, part: Part) -> None:
    """Report flows between the same hosts with different windows: a window is set per peer, not per flow."""
    seen: dict[tuple[str, str], int] = {}
    reported: set[int] = set()
    for index, flow in enumerate(part.traffic):
        for member in _members(context, part, flow):
            first = seen.setdefault((member.from_host, member.to_host), index)
            at = index if flow.rwnd_bytes is not None else first
            if at in reported or not _differ(part, part.traffic[first], flow):
                continue
            reported.add(at)
            other = part.traffic[first if at == index else index]
            has = "no rwnd" if other.rwnd_bytes is None else "another rwnd"
            message = f"flow '{other.label}' from {member.from_host} to {member.to_host} has {has}"
            message += "; expected the same, as a window is set for a peer"
            context.checked.report((*where, "traffic", at, "rwnd"), message)


def _differ(part: Part, one: Flow, other: Flow) -> bool:
    levels = varied(part)
    if any(f"traffic.{flow.label}.rwnd" in levels for flow in (one, other)):
        return False  # the plan tells which levels meet
    return one.rwnd_bytes != other.rwnd_bytes


def _check_ends(context: Context, where: Loc, part: Part) -> None:
    by_label = flows_by_label(context, part)
    for index, flow in enumerate(part.traffic):
        at = (*where, "traffic", index)
        if flow.until is not None and flow.until not in by_label:
            context.checked.report((*at, "until"), unknown("flow", flow.until, by_label))
        way = _way_back(flow, by_label)
        if way and flow.label == min(way):
            message = f"flow '{flow.label}' ends when it ends itself ({' -> '.join((*way, way[0]))})"
            context.checked.report((*at, "until"), f"{message}; expected a flow with an end of its own")
        if not ends(part, flow) and context.checked.intact():
            message = (
                f"flow '{flow.label}' never ends; expected size or duration here, or duration at the top"
            )
            context.checked.report(at, message)


def flows_by_label(context: Context, part: Part) -> dict[str, Flow]:
    """Return the lines of traffic by the labels that they have: their own, and those of counted flows."""
    counted = {one.label: flow for flow in part.traffic for one in _members(context, part, flow)}
    return counted | {flow.label: flow for flow in part.traffic}


def ends(part: Part, flow: Flow) -> bool:
    """Say whether a flow ends somehow."""
    if part.stop is not None or {"stop.after", "stop.when"} & varied(part) or own_end(part, flow):
        return True
    return part.duration_s is not None or "duration" in varied(part)


def own_end(part: Part, flow: Flow) -> bool:
    """Say whether a flow has an end that its line or a level gives it."""
    own = (flow.size_bytes, flow.duration_s, flow.until)
    targets = {f"traffic.{flow.label}.{key}" for key in ("size", "duration", "until")}
    return any(one is not None for one in own) or bool(targets & varied(part))


def _way_back(flow: Flow, by_label: dict[str, Flow]) -> Sequence[str]:
    """Return the labels of a chain of untils that leads back to a flow, or nothing."""
    way = [flow.label]
    while flow.until is not None and flow.until in by_label:
        flow = by_label[flow.until]
        if flow.label == way[0]:
            return way
        if flow.label in way:
            return ()
        way.append(flow.label)
    return ()


def _check_stop(context: Context, where: Loc, part: Part) -> None:
    stop = part.stop
    if stop is None or stop.when is None:
        return
    at, labels = (*where, "stop", "when"), flows_by_label(context, part)
    if stop.when not in labels:
        context.checked.report(at, unknown("flow", stop.when, labels))
        return
    timed = part.duration_s is not None or "duration" in varied(part)
    if not timed and not own_end(part, labels[stop.when]):
        message = f"flow '{stop.when}' has no end that could end the trial; expected size or duration there"
        context.checked.report(at, message)
