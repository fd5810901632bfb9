"""Parse the output of path calibration scripts into the measurement of one direction of the path.

The calibration sends a burst of packets, which fills the queue at the router and shows rate and buffer. Then
the calibration sends packets at a pace that does not fill the queue. These packets show losses, duplicates
and reordering.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

from samovar.campaign.verdict.traces import DUMMYNET, read_queue_samples
from samovar.recipes import ETHERNET_HEADER_BYTES, IP_UDP_BYTES

RATE_PARTS = 40
PING = re.compile(r"icmp_seq=(\d+) .*time=([\d.]+) ms")
FIRST_ECHO = {"0", "1"}
"""The sequence number of the first echo request is 0 on FreeBSD and 1 on Linux. The round-trip time of this
request is ignored, because it may include the time for ARP."""
IPERF3_OUTPUT = re.compile(r"^iperf3 (burst|paced)\n", re.MULTILINE)
WHOLE_INTERVAL_S = 0.05
"""A shorter interval in iperf3's report is the remainder at the end, from which no rate is computed."""


class PacketArrival(NamedTuple):
    """One packet at the receiver: number, frame size, send time and the kernel's receive time.

    The send time is by the sender's clock, the receive time by the receiver's.
    """

    number: int
    sent_ns: int
    t_ns: int
    frame_bytes: int


@dataclass(frozen=True)
class DirectionMeasurement:
    """The measurement of one direction of a path. A value is None if it could not be measured.

    `rate_bps` is the rate at which the full queue drains, counting the headers that the router counts.
    `sampled_packets` and `sampled_bytes` are the length of the longest queue that was sampled at the router.
    `in_flight_packets` is the length of the longest queue, derived from delays. Of the `sent_paced` packets,
    some may be `lost`, some may arrive twice (`duplicates`), and some may be `overtaken` by later packets.
    """

    round_trips_s: tuple[float, ...] = ()
    rate_bps: float | None = None
    sampled_packets: int | None = None
    sampled_bytes: int | None = None
    in_flight_packets: int | None = None
    sent_paced: int = 0
    lost: int = 0
    mean_loss_burst_packets: float | None = None
    duplicates: int = 0
    overtaken: int = 0

    @property
    def base_rtt_s(self) -> float | None:
        """The median round-trip time of the idle path in seconds, or None if no echo request was answered."""
        return median(self.round_trips_s) if self.round_trips_s else None

    def as_json(self) -> Mapping[str, object]:
        """Return the measurement as calibration files store it."""
        values = asdict(self)
        del values["round_trips_s"]
        return {"base_rtt_s": self.base_rtt_s, **values}


def parse_measurement(
    sent: str, received: str, queue: str, interface: str, burst_bytes: int
) -> DirectionMeasurement:
    """Parse the output of the sender's and the receiver's scripts, and the samples of the router's queue.

    `burst_bytes` is the size of the router's token bucket.
    """
    samples = list(read_queue_samples(queue.splitlines(), interface))
    echoes = PING.findall(sent)
    first = next((number for number, _ in echoes if number in FIRST_ECHO), None)
    # The router's rate includes this many bytes per packet in addition to the IP packet.
    headers_bytes = 0 if f",{DUMMYNET}," in queue else ETHERNET_HEADER_BYTES
    parts = IPERF3_OUTPUT.split(received)
    if len(parts) > 1:
        reports = {kind: _json(part) for kind, part in zip(parts[1::2], parts[2::2], strict=True)}
        rest = _iperf3_values(reports.get("burst", {}), reports.get("paced", {}), headers_bytes)
    else:
        paced = re.search(r"^sent paced (\d+)", sent, re.MULTILINE)
        burst = _arrivals(received, "burst")
        rest = {
            "rate_bps": _drain_rate_bps(burst, burst_bytes, headers_bytes),
            "in_flight_packets": _in_flight_packets(burst),
            **_paced_values(_arrivals(received, "paced"), int(paced[1]) if paced else 0),
        }
    return DirectionMeasurement(
        round_trips_s=tuple(float(ms) / 1e3 for number, ms in echoes if number != first),
        sampled_packets=max((sample.backlog_packets for sample in samples), default=None),
        sampled_bytes=max((sample.backlog_bytes for sample in samples), default=None),
        **rest,
    )


