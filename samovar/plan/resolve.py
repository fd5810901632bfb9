"""From settings and a testbed to everything that a trial needs to know."""

from __future__ import annotations

from collections.abc import Sequence

from samovar.definition.experiment import Capture, Flow, Logger, NetworkPath, Part
from samovar.definition.testbed import Testbed
from samovar.errors import PlanError
from samovar.plan.model import CapturePlan, DirectionPlan, FlowPlan, HostPlan, LoggerPlan, PathPlan, Resolved
from samovar.plan.places import Route, host_of, ports_of, route_of, watched_interface
from samovar.plan.settings import Settings

SLOWEST_BPS = 10_000_000  # taken for the time of a transfer when nothing says how fast the path is
SETTLING_S = 15.0
SHORTEST_RTT_S = 0.001


def resolve(part: Part, settings: Settings, testbed: Testbed) -> Resolved:
    """Resolve one treatment on a testbed; raises PlanError when it cannot run there."""
    routes = [route_of(testbed, flow) for flow in settings.traffic]
    path = _path(settings.path, testbed)
    flows = _flows(settings, routes)
    ends = [_ends(flow, flows, path, settings.rwnd_bytes) for flow in flows]
    return Resolved(
        mtu_bytes=settings.mtu_bytes,
        duration_s=max(end for end, _ in ends),
        deadline_s=max(deadline for _, deadline in ends),
        path=path,
        hosts={name: _host(name, settings, testbed, routes) for name in testbed.hosts},
        flows=tuple(flows),
        captures=_captures(part.captures, testbed, routes),
        loggers=tuple(_logger(logger, testbed, routes) for logger in settings.loggers),
    )


def _path(path: NetworkPath | None, testbed: Testbed) -> PathPlan | None:
    if path is None:
        return None
    if testbed.bottleneck is None:
        message = "has no bottleneck to set a path at; expected one, or no path"
        raise PlanError(f"testbed {testbed.name}: {message}")
    if path.rate_bps is None or path.buffer is None:
        raise PlanError("path: has no rate or no buffer; expected both, as values or factors")
    down = DirectionPlan(
        interface=testbed.bottleneck.to_interface,
        rate_bps=path.rate_bps,
        delay_s=path.rtt_s / 2,
        loss=path.loss,
        aqm=path.aqm,
        buffer_packets=path.buffer.packets,
        buffer_bytes=path.buffer.bytes,
        aqm_parameters=path.parameters,
    )
    up = DirectionPlan(interface=testbed.bottleneck.from_interface, delay_s=path.rtt_s / 2)
    return PathPlan(router=testbed.bottleneck.router, rtt_s=path.rtt_s, down=down, up=up)


def _host(name: str, settings: Settings, testbed: Testbed, routes: Sequence[Route]) -> HostPlan:
    host = testbed.hosts[name]
    sends = any(route.from_host == name for route in routes)
    receives = any(route.to_host == name for route in routes)
    return HostPlan(
        os=host.os,
        role=host.role,
        cc=settings.cc if sends else None,
        rwnd_bytes=settings.rwnd_bytes if receives else None,
        mtu_bytes=settings.mtu_bytes if host.interfaces else None,
        txd=settings.txd if sends else None,
        interfaces=tuple(host.interfaces),
        cc_parameters=settings.cc_parameters if sends else {},
    )


def _flows(settings: Settings, routes: Sequence[Route]) -> list[FlowPlan]:
    ports = ports_of(settings.traffic)
    every = zip(settings.traffic, routes, ports, strict=True)
    return [_flow(flow, route, port, settings.duration_s) for flow, route, port in every]


def _flow(flow: Flow, route: Route, port: int, default_s: float | None) -> FlowPlan:
    duration_s = flow.duration_s if flow.duration_s is not None else default_s
    if flow.size_bytes is None and duration_s is None:
        raise PlanError(f"flow {flow.label}: never ends; expected a size or a duration")
    return FlowPlan(
        label=flow.label,
        group=flow.label,
        generator=flow.generator,
        from_host=route.from_host,
        to_host=route.to_host,
        from_address=route.from_address,
        to_address=route.to_address,
        port=port,
        start_s=flow.start_s,
        duration_s=None if flow.size_bytes is not None else duration_s,
        size_bytes=flow.size_bytes,
        parameters=flow.parameters,
    )


def _ends(
    flow: FlowPlan, flows: Sequence[FlowPlan], path: PathPlan | None, rwnd_bytes: int | None
) -> tuple[float, float]:
    """Return when a flow should have ended and when it must have, in seconds from the trial's start."""
    if flow.duration_s is not None:
        end_s = flow.start_s + flow.duration_s
        return end_s, end_s + SETTLING_S
    transfer_s = _transfer_s(flows, path, rwnd_bytes)
    return flow.start_s + transfer_s, flow.start_s + transfer_s * 2 + 2 * SETTLING_S


def _transfer_s(flows: Sequence[FlowPlan], path: PathPlan | None, rwnd_bytes: int | None) -> float:
    """Return how long all transfers together take on the path, with a quarter to spare and 5 s to begin."""
    rate_bps = float((path and path.down.rate_bps) or SLOWEST_BPS)
    if rwnd_bytes is not None:
        rtt_s = max(path.rtt_s if path else SHORTEST_RTT_S, SHORTEST_RTT_S)
        rate_bps = min(rate_bps, rwnd_bytes * 8 / rtt_s)
    total_bytes = sum(flow.size_bytes or 0 for flow in flows)
    return round(total_bytes * 8 / rate_bps * 1.25 + 5, 3)


def _captures(
    captures: Sequence[Capture], testbed: Testbed, routes: Sequence[Route]
) -> tuple[CapturePlan, ...]:
    plans = tuple(_capture(capture, testbed, routes) for capture in captures)
    places = [(plan.host, plan.interface) for plan in plans]
    for host, interface in places:
        if places.count((host, interface)) > 1:
            raise PlanError(f"captures: {interface} of {host} is captured twice; expected once")
    return plans


def _capture(capture: Capture, testbed: Testbed, routes: Sequence[Route]) -> CapturePlan:
    host = host_of(testbed, capture.at)
    interface = capture.interface or watched_interface(testbed, host, routes)
    return CapturePlan(host=host, interface=interface, snaplen_bytes=capture.snaplen_bytes)


def _logger(logger: Logger, testbed: Testbed, routes: Sequence[Route]) -> LoggerPlan:
    host = host_of(testbed, logger.at)
    return LoggerPlan(
        logger=logger.logger,
        host=host,
        interface=logger.interface or watched_interface(testbed, host, routes),
        interval_s=logger.interval_s,
        parameters=logger.parameters,
    )
