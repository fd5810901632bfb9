# One socket sampled every 10 ms; state 0 is Open, 1 is Disorder, 2 is CWR, 3 is Recovery and 4 is Loss.
samples <- function(cwnd, ssthresh, state, retransmitted = cumsum(state >= 3)) {
  data.table::data.table(t_s = (seq_along(cwnd) - 1) / 100, cwnd_packets = cwnd, ssthresh_packets = ssthresh,
                         ca_state = state, total_retrans_packets = retransmitted)
}

test_that("a cycle ends at the sample that enters Recovery, though cwnd decreases only over the following samples", {
  x <- samples(c(10, 20, 20, 18, 14, 10, 11, 12, 12, 9, 6), c(Inf, Inf, 10, 10, 10, 10, 10, 10, 6, 6, 6),
               c(0, 0, 3, 3, 3, 0, 0, 0, 3, 3, 0))
  cycles <- cwnd_cycles(x)
  expect_equal(cycles$cwnd_packets, c(20, 12))
  expect_equal(cycles$before_s, c(0.01, 0.07))
  expect_equal(cycles$end_s, c(0.02, 0.08))
  expect_equal(cycles$start_s, c(0, 0.02))
})

test_that("the cycle of slow start counts only if the flow has no other cycle", {
  x <- samples(c(10, 40, 40, 20, 21, 22, 22, 11), c(Inf, Inf, 20, 20, 20, 20, 11, 11), c(0, 0, 3, 0, 0, 0, 3, 0))
  expect_equal(cwnd_cycles(x)$counts, c(FALSE, TRUE))
  expect_equal(cwnd_cycles(x[1:5])$counts, TRUE)
})

test_that("a new ssthresh without loss, as HyStart sets it, does not end a cycle", {
  x <- samples(c(10, 20, 20, 21, 30, 30, 21), c(Inf, Inf, 20, 20, 20, 21, 21), c(0, 0, 0, 0, 0, 3, 0))
  cycles <- cwnd_cycles(x)
  expect_equal(cycles$cwnd_packets, 30)
  expect_equal(cycles$start_s, 0)
})

test_that("a reduction that the kernel undoes does not end a cycle", {
  x <- samples(c(10, 20, 15, 20, 24, 25, 25, 13), c(Inf, Inf, 10, Inf, Inf, Inf, 12, 12), c(0, 0, 3, 0, 0, 0, 3, 0))
  expect_equal(cwnd_cycles(x)$cwnd_packets, 25)
})

test_that("a time-out within a recovery belongs to the same reduction", {
  x <- samples(c(10, 30, 25, 1, 2, 4, 5), c(Inf, Inf, 15, 8, 8, 8, 8), c(0, 0, 3, 4, 4, 4, 0))
  cycles <- cwnd_cycles(x)
  expect_equal(nrow(cycles), 1)
  expect_equal(cycles$cause, "recovery")
})

test_that("a recovery shorter than the sampling interval is detected by its retransmission", {
  x <- samples(c(10, 30, 15, 16), c(20, 20, 15, 15), c(0, 0, 0, 0), retransmitted = c(0, 0, 1, 1))
  cycles <- cwnd_cycles(x)
  expect_equal(cycles$cause, "recovery")
  expect_equal(cycles$cwnd_packets, 30)
})

test_that("a reduction without loss, as by CDG, ends a cycle that is not used to estimate the buffer", {
  x <- samples(c(10, 20, 15, 14, 15), c(Inf, Inf, 14, 14, 14), c(0, 0, 2, 2, 0))
  expect_equal(cwnd_cycles(x)$cause, "cwr")
  expect_false(cwnd_cycles(x)$counts)
})

test_that("a socket without a reduction of cwnd has no cycle", {
  expect_equal(nrow(cwnd_cycles(samples(1:5, rep(Inf, 5), rep(0, 5)))), 0)
  expect_equal(nrow(cwnd_cycles(samples(1, Inf, 0))), 0)
})

test_that("packets that the receiver sends, such as those of an upload, do not count as arrivals", {
  at_s <- seq(0, 20, by = 0.01)
  packets <- \(src, t_s) data.table::data.table(t_ns = t_s * 1e9, src = src, ip_bytes = 1500L)
  received <- rbind(packets("10.0.0.1", at_s), packets("10.0.0.2", at_s + 0.001))[order(t_ns)]
  lost <- at_s %in% at_s[c(501, 1001, 1501)]
  sender <- data.table::data.table(t_s = at_s, cwnd_packets = 20 + at_s %% 5, ssthresh_packets = 10, ca_state = 3L * lost, total_retrans_packets = cumsum(lost))
  rtt <- data.table::data.table(t_s = at_s, rtt_ms = 110, arrival_s = at_s - 0.005)
  down <- list(generator = "iperf3", from = "src", to = "dst", from_address = "10.0.0.1", to_address = "10.0.0.2")
  up <- list(generator = "iperf3", from = "dst", to = "src", from_address = "10.0.0.2", to_address = "10.0.0.1")
  hosts <- list(src = list(role = "sender"), dst = list(role = "receiver"))
  estimates <- \(flows) flow_cycles(down, sender, rtt, received, 10, list(resolved = list(mtu_bytes = 1500, hosts = hosts, flows = flows)))
  expect_equal(estimates(list(down, up)), estimates(list(down)))
  expect_equal(estimates(list(down, up))[counts == TRUE]$method1_packets, c(10, 10), tolerance = 0.05)
})
