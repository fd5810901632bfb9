"""Reduce a trial's values to those with an effect, to find treatments that differ in their labels only.

A value has no effect if another value overrides it (a flow's cc overrides its host's), or if nothing uses it
(rwnd if all flows are UDP). Values with the same meaning are equal: reno and newreno, or two sizes of a
buffer that are the same number of packets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any

from samovar.experiment import RecipeCatalogue, Testbed, keys
from samovar.plan.model import (
    ClassPlan,
    DirectionPlan,
    FlowPlan,
    HostPlan,
    MatchPlan,
    PathPlan,
    StopPlan,
)
from samovar.plan.routes import shortest_path
from samovar.units import UnitError

Flows = Sequence[FlowPlan]


@dataclass(frozen=True)
class HostUse:
    """The settings of a host that flows use.

    `ccs` are the congestion controls of TCP flows from the host; None stands for the host's own. `windows` is
    true if a TCP flow uses the host's receive window. `tcp` is true if a TCP flow begins or ends at the host.
    `passed` is true if any flow passes the host.
    """

    ccs: frozenset[str | None] = frozenset()
    windows: bool = False
    tcp: bool = False
    passed: bool = False


class EffectiveValues:
    """Computes effective values of the components of trials on one testbed, as hashable values to compare."""

    def __init__(self, testbed: Testbed, catalogue: RecipeCatalogue) -> None:
        self.testbed, self.catalogue = testbed, catalogue
        self._passed = cache(self._hosts_between)
        self._typed = cache(self._typed_value)

    def is_tcp(self, flow: FlowPlan) -> bool:
        """Return whether a flow's data is TCP."""
        return self.catalogue.transport(flow.generator, self.testbed.hosts[flow.from_host].system) == "tcp"

    def uses(self, flows: Flows) -> Mapping[str, HostUse]:
        """Return, for each host, which of its settings the flows use."""
        ccs: dict[str, set[str | None]] = defaultdict(set)
        ends, windows, passed = set[str](), set[str](), set[str]()
        for flow in flows:
            passed |= self._passed(flow.from_host, flow.to_host)
            if self.is_tcp(flow):
                ends |= {flow.from_host, flow.to_host}
                ccs[flow.from_host].add(flow.cc and keys.canonical_cc(flow.cc))
                windows |= {flow.to_host} if flow.rwnd_bytes is None else set()
        return {
            name: HostUse(frozenset(ccs[name]), name in windows, name in ends, name in passed)
            for name in self.testbed.hosts
        }

    def _hosts_between(self, start: str, end: str) -> frozenset[str]:
        hops = shortest_path(self.testbed, start, end) or ()
        bottleneck = self.testbed.bottleneck
        return frozenset(
            {start, end, *(hop.host for hop in hops), *([bottleneck.router] if bottleneck else ())}
        )

    def host(self, host: HostPlan, use: HostUse) -> Hashable:
        """Return the effective values of a host."""
        if not use.passed:
            return None
        cc = keys.canonical_cc(host.cc) if host.cc is not None else None
        settings = (
            (recipe, self.parameters("setting", recipe, host.system, texts))
            for recipe, texts in sorted(host.settings.items())
            if use.tcp or recipe != "tcp"
        )
        return (
            cc if None in use.ccs else None,
            tuple(sorted(host.cc_parameters.items())) if use.ccs & {None, cc} else (),
            host.rwnd_bytes if use.windows else None,
            host.mtu_bytes,
            host.txd,
            tuple(settings),
        )

    def parameters(self, kind: str, recipe: str, os: str, texts: Mapping[str, str]) -> Hashable:
        """Return the parameters of a recipe, converted to the types in its header."""
        return tuple(
            (name, self._typed(kind, recipe, os, name, text)) for name, text in sorted(texts.items())
        )

    def _typed_value(self, kind: str, recipe: str, os: str, name: str, text: str) -> object:
        declared = (self.catalogue.parameters(kind, recipe, os) or {}).get(name)
        try:
            return text if declared is None else keys.parse_parameter(declared, text)
        except UnitError:
            return text

    def path(self, path: PathPlan | None, flows: Flows) -> Hashable:
        """Return the effective values of the path.

        If every flow is in a class, the path's own delay and loss have no effect and are left out. Devices
        outside of labs cannot be configured, so no value of their path has an effect.
        """
        if path is None or path.device is not None:
            return repr(path) if path and path.device and path.device.settable else None
        in_classes = all(class_of(path, flow) for flow in flows)
        down, up = (self._direction(one, path, in_classes) for one in (path.down, path.up))
        return down, up, repr(path.classes)

    def _direction(self, plan: DirectionPlan, path: PathPlan, in_classes: bool) -> Hashable:
        system = self.testbed.hosts[path.router].system
        return (
            plan.rate_bps,
            None if in_classes else plan.delay_s,
            plan.jitter_s,
            None if in_classes and plan is path.down else plan.loss,
            plan.loss_burst_packets,
            plan.reorder,
            plan.duplicate,
            plan.aqm,
            self.buffer(plan, system),
            plan.aqm and self.parameters("aqm", plan.aqm, system, plan.aqm_parameters),
        )

    def buffer(self, plan: DirectionPlan, system: str) -> tuple[str, int] | None:
        """Return the unit in which the queue discipline counts, and the buffer's size: ('packets', 546)."""
        takes = (plan.aqm and self.catalogue.parameters("aqm", plan.aqm, system)) or {}
        sizes = {"packets": plan.buffer_packets, "bytes": plan.buffer_bytes}
        given = {unit: size for unit, size in sizes.items() if size is not None}
        taken = [unit for unit in given if f"buffer_{unit}" in takes] or list(given)
        return (taken[0], given[taken[0]]) if taken else None

    def flows(self, flows: Flows, stop: StopPlan | None) -> Hashable:
        """Return the effective values of flows.

        Receive windows of UDP flows are left out, and durations are cut off at the stop.
        """
        return tuple(self._flow(flow, stop) for flow in flows)

    def _flow(self, flow: FlowPlan, stop: StopPlan | None) -> Hashable:
        system = self.testbed.hosts[flow.from_host].system
        changed: dict[str, Any] = {
            "cc": flow.cc and keys.canonical_cc(flow.cc),
            "rwnd_bytes": flow.rwnd_bytes if self.is_tcp(flow) else None,
            "duration_s": duration_s(flow, stop),
            "parameters": self.parameters("generator", flow.generator, system, flow.parameters),
        }
        return tuple({**flow.__dict__, **changed}.values())

    def stop(self, stop: StopPlan | None, flows: Flows) -> Hashable:
        """Return when all traffic is stopped, or None if all flows end before that."""
        if stop is None:
            return None
        return None if ends_before(stop, flows) else stop.after_s, stop.when


