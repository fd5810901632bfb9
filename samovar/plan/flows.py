"""The flows of a trial, one by one, with their hosts, ports, starts and ends; when all traffic ends."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from samovar.errors import PlanError
from samovar.experiment import Distribution, Flow, Member
from samovar.plan.level_precedence import TreatmentValues
from samovar.plan.model import FlowPlan, StopPlan
from samovar.plan.placement import Route, ports_of

SLOWEST_BPS = 10_000_000  # assumed for the time of a transfer if the rate of the path is unknown
SETTLING_S = 15.0
SHORTEST_RTT_S = 0.001
DIGITS = 6  # of seconds: microseconds, finer than any host can start a program
MOST_ARRIVALS = 10_000


class RandomStream(NamedTuple):
    """What random values depend on, and nothing else: all treatments of a replicate have the same ones."""

    seed: int
    part: str
    flow: str
    replicate: int

    def generator(self) -> random.Random:
        """Return a random number generator; it yields the same numbers every time."""
        return random.Random("/".join(map(str, self)))

    def value(self, distribution: Distribution) -> float:
        """Return one random value of a distribution, in its unit."""
        return distribution.quantile(self.generator().random())


def poisson_s(
    stream: RandomStream, rate_hz: float, until_s: float | None, count: int | None
) -> tuple[float, ...]:
    """Return the arrivals of a Poisson process in seconds: the first `count`, or all before `until_s`.

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


class FlowResolver:
    """The flows of one trial."""

    def __init__(self, values: TreatmentValues, seed: int) -> None:
        self.values, self.seed = values, seed

    def routes(self) -> list[Route]:
        """Return the route of every flow; raises PlanError for hosts that no links connect."""
        return [self._route(member) for flow in self.values.part.traffic for member in self._members(flow)]

    def flows(self) -> tuple[FlowPlan, ...]:
        """Return every flow; raises PlanError for flows that cannot run, and if there is none."""
        starts = [
            (flow, member, start_s)
            for flow in self.values.part.traffic
            for member, start_s in zip(self._members(flow), self._starts(flow), strict=True)
        ]
        if not starts:
            levels = self.values.reader.labels()
            where = f" where {levels}" if levels else ""
            raise PlanError(f"{self.values.name}: no flow{where}; every trial needs one at least")
        ports = ports_of(member.port for _, member, _ in starts)
        return _checked(tuple(self._flow(*start, port) for start, port in zip(starts, ports, strict=True)))

    def stop(self) -> StopPlan | None:
        """Return when all traffic ends, if the experiment sets it."""
        after_s, when = self.values.stop("after"), self.values.stop("when")
        if after_s is None and when is None:
            return None
        return StopPlan(after_s=None if after_s is None else float(after_s), when=when)

    def stream(self, label: str) -> RandomStream:
        """Return the random numbers of a flow, or of something else that has a label."""
        return RandomStream(self.seed, self.values.name, label, self.values.reader.replicate)

    def _members(self, flow: Flow) -> list[Member]:
        """Return the flows that a line of traffic expands to."""
        start, end, count = (self.values.flow_amount(flow, key) for key in ("from", "to", "count"))
        number = len(self._arrivals(flow)) if flow.arrivals is not None else None
        return self.values.placement.members(flow, start, end, count, number)

    def _route(self, member: Member) -> Route:
        route = self.values.placement.route(member.from_host, member.to_host)
        if route is None:
            message = f"no links lead from {member.from_host} to {member.to_host}"
            raise PlanError(f"flow {member.label}: {message}; use hosts that links and routers connect")
        return route

    def _arrivals(self, flow: Flow) -> tuple[float, ...]:
        """Return when flows with random arrivals begin, in seconds after the trial's start.

        Flows that would begin after the end of all traffic are left out.
        """
        if flow.arrivals is None:
            return ()
        per_s, until_s, count = (self.values.arrivals(flow, key) for key in ("poisson", "until", "count"))
        start_s, stream = float(self.values.flow(flow, "start")), self.stream(flow.label)
        left_s = None if until_s is None else until_s - start_s
        arrivals_s = poisson_s(stream, per_s, left_s, count)
        end_s = self.values.stop("after")
        starts_s = (round(start_s + arrival_s, DIGITS) for arrival_s in arrivals_s)
        return tuple(one for one in starts_s if end_s is None or one < end_s)

    def _starts(self, flow: Flow) -> Iterator[float]:
        """Yield the start of every flow that a line of traffic expands to, in seconds after the trial's."""
        if flow.arrivals is not None:
            yield from self._arrivals(flow)
            return
        start, every_s = self.values.flow(flow, "start"), float(self.values.flow(flow, "every"))
        for member in self._members(flow):
            start_s = (
                self.stream(member.label).value(start) if isinstance(start, Distribution) else float(start)
            )
            yield round(start_s + member.index * every_s, DIGITS)

    def _size_bytes(self, flow: Flow, member: Member) -> Any:
        size = self.values.flow(flow, "size")
        if not isinstance(size, Distribution):
            return size
        return max(round(self.stream(f"{member.label}/size").value(size)), 1)

    def _duration_s(self, flow: Flow, member: Member) -> Any:
        duration = self.values.flow(flow, "duration")
        if not isinstance(duration, Distribution):
            return duration
        duration_s = round(self.stream(f"{member.label}/duration").value(duration), DIGITS)
        return max(duration_s, duration.step or 1e-6)

    def _flow(self, flow: Flow, member: Member, start_s: float, port: int) -> FlowPlan:
        values, route = self.values, self._route(member)
        size_bytes, duration_s = self._size_bytes(flow, member), self._duration_s(flow, member)
        until = values.flow(flow, "until")
        if size_bytes is None and duration_s is None and until is None:
            duration_s = values.evaluate(values.duration_amount(), "duration")
            if duration_s is None and self.stop() is None:
                raise PlanError(f"flow {flow.label}: never ends; give it a size or a duration")
        return FlowPlan(
            label=member.label,
            group=flow.label,
            generator=values.flow_amount(flow, "generator"),
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
            parameters=values.flow_parameters(flow),
        )


