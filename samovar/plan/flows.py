"""The flows of a trial: counted and drawn ones one by one, with ports, starts and ends; when all is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import Distribution, Flow, Member
from samovar.plan.laid import Laid
from samovar.plan.model import FlowPlan, StopPlan
from samovar.plan.places import Route, ports_of
from samovar.plan.random_draws import Draw, drawn, poisson_s

SLOWEST_BPS = 10_000_000  # taken for the time of a transfer when nothing says how fast the path is
SETTLING_S = 15.0
SHORTEST_RTT_S = 0.001
DIGITS = 6  # of seconds: no host starts a program more exactly


@dataclass(frozen=True)
class Ends:
    """When a flow, or the traffic as a whole, should have ended and when it must have, in seconds."""

    end_s: float
    deadline_s: float


class Traffic:
    """The flows of one trial."""

    def __init__(self, laid: Laid, seed: int) -> None:
        self.laid, self.seed = laid, seed

    def routes(self) -> list[Route]:
        """Return the way of every flow; raises PlanError for one that leads nowhere."""
        return [self._route(member) for flow in self.laid.part.traffic for member in self._members(flow)]

    def flows(self) -> tuple[FlowPlan, ...]:
        """Return every flow; raises PlanError for what cannot run, and where there is none."""
        asked = [
            (flow, member, start_s)
            for flow in self.laid.part.traffic
            for member, start_s in zip(self._members(flow), self._starts(flow), strict=True)
        ]
        if not asked:
            raise PlanError(
                f"{self.laid.name}: no flow{self._of_levels()}; expected one at least in every trial"
            )
        ports = ports_of(member.port for _, member, _ in asked)
        made = (self._flow(*one, port) for one, port in zip(asked, ports, strict=True))
        return _checked(tuple(made))

    def stop(self) -> StopPlan | None:
        """Return when all traffic ends, if something says so."""
        after_s, when = self.laid.of_stop("after"), self.laid.of_stop("when")
        if after_s is None and when is None:
            return None
        return StopPlan(after_s=None if after_s is None else float(after_s), when=when)

    def _of_levels(self) -> str:
        levels = self.laid.reader.labels()
        return f" where {levels}" if levels else ""

    def _members(self, flow: Flow) -> list[Member]:
        """Return the flows that a line means, none of them computed yet."""
        start, end, count = (self.laid.of_flow(flow, key) for key in ("from", "to", "count"))
        number = len(self._arrivals(flow)) if flow.arrivals is not None else None
        return self.laid.places.members(flow, start, end, count, number)

    def _route(self, member: Member) -> Route:
        route = self.laid.places.route(member.from_host, member.to_host)
        if route is None:
            message = f"no links lead from {member.from_host} to {member.to_host}"
            raise PlanError(f"flow {member.label}: {message}; expected hosts that links and routers connect")
        return route

    def _draw(self, label: str) -> Draw:
        return Draw(self.seed, self.laid.name, label, self.laid.reader.replicate)

    def _arrivals(self, flow: Flow) -> tuple[float, ...]:
        """Return when the flows of random arrivals begin, in seconds after the trial's start.

        None begins that the end of all traffic would forestall.
        """
        if flow.arrivals is None:
            return ()
        per_s, until_s, count = (self.laid.of_arrivals(flow, key) for key in ("poisson", "until", "count"))
        start_s, draw = float(self._computed(flow, "start")), self._draw(flow.label)
        left_s = None if until_s is None else until_s - start_s
        found = poisson_s(draw, per_s, left_s, count)
        over_s = self.laid.of_stop("after")
        begin = (round(start_s + one, DIGITS) for one in found)
        return tuple(one for one in begin if over_s is None or one < over_s)

    def _starts(self, flow: Flow) -> Iterator[float]:
        """Yield the start of every flow that a line means, in seconds after the trial's."""
        if flow.arrivals is not None:
            yield from self._arrivals(flow)
            return
        start, every_s = self._computed(flow, "start"), float(self._computed(flow, "every"))
        for member in self._members(flow):
            own_s = (
                drawn(self._draw(member.label), start) if isinstance(start, Distribution) else float(start)
            )
            yield round(own_s + member.index * every_s, DIGITS)

    def _size_bytes(self, flow: Flow, member: Member) -> Any:
        size = self._computed(flow, "size")
        if not isinstance(size, Distribution):
            return size
        return max(round(drawn(self._draw(f"{member.label}/size"), size)), 1)

    def _duration_s(self, flow: Flow, member: Member) -> Any:
        duration = self._computed(flow, "duration")
        if not isinstance(duration, Distribution):
            return duration
        return max(
            round(drawn(self._draw(f"{member.label}/duration"), duration), DIGITS), duration.step or 1e-6
        )

    def _computed(self, flow: Flow, key: str) -> Any:
        return self.laid.computed(self.laid.of_flow(flow, key), f"flow {flow.label}: {key}")

    def _flow(self, flow: Flow, member: Member, start_s: float, port: int) -> FlowPlan:
        route = self._route(member)
        size_bytes, duration_s = self._size_bytes(flow, member), self._duration_s(flow, member)
        until = self._computed(flow, "until")
        if size_bytes is None and duration_s is None and until is None:
            duration_s = self._default_s(flow)
        return FlowPlan(
            label=member.label,
            group=flow.label,
            generator=self.laid.of_flow(flow, "generator"),
            from_host=route.from_host,
            to_host=route.to_host,
            from_address=route.from_address,
            to_address=route.to_address,
            port=port,
            start_s=start_s,
            duration_s=duration_s,
            size_bytes=size_bytes,
            until=until,
            cc=self.laid.of_flow(flow, "cc"),
            rwnd_bytes=self._computed(flow, "rwnd"),
            dscp=self.laid.of_flow(flow, "dscp"),
            parameters=self.laid.flow_parameters(flow),
        )

    def _default_s(self, flow: Flow) -> Any:
        duration_s = self.laid.computed(self.laid.duration(), "duration")
        if duration_s is None and self.stop() is None:
            raise PlanError(f"flow {flow.label}: never ends; expected a size or a duration")
        return duration_s


