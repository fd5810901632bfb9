"""Warnings of a plan: it can run, but may not show what it is meant to.

Each warning is given once for a part, with the number of treatments that it applies to and one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

from samovar.experiment import Experiment, Testbed, shortest_path
from samovar.experiment.metric_needs import NEEDS, Trace
from samovar.experiment.metrics import METRICS
from samovar.experiment.outputs import KINDS, Exhibits
from samovar.plan.cost import direction_of, rate_limit_bps
from samovar.plan.model import DirectionPlan, FlowPlan, HostPlan, PathPlan, Resolved, RunPlan
from samovar.plan.placement import directions_through
from samovar.plan.trials import Group, Treatments, Trials, View
from samovar.units import (
    ETHERNET_MTU_BYTES,
    UnitError,
    format_bytes,
    format_duration,
    format_rate,
    parse_size,
)

FEWEST_REPLICATES = 3
FOR_AN_INTERVAL = 6
"""Order statistics of fewer values contain the median with less than 95 %: 1 - 2 (1/2)^5 = 0.94."""
FEWEST_RTTS = 20
LEAST_MTU6_BYTES = 1280  # RFC 8200, section 5
LARGEST_WINDOW_BYTES = 1_073_725_440  # 65535 << 14, RFC 7323, section 2.3
ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES = 14, 20, 40
TCP_BYTES, LARGEST_TCP_BYTES = 20, 60  # without options, and with the largest data offset, RFC 9293
DROP_TAIL = ("pfifo", "bfifo")
"""Queues that never mark packets; without marks DCTCP behaves like Reno (RFC 8257, sections 3.3 and 3.4)."""
NETEM_PACKETS = 1000  # the default limit of netem's queue, tc-netem(8)
SENDER_TCP_LOGGERS = ("tcp-info", "siftr", "tcp-probe")


def warnings_of(
    experiment: Experiment, testbed: Testbed, trials: Trials, exhibits: Exhibits
) -> tuple[str, ...]:
    """Return the warnings of a whole plan, each once, in a stable order: by part, then by kind."""
    treatments = {part.part: part for part in trials.parts}
    beside = _beside_bottleneck(testbed, trials)
    found = [_run_check(check, trials) for check in CHECKS]
    warnings: list[str] = []
    for name, part in experiment.parts.items():
        warnings += _design_warnings(name, part.replicates, experiment.order.kind, len(treatments[name]))
        warnings += _level_warnings(treatments[name])
        warnings += beside.get(name, ())
        warnings += [texts[name] for texts in found if name in texts]
    for metric in (line.metric for line in experiment.expect):
        if not METRICS[metric].written:
            warnings.append(f"expect: no analysis computes {metric} yet; the scorecard will report no data")
    return tuple(dict.fromkeys((*warnings, *_unrecorded(experiment, trials, exhibits))))


def _design_warnings(name: str, replicates: int, order: str, treatments: int) -> Iterator[str]:
    amount = "1 replicate" if replicates == 1 else f"{replicates} replicates"
    interval = f"a 95 % interval of the median needs {FOR_AN_INTERVAL}"
    if replicates < FEWEST_REPLICATES:
        yield f"{name}: {amount}; a range needs {FEWEST_REPLICATES}, {interval}"
    elif replicates < FOR_AN_INTERVAL:
        yield f"{name}: {amount} give a range; {interval}"
    if order == "sequential" and treatments > 1:
        yield f"{name}: order sequential; drift over time looks like an effect of the slowest factor"


def _level_warnings(part: Treatments) -> Iterator[str]:
    """Yield the levels that no treatment has, and the factors whose levels always change together."""
    if len(part) == prod(map(len, part.factors.values())):
        return  # every combination is present
    columns = dict(zip(part.factors, zip(*part.levels, strict=True), strict=True))
    present = {name: set(column) for name, column in columns.items()}
    for name, labels in part.factors.items():
        missing = [label for number, label in enumerate(labels) if number not in present[name]]
        if missing:
            yield f"{part.part}: no treatment has {name} {', '.join(missing)}"
    varying = [name for name in part.factors if len(present[name]) > 1]
    for one, other in combinations(varying, 2):
        pairs = set(zip(columns[one], columns[other], strict=True))
        if len(pairs) == len(present[one]) == len(present[other]):
            yield f"{part.part}: {one} and {other} vary together, so their effects cannot be separated"


def _beside_bottleneck(testbed: Testbed, trials: Trials) -> Mapping[str, Collection[str]]:
    """Return the warnings of flows that bypass the bottleneck's queue although a path is set, by part."""
    found: dict[str, dict[str, None]] = {}
    known: dict[tuple[str, str], frozenset[str]] = {}
    for group in trials.groups({"path": _shaped, "flows": None}):
        for flow in group.resolved.flows if group.resolved.path else ():
            ends = (flow.from_host, flow.to_host)
            if ends not in known:
                known[ends] = directions_through(testbed, shortest_path(testbed, *ends) or ())
            if not known[ends] & _shaped(group.resolved.path):
                label = flow.group or flow.label
                warning = f"{group.part}: flow '{label}' does not pass the bottleneck's queue"
                found.setdefault(group.part, {})[warning] = None
    return found


