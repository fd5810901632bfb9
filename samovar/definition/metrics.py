"""The metrics that the analysis writes and expect lines may name, with their units."""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, str] = {
    "throughput_bps": "bit/s",
    "goodput_bps": "bit/s",
    "rtt_median_ms": "ms",
    "rtt_max_ms": "ms",
    "rtt_min_ms": "ms",
    "srtt_median_ms": "ms",
    "cwnd_median_packets": "packets",
    "retransmissions_packets": "packets",
    "loss_share": "share",
    "handshake_rtt_ms": "ms",
    "queue_max_packets": "packets",
    "queue_max_bytes": "bytes",
    "buffer_method1_packets": "packets",
    "buffer_method1_local_packets": "packets",
    "buffer_method2_packets": "packets",
    "buffer_method2_raw_packets": "packets",
    "buffer_truth_packets": "packets",
    "rwnd_max_bytes": "bytes",
    "rtt_rwnd_linearity_r2": "share",
    "rtt_rwnd_slope_ratio": "ratio",
    "cycles": "cycles",
    "overhead_s": "s",
}
