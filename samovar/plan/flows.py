"""Resolve the flows of a trial: hosts, ports, starts and ends, and the end of all traffic."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from samovar.errors import PlanError
from samovar.experiment import GENERATOR_KEYS, Distribution, RecipeCatalogue, keys
from samovar.plan.level_precedence import TreatmentError, TreatmentValues, parameters_of_type
from samovar.plan.model import FlowPlan, StopPlan
from samovar.plan.placement import LAST_PORT, Route, ports_of
from samovar.plan.trials import DesignError

SETTLING_S = 15.0
DIGITS = 6  # times are rounded to microseconds; no host starts programs more precisely
MOST_ARRIVALS = 10_000
AIR_OVERHEAD_S = 0.000225
"""The time that a packet takes on the air of a WLAN in addition to its bits: waiting, preamble and ACK of its
frame, and half of the frame of a TCP ACK, in 802.11g."""
NUMBERED = r"(.+)[-.]([0-9]+)"
"""Pattern of a label that ends in a number, such as bulk-2: the analysis counts it as a flow of bulk."""


class RandomStream(NamedTuple):
    """The values that seed random numbers.

    The treatment is not one of the seed values, so that all treatments have equal random values.
    """

    seed: int
    part: str
    flow: str
    replicate: int

    def generator(self) -> random.Random:
        """Return a random number generator that yields the same numbers every time."""
        return random.Random("/".join(map(str, self)))

    def value(self, distribution: Distribution) -> float:
        """Return one random value of a distribution, in its unit."""
        return distribution.quantile(self.generator().random())


def poisson_s(
    stream: RandomStream, rate_hz: float, until_s: float | None, count: int | None
) -> tuple[float, ...]:
    """Return the arrival times of a Poisson process in seconds: the first `count`, or all before `until_s`.

    Raises PlanError for more than MOST_ARRIVALS.
    """
    generator, now_s = stream.generator(), 0.0
    arrivals: list[float] = []
    while count is None or len(arrivals) < count:
        now_s += -math.log(1.0 - generator.random()) / rate_hz
        arrival_s = round(now_s, DIGITS)
        if until_s is not None and arrival_s >= until_s:
            break
        if len(arrivals) >= MOST_ARRIVALS:
            message = f"more than {MOST_ARRIVALS} arrivals; lower their rate or end them earlier"
            raise PlanError(f"flow {stream.flow}: {message}")
        arrivals.append(arrival_s)
    return tuple(arrivals)


def stop_of(values: TreatmentValues) -> StopPlan | None:
    """Return when the experiment stops all traffic, or None if it does not."""
    after_s, when = values.stop("after"), values.stop("when")
    if after_s is None and when is None:
        return None
    return StopPlan(after_s=None if after_s is None else float(after_s), when=when)


def routes_of(values: TreatmentValues) -> list[Route]:
    """Return the route of every flow; raises PlanError for hosts that no links connect."""
    return [_route(values, member) for flow in values.part.traffic for member in _members(values, flow)]


def flows_of(values: TreatmentValues) -> tuple[FlowPlan, ...]:
    """Return the flows of a trial. Raises PlanError if the trial has no flow, or a flow that cannot run.

    Ports are unique in a trial, so that flows can be told apart by port in a capture at any host.
    """
    starts = [
        (flow, member, start_s)
        for flow in values.part.traffic
        for member, start_s in zip(_members(values, flow), _starts_s(values, flow), strict=True)
    ]
    if not starts:
        message = f"no flow {values.labels()}".rstrip() + "; every trial needs at least one flow"
        raise DesignError(values.context.name, ("traffic",), message)
    ports = ports_of(member.port for _, member, _ in starts)
    flows = tuple(_flow(values, *start, port) for start, port in zip(starts, ports, strict=True))
    windows: dict[tuple[str, str], FlowPlan] = {}
    entries, used = Counter(flow.label for flow in values.part.traffic), Counter(ports)
    for flow in flows:
        if entries[flow.group] > 1:
            raise values.flow_error(flow, "two flows have this label; give each flow its own label")
        numbered = re.fullmatch(NUMBERED, flow.group)
        if numbered is not None and numbered[1] in entries:
            entry, number = numbered.groups()
            message = f"tables and figures would count it as flow {number} of the entry {entry}"
            advice = f"choose a label without the number, such as {entry}-b"
            raise values.flow_error(flow, f"{message}; {advice}")
        if used[flow.port] > 1 or flow.port > LAST_PORT:
            why = f"above {LAST_PORT}" if flow.port > LAST_PORT else "taken by another flow"
            advice = "choose another port, because flows of one entry take consecutive ports"
            raise values.flow_error(flow, f"port {flow.port} is {why}; {advice}")
    _check_chosen_ports(
        values, [flow for flow, start in zip(flows, starts, strict=True) if start[1].port], flows
    )
    for flow in flows:
        if values.transport(flow) != "tcp":
            continue
        first = windows.setdefault((flow.from_host, flow.to_host), flow)
        if first.rwnd_bytes != flow.rwnd_bytes:
            other = f"flow {first.label} from {flow.from_host} to {flow.to_host} has another rwnd, or none"
            advice = "give both the same rwnd, because a host has one window per peer"
            raise values.flow_error(flow, f"{other}; {advice}")
    return flows


def _check_chosen_ports(
    values: TreatmentValues, chosen: Sequence[FlowPlan], flows: Sequence[FlowPlan]
) -> None:
    """Raise TreatmentError for a port that the experiment chooses and that SSH or another flow uses."""
    if not chosen:
        return
    used: dict[tuple[str, int], FlowPlan] = {}
    for flow in flows:
        for port in values.ports(flow):
            first = used.setdefault((flow.to_host, port), flow)
            if first is not flow and (flow in chosen or first in chosen):
                message = f"port {port}, which {flow.generator} uses, is taken by flow {first.label}"
                raise values.flow_error(flow, f"{message}; choose another port")
    for flow in chosen:
        for host in (flow.from_host, flow.to_host):
            if values.transport(flow) != "icmp" and values.testbed.ssh_of(host).port in values.ports(flow):
                raise values.flow_error(
                    flow, f"port {flow.port} is used by SSH at {host}; choose another port"
                )


def stream_of(values: TreatmentValues, label: str) -> RandomStream:
    """Return the random stream of a label, such as a flow's label."""
    return RandomStream(values.context.seed, values.context.name, label, values.replicate)


