# A link that carries 1000 packets of 1500 bytes per second: each takes 1 ms. The queue holds 100 packets when cwnd is reduced at 5 s.
steady <- function(until_s = 6, from_s = 0) data.table::data.table(t_s = seq(from_s + 0.001, until_s, by = 0.001), ip_bytes = 1500)
cycle <- function(cwnd = 121, start_s = 0.5) {
  data.table::data.table(cycle = 1L, start_s = start_s, before_s = 5, end_s = 5.01, cwnd_packets = cwnd, cause = "recovery",
                         first = FALSE, counts = TRUE)
}
# The receiver's clock is 7 s behind the sender's; a packet arrives there 10 ms before the sender gets its answer.
behind_s <- 7
at_receiver <- function(arrivals) data.table::copy(arrivals)[, t_s := t_s - behind_s]
rtt_samples <- function(rtt_ms, every_s = 0.0021) {
  t_s <- c(0.1, 5 - rev(seq_along(rtt_ms) - 1) * every_s)
  data.table::data.table(t_s = t_s, rtt_ms = c(20, rtt_ms), arrival_s = t_s - 0.01 - behind_s)
}
cwnd_samples <- data.table::data.table(t_s = seq(0, 5, by = 0.01), cwnd_packets = ifelse(seq(0, 5, by = 0.01) < 4.9, 120, 121))
estimate <- function(rtt_ms = rep(120, 12), arrivals = steady(), x = cycle()) {
  buffer_by_cycle(x, cwnd_samples, rtt_samples(rtt_ms), at_receiver(arrivals), 20, 1500)
}

test_that("method 1 is queueing delay times the cycle's mean rate: 100 ms at 1000 packets per second is 100 packets", {
  found <- estimate()
  expect_equal(found$rtt_max_ms, 120)
  expect_equal(found$rate_bps, 12e6, tolerance = 1e-3)
  expect_equal(found$method1_packets, 100, tolerance = 1e-3)
  expect_equal(found$method1_bytes, 150000, tolerance = 1e-3)
  expect_equal(found$method1_local_packets, 100, tolerance = 0.01)
})

test_that("RTT_max is the median of the last ten samples, independent of earlier samples and of single outliers", {
  expect_equal(estimate(c(rep(500, 5), rep(120, 4), 900, rep(120, 4), 30))$rtt_max_ms, 120)
})

test_that("a link that idled earlier in the cycle lowers the mean rate but not the local rate", {
  found <- estimate(arrivals = rbind(steady(2.0), steady(6, from_s = 3.5)))
  expect_equal(found$method1_local_packets, 100, tolerance = 0.01)
  expect_lt(found$method1_packets, 70)
})

test_that("the local variant of method 1 counts the packets that arrived while a packet waited in the queue, including this packet", {
  # Many packets, then none for half a second, then the hundred packets that each of the ten samples waited for.
  burst <- rbind(data.table::data.table(t_s = seq(0.0001, 4.4, by = 0.0001), ip_bytes = 1500), steady(6, from_s = 4.87))
  expect_equal(estimate(arrivals = burst)$method1_local_packets, 100, tolerance = 0.01)
})

test_that("method 2 is cwnd one round trip earlier, less the packets on the idle path", {
  found <- estimate()
  expect_equal(found$method2_raw_packets, 121)
  expect_equal(found$method2_packets, 120 - 20, tolerance = 0.01)
})

# What the sender, FreeBSD 14.0-STABLE, logged when its packets overflowed a queue of 40: cwnd grows by an MSS of 1460 bytes to 43.157 segments of 1448,
# and the last of the three packets that are then sent is dropped. A record does not count its own packet: 43 are in flight, the dropped one included.
overflow <- c(
  "enable_time_secs=1795379486\tenable_time_usecs=370709\tsiftrver=1.3.0\tsysname=FreeBSD\tsysver=1400507\tipmode=4",
  "i,1795379497.928113,172.16.1.2,39921,172.16.2.2,5001,31856,61032,6,9996800,2098176,8,8,4,1460,126000,1,16778208,339000,271148,271148,2098020,0,60816,0,577606189,63",
  "o,1795379497.928709,172.16.1.2,39921,172.16.2.2,5001,31856,62492,6,9996800,2098176,8,8,4,1460,126000,1,16778208,336000,271148,268252,2098020,0,57920,0,577606189,63",
  "o,1795379497.929002,172.16.1.2,39921,172.16.2.2,5001,31856,62492,6,9996800,2098176,8,8,4,1460,126000,1,16778208,336000,271148,268252,2098020,0,59368,0,577606189,63",
  "o,1795379497.929436,172.16.1.2,39921,172.16.2.2,5001,31856,62492,6,9996800,2098176,8,8,4,1460,126000,1,16778208,336000,271148,268252,2098020,0,60816,0,577606189,63"
)

