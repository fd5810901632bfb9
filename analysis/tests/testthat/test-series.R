# Quantities over time, of the recorded campaign, compared with the measures of whole flows.

campaign_results <- function() {
  folder <- small_campaign()
  campaign <- read_campaign(folder)
  quietly(results <- gather(campaign, measure_all(campaign, 1L)))
  results
}

shared <- new.env()
shared_results <- function() {
  if (is.null(shared$results)) shared$results <- campaign_results()
  shared$results
}

over_time <- function(id, name, ...) {
  results <- shared_results()
  measure_series(results$campaign$folder, results$campaign$manifests[[id]], name, ...)[[name]]$series
}

test_that("counts per window add up to the counts of the whole flow", {
  results <- shared_results()
  for (id in results$campaign$trials$id) {
    traces <- open_traces(results$campaign$folder, results$campaign$manifests[[id]])
    flow <- results$campaign$manifests[[id]]$resolved$flows[[1]]
    near <- traces$capture(flow$from)
    name <- flow_in_capture(flow, near)
    data <- data_packets(near, name)
    known <- goodput(near, name)
    expect_equal(sum(data$new_bytes < data$payload_bytes), known$retransmitted_packets)
    expect_equal(sum(data$new_bytes), known$unique_bytes)
    metric <- \(which) results$metrics[trial == id & metric == which]$value
    expect_lte(abs(sum(over_time(id, "duplicate-acks")$mid) - metric("duplicate_acks_packets")), 3)
    expect_lte(abs(sum(over_time(id, "retransmissions")$mid) - metric("retransmissions_packets")), 3)
  }
})

test_that("rates over time are in Mbit/s, and an incomplete last window has none", {
  frame <- list(from_s = 1, to_s = 5, rates_to_s = 4.4, width_s = 0.5)
  rates <- rate_mbps(frame, c(1.2, 1.4, 2.5, 4.2), c(1e6, 1e6, 5e5, 9e5))
  expect_equal(rates$t_s, seq(1.25, 3.75, by = 0.5))
  expect_equal(rates$value, c(32, 0, 0, 8, 0, 0))
  expect_null(rate_mbps(replace(frame, "rates_to_s", 1.4), 1.2, 1e6))
})

test_that("every quantity that the campaign recorded has a series, and the others have none", {
  results <- shared_results()
  id <- results$campaign$trials[part == "buffer"]$id[1]
  every <- names(outputs_of("series"))
  found <- measure_series(results$campaign$folder, results$campaign$manifests[[id]], every)
  recorded <- every[!vapply(found, \(one) is.null(one$series), TRUE)]
  of_programs <- names(Filter(\(s) identical(s$scope, "application"), outputs_of("series")))
  absent <- c("receive-window", "pacing-rate", "delivery-rate", "owd", "queue-marks", "cpu", "interrupts", "frames-sent", "frames-received", "pause-to-drop", of_programs)
  expect_setequal(setdiff(every, recorded), setdiff(absent, recorded))
  for (name in recorded) expect_true(all(found[[name]]$series$low <= found[[name]]$series$high), info = name)
})

test_that("three measures of the RTT agree where the receiver does not delay acknowledgements long", {
  id <- shared_results()$campaign$trials[part == "buffer"]$id[2]
  middle <- \(name) stats::median(over_time(id, name, 1, 4)$mid)
  expect_equal(middle("rtt-ack"), middle("rtt"), tolerance = 0.15)
  expect_equal(middle("rtt-timestamp"), middle("rtt"), tolerance = 0.2)
})

test_that("a series has at most 600 points, of which the last includes the last sample", {
  thin <- samovar:::thin_series(seq(0, 10, by = 0.001), c(rep(1, 10000), 2), "bulk", "rtt", "ms")
  expect_equal(nrow(thin), 600)
  expect_equal(thin$high, c(rep(1, 599), 2))
})