def _members(values: TreatmentValues, flow: keys.Flow) -> list[keys.Member]:
    """Return the flows that an entry of traffic expands to."""
    start, end, count = (values.flow_amount(flow, key) for key in ("from", "to", "count"))
    number = len(_arrivals_s(values, flow)) if flow.arrivals is not None else None
    return values.placement.members(flow, start, end, count, number)


def _route(values: TreatmentValues, member: keys.Member) -> Route:
    route = values.placement.route(member.from_host, member.to_host)
    if route is None:
        message = f"no links lead from {member.from_host} to {member.to_host}"
        raise values.flow_error(member, f"{message}; use two hosts that links and routers connect")
    return route


def _arrivals_s(values: TreatmentValues, flow: keys.Flow) -> list[float]:
    """Return the random arrival times before the end of all traffic, in seconds after the trial's start."""
    per_s, until_s, count = (values.arrivals(flow, key) for key in ("poisson", "until", "count"))
    start_s = float(values.flow(flow, "start"))
    left_s = None if until_s is None else until_s - start_s
    arrivals_s = poisson_s(stream_of(values, flow.label), per_s, left_s, count)
    end_s = values.stop("after")
    starts_s = (round(start_s + arrival_s, DIGITS) for arrival_s in arrivals_s)
    return [one for one in starts_s if end_s is None or one < end_s]


