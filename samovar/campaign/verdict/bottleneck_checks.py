"""Check the bottleneck: its rate, the bytes through it, and packets that its delay must not drop."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from samovar.campaign.verdict.capture_checks import SLACK_BYTES
from samovar.campaign.verdict.check_result import Check, unreadable
from samovar.campaign.verdict.evidence import QUEUE, STAGE, Evidence
from samovar.campaign.verdict.path_checks import plausible_losses
from samovar.campaign.verdict.traces import open_lines, read_queue_samples
from samovar.plan import DirectionPlan
from samovar.recipes import loss_states

BUSY_PACKETS = 2
"""A bottleneck is busy while its queue holds more packets than this."""
BUSY_S = 0.5
"""A bottleneck that was busy for less time is not judged by its rate."""
INVALID_TOLERANCES = 3
"""A rate that is off by this many tolerances makes a trial invalid rather than suspect."""


def check_delay_drops(evidence: Evidence) -> Iterator[Check]:
    """Check that the stages that delay packets dropped only what was requested, nothing for lack of room."""
    path = evidence.resolved.path
    span = evidence.counters.get(path.router) if path is not None else None
    if path is None or span is None or path.classes:
        return
    for key in sorted(key for key in span.before if key.startswith(STAGE)):
        name = key.removeprefix(STAGE)
        direction = {"down": path.down, "up": path.up}.get(name.partition("-")[0])
        counted = span.queue(key)
        if direction is None or counted is None:
            continue
        offered = counted.sent_packets + counted.drops
        label, observed = f"drops in the delay stage {name}", f"{counted.drops} of {offered}"
        if not direction.loss:
            yield Check(label, path.router, "0", observed, counted.drops == 0)
        else:
            states = loss_states(direction.loss, direction.loss_burst_packets)
            ok = counted.drops <= direction.loss * offered
            ok = ok or plausible_losses(counted.drops, offered, direction.loss, states)
            yield Check(label, path.router, f"{direction.loss:.4%} at random", observed, ok, "suspect")


def check_bottleneck_bytes(evidence: Evidence) -> Iterator[Check]:
    """Check the bytes that each direction of the bottleneck counted against the captures behind it.

    Offloads are left out, since a queue counts a joined frame as one. While packets still wait in the queue,
    more may arrive later.
    """
    resolved, path, share = evidence.resolved, evidence.resolved.path, evidence.policy.thresholds.bottleneck
    span = evidence.counters.get(path.router) if path is not None else None
    if path is None or span is None or not evidence.is_ipv4 or evidence.uses_offloads:
        return
    ends = [(flow.from_host, flow.from_address) for flow in resolved.flows]
    ends += [(flow.to_host, flow.to_address) for flow in resolved.flows]
    for name in ("down", "up"):
        counted, behind = span.queue(f"{QUEUE}{name}"), evidence.policy.behind.get(name, frozenset())
        hosts = dict.fromkeys(host for host, address in ends if address in behind)
        captures = [evidence.whole_captures_at(host) for host in hosts]
        if counted is None or not captures or not all(captures):
            continue
        arrived_bytes = sum(
            stream.frame_bytes
            for at_host in captures
            for capture in at_host
            for stream in capture
            if stream.destination in behind and stream.source not in behind
        )
        most_bytes = share * counted.sent_bytes + SLACK_BYTES
        over_bytes = counted.sent_bytes - arrived_bytes
        observed = f"{counted.sent_bytes} B"
        if counted.waiting_packets:
            observed += f", while {counted.waiting_packets} packets still waited"
        ok = over_bytes <= most_bytes and (over_bytes >= -most_bytes or counted.waiting_packets > 0)
        label, requested = f"bytes through the bottleneck, {name}", f"{arrived_bytes} B as captured behind it"
        yield Check(label, path.router, requested, observed, ok, "suspect", f"± {share:.1%}")


def check_bottleneck_rate(evidence: Evidence) -> Iterator[Check]:
    """Check the rate of each direction while packets waited, by the logger `queue` at the router."""
    path = evidence.resolved.path
    if path is None:
        return
    for direction in (path.down, path.up):
        for entry in evidence.resolved.loggers:
            if (entry.logger, entry.host, entry.interface) == ("queue", path.router, direction.interface):
                trace = evidence.folder / "traces" / f"{path.router}-queue.csv.gz"
                yield from compare_rate(evidence, path.router, direction, trace)


def compare_rate(evidence: Evidence, router: str, direction: DirectionPlan, trace: Path) -> Iterator[Check]:
    """Compare the requested rate with the rate between samples at which the queue was busy."""
    try:
        with open_lines(trace) as file:
            samples = list(read_queue_samples(file, direction.interface))
    except (OSError, EOFError, ValueError, KeyError, TypeError, csv.Error, zlib.error) as error:
        yield unreadable(trace, router, error)
        return
    busy = [
        (late.t_ns - early.t_ns, late.sent_bytes - early.sent_bytes)
        for early, late in pairwise(samples)
        if min(early.backlog_packets, late.backlog_packets) > BUSY_PACKETS
    ]
    busy_s, sent_bytes = sum(ns for ns, _ in busy) / 1e9, sum(sent for _, sent in busy)
    if not direction.rate_bps or busy_s < BUSY_S:
        return
    share, rate_bps = evidence.policy.thresholds.rate, sent_bytes * 8 / busy_s
    off = abs(rate_bps / direction.rate_bps - 1)
    yield Check(
        name=f"rate at {direction.interface} while packets wait",
        host=router,
        requested=f"{direction.rate_bps / 1e6:g} Mbit/s",
        observed=f"{rate_bps / 1e6:.4g} Mbit/s over {busy_s:.1f} s",
        ok=off <= share,
        severity="invalid" if off > INVALID_TOLERANCES * share else "suspect",
        tolerance=f"± {share:.1%}",
    )