def _shaped(path: PathPlan | None) -> frozenset[str]:
    """Return the directions of a path that have a rate, so that packets queue there."""
    directions = (("down", path.down), ("up", path.up)) if path is not None else ()
    return frozenset(name for name, direction in directions if direction.rate_bps is not None)


# What the scorecard, figures and tables need, compared with what the plan records


class FlowTraces(NamedTuple):
    """What is recorded of a flow: captures at its ends; loggers at its sender, its receiver, the router."""

    sender_capture: bool
    receiver_capture: bool
    sender: Collection[str]
    receiver: Collection[str]
    router: Collection[str]


RECORDED: Mapping[Trace, Callable[[FlowTraces], bool]] = {
    Trace.EITHER: lambda traces: traces.sender_capture or traces.receiver_capture,
    Trace.NEAR: lambda traces: traces.sender_capture,
    Trace.BOTH: lambda traces: traces.sender_capture and traces.receiver_capture,
    Trace.SENDER: lambda traces: any(logger in traces.sender for logger in SENDER_TCP_LOGGERS),
    Trace.QUEUE: lambda traces: "queue" in traces.router,
    Trace.BEACONS: lambda traces: "beacons" in traces.sender and "beacons" in traces.receiver,
    Trace.PAUSES: lambda traces: traces.sender_capture or "pause-frames" in traces.sender,
    Trace.DROPS: lambda traces: "nic" in traces.sender or "siftr" in traces.sender,
    Trace.CARD: lambda traces: "nic" in traces.sender,
}
"""Whether a flow's traces include what a metric needs."""


def _unrecorded(experiment: Experiment, trials: Trials, exhibits: Exhibits) -> Iterator[str]:
    """Yield the expectations, figures and tables for which no trial records what they need."""
    traces = _traces_by_part(trials)
    for line in experiment.expect:
        missing = _missing([(line.metric,)], _of_parts(traces, [line.part] if line.part else ()))
        if missing:
            yield f"expect: {line.metric} {_needs(missing)}; the scorecard will report no data"
    for kind, entries in zip(KINDS, (experiment.figures, experiment.tables), strict=True):
        for entry in entries:
            missing = _missing(
                _metrics_of(entry, kind, exhibits), _of_parts(traces, _listed(entry.get("part", ())))
            )
            if missing:
                yield f"{kind} {entry[kind]} {_needs(missing)}; the report will say so in its place"


def _needs(missing: Iterable[Trace]) -> str:
    return f"needs {' and '.join(trace.value for trace in missing)}, which no trial records"


def _metrics_of(entry: Mapping[str, Any], kind: str, exhibits: Exhibits) -> Sequence[Sequence[str]]:
    """Return the groups of metrics that a figure or table shows; it needs one metric of each group."""
    exhibit = exhibits.get(kind, {}).get(str(entry[kind]))
    if exhibit is None or exhibit.shows:
        return exhibit.shows if exhibit else []
    keys = [key for key in ("metric", "metrics") if key in exhibit.options and key in entry]
    return [(metric,) for key in keys for metric in _listed(entry[key])]


