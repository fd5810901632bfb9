"""The metrics that the analysis writes and expect lines may name, with their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """What a metric is; `written` says whether the analysis writes it today."""

    unit: str
    description: str
    written: bool = True


METRICS: Mapping[str, Metric] = {
    "throughput_bps": Metric("bit/s", "IP packets of a flow's data at its receiver"),
    "throughput_link_bps": Metric(
        "bit/s", "the same as the medium carries it: frame, check sequence, preamble and gap"
    ),
    "throughput_payload_bps": Metric("bit/s", "payload of a flow at its receiver, repeated or not"),
    "throughput_total_bps": Metric("bit/s", "the throughput of all flows of a trial together"),
    "goodput_bps": Metric("bit/s", "payload of a flow that was delivered once"),
    "link_utilisation_share": Metric(
        "share",
        "IP packets of all flows from senders, from the first to the last of them, over what the path's rate "
        "down carries in that time",
    ),
    "domination_share": Metric(
        "share",
        "payload of the first flow to begin, of all payload that went its way; where flows compete there",
    ),
    "fairness_jain": Metric(
        "share", "Jain's index of the flows' throughputs: 1 when all are alike, 1/n when one has all"
    ),
    "flow_completion_s": Metric(
        "s", "from a flow's SYN, or its first data, to the acknowledgement of its last, or its last data"
    ),
    "rtt_median_ms": Metric("ms", "median RTT of packet pairs in two captures"),
    "rtt_median_packets": Metric(
        "packets", "what the path's rate down carries in the median RTT, in packets of the MTU"
    ),
    "rtt_max_ms": Metric("ms", "largest RTT of packet pairs"),
    "rtt_max_packets": Metric("packets", "what it carries in the largest RTT"),
    "rtt_min_ms": Metric("ms", "smallest RTT of packet pairs"),
    "jitter_median_ms": Metric("ms", "median difference of the RTTs of consecutive packets"),
    "jitter_rfc3550_median_ms": Metric("ms", "median of the interarrival jitter of RFC 3550"),
    "timestamp_rtt_median_ms": Metric("ms", "median RTT by TCP's time stamps, at the sender"),
    "owd_median_ms": Metric(
        "ms", "median one-way delay of a flow, the clocks set against each other by beacons"
    ),
    "owd_min_ms": Metric("ms", "smallest one-way delay of a flow"),
    "owd_rtt_gap_us": Metric(
        "us", "most by which one-way delays there and back do not add up to the RTT of their packets"
    ),
    "clock_offset_ms": Metric("ms", "what the receiver's clock lacks of the sender's, by beacons"),
    "clock_drift_ppm": Metric("ppm", "by which that grows"),
    "clock_error_us": Metric("us", "95 % of the beacons are no farther from the clock's line"),
    "srtt_median_ms": Metric("ms", "median of the sender's own smoothed RTT"),
    "cwnd_median_packets": Metric("packets", "median congestion window"),
    "flight_max_bytes": Metric("bytes", "most bytes in flight, at the sender"),
    "limited_application_share": Metric(
        "share", "of the time in which a flow's sender had less in flight than its windows let it"
    ),
    "limited_rwnd_share": Metric("share", "of the time in which the receive window limited a flow"),
    "limited_cwnd_share": Metric("share", "of the time in which the congestion window limited a flow"),
    "limited_link_share": Metric(
        "share", "of the time in which its window held more than the idle path, so that the link limited it"
    ),
    "retransmissions_packets": Metric("packets", "packets sent again"),
    "duplicate_acks_packets": Metric(
        "packets", "acknowledgements that repeat the one before; window updates are none"
    ),
    "reordered_share": Metric(
        "share", "packets that one sent later overtook, of those that arrived; losses are none"
    ),
    "loss_share": Metric(
        "share",
        "packets sent and never seen at the other end; those still in flight when a capture ended are not "
        "judged",
    ),
    "handshake_rtt_ms": Metric("ms", "SYN to SYN-ACK at the sender: the idle path"),
    "queue_max_packets": Metric("packets", "deepest queue that the sampler saw"),
    "queue_max_bytes": Metric("bytes", "deepest queue that the sampler saw"),
    "netem_drops_packets": Metric(
        "packets", "packets that netem dropped: loss that was set, or a delay with too little room"
    ),
    "buffer_method1_packets": Metric("packets", "buffer by queueing delay times the cycle's mean rate"),
    "buffer_method1_local_packets": Metric("packets", "buffer by queueing delay times the rate during it"),
    "buffer_method2_packets": Metric("packets", "buffer by cwnd before its collapse, less the idle path"),
    "buffer_method2_raw_packets": Metric("packets", "buffer by cwnd just before its collapse"),
    "buffer_truth_packets": Metric("packets", "deepest queue in a trial with drops"),
    "buffer_pause_packets": Metric(
        "packets", "packets in flight when the first PAUSE frame came, less those on the idle path"
    ),
    "buffer_pause_bytes": Metric("bytes", "these packets at the MTU"),
    "buffer_pause_raw_packets": Metric(
        "packets", "packets in flight then, all of them, as published; where beacons tell the clocks"
    ),
    "buffer_delay_packets": Metric("packets", "growth of the one-way delay times the rate of the link"),
    "local_drops_packets": Metric("packets", "packets that the sender's own ring refused"),
    "pause_episodes": Metric("episodes", "times that PAUSE frames came after a tenth of a second without"),
    "pause_frames_seen": Metric("frames", "PAUSE frames that the sender's capture or logger saw"),
    "pause_frames_counted": Metric(
        "frames", "PAUSE frames that the sender's card counted as received, where its driver counts them"
    ),
    "ring_held_share": Metric(
        "share", "rate of the sender's interface while its ring refused packets, over the fastest it sent"
    ),
    "pause_to_drop_median_s": Metric(
        "s", "median time from the first PAUSE frame to the first packet that the ring refused"
    ),
    "rwnd_max_bytes": Metric("bytes", "largest receive window seen"),
    "rtt_rwnd_linearity_r2": Metric("share", "how straight median RTT grows with the window"),
    "rtt_rwnd_slope_ratio": Metric("ratio", "that line's slope, divided by 8 / rate"),
    "cycles": Metric("cycles", "collapses of cwnd caused by loss"),
    "overhead_s": Metric("s", "what the trial cost beyond its traffic"),
}