def _starts_s(values: TreatmentValues, flow: keys.Flow) -> list[float]:
    """Return the start of every flow of an entry of traffic, in seconds after the trial's start."""
    if flow.arrivals is not None:
        return _arrivals_s(values, flow)
    start, every_s = values.flow(flow, "start"), float(values.flow(flow, "every"))
    return [
        round(float(_fixed(values, start, member.label)) + member.index * every_s, DIGITS)
        for member in _members(values, flow)
    ]


def _fixed(values: TreatmentValues, amount: Any, label: str) -> Any:
    """Return a quantity unchanged; for a distribution, return a value from the random stream of `label`."""
    return stream_of(values, label).value(amount) if isinstance(amount, Distribution) else amount


def _flow(
    values: TreatmentValues, flow: keys.Flow, member: keys.Member, start_s: float, port: int
) -> FlowPlan:
    route = _route(values, member)
    size, duration, until = (values.flow(flow, key) for key in keys.FLOW_ENDS)
    size_bytes = _fixed(values, size, f"{member.label}/size")
    duration_s = _fixed(values, duration, f"{member.label}/duration")
    if isinstance(size, Distribution):
        size_bytes = max(round(size_bytes), 1)
    if isinstance(duration, Distribution):
        duration_s = max(round(duration_s, DIGITS), 10**-DIGITS)
    if size is None and duration is None and until is None:
        duration_s = values.evaluate(values.duration_amount(), "duration")
        if duration_s is None and stop_of(values) is None:
            advice = "add `size` or `duration` to it, or `duration` at the top level"
            raise values.flow_error(member, f"never ends; {advice}")
    generator = values.flow_amount(flow, "generator")
    for key in GENERATOR_KEYS:
        if values.flow_amount(flow, key) is not None and not values.declares(flow, key, route.from_host):
            per_host = "; settings: {cc: {HOST: ...}} sets it for all flows of a host" if key == "cc" else ""
            message = values.not_taken("generator", generator, key, route.from_host) + per_host
            raise values.flow_error(member, message)
    return FlowPlan(
        label=member.label,
        group=flow.label,
        generator=generator,
        from_host=route.from_host,
        to_host=route.to_host,
        from_address=route.from_address,
        to_address=route.to_address,
        port=port,
        start_s=start_s,
        duration_s=duration_s,
        size_bytes=size_bytes,
        until=until,
        cc=values.flow_amount(flow, "cc"),
        rwnd_bytes=values.flow(flow, "rwnd"),
        dscp=values.flow_amount(flow, "dscp"),
        parameters=values.flow_parameters(flow, route.from_host),
    )


class FlowLimits(NamedTuple):
    """The limits that a flow's program and its sender's shaper set.

    A program without a rate may send a packet of `length_bytes` every `interval_s` seconds. `periodic_bps` is
    the rate of a program that sends a packet, page or response of constant size at constant intervals.
    """

    rate_bps: float | None
    length_bytes: int | None
    interval_s: float | None
    periodic_bps: float | None


def limits_of(
    flow: FlowPlan,
    system: str,
    settings: Mapping[str, Mapping[str, str]],
    catalogue: RecipeCatalogue,
) -> FlowLimits:
    """Return the limits of a flow, according to the parameters of its generator and shaper."""
    declared = catalogue.parameters("generator", flow.generator, system) or {}
    shaper = catalogue.parameters("setting", "shaper", system) or {}
    rates, sizes, durations = (
        parameters_of_type(type_, declared, flow.parameters) for type_ in ("rate", "size", "duration")
    )
    shaped_bps = parameters_of_type("rate", shaper, settings.get("shaper", {})).values()
    objects = parameters_of_type("integer", declared, flow.parameters).get("objects", 1)
    period_s = durations.get("interval") or durations.get("period")
    sent_bytes = sizes.get("length") or sizes.get("response") or objects * sizes.get("object", 0)
    return FlowLimits(
        rate_bps=min((*rates.values(), *shaped_bps), default=None),
        length_bytes=sizes.get("length"),
        interval_s=durations.get("interval"),
        periodic_bps=sent_bytes * 8 / period_s if period_s else None,
    )