test_that("a series of a span of time has more points in this span than the series of the whole trial", {
  id <- shared_results()$campaign$trials[part == "buffer"]$id[2]
  part <- over_time(id, "inflight", 1, 2)
  expect_gte(min(part$t_s), 1)
  expect_lte(max(part$t_s), 2)
  whole <- over_time(id, "inflight")
  expect_gt(nrow(part), nrow(whole[t_s >= 1 & t_s <= 2]))
})

test_that("rates and counts end with a truncated capture, rather than being 0", {
  folder <- small_campaign()
  trial <- trial_named(folder, "window-newreno-9KB")
  manifest <- read_campaign(folder)$manifests[[basename(trial)]]
  cut <- function(host) {
    path <- list.files(file.path(trial, "traces"), paste0("^", host, ".*pcap"), full.names = TRUE)
    writeBin(readBin(path, "raw", floor(file.size(path) * 0.6)), path)
  }
  names <- c("throughput", "throughput-total", "goodput", "reordering", "retransmissions", "duplicate-acks")
  ends_s <- \() vapply(suppressWarnings(measure_series(folder, manifest, names)), \(found) max(found$series$t_s), 0)
  whole_s <- ends_s()
  cut("dst")
  expect_true(all(ends_s()[1:4] < 0.8 * whole_s[1:4]))
  expect_identical(ends_s()[5:6], whole_s[5:6])
  cut("src")
  expect_true(all(ends_s() < 0.8 * whole_s))
})

test_that("without captures, bytes in flight, receive window and retransmissions come from tcp-info, and the series name this source", {
  results <- shared_results()
  id <- results$campaign$trials$id[1]
  manifest <- results$campaign$manifests[[id]]
  manifest$files <- Filter(\(f) !identical(f$kind, "capture"), manifest$files)
  found <- measure_series(results$campaign$folder, manifest, c("inflight", "rwnd", "cwnd", "goodput", "retransmissions"))
  expect_equal(vapply(found[c("inflight", "rwnd", "cwnd", "retransmissions")], \(one) one$series$source[1], ""),
               c(inflight = "tcp-info", rwnd = "tcp-info", cwnd = "tcp-info", retransmissions = "tcp-info"))
  expect_null(found$goodput$series)
})

series_figure <- function(...) make_output(shared_results(), list(...))

test_that("time-series has a panel for each quantity, a curve for each level of overlay and a column for each level of facet", {
  made <- series_figure(figure = "time-series", show = list("cwnd", "inflight", "goodput"), overlay = "cc", facet = "mtu", rwnd = "9999KB")
  expect_setequal(made$data$quantity, c("cwnd", "inflight", "goodput"))
  expect_setequal(as.character(made$data$column), c("600", "1500"))
  expect_true(all(grepl("newreno|cubic", levels(made$data$curve))))
  expect_true(all(unlist(made$layout[c("x", "y", "low", "high", "curve")]) %in% names(made$data)))
  expect_match(made$caption, "Recorded by tcp-info: cwnd; captures: bytes in flight and goodput", fixed = TRUE)
})

test_that("a figure names the quantities that no trial recorded, and the loggers that record them", {
  expect_match(series_figure(figure = "time-series", show = list("cwnd", "cpu"))$caption, "Nothing recorded cpu, which needs logger cpu at a host.", fixed = TRUE)
  expect_error(series_figure(figure = "time-series", show = "owd"), class = "samovar_no_data",
               "nothing recorded owd, which needs captures at both ends of a flow and logger beacons at both ends of a flow")
})

test_that("panels that are left out are counted in the caption", {
  expect_match(series_figure(figure = "time-series", show = list("cwnd", "srtt"))$caption, "4 of 6 combinations of .* are shown, as more panels cannot be read")
  expect_no_match(series_figure(figure = "time-series", show = "cwnd")$caption, "combinations")
})

test_that("figure queue-time has the same data as figure time-series with quantity queue", {
  short <- series_figure(figure = "queue-time", part = "buffer")
  long <- series_figure(figure = "time-series", show = "queue", part = "buffer")
  expect_equal(short$data, long$data)
})
