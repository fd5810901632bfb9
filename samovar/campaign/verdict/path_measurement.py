"""Read what the scripts of a path calibration print: the measurement of one direction of the path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

from samovar.campaign.verdict.queue_log import DUMMYNET, read_queue_samples
from samovar.recipes import ETHERNET_HEADER_BYTES, IP_UDP_BYTES

RATE_PARTS = 40
PING = re.compile(r"icmp_seq=(\d+) .*time=([\d.]+) ms")
FIRST_ECHO = {"0", "1"}
"""The number of the first echo on FreeBSD and on Linux; it may have waited for ARP."""
IPERF3_OUTPUT = re.compile(r"^iperf3 (burst|paced)\n", re.MULTILINE)
WHOLE_INTERVAL_S = 0.05
"""A shorter interval of iperf3's is the remainder at the end, which shows no rate."""


class PacketArrival(NamedTuple):
    """One packet at the receiver: its number, send and kernel receive time (of two clocks), frame size."""

    number: int
    sent_ns: int
    t_ns: int
    frame_bytes: int


@dataclass(frozen=True)
class Iperf3Counts:
    """The counts of iperf3's servers, used where no program can note single packets."""

    rates_bps: tuple[float, ...] = ()
    paced_packets: int = 0
    lost: int = 0
    overtaken: int = 0


