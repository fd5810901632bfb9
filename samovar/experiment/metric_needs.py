"""What must be recorded of a trial for each metric."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Trace(Enum):
    """What is recorded of a flow, in words; its sender is the host that it comes from."""

    EITHER = "a capture at one end of a flow"
    NEAR = "a capture at a flow's sender"
    BOTH = "captures at both ends of a flow"
    SENDER = "logger tcp-info, siftr or tcp-probe at a flow's sender"
    QUEUE = "logger queue at the bottleneck's router"
    BEACONS = "logger beacons at both ends of a flow"
    PAUSES = "a capture or logger pause-frames at a flow's sender"
    DROPS = "logger nic or siftr at a flow's sender"
    CARD = "logger nic at a flow's sender"


NEEDS: Mapping[str, tuple[Trace, ...]] = {
    **dict.fromkeys(
        (
            *("throughput_bps", "throughput_link_bps", "throughput_payload_bps", "throughput_total_bps"),
            *("goodput_bps", "link_utilisation_share", "domination_share", "fairness_jain"),
            *("flow_completion_s", "rwnd_max_bytes"),
        ),
        (Trace.EITHER,),
    ),
    **dict.fromkeys(
        (
            *("rtt_median_ms", "rtt_median_packets", "rtt_max_ms", "rtt_max_packets", "rtt_min_ms"),
            *("timestamp_rtt_median_ms", "handshake_rtt_ms", "rtt_rwnd_linearity_r2", "rtt_rwnd_slope_ratio"),
            *("flight_max_bytes", "retransmissions_packets", "duplicate_acks_packets"),
        ),
        (Trace.NEAR,),
    ),
    **dict.fromkeys(
        (
            *("jitter_median_ms", "jitter_rfc3550_median_ms", "reordered_share", "loss_share"),
            *("buffer_delay_packets", "buffer_pause_packets", "buffer_pause_bytes"),
        ),
        (Trace.BOTH,),
    ),
    **dict.fromkeys(
        (
            *("owd_median_ms", "owd_min_ms", "owd_rtt_gap_us", "buffer_pause_raw_packets"),
            *("clock_offset_ms", "clock_drift_ppm", "clock_error_us"),
        ),
        (Trace.BOTH, Trace.BEACONS),
    ),
    **dict.fromkeys(
        (
            *("srtt_median_ms", "cwnd_median_packets", "cycles", "limited_application_share"),
            *("limited_rwnd_share", "limited_cwnd_share", "limited_link_share"),
        ),
        (Trace.EITHER, Trace.SENDER),
    ),
    **dict.fromkeys(
        ("queue_max_packets", "queue_max_bytes", "netem_drops_packets", "buffer_truth_packets"),
        (Trace.QUEUE,),
    ),
    **dict.fromkeys(
        (
            *("buffer_method1_packets", "buffer_method1_local_packets"),
            *("buffer_method2_packets", "buffer_method2_raw_packets"),
        ),
        (Trace.BOTH, Trace.SENDER),
    ),
    "local_drops_packets": (Trace.EITHER, Trace.DROPS),
    **dict.fromkeys(("pause_episodes", "pause_frames_seen"), (Trace.EITHER, Trace.PAUSES)),
    "pause_to_drop_median_s": (Trace.EITHER, Trace.PAUSES, Trace.DROPS),
    **dict.fromkeys(("pause_frames_counted", "ring_held_share"), (Trace.EITHER, Trace.CARD)),
    "overhead_s": (),
}
"""What R's measure_trial() takes for each: all of it."""
