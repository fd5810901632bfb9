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
    "rtt_median_ms": Metric("ms", "median RTT of packet pairs in two captures"),
    "rtt_max_ms": Metric("ms", "largest RTT of packet pairs"),
    "rtt_min_ms": Metric("ms", "smallest RTT of packet pairs"),
    "jitter_median_ms": Metric("ms", "median difference of the RTTs of consecutive packets", written=False),
    "srtt_median_ms": Metric("ms", "median of the sender's own smoothed RTT"),
    "cwnd_median_packets": Metric("packets", "median congestion window"),
    "retransmissions_packets": Metric("packets", "packets sent again"),
    "loss_share": Metric(
        "share",
        "packets sent and never seen at the other end; those still in flight when a capture ended are not "
        "judged",
    ),
    "handshake_rtt_ms": Metric("ms", "SYN to SYN-ACK at the sender: the idle path"),
    "queue_max_packets": Metric("packets", "deepest queue that the sampler saw"),
    "queue_max_bytes": Metric("bytes", "deepest queue that the sampler saw"),
    "buffer_method1_packets": Metric("packets", "buffer by queueing delay times the cycle's mean rate"),
    "buffer_method1_local_packets": Metric("packets", "buffer by queueing delay times the rate during it"),
    "buffer_method2_packets": Metric("packets", "buffer by cwnd before its collapse, less the idle path"),
    "buffer_method2_raw_packets": Metric("packets", "buffer by cwnd just before its collapse"),
    "buffer_truth_packets": Metric("packets", "deepest queue in a trial with drops"),
    "buffer_pause_packets": Metric(
        "packets", "packets in flight when the first PAUSE frame came", written=False
    ),
    "buffer_delay_packets": Metric(
        "packets", "growth of the one-way delay times the rate of the link", written=False
    ),
    "local_drops_packets": Metric("packets", "packets that the sender's own ring refused", written=False),
    "pause_to_drop_median_s": Metric(
        "s", "median time from the first PAUSE frame to the first packet that the ring refused", written=False
    ),
    "rwnd_max_bytes": Metric("bytes", "largest receive window seen"),
    "rtt_rwnd_linearity_r2": Metric("share", "how straight median RTT grows with the window"),
    "rtt_rwnd_slope_ratio": Metric("ratio", "that line's slope, divided by 8 / rate"),
    "cycles": Metric("cycles", "collapses of cwnd caused by loss"),
    "overhead_s": Metric("s", "what the trial cost beyond its traffic"),
}
