"""What a calibration has shown of one way through the path, and whether that is what was asked for."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from statistics import median

from samovar.campaign.calibration.iperf3_counts import Counted, read_counted
from samovar.campaign.verdict import DUMMYNET, Check, Verdict, is_leaf, plausible
from samovar.plan import DirectionPlan, PathPlan
from samovar.recipes import ETHERNET_HEADER_BYTES, IP_UDP_BYTES, PathProbe, loss_states

RATE_SHARE, RATE_PARTS = 0.02, 40
DELAY_SHARE, DELAY_S = 0.05, 0.001
GROSS = 5
"""How many times its tolerance a round trip or a rate may be off for trials to run, as suspect ones."""
PING = re.compile(r"icmp_seq=(\d+) .*time=([\d.]+) ms")
FIRST_ECHO = {"0", "1"}
"""The number of the first echo on FreeBSD and on Linux; it may have waited for the answer of a neighbour."""


@dataclass(frozen=True)
class Arrival:
    """One packet at the receiver: its number, when it was sent and when the kernel had it, its frame's size.

    The two times are of two clocks, which need not agree.
    """

    number: int
    sent_ns: int
    t_ns: int
    frame_bytes: int


@dataclass(frozen=True)
class DirectionMeasurement:
    """What was seen of one way.

    `headers_bytes` is what the router's rate counts of a packet beside its IP packet: nothing in dummynet.
    """

    round_trips_s: tuple[float, ...]
    burst: tuple[Arrival, ...]
    paced: tuple[Arrival, ...]
    sent_burst: int
    sent_paced: int
    sampled_packets: int | None
    sampled_bytes: int | None
    headers_bytes: int = ETHERNET_HEADER_BYTES
    counted: Counted | None = None

    @property
    def under_way_packets(self) -> int | None:
        """How many packets of the burst were at most under way for longer than the quickest, so in the queue.

        With the quickest taken for the rest of the way the difference of the clocks falls out. What else
        holds packets up for moments counts too; what a discipline drops from within its queue does not.
        """
        if not self.burst:
            return None
        least_ns = min(arrival.t_ns - arrival.sent_ns for arrival in self.burst)
        events = [(arrival.sent_ns, 1) for arrival in self.burst]
        events += [(arrival.t_ns - least_ns, -1) for arrival in self.burst]
        return max(accumulate(change for _, change in sorted(events)))

    @property
    def base_rtt_s(self) -> float | None:
        """The median round trip of an idle path."""
        return median(self.round_trips_s) if self.round_trips_s else None

    def rate_bps(self, burst_bytes: int) -> float | None:
        """The rate at which a full queue drains, once the bucket is empty, as the router counts packets.

        It is the median of the burst's parts, so that a host that stalls for a moment does not count. A part
        is at least two buckets, and so long enough for what came late to be made up for.
        """
        if self.counted is not None:
            return median(self.counted.rates_bps) if self.counted.rates_bps else None
        frame_bytes = max((arrival.frame_bytes for arrival in self.burst), default=1)
        buckets = 2 * burst_bytes // frame_bytes + 1
        kept = self.burst[buckets:]
        size = max(buckets, len(kept) // RATE_PARTS)
        ends = kept[::size]
        rates = [rate for early, late in pairwise(ends) if (rate := _rate_bps(early, late, size)) is not None]
        counted = (frame_bytes - ETHERNET_HEADER_BYTES + self.headers_bytes) / frame_bytes
        return median(rates) * counted if rates else None

    @property
    def lost(self) -> tuple[int, ...]:
        """How many paced packets are missing, run by run; all as one run where they were only counted."""
        if self.counted is not None:
            return (self.counted.lost,) if self.counted.lost else ()
        seen = {arrival.number for arrival in self.paced}
        gone = ((number not in seen) for number in range(self.sent_paced))
        return tuple(len(list(run)) for missing, run in groupby(gone) if missing)

    @property
    def duplicates(self) -> int:
        """How many paced packets came once more."""
        return len(self.paced) - len({arrival.number for arrival in self.paced})

    @property
    def overtaken(self) -> int:
        """How often a paced packet came before one that was sent earlier."""
        if self.counted is not None:
            return self.counted.overtaken
        numbers = [arrival.number for arrival in self.paced]
        return sum(later < earlier for earlier, later in pairwise(numbers))


def _rate_bps(early: Arrival, late: Arrival, packets: int) -> float | None:
    seconds = (late.t_ns - early.t_ns) / 1e9
    return packets * late.frame_bytes * 8 / seconds if seconds > 0 else None


def parse_calibration(sent: str, received: str, queue: str, interface: str) -> DirectionMeasurement:
    """Read what the sender's and the receiver's script printed, and the samples of the router's queue."""
    sizes = dict(re.findall(r"^sent (burst|paced) (\d+)", sent, re.MULTILINE))
    packets, in_bytes = _held(queue.splitlines(), interface)
    headers_bytes = 0 if f",{DUMMYNET}," in queue else ETHERNET_HEADER_BYTES
    counted = read_counted(received, headers_bytes)
    echoes = PING.findall(sent)
    first = next((number for number, _ in echoes if number in FIRST_ECHO), None)
    return DirectionMeasurement(
        round_trips_s=tuple(float(ms) / 1e3 for number, ms in echoes if number != first),
        burst=tuple(_arrivals(received, "burst")),
        paced=tuple(_arrivals(received, "paced")),
        sent_burst=int(sizes.get("burst", 0)),
        sent_paced=counted.paced_packets if counted else int(sizes.get("paced", 0)),
        sampled_packets=packets,
        sampled_bytes=in_bytes,
        headers_bytes=headers_bytes,
        counted=counted,
    )


