"""The checks behind a plan's warnings: each looks at what one treatment comes to, and says what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from samovar.plan import cache_keys
from samovar.plan.groups import Looks
from samovar.plan.model import DirectionPlan, FlowPlan, PathPlan, Resolved
from samovar.plan.volume import rate_bps_of, way_of
from samovar.units import (
    ETHERNET_MTU_BYTES,
    UnitError,
    format_bytes,
    format_duration,
    format_rate,
    parse_size,
)

FEWEST_RTTS = 20
LEAST_MTU6_BYTES = 1280  # RFC 8200, section 5
LARGEST_WINDOW_BYTES = 1_073_725_440  # 65535 << 14, RFC 7323, section 2.3
ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES = 14, 20, 40
TCP_BYTES, LARGEST_TCP_BYTES = 20, 60  # without options and with all that its data offset can count, RFC 9293
DROP_TAIL = ("pfifo", "bfifo")
"""Queues that never mark, which is all that DCTCP differs by from Reno (RFC 8257, sections 3.3 and 3.4)."""
NETEM_PACKETS = 1000  # what netem holds when nothing else is known, tc-netem(8)


@dataclass(frozen=True, eq=False)
class Check:
    """One thing to look for: what is wrong, what of a trial's components tells, and what that tells."""

    says: str
    looks: Looks
    of: Callable[[Resolved], str | None]


def _small(digits: float) -> float:
    return round(digits, 3)


def _mtu_bytes(resolved: Resolved) -> int:
    """Return the largest MTU of any host."""
    mtus = [host.mtu_bytes for host in resolved.hosts.values() if host.mtu_bytes is not None]
    return max([*mtus, resolved.mtu_bytes or 0]) or ETHERNET_MTU_BYTES


def _windows(resolved: Resolved) -> Iterator[int]:
    yield from (host.rwnd_bytes for host in resolved.hosts.values() if host.rwnd_bytes is not None)
    yield from (flow.rwnd_bytes for flow in resolved.flows if flow.rwnd_bytes is not None)


def _below_bdp(resolved: Resolved) -> str | None:
    path = resolved.path
    if path is None or not path.rtt_s:
        return None
    for flow in resolved.flows:
        rate_bps, rwnd_bytes = _way(path, flow, resolved).rate_bps, resolved.window_bytes(flow)
        if not rate_bps or rwnd_bytes is None or _asks_less(flow, resolved, rwnd_bytes * 8 / path.rtt_s):
            continue
        product_bytes = int(rate_bps * path.rtt_s / 8)
        if rwnd_bytes < product_bytes:
            most = format_rate(int(rwnd_bytes * 8 / path.rtt_s), 3)
            of = f"{format_rate(rate_bps)} x {format_duration(path.rtt_s)}"
            small, product = format_bytes(rwnd_bytes, 3), format_bytes(product_bytes, 3)
            return f"{small} against {product} ({of}), so flow '{flow.label}' reaches {most} at most"
    return None


def _way(path: PathPlan, flow: FlowPlan, resolved: Resolved) -> DirectionPlan:
    """Return the way of the path that a flow's data takes."""
    return path.up if way_of(flow, resolved) == "up" else path.down


def _asks_less(flow: FlowPlan, resolved: Resolved, rate_bps: float) -> bool:
    """Whether a flow has a pace of its own, or a rate that no window of so much keeps it from."""
    own_bps = rate_bps_of(flow, resolved)
    return "interval" in flow.parameters if own_bps is None else own_bps <= rate_bps


def _above_largest(resolved: Resolved) -> str | None:
    largest = max(_windows(resolved), default=0)
    if largest <= LARGEST_WINDOW_BYTES:
        return None
    return f"{format_bytes(largest, 4)} against {format_bytes(LARGEST_WINDOW_BYTES, 4)}"


def _below_two_segments(resolved: Resolved) -> str | None:
    mss_bytes = _mtu_bytes(resolved) - IPV4_BYTES - TCP_BYTES
    smallest = min(_windows(resolved), default=2 * mss_bytes)
    return f"{format_bytes(smallest)} of {mss_bytes} bytes each" if smallest < 2 * mss_bytes else None


