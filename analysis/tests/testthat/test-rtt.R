read_pair <- function(pair) list(ref = read_pcap(pair$sender), mon = read_pcap(pair$receiver), drops = pair$drops)

# Packet pairs by their definition: each returning packet and the last outgoing packet that reached mon before it, which no earlier pair has used.
pairs_by_definition <- function(ref, mon, flow) {
  matched <- \(name) {
    r <- ref[as.character(ref$flow) == name]
    m <- mon[as.character(mon$flow) == name]
    r[, turn := seq_len(.N), by = id]
    m[, turn := seq_len(.N), by = id]
    m[r, .(mon_ns = x.t_ns, ref_ns = i.t_ns, row = .I), on = c("id", "turn"), nomatch = NULL][order(mon_ns)]
  }
  out <- matched(flow)
  back <- matched(reverse_flow(flow))
  used <- 0L
  rows <- lapply(seq_len(nrow(back)), \(i) {
    last <- sum(out$mon_ns < back$mon_ns[i])
    if (last <= used) return(NULL)
    used <<- last
    round_ns <- back$ref_ns[i] - out$ref_ns[last]
    stay_ns <- back$mon_ns[i] - out$mon_ns[last]
    data.table::data.table(t_ns = back$ref_ns[i] - round_ns / 2, rtt_ms = pmax(round_ns - stay_ns, 0) / 1e6,
                           arrival_ns = out$mon_ns[last])
  })
  data.table::rbindlist(rows)
}

test_that("packet pairs agree with their definition", {
  for (pair in all_pairs()) {
    x <- read_pair(pair)
    for (flow in data_flows(x$ref)$flow) {
      ours <- packet_pair_rtt(x$ref, x$mon, flow)
      expect_equal(ours, pairs_by_definition(x$ref, x$mon, flow), ignore_attr = TRUE)
    }
    expect_gt(nrow(packet_pair_rtt(x$ref, x$mon, data_flows(x$ref)$flow[1])), 300)
  }
})

test_that("a shift of the receiver's clock does not change packet pair times by a single bit", {
  x <- read_pair(committed_pair())
  expected <- rtt_by_flow(x$ref, x$mon)
  expect_equal(attr(expected, "floored"), 0)
  for (offset_s in c(3.7, -3.7, 86400 * 365.25, -1.5e9)) {
    moved <- rtt_by_flow(x$ref, move_clock(x$mon, offset_s * 1e9))
    expect_identical(moved$arrival_ns, expected$arrival_ns + (offset_s * 1e9) %% 1e9)
    data.table::setattr(moved, "arrival_epoch_s", attr(expected, "arrival_epoch_s"))
    expect_identical(moved[, arrival_ns := expected$arrival_ns], expected)
  }
})

test_that("a drift of 40 ppm of the receiver's clock changes a time by at most 40 ppm of the stay at the receiver", {
  x <- read_pair(committed_pair())
  expected <- rtt_by_flow(x$ref, x$mon)
  stays_ms <- 45 # Linux acknowledges at most 40 ms late
  for (ppm in c(40, -40)) {
    skewed <- rtt_by_flow(x$ref, move_clock(x$mon, 2.2e9, ppm))
    expect_identical(skewed$t_ns, expected$t_ns)
    difference_ms <- abs(skewed$rtt_ms - expected$rtt_ms)
    expect_lte(max(difference_ms), abs(ppm) * 1e-6 * stays_ms + 1e-6)
    expect_lt(stats::median(difference_ms), 1e-5)
  }
})

test_that("matched and unmatched packets add up to the sent packets, and unmatched packets are those that the queue dropped", {
  for (pair in all_pairs()) {
    x <- read_pair(pair)
    matching <- attr(rtt_by_flow(x$ref, x$mon), "matching")
    sent <- \(capture, names) vapply(names, \(name) sum(capture$flow == name, na.rm = TRUE), 0L, USE.NAMES = FALSE)
    expect_equal(matching$matched + matching$unmatched, matching$sent)
    expect_equal(matching[direction == "out", sent], sent(x$ref, matching[direction == "out", flow]))
    expect_equal(matching[direction == "back", sent], sent(x$mon, reverse_flow(matching[direction == "back", flow])))
    expect_equal(sum(matching[direction == "out", unmatched]), x$drops)
    expect_equal(sum(matching[direction == "back", unmatched]), 0)
    loss <- loss_by_flow(x$ref, x$mon)
    expect_equal(sum(loss$lost_packets + loss$unjudged_packets), x$drops)
    expect_gt(x$drops, 10)
  }
})

test_that("RTTs of all flows measured together are equal to those of each flow alone", {
  x <- read_pair(committed_pair())
  together <- rtt_by_flow(x$ref, x$mon)
  for (name in levels(together$flow)) {
    alone <- packet_pair_rtt(x$ref, x$mon, name)
    expect_equal(together[flow == name, .(t_ns, rtt_ms, arrival_ns)], alone, ignore_attr = TRUE)
  }
})

