# On a host with several CPUs the packets of a capture are not exactly in order of time.

# The same packets in another order: each is moved by at most 1.5 times `places` rows.
mixed_up <- function(capture, places) {
  mixed <- capture[order(seq_len(.N) + 1.5 * ((seq_len(.N) * 7919) %% places))]
  data.table::setattr(mixed, "epoch_s", attr(capture, "epoch_s"))
}

test_that("measurements of a capture do not depend on the order of its packets in the file", {
  pair <- committed_pair()
  ref <- read_pcap(pair$sender)
  mon <- read_pcap(pair$receiver)
  flow <- data_flows(ref)$flow[1]
  measure <- \(ref, mon) list(
    packet_pair_rtt(ref, mon, flow)$rtt_ms, data_ack_rtt(ref, flow)$rtt_ms, goodput(ref, flow), bytes_in_flight(ref, flow)$flight_bytes, duplicate_acks(ref, flow),
    flow_completion(ref, flow), interarrival_jitter(ref, mon, flow)$jitter_ms, arrival_order(ref, mon, flow), throughput_levels(mon, flow),
    timestamp_rtt(ref, flow)$rtt_ms, advertised_window(ref, flow)$window_bytes, loss_by_flow(ref, mon, flow), lost_packets(ref, mon, flow)$t_ns
  )
  # Packets with equal times are removed, so that there is only one order of time.
  without_ties <- \(x) data.table::setattr(x[!duplicated(t_ns)], "epoch_s", attr(x, "epoch_s"))
  ref <- without_ties(ref)
  mon <- without_ties(mon)
  expected <- measure(ref, mon)
  for (places in c(3, 20)) {
    expect_true(is.unsorted(mixed_up(ref, places)$t_ns))
    expect_equal(measure(mixed_up(ref, places), mixed_up(mon, places)), expected)
  }
})