def air_bps(standard: str, rate_bps: int | None, packet_bytes: int) -> float:
    """Return a WLAN's rate for packets in bit/s; infinity for standards other than 802.11a, b and g."""
    rates_bps, packet_bits = keys.WLAN_RATES_BPS.get(standard), packet_bytes * 8
    if rates_bps is None:
        return math.inf
    return packet_bits / (packet_bits / (rate_bps or max(rates_bps)) + AIR_OVERHEAD_S)


class Ends(NamedTuple):
    """The times in seconds by which a flow, or the whole traffic, is expected to end and must have ended."""

    end_s: float
    deadline_s: float


def ends_of(
    values: TreatmentValues,
    flows: Sequence[FlowPlan],
    stop: StopPlan | None,
    transfer_s: Callable[[Sequence[FlowPlan]], float],
) -> Ends:
    """Return when the traffic ends.

    `transfer_s` returns the total time of all flows that have a size. Raises TreatmentError if flows wait for
    each other, or if `until` or `stop` names a flow that never ends or does not exist.
    """
    limit_s = stop.after_s if stop else None
    known: dict[str, Ends] = {}
    took_s = transfer_s(flows) if any(flow.size_bytes is not None for flow in flows) else 0.0
    for flow in flows:
        if (ends := _own_end(flow, limit_s, took_s)) is not None:
            known[flow.label] = ends
    waiting = [flow for flow in flows if flow.until is not None]
    while waiting:
        others = {flow.label: [one.label for one in _labelled(flows, flow.until)] for flow in waiting}
        ending = {label for label, group in others.items() if group and known.keys() >= set(group)}
        if not ending:
            until = f"until {waiting[0].until}: that flow never ends, or waits for this one"
            raise values.flow_error(waiting[0], f"{until}; name a flow that ends by itself")
        known |= {label: _latest([known[one] for one in others[label]]) for label in ending}
        waiting = [flow for flow in waiting if flow.label not in ending]
    traffic = _latest(known.values())
    if stop is not None and stop.when is not None:
        group = [known[flow.label] for flow in _labelled(flows, stop.when) if flow.label in known]
        if not group:
            message = f"stop: when {stop.when}: that flow never ends; give it size or duration"
            raise TreatmentError(values.context.name, "stop when", stop.when, message)
        traffic = _earlier(traffic, _latest(group))
    return traffic if limit_s is None else _earlier(traffic, Ends(limit_s, limit_s + SETTLING_S))


def _own_end(flow: FlowPlan, limit_s: float | None, took_s: float) -> Ends | None:
    """Return when a flow ends by itself; None if its end depends on other flows.

    `took_s` is the total time of all flows with a size.
    """
    if flow.duration_s is not None:
        end_s = round(flow.start_s + flow.duration_s, DIGITS)
        return Ends(end_s, round(end_s + SETTLING_S, DIGITS))
    if flow.size_bytes is not None:
        deadline_s = flow.start_s + took_s * 2 + 2 * SETTLING_S
        return Ends(round(flow.start_s + took_s, DIGITS), round(deadline_s, DIGITS))
    if flow.until is None and limit_s is not None:
        return Ends(limit_s, limit_s + SETTLING_S)
    return None  # it ends with another flow, or at `stop`


def _labelled(flows: Sequence[FlowPlan], label: str | None) -> list[FlowPlan]:
    """Return the flows whose label or group is `label`."""
    return [flow for flow in flows if label in (flow.label, flow.group)]


def _latest(ends: Iterable[Ends]) -> Ends:
    every = list(ends) or [Ends(0.0, 0.0)]
    return Ends(max(one.end_s for one in every), max(one.deadline_s for one in every))


def _earlier(one: Ends, other: Ends) -> Ends:
    if not one.end_s:  # nothing but `stop` ends the traffic
        return other
    return Ends(min(one.end_s, other.end_s), min(one.deadline_s, other.deadline_s))