test_that("captures in the wrong order raise a warning; an unknown flow and a table that is not a capture are errors", {
  x <- read_pair(committed_pair())
  flow <- data_flows(x$ref)$flow[1]
  expect_warning(packet_pair_rtt(x$mon, x$ref, flow), "capture at the sender", class = "samovar_warning_direction")
  expect_error(packet_pair_rtt(x$ref, x$mon, "1.2.3.4:5 > 6.7.8.9:10"), "not in the capture", class = "samovar_error_flow")
  computed <- x$ref[, .(t_ns, flow, id)]
  expect_error(packet_pair_rtt(computed, x$mon, flow), "not a capture", class = "samovar_error_argument")
})

test_that("packets with the same id are matched first in, first out and counted as ambiguous", {
  same <- ethernet(ipv4(udp(9, 10), 17))
  ref <- read_pcap(write_capture(rep(list(same), 4), t_ns = c(1, 2, 3, 4) * 1e6))
  mon <- read_pcap(write_capture(rep(list(same), 3), t_ns = c(11, 12, 13) * 1e6, epoch_s = 5))
  loss <- loss_by_flow(ref, mon, "10.0.0.1:9 > 10.0.0.2:10")
  expect_equal(loss$sent_packets, 4)
  expect_equal(loss$ambiguous_packets, 4)
  expect_equal(loss$unjudged_packets, 1)
})

test_that("after an id counter wraps, a packet is not matched to an earlier lost packet with the same id", {
  # Two packets with id 7 are sent 5 s apart, and the first is lost; the other packets determine the difference of the clocks.
  packet <- \(id) ethernet(ipv4(udp(9, 10), 17, id = id))
  answer <- ethernet(ipv4(udp(10, 9), 17, src = "10.0.0.2", dst = "10.0.0.1"))
  sent <- list(packet(7), packet(8), packet(9), packet(7), answer)
  ref <- read_pcap(write_capture(sent, t_ns = c(0.1, 0.2, 5, 5.1, 5.2) * 1e9))
  mon <- read_pcap(write_capture(sent[-1], t_ns = c(0.25, 5.05, 5.15, 5.151) * 1e9, epoch_s = 17))
  rtt <- packet_pair_rtt(ref, mon, "10.0.0.1:9 > 10.0.0.2:10")
  expect_equal(rtt$rtt_ms, 99)
  expect_equal(attr(rtt, "unmatched"), 1)
  expect_equal(attr(rtt, "ambiguous"), 2)
})

test_that("a packet that arrives with the same time stamp as an answer does not count as a packet before this answer", {
  a <- \(id) ethernet(ipv4(udp(9, 10), 17, id = id))
  b <- ethernet(ipv4(udp(10, 9), 17, src = "10.0.0.2", dst = "10.0.0.1"))
  ref <- read_pcap(write_capture(list(a(1), a(2), b), t_ns = c(10, 20, 100)))
  mon <- read_pcap(write_capture(list(a(1), a(2), b), t_ns = c(40, 50, 50)))
  rtt <- packet_pair_rtt(ref, mon, "10.0.0.1:9 > 10.0.0.2:10")
  expect_equal(rtt$rtt_ms, (100 - 10 - (50 - 40)) / 1e6)
  expect_equal(rtt$t_ns, 55)
})

test_that("RTTs of data and acknowledgements are equal to tcptrace's", {
  need_tool("tcptrace")
  for (pair in all_pairs()) {
    for (path in c(pair$sender, pair$receiver)) {
      coarse <- microsecond_copy(path)
      capture <- read_pcap(coarse)
      theirs <- tcptrace_table(coarse)
      expect_gte(nrow(theirs), 6)
      expect_gt(max(theirs$RTT_samples), 200)
      for (i in seq_len(nrow(theirs))) {
        rtt_ms <- data_ack_rtt(capture, theirs$flow[i])$rtt_ms
        expect_equal(length(rtt_ms), theirs$RTT_samples[i], info = theirs$flow[i])
        if (length(rtt_ms) < 3) next
        ours <- c(min(rtt_ms), max(rtt_ms), mean(rtt_ms), stats::sd(rtt_ms))
        expect_lte(max(abs(ours - unlist(theirs[i, .(RTT_min, RTT_max, RTT_avg, RTT_stdev)]))), 0.05 + 1e-9)
      }
    }
  }
})

test_that("every single RTT sample is equal to tcptrace's, in the same order", {
  need_tool("tcptrace")
  for (pair in all_pairs()) {
    coarse <- microsecond_copy(pair$sender)
    capture <- read_pcap(coarse)
    flows <- tcptrace_table(coarse)[seq_len(.N / 2), flow]
    dumps <- tcptrace_samples(coarse)
    for (i in seq_along(flows)) {
      theirs <- dumps[[paste0(letters[2 * i - 1], "2", letters[2 * i])]]
      expect_equal(floor(data_ack_rtt(capture, flows[i])$rtt_ms), theirs$rtt_ms, info = flows[i])
    }
  }
})

