"""Check packet captures for losses, frame sizes, foreign traffic, TCP handshakes, routers and byte counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from samovar.campaign.verdict.check_result import Check, graded
from samovar.campaign.verdict.evidence import Evidence
from samovar.campaign.verdict.pcap_reader import (
    ETHERNET_HEADER_BYTES,
    ICMP,
    TCP,
    UDP,
    CaptureSummary,
    PacketStream,
)
from samovar.campaign.verdict.socket_checks import check_largest_window
from samovar.recipes import ByteCounts, FlowEnds

PROTOCOLS = {"tcp": TCP, "udp": UDP, "icmp": ICMP}
TCP_IP_HEADER_BYTES = 40
LARGEST_FIELD = 0xFFFF
INITIAL_TTLS = (32, 64, 128, 255)
"""Common initial TTLs. If no capture at the sender shows the initial TTL, the next higher one of these is
assumed."""
HOUSEKEEPING_PORTS = frozenset({53, 67, 68, 123, 319, 320, 5353})
"""Ports of DNS, DHCP, NTP, PTP and mDNS, whose packets do not count as competing traffic."""
INVALID_COMPETING_LIMITS = 10
"""If competing traffic exceeds this many times its limit, the trial is invalid. Competing traffic of one to
this many times its limit makes the trial suspect."""
SLACK_BYTES = 65_536
"""Two byte counts may differ by this much, because of packets in flight or packets without flow data."""
FULL_FRAME_BYTES = 1514
TCPDUMP_COUNTS = re.compile(
    r"(\d+) packets? captured[,\s]+(\d+) packets? received by filter[,\s]+(\d+) packets? dropped by kernel"
)


def check_capture_drops(evidence: Evidence) -> Iterator[Check]:
    """Check that no capture lost packets, by the counts that tcpdump prints."""
    for host, program in evidence.programs("capture"):
        text = "\n".join(evidence.messages.get(program.name, ()))
        for who in ("kernel", "interface"):
            counts = re.findall(rf"(\d+) packets? dropped by {who}", text)
            if not counts and who == "interface":
                continue  # not every libpcap counts packets dropped by the interface
            # The last count is final; earlier ones were printed on request.
            observed = counts[-1] if counts else "no count: tcpdump did not end by itself"
            name = f"packets dropped by {who} in capture {program.name}"
            yield Check(name, host, "0", observed, bool(counts) and int(observed) == 0)
        # tcpdump prints these counts when it ends and when asked, and is asked only after the traffic.
        # A kernel may hold a packet back for a second, so it is enough if one of the counts shows that all
        # packets were read.
        unread = [int(n[1]) - int(n[0]) - int(n[2]) for n in TCPDUMP_COUNTS.findall(text)]
        if unread:
            name = f"packets never read by capture {program.name}"
            yield Check(name, host, "0", str(min(unread)), min(unread) <= 0)


def check_captures_complete(evidence: Evidence) -> Iterator[Check]:
    """Check that every capture can be read and does not end in the middle of a packet."""
    for plan, capture in evidence.captures:
        name = f"capture {plan.host}-{plan.interface}"
        if capture.error:
            yield Check(name, plan.host, "readable", capture.error, False)
        else:
            packets = f"{capture.packets} packets"
            observed = packets if capture.whole else f"first {packets} read"
            observed += ", the last one cut off" if capture.torn else ""
            yield Check(name, plan.host, "whole packets", observed, not capture.torn)


def check_frame_sizes(evidence: Evidence) -> Iterator[Check]:
    """Check that no frame exceeds the MTU.

    A frame larger than the MTU is a super-packet that an offload (GSO, TSO or GRO) has made.
    """
    resolved = evidence.resolved
    for plan, capture in evidence.captures if not evidence.uses_offloads else ():
        mtu_bytes = resolved.hosts[plan.host].mtu_bytes or resolved.mtu_bytes
        if mtu_bytes is not None and not capture.error:
            most = mtu_bytes + ETHERNET_HEADER_BYTES
            largest = max((stream.largest_bytes for stream in capture), default=0)
            name = f"largest frame in the capture at {plan.interface} (offloads)"
            yield Check(name, plan.host, f"at most {most} B", f"{largest} B", largest <= most)


def check_competing_traffic(evidence: Evidence) -> Iterator[Check]:
    """Check that almost all captured traffic belongs to the trial's flows.

    The observed value names the largest stream that does not belong to a flow.
    """
    limits = evidence.policy.thresholds
    for plan, capture in evidence.captures:
        if capture.error:
            continue
        total = sum(stream.frame_bytes for stream in capture)
        others = [stream for stream in capture if not _is_expected(stream, evidence)]
        other_bytes = sum(stream.frame_bytes for stream in others)
        most = max(limits.competing_bytes, round(limits.competing * total))
        observed = f"{other_bytes} B of {total} B"
        if other_bytes:
            worst = max(others, key=lambda stream: stream.frame_bytes)
            observed += f", most of it {worst} ({worst.packets} packets, {worst.frame_bytes} B)"
        within = graded(other_bytes, most, INVALID_COMPETING_LIMITS)
        name, requested = f"competing traffic at {plan.interface}", f"at most {most} B"
        yield Check(name, plan.host, requested, observed, *within)


def _is_expected(stream: PacketStream, evidence: Evidence) -> bool:
    """Return whether a stream is expected: a flow, SSH, multicast, broadcast, IGMP, a service such as DNS."""
    expected_ports = HOUSEKEEPING_PORTS | evidence.policy.control_ports
    control = stream.protocol in (TCP, UDP) and not expected_ports.isdisjoint(stream.ports)
    igmp_or_broadcast = stream.protocol == 2 or stream.destination.endswith(".255")
    if control or igmp_or_broadcast or ip_address(stream.destination).is_multicast:
        return True
    return any(_belongs(stream, ends) for ends in evidence.started_flows)


def _belongs(stream: PacketStream, ends: FlowEnds) -> bool:
    """Return whether a stream belongs to a flow, in either direction, on any port that the generator uses."""
    flow, header = ends.flow, ends.recipe.header
    if {stream.source, stream.destination} != {flow.from_address, flow.to_address}:
        return False
    if not header.ports:
        return True
    if stream.protocol not in (TCP, UDP):
        return PROTOCOLS[header.transport] == stream.protocol
    own = {flow.port + offset for offset in header.ports}
    return stream.ports == (0, 0) or not own.isdisjoint(stream.ports)  # a fragment has no ports


def streams_from(address: str, capture: CaptureSummary, ends: FlowEnds) -> list[PacketStream]:
    """Return the streams from an address that have a flow's transport protocol and data port."""
    protocol, port = PROTOCOLS[ends.recipe.header.transport], ends.flow.port
    streams = (one for one in capture if (one.source, one.protocol) == (address, protocol))
    on_port = (one for one in streams if port in one.ports or one.ports == (0, 0))
    return [stream for stream in on_port if _belongs(stream, ends)]


