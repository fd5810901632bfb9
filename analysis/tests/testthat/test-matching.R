# Matching divides the packets of a capture by id into shares of a few thousand, which threads process: these captures have many shares.

# Segments of four flows; each sequence number occurs many times.
repeating_capture <- function(packets = 40000) {
  number <- seq_len(packets)
  frame <- \(n, seq) ethernet(ipv4(tcp(sport = n, seq = seq, payload = raw(100), options = option_timestamps(n, seq)), 6, src = paste0("10.0.0.", n)))
  frames <- unlist(lapply(1:4, \(n) lapply(1:100, \(seq) frame(n, seq))), recursive = FALSE)
  read_pcap(write_capture(frames[1 + number %% 400], t_ns = number * 1e3))
}

test_that("a capture matched with itself has a match for every packet, with one thread and with several, although most ids repeat", {
  capture <- repeating_capture()
  flows <- data_flows(capture)$flow
  expect_setequal(flows, levels(capture$flow))
  for (threads in c(1, 3)) {
    loss <- run_with_threads(threads, loss_by_flow(capture, capture))
    sent <- capture[, .(sent = .N, distinct = uniqueN(id)), by = flow][match(loss$flow, flow)]
    expect_equal(loss$sent_packets, sent$sent)
    expect_equal(loss$lost_packets + loss$unjudged_packets, rep(0, length(flows)))
    expect_equal(loss$ambiguous_packets, ifelse(sent$distinct < sent$sent, sent$sent, 0))
    expect_true(all(run_with_threads(threads, interarrival_jitter(capture, capture, flows[1]))$jitter_ms == 0))
  }
})

test_that("the round-trip times of many packets are the same with one thread and with several", {
  pair <- committed_pair()
  ref <- read_pcap(pair$sender)
  mon <- read_pcap(pair$receiver)
  one <- run_with_threads(1, rtt_by_flow(ref, mon))
  expect_gt(nrow(one), 300)
  expect_identical(run_with_threads(3, rtt_by_flow(ref, mon)), one)
})