test_that("a retransmitted segment, and segments whose acknowledgement waited for it, give no RTT sample", {
  steps <- list(
    list(seq = 1, bytes = 100), list(seq = 101, bytes = 100), list(seq = 201, bytes = 100),
    list(from = "b", seq = 1, ack = 101), # acknowledges the first
    list(seq = 101, bytes = 100), # the second was lost
    list(from = "b", seq = 1, ack = 301), # acknowledges the third, after it waited for the second
    list(seq = 301, bytes = 100), list(from = "b", seq = 1, ack = 401)
  )
  rtt <- data_ack_rtt(read_pcap(write_capture(conversation(steps), t_ns = seq_along(steps) * 1e6)), flow_a)
  expect_equal(rtt$rtt_ms, c(3, 1))
  expect_equal(rtt$bytes, c(100, 100))
})

test_that("an acknowledgement of half a segment or of a zero window probe gives no RTT sample", {
  steps <- list(
    list(seq = 1, bytes = 100), list(from = "b", seq = 1, ack = 51), list(from = "b", seq = 1, ack = 101, window = 0),
    list(seq = 101, bytes = 1), list(from = "b", seq = 1, ack = 102)
  )
  expect_equal(nrow(data_ack_rtt(read_pcap(write_capture(conversation(steps))), flow_a)), 0L)
})

test_that("wrapping sequence numbers do not change the RTT samples", {
  # Ten segments in flight, the fifth retransmitted, then acknowledgements one by one.
  sent <- lapply(c(0:9, 4), \(k) list(seq = 1 + 500 * k, bytes = 500))
  steps <- c(sent, lapply(0:9, \(k) list(from = "b", seq = 1, ack = 501 + 500 * k)))
  samples <- \(isn) data_ack_rtt(read_pcap(write_capture(conversation(steps, isn_a = isn))), flow_a)
  expect_equal(samples(2^32 - 2200), samples(1000))
  expect_equal(nrow(samples(1000)), 4L)
})

handshake <- list(
  list(flags = 2, options = option_timestamps(100, 0)),
  list(from = "b", flags = 18, ack = 1, options = option_timestamps(900, 100)),
  list(seq = 1, ack = 1, options = option_timestamps(101, 900))
)

test_that("the handshake RTT is from the SYN to its answer, at either end", {
  capture <- read_pcap(write_capture(conversation(handshake), t_ns = c(0, 25e6, 26e6)))
  expect_equal(handshake_rtt(capture, flow_a), 25)
  expect_equal(handshake_rtt(capture, flow_b), 1)
})

test_that("segments of an earlier connection do not affect the handshake RTT", {
  earlier <- list(list(from = "b", seq = 7, ack = 1), list(seq = 500, bytes = 100, ack = 7), list(from = "b", seq = 7, ack = 600))
  times_ns <- c(0, 1e6, 4e6, 1e9, 1.025e9, 1.026e9)
  expect_equal(handshake_rtt(read_pcap(write_capture(conversation(c(earlier, handshake)), t_ns = times_ns)), flow_a), 25)
})

test_that("if a SYN was sent twice, the timestamps option selects the one that was answered", {
  second <- utils::modifyList(handshake[[1]], list(options = option_timestamps(1100, 0)))
  again <- c(handshake[1], list(second), handshake[2:3])
  capture <- \(steps) read_pcap(write_capture(conversation(steps), t_ns = c(0, 1e9, 1.025e9, 1.026e9)))
  expect_equal(handshake_rtt(capture(again), flow_a), 1025)
  again[[3]]$options <- option_timestamps(900, 1100)
  expect_equal(handshake_rtt(capture(again), flow_a), 25)
  silent <- lapply(again, \(step) utils::modifyList(step, list(options = raw())))
  expect_true(is.na(handshake_rtt(capture(silent), flow_a)))
  expect_true(is.na(handshake_rtt(read_pcap(write_capture(conversation(again[1]))), flow_a)))
})

test_that("the handshake RTT is equal to tcptrace's", {
  need_tool("tcptrace")
  for (pair in all_pairs()) {
    coarse <- microsecond_copy(pair$sender)
    capture <- read_pcap(coarse)
    theirs <- tcptrace_table(coarse)
    ours_ms <- vapply(theirs$flow, \(flow) handshake_rtt(capture, flow), 0, USE.NAMES = FALSE)
    expect_lte(max(abs(ours_ms - theirs$RTT_from_3WHS)), 0.05 + 1e-9)
    expect_gt(min(ours_ms), 0)
  }
})
