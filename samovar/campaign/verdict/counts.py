"""What hosts, queues and generators counted, held against each other and against the captures."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from samovar.campaign.policy import Policy
from samovar.campaign.verdict.bounded_reading import read_text
from samovar.campaign.verdict.counters import (
    QUEUE,
    STAGE,
    Span,
    check_cpu,
    check_rate,
    check_stages,
    check_step,
    through,
)
from samovar.campaign.verdict.judge import LINUX_NAME, Check
from samovar.campaign.verdict.wire import Seen, check_bottleneck, check_counted, offloaded
from samovar.experiment import Thresholds
from samovar.plan import PathPlan, Resolved
from samovar.recipes import ByteCounts, FlowEnds

WAYS = ("down", "up")
FULL_FRAME_BYTES = 1514


def check_host(host: str, span: Span, resolved: Resolved, thresholds: Thresholds) -> Iterator[Check]:
    """Check what one host counted over the traffic: CPUs, its clock, and at a router what delays packets."""
    yield from check_cpu(host, span, thresholds)
    yield from check_step(host, span, thresholds)
    if resolved.path is not None and resolved.path.router == host:
        yield from check_stages(resolved.path, span)


def check_counts(
    resolved: Resolved,
    flows: Sequence[FlowEnds],
    wire: Seen,
    folder: Path,
    spans: Mapping[str, Span],
    policy: Policy,
) -> Iterator[Check]:
    """Check bytes at the generator against bytes in the capture against the bottleneck's counter.

    Of IPv6 the captures are not read, and a frame that an offload made is counted otherwise by a queue.
    """
    path = resolved.path
    span = spans.get(path.router) if path is not None else None
    readable = not any(":" in flow.from_address for flow in resolved.flows)
    for ends in flows:
        yield from check_told_cc(resolved, ends, _told(ends, folder))
    for ends in flows if readable else ():
        counted = _counted(ends, folder)
        if counted is not None:
            again_bytes = _again_bytes(path, span, counted)
            yield from check_counted(ends, counted, wire, again_bytes, policy.thresholds)
    if path is not None and span is not None and readable and not offloaded(resolved):
        yield from _queues(resolved, path, span, wire, policy)
    if path is not None:
        yield from _rates(resolved, path, folder, policy.thresholds)


def _again_bytes(path: PathPlan | None, span: Span | None, counted: ByteCounts) -> int:
    """Bound what may be on the wire more than once: what was dropped and sent again, and duplicates."""
    dropped_bytes = _dropped(span) * FULL_FRAME_BYTES if span is not None else 0
    duplicate = max(path.down.duplicate, path.up.duplicate) if path is not None else 0.0
    return dropped_bytes + round(duplicate * counted.sent_bytes)


def _dropped(span: Span) -> int:
    """Count what was lost at the router."""
    keys = [key for key in span.before if key.startswith((QUEUE, STAGE))]
    return sum(seen.drops for key in keys if (seen := through(span, key)) is not None)


def check_told_cc(resolved: Resolved, ends: FlowEnds, text: str) -> Iterator[Check]:
    """Check the congestion control of a flow's sender, where its generator asked the socket and tells."""
    flow, counts = ends.flow, ends.recipe.header.counts
    asked = flow.cc or resolved.hosts[flow.from_host].cc
    told = counts.congestion_control(text) if counts is not None else None
    if asked is not None and told is not None:
        label = f"congestion control of flow {flow.label}, as its generator says"
        same = LINUX_NAME.get(told, told) == LINUX_NAME.get(asked, asked)
        yield Check(label, flow.from_host, asked, told, same)


def _counted(ends: FlowEnds, folder: Path) -> ByteCounts | None:
    counts = ends.recipe.header.counts
    return counts.read(_told(ends, folder)) if counts is not None else None


def _told(ends: FlowEnds, folder: Path) -> str:
    """Return what a flow's client wrote; nothing where it cannot be read, which has a check of its own."""
    if ends.recipe.header.counts is None:
        return ""
    try:
        return read_text(folder / "logs" / f"{ends.name('client')}.out.gz")
    except (OSError, EOFError, ValueError, zlib.error):
        return ""


def _queues(resolved: Resolved, path: PathPlan, span: Span, wire: Seen, policy: Policy) -> Iterator[Check]:
    for name in WAYS:
        seen, behind = through(span, f"{QUEUE}{name}"), policy.behind.get(name, frozenset())
        ends = {
            host: address
            for flow in resolved.flows
            for host, address in ((flow.from_host, flow.from_address), (flow.to_host, flow.to_address))
        }
        hosts = [host for host, address in ends.items() if address in behind]
        if seen is not None:
            yield from check_bottleneck(name, path.router, seen, wire, hosts, policy)


def _rates(resolved: Resolved, path: PathPlan, folder: Path, thresholds: Thresholds) -> Iterator[Check]:
    for way in (path.down, path.up):
        for logger in resolved.loggers:
            if (logger.logger, logger.host, logger.interface) == ("queue", path.router, way.interface):
                trace = folder / "traces" / f"{logger.host}-queue.csv.gz"
                yield from check_rate(way, path.router, trace, thresholds)
