"""The metrics that the analysis writes and expect lines may name, with their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Trace(Enum):
    """What is recorded of a flow, in words; its sender is the host that it comes from."""

    EITHER = "a capture at one end of a flow"
    NEAR = "a capture at a flow's sender"
    BOTH = "captures at both ends of a flow"
    SENDER = "logger tcp-info, siftr or tcp-probe at a flow's sender"
    QUEUE = "logger queue"
    BEACONS = "logger beacons at both ends of a flow"
    PAUSES = "a capture or logger pause-frames at a flow's sender"
    DROPS = "logger nic or siftr at a flow's sender"
    CARD = "logger nic at a flow's sender"


@dataclass(frozen=True)
class Metric:
    """What a metric is and must be recorded for it; `written` says whether the analysis writes it today."""

    unit: str
    description: str
    written: bool = True
    needs: tuple[Trace, ...] = ()


METRICS: Mapping[str, Metric] = {
    "throughput_bps": Metric("bit/s", "IP packets of a flow's data at its receiver", needs=(Trace.EITHER,)),
    "throughput_link_bps": Metric(
        "bit/s",
        "the same as the medium carries it: frame, check sequence, preamble and gap",
        needs=(Trace.EITHER,),
    ),
    "throughput_payload_bps": Metric(
        "bit/s", "payload of a flow at its receiver, repeated or not", needs=(Trace.EITHER,)
    ),
    "throughput_total_bps": Metric(
        "bit/s", "the throughput of all flows of a trial together", needs=(Trace.EITHER,)
    ),
    "goodput_bps": Metric("bit/s", "payload of a flow that was delivered once", needs=(Trace.EITHER,)),
    "link_utilisation_share": Metric(
        "share",
        "IP packets of all flows from senders, from the first to the last of them, over what the path's rate "
        "down carries in that time",
        needs=(Trace.EITHER,),
    ),
    "domination_share": Metric(
        "share",
        "payload of the first flow to begin, of all payload that went its way; where flows compete there",
        needs=(Trace.EITHER,),
    ),
    "fairness_jain": Metric(
        "share",
        "Jain's index of the flows' throughputs: 1 when all are alike, 1/n when one has all",
        needs=(Trace.EITHER,),
    ),
    "flow_completion_s": Metric(
        "s",
        "from a flow's SYN, or its first data, to the acknowledgement of its last, or its last data",
        needs=(Trace.EITHER,),
    ),
    "rtt_median_ms": Metric("ms", "median RTT of packet pairs in two captures", needs=(Trace.NEAR,)),
    "rtt_median_packets": Metric(
        "packets",
        "what the path's rate down carries in the median RTT, in packets of the MTU",
        needs=(Trace.NEAR,),
    ),
    "rtt_max_ms": Metric("ms", "largest RTT of packet pairs", needs=(Trace.NEAR,)),
    "rtt_max_packets": Metric("packets", "what it carries in the largest RTT", needs=(Trace.NEAR,)),
    "rtt_min_ms": Metric("ms", "smallest RTT of packet pairs", needs=(Trace.NEAR,)),
    "jitter_median_ms": Metric(
        "ms", "median difference of the RTTs of consecutive packets", needs=(Trace.BOTH,)
    ),
    "jitter_rfc3550_median_ms": Metric(
        "ms", "median of the interarrival jitter of RFC 3550", needs=(Trace.BOTH,)
    ),
    "timestamp_rtt_median_ms": Metric(
        "ms", "median RTT by TCP's time stamps, at the sender", needs=(Trace.NEAR,)
    ),
    "owd_median_ms": Metric(
        "ms",
        "median one-way delay of a flow, the clocks set against each other by beacons",
        needs=(Trace.BOTH, Trace.BEACONS),
    ),
    "owd_min_ms": Metric(
        "ms",
        "smallest one-way delay of a flow",
        needs=(Trace.BOTH, Trace.BEACONS),
    ),
    "owd_rtt_gap_us": Metric(
        "us",
        "most by which one-way delays there and back do not add up to the RTT of their packets",
        needs=(Trace.BOTH, Trace.BEACONS),
    ),
    "clock_offset_ms": Metric(
        "ms",
        "what the receiver's clock lacks of the sender's, by beacons",
        needs=(Trace.BOTH, Trace.BEACONS),
    ),
    "clock_drift_ppm": Metric(
        "ppm",
        "by which that grows",
        needs=(Trace.BOTH, Trace.BEACONS),
    ),
    "clock_error_us": Metric(
        "us",
        "95 % of the beacons are no farther from the clock's line",
        needs=(Trace.BOTH, Trace.BEACONS),
    ),
    "srtt_median_ms": Metric(
        "ms",
        "median of the sender's own smoothed RTT",
        needs=(
            Trace.EITHER,
            Trace.SENDER,
        ),
    ),
    "cwnd_median_packets": Metric(
        "packets",
        "median congestion window",
        needs=(
            Trace.EITHER,
            Trace.SENDER,
        ),
    ),
    "flight_max_bytes": Metric("bytes", "most bytes in flight, at the sender", needs=(Trace.NEAR,)),
    "limited_application_share": Metric(
        "share",
        "of the time in which a flow's sender had less in flight than its windows let it",
        needs=(
            Trace.EITHER,
            Trace.SENDER,
        ),
    ),
    "limited_rwnd_share": Metric(
        "share",
        "of the time in which the receive window limited a flow",
        needs=(
            Trace.EITHER,
            Trace.SENDER,
        ),
    ),
    "limited_cwnd_share": Metric(
        "share",
        "of the time in which the congestion window limited a flow",
        needs=(
            Trace.EITHER,
            Trace.SENDER,
        ),
    ),
    "limited_link_share": Metric(
        "share",
        "of the time in which its window held more than the idle path, so that the link limited it",
        needs=(
            Trace.EITHER,
            Trace.SENDER,
        ),
    ),
    "retransmissions_packets": Metric("packets", "packets sent again", needs=(Trace.NEAR,)),
    "duplicate_acks_packets": Metric(
        "packets", "acknowledgements that repeat the one before; window updates are none", needs=(Trace.NEAR,)
    ),
    "reordered_share": Metric(
        "share",
        "packets that one sent later overtook, of those that arrived; losses are none",
        needs=(Trace.BOTH,),
    ),
    "loss_share": Metric(
        "share",
        "packets sent and never seen at the other end; those still in flight when a capture ended are not "
        "judged",
        needs=(Trace.BOTH,),
    ),
    "handshake_rtt_ms": Metric("ms", "SYN to SYN-ACK at the sender: the idle path", needs=(Trace.NEAR,)),
    "queue_max_packets": Metric("packets", "deepest queue that the sampler saw", needs=(Trace.QUEUE,)),
    "queue_max_bytes": Metric("bytes", "deepest queue that the sampler saw", needs=(Trace.QUEUE,)),
    "netem_drops_packets": Metric(
        "packets",
        "packets that netem dropped: loss that was set, or a delay with too little room",
        needs=(Trace.QUEUE,),
    ),
    "buffer_method1_packets": Metric(
        "packets",
        "buffer by queueing delay times the cycle's mean rate",
        needs=(
            Trace.BOTH,
            Trace.SENDER,
        ),
    ),
    "buffer_method1_local_packets": Metric(
        "packets",
        "buffer by queueing delay times the rate during it",
        needs=(
            Trace.BOTH,
            Trace.SENDER,
        ),
    ),
    "buffer_method2_packets": Metric(
        "packets",
        "buffer by cwnd before its collapse, less the idle path",
        needs=(
            Trace.BOTH,
            Trace.SENDER,
        ),
    ),
    "buffer_method2_raw_packets": Metric(
        "packets",
        "buffer by cwnd just before its collapse",
        needs=(
            Trace.BOTH,
            Trace.SENDER,
        ),
    ),
    "buffer_truth_packets": Metric("packets", "deepest queue in a trial with drops", needs=(Trace.QUEUE,)),
    "buffer_pause_packets": Metric(
        "packets",
        "packets in flight when the first PAUSE frame came, less those on the idle path",
        needs=(Trace.BOTH,),
    ),
    "buffer_pause_bytes": Metric("bytes", "these packets at the MTU", needs=(Trace.BOTH,)),
    "buffer_pause_raw_packets": Metric(
        "packets",
        "packets in flight then, all of them, as published; where beacons tell the clocks",
        needs=(Trace.BOTH, Trace.BEACONS),
    ),
    "buffer_delay_packets": Metric(
        "packets", "growth of the one-way delay times the rate of the link", needs=(Trace.BOTH,)
    ),
    "local_drops_packets": Metric(
        "packets",
        "packets that the sender's own ring refused",
        needs=(
            Trace.EITHER,
            Trace.DROPS,
        ),
    ),
    "pause_episodes": Metric(
        "episodes",
        "times that PAUSE frames came after a tenth of a second without",
        needs=(
            Trace.EITHER,
            Trace.PAUSES,
        ),
    ),
    "pause_frames_seen": Metric(
        "frames",
        "PAUSE frames that the sender's capture or logger saw",
        needs=(
            Trace.EITHER,
            Trace.PAUSES,
        ),
    ),
    "pause_frames_counted": Metric(
        "frames",
        "PAUSE frames that the sender's card counted as received, where its driver counts them",
        needs=(
            Trace.EITHER,
            Trace.CARD,
        ),
    ),
    "ring_held_share": Metric(
        "share",
        "rate of the sender's interface while its ring refused packets, over the fastest it sent",
        needs=(
            Trace.EITHER,
            Trace.CARD,
        ),
    ),
    "pause_to_drop_median_s": Metric(
        "s",
        "median time from the first PAUSE frame to the first packet that the ring refused",
        needs=(
            Trace.EITHER,
            Trace.PAUSES,
            Trace.DROPS,
        ),
    ),
    "rwnd_max_bytes": Metric("bytes", "largest receive window seen", needs=(Trace.EITHER,)),
    "rtt_rwnd_linearity_r2": Metric(
        "share", "how straight median RTT grows with the window", needs=(Trace.NEAR,)
    ),
    "rtt_rwnd_slope_ratio": Metric("ratio", "that line's slope, divided by 8 / rate", needs=(Trace.NEAR,)),
    "cycles": Metric(
        "cycles",
        "collapses of cwnd caused by loss",
        needs=(
            Trace.EITHER,
            Trace.SENDER,
        ),
    ),
    "overhead_s": Metric("s", "what the trial cost beyond its traffic"),
}
