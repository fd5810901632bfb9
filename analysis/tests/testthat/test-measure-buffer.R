# A link of 1000 packets of 1500 bytes per second: each takes 1 ms. The queue holds 100 when cwnd collapses at 5 s.
steady <- function(until_s = 6, from_s = 0) data.table::data.table(t_s = seq(from_s + 0.001, until_s, by = 0.001), ip_bytes = 1500)
cycle <- function(cwnd = 121, start_s = 0.5) {
  data.table::data.table(cycle = 1L, start_s = start_s, before_s = 5, end_s = 5.01, cwnd_packets = cwnd, cause = "recovery",
                         first = FALSE, counts = TRUE)
}
waits <- function(rtt_ms, every_s = 0.0021) data.table::data.table(t_s = 5 - rev(seq_along(rtt_ms) - 1) * every_s, rtt_ms = rtt_ms)
grown <- data.table::data.table(t_s = seq(0, 5, by = 0.01), cwnd_packets = ifelse(seq(0, 5, by = 0.01) < 4.9, 120, 121))

test_that("method 1 is queueing delay times rate: 100 ms at 1000 packets a second are 100 packets", {
  found <- buffer_by_cycle(cycle(), grown, waits(rep(120, 12)), steady(), 20, 1500)
  expect_equal(found$rtt_max_ms, 120)
  expect_equal(found$method1_packets, 100)
  expect_equal(found$method1_bytes, 150000)
  expect_equal(found$method1_raw_packets, 100, tolerance = 1e-3)
  expect_equal(found$cycle_rate_bps, 12e6, tolerance = 1e-3)
})

test_that("RTT_max is the median of the last ten samples, whatever came before and whichever two stand out", {
  found <- buffer_by_cycle(cycle(), grown, waits(c(rep(500, 5), rep(120, 4), 900, rep(120, 4), 30)), steady(), 20, 1500)
  expect_equal(found$rtt_max_ms, 120)
})

test_that("a link that idled earlier in the cycle lowers the published form and leaves the estimate", {
  idled <- rbind(steady(2.0), steady(6, from_s = 3.5))
  found <- buffer_by_cycle(cycle(), grown, waits(rep(120, 12)), idled, 20, 1500)
  expect_equal(found$method1_packets, 100)
  expect_lt(found$method1_raw_packets, 70)
})

test_that("method 2 takes cwnd of one round trip earlier, less what lies on the idle path", {
  found <- buffer_by_cycle(cycle(), grown, waits(rep(120, 12)), steady(), 20, 1500)
  expect_equal(found$method2_raw_packets, 121)
  expect_equal(found$method2_packets, 120 - 20)
})

test_that("a collapse before ten RTT samples has no estimate by method 1", {
  found <- buffer_by_cycle(cycle(), grown, waits(rep(120, 9)), steady(), 20, 1500)
  expect_true(is.na(found$method1_packets))
})

test_that("a cycle shorter than a second is one window", {
  found <- buffer_by_cycle(cycle(start_s = 4.5), grown, waits(rep(120, 12)), steady(), 20, 1500)
  expect_equal(found$cycle_rate_bps, 12e6, tolerance = 2e-3)
})

test_that("the trial's estimate is the median over the cycles that count", {
  cycles <- data.table::data.table(counts = c(FALSE, TRUE, TRUE, TRUE), method1_packets = c(900, 98, 100, 130),
                                   method2_packets = 4:1, method1_raw_packets = 1:4, method2_raw_packets = 1:4)
  expect_equal(buffer_of_trial(cycles)$buffer_method1_packets, 100)
})
