# The unit of each metric that a trial may have; docs/reference/metrics.md says what each is.
metric_units <- c(
  throughput_bps = "bit/s", throughput_link_bps = "bit/s", throughput_payload_bps = "bit/s", throughput_total_bps = "bit/s",
  link_utilisation_share = "share", domination_share = "share", fairness_jain = "share", goodput_bps = "bit/s", flow_completion_s = "s",
  rtt_median_ms = "ms", rtt_median_packets = "packets", rtt_max_ms = "ms", rtt_max_packets = "packets", rtt_min_ms = "ms", handshake_rtt_ms = "ms", timestamp_rtt_median_ms = "ms", srtt_median_ms = "ms",
  jitter_median_ms = "ms", jitter_rfc3550_median_ms = "ms",
  owd_median_ms = "ms", owd_min_ms = "ms", owd_rtt_gap_us = "us", clock_offset_ms = "ms", clock_drift_ppm = "ppm", clock_error_us = "us",
  cwnd_median_packets = "packets", flight_max_bytes = "bytes", rwnd_max_bytes = "bytes", cycles = "cycles",
  limited_application_share = "share", limited_rwnd_share = "share", limited_cwnd_share = "share", limited_link_share = "share",
  retransmissions_packets = "packets", duplicate_acks_packets = "packets", reordered_share = "share", loss_share = "share",
  queue_max_packets = "packets", queue_max_bytes = "bytes", netem_drops_packets = "packets",
  buffer_method1_packets = "packets", buffer_method1_local_packets = "packets", buffer_method2_packets = "packets", buffer_method2_raw_packets = "packets",
  buffer_truth_packets = "packets", buffer_pause_packets = "packets", buffer_pause_bytes = "bytes", buffer_pause_raw_packets = "packets", buffer_delay_packets = "packets",
  local_drops_packets = "packets", pause_episodes = "episodes", pause_to_drop_median_s = "s",
  pause_frames_seen = "frames", pause_frames_counted = "frames", ring_held_share = "share",
  rtt_rwnd_linearity_r2 = "share", rtt_rwnd_slope_ratio = "ratio", overhead_s = "s"
)
