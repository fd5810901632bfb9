"""Check the traffic of a part: ends, labels, ports, durations, windows, captures and loggers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from samovar.experiment.checks.check_context import PartInContext, PartValue, setters_of
from samovar.experiment.checks.validate import Loc
from samovar.experiment.keys import FLOW_ENDS, Capture, Flow, Logger, is_plural, members_of, places_of
from samovar.experiment.nearest import unknown
from samovar.experiment.shortest_path import shortest_path
from samovar.units import format_duration

MOST_PAIRS = 100  # pairs of hosts of one flow that are checked; more only repeat the message
LAST_PORT = 65535
TOLERANCE_S = 1e-6


def check_traffic(part: PartInContext) -> None:
    """Report what is wrong with the flows, captures and loggers of a part."""
    traffic = part.model.traffic
    if not traffic and part.intact("traffic"):
        part.report(("traffic",), "traffic is empty; it needs at least one flow")
    counts_vary = {f"traffic.{flow.label}.count" for flow in traffic} & part.varied
    if traffic and not counts_vary and all(flow.count == 0 for flow in traffic):
        part.report(("traffic", 0, "count"), "count: no flow is left; at least one must remain")
    for index, flow in enumerate(traffic):
        at = ("traffic", index)
        _check_ends(part, at, flow)
        _check_count(part, at, flow)
        _check_end(part, at, flow)
        _check_durations(part, flow)
    _check_labels_and_ports(part)
    _check_windows(part)
    _check_stop(part)
    _check_recorders(part, "captures", part.model.captures)
    _check_recorders(part, "loggers", part.model.loggers)


def _check_ends(part: PartInContext, where: Loc, flow: Flow) -> None:
    """Report ends that are one host or not connected: as written, and by levels if one factor sets them."""
    for message in _path_errors(part, flow):
        part.report((*where, "to"), message)
    fields = {f"traffic.{flow.label}.from": "from_end", f"traffic.{flow.label}.to": "to_end"}
    setters = setters_of(part.model, *fields)
    for level in setters[0].levels if len(setters) == 1 else ():
        ends = {field: str(level.texts[key]) for key, field in fields.items() if key in level.texts}
        for message in _path_errors(part, flow.model_copy(update=ends)) if ends else ():
            part.report(("factors", setters[0].name), f"{level.label}: {message}", key=True)


def _path_errors(part: PartInContext, flow: Flow) -> Iterator[str]:
    """Yield a message for pairs of ends that are one host, and one for pairs that no links connect."""
    testbed = part.testbed
    if testbed is None or not {flow.from_end, flow.to_end} <= set(part.end_names or ()):
        return
    pairs = {(one.from_host, one.to_host) for one in islice(members_of(flow, testbed), MOST_PAIRS)}
    loops = sorted(start for start, end in pairs if start == end)
    apart = sorted(one for one in pairs if one[0] != one[1] and shortest_path(testbed, *one) is None)
    if loops:
        yield f"flow '{flow.label}' goes from {_first(loops)} to itself; it needs two hosts"
    if apart:
        pair = _first([f"{start} to {end}" for start, end in apart])
        yield f"no links lead from {pair}; links and routers must connect the hosts"


def _first(names: Sequence[str]) -> str:
    """Return the first of several names, and how many more there are."""
    return names[0] + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")


def _check_count(part: PartInContext, where: Loc, flow: Flow) -> None:
    testbed, varies = part.testbed, f"traffic.{flow.label}.count" in part.varied
    plural = testbed is not None and any(is_plural(testbed, end) for end in (flow.from_end, flow.to_end))
    if flow.every_s and flow.count is None and not plural and not varies:
        message = f"flow '{flow.label}' is one flow; add count, or remove every"
        part.report((*where, "every"), message, key=True)
    if flow.arrivals is not None and not plural and varies:
        message = f"flow '{flow.label}' has arrivals; its count cannot be a factor"
        part.report((*where, "arrivals"), message, key=True)


def _check_end(part: PartInContext, where: Loc, flow: Flow) -> None:
    """Report a flow that never ends, or whose `until` leads back to the flow itself."""
    cycle = _until_cycle(part, flow)
    if cycle and flow.label == min(cycle):
        message = f"the end of flow '{flow.label}' depends on itself ({' -> '.join((*cycle, cycle[0]))})"
        part.report((*where, "until"), f"{message}; use size or duration instead")
    stops = any(map(part.values_of, ("stop.after", "stop.when", "duration")))
    if not stops and not _has_end(part, flow) and part.context.checked.intact():
        message = f"flow '{flow.label}' never ends; add size or duration here, or duration at the top"
        part.report(where, message)


def _has_end(part: PartInContext, flow: Flow) -> bool:
    """Return whether a flow has an end of its own, by its keys or by a level."""
    return any(part.values_of(f"traffic.{flow.label}.{key}") for key in FLOW_ENDS)


def _until_cycle(part: PartInContext, flow: Flow) -> Sequence[str]:
    """Return the labels of a chain of `until` that leads back to a flow, or nothing."""
    chain = [flow.label]
    while flow.until is not None and flow.until in part.flows:
        flow = part.flows[flow.until]
        if flow.label == chain[0]:
            return chain
        if flow.label in chain:
            return ()
        chain.append(flow.label)
    return ()


def _check_durations(part: PartInContext, flow: Flow) -> None:
    """Report durations that a generator cannot keep; formulas are checked when they are evaluated."""
    owner, system = f"traffic.{flow.label}", next(iter(part.systems_of(f"traffic.{flow.label}")), "")
    durations: Sequence[PartValue] = part.values_of(f"{owner}.duration")
    if not _has_end(part, flow):
        durations = part.values_of("duration")
    for one in durations:
        for name in part.texts_of(f"{owner}.generator", one.level):
            known = name in part.catalogue.names("generator", system)
            step_s = part.catalogue.duration_step_s("generator", name, system) if known else None
            if step_s and isinstance(one.value, int | float) and not is_whole(one.value, step_s):
                step, next_s = format_duration(step_s), -(-one.value // step_s) * step_s
                message = (
                    f"{format_duration(one.value)} of flow '{flow.label}': {name} counts in steps of {step}; "
                    f"use {format_duration(next_s)}, or another multiple of {step}"
                )
                part.report(one.where, message)
                break


def is_whole(duration_s: float, step_s: float) -> bool:
    """Return whether a duration is a whole number of steps, at least one."""
    steps = round(duration_s / step_s)
    return steps > 0 and abs(duration_s - steps * step_s) < TOLERANCE_S


def _check_labels_and_ports(part: PartInContext) -> None:
    """Report labels and ports that flows of two entries have, and ports beyond the last."""
    labels: dict[str, int] = {}
    ports: dict[tuple[str, int], int] = {}
    for index, flow in enumerate(part.model.traffic):
        at, members = ("traffic", index), part.members_of(flow)
        for label in (flow.label, *(member.label for member in members)):
            if labels.setdefault(label, index) != index:
                message = f"flow '{flow.label}' has the label '{label}' of another flow; rename one"
                part.report((*at, "flow"), message)
                break
        for member in members:
            owner = ports.setdefault((member.to_host, member.port), index) if member.port else index
            if owner != index:
                other = part.model.traffic[owner].label
                message = f"port {member.port} at {member.to_host} is used by flow '{other}'; choose another"
                part.report((*at, "port"), message)
                break
        if members and members[-1].port and members[-1].port > LAST_PORT:
            ends = f"the ports of {len(members)} flows from {flow.port} end at {members[-1].port}"
            part.report((*at, "port"), f"{ends}; the last port is {LAST_PORT}")


def _check_windows(part: PartInContext) -> None:
    """Report flows between the same hosts with different windows: a window is set per peer, not per flow."""
    seen: dict[tuple[str, str], int] = {}
    reported: set[int] = set()
    for index, flow in enumerate(part.model.traffic):
        for member in part.members_of(flow):
            first_index = seen.setdefault((member.from_host, member.to_host), index)
            first = part.model.traffic[first_index]
            at, other = (index, first) if flow.rwnd_bytes is not None else (first_index, flow)
            varies = part.varied & {f"traffic.{first.label}.rwnd", f"traffic.{flow.label}.rwnd"}
            if at in reported or varies or first.rwnd_bytes == flow.rwnd_bytes:
                continue  # the plan checks which levels meet
            reported.add(at)
            has = "no rwnd" if other.rwnd_bytes is None else "another rwnd"
            message = f"flow '{other.label}' from {member.from_host} to {member.to_host} has {has}"
            message += "; both need the same, as a window is set per peer"
            part.report(("traffic", at, "rwnd"), message)


def _check_stop(part: PartInContext) -> None:
    flow = part.flows.get(part.model.stop.when or "") if part.model.stop else None
    if flow is not None and not part.values_of("duration") and not _has_end(part, flow):
        message = f"flow '{flow.label}' has no end that could end the trial; give it size or duration"
        part.report(("stop", "when"), message)


def _check_recorders(part: PartInContext, key: str, recorders: Sequence[Capture | Logger]) -> None:
    """Report captures and loggers at hosts or interfaces without traffic, and those that repeat another."""
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(recorders):
        where = (key, index)
        what = one.logger if isinstance(one, Logger) else one.interface or ""
        hosts = places_of(part.testbed, one.at) if part.testbed else ()
        again = [f"{what} at {host}" if what else host for host in hosts if (host, what) in seen]
        seen |= {(host, what) for host in hosts}
        if again:
            part.report(where, f"{_first(again)} is recorded already; remove one")
        for host in hosts:
            interfaces = part.testbed.hosts[host].interfaces if part.testbed else {}
            if not interfaces:
                message = f"host {host} has no testbed interface; there is no traffic to record"
                part.report((*where, "at"), message)
            elif one.interface is not None and one.interface not in interfaces:
                message = unknown(f"interface of {host}", one.interface, interfaces)
                part.report((*where, "interface"), message)
