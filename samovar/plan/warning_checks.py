"""Checks that warn about treatments: each has a function, a message, and the values that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf
from operator import attrgetter
from typing import Any

from samovar.experiment import RecipeCatalogue
from samovar.plan.flows import limits_of
from samovar.plan.level_precedence import parameters_of_type
from samovar.plan.model import DirectionPlan, FlowPlan, HostPlan, PathPlan, Resolved
from samovar.plan.path import rtt_of_flow
from samovar.plan.trials import View
from samovar.units import ETHERNET_MTU_BYTES, format_bytes, format_duration, format_rate

FEWEST_RTTS = 20
LEAST_MTU6_BYTES = 1280  # RFC 8200, section 5
LARGEST_WINDOW_BYTES = 1_073_725_440  # 65535 << 14, RFC 7323, section 2.3
ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES = 14, 20, 40
TCP_BYTES, LARGEST_TCP_BYTES = 20, 60  # without options, and with the largest data offset, RFC 9293
DROP_TAIL = ("pfifo", "bfifo")
"""Queues that never mark packets; without marks DCTCP behaves like Reno (RFC 8257, sections 3.3 and 3.4)."""


Find = Callable[[Resolved, RecipeCatalogue], Iterator[str]]


@dataclass(frozen=True)
class TreatmentCheck:
    """A check: the message of its warning, the view of a treatment that it depends on, and its function."""

    message: str
    view: View
    run: Find

    def find(self, resolved: Resolved, catalogue: RecipeCatalogue) -> str | None:
        """Return the details of the first finding, or None without a finding."""
        return next(self.run(resolved, catalogue), None)


CHECKS: list[TreatmentCheck] = []


def _check(message: str, **view: Callable[[Any], Hashable] | None) -> Callable[[Find], Find]:
    """Return a decorator that adds a check to CHECKS: its message, and the view that it depends on."""

    def register(run: Find) -> Find:
        CHECKS.append(TreatmentCheck(message, view, run))
        return run

    return register


# Functions for the views of checks: they return the values on which a check depends


def _of_path(*names: str) -> Callable[[PathPlan | None], Hashable]:
    values = attrgetter(*names)
    return lambda path: path and values(path)


def _window(host: HostPlan) -> Hashable:
    return host.rwnd_bytes, host.role, tuple(host.settings.get("shaper", {}).items())


def _sockets(host: HostPlan) -> Hashable:
    return host.rwnd_bytes, host.mtu_bytes, host.role, tuple(host.settings.get("buffers", {}).items())


_mtu, _duration, _cc = attrgetter("mtu_bytes"), attrgetter("duration_s"), attrgetter("cc", "role")
_mtu_and_rwnd = attrgetter("mtu_bytes", "rwnd_bytes")
_aqms = _of_path("down.aqm", "up.aqm")
_rates_and_rtts = _of_path("down.rate_bps", "up.rate_bps", "rtt_s", "classes")
_queue = ("rate_bps", "buffer_packets", "buffer_bytes")
_queues_and_rtts = _of_path(
    "rtt_s", "classes", *(f"{direction}.{name}" for direction in ("down", "up") for name in _queue)
)


def _time(seconds: float) -> str:
    return format_duration(round(seconds, 3))


def _mtu_bytes(resolved: Resolved) -> int:
    """Return the largest MTU of any host."""
    mtus = [host.mtu_bytes for host in resolved.hosts.values() if host.mtu_bytes is not None]
    return max([*mtus, resolved.mtu_bytes or 0]) or ETHERNET_MTU_BYTES


def _windows(resolved: Resolved) -> list[int]:
    of_hosts = [host.rwnd_bytes for host in resolved.hosts.values()]
    of_flows = [flow.rwnd_bytes for flow in resolved.flows]
    return [rwnd_bytes for rwnd_bytes in of_hosts + of_flows if rwnd_bytes is not None]


def _queues(path: PathPlan | None) -> list[DirectionPlan]:
    return [direction for direction in (path.down, path.up) if direction.rate_bps] if path else []


def _buffer_bytes(direction: DirectionPlan, resolved: Resolved) -> int:
    return direction.buffer_bytes or (direction.buffer_packets or 0) * _mtu_bytes(resolved)


def _direction(path: PathPlan, flow: FlowPlan, resolved: Resolved) -> DirectionPlan:
    """Return the direction of the path that a flow's data takes."""
    return path.up if resolved.direction_of(flow) == "up" else path.down


