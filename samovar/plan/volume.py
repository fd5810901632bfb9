"""What one trial leaves on disks: packets by the flows that a host sees, samples by a logger's rows.

Set against 25 trials of the lab (one TCP flow; files under a limit; UDP both ways, with pings beside it), an
estimate is between 0.75 and 1.7 times what was kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from samovar.plan.model import CapturePlan, DirectionPlan, FlowPlan, LoggerPlan, Resolved
from samovar.units import ETHERNET_MTU_BYTES, UnitError, parse_count, parse_duration, parse_rate, parse_size

PCAP_RECORD_BYTES = 16
ETHERNET_BYTES, IP_UDP_BYTES = 14, 28
HEADERS_BYTES = 128
"""What of a packet compresses; the data behind it need not."""
SAMPLE_INTERVAL_S = 0.01
SAMPLE_BYTES = 160  # one row of a sampler's CSV for one connection, before compression
LINE_BYTES: Mapping[str, int] = {"siftr": 160, "tcp-probe": 160}
"""Loggers that write a line for each packet, and how long that is."""
COMPRESSION = 3.5  # gzip of captures cut to headers and of CSV: measured between 2.4 and 6
BESIDE_BYTES = 90_000  # a host's share of manifest, facts, commands and logs
ACKS_PER_PACKET = 0.5
DEFAULT_RATE_BPS = 100_000_000
WAYS = ("down", "up")
Parse = Callable[[str], float]
ENDS = ("sender", "receiver")
"""Roles of hosts that see their own flows only; a router or an observer sees all."""


@dataclass(frozen=True)
class Offered:
    """What one flow offers to its way: packets of so many bytes, and how many come back for each."""

    flow: FlowPlan
    way: str
    packets: float
    packet_bytes: int
    answers: float
    paced: bool

    def touches(self, host: str) -> bool:
        """Whether the flow begins or ends at a host."""
        return host in (self.flow.from_host, self.flow.to_host)


def host_bytes(resolved: Resolved) -> Mapping[str, int]:
    """Estimate the most that one trial leaves on each host: captures compressed as they come, samples not."""
    found: dict[str, float] = {}
    offers = list(offers_of(resolved))
    for capture in resolved.captures:
        size = _captured(capture, resolved, offers, most=True)
        found[capture.host] = found.get(capture.host, 0) + size
    for logger in resolved.loggers:
        found[logger.host] = found.get(logger.host, 0) + _sampled(logger, resolved, offers)
    return {host: int(size) for host, size in found.items()}


def kept_bytes(resolved: Resolved) -> int:
    """Estimate what is kept of one trial here: captures and samples, compressed, and how it was done."""
    offers = list(offers_of(resolved))
    captured = sum(_captured(capture, resolved, offers, most=False) for capture in resolved.captures)
    sampled = sum(_sampled(logger, resolved, offers) for logger in resolved.loggers)
    return int(captured + sampled / COMPRESSION + BESIDE_BYTES * len(resolved.hosts))


def offers_of(resolved: Resolved) -> Iterator[Offered]:
    """Yield what each flow offers: by its own rate or pace, its size, or all that the way can carry."""
    for flow in resolved.flows:
        interval_s = _parameter(flow, "interval", parse_duration)
        rate_bps = rate_bps_of(flow, resolved)
        if rate_bps is None and interval_s:
            yield _of_pings(flow, resolved, interval_s)
        else:
            yield _of_data(flow, resolved, rate_bps)


def _of_pings(flow: FlowPlan, resolved: Resolved, interval_s: float) -> Offered:
    """Return what one packet an interval comes to, each answered; in fragments where it is too long."""
    mtu_bytes = resolved.mtu_bytes or ETHERNET_MTU_BYTES
    length_bytes = int(_parameter(flow, "length", parse_size) or 0) + IP_UDP_BYTES
    pieces = max(1, -(-length_bytes // mtu_bytes))
    packets = pieces * active_s_of(flow, resolved) / interval_s
    return Offered(flow, way_of(flow, resolved), packets, min(mtu_bytes, length_bytes), 1.0, True)


def _of_data(flow: FlowPlan, resolved: Resolved, rate_bps: float | None) -> Offered:
    way, packet_bytes, answers = (
        way_of(flow, resolved),
        resolved.mtu_bytes or ETHERNET_MTU_BYTES,
        ACKS_PER_PACKET,
    )
    length_bytes = _parameter(flow, "length", parse_size)
    if rate_bps is not None and length_bytes:  # UDP: packets of its own size, and nobody answers
        packet_bytes, answers = min(packet_bytes, int(length_bytes) + IP_UDP_BYTES), 0.0
    offered_bytes = (rate_bps or link_bps(resolved, way)) * active_s_of(flow, resolved) / 8
    if flow.size_bytes is not None:
        offered_bytes = min(offered_bytes, flow.size_bytes)
    return Offered(flow, way, offered_bytes / packet_bytes, packet_bytes, answers, rate_bps is not None)


def way_of(flow: FlowPlan, resolved: Resolved) -> str:
    """Name the way that a flow's data takes through the path: up from a receiver, down from any other."""
    host = resolved.hosts.get(flow.from_host)
    return "up" if host is not None and host.role == "receiver" else "down"