@dataclass(frozen=True)
class DirectionMeasurement:
    """What was measured of one direction of a path.

    A burst fills the queue; paced packets do not, and show losses. `sampled_packets` and `sampled_bytes` are
    the longest queue seen at the router. `headers_bytes` is what the router's rate counts of a packet beside
    its IP packet: nothing in dummynet.
    """

    round_trips_s: tuple[float, ...]
    burst: tuple[PacketArrival, ...]
    paced: tuple[PacketArrival, ...]
    sent_burst: int
    sent_paced: int
    sampled_packets: int | None
    sampled_bytes: int | None
    headers_bytes: int = ETHERNET_HEADER_BYTES
    counted: Iperf3Counts | None = None

    @property
    def in_flight_packets(self) -> int | None:
        """The most packets of the burst that were delayed beyond the quickest packet at once: the queue.

        Subtracting the quickest packet's delay removes the difference of the clocks. Other short delays count
        too; packets that the queue discipline drops after queueing them do not.
        """
        if not self.burst:
            return None
        least_ns = min(arrival.t_ns - arrival.sent_ns for arrival in self.burst)
        events = [(arrival.sent_ns, 1) for arrival in self.burst]
        events += [(arrival.t_ns - least_ns, -1) for arrival in self.burst]
        return max(accumulate(change for _, change in sorted(events)))

    @property
    def base_rtt_s(self) -> float | None:
        """The median round-trip time of the idle path in seconds, None without an answer."""
        return median(self.round_trips_s) if self.round_trips_s else None

    def rate_bps(self, burst_bytes: int) -> float | None:
        """Return the rate at which the full queue drains, in bit/s as the router counts packets.

        It is the median of parts of the burst, after the router's token bucket of `burst_bytes` has emptied,
        so a host that stalls for a moment does not matter. A part is at least two buckets long.
        """
        if self.counted is not None:
            return median(self.counted.rates_bps) if self.counted.rates_bps else None
        frame_bytes = max((arrival.frame_bytes for arrival in self.burst), default=1)
        buckets = 2 * burst_bytes // frame_bytes + 1
        drained = self.burst[buckets:]
        size = max(buckets, len(drained) // RATE_PARTS)
        rates = [
            size * late.frame_bytes * 8e9 / (late.t_ns - early.t_ns)
            for early, late in pairwise(drained[::size])
            if late.t_ns > early.t_ns
        ]
        share = (frame_bytes - ETHERNET_HEADER_BYTES + self.headers_bytes) / frame_bytes
        return median(rates) * share if rates else None

    @property
    def loss_runs(self) -> tuple[int, ...]:
        """The lengths of runs of lost paced packets; all losses as one run if they were only counted."""
        if self.counted is not None:
            return (self.counted.lost,) if self.counted.lost else ()
        arrived = {arrival.number for arrival in self.paced}
        lost = ((number not in arrived) for number in range(self.sent_paced))
        return tuple(len(list(run)) for missing, run in groupby(lost) if missing)

    @property
    def mean_loss_burst_packets(self) -> float | None:
        """The mean length of runs of lost packets; None without losses or if they were only counted."""
        return sum(self.loss_runs) / len(self.loss_runs) if self.loss_runs and not self.counted else None

    @property
    def duplicates(self) -> int:
        """Paced packets that arrived more than once."""
        return len(self.paced) - len({arrival.number for arrival in self.paced})

    @property
    def overtaken(self) -> int:
        """Paced packets that arrived before one that was sent earlier."""
        if self.counted is not None:
            return self.counted.overtaken
        return sum(later.number < earlier.number for earlier, later in pairwise(self.paced))

    def as_json(self, burst_bytes: int) -> Mapping[str, object]:
        """Return the measured values as calibration files store them."""
        return {
            "base_rtt_s": self.base_rtt_s,
            "rate_bps": self.rate_bps(burst_bytes),
            "held_packets": self.sampled_packets,
            "held_bytes": self.sampled_bytes,
            "under_way_packets": self.in_flight_packets,
            "sent_paced": self.sent_paced,
            "lost": sum(self.loss_runs),
            "mean_loss_burst_packets": self.mean_loss_burst_packets,
            "duplicates": self.duplicates,
            "overtaken": self.overtaken,
        }


def parse_measurement(sent: str, received: str, queue: str, interface: str) -> DirectionMeasurement:
    """Read the output of the sender's and the receiver's script, and the samples of the router's queue."""
    sizes = dict(re.findall(r"^sent (burst|paced) (\d+)", sent, re.MULTILINE))
    samples = list(read_queue_samples(queue.splitlines(), interface))
    headers_bytes = 0 if f",{DUMMYNET}," in queue else ETHERNET_HEADER_BYTES
    counted = parse_iperf3(received, headers_bytes)
    echoes = PING.findall(sent)
    first = next((number for number, _ in echoes if number in FIRST_ECHO), None)
    return DirectionMeasurement(
        round_trips_s=tuple(float(ms) / 1e3 for number, ms in echoes if number != first),
        burst=tuple(_arrivals(received, "burst")),
        paced=tuple(_arrivals(received, "paced")),
        sent_burst=int(sizes.get("burst", 0)),
        sent_paced=counted.paced_packets if counted else int(sizes.get("paced", 0)),
        sampled_packets=max((sample.backlog_packets for sample in samples), default=None),
        sampled_bytes=max((sample.backlog_bytes for sample in samples), default=None),
        headers_bytes=headers_bytes,
        counted=counted,
    )


def _arrivals(text: str, kind: str) -> Iterator[PacketArrival]:
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5 and words[0] == kind:
            number, sent_ns, t_ns, payload_bytes = map(int, words[1:])
            yield PacketArrival(number, sent_ns, t_ns, payload_bytes + IP_UDP_BYTES + ETHERNET_HEADER_BYTES)


def parse_iperf3(text: str, headers_bytes: int) -> Iperf3Counts | None:
    """Read the JSON of iperf3's servers, each after a line with its name; None without any.

    `headers_bytes` is what a rate counts of a packet beside its IP packet.
    """
    parts = IPERF3_OUTPUT.split(text)
    reports = {kind: _json(part) for kind, part in zip(parts[1::2], parts[2::2], strict=True)}
    if not reports:
        return None
    streams = reports.get("paced", {}).get("end", {}).get("streams", ())
    udp: Mapping[str, Any] = next((stream["udp"] for stream in streams if "udp" in stream), {})
    return Iperf3Counts(
        rates_bps=tuple(_interval_rates(reports.get("burst", {}), headers_bytes)),
        paced_packets=int(udp.get("packets", 0)),
        lost=int(udp.get("lost_packets", 0)),
        overtaken=int(udp.get("out_of_order", 0)),
    )


def _json(text: str) -> dict[str, Any]:
    """Read one JSON object; empty if the server was ended before it could write it."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _interval_rates(burst: Mapping[str, Any], headers_bytes: int) -> Iterator[float]:
    """Yield the rate of each interval except the first and the last, which are not filled with packets."""
    payload_bytes = burst.get("start", {}).get("test_start", {}).get("blksize", 0)
    sums = [interval["sum"] for interval in burst.get("intervals", ()) if interval["sum"]["packets"]]
    for one in sums[1:-1]:
        if payload_bytes and one["seconds"] > WHOLE_INTERVAL_S:
            share = (payload_bytes + IP_UDP_BYTES + headers_bytes) / payload_bytes
            yield float(one["bits_per_second"]) * share