def _checked(flows: tuple[FlowPlan, ...]) -> tuple[FlowPlan, ...]:
    labels = Counter(flow.label for flow in flows)
    for label, count in labels.items():
        if count > 1:
            raise PlanError(f"flow {label}: two flows have this label; expected one each")
    windows: dict[tuple[str, str], FlowPlan] = {}
    for flow in flows:
        first = windows.setdefault((flow.from_host, flow.to_host), flow)
        if first.rwnd_bytes != flow.rwnd_bytes:
            between = f"between {flow.from_host} and {flow.to_host}"
            message = f"flows {first.label} and {flow.label} have different rwnd {between}"
            raise PlanError(f"{message}; expected the same, as a window is set for all that a peer sends")
    return flows


def ends_of(
    flows: Sequence[FlowPlan], stop: StopPlan | None, transfer_s: Callable[[Sequence[FlowPlan]], float]
) -> Ends:
    """Return when the traffic ends; `transfer_s` says how long all transfers of a size take together.

    Raises PlanError for flows that wait for each other, or for one that is not there.
    """
    limit_s = stop.after_s if stop else None
    known: dict[str, Ends] = {}
    took_s = transfer_s(flows) if any(flow.size_bytes is not None for flow in flows) else 0.0
    for flow in flows:
        found = _own_end(flow, limit_s, took_s)
        if found is not None:
            known[flow.label] = found
    waiting = [flow for flow in flows if flow.until is not None]
    while waiting:
        rest = [flow for flow in waiting if not _follow(flow, flows, known)]
        if len(rest) == len(waiting):
            raise PlanError(
                f"flow {rest[0].label}: until {rest[0].until}: no flow of that label ends; expected one"
            )
        waiting = rest
    every = _latest(known.values())
    if stop is not None and stop.when is not None:
        every = _earlier(every, _end_of(stop.when, flows, known))
    return every if limit_s is None else _earlier(every, Ends(limit_s, limit_s + SETTLING_S))


def _own_end(flow: FlowPlan, limit_s: float | None, took_s: float) -> Ends | None:
    """Return when a flow ends by itself; `took_s` is how long all transfers of a size take together."""
    if flow.duration_s is not None:
        end_s = round(flow.start_s + flow.duration_s, DIGITS)
        return Ends(end_s, round(end_s + SETTLING_S, DIGITS))
    if flow.size_bytes is not None:
        return Ends(
            round(flow.start_s + took_s, DIGITS), round(flow.start_s + took_s * 2 + 2 * SETTLING_S, DIGITS)
        )
    if flow.until is None and limit_s is not None:
        return Ends(limit_s, limit_s + SETTLING_S)
    return None  # it ends with another flow, or when `stop` says so


def _follow(flow: FlowPlan, flows: Sequence[FlowPlan], known: dict[str, Ends]) -> bool:
    """Note the end of a flow that ends with another, once that is known."""
    group = [one.label for one in flows if flow.until in (one.label, one.group)]
    if not group or not all(label in known for label in group):
        return False
    known[flow.label] = _latest(known[label] for label in group)
    return True


def _end_of(label: str, flows: Sequence[FlowPlan], known: Mapping[str, Ends]) -> Ends:
    group = [known[one.label] for one in flows if label in (one.label, one.group) and one.label in known]
    if not group:
        raise PlanError(f"stop: when {label}: no flow of that label ends; expected one")
    return _latest(group)


def _latest(ends: Any) -> Ends:
    every = list(ends)
    return Ends(
        max((one.end_s for one in every), default=0.0), max((one.deadline_s for one in every), default=0.0)
    )


def _earlier(one: Ends, other: Ends) -> Ends:
    if not one.end_s:  # nothing but `stop` ends the traffic
        return other
    return Ends(min(one.end_s, other.end_s), min(one.deadline_s, other.deadline_s))