def data_streams(capture: CaptureSummary, ends: FlowEnds) -> list[PacketStream]:
    """Return the streams of a flow's data, from the sender to the receiver."""
    return streams_from(ends.flow.from_address, capture, ends)


def _capture_with(evidence: Evidence, host: str, ends: FlowEnds) -> CaptureSummary | None:
    """Return the capture of a host that has most of a flow's data packets, or None without a capture.

    If a host has captures at several interfaces, the flow passes only some of them.
    """
    captures = evidence.captures_at(host)
    return max(captures, key=lambda one: sum(s.packets for s in data_streams(one, ends)), default=None)


def _tcp_flows(evidence: Evidence) -> Iterator[tuple[FlowEnds, list[PacketStream], list[PacketStream]]]:
    """Yield each started TCP flow with its packet streams: sender to receiver, and receiver to sender.

    The streams are from a capture at the receiver, or at the sender if the receiver has no capture.
    """
    for ends in evidence.started_flows:
        flow = ends.flow
        capture = _capture_with(evidence, flow.to_host, ends) or _capture_with(evidence, flow.from_host, ends)
        if ends.recipe.header.transport == "tcp" and capture is not None:
            yield ends, data_streams(capture, ends), streams_from(flow.to_address, capture, ends)


def check_mss(evidence: Evidence) -> Iterator[Check]:
    """Check that sender and receiver of each TCP flow offered their MTU minus 40 B as MSS.

    If the parameter `mss` of the flow's generator is smaller, either end may offer it: some generators set it
    at one end only, and not for control connections.
    """
    for ends, data, answers in _tcp_flows(evidence):
        flow, chosen = ends.flow, ends.parameters.get("mss")
        for host, streams in ((flow.from_host, data), (flow.to_host, answers)):
            mtu_bytes = evidence.resolved.hosts[host].mtu_bytes
            offered = {stream.mss_bytes for stream in streams if stream.syn}
            if mtu_bytes is not None and offered:
                most = mtu_bytes - TCP_IP_HEADER_BYTES
                accepted = {min(chosen, most), most} if isinstance(chosen, int) else {most}
                name, requested = f"MSS offered by {host} in flow {flow.label}", _listed(accepted, " or ")
                ok = offered <= accepted
                yield Check(name, host, f"{requested} B", f"{_listed(offered)} B", ok)


