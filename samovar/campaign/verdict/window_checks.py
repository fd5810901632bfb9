"""Check the largest receive window of a flow, whoever saw it: captures, TCP_INFO or SIFTR."""

from __future__ import annotations

from collections.abc import Iterator

from samovar.campaign.verdict.check import Check
from samovar.campaign.verdict.evidence import Evidence
from samovar.plan import FlowPlan
from samovar.units import ETHERNET_MTU_BYTES

HEADERS_BYTES = 52
"""Headers of a full packet: IPv4, TCP and the timestamps option."""
OPENED_BY = 4
"""Windows of data that a receiver may need to open its own: Linux adds up to two segments for each that
arrives in order (tcp_grow_window), FreeBSD 16 KiB for each round trip that fills the open window."""


def check_largest_window(
    evidence: Evidence, flow: FlowPlan, window_bytes: int, moved_bytes: int | None = None
) -> Iterator[Check]:
    """Compare the largest window offered to a flow's sender with `rwnd`: never above it, and close to it.

    A window that stays far below `rwnd` may not have limited the flow. It opens with the data that arrives,
    so a flow that moved little is not judged by it. `moved_bytes` is None if unknown.
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
    # Below 64 KB whole segments are offered, and a kernel that derives the window from the buffer leaves out
    # the last one until a segment was lost (docs/decisions/0007-receive-window.md).
    host = evidence.resolved.hosts.get(flow.to_host)
    segment_bytes = ((host.mtu_bytes if host else None) or ETHERNET_MTU_BYTES) - HEADERS_BYTES
    but_one_bytes = max(rwnd // segment_bytes - 1, 0) * segment_bytes
    if but_one_bytes < least_bytes:
        least_bytes, requested = (
            but_one_bytes,
            f"at least {but_one_bytes} B of {rwnd} B, all segments but one",
        )
    yield Check(name, flow.to_host, requested, observed, window_bytes >= least_bytes, "suspect")
