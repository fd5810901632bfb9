"""The components of a trial, each worked out from what the treatment says of it and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from samovar.errors import PlanError
from samovar.experiment import SettingsByHost, hosts_of
from samovar.plan.flows import DIGITS, SHORTEST_RTT_S, SLOWEST_BPS, Traffic, ends_of
from samovar.plan.laid import Laid
from samovar.plan.model import CapturePlan, FlowPlan, HostPlan, LoggerPlan
from samovar.plan.path import path_of, rate_of, rtt_of
from samovar.plan.places import Places, first_of_link, host_of
from samovar.plan.pool import HOST, RunPlan
from samovar.plan.treatments import Reader
from samovar.units import ETHERNET_MTU_BYTES, UnitError, parse_rate

OF_ENDS = ("tcp", "buffers")
"""Setting recipes that mean something at the ends of flows only."""


@dataclass(frozen=True)
class Where:
    """What all treatments of a part have in common beside the part itself."""

    part: str
    places: Places
    settings: SettingsByHost
    seed: int


Component = Callable[[Reader], object]


def components_of(where: Where) -> Mapping[str, Component]:
    """Return how to work out each component of a trial from a treatment's levels; they raise PlanError."""

    def component(make: Callable[[Laid, Traffic], object]) -> Component:
        def of(reader: Reader) -> object:
            laid = Laid(reader, where.places, where.settings, where.part)
            return make(laid, Traffic(laid, where.seed))

        return of

    hosts = {f"{HOST}{name}": component(partial(_host, name)) for name in where.places.testbed.hosts}
    return {
        "run": component(_run),
        "path": component(path_of),
        **hosts,
        "flows": component(lambda _, traffic: traffic.flows()),
        "captures": component(_captures),
        "loggers": component(_loggers),
    }


def _run(laid: Laid, traffic: Traffic) -> RunPlan:
    stop = traffic.stop()
    ends = ends_of(traffic.flows(), stop, partial(_transfer_s, laid))
    hosts = laid.places.testbed.hosts.items()
    mtus = [laid.settings.value("mtu", name) for name, host in hosts if host.interfaces]
    mtu_bytes = min((mtu for mtu in mtus if mtu is not None), default=None)
    held_s = _held_s(laid, traffic, mtu_bytes or ETHERNET_MTU_BYTES)
    deadline_s = max(ends.deadline_s, round(ends.end_s + held_s, DIGITS))
    return RunPlan(mtu_bytes=mtu_bytes, duration_s=ends.end_s, deadline_s=deadline_s, stop=stop)


def _held_s(laid: Laid, traffic: Traffic, mtu_bytes: int) -> float:
    """Return how long what is queued may take to arrive once a flow has sent its last.

    The bottleneck's buffer and a sender's ring, full, drain three times: what was queued, what tells of a
    loss, what is repeated.
    """
    rate_bps = rate_of(laid, "down") if laid.has_path else None
    if not rate_bps:
        return 0.0
    buffer = laid.computed(laid.of_path("buffer", "down"), "path.buffer.down")
    senders = {route.from_host for route in traffic.routes()}
    ring = max((laid.settings.value("txd", host) or 0 for host in senders), default=0)
    queued_bytes = 0 if buffer is None else buffer.bytes or (buffer.packets or 0) * mtu_bytes
    return float(3 * 8 * (queued_bytes + ring * mtu_bytes) / rate_bps)


def _transfer_s(laid: Laid, flows: Sequence[FlowPlan]) -> float:
    """Return how long all transfers together take on the path, with a quarter to spare and 5 s to begin."""
    sized = ((flow.size_bytes * 8, flow) for flow in flows if flow.size_bytes is not None)
    return round(sum(bits / _rate_bps(laid, flow) for bits, flow in sized) * 1.25 + 5, 3)


