"""Check congestion control and receive window of sockets, from TCP_INFO samples and generators' output."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from samovar.campaign.verdict.check_result import Check, unreadable
from samovar.campaign.verdict.evidence import Evidence
from samovar.campaign.verdict.traces import UNREADABLE, open_lines
from samovar.experiment import keys
from samovar.plan import FlowPlan
from samovar.recipes import FlowEnds
from samovar.units import ETHERNET_MTU_BYTES

CONTROL_BYTES = 2000
"""A generator's control connection sends less than this. In iperf3, the control connection uses the same port
as the flow, so only the amount of data distinguishes the two connections."""
HEADERS_BYTES = 52
"""The headers of a full packet in bytes: IPv4, TCP and the timestamps option."""
OPENED_BY = 4
"""A receiver may need this many windows of data before its window is fully open. Linux adds up to two
segments for each segment that arrives in order (tcp_grow_window). FreeBSD adds 16 KiB in each round trip in
which the sender fills the window."""

SAMPLED_S = 1.0
"""A flow of at least this duration has samples, even on a busy host that takes samples late."""

FlowKey = tuple[str, str, str]
"""The key of a flow: the sender's address, the receiver's address, and the flow's port."""


def check_largest_window(
    evidence: Evidence, flow: FlowPlan, window_bytes: int, moved_bytes: int | None = None
) -> Iterator[Check]:
    """Check that the largest window offered to a flow's sender was at most `rwnd`, and close to it.

    If the window stays far below `rwnd`, something other than the requested window may have limited the flow.
    The window opens as data arrive, so for a flow that moved less than OPENED_BY times `rwnd`, only the upper
    bound is checked. `moved_bytes` is None if unknown.
    """
    rwnd = evidence.resolved.window_bytes(flow)
    if rwnd is None:
        return
    name, observed = f"largest window offered to flow {flow.label}", f"{window_bytes} B"
    yield Check(name, flow.to_host, f"at most {rwnd} B", observed, window_bytes <= rwnd)
    if moved_bytes is not None and moved_bytes < OPENED_BY * rwnd:
        return
    share = evidence.policy.thresholds.window
    least_bytes, requested = share * rwnd, f"at least {share:.0%} of {rwnd} B"
    # A window below 64 KB is a multiple of the segment size, and a kernel that derives the window from the
    # buffer offers one segment less until a segment is lost (docs/decisions/0007-receive-window.md).
    mtu_bytes = evidence.resolved.hosts[flow.to_host].mtu_bytes or ETHERNET_MTU_BYTES
    segment_bytes = mtu_bytes - HEADERS_BYTES
    but_one_bytes = max(rwnd // segment_bytes - 1, 0) * segment_bytes
    if but_one_bytes < least_bytes:
        least_bytes = but_one_bytes
        requested = f"at least {but_one_bytes} B, one segment less than {rwnd} B can hold"
    yield Check(name, flow.to_host, requested, observed, window_bytes >= least_bytes, "suspect")


def check_generator_cc(evidence: Evidence) -> Iterator[Check]:
    """Check the congestion control of each sender, if the output of its generator states it."""
    for ends in evidence.completed_flows:
        flow, counts = ends.flow, ends.recipe.header.counts
        asked = flow.cc or evidence.resolved.hosts[flow.from_host].cc
        reported = counts.congestion_control(evidence.client_output(ends)) if counts is not None else None
        if asked is not None and reported is not None:
            name = f"congestion control of flow {flow.label}, as reported by its generator"
            passed = keys.canonical_cc(reported) == keys.canonical_cc(asked)
            yield Check(name, flow.from_host, asked, reported, passed)


@dataclass
class SocketSamples:
    """A summary of the TCP_INFO samples of one flow.

    The keys of `cc` and `acked_bytes` are connections, as text `SOURCE_PORT DESTINATION_PORT`.
    """

    count: int = 0
    cc: dict[str, set[str]] = field(default_factory=dict)
    acked_bytes: dict[str, int] = field(default_factory=dict)
    window_bytes: int = 0


def check_tcp_info(evidence: Evidence) -> Iterator[Check]:
    """Check congestion control and largest window of each flow, from TCP_INFO samples at its sender."""
    flows = {
        (one.flow.from_address, one.flow.to_address, str(one.flow.port)): one for one in tcp_flows(evidence)
    }
    for host, program in evidence.programs("logger", "tcp-info"):
        trace = evidence.trace(program)
        try:
            samples = _read_samples(trace, flows.keys())
        except UNREADABLE as error:
            yield unreadable(trace, host, error)
            continue
        for key, ends in flows.items():
            if ends.flow.from_host == host:
                yield from _flow_checks(evidence, ends, samples.get(key, SocketSamples()))


def tcp_flows(evidence: Evidence) -> list[FlowEnds]:
    """Return all TCP flows except those whose client never started because of a stop rule."""
    never = evidence.halted - evidence.started.keys()
    return [
        ends
        for ends in evidence.scripts.flows
        if ends.recipe.header.transport == "tcp" and ends.name("client") not in never
    ]


def _flow_checks(evidence: Evidence, ends: FlowEnds, samples: SocketSamples) -> Iterator[Check]:
    flow, host, label = ends.flow, ends.flow.from_host, ends.flow.label
    is_short = flow.size_bytes is not None or (flow.duration_s is not None and flow.duration_s < SAMPLED_S)
    # A short flow may end between two samples, and a generator without known ports may use any port.
    if samples.count or (ends.recipe.header.ports and not is_short):
        yield Check(f"samples of flow {label}", host, "one or more", str(samples.count), samples.count > 0)
    own = evidence.resolved.hosts[host].cc
    asked = flow.cc or own
    acked = samples.acked_bytes
    # A control connection, which carries little data, uses the host's default congestion control.
    used = [one for one in samples.cc if asked == own or acked.get(one, CONTROL_BYTES) >= CONTROL_BYTES]
    seen = {cc for one in used for cc in samples.cc[one]}
    if asked is not None and seen:
        requested, observed = keys.canonical_cc(asked), ", ".join(sorted(seen))
        yield Check(f"congestion control of flow {label}", host, requested, observed, seen == {requested})
    if samples.window_bytes:
        moved_bytes = max(acked.values(), default=None)
        yield from check_largest_window(evidence, flow, samples.window_bytes, moved_bytes)


def _read_samples(trace: Path, flows: Collection[FlowKey]) -> dict[FlowKey, SocketSamples]:
    found: dict[FlowKey, SocketSamples] = {}
    with open_lines(trace) as file:
        for row in csv.DictReader(file):
            # If the sender of the data is the server, the flow's port is the source port.
            keys = [(row["src"], row["dst"], port) for port in (row["dport"], row.get("sport", ""))]
            key = next((key for key in keys if key in flows), None)
            if key is not None and row["cc"]:
                samples = found.setdefault(key, SocketSamples())
                samples.count += 1
                samples.window_bytes = max(samples.window_bytes, int(row["snd_wnd_bytes"] or 0))
                connection = f"{row.get('sport', '')} {row['dport']}"
                samples.cc.setdefault(connection, set()).add(row["cc"])
                if row.get("bytes_acked"):
                    acked = max(samples.acked_bytes.get(connection, 0), int(row["bytes_acked"]))
                    samples.acked_bytes[connection] = acked
    return found