def _arrivals(text: str, kind: str) -> list[PacketArrival]:
    lines = (line.split() for line in text.splitlines())
    values = [list(map(int, words[1:])) for words in lines if len(words) == 5 and words[0] == kind]
    frames = IP_UDP_BYTES + ETHERNET_HEADER_BYTES
    return [PacketArrival(number, sent_ns, t_ns, size + frames) for number, sent_ns, t_ns, size in values]


def _drain_rate_bps(burst: Sequence[PacketArrival], burst_bytes: int, headers_bytes: int) -> float | None:
    """Return the median rate of the parts of a burst, or None if the burst is too short.

    Each part is at least as large as two token buckets. The beginning of the burst, during which the token
    bucket empties, is left out. The median is used because it ignores brief stalls of a host.
    """
    frame_bytes = max((arrival.frame_bytes for arrival in burst), default=1)
    buckets = 2 * burst_bytes // frame_bytes + 1
    drained = burst[buckets:]
    size = max(buckets, len(drained) // RATE_PARTS)
    rates = [
        size * late.frame_bytes * 8e9 / (late.t_ns - early.t_ns)
        for early, late in pairwise(drained[::size])
        if late.t_ns > early.t_ns
    ]
    share = (frame_bytes - ETHERNET_HEADER_BYTES + headers_bytes) / frame_bytes
    return median(rates) * share if rates else None


def _in_flight_packets(burst: Sequence[PacketArrival]) -> int | None:
    """Return the largest number of packets in the queue at one time, or None if no packet arrived.

    The time that a packet spends in the queue is estimated as its delay minus the smallest delay of all
    packets, in which the offset of the two clocks cancels. Packets that were delayed elsewhere therefore
    count too. Packets that the queue discipline dropped do not count, even if they were queued.
    """
    if not burst:
        return None
    least_ns = min(arrival.t_ns - arrival.sent_ns for arrival in burst)
    events = [(arrival.sent_ns, 1) for arrival in burst]
    events += [(arrival.t_ns - least_ns, -1) for arrival in burst]
    return max(accumulate(change for _, change in sorted(events)))


def _paced_values(paced: Sequence[PacketArrival], sent: int) -> dict[str, Any]:
    arrived = {arrival.number for arrival in paced}
    lost = ((number not in arrived) for number in range(sent))
    runs = [len(list(run)) for missing, run in groupby(lost) if missing]
    return {
        "sent_paced": sent,
        "lost": sum(runs),
        "mean_loss_burst_packets": sum(runs) / len(runs) if runs else None,
        "duplicates": len(paced) - len(arrived),
        "overtaken": sum(later.number < earlier.number for earlier, later in pairwise(paced)),
    }


def _json(text: str) -> dict[str, Any]:
    """Parse a JSON object; return an empty object if the text is incomplete.

    iperf3's output is incomplete if its server was stopped early.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _iperf3_values(burst: Mapping[str, Any], paced: Mapping[str, Any], headers_bytes: int) -> dict[str, Any]:
    """Return measured values from iperf3's reports, for receivers that cannot record single packets.

    The rate is the median over all intervals except the first and the last, in which packets arrived only
    part of the time.
    """
    streams = paced.get("end", {}).get("streams", ())
    udp: Mapping[str, Any] = next((stream["udp"] for stream in streams if "udp" in stream), {})
    payload_bytes = burst.get("start", {}).get("test_start", {}).get("blksize", 0)
    sums = [interval["sum"] for interval in burst.get("intervals", ()) if interval["sum"]["packets"]]
    rates = [
        float(one["bits_per_second"]) * (payload_bytes + IP_UDP_BYTES + headers_bytes) / payload_bytes
        for one in sums[1:-1]
        if payload_bytes and one["seconds"] > WHOLE_INTERVAL_S
    ]
    return {
        "rate_bps": median(rates) if rates else None,
        "sent_paced": int(udp.get("packets", 0)),
        "lost": int(udp.get("lost_packets", 0)),
        "overtaken": int(udp.get("out_of_order", 0)),
    }