def _tcp_flows(resolved: Resolved, catalogue: RecipeCatalogue) -> list[FlowPlan]:
    return [
        flow
        for flow in resolved.flows
        if catalogue.transport(flow.generator, resolved.hosts[flow.from_host].system) == "tcp"
    ]


def _is_ipv6(resolved: Resolved) -> bool:
    return any(ip_address(flow.to_address).version == 6 for flow in resolved.flows)


@_check("rwnd is below the path's bandwidth-delay product", path=_rates_and_rtts, hosts=_window, flows=None)
def _below_bdp(resolved: Resolved, catalogue: RecipeCatalogue) -> Iterator[str]:
    path = resolved.path
    if path is None:
        return
    for flow in _tcp_flows(resolved, catalogue):
        rate_bps, rwnd_bytes = _direction(path, flow, resolved).rate_bps, resolved.window_bytes(flow)
        if not rate_bps or rwnd_bytes is None:
            continue
        rtt_s = rtt_of_flow(path, flow)
        if not rtt_s:
            continue
        sender = resolved.hosts[flow.from_host]
        limits = limits_of(flow, sender.system, sender.settings, catalogue)
        if (limits.rate_bps or inf) <= rwnd_bytes * 8 / rtt_s:
            continue  # the flow needs less than its window allows
        product_bytes = int(rate_bps * rtt_s / 8)
        if rwnd_bytes < product_bytes:
            most = format_rate(int(rwnd_bytes * 8 / rtt_s), 3)
            of = f"{format_rate(rate_bps)} x {format_duration(rtt_s)}"
            small, product = format_bytes(rwnd_bytes, 3), format_bytes(product_bytes, 3)
            yield f"{small} against {product} ({of}), so flow '{flow.label}' reaches {most} at most"


@_check("rwnd is beyond TCP's largest window", hosts=_window, flows=None)
def _above_largest(resolved: Resolved, _: RecipeCatalogue) -> Iterator[str]:
    largest = max(_windows(resolved), default=0)
    if largest > LARGEST_WINDOW_BYTES:
        yield f"{format_bytes(largest, 4)} against {format_bytes(LARGEST_WINDOW_BYTES, 4)}"


@_check("rwnd is below two segments", run=_mtu, hosts=_mtu_and_rwnd, flows=None)
def _below_two_segments(resolved: Resolved, _: RecipeCatalogue) -> Iterator[str]:
    mss_bytes = _mtu_bytes(resolved) - IPV4_BYTES - TCP_BYTES
    smallest = min(_windows(resolved), default=2 * mss_bytes)
    if smallest < 2 * mss_bytes:
        yield f"{format_bytes(smallest)} against 2 x {mss_bytes} bytes"


@_check("send buffer is below rwnd", run=_mtu, path=_queues_and_rtts, hosts=_sockets, flows=None)
def _small_send_buffer(resolved: Resolved, catalogue: RecipeCatalogue) -> Iterator[str]:
    path = resolved.path
    for flow in _tcp_flows(resolved, catalogue):
        rwnd_bytes = resolved.window_bytes(flow)
        if rwnd_bytes is None:
            continue
        in_flight_bytes = rwnd_bytes  # at most, before a queue overflows
        if path is not None and (direction := _direction(path, flow, resolved)).rate_bps:
            product_bytes = int(direction.rate_bps * rtt_of_flow(path, flow) / 8)
            in_flight_bytes = min(
                rwnd_bytes, product_bytes + _buffer_bytes(direction, resolved) or rwnd_bytes
            )
        sender = resolved.hosts[flow.from_host]
        declared = catalogue.parameters("setting", "buffers", sender.system) or {}
        sizes = parameters_of_type("size", declared, sender.settings.get("buffers", {}))
        if sizes.get("send_max", in_flight_bytes) < in_flight_bytes:
            send_max, rwnd = format_bytes(sizes["send_max"], 3), format_bytes(rwnd_bytes, 3)
            yield f"send_max {send_max} at {flow.from_host} against rwnd {rwnd}"