def check_receive_windows(evidence: Evidence) -> Iterator[Check]:
    """Check the window scale and the largest receive window of each TCP flow."""
    for ends, data, all_answers in _tcp_flows(evidence):
        flow = ends.flow
        answers = [stream for stream in all_answers if stream.syn]
        rwnd = evidence.resolved.window_bytes(flow)
        if rwnd is None or not answers:
            continue
        scales = {stream.scale or 0 for stream in answers}
        least = (rwnd // (LARGEST_FIELD + 1)).bit_length()
        name = f"window scale of flow {flow.label}"
        yield Check(name, flow.to_host, f"{least} or more", _listed(scales), min(scales) >= least)
        window_bytes = max(stream.window_bytes for stream in answers)
        moved_bytes = sum(stream.payload_bytes for stream in data)
        yield from check_largest_window(evidence, flow, window_bytes, moved_bytes)


def check_routers(evidence: Evidence) -> Iterator[Check]:
    """Check how many routers each flow passed, by the TTL of its packets at the sender and the receiver."""
    for ends in evidence.started_flows:
        flow, received = ends.flow, _capture_with(evidence, ends.flow.to_host, ends)
        asked = evidence.policy.routers.get((flow.from_address, flow.to_address))
        if asked is None or received is None:
            continue
        ttls = {ttl for stream in data_streams(received, ends) for ttl in stream.ttls}
        sent = [stream for one in evidence.captures_at(flow.from_host) for stream in data_streams(one, ends)]
        initial = {ttl for stream in sent for ttl in stream.ttls} or INITIAL_TTLS
        if ttls:
            routers = {min((first for first in initial if first >= ttl), default=0) - ttl for ttl in ttls}
            name, ttl_text = f"routers on the path of flow {flow.label}", f"(TTL {_listed(ttls)})"
            observed = f"{_listed(routers)} {ttl_text}"
            yield Check(name, flow.to_host, str(asked), observed, routers == {asked})


def _listed(values: Iterable[int | None], separator: str = ", ") -> str:
    return separator.join(sorted("none" if value is None else str(value) for value in values))


def check_flow_bytes(evidence: Evidence) -> Iterator[Check]:
    """Check the bytes that each generator counted, and the flow's requested size, against captures."""
    for ends in evidence.completed_flows if evidence.is_ipv4 else ():
        counted = evidence.counted_bytes(ends)
        if counted is not None:
            yield from compare_flow_bytes(evidence, ends, counted)


def compare_flow_bytes(evidence: Evidence, ends: FlowEnds, counted: ByteCounts) -> Iterator[Check]:
    """Compare the bytes that a generator counted with the bytes in a capture.

    The capture is at the receiver for TCP, at the sender for UDP. The capture must have at least as many
    bytes as the generator received, and at most as many as it sent. If the generator does not know how many
    bytes of a TCP flow arrived, only the upper bound is checked, because bytes may still have been in the
    socket buffer when it ended. Two allowances are made: retransmitted packets may be captured twice, and a
    generator does not count the block that it was writing when it ended.
    If the generator has sent all bytes of a TCP flow with a requested size, the capture must have all of
    them.
    """
    reliable = ends.recipe.header.transport == "tcp"
    host = ends.flow.to_host if reliable else ends.flow.from_host
    captures = evidence.captures_at(host, whole=True)
    if not captures:
        return
    wire_bytes = max(sum(s.payload_bytes for s in data_streams(capture, ends)) for capture in captures)
    share = evidence.policy.thresholds.bytes_differ
    sent, received, size_bytes = counted.sent_bytes, counted.received_bytes, ends.flow.size_bytes
    least = (1 - share) * ((received or 0) if reliable else sent) - SLACK_BYTES
    most = (1 + share) * sent + SLACK_BYTES + block_bytes(ends) + _repeated_bytes(evidence, sent)
    name, observed = f"bytes of flow {ends.flow.label} in the capture", f"{wire_bytes} B"
    arrived = "" if received is None else f" and {received} B received"
    requested = f"{sent} B sent{arrived} by the generator's count"
    ok = least <= wire_bytes <= most
    yield Check(name, host, requested, observed, ok, tolerance=f"± {share:.1%}")
    if reliable and size_bytes is not None and sent >= size_bytes:
        name, ok = f"size of flow {ends.flow.label} that arrived", wire_bytes >= (1 - share) * size_bytes
        yield Check(name, host, f"{size_bytes} B", observed, ok, "suspect", f"- {share:.1%}")


def block_bytes(ends: FlowEnds) -> int:
    """Return the size in bytes of the blocks that a generator counts; 0 if its recipe does not state a size.

    The result is also 0 for a flow with a requested size, because such a flow ends with a whole block.
    """
    counts = ends.recipe.header.counts
    if counts is None or counts.block_bytes is None or ends.flow.size_bytes is not None:
        return 0
    return int(str(ends.parameters.get(counts.block_parameter or "", counts.block_bytes)))


def _repeated_bytes(evidence: Evidence, sent_bytes: int) -> int:
    """Estimate how many bytes were captured more than once, as retransmissions or duplicates."""
    path = evidence.resolved.path
    if path is None:
        return 0
    span = evidence.counters.get(path.router)
    dropped_bytes = span.packets_dropped() * FULL_FRAME_BYTES if span is not None else 0
    return dropped_bytes + round(max(path.down.duplicate, path.up.duplicate) * sent_bytes)
