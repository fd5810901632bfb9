"""What hosts counted over a trial's traffic, and the checks made of it: CPUs, clocks, queues."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import exp, lgamma, log
from pathlib import Path

from samovar.campaign.verdict.bounded_reading import open_lines
from samovar.campaign.verdict.judge import Check
from samovar.experiment import Thresholds
from samovar.plan import DirectionPlan, PathPlan
from samovar.recipes import loss_states

Counts = Mapping[str, str]
"""What a script printed as key=value of its host's counters."""
CPU, CLOCK, QUEUE, STAGE = "cpu.", "clock", "queue.", "stage."
WAITING_PACKETS = 2
"""A sample with more packets than these in the queue is one at which the bottleneck is busy."""
BUSY_S = 0.5
"""Shorter than this altogether, waiting packets do not tell a rate."""
GROSS = 3
"""How many times the tolerance of the rate makes a trial invalid rather than suspect."""


CHANCE = 0.001
"""How seldom a path that is as asked may be called another: losses are counted, and counts vary."""
LEAF = "10:"
"""The handle of the queue discipline that the bottleneck recipe sets."""
DUMMYNET = "dummynet"
"""What FreeBSD's logger names the pipe of the queue, whose handle is the pipe's number."""


@dataclass(frozen=True)
class Span:
    """The counters of one host before the traffic and after it."""

    before: Counts
    after: Counts

    def gone(self, key: str) -> tuple[int, ...]:
        """Return by how much each number of a key has grown; nothing when it was not counted."""
        pairs = zip(self.before.get(key, "").split(), self.after.get(key, "").split(), strict=False)
        return tuple(int(late) - int(early) for early, late in pairs)


@dataclass(frozen=True)
class Through:
    """What went through a queue discipline, what it dropped, and how many packets it held at the end."""

    sent_bytes: int
    sent_packets: int
    drops: int
    left_packets: int = 0


def through(span: Span, key: str) -> Through | None:
    """Read the counters of a queue discipline; None when they are not there."""
    numbers, after = span.gone(key), span.after.get(key, "").split()
    return Through(*numbers[:3], *map(int, after[3:4])) if len(numbers) >= 3 else None


def check_cpu(host: str, span: Span, thresholds: Thresholds) -> Iterator[Check]:
    """Check that no CPU of a host was busy all the time: what it then does late, it measures late."""
    keys = [key for key in span.before if key.startswith(CPU)]
    shares = {key.removeprefix(CPU): _busy(*span.gone(key)) for key in keys if len(span.gone(key)) == 2}
    if not shares:
        return
    cpu = max(shares, key=lambda name: shares[name])
    asked, observed = f"at most {thresholds.cpu:.0%} busy", f"CPU {cpu} {shares[cpu]:.1%} busy"
    yield Check("CPU over the traffic", host, asked, observed, shares[cpu] <= thresholds.cpu, "suspect")


def _busy(busy: int, idle: int) -> float:
    return busy / (busy + idle) if busy + idle > 0 else 0.0


def check_step(host: str, span: Span, thresholds: Thresholds) -> Iterator[Check]:
    """Check that a clock went on evenly: its time less the time since boot stays the same but for steps."""
    early, late = (_epoch(counts.get(CLOCK, "")) for counts in (span.before, span.after))
    if early is None or late is None:
        return
    # The two are read one after the other, so each difference has bounds; a step is what they do not allow.
    least, greatest = late[0] - early[1], late[1] - early[0]
    step_s = max(least, 0.0) + min(greatest, 0.0)
    asked = f"no step above {thresholds.clock_step_s * 1e3:g} ms"
    ok = abs(step_s) <= thresholds.clock_step_s
    yield Check("clock over the traffic", host, asked, f"{step_s * 1e3:+.1f} ms", ok)


def _epoch(text: str) -> tuple[float, float] | None:
    """Bound the clock's time at boot: its time now in ns, between two readings of the seconds since boot."""
    words = text.split()
    if len(words) != 3:
        return None
    now_s = int(words[0]) / 1e9
    tick_s = 0.01 if float(words[1]) else 0.0
    return now_s - float(words[2]) - tick_s, now_s - float(words[1])