def _queues(path: PathPlan | None) -> Iterator[DirectionPlan]:
    yield from (way for way in (path.down, path.up) if way.rate_bps) if path else ()


def _below_one_packet(resolved: Resolved) -> str | None:
    frame_bytes = _mtu_bytes(resolved) + ETHERNET_BYTES
    for way in _queues(resolved.path):
        if way.buffer_bytes is not None and way.buffer_bytes < frame_bytes:
            return f"{format_bytes(way.buffer_bytes)} against {frame_bytes} bytes with the Ethernet header"
    return None


def _unlimited(resolved: Resolved) -> str | None:
    path = resolved.path
    if path is None or any(_queues(path)):
        return None
    delay_s = max(path.down.delay_s, path.up.delay_s)
    if not delay_s:
        return None
    most = format_rate(int(NETEM_PACKETS * _mtu_bytes(resolved) * 8 / delay_s), 3)
    return f"{NETEM_PACKETS} packets for {format_duration(delay_s)}, so {most} and losses beyond it"


def _below_twenty_rtts(resolved: Resolved) -> str | None:
    full_s = _full_rtt_s(resolved)
    for flow in resolved.flows:
        if flow.duration_s is not None and flow.duration_s < FEWEST_RTTS * full_s:
            rtts = f"{FEWEST_RTTS} x {format_duration(_small(full_s))}"
            return f"{format_duration(flow.duration_s)} of flow '{flow.label}' against {rtts}"
    return None


def _full_rtt_s(resolved: Resolved) -> float:
    """Return the RTT when the queues of both ways are full."""
    path, mtu_bytes = resolved.path, _mtu_bytes(resolved)
    waits = [
        (way.buffer_bytes or (way.buffer_packets or 0) * mtu_bytes) * 8 / (way.rate_bps or 1)
        for way in _queues(path)
    ]
    return (path.rtt_s if path else 0.0) + sum(waits)


def _small_sockets(resolved: Resolved) -> str | None:
    for flow in resolved.flows:
        rwnd_bytes = resolved.window_bytes(flow)
        if rwnd_bytes is None:
            continue
        used_bytes = min(rwnd_bytes, _held_bytes(flow, resolved) or rwnd_bytes)
        ends = ((flow.to_host, "receive_max", rwnd_bytes), (flow.from_host, "send_max", used_bytes))
        for host, key, needed_bytes in ends:
            limit_bytes = _socket_bytes(resolved, host, key)
            if limit_bytes is not None and limit_bytes < needed_bytes:
                return f"{key} {format_bytes(limit_bytes, 3)} at {host}, rwnd {format_bytes(rwnd_bytes, 3)}"
    return None


def _held_bytes(flow: FlowPlan, resolved: Resolved) -> int | None:
    """Return what a flow can have in flight before its way's queue overflows; None where nobody knows."""
    way = _way(resolved.path, flow, resolved) if resolved.path is not None else None
    if way is None or resolved.path is None or not way.rate_bps:
        return None
    queue_bytes = way.buffer_bytes or (way.buffer_packets or 0) * _mtu_bytes(resolved)
    return int(way.rate_bps * resolved.path.rtt_s / 8) + queue_bytes


def _never_begins(resolved: Resolved) -> str | None:
    late = [flow for flow in resolved.flows if flow.start_s >= resolved.duration_s]
    if not late:
        return None
    starts, ends = (format_duration(_small(s)) for s in (late[0].start_s, resolved.duration_s))
    return f"'{late[0].label}' at {starts}, traffic ends at {ends}"


def _unmarked(resolved: Resolved) -> str | None:
    for flow in resolved.flows:
        host = resolved.hosts.get(flow.from_host)
        aqm = _way(resolved.path, flow, resolved).aqm if resolved.path is not None else None
        if (flow.cc or (host.cc if host else None)) == "dctcp" and aqm in DROP_TAIL:
            return f"flow '{flow.label}' through {aqm}, where it is as newreno"
    return None


def _socket_bytes(resolved: Resolved, host: str, key: str) -> int | None:
    plan = resolved.hosts.get(host)
    text = plan.settings.get("buffers", {}).get(key) if plan else None
    try:
        return parse_size(text) if text is not None else None
    except UnitError:
        return None  # a value that cannot be read is refused where the recipe is


