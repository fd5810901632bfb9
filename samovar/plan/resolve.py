"""Resolve the treatments of a part: expand its factors, and compute the values that each trial uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import Testbed, keys
from samovar.plan.flows import DIGITS, air_bps, ends_of, flows_of, limits_of, routes_of, stop_of, stream_of
from samovar.plan.level_precedence import PartContext, Row, TreatmentError, TreatmentValues
from samovar.plan.model import CapturePlan, FlowPlan, HostPlan, LoggerPlan, PathPlan, RunPlan, WlanPlan
from samovar.plan.path import DIRECTIONS, path_of, rtt_of_flow
from samovar.plan.placement import Route, first_of_link
from samovar.plan.trials import HOST, Component, Components, DesignError, Treatments
from samovar.units import ETHERNET_MTU_BYTES

SLOWEST_BPS = 10_000_000  # assumed for the time of a transfer if the rate of the path is unknown
SHORTEST_RTT_S = 0.001
OF_ENDS = ("tcp", "buffers")
"""Recipes of settings that have an effect only at the ends of flows."""

Resolver = Callable[[TreatmentValues], object]
"""A function that returns the value of a component in one treatment; raises PlanError."""


def matrix_of(name: str, part: keys.Part) -> tuple[tuple[keys.Factor, ...], Sequence[Row]]:
    """Return the factors of a part and its treatments: combinations of levels, after `exclude` and `include`.

    The last factor varies fastest, and included treatments come last. Levels that occur only in `include`
    follow the factor's own levels. Raises DesignError if no treatment is left.
    """
    factors = tuple(part.factors.values())
    rows: list[Row] = list(product(*(range(len(factor.levels)) for factor in factors)))
    for line in part.exclude:
        wanted = [line.get(factor.name, factor.labels) for factor in factors]
        pairs = list(zip(factors, wanted, strict=True))
        matching = [{n for n, label in enumerate(one.labels) if label in labels} for one, labels in pairs]
        rows = [row for row in rows if not all(map(set.__contains__, matching, row))]
    levels = {factor.name: list(factor.levels) for factor in factors}
    for included in part.include:
        for factor_name, level in included.items():
            if level not in levels[factor_name]:
                levels[factor_name].append(level)
        rows.append(tuple(levels[one].index(level) for one, level in included.items()))
    if not rows:
        raise DesignError(name, ("exclude",), "every treatment is excluded; at least one must be left")
    return tuple(replace(factor, levels=tuple(levels[factor.name])) for factor in factors), rows


def resolve_part(
    context: PartContext, rows: Sequence[Row], replicates: int, components: Components
) -> Treatments:
    """Return the resolved treatments of a part.

    Raises PlanError for treatments that cannot run on the testbed.
    """
    resolvers: Mapping[str, Resolver] = {
        "run": _run,
        "path": path_of,
        **{f"{HOST}{name}": partial(_host, name) for name in context.placement.testbed.hosts},
        "flows": flows_of,
        "captures": _captures,
        "loggers": _loggers,
    }
    return Treatments(
        part=context.name,
        factors={factor.name: factor.labels for factor in context.factors},
        levels=rows,
        components={
            name: _columns(context, rows, replicates, resolver, partial(components.add, name))
            for name, resolver in resolvers.items()
        },
    )


def _columns(
    context: PartContext,
    rows: Sequence[Row],
    replicates: int,
    resolver: Resolver,
    share: Callable[[object], Component],
) -> Sequence[Sequence[Component]]:
    """Return the column of a component, or one for each replicate if it contains random values.

    A component depends on the factors that are read while it is resolved. When a further factor is read, the
    component is resolved again for each combination of levels of all factors read so far.
    """
    levels = list(zip(*rows, strict=True))
    depends: tuple[int, ...] = ()
    columns: list[Sequence[Component]] = []
    while len(columns) < replicates:
        used: list[Row] = list(zip(*(levels[factor] for factor in depends), strict=True)) or [()] * len(rows)
        found: dict[Row, Component] = {}
        read, random = set(depends), False
        for key in sorted(set(used)):
            row = [0] * len(context.factors)
            for factor, level in zip(depends, key, strict=True):
                row[factor] = level
            values = TreatmentValues(context, tuple(row), len(columns) + 1)
            try:
                value = resolver(values)
            except PlanError:
                if values.read <= read:
                    raise
            read |= values.read
            if len(read) > len(depends):
                break  # also after an error: perhaps no treatment has level 0 of a newly read factor
            random = random or values.random
            found[key] = share(value)
        if len(read) > len(depends):
            depends = tuple(sorted(read))
            continue
        columns.append([found[key] for key in used])
        if not random:
            break
    return columns


def _run(values: TreatmentValues) -> RunPlan:
    stop, flows = stop_of(values), flows_of(values)
    values.check_windows(flows)
    ends = ends_of(values, flows, stop, partial(_transfer_s, values))
    hosts = values.testbed.hosts.items()
    mtus = [values.setting("mtu", name) for name, host in hosts if host.interfaces]
    mtu_bytes = min((mtu for mtu in mtus if mtu is not None), default=None)
    drain_s = _drain_s(values, mtu_bytes or ETHERNET_MTU_BYTES)
    deadline_s = max(ends.deadline_s, round(ends.end_s + drain_s, DIGITS))
    return RunPlan(mtu_bytes=mtu_bytes, duration_s=ends.end_s, deadline_s=deadline_s, stop=stop)


def _drain_s(values: TreatmentValues, mtu_bytes: int) -> float:
    """Return how long queued data may take to arrive after a flow has sent its last packet, in seconds.

    The bottleneck's buffer and the sender's ring, both full, must empty three times: for the queued data, for
    the packets that reveal a loss, and for the retransmissions. If both directions have a rate, the result is
    the longer of their times.
    """
    rates_bps = {one: rate_bps for one in DIRECTIONS if (rate_bps := values.path("rate", one))}
    if not rates_bps:
        return 0.0
    senders = {route.from_host for route in routes_of(values)}
    ring = max((values.setting("txd", host) or 0 for host in senders), default=0)
    drains_s = []
    for direction, rate_bps in rates_bps.items():
        buffer = values.path("buffer", direction)
        queued_bytes = 0 if buffer is None else buffer.bytes or (buffer.packets or 0) * mtu_bytes
        drains_s.append(float(3 * 8 * (queued_bytes + ring * mtu_bytes) / rate_bps))
    return max(drains_s)


def _transfer_s(values: TreatmentValues, flows: Sequence[FlowPlan]) -> float:
    """Return the time in seconds for all transfers one after the other, plus 25 %, plus 5 s for the start."""
    sized = ((flow.size_bytes * 8, flow) for flow in flows if flow.size_bytes is not None)
    path = path_of(values)
    return round(sum(bits / _rate_bps(values, path, flow) for bits, flow in sized) * 1.25 + 5, 3)


def _rate_bps(values: TreatmentValues, path: PathPlan | None, flow: FlowPlan) -> float:
    """Return the rate in bit/s that a flow can reach, limited by path, WLANs, window, program and shaper."""
    route = values.placement.route(flow.from_host, flow.to_host)
    directions = ("up", "down") if route is not None and "up" in route.directions else ("down", "up")
    path_bps = next(filter(None, (values.path("rate", one) for one in directions)), SLOWEST_BPS)
    sender, settings = values.testbed.hosts[flow.from_host], values.setting_parameters(flow.from_host)
    limits = limits_of(flow, sender.system, settings, values.context.catalogue)
    own_bps = filter(None, (limits.rate_bps, limits.periodic_bps))
    rate_bps = float(min([path_bps, *own_bps, *_on_air_bps(values.testbed, route)]))
    rwnd_bytes = flow.rwnd_bytes if flow.rwnd_bytes is not None else values.setting("rwnd", flow.to_host)
    if rwnd_bytes is None:
        return rate_bps
    rtt_s = rtt_of_flow(path, flow) if path is not None else 0.0
    return min(rate_bps, rwnd_bytes * 8 / max(rtt_s, SHORTEST_RTT_S))


def _on_air_bps(testbed: Testbed, route: Route | None) -> Iterator[float]:
    """Yield the rate in bit/s of each WLAN at an end of a route."""
    ends = ((route.from_host, route.from_interface), (route.to_host, route.to_interface)) if route else ()
    for host, interface in ends:
        entry = testbed.links.get(testbed.hosts[host].interfaces[interface].link)
        if entry is not None and entry.wlan is not None:
            yield air_bps(entry.wlan.standard, entry.wlan.rate_bps, ETHERNET_MTU_BYTES)


def _host(name: str, values: TreatmentValues) -> HostPlan:
    host, routes = values.testbed.hosts[name], routes_of(values)
    sends = any(route.from_host == name for route in routes)
    receives = any(route.to_host == name for route in routes)
    needed = {"cc": sends, "txd": sends, "rwnd": receives, "mtu": bool(host.interfaces)}
    known = {
        key: values.setting(key, name) if need or values.names_host(key, name) else None
        for key, need in needed.items()
    }
    settings = values.setting_parameters(name) if host.interfaces else {}
    cc_parameters = settings.pop("cc", {})
    if known["cc"] is None and not sends:
        cc_parameters = {}
    if known["cc"] is None and cc_parameters:
        parameter, text = next(iter(cc_parameters.items()))
        message = f"cc.{parameter} has no effect at {name}, whose `cc` is not set; set `cc` as well"
        raise TreatmentError(values.context.name, f"cc.{parameter}", text, message)
    if not sends and not receives:
        settings = {recipe: one for recipe, one in settings.items() if recipe not in OF_ENDS}
    values.check_settings(name, settings)
    return HostPlan(
        os=host.os,
        release=host.release,
        role=host.role,
        cc=known["cc"],
        rwnd_bytes=known["rwnd"],
        mtu_bytes=known["mtu"],
        txd=known["txd"],
        interfaces=tuple(host.interfaces),
        cc_parameters=cc_parameters,
        settings=settings,
        wlans=tuple(_wlans(name, values)),
    )


def _wlans(host: str, values: TreatmentValues) -> Iterator[WlanPlan]:
    """Yield the WLANs of a lab whose access point is this host."""
    for link, entry in values.testbed.links.items() if values.testbed.lab else ():
        if entry.wlan is None or keys.access_point(values.testbed, link) != host:
            continue
        stations = (name for name in keys.hosts_at(values.testbed, link) if name != host)
        yield WlanPlan(
            link=link,
            hosts=(host, *stations),
            standard=entry.wlan.standard,
            rate_bps=entry.wlan.rate_bps,
            seed=stream_of(values, f"link {link}").generator().getrandbits(32),
        )


def _placed(values: TreatmentValues, key: str, entries: Sequence[Any]) -> Iterator[tuple[Any, str, str]]:
    """Yield (entry, host, interface) for each host of each entry of `captures` or `loggers`.

    Raises TreatmentError if an interface is captured twice, or a logger runs twice at a host.
    """
    routes, seen = routes_of(values), set[tuple[str, str]]()
    for entry in entries:
        for name in entry.at:
            for host in values.placement.hosts(name):
                interface = values.placement.watched_interface(host, entry.interface, routes)
                what = interface if key == "captures" else values.recorder(entry, host)
                if (what, host) in seen:
                    message = f"{key}: {what} at {host} is recorded twice; remove one of the entries"
                    raise TreatmentError(values.context.name, f"{key} at", name, message)
                seen.add((what, host))
                yield entry, host, interface


def _captures(values: TreatmentValues) -> tuple[CapturePlan, ...]:
    return tuple(
        CapturePlan(host=host, interface=interface, snaplen_bytes=capture.snaplen_bytes)
        for capture, host, interface in _placed(values, "captures", values.part.captures)
    )


def _loggers(values: TreatmentValues) -> tuple[LoggerPlan, ...]:
    own = tuple(
        LoggerPlan(
            logger=values.recorder(logger, host),
            host=host,
            interface=interface,
            interval_s=values.interval_s(logger, host),
            parameters=values.logger_parameters(logger, host),
        )
        for logger, host, interface in _placed(values, "loggers", values.part.loggers)
    )
    return (*own, *_adapter_logger(values), *_wlan_loggers(values))


def _adapter_logger(values: TreatmentValues) -> Iterator[LoggerPlan]:
    """If adapters of a lab are the bottleneck, yield the logger that records their true queue length."""
    testbed = values.testbed
    host = first_of_link(testbed) if testbed.lab is not None and values.context.path is not None else None
    if testbed.device is None or host is None:
        return
    interfaces = testbed.hosts[host].interfaces.items()
    interface = next(name for name, one in interfaces if one.link == testbed.bottleneck_link)
    link = {"link": str(testbed.bottleneck_link)}
    yield LoggerPlan(logger="adapter", host=host, interface=interface, parameters=link)


def _wlan_loggers(values: TreatmentValues) -> Iterator[LoggerPlan]:
    """Yield the loggers of a lab's WLANs, which record what happens on the medium."""
    testbed = values.testbed
    for link, entry in testbed.links.items() if testbed.lab else ():
        host = keys.access_point(testbed, link)
        if entry.wlan is None or host is None:
            continue
        interface = next(name for name, one in testbed.hosts[host].interfaces.items() if one.link == link)
        yield LoggerPlan(logger="air", host=host, interface=interface, parameters={"link": link})