def check_stages(path: PathPlan, span: Span) -> Iterator[Check]:
    """Check that what delays packets dropped no more than was asked: its own limit must never be reached."""
    ways = {"down": path.down, "up": path.up}
    for key in sorted(key for key in span.before if key.startswith(STAGE)):
        name = key.removeprefix(STAGE)
        way, seen = ways.get(name.partition("-")[0]), through(span, key)
        if way is not None and seen is not None and not path.classes:
            yield _drops(path.router, name, way, seen)


def _drops(router: str, name: str, way: DirectionPlan, seen: Through) -> Check:
    offered = seen.sent_packets + seen.drops
    label, observed = f"drops at the delay {name}", f"{seen.drops} of {offered}"
    if not way.loss:
        return Check(label, router, "0", observed, seen.drops == 0)
    fewer = seen.drops <= way.loss * offered
    ok = fewer or plausible(seen.drops, offered, way.loss, loss_states(way.loss, way.loss_burst_packets))
    return Check(label, router, f"{way.loss:.4%} at random", observed, ok, "suspect")


def check_rate(way: DirectionPlan, router: str, trace: Path, thresholds: Thresholds) -> Iterator[Check]:
    """Check the rate at which a queue drained whenever packets waited in it, by the logger `queue`."""
    try:
        with open_lines(trace) as file:
            seen_s, sent_bytes = _drained(csv.DictReader(file), way.interface)
    except (OSError, EOFError, ValueError, KeyError, TypeError, csv.Error, zlib.error) as error:
        yield Check(f"trace {trace.name}", router, "readable", f"{type(error).__name__}: {error}", False)
        return
    if not way.rate_bps or seen_s < BUSY_S:
        return
    rate_bps = sent_bytes * 8 / seen_s
    off = abs(rate_bps / way.rate_bps - 1)
    asked = f"{way.rate_bps / 1e6:g} Mbit/s ± {thresholds.rate:.1%}"
    observed = f"{rate_bps / 1e6:.4g} Mbit/s over {seen_s:.1f} s"
    yield Check(
        f"rate at {way.interface} while packets wait",
        router,
        asked,
        observed,
        off <= thresholds.rate,
        "invalid" if off > GROSS * thresholds.rate else "suspect",
    )


def _drained(rows: Iterable[Mapping[str, str]], interface: str) -> tuple[float, int]:
    samples = [
        (int(row["t_ns"]), int(row["backlog_packets"]), int(row["sent_bytes"]))
        for row in rows
        if row["interface"] == interface and is_leaf(row)
    ]
    busy = [
        (late[0] - early[0], late[2] - early[2])
        for early, late in pairwise(samples)
        if min(early[1], late[1]) > WAITING_PACKETS
    ]
    return sum(ns for ns, _ in busy) / 1e9, sum(sent for _, sent in busy)


def is_leaf(row: Mapping[str, str]) -> bool:
    """Tell whether a sample of the logger `queue` is of the bottleneck's own queue."""
    return row["handle"] == LEAF or row["qdisc"] == DUMMYNET


def plausible(lost: int, sent: int, share: float, states: tuple[float, float] | None = None) -> bool:
    """Tell whether so many losses lie within the 99.9 % interval of the binomial distribution.

    Losses in bursts vary more; they count as so many fewer packets as the variance of a Gilbert chain is
    larger, (1 + s) / (1 - s) with s = 1 - p - r.
    """
    if states is not None:
        memory = 1 - sum(states)
        factor = max(1.0, (1 + memory) / (1 - memory))
        lost, sent = round(lost / factor), round(sent / factor)
    if share in (0.0, 1.0):
        return lost == sent * share
    chances = [exp(_log_chance(k, sent, share)) for k in range(sent + 1)]
    return min(sum(chances[: lost + 1]), sum(chances[lost:])) > CHANCE / 2


def _log_chance(k: int, n: int, share: float) -> float:
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return ways + k * log(share) + (n - k) * log(1 - share)
