samples <- function(cwnd, rwnd, flight) data.table::data.table(t_s = seq_along(cwnd), cwnd_bytes = cwnd, rwnd_bytes = rwnd, in_flight_bytes = flight, segment_bytes = 1000)

test_that("swnd is the smaller window, and a sender that does not use it is limited by the application", {
  found <- flow_limits(samples(c(10e3, 10e3, 50e3, 10e3), c(20e3, 8e3, 20e3, 20e3), c(10e3, 8e3, 19.5e3, 9e3)))
  expect_equal(found$swnd_bytes, c(10e3, 8e3, 20e3, 10e3))
  expect_equal(as.character(found$limit), c("cwnd", "rwnd", "rwnd", "application"))
})

test_that("a flow whose window exceeds the idle path's bandwidth-delay product is limited by the link: 8 Mbit/s times 20 ms is 20000 bytes", {
  found <- flow_limits(samples(c(19e3, 20e3, 90e3), rep(40e3, 3), c(19e3, 20e3, 40e3)), rate_bps = 8e6, rtt_min_ms = 20)
  expect_equal(as.character(found$limit), c("cwnd", "link", "link"))
})

test_that("the shares of a flow's limits refer to the time with data in flight, and the limit is NA while a window is unknown", {
  limits <- flow_limits(data.table::data.table(t_s = c(0, 1, 3, 4, 10), cwnd_bytes = c(5e3, 5e3, 5e3, NA, 5e3), rwnd_bytes = 9e3, in_flight_bytes = c(5e3, 1e3, 0, 5e3, 5e3), segment_bytes = 1e3))
  expect_equal(as.character(limits$limit), c("cwnd", "application", "application", NA, "cwnd"))
  found <- limit_shares(limits)
  expect_equal(found$limited_cwnd_share, 1 / 3)
  expect_equal(found$limited_application_share, 2 / 3)
  expect_null(limit_shares(limits[0]))
})

test_that("without the link's rate or an RTT, the share of the link is unknown, not 0", {
  x <- samples(c(10e3, 10e3), c(20e3, 20e3), c(10e3, 10e3))
  expect_null(limit_shares(flow_limits(x, rate_bps = 8e6))$limited_link_share)
  expect_null(limit_shares(flow_limits(x, rtt_min_ms = 1))$limited_link_share)
  expect_equal(limit_shares(flow_limits(x, rate_bps = 8e6, rtt_min_ms = 20))$limited_link_share, 0)
})

test_that("windows of all loggers are in bytes, and the receive window is taken from the capture if the kernel always reports 0", {
  info <- data.table::data.table(t_s = 1:2, cwnd_packets = 10, snd_mss_bytes = 1448, snd_wnd_bytes = 0, unacked_packets = 4)
  offered <- data.table::data.table(t_s = c(0, 1.5), window_bytes = c(5000, 7000))
  found <- sender_windows(info, offered)
  expect_equal(found$cwnd_bytes, c(14480, 14480))
  expect_equal(found$rwnd_bytes, c(5000, 7000))
  expect_equal(found$in_flight_bytes, c(5792, 5792))
  expect_equal(sender_windows(data.table::data.table(t_s = 1, cwnd_packets = 2, snd_wnd_bytes = 9, in_flight_bytes = 3), segment_bytes = 500)$cwnd_bytes, 1000)
})

test_that("another flow halves the rate at which the link limits a flow, echo requests do not", {
  bulk <- list(from = "src", generator = "iperf3")
  sender <- data.table::data.table(t_s = 1:2, cwnd_packets = 90, segment_bytes = 1448, snd_wnd_bytes = 15e3, in_flight_bytes = 15e3)
  beside <- function(generator) {
    flows <- c(list(bulk), lapply(generator, \(one) list(from = "src", generator = one)))
    resolved <- list(mtu_bytes = 1500, flows = flows, hosts = list(src = list(role = "sender")), path = list(down = list(rate_bps = 8e6)))
    as.character(limits_of_flow(bulk, sender, NULL, "", 20, list(), list(resolved = resolved))$limit[1])
  }
  # The idle path holds 20000 bytes.
  expect_equal(vapply(list(character(), "iperf3", "ping"), beside, ""), c("rwnd", "link", "rwnd"))
})

test_that("a real flow with a small window is limited by the window, one with a large window by the link", {
  folder <- small_campaign()
  share <- function(pattern, name) {
    manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, pattern))]]
    found <- measure_trial(folder, manifest)$metrics
    c(found[metric == name]$value, sum(found[startsWith(metric, "limited_")]$value))
  }
  expect_gt(share("buffer-.*-1500", "limited_link_share")[1], 0.8)
  expect_equal(share("window-newreno-9KB", "limited_rwnd_share")[2], 1)
})