def _arrivals(text: str, kind: str) -> Iterator[Arrival]:
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5 and words[0] == kind:
            number, sent_ns, t_ns, payload_bytes = map(int, words[1:])
            yield Arrival(number, sent_ns, t_ns, payload_bytes + IP_UDP_BYTES + ETHERNET_HEADER_BYTES)


def _held(lines: Iterable[str], interface: str) -> tuple[int | None, int | None]:
    rows = [
        (int(row["backlog_packets"]), int(row["backlog_bytes"]))
        for row in csv.DictReader(lines)
        if row["interface"] == interface and is_leaf(row)
    ]
    return (max(row[0] for row in rows), max(row[1] for row in rows)) if rows else (None, None)


def check_calibration(
    path: PathPlan,
    way: DirectionPlan,
    probe: PathProbe,
    seen: DirectionMeasurement,
    *,
    burst_bytes: int,
    fills: bool,
) -> Iterator[Check]:
    """Compare what was seen of a way with what was asked for.

    `fills` says that an overload fills the queue discipline; one that drops early is asked only not to hold
    more. Tolerances: round trip 1 ms and 5 %, rate 2 %, buffer one packet, losses as chance allows.
    """
    if probe.pings:
        yield _rtt(path, seen)
    if probe.burst_packets:
        yield _rate(path, way, seen.rate_bps(burst_bytes))
        if fills or seen.sampled_packets is not None:  # ipfw(8) does not show the queues of fq_codel
            yield _buffer(path, way, probe, seen, fills)
    if seen.sent_paced:
        yield _loss(path, way, seen)


def _rtt(path: PathPlan, seen: DirectionMeasurement) -> Check:
    if seen.base_rtt_s is None:
        return Check("base RTT", path.router, f"{path.rtt_s * 1e3:g} ms", "no answer", False)
    room_s = DELAY_S + DELAY_SHARE * path.rtt_s + path.down.jitter_s + path.up.jitter_s
    off_s = abs(seen.base_rtt_s - path.rtt_s)
    asked, observed = f"{path.rtt_s * 1e3:g} ms", f"{seen.base_rtt_s * 1e3:.2f} ms"
    return Check("base RTT", path.router, asked, observed, off_s <= room_s, _weight(off_s / room_s))


def _weight(tolerances: float) -> Verdict:
    return "invalid" if tolerances > GROSS else "suspect"


def _rate(path: PathPlan, way: DirectionPlan, rate_bps: float | None) -> Check:
    asked = way.rate_bps or 0
    label = f"rate at {way.interface}"
    if rate_bps is None:
        return Check(label, path.router, f"{asked / 1e6:g} Mbit/s", "nothing came", False)
    tolerances = abs(rate_bps - asked) / (RATE_SHARE * asked)
    observed = f"{rate_bps / 1e6:.4g} Mbit/s"
    return Check(
        label, path.router, f"{asked / 1e6:g} Mbit/s", observed, tolerances <= 1, _weight(tolerances)
    )


def _buffer(
    path: PathPlan, way: DirectionPlan, probe: PathProbe, seen: DirectionMeasurement, fills: bool
) -> Check:
    """Judge the longest queue: samples may miss it but never see more, packets under way may be some more."""
    in_packets = way.buffer_packets is not None
    asked = (way.buffer_packets if in_packets else way.buffer_bytes) or 0
    unit, one = ("packets", 1) if in_packets else ("B", probe.frame_bytes)
    found = _found(way, seen, in_packets, one)
    label, wanted = (
        f"buffer held at {way.interface}",
        f"{asked} {unit}" if fills else f"at most {asked} {unit}",
    )
    if not found:
        return Check(label, path.router, wanted, "nothing", False, "suspect")
    most = found.get("sampled", max(found.values()))
    ok = most <= asked + one and (max(found.values()) >= asked - one or not fills)
    observed = ", ".join(f"{size} {unit} {how}" for how, size in found.items())
    return Check(label, path.router, wanted, observed, ok, "suspect")


def _found(way: DirectionPlan, seen: DirectionMeasurement, in_packets: bool, one: int) -> dict[str, int]:
    """Give the longest queue by each method that applies; only samples do where delays differ by design."""
    sampled = seen.sampled_packets if in_packets else seen.sampled_bytes
    found = {} if sampled is None else {"sampled": sampled}
    if seen.under_way_packets is not None and not way.jitter_s and not way.reorder:
        found["under way"] = seen.under_way_packets * one
    return found


def _loss(path: PathPlan, way: DirectionPlan, seen: DirectionMeasurement) -> Check:
    lost = sum(seen.lost)
    ok = plausible(lost, seen.sent_paced, way.loss, loss_states(way.loss, way.loss_burst_packets))
    asked, observed = f"{way.loss:.4%}", f"{lost} of {seen.sent_paced}"
    return Check(f"loss towards {way.interface}", path.router, asked, observed, ok, "suspect")


def mean_burst(lost: Sequence[int]) -> float | None:
    """Return the mean length of the runs of lost packets."""
    return sum(lost) / len(lost) if lost else None
