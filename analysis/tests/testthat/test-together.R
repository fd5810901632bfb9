sizes_of <- function(down, start_s, bytes, last_s, competes = TRUE) {
  data.table::data.table(down, competes, start_s, throughput_bps = bytes * 8 / (last_s - start_s), ip_bytes = bytes,
                         payload_bytes = bytes * 0.9, first_s = start_s, last_s)
}

together <- function(sizes, rate_bps) {
  unlist(metrics_together(list(sizes = sizes, manifest = list(resolved = list(path = list(down = list(rate_bps = rate_bps)))))))
}

test_that("two flows that share a path equally have the values computed by hand", {
  # 50 MB each in 10 s over a path of 100 Mbit/s.
  found <- together(sizes_of(c(TRUE, TRUE), c(0, 0), c(50e6, 50e6), c(10, 10)), 100e6)
  expect_equal(found[["throughput_total_bps"]], 80e6)
  expect_equal(found[["link_utilisation_share"]], 0.8)
  expect_equal(found[["domination_share"]], 0.5)
  expect_equal(found[["fairness_jain"]], 1)
})

test_that("the domination share of the first of three downloads ignores the upload", {
  # Downloads of 60, 20 and 20 MB that start at 0, 10 and 20 s, and an upload of 300 MB; all end at 40 s.
  sizes <- sizes_of(c(TRUE, TRUE, TRUE, FALSE), c(0, 10, 20, 5), c(60e6, 20e6, 20e6, 300e6), rep(40, 4))
  found <- together(sizes, 40e6)
  expect_equal(found[["domination_share"]], 0.6)
  expect_equal(found[["link_utilisation_share"]], 0.5) # 800 Mbit of 40 s x 40 Mbit/s
  expect_equal(found[["throughput_total_bps"]], 80e6) # 3200 Mbit in 40 s
  # Rates of 12, 16/3, 8 and 480/7 Mbit/s.
  rates <- c(12, 16 / 3, 8, 480 / 7)
  expect_equal(found[["fairness_jain"]], sum(rates)^2 / (4 * sum(rates^2)))
})

test_that("the total throughput of two equal flows that follow each other is the throughput of one of them", {
  expect_equal(together(sizes_of(c(TRUE, TRUE), c(0, 10), c(50e6, 50e6), c(10, 20)), 100e6)[["throughput_total_bps"]], 40e6)
})

test_that("echo requests beside two flows do not compete with them", {
  found <- together(sizes_of(c(TRUE, TRUE, TRUE), c(0, 0, 0), c(1e3, 50e6, 50e6), c(10, 10, 10), c(FALSE, TRUE, TRUE)), 100e6)
  expect_equal(found[["fairness_jain"]], 1)
  expect_equal(found[["domination_share"]], 0.5)
  echoes <- rep(list(ethernet(ipv4(c(as.raw(c(8, 0)), raw(62)), 1))), 3)
  capture <- read_pcap(write_capture(echoes))
  ping <- list(from = "src", generator = "ping")
  expect_false(flow_size(ping, capture, as.character(capture$flow[1]), list(resolved = list(hosts = list(src = list(role = "sender")))))$competes)
})

test_that("a single flow has no fairness index and no domination share", {
  found <- together(sizes_of(TRUE, 0, 1e6, 1), NULL)
  expect_equal(found[["throughput_total_bps"]], 8e6)
  expect_true(all(is.na(found[c("fairness_jain", "domination_share", "link_utilisation_share")])))
})

test_that("a trial without flows has no metrics over all flows", {
  expect_null(together(NULL, 1e6))
})

test_that("a flow whose packets all have the same time has no rate, and is left out of metrics over all flows", {
  packets <- rep(list(ethernet(ipv4(udp(9, 10, raw(72)), 17))), 3)
  at_once <- read_pcap(write_capture(packets, t_ns = c(1, 1, 1) * 1e9))
  name <- as.character(at_once$flow[1])
  expect_true(is.na(capture_metrics(list(near = at_once, name = name))$throughput_bps))
  expect_null(flow_size(list(from = "src"), at_once, name, list(resolved = list(hosts = list(src = list(role = "sender"))))))
})

test_that("a flow's throughput is from its earliest packet to its latest, whatever their order in the file", {
  packets <- rep(list(ethernet(ipv4(udp(9, 10, raw(72)), 17))), 3)
  late_first <- read_pcap(write_capture(packets, t_ns = c(3, 1, 2) * 1e9))
  # Three packets of 100 bytes in two seconds.
  expect_equal(capture_metrics(list(near = late_first, name = as.character(late_first$flow[1])))$throughput_bps, 1200)
})