def active_s_of(flow: FlowPlan, resolved: Resolved) -> float:
    """Return how long a flow can send, in seconds."""
    left_s = max(0.0, resolved.duration_s - flow.start_s)
    return left_s if flow.duration_s is None else min(flow.duration_s, left_s)


def rate_bps_of(flow: FlowPlan, resolved: Resolved) -> float | None:
    """Return the rate that a flow's parameters or its sender's shaper hold it to; None for none."""
    host = resolved.hosts.get(flow.from_host)
    shaper = host.settings.get("shaper", {}) if host is not None else {}
    own = [rate for text in flow.parameters.values() if (rate := _read(text, parse_rate))]
    held = [rate for text in shaper.values() if (rate := _read(text, parse_rate))]
    streams = _parameter(flow, "streams", parse_count) or 1
    limits = [*(rate * streams for rate in own), *held]
    return min(limits) if limits else None


def link_bps(resolved: Resolved, way: str) -> float:
    """Return the rate of a way of the path, of the other where it has none, or that of Fast Ethernet."""
    path = resolved.path
    ways: list[DirectionPlan] = [path.down, path.up] if path else []
    ordered = ways if way == "down" else ways[::-1]
    return next((one.rate_bps for one in ordered if one.rate_bps), DEFAULT_RATE_BPS)


def _captured(capture: CapturePlan, resolved: Resolved, offers: Sequence[Offered], most: bool) -> float:
    """Estimate a capture's bytes, compressed: its part of what flows share, or the `most` it can be."""
    end = resolved.hosts[capture.host].role in ENDS
    total = 0.0
    for way in WAYS:
        sent = [one for one in offers if one.way == way]
        seen = [one for one in sent if one.touches(capture.host) or not end]
        share = _share(seen if most else sent, resolved.duration_s * link_bps(resolved, way) / 8)
        for one in seen:
            own = 1.0 if one.paced and one.flow.from_host == capture.host else share
            answered = one.answers * _record_bytes(capture, HEADERS_BYTES)
            total += one.packets * own * (_record_bytes(capture, one.packet_bytes) + answered)
    return total


def _share(offers: Sequence[Offered], room_bytes: float) -> float:
    """Return the share of what flows offer that a way has room for."""
    wanted_bytes = sum(one.packets * one.packet_bytes for one in offers)
    return min(1.0, room_bytes / wanted_bytes) if wanted_bytes else 0.0


def _record_bytes(capture: CapturePlan, packet_bytes: int) -> float:
    """Return what one packet adds to a capture, compressed as far as it compresses."""
    bytes_ = min(capture.snaplen_bytes, packet_bytes + ETHERNET_BYTES)
    headers = min(bytes_, HEADERS_BYTES)
    return (headers + PCAP_RECORD_BYTES) / COMPRESSION + (bytes_ - headers)


def _sampled(logger: LoggerPlan, resolved: Resolved, offers: Sequence[Offered]) -> float:
    """Estimate a logger's bytes, not compressed: a line a packet, or a row a sample and connection."""
    near = [one for one in offers if one.touches(logger.host)]
    if logger.logger not in LINE_BYTES:
        samples = resolved.duration_s / (logger.interval_s or SAMPLE_INTERVAL_S)
        return samples * max(1, len(near)) * SAMPLE_BYTES
    packets = 0.0
    for way in WAYS:
        sent = [one for one in near if one.way == way]
        share = _share(sent, resolved.duration_s * link_bps(resolved, way) / 8)
        packets += sum(one.packets * share * (1 + one.answers) for one in sent)
    return packets * LINE_BYTES[logger.logger]


def _parameter(flow: FlowPlan, name: str, parse: Parse) -> float | None:
    text = flow.parameters.get(name)
    return None if text is None else _read(text, parse)


def _read(text: str, parse: Parse) -> float | None:
    """Return a parameter's value; None for what is none of its kind, as what is no rate limits nothing."""
    try:
        return float(parse(text))
    except UnitError:
        return None