def duration_s(flow: FlowPlan, stop: StopPlan | None) -> float | None:
    """Return how long a flow lasts, at most until the stop; None if the flow has no duration."""
    if flow.duration_s is None or stop is None or stop.after_s is None:
        return flow.duration_s
    return min(flow.duration_s, max(stop.after_s - flow.start_s, 0.0))


def ends_before(stop: StopPlan, flows: Flows) -> bool:
    """Return whether every flow has ended when `stop` would end the traffic."""
    ends_s = [flow.start_s + flow.duration_s for flow in flows if flow.duration_s is not None]
    timed = all(flow.duration_s is not None or flow.until is not None for flow in flows)
    return timed and stop.after_s is not None and max(ends_s, default=0.0) <= stop.after_s


def class_of(path: PathPlan, flow: FlowPlan) -> ClassPlan | None:
    """Return the path's class that a flow's packets belong to; None if they take the path's own values."""
    return next((one for one in path.classes if any(_matches(match, flow) for match in one.match)), None)


def _matches(match: MatchPlan, flow: FlowPlan) -> bool:
    """Return whether a match selects the downstream packets of a flow: its data or its answers."""
    data = (flow.from_address, flow.to_address, None, flow.port)
    return any(_is_match(match, *one) for one in (data, (data[1], data[0], data[3], None)))


def _is_match(match: MatchPlan, source: str, sink: str, from_port: int | None, port: int | None) -> bool:
    wanted = ((match.from_port, from_port), (match.port, port))
    return (
        _within(source, match.from_subnet)
        and _within(sink, match.to_subnet)
        and all(one is None or one == own for one, own in wanted)
    )


@cache
def _within(address: str, subnet: str | None) -> bool:
    return subnet is None or ip_address(address) in ip_network(subnet)