def _listed(value: Any) -> Sequence[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def _of_parts(traces: Mapping[str, Collection[FlowTraces]], parts: Collection[str]) -> list[FlowTraces]:
    return [one for name, flows in traces.items() if not parts or name in parts for one in flows]


def _missing(groups: Sequence[Sequence[str]], flows: Collection[FlowTraces]) -> list[Trace]:
    """Return the traces that are missing for the first of several groups of metrics.

    Nothing is missing if some flow has all traces for any of the groups.
    """
    needs = [[trace for metric in group for trace in NEEDS.get(metric, ())] for group in groups]
    met = any(all(RECORDED[trace](flow) for trace in need) for need in needs for flow in flows)
    if not flows or not needs or met:
        return []
    first = list(dict.fromkeys(needs[0]))
    return [trace for trace in first if not any(RECORDED[trace](flow) for flow in flows)] or first


def _traces_by_part(trials: Trials) -> Mapping[str, Collection[FlowTraces]]:
    view: View = {
        "path": lambda path: path and path.router,
        "flows": lambda flows: tuple((flow.from_host, flow.to_host) for flow in flows),
        "captures": lambda captures: tuple(one.host for one in captures),
        "loggers": lambda loggers: tuple((one.logger, one.host) for one in loggers),
    }
    found: dict[str, set[FlowTraces]] = {}
    for group in trials.groups(view):
        found.setdefault(group.part, set()).update(_flow_traces(group.resolved))
    return found


def _flow_traces(resolved: Resolved) -> Iterator[FlowTraces]:
    captured = {capture.host for capture in resolved.captures}
    loggers: dict[str, frozenset[str]] = {}
    for one in resolved.loggers:
        loggers[one.host] = loggers.get(one.host, frozenset()) | {one.logger}
    router = loggers.get(resolved.path.router, frozenset()) if resolved.path else frozenset[str]()
    for sender, receiver in {(flow.from_host, flow.to_host) for flow in resolved.flows}:
        at_sender, at_receiver = (loggers.get(host, frozenset()) for host in (sender, receiver))
        yield FlowTraces(sender in captured, receiver in captured, at_sender, at_receiver, router)


# The checks of single treatments


@dataclass(frozen=True)
class TreatmentCheck:
    """A check of treatments: its message, the view of components that it depends on, and the check itself.

    `find` returns the details of what it finds, or None.
    """

    message: str
    view: View
    find: Callable[[Resolved], str | None]


def _run_check(check: TreatmentCheck, trials: Trials) -> Mapping[str, str]:
    """Run a check once for all treatments that are equal in its view; return its warning by part."""
    found: dict[str, tuple[Group, str, int]] = {}
    for group in trials.groups(check.view):
        details = check.find(group.resolved)
        if details is not None:
            first, text, treatments = found.get(group.part, (group, details, 0))
            found[group.part] = first, text, treatments + group.treatments
    totals = {part.part: len(part) for part in trials.parts}
    warnings: dict[str, str] = {}
    for part, (first, details, treatments) in found.items():
        affected = ""
        if totals[part] > 1:
            whole = treatments == totals[part]
            many = f"all {treatments:,}" if whole else f"{treatments:,} of {totals[part]:,}"
            affected = f" for {many} treatments, e.g. {' '.join(first.levels.values())}"
        warnings[part] = f"{part}: {check.message}{affected}: {details}"
    return warnings


def _rounded(seconds: float) -> float:
    return round(seconds, 3)


def _mtu_bytes(resolved: Resolved) -> int:
    """Return the largest MTU of any host."""
    mtus = [host.mtu_bytes for host in resolved.hosts.values() if host.mtu_bytes is not None]
    return max([*mtus, resolved.mtu_bytes or 0]) or ETHERNET_MTU_BYTES


def _windows(resolved: Resolved) -> Iterator[int]:
    yield from (host.rwnd_bytes for host in resolved.hosts.values() if host.rwnd_bytes is not None)
    yield from (flow.rwnd_bytes for flow in resolved.flows if flow.rwnd_bytes is not None)


def _below_bdp(resolved: Resolved) -> str | None:
    path = resolved.path
    if path is None or not path.rtt_s:
        return None
    for flow in resolved.flows:
        rate_bps, rwnd_bytes = _direction(path, flow, resolved).rate_bps, resolved.window_bytes(flow)
        if not rate_bps or rwnd_bytes is None or _needs_less(flow, resolved, rwnd_bytes * 8 / path.rtt_s):
            continue
        product_bytes = int(rate_bps * path.rtt_s / 8)
        if rwnd_bytes < product_bytes:
            most = format_rate(int(rwnd_bytes * 8 / path.rtt_s), 3)
            of = f"{format_rate(rate_bps)} x {format_duration(path.rtt_s)}"
            small, product = format_bytes(rwnd_bytes, 3), format_bytes(product_bytes, 3)
            return f"{small} against {product} ({of}), so flow '{flow.label}' reaches {most} at most"
    return None


def _direction(path: PathPlan, flow: FlowPlan, resolved: Resolved) -> DirectionPlan:
    """Return the direction of the path that a flow's data takes."""
    return path.up if direction_of(flow, resolved) == "up" else path.down


def _needs_less(flow: FlowPlan, resolved: Resolved, rate_bps: float) -> bool:
    """Return whether a flow is paced by an interval, or limited to a rate that its window allows."""
    own_bps = rate_limit_bps(flow, resolved)
    return "interval" in flow.parameters if own_bps is None else own_bps <= rate_bps


def _above_largest(resolved: Resolved) -> str | None:
    largest = max(_windows(resolved), default=0)
    if largest <= LARGEST_WINDOW_BYTES:
        return None
    return f"{format_bytes(largest, 4)} against {format_bytes(LARGEST_WINDOW_BYTES, 4)}"


def _below_two_segments(resolved: Resolved) -> str | None:
    mss_bytes = _mtu_bytes(resolved) - IPV4_BYTES - TCP_BYTES
    smallest = min(_windows(resolved), default=2 * mss_bytes)
    return f"{format_bytes(smallest)} of {mss_bytes} bytes each" if smallest < 2 * mss_bytes else None


def _queues(path: PathPlan | None) -> Iterator[DirectionPlan]:
    yield from (direction for direction in (path.down, path.up) if direction.rate_bps) if path else ()


def _below_one_packet(resolved: Resolved) -> str | None:
    frame_bytes = _mtu_bytes(resolved) + ETHERNET_BYTES
    for direction in _queues(resolved.path):
        if direction.buffer_bytes is not None and direction.buffer_bytes < frame_bytes:
            return (
                f"{format_bytes(direction.buffer_bytes)} against {frame_bytes} bytes with the Ethernet header"
            )
    return None


def _unlimited(resolved: Resolved) -> str | None:
    path = resolved.path
    if path is None or any(_queues(path)):
        return None
    delay_s = max(path.down.delay_s, path.up.delay_s)
    if not delay_s:
        return None
    most = format_rate(int(NETEM_PACKETS * _mtu_bytes(resolved) * 8 / delay_s), 3)
    return f"{NETEM_PACKETS} packets for {format_duration(delay_s)}, so {most} and losses beyond it"


def _below_twenty_rtts(resolved: Resolved) -> str | None:
    full_s = _full_rtt_s(resolved)
    for flow in resolved.flows:
        if flow.duration_s is not None and flow.duration_s < FEWEST_RTTS * full_s:
            rtts = f"{FEWEST_RTTS} x {format_duration(_rounded(full_s))}"
            return f"{format_duration(flow.duration_s)} of flow '{flow.label}' against {rtts}"
    return None


def _full_rtt_s(resolved: Resolved) -> float:
    """Return the RTT with full queues in both directions, in seconds."""
    path, mtu_bytes = resolved.path, _mtu_bytes(resolved)
    waits = [
        (direction.buffer_bytes or (direction.buffer_packets or 0) * mtu_bytes)
        * 8
        / (direction.rate_bps or 1)
        for direction in _queues(path)
    ]
    return (path.rtt_s if path else 0.0) + sum(waits)


def _small_sockets(resolved: Resolved) -> str | None:
    for flow in resolved.flows:
        rwnd_bytes = resolved.window_bytes(flow)
        if rwnd_bytes is None:
            continue
        used_bytes = min(rwnd_bytes, _held_bytes(flow, resolved) or rwnd_bytes)
        ends = ((flow.to_host, "receive_max", rwnd_bytes), (flow.from_host, "send_max", used_bytes))
        for host, key, needed_bytes in ends:
            limit_bytes = _socket_bytes(resolved, host, key)
            if limit_bytes is not None and limit_bytes < needed_bytes:
                return f"{key} {format_bytes(limit_bytes, 3)} at {host}, rwnd {format_bytes(rwnd_bytes, 3)}"
    return None


def _held_bytes(flow: FlowPlan, resolved: Resolved) -> int | None:
    """Return the bytes that a flow can have in flight before its queue overflows; None if unknown."""
    direction = _direction(resolved.path, flow, resolved) if resolved.path is not None else None
    if direction is None or resolved.path is None or not direction.rate_bps:
        return None
    queue_bytes = direction.buffer_bytes or (direction.buffer_packets or 0) * _mtu_bytes(resolved)
    return int(direction.rate_bps * resolved.path.rtt_s / 8) + queue_bytes


def _never_starts(resolved: Resolved) -> str | None:
    late = [flow for flow in resolved.flows if flow.start_s >= resolved.duration_s]
    if not late:
        return None
    starts, ends = (format_duration(_rounded(s)) for s in (late[0].start_s, resolved.duration_s))
    return f"'{late[0].label}' at {starts}, traffic ends at {ends}"


def _unmarked(resolved: Resolved) -> str | None:
    for flow in resolved.flows:
        host = resolved.hosts.get(flow.from_host)
        aqm = _direction(resolved.path, flow, resolved).aqm if resolved.path is not None else None
        if (flow.cc or (host.cc if host else None)) == "dctcp" and aqm in DROP_TAIL:
            return f"flow '{flow.label}' through {aqm}, where it behaves like newreno"
    return None


def _socket_bytes(resolved: Resolved, host: str, key: str) -> int | None:
    plan = resolved.hosts.get(host)
    text = plan.settings.get("buffers", {}).get(key) if plan else None
    try:
        return parse_size(text) if text is not None else None
    except UnitError:
        return None  # preflight refuses a value that is not a size


def _one_port(resolved: Resolved) -> str | None:
    seen: dict[int, FlowPlan] = {}
    for flow in resolved.flows:
        other = seen.setdefault(flow.port, flow)
        if other is not flow:
            return f"'{other.label}' and '{flow.label}' on {flow.port}, which captures cannot tell apart"
    return None


def _short_snaplen(resolved: Resolved) -> str | None:
    six = any(ip_address(flow.to_address).version == 6 for flow in resolved.flows)
    ip, ip_bytes = ("IPv6", IPV6_BYTES) if six else ("IPv4", IPV4_BYTES)
    needed_bytes = ETHERNET_BYTES + ip_bytes + LARGEST_TCP_BYTES
    for capture in resolved.captures:
        if capture.snaplen_bytes < needed_bytes:
            of = f"{ETHERNET_BYTES} Ethernet + {ip_bytes} {ip} + {LARGEST_TCP_BYTES} TCP"
            return f"{capture.snaplen_bytes} bytes at {capture.host} against {needed_bytes} ({of})"
    return None


def _seldom_sampled(resolved: Resolved) -> str | None:
    for logger in resolved.loggers:
        if logger.interval_s is not None and logger.interval_s >= resolved.duration_s:
            every = f"{logger.logger} at {logger.host} every {format_duration(logger.interval_s)}"
            return f"{every} of {format_duration(_rounded(resolved.duration_s))}"
    return None


def _small_mtu6(resolved: Resolved) -> str | None:
    six = any(ip_address(flow.to_address).version == 6 for flow in resolved.flows)
    mtus = [host.mtu_bytes for host in resolved.hosts.values() if host.mtu_bytes is not None]
    least = min(mtus, default=LEAST_MTU6_BYTES)
    return f"{least} against {LEAST_MTU6_BYTES} bytes" if six and least < LEAST_MTU6_BYTES else None


# Keys of components, for the views of checks


def _mtu(one: HostPlan | RunPlan) -> int | None:
    return one.mtu_bytes


def _duration(run: RunPlan) -> float:
    return run.duration_s


def _window(host: HostPlan) -> Hashable:
    """Return what the window of a host, and what its flows need of it, depend on."""
    return host.rwnd_bytes, host.role, tuple(host.settings.get("shaper", {}).items())


def _sockets(host: HostPlan) -> Hashable:
    """Return what the window and the socket buffers of a host depend on."""
    return host.rwnd_bytes, host.mtu_bytes, host.role, tuple(host.settings.get("buffers", {}).items())


def _of_directions(*names: str) -> Callable[[PathPlan | None], Hashable]:
    """Return a key of paths: some values of both directions."""

    def key(path: PathPlan | None) -> Hashable:
        return path and tuple(getattr(one, name) for one in (path.down, path.up) for name in names)

    return key


def _rates_and_rtt(path: PathPlan | None) -> Hashable:
    return path and (path.down.rate_bps, path.up.rate_bps, path.rtt_s)


def _queues_and_rtt(path: PathPlan | None) -> Hashable:
    """Return what the RTT with empty and with full queues depends on."""
    return path and (path.rtt_s, _queue_sizes(path))


_queue_sizes = _of_directions("rate_bps", "buffer_packets", "buffer_bytes")

CHECKS: tuple[TreatmentCheck, ...] = (
    TreatmentCheck(
        "rwnd is below the path's bandwidth-delay product",
        {"path": _rates_and_rtt, "hosts": _window, "flows": None},
        _below_bdp,
    ),
    TreatmentCheck("rwnd is beyond TCP's largest window", {"hosts": _window, "flows": None}, _above_largest),
    TreatmentCheck(
        "rwnd is below two segments",
        {"run": _mtu, "hosts": lambda host: (host.mtu_bytes, host.rwnd_bytes), "flows": None},
        _below_two_segments,
    ),
    TreatmentCheck(
        "socket buffers are below rwnd",
        {"run": _mtu, "path": _queues_and_rtt, "hosts": _sockets, "flows": None},
        _small_sockets,
    ),
    TreatmentCheck(
        "buffer is below one packet", {"run": _mtu, "path": _queue_sizes, "hosts": _mtu}, _below_one_packet
    ),
    TreatmentCheck(
        "only netem's own queue limits the path",
        {"run": _mtu, "path": _of_directions("rate_bps", "delay_s"), "hosts": _mtu},
        _unlimited,
    ),
    TreatmentCheck(
        f"duration is below {FEWEST_RTTS} RTTs at a full buffer",
        {"run": _mtu, "path": _queues_and_rtt, "hosts": _mtu, "flows": None},
        _below_twenty_rtts,
    ),
    TreatmentCheck("a flow never starts", {"run": _duration, "flows": None}, _never_starts),
    TreatmentCheck(
        "dctcp has no queue that marks packets",
        {"path": _of_directions("aqm"), "hosts": lambda host: (host.cc, host.role), "flows": None},
        _unmarked,
    ),
    TreatmentCheck("two flows have the same port", {"flows": None}, _one_port),
    TreatmentCheck(
        "snaplen is too short for headers with options", {"flows": None, "captures": None}, _short_snaplen
    ),
    TreatmentCheck("a logger takes one sample at most", {"run": _duration, "loggers": None}, _seldom_sampled),
    TreatmentCheck("mtu is below the minimum of IPv6", {"hosts": _mtu, "flows": None}, _small_mtu6),
)