def _rate_bps(laid: Laid, flow: FlowPlan) -> float:
    """Return the rate that a flow can have: the path's, that of its window, or what it is limited to."""
    route = laid.places.route(flow.from_host, flow.to_host)
    ways = ("up", "down") if route is not None and route.goes_up else ("down", "up")
    known = [rate for way in ways if laid.has_path and (rate := rate_of(laid, way)) is not None]
    rate_bps = float(min([known[0] if known else SLOWEST_BPS, *_limits_bps(laid, flow)]))
    rwnd_bytes = flow.rwnd_bytes if flow.rwnd_bytes is not None else laid.settings.value("rwnd", flow.to_host)
    if rwnd_bytes is None:
        return rate_bps
    rtt_s = max(rtt_of(laid) if laid.has_path else SHORTEST_RTT_S, SHORTEST_RTT_S)
    return min(rate_bps, rwnd_bytes * 8 / rtt_s)


def _limits_bps(laid: Laid, flow: FlowPlan) -> Iterator[int]:
    """Yield the rates among a flow's parameters, and that of its sender's shaper."""
    shaper = laid.settings.parameters(flow.from_host).get("shaper", {})
    for text in (*flow.parameters.values(), *shaper.values()):
        try:
            yield parse_rate(text)
        except UnitError:
            continue  # what is no rate limits nothing


def _host(name: str, laid: Laid, traffic: Traffic) -> HostPlan:
    host = laid.places.testbed.hosts[name]
    routes = traffic.routes()
    sends = any(route.from_host == name for route in routes)
    receives = any(route.to_host == name for route in routes)
    where = {"cc": sends, "txd": sends, "rwnd": receives, "mtu": bool(host.interfaces)}
    known = {
        key: laid.settings.value(key, name) if there or laid.settings.names_host(key, name) else None
        for key, there in where.items()
    }
    settings = laid.settings.parameters(name) if host.interfaces else {}
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


def _captures(laid: Laid, traffic: Traffic) -> tuple[CapturePlan, ...]:
    routes = traffic.routes()
    plans = tuple(
        CapturePlan(
            host=host,
            interface=capture.interface or laid.places.watched_interface(host, routes),
            snaplen_bytes=capture.snaplen_bytes,
        )
        for capture in laid.part.captures
        for host in _at(laid, capture.at)
    )
    places = [(plan.host, plan.interface) for plan in plans]
    for host, interface in places:
        if places.count((host, interface)) > 1:
            raise PlanError(f"captures: {interface} of {host} is captured twice; expected once")
    return plans


def _loggers(laid: Laid, traffic: Traffic) -> tuple[LoggerPlan, ...]:
    routes = traffic.routes()
    asked = tuple(
        LoggerPlan(
            logger=logger.logger,
            host=host,
            interface=logger.interface or laid.places.watched_interface(host, routes),
            interval_s=laid.interval_s(logger),
            parameters=laid.logger_parameters(logger),
        )
        for logger in laid.part.loggers
        for host in _at(laid, logger.at)
    )
    return (*asked, *_truth(laid))


def _truth(laid: Laid) -> Iterator[LoggerPlan]:
    """Yield what records a lab's adapters, where they are the bottleneck: they know what others must find."""
    testbed = laid.places.testbed
    host = first_of_link(testbed) if testbed.lab is not None and laid.has_path else None
    if testbed.device is None or host is None:
        return
    interfaces = testbed.hosts[host].interfaces.items()
    interface = next(name for name, one in interfaces if one.link == testbed.bottleneck_link)
    link = {"link": str(testbed.bottleneck_link)}
    yield LoggerPlan(logger="adapter", host=host, interface=interface, parameters=link)


def _at(laid: Laid, at: tuple[str, ...]) -> tuple[str, ...]:
    """Return the hosts where something is recorded; raises PlanError for a name that means none."""
    testbed = laid.places.testbed
    return tuple(host for name in at for host in hosts_of(testbed, name) or (host_of(testbed, name),))
