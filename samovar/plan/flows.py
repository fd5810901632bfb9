"""The flows of a trial: counted and drawn ones one by one, with ports, starts and ends; when all is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samovar.definition.experiment import Flow, Uniform
from samovar.definition.traffic import Member
from samovar.errors import PlanError
from samovar.plan.draws import Draw, poisson_s, uniform_s
from samovar.plan.laid import Laid
from samovar.plan.model import FlowPlan, StopPlan
from samovar.plan.places import Route, ports_of

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
        """Return every flow; raises PlanError for what cannot run."""
        asked = [
            (flow, member, start_s)
            for flow in self.laid.part.traffic
            for member, start_s in zip(self._members(flow), self._starts(flow), strict=True)
        ]
        if not asked and all(flow.arrivals is None for flow in self.laid.part.traffic):
            raise PlanError("traffic: every flow has count 0; expected one that is left")
        ports = ports_of(member.port for _, member, _ in asked)
        made = (self._flow(*one, port) for one, port in zip(asked, ports, strict=True))
        return _checked(tuple(made))

    def stop(self) -> StopPlan | None:
        """Return when all traffic ends, if something says so."""
        stop = self.laid.part.stop
        if stop is None:
            return None
        after_s = self.laid.computed(stop.after_s, "stop: after")
        return StopPlan(after_s=None if after_s is None else float(after_s), when=stop.when)

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
        asked = flow.arrivals
        if asked is None:
            return ()
        return poisson_s(self._draw(flow.label), asked.poisson_per_s, asked.until_s, asked.count)

    def _starts(self, flow: Flow) -> Iterator[float]:
        """Yield the start of every flow that a line means, in seconds after the trial's."""
        if flow.arrivals is not None:
            yield from self._arrivals(flow)
            return
        start = self.laid.of_flow(flow, "start")
        every_s = float(self._computed(flow, "every"))
        for member in self._members(flow):
            own_s = (
                uniform_s(self._draw(member.label), start.least_s, start.most_s)
                if isinstance(start, Uniform)
                else float(self._computed(flow, "start"))
            )
            yield round(own_s + member.index * every_s, DIGITS)

    def _computed(self, flow: Flow, key: str) -> Any:
        return self.laid.computed(self.laid.of_flow(flow, key), f"flow {flow.label}: {key}")

    def _flow(self, flow: Flow, member: Member, start_s: float, port: int) -> FlowPlan:
        route = self._route(member)
        size_bytes, duration_s, until = (self._computed(flow, key) for key in ("size", "duration", "until"))
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
        if duration_s is None and self.laid.part.stop is None:
            raise PlanError(f"flow {flow.label}: never ends; expected a size or a duration")
        return duration_s


def _checked(flows: tuple[FlowPlan, ...]) -> tuple[FlowPlan, ...]:
    labels = [flow.label for flow in flows]
    for label in labels:
        if labels.count(label) > 1:
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
    for flow in flows:
        found = _own_end(flow, flows, limit_s, transfer_s)
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


def _own_end(
    flow: FlowPlan,
    flows: Sequence[FlowPlan],
    limit_s: float | None,
    transfer_s: Callable[[Sequence[FlowPlan]], float],
) -> Ends | None:
    if flow.duration_s is not None:
        end_s = round(flow.start_s + flow.duration_s, DIGITS)
        return Ends(end_s, round(end_s + SETTLING_S, DIGITS))
    if flow.size_bytes is not None:
        took_s = transfer_s(flows)
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