test_that("method 2 excludes the dropped packet, and the part of a segment, from a cwnd that was logged with each packet", {
  path <- tempfile(fileext = ".csv")
  writeLines(overflow, path)
  samples <- samples_of_siftr(read_siftr(path), list(from_address = "172.16.1.2", to_address = "172.16.2.2", port = 5001))
  expect_equal(samples$cwnd_packets[nrow(samples)], 43.157, tolerance = 1e-3)
  samples[, t_s := seq_len(.N) - 1]
  found <- buffer_by_cycle(cycle(44.166), samples, rtt_samples(rep(120, 12)), at_receiver(steady()), 2, 1500, isTRUE(attr(samples, "every_packet")))
  expect_equal(found$method2_packets, 43 - 1 - 2, tolerance = 0.01)
  expect_equal(found$method2_raw_packets, 44.166)
})

test_that("method 1 has no estimate for a reduction of cwnd that has fewer than ten RTT samples before it", {
  found <- estimate(rep(120, 8))
  expect_true(is.na(found$method1_packets))
  expect_true(is.na(found$method1_local_packets))
})

test_that("the rate of a cycle shorter than a second is the rate of a single window", {
  early <- rtt_samples(rep(120, 12))[, t_s := c(4.3, t_s[-1])][, arrival_s := t_s - 0.01 - behind_s]
  found <- buffer_by_cycle(cycle(start_s = 4.5), cwnd_samples, early, at_receiver(steady()), 20, 1500)
  expect_equal(found$rate_bps, 12e6, tolerance = 2e-3)
})

test_that("the buffer of a trial is the median of the estimates of the cycles that count", {
  cycles <- data.table::data.table(counts = c(FALSE, TRUE, TRUE, TRUE), method1_packets = c(900, 98, 100, 130),
                                   method2_packets = 4:1, method1_local_packets = 1:4, method2_raw_packets = 1:4)
  expect_equal(buffer_of_trial(cycles)$buffer_method1_packets, 100)
})

# Measure a trial as if the receiver had another clock.
measured_with <- function(folder, id, ...) {
  manifest <- read_campaign(folder)$manifests[[id]]
  flow <- manifest$resolved$flows[[1]]
  traces <- open_traces(folder, manifest)
  original <- traces$capture
  traces$capture <- \(of, flow = NULL) if (of == flow$to) move_clock(original(of), ...) else original(of)
  measure_flow(flow, traces, manifest)
}

test_that("cycles and metrics do not change if the receiver's clock is 250 ms ahead and 40 ppm fast", {
  folder <- small_campaign()
  for (pattern in c("buffer-.*-1500", "buffer-.*-600", "window-cubic")) {
    id <- basename(trial_named(folder, pattern))
    expected <- measured_with(folder, id)
    expect_equal(measured_with(folder, id, offset_ns = 0.25e9)[c("metrics", "cycles", "rtt")],
                 expected[c("metrics", "cycles", "rtt")], tolerance = 1e-9)
    skewed <- measured_with(folder, id, offset_ns = 0.25e9, ppm = 40)
    # At the edge of a window, one packet more or less may be counted.
    expect_equal(skewed$metrics$metric, expected$metrics$metric)
    one_packet <- grepl("^buffer_", expected$metrics$metric)
    expect_lt(max(abs(skewed$metrics$value - expected$metrics$value)[one_packet]), 1)
    expect_equal(skewed$metrics[!one_packet], expected$metrics[!one_packet], tolerance = 1e-4)
  }
})

test_that("no buffer is estimated from the packets of one receiver if other receivers share the queue", {
  folder <- small_campaign()
  manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, "buffer-.*-1500"))]]
  flow <- manifest$resolved$flows[[1]]
  measured <- function(other) {
    manifest$resolved$hosts$dst2 <- manifest$resolved$hosts$dst
    manifest$resolved$flows <- list(flow, utils::modifyList(flow, other))
    measure_flow(flow, open_traces(folder, manifest), manifest)$metrics$metric
  }
  expect_true("buffer_method1_packets" %in% measured(list(port = 5002L)))
  found <- measured(list(port = 5002L, to = "dst2", to_address = "172.16.11.3"))
  expect_true("cycles" %in% found)
  expect_false(any(startsWith(found, "buffer_")))
  # Echo requests, and flows in the opposite direction, hardly use the queue.
  expect_true("buffer_method1_packets" %in% measured(list(generator = "ping", to = "dst2")))
  expect_true("buffer_method1_packets" %in% measured(list(from = "dst", to = "src", from_address = "172.16.11.2", to_address = "172.16.10.2", port = 5002L)))
})