def _checked(flows: tuple[FlowPlan, ...]) -> tuple[FlowPlan, ...]:
    labels = Counter(flow.label for flow in flows)
    for label, count in labels.items():
        if count > 1:
            raise PlanError(f"flow {label}: two flows have this label; give each its own")
    windows: dict[tuple[str, str], FlowPlan] = {}
    for flow in flows:
        first = windows.setdefault((flow.from_host, flow.to_host), flow)
        if first.rwnd_bytes != flow.rwnd_bytes:
            between = f"between {flow.from_host} and {flow.to_host}"
            message = f"flows {first.label} and {flow.label} have different rwnd {between}"
            raise PlanError(f"{message}; use the same: a window applies to all that a peer sends")
    return flows


class Ends(NamedTuple):
    """When a flow, or the traffic as a whole, is expected to end and when it must have ended, in seconds."""

    end_s: float
    deadline_s: float


def ends_of(
    flows: Sequence[FlowPlan], stop: StopPlan | None, transfer_s: Callable[[Sequence[FlowPlan]], float]
) -> Ends:
    """Return when the traffic ends; `transfer_s` returns how long all transfers of a size take together.

    Raises PlanError for flows that wait for each other, or for a flow that does not exist.
    """
    limit_s = stop.after_s if stop else None
    known: dict[str, Ends] = {}
    took_s = transfer_s(flows) if any(flow.size_bytes is not None for flow in flows) else 0.0
    for flow in flows:
        ends = _own_end(flow, limit_s, took_s)
        if ends is not None:
            known[flow.label] = ends
    waiting = [flow for flow in flows if flow.until is not None]
    while waiting:
        rest = [flow for flow in waiting if not _ends_with_others(flow, flows, known)]
        if len(rest) == len(waiting):
            until = f"flow {rest[0].label}: until {rest[0].until}"
            raise PlanError(f"{until}: no flow with this label ends; name one that does")
        waiting = rest
    traffic = _latest(known.values())
    if stop is not None and stop.when is not None:
        group = [known[flow.label] for flow in _labelled(flows, stop.when) if flow.label in known]
        if not group:
            raise PlanError(f"stop: when {stop.when}: no flow with this label ends; name one that does")
        traffic = _earlier(traffic, _latest(group))
    return traffic if limit_s is None else _earlier(traffic, Ends(limit_s, limit_s + SETTLING_S))


def _own_end(flow: FlowPlan, limit_s: float | None, took_s: float) -> Ends | None:
    """Return when a flow ends by itself; `took_s` is how long all transfers of a size take together."""
    if flow.duration_s is not None:
        end_s = round(flow.start_s + flow.duration_s, DIGITS)
        return Ends(end_s, round(end_s + SETTLING_S, DIGITS))
    if flow.size_bytes is not None:
        deadline_s = flow.start_s + took_s * 2 + 2 * SETTLING_S
        return Ends(round(flow.start_s + took_s, DIGITS), round(deadline_s, DIGITS))
    if flow.until is None and limit_s is not None:
        return Ends(limit_s, limit_s + SETTLING_S)
    return None  # it ends with another flow, or at `stop`


def _ends_with_others(flow: FlowPlan, flows: Sequence[FlowPlan], known: dict[str, Ends]) -> bool:
    """Add the end of a flow that ends with others, if theirs are known; return whether they are."""
    group = [one.label for one in _labelled(flows, flow.until)]
    if not group or not all(label in known for label in group):
        return False
    known[flow.label] = _latest(known[label] for label in group)
    return True


def _labelled(flows: Sequence[FlowPlan], label: str | None) -> list[FlowPlan]:
    """Return the flows with a label, or of the group with it."""
    return [flow for flow in flows if label in (flow.label, flow.group)]


def _latest(ends: Iterable[Ends]) -> Ends:
    every = list(ends)
    return Ends(
        max((one.end_s for one in every), default=0.0), max((one.deadline_s for one in every), default=0.0)
    )


def _earlier(one: Ends, other: Ends) -> Ends:
    if not one.end_s:  # nothing but `stop` ends the traffic
        return other
    return Ends(min(one.end_s, other.end_s), min(one.deadline_s, other.deadline_s))