@_check("buffer is below one packet", run=_mtu, path=_queues_and_rtts, hosts=_mtu)
def _below_one_packet(resolved: Resolved, _: RecipeCatalogue) -> Iterator[str]:
    frame_bytes = _mtu_bytes(resolved) + ETHERNET_BYTES
    for one in _queues(resolved.path):
        if one.buffer_bytes is not None and one.buffer_bytes < frame_bytes:
            yield f"{format_bytes(one.buffer_bytes)} against {frame_bytes} bytes with the Ethernet header"


@_check(
    f"duration is below {FEWEST_RTTS} RTTs at a full buffer",
    run=_mtu,
    path=_queues_and_rtts,
    hosts=_mtu,
    flows=None,
)
def _below_twenty_rtts(resolved: Resolved, _: RecipeCatalogue) -> Iterator[str]:
    waits_s = sum(_buffer_bytes(one, resolved) * 8 / (one.rate_bps or 1) for one in _queues(resolved.path))
    for flow in resolved.flows:
        full_rtt_s = waits_s + (rtt_of_flow(resolved.path, flow) if resolved.path else 0.0)
        if flow.duration_s is not None and flow.duration_s < FEWEST_RTTS * full_rtt_s:
            least = f"{FEWEST_RTTS} x {_time(full_rtt_s)}"
            yield f"{format_duration(flow.duration_s)} of flow '{flow.label}' against {least}"


@_check("a flow never starts", run=_duration, flows=None)
def _never_starts(resolved: Resolved, _: RecipeCatalogue) -> Iterator[str]:
    for flow in resolved.flows:
        if flow.start_s >= resolved.duration_s:
            start, end = _time(flow.start_s), _time(resolved.duration_s)
            yield f"'{flow.label}' would start at {start}, but all traffic ends at {end}"


@_check("a logger samples only once", run=_duration, loggers=None)
def _samples_once(resolved: Resolved, _: RecipeCatalogue) -> Iterator[str]:
    for logger in resolved.loggers:
        if logger.interval_s is not None and logger.interval_s >= resolved.duration_s:
            interval = f"{logger.logger} at {logger.host} samples every {_time(logger.interval_s)}"
            yield f"{interval}, but all traffic ends at {_time(resolved.duration_s)}"


@_check("dctcp has no queue that marks packets", path=_aqms, hosts=_cc, flows=None)
def _unmarked(resolved: Resolved, catalogue: RecipeCatalogue) -> Iterator[str]:
    for flow in _tcp_flows(resolved, catalogue):
        aqm = _direction(resolved.path, flow, resolved).aqm if resolved.path is not None else None
        if (flow.cc or resolved.hosts[flow.from_host].cc) == "dctcp" and aqm in DROP_TAIL:
            yield f"flow '{flow.label}' passes {aqm}, through which dctcp behaves like newreno"


@_check("snaplen is too short for headers with options", flows=None, captures=None)
def _short_snaplen(resolved: Resolved, _: RecipeCatalogue) -> Iterator[str]:
    ip, ip_bytes = ("IPv6", IPV6_BYTES) if _is_ipv6(resolved) else ("IPv4", IPV4_BYTES)
    needed_bytes = ETHERNET_BYTES + ip_bytes + LARGEST_TCP_BYTES
    of = f"{ETHERNET_BYTES} Ethernet + {ip_bytes} {ip} + {LARGEST_TCP_BYTES} TCP"
    for capture in resolved.captures:
        if capture.snaplen_bytes < needed_bytes:
            yield f"{capture.snaplen_bytes} bytes at {capture.host} against {needed_bytes} ({of})"


@_check("mtu is below the minimum of IPv6", hosts=_mtu, flows=None)
def _small_mtu6(resolved: Resolved, _: RecipeCatalogue) -> Iterator[str]:
    mtus = [host.mtu_bytes for host in resolved.hosts.values() if host.mtu_bytes is not None]
    least = min(mtus, default=LEAST_MTU6_BYTES)
    if least < LEAST_MTU6_BYTES and _is_ipv6(resolved):
        yield f"{least} against {LEAST_MTU6_BYTES} bytes"