def _one_port(resolved: Resolved) -> str | None:
    seen: dict[int, FlowPlan] = {}
    for flow in resolved.flows:
        other = seen.setdefault(flow.port, flow)
        if other is not flow:
            return f"'{other.label}' and '{flow.label}' on {flow.port}, which captures cannot tell apart"
    return None


def _short_snaplen(resolved: Resolved) -> str | None:
    six = any(ip_address(flow.to_address).version == 6 for flow in resolved.flows)
    ip, ip_bytes = ("IPv6", IPV6_BYTES) if six else ("IPv4", IPV4_BYTES)
    needed_bytes = ETHERNET_BYTES + ip_bytes + LARGEST_TCP_BYTES
    for capture in resolved.captures:
        if capture.snaplen_bytes < needed_bytes:
            of = f"{ETHERNET_BYTES} Ethernet + {ip_bytes} {ip} + {LARGEST_TCP_BYTES} TCP"
            return f"{capture.snaplen_bytes} bytes at {capture.host} against {needed_bytes} ({of})"
    return None


def _seldom_sampled(resolved: Resolved) -> str | None:
    for logger in resolved.loggers:
        if logger.interval_s is not None and logger.interval_s >= resolved.duration_s:
            every = f"{logger.logger} at {logger.host} every {format_duration(logger.interval_s)}"
            return f"{every} of {format_duration(_small(resolved.duration_s))}"
    return None


def _small_mtu6(resolved: Resolved) -> str | None:
    six = any(ip_address(flow.to_address).version == 6 for flow in resolved.flows)
    mtus = [host.mtu_bytes for host in resolved.hosts.values() if host.mtu_bytes is not None]
    least = min(mtus, default=LEAST_MTU6_BYTES)
    return f"{least} against {LEAST_MTU6_BYTES} bytes" if six and least < LEAST_MTU6_BYTES else None


CHECKS: tuple[Check, ...] = (
    Check(
        "rwnd is below the path's bandwidth-delay product",
        {"path": cache_keys.rate_and_rtt, "hosts": cache_keys.rwnd, "flows": None},
        _below_bdp,
    ),
    Check("rwnd is beyond TCP's largest window", {"hosts": cache_keys.rwnd, "flows": None}, _above_largest),
    Check(
        "rwnd is below two segments",
        {"run": cache_keys.mtu, "hosts": lambda host: (host.mtu_bytes, host.rwnd_bytes), "flows": None},
        _below_two_segments,
    ),
    Check(
        "socket buffers are below rwnd",
        {"run": cache_keys.mtu, "path": cache_keys.times, "hosts": cache_keys.sockets, "flows": None},
        _small_sockets,
    ),
    Check(
        "buffer is below one packet",
        {"run": cache_keys.mtu, "path": cache_keys.queue_sizes, "hosts": cache_keys.mtu},
        _below_one_packet,
    ),
    Check(
        "nothing but netem's own queue limits the path",
        {"run": cache_keys.mtu, "path": cache_keys.delays, "hosts": cache_keys.mtu},
        _unlimited,
    ),
    Check(
        f"duration is below {FEWEST_RTTS} RTTs at a full buffer",
        {"run": cache_keys.mtu, "path": cache_keys.times, "hosts": cache_keys.mtu, "flows": None},
        _below_twenty_rtts,
    ),
    Check("a flow never begins", {"run": cache_keys.duration, "flows": None}, _never_begins),
    Check(
        "dctcp has no queue that marks packets",
        {"path": cache_keys.queues_as, "hosts": cache_keys.sends_as, "flows": None},
        _unmarked,
    ),
    Check("two flows have one port", {"flows": None}, _one_port),
    Check("snaplen is too short for headers with options", {"flows": None, "captures": None}, _short_snaplen),
    Check(
        "a logger samples once at most",
        {"run": lambda run: run.duration_s, "loggers": None},
        _seldom_sampled,
    ),
    Check("mtu is below IPv6's least", {"hosts": cache_keys.mtu, "flows": None}, _small_mtu6),
)
