"""The verdict on what was on the wire: handshakes, windows, paths, sizes, strangers, bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from samovar.campaign.policy import Policy
from samovar.campaign.verdict.capture_counts import (
    ETHERNET_HEADER_BYTES,
    ICMP,
    TCP,
    UDP,
    Capture,
    OneWay,
    read_capture,
)
from samovar.campaign.verdict.counters import Through
from samovar.campaign.verdict.judge import Check, Verdict, check_window
from samovar.experiment import Thresholds
from samovar.plan import CapturePlan, FlowPlan, Resolved
from samovar.recipes import ByteCounts, FlowEnds

PROTOCOLS = {"tcp": TCP, "udp": UDP, "icmp": ICMP}
TCP_IP_HEADER_BYTES = 40
LARGEST_FIELD = 0xFFFF
INITIAL_TTLS = (32, 64, 128, 255)
"""What systems send with, where no capture at the sender tells."""
HOUSEKEEPING = frozenset({53, 67, 68, 123, 319, 320, 5353})
"""Ports of names, addresses and time: DNS, DHCP, NTP, PTP, mDNS."""
SLACK_BYTES = 65_536
"""What may be under way, or be said of a flow beside its data, without anything being wrong."""


@dataclass
class Seen:
    """Every capture of a trial that could be read, with where it was made."""

    captures: list[tuple[CapturePlan, Capture]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def at(self, host: str) -> tuple[Capture, ...]:
        """Return the captures of a host, none where one was not read to its end."""
        found = tuple(capture for plan, capture in self.captures if plan.host == host)
        return found if all(capture.whole for capture in found) else ()


def read_captures(resolved: Resolved, folder: Path, thresholds: Thresholds) -> Seen:
    """Read every capture of a trial, up to as many packets as the thresholds let."""
    seen = Seen()
    for plan in resolved.captures:
        name = f"{plan.host}-{plan.interface}"
        try:
            capture = read_capture(folder / "traces" / f"{name}.pcap.gz", thresholds.capture_packets)
        except (OSError, ValueError, EOFError) as error:
            observed = f"{type(error).__name__}: {error}"
            seen.checks.append(Check(f"capture {name}", plan.host, "readable", observed, False))
            continue
        seen.captures.append((plan, capture))
        observed = f"{capture.packets} packets" + (", the last one torn" if capture.torn else "")
        if not capture.whole:
            observed = f"the first {capture.packets} packets read"
        seen.checks.append(Check(f"capture {name}", plan.host, "whole", observed, not capture.torn))
    return seen


def check_wire(resolved: Resolved, flows: Sequence[FlowEnds], seen: Seen, policy: Policy) -> Iterator[Check]:
    """Compare what the captures show with what was asked."""
    yield from seen.checks
    for plan, capture in seen.captures:
        yield from _sizes(resolved, plan, capture)
        yield from _strangers(flows, plan, capture, policy)
    for ends in flows:
        yield from _flow(resolved, ends, seen, policy)


def _sizes(resolved: Resolved, plan: CapturePlan, capture: Capture) -> Iterator[Check]:
    """Check that no frame is larger than the MTU lets: it would be several, joined or not yet cut."""
    mtu_bytes = resolved.hosts[plan.host].mtu_bytes if plan.host in resolved.hosts else None
    mtu_bytes = mtu_bytes or resolved.mtu_bytes
    if mtu_bytes is None or offloaded(resolved):
        return
    most = mtu_bytes + ETHERNET_HEADER_BYTES
    largest = max((way.largest_bytes for way in capture), default=0)
    label = f"largest segment in the capture at {plan.interface} (offloads)"
    yield Check(label, plan.host, f"at most {most} B", f"{largest} B", largest <= most)


def offloaded(resolved: Resolved) -> bool:
    """Tell whether an offload is to be on anywhere, so that frames may be larger than packets."""
    return any("on" in plan.settings.get("offloads", {}).values() for plan in resolved.hosts.values())


def _strangers(
    flows: Sequence[FlowEnds], plan: CapturePlan, capture: Capture, policy: Policy
) -> Iterator[Check]:
    """Check that what belongs to no flow is next to nothing; name the greatest of it."""
    limits = policy.thresholds
    total = sum(way.frame_bytes for way in capture)
    strangers = [way for way in capture if not _is_known(way, flows, policy)]
    bytes_ = sum(way.frame_bytes for way in strangers)
    most = max(limits.competing_bytes, round(limits.competing * total))
    observed = f"{bytes_} B of {total} B"
    if bytes_:
        worst = max(strangers, key=lambda way: way.frame_bytes)
        observed += f", most of it {worst} ({worst.packets} packets, {worst.frame_bytes} B)"
    severity: Verdict = "invalid" if bytes_ > 10 * most else "suspect"
    label = f"traffic of no flow at {plan.interface}"
    yield Check(label, plan.host, f"at most {most} B", observed, bytes_ <= most, severity)


def _is_known(way: OneWay, flows: Sequence[FlowEnds], policy: Policy) -> bool:
    ports = {way.source_port, way.destination_port}
    if way.protocol in (TCP, UDP) and ports & (HOUSEKEEPING | policy.control_ports):
        return True
    there = ip_address(way.destination)
    group = there.is_multicast or way.destination.endswith(".255") or way.protocol == 2
    return group or any(belongs(way, ends) for ends in flows)


def belongs(way: OneWay, ends: FlowEnds) -> bool:
    """Tell whether packets are of a flow, or of the answers to it."""
    flow, header = ends.flow, ends.recipe.header
    if {way.source, way.destination} != {flow.from_address, flow.to_address}:
        return False
    if not header.ports:
        return True
    if way.protocol not in (TCP, UDP):
        return PROTOCOLS[header.transport] == way.protocol
    fragment = not way.source_port and not way.destination_port
    own = {flow.port + offset for offset in header.ports}
    return fragment or bool(own & {way.source_port, way.destination_port})


def data_ways(capture: Capture, ends: FlowEnds) -> list[OneWay]:
    """Return the ways of a flow's data, by which its generator's recipe sends."""
    return [way for way in capture if way.source == ends.flow.from_address and _is_data(way, ends)]


def _is_data(way: OneWay, ends: FlowEnds) -> bool:
    fits = way.protocol == PROTOCOLS[ends.recipe.header.transport]
    ports = (way.source_port, way.destination_port)
    return (
        fits and belongs(way, ends) and (way.protocol == ICMP or ends.flow.port in ports or ports == (0, 0))
    )


def _answers(capture: Capture, ends: FlowEnds) -> list[OneWay]:
    return [way for way in capture if way.source == ends.flow.to_address and _is_data(way, ends)]


def _flow(resolved: Resolved, ends: FlowEnds, seen: Seen, policy: Policy) -> Iterator[Check]:
    flow = ends.flow
    captures = [
        (plan, capture) for plan, capture in seen.captures if plan.host in (flow.from_host, flow.to_host)
    ]
    if ends.recipe.header.transport == "tcp" and captures:
        _, capture = next(((p, c) for p, c in captures if p.host == flow.to_host), captures[0])
        share = policy.thresholds.window
        yield from _handshake(resolved, flow, data_ways(capture, ends), _answers(capture, ends), share)
    arrived = next((capture for plan, capture in captures if plan.host == flow.to_host), None)
    if arrived is not None:
        left = (way for plan, one in captures if plan.host == flow.from_host for way in data_ways(one, ends))
        yield from _path(flow, left, data_ways(arrived, ends), policy)


def _handshake(
    resolved: Resolved, flow: FlowPlan, data: Sequence[OneWay], answers: Sequence[OneWay], share: float
) -> Iterator[Check]:
    for host, ways in ((flow.from_host, data), (flow.to_host, answers)):
        mtu_bytes = resolved.hosts[host].mtu_bytes
        offered = {way.mss_bytes for way in ways if way.syn}
        if mtu_bytes is not None and offered:
            asked = mtu_bytes - TCP_IP_HEADER_BYTES
            label = f"MSS that {host} offered to flow {flow.label}"
            yield Check(label, host, f"{asked} B", f"{_listed(offered)} B", offered == {asked})
    moved_bytes = sum(way.payload_bytes for way in data)
    yield from _window(resolved, flow, [way for way in answers if way.syn], share, moved_bytes)


def _window(
    resolved: Resolved, flow: FlowPlan, answers: Sequence[OneWay], share: float, moved_bytes: int
) -> Iterator[Check]:
    rwnd = resolved.window_bytes(flow)
    if rwnd is None or not answers:
        return
    scales = {way.scale or 0 for way in answers}
    least = max(0, (rwnd // (LARGEST_FIELD + 1)).bit_length())
    label = f"window scale of flow {flow.label}"
    yield Check(label, flow.to_host, f"{least} or more", _listed(scales), min(scales) >= least)
    yield from check_window(resolved, flow, max(way.window_bytes for way in answers), moved_bytes, share)


def _path(flow: FlowPlan, left: Iterable[OneWay], data: Sequence[OneWay], policy: Policy) -> Iterator[Check]:
    """Count the routers by what the time to live has become of what it was as the data `left`."""
    asked = policy.routers.get((flow.from_address, flow.to_address))
    ttls = {ttl for way in data for ttl in way.ttls}
    if asked is None or not ttls:
        return
    sent = {ttl for way in left for ttl in way.ttls} or INITIAL_TTLS
    routers = {min((first for first in sent if first >= ttl), default=0) - ttl for ttl in ttls}
    observed = f"{_listed(routers)} (TTL {_listed(ttls)})"
    yield Check(
        f"routers that flow {flow.label} passed", flow.to_host, str(asked), observed, routers == {asked}
    )


def _listed(values: Iterable[int | None]) -> str:
    return ", ".join(sorted("none" if value is None else str(value) for value in values))


def check_counted(
    ends: FlowEnds, counted: ByteCounts, seen: Seen, slack_bytes: int, thresholds: Thresholds
) -> Iterator[Check]:
    """Check a generator's own count of bytes against a capture where the data arrives, or leaves unanswered.

    What was received must be there, and no more than was sent; `slack_bytes` may have been sent again. Of a
    flow that has sent its size, that size must have arrived.
    """
    reliable = ends.recipe.header.transport == "tcp"
    host = ends.flow.to_host if reliable else ends.flow.from_host
    captures = seen.at(host)
    if not captures:
        return
    wire_bytes = max(sum(way.payload_bytes for way in data_ways(capture, ends)) for capture in captures)
    share = thresholds.bytes_differ
    least = (1 - share) * (counted.received_bytes if reliable else counted.sent_bytes) - SLACK_BYTES
    most = (1 + share) * counted.sent_bytes + SLACK_BYTES + slack_bytes
    label = f"bytes of flow {ends.flow.label} in the capture"
    told = f"{counted.sent_bytes} B sent, {counted.received_bytes} B received"
    asked = f"{told} ± {share:.1%}, as its generator counted"
    yield Check(label, host, asked, f"{wire_bytes} B", least <= wire_bytes <= most)
    size_bytes = ends.flow.size_bytes
    if reliable and size_bytes is not None and counted.sent_bytes >= size_bytes:
        label, asked = f"size of flow {ends.flow.label} that arrived", f"{size_bytes} B - {share:.1%}"
        arrived = wire_bytes >= (1 - share) * size_bytes
        yield Check(label, host, asked, f"{wire_bytes} B", arrived, "suspect")


def check_bottleneck(
    name: str, router: str, through: Through, seen: Seen, hosts: Iterable[str], policy: Policy
) -> Iterator[Check]:
    """Check what one way of the bottleneck counted against what arrived at the hosts behind it.

    Where packets still waited when it was counted, more may have arrived by the end of the captures.
    """
    behind, share = policy.behind.get(name, frozenset()), policy.thresholds.bottleneck
    captures = [seen.at(host) for host in hosts]
    if not behind or not captures or not all(captures):
        return
    arrived_bytes = sum(
        way.frame_bytes
        for own in captures
        for capture in own
        for way in capture
        if way.destination in behind and way.source not in behind
    )
    most_bytes = share * through.sent_bytes + SLACK_BYTES
    over_bytes = through.sent_bytes - arrived_bytes
    asked, observed = f"{arrived_bytes} B ± {share:.1%}, as captured behind it", f"{through.sent_bytes} B"
    if through.left_packets:
        observed += f", while {through.left_packets} packets still waited"
    ok = over_bytes <= most_bytes and (over_bytes >= -most_bytes or through.left_packets > 0)
    yield Check(f"bytes through the bottleneck, {name}", router, asked, observed, ok, "suspect")
