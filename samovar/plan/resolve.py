"""Resolve the treatments of a part: each component once for each combination of the levels that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from samovar.errors import PlanError
from samovar.experiment import SettingsByHost
from samovar.plan.cost import rates_bps
from samovar.plan.flows import DIGITS, SHORTEST_RTT_S, SLOWEST_BPS, FlowResolver, ends_of
from samovar.plan.level_precedence import LevelReader, Levels, TreatmentValues
from samovar.plan.matrix import Matrix, Row
from samovar.plan.model import CapturePlan, FlowPlan, HostPlan, LoggerPlan, RunPlan
from samovar.plan.path import path_of, rate_of, rtt_of
from samovar.plan.placement import Placement, first_of_link
from samovar.plan.trials import HOST, Component, Components, Treatments
from samovar.units import ETHERNET_MTU_BYTES

OF_ENDS = ("tcp", "buffers")
"""Setting recipes that have an effect at the ends of flows only."""

Resolver = Callable[[TreatmentValues, FlowResolver], object]
"""Returns the value of a component in one treatment; raises PlanError."""


@dataclass(frozen=True)
class PartContext:
    """What all treatments of a part have in common beside the part itself."""

    name: str
    placement: Placement
    settings: SettingsByHost
    seed: int


def resolvers_of(placement: Placement) -> Mapping[str, Resolver]:
    """Return the function that resolves each component of a trial, by name."""
    return {
        "run": _run,
        "path": path_of,
        **{f"{HOST}{name}": partial(_host, name) for name in placement.testbed.hosts},
        "flows": lambda _, traffic: traffic.flows(),
        "captures": _captures,
        "loggers": _loggers,
    }


def resolve_part(context: PartContext, matrix: Matrix, replicates: int, components: Components) -> Treatments:
    """Return the resolved treatments of a part; raises PlanError for those that cannot run on the testbed."""
    resolution = _Resolution(context, matrix, Levels(matrix), replicates, components)
    resolvers = resolvers_of(context.placement)
    return Treatments(
        part=context.name,
        factors={factor.name: factor.labels for factor in matrix.factors},
        levels=matrix.rows,
        components={name: resolution.columns(name, resolver) for name, resolver in resolvers.items()},
    )


@dataclass(frozen=True)
class _Resolution:
    context: PartContext
    matrix: Matrix
    levels: Levels
    replicates: int
    components: Components

    def columns(self, name: str, resolver: Resolver) -> Sequence[Sequence[Component]]:
        """Return the column of a component, or one for each replicate if it contains random values.

        Which factors it depends on is found by resolving it: those that are read. Whenever a further one is
        read, the component is resolved anew for each combination of all of them.
        """
        depends: tuple[int, ...] = ()
        while True:
            keys = [tuple(row[factor] for factor in depends) for row in self.matrix.rows]
            by_key, read, random = self._resolve(name, resolver, depends, sorted(set(keys)), 1)
            if read <= set(depends):
                break
            depends = tuple(sorted({*depends, *read}))
        columns = [[by_key[key] for key in keys]]
        for replicate in range(2, self.replicates + 1) if random else ():
            by_key, _, _ = self._resolve(name, resolver, depends, sorted(set(keys)), replicate)
            columns.append([by_key[key] for key in keys])
        return columns

    def _resolve(
        self, name: str, resolver: Resolver, depends: Sequence[int], keys: Sequence[Row], replicate: int
    ) -> tuple[dict[Row, Component], set[int], bool]:
        """Resolve a component for combinations of the levels of the factors that it `depends` on.

        Return it by combination, the factors that were read, and whether it contains random values; stop at
        the first combination in which a factor is read that it does not depend on.
        """
        found: dict[Row, Component] = {}
        read, random = set[int](), False
        for key in keys:
            row = [0] * len(self.matrix.factors)
            for factor, level in zip(depends, key, strict=True):
                row[factor] = level
            reader = LevelReader(self.levels, tuple(row), replicate)
            context = self.context
            values = TreatmentValues(reader, context.placement, context.settings, context.name)
            try:
                value = resolver(values, FlowResolver(values, context.seed))
            except PlanError:
                if reader.read <= set(depends):
                    raise
            read |= reader.read
            if not reader.read <= set(depends):
                break  # also after an error: no treatment need have level 0 of the factor that was read
            random = random or reader.random
            found[key] = self.components.add(name, value)
        return found, read, random


def _run(values: TreatmentValues, traffic: FlowResolver) -> RunPlan:
    stop = traffic.stop()
    ends = ends_of(traffic.flows(), stop, partial(_transfer_s, values))
    hosts = values.testbed.hosts.items()
    mtus = [values.setting("mtu", name) for name, host in hosts if host.interfaces]
    mtu_bytes = min((mtu for mtu in mtus if mtu is not None), default=None)
    drain_s = _drain_s(values, traffic, mtu_bytes or ETHERNET_MTU_BYTES)
    deadline_s = max(ends.deadline_s, round(ends.end_s + drain_s, DIGITS))
    return RunPlan(mtu_bytes=mtu_bytes, duration_s=ends.end_s, deadline_s=deadline_s, stop=stop)


def _drain_s(values: TreatmentValues, traffic: FlowResolver, mtu_bytes: int) -> float:
    """Return how long queued data may take to arrive after a flow has sent its last packet, in seconds.

    The full buffer of the bottleneck and the full ring of a sender drain three times: the queued data, the
    packets that reveal a loss, the retransmissions.
    """
    rate_bps = rate_of(values, "down") if values.has_path else None
    if not rate_bps:
        return 0.0
    buffer = values.path("buffer", "down")
    senders = {route.from_host for route in traffic.routes()}
    ring = max((values.setting("txd", host) or 0 for host in senders), default=0)
    queued_bytes = 0 if buffer is None else buffer.bytes or (buffer.packets or 0) * mtu_bytes
    return float(3 * 8 * (queued_bytes + ring * mtu_bytes) / rate_bps)


def _transfer_s(values: TreatmentValues, flows: Sequence[FlowPlan]) -> float:
    """Return how long all transfers take together on the path in seconds, plus a quarter and 5 s to begin."""
    sized = ((flow.size_bytes * 8, flow) for flow in flows if flow.size_bytes is not None)
    return round(sum(bits / _rate_bps(values, flow) for bits, flow in sized) * 1.25 + 5, 3)


def _rate_bps(values: TreatmentValues, flow: FlowPlan) -> float:
    """Return the rate that a flow can reach in bit/s, by the path, its window and the limits that are set."""
    route = values.placement.route(flow.from_host, flow.to_host)
    directions = ("up", "down") if route is not None and "up" in route.directions else ("down", "up")
    path_rates = [rate_of(values, direction) for direction in directions if values.has_path]
    path_bps = next((rate for rate in path_rates if rate is not None), SLOWEST_BPS)
    shaper = values.setting_parameters(flow.from_host).get("shaper", {})
    rate_bps = float(min([path_bps, *rates_bps((*flow.parameters.values(), *shaper.values()))]))
    rwnd_bytes = flow.rwnd_bytes if flow.rwnd_bytes is not None else values.setting("rwnd", flow.to_host)
    if rwnd_bytes is None:
        return rate_bps
    rtt_s = max(rtt_of(values) if values.has_path else SHORTEST_RTT_S, SHORTEST_RTT_S)
    return min(rate_bps, rwnd_bytes * 8 / rtt_s)


def _host(name: str, values: TreatmentValues, traffic: FlowResolver) -> HostPlan:
    host = values.testbed.hosts[name]
    routes = traffic.routes()
    sends = any(route.from_host == name for route in routes)
    receives = any(route.to_host == name for route in routes)
    needed = {"cc": sends, "txd": sends, "rwnd": receives, "mtu": bool(host.interfaces)}
    known = {
        key: values.setting(key, name) if need or values.names_host(key, name) else None
        for key, need in needed.items()
    }
    settings = values.setting_parameters(name) if host.interfaces else {}
    cc_parameters = settings.pop("cc", {})
    for recipe in OF_ENDS:
        if not sends and not receives:
            settings.pop(recipe, None)
    return HostPlan(
        os=host.os,
        release=host.release,
        role=host.role,
        cc=known["cc"],
        rwnd_bytes=known["rwnd"],
        mtu_bytes=known["mtu"],
        txd=known["txd"],
        interfaces=tuple(host.interfaces),
        cc_parameters=cc_parameters if known["cc"] is not None or sends else {},
        settings=settings,
    )


def _captures(values: TreatmentValues, traffic: FlowResolver) -> tuple[CapturePlan, ...]:
    routes = traffic.routes()
    plans = tuple(
        CapturePlan(
            host=host,
            interface=capture.interface or values.placement.watched_interface(host, routes),
            snaplen_bytes=capture.snaplen_bytes,
        )
        for capture in values.part.captures
        for name in capture.at
        for host in values.placement.hosts(name)
    )
    places = [(plan.host, plan.interface) for plan in plans]
    for host, interface in places:
        if places.count((host, interface)) > 1:
            raise PlanError(f"captures: {interface} of {host} is captured twice; remove one of the two")
    return plans


def _loggers(values: TreatmentValues, traffic: FlowResolver) -> tuple[LoggerPlan, ...]:
    routes = traffic.routes()
    own = tuple(
        LoggerPlan(
            logger=logger.logger,
            host=host,
            interface=logger.interface or values.placement.watched_interface(host, routes),
            interval_s=values.interval_s(logger),
            parameters=values.logger_parameters(logger),
        )
        for logger in values.part.loggers
        for name in logger.at
        for host in values.placement.hosts(name)
    )
    return (*own, *_adapter_logger(values))


def _adapter_logger(values: TreatmentValues) -> Iterator[LoggerPlan]:
    """Yield the logger of a lab's adapters if they are the bottleneck: it records the true queue."""
    testbed = values.testbed
    host = first_of_link(testbed) if testbed.lab is not None and values.has_path else None
    if testbed.device is None or host is None:
        return
    interfaces = testbed.hosts[host].interfaces.items()
    interface = next(name for name, one in interfaces if one.link == testbed.bottleneck_link)
    link = {"link": str(testbed.bottleneck_link)}
    yield LoggerPlan(logger="adapter", host=host, interface=interface, parameters=link)
