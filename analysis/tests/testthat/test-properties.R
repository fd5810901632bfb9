# Properties that hold for any traffic: random packets over a path that loses, duplicates and reorders them, captured with different clocks.

# Data of one flow and an acknowledgement of each packet that arrives. IP ids wrap, sequence numbers may wrap.
random_traffic <- function(seed, packets = 300) {
  set.seed(seed)
  first_seq <- sample(c(1000, 2^32 - 50 * 1000, 2^31 - 7), 1)
  sent_ns <- cumsum(sample(2e5:3e6, packets, TRUE))
  way_ns <- 10e6 + round(stats::rexp(packets, 1 / 2e6))
  lost <- stats::runif(packets) < 0.1
  segment <- \(i) ethernet(ipv4(tcp(1000, 80, (first_seq + 1000 * (i - 1)) %% 2^32, 1, 16, 1000, option_timestamps(i, 1)), 6, id = (65500 + i) %% 65536, length = 1052))
  answer <- \(i) ethernet(ipv4(tcp(80, 1000, 1, (first_seq + 1000 * i) %% 2^32, 16, 2000, option_timestamps(9e5 + i, i)), 6, "10.0.0.2", "10.0.0.1", id = i))
  arrived <- which(!lost)
  arrived_ns <- (sent_ns + way_ns)[arrived]
  back_ns <- arrived_ns + sample(1e4:1e6, length(arrived), TRUE)
  home_ns <- back_ns + 10e6
  twice <- sample(length(arrived), 5)
  in_order <- \(frames, t_ns) read_pcap(write_capture(frames[order(t_ns)], t_ns = sort(t_ns)))
  list(
    sent = packets, lost = sum(lost), overtaken = sum(arrived_ns[-length(arrived)] > rev(cummin(rev(arrived_ns)))[-1]),
    ref = in_order(c(lapply(seq_len(packets), segment), lapply(arrived, answer)), c(sent_ns, home_ns)),
    mon = in_order(c(lapply(arrived, segment), lapply(arrived, answer)), c(arrived_ns, back_ns)),
    # Some data packets arrive twice, as on a link that repeats packets it believes lost.
    doubled = in_order(c(lapply(arrived, segment), lapply(arrived, answer), lapply(arrived[twice], segment)), c(arrived_ns, back_ns, arrived_ns[twice] + 1e3))
  )
}

# Generated once, because no measure changes its captures.
traffic <- lapply(1:6, random_traffic)
for_each_seed <- function(check) for (seed in seq_along(traffic)) check(traffic[[seed]], seed)

test_that("matched, lost and unjudged packets add up to the sent packets, and lost packets are those that the path dropped", {
  for_each_seed(\(x, seed) {
    found <- arrival_order(x$ref, x$mon, flow_a)
    expect_equal(found$arrived_packets + found$lost_packets + found$unjudged_packets, x$sent, info = seed)
    expect_equal(found$lost_packets + found$unjudged_packets, x$lost, info = seed)
    loss <- loss_by_flow(x$ref, x$mon, flow_a)
    expect_equal(c(loss$lost_packets, loss$unjudged_packets), c(found$lost_packets, found$unjudged_packets), info = seed)
  })
})

test_that("overtaken packets are reordered and not lost, also when sequence numbers and IP ids wrap", {
  for_each_seed(\(x, seed) expect_equal(arrival_order(x$ref, x$mon, flow_a)$reordered_packets, x$overtaken, info = seed))
})

test_that("packets duplicated by the path change neither loss nor round-trip times", {
  for_each_seed(\(x, seed) {
    expect_equal(arrival_order(x$ref, x$doubled, flow_a)$lost_packets, arrival_order(x$ref, x$mon, flow_a)$lost_packets, info = seed)
    expect_equal(packet_pair_rtt(x$ref, x$doubled, flow_a)$rtt_ms, packet_pair_rtt(x$ref, x$mon, flow_a)$rtt_ms, info = seed)
  })
})

test_that("a clock offset does not change a round-trip time, and a skew of 40 ppm changes it by at most 40 ppm of the stay at the receiver", {
  for_each_seed(\(x, seed) {
    expected <- packet_pair_rtt(x$ref, x$mon, flow_a)$rtt_ms
    expect_identical(packet_pair_rtt(x$ref, move_clock(x$mon, -7.3e9), flow_a)$rtt_ms, expected, info = seed)
    skewed <- packet_pair_rtt(x$ref, move_clock(x$mon, 1.1e9, 40), flow_a)$rtt_ms
    longest_stay_ms <- 3 + 20
    expect_lt(max(abs(skewed - expected)), 40e-6 * longest_stay_ms + 2e-6)
  })
})

test_that("no round-trip time is below the delay of the path", {
  for_each_seed(\(x, seed) expect_gte(min(packet_pair_rtt(x$ref, x$mon, flow_a)$rtt_ms), 20))
})

test_that("the bytes of all windows add up to the total, for every width and layer", {
  for_each_seed(\(x, seed) {
    for (layer in c("ip", "frame", "payload")) for (width_s in c(0.003, 0.1, 7)) {
      expect_equal(sum(throughput_windows(x$mon, width_s, layer = layer)$bytes), sum(x$mon[[paste0(layer, "_bytes")]]), info = paste(seed, layer, width_s))
    }
  })
})

test_that("goodput counts every byte once, in whichever order the packets arrived", {
  for_each_seed(\(x, seed) {
    arrived <- x$mon[flow == flow_a]
    expect_equal(goodput(x$mon, flow_a)$unique_bytes, sum(arrived$payload_bytes), info = seed)
    expect_equal(goodput(x$doubled, flow_a)$unique_bytes, sum(arrived$payload_bytes), info = seed)
    expect_equal(goodput(x$doubled, flow_a)$retransmitted_packets, 5, info = seed)
  })
})
