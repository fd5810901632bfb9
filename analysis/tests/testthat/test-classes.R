# Classes of series and campaigns: methods print(), summary(), autoplot(), rbind() and merge().

pair_of <- function(name) lapply(paste0(name, c("-sender.pcap.gz", "-receiver.pcap.gz")), \(file) read_pcap(samovar_example(file)))
rtt_of <- function(name) {
  ends <- pair_of(name)
  packet_pair_rtt(ends[[1]], ends[[2]], data_flows(ends[[1]])$flow[1])
}
unix_s <- function(x, column = "t_ns", epoch = "epoch_s") attr(x, epoch) + x[[column]] / 1e9

test_that("a series prints its quantity, time span and matched packets above its rows, and a table computed from it does not", {
  rtt <- rtt_of("window")
  text <- utils::capture.output(print(rtt))
  expect_match(text[1], "^# RTT \\(ms\\): [0-9]+ rows in [0-9.]+ s from 2026-11-21 15:34:[0-9]+ UTC$")
  expect_match(text[2], paste0("^# packets of both captures: ", attr(rtt, "matched"), " matched, "))
  expect_false(any(grepl("#", utils::capture.output(print(rtt[, .(rtt_ms)])))))
  expect_equal(summary(rtt)[, .(quantity, n, median, max)], data.table(quantity = "RTT (ms)", n = nrow(rtt), median = median(rtt$rtt_ms), max = max(rtt$rtt_ms)))
  expect_s3_class(ggplot2::autoplot(rtt), "ggplot")
})

test_that("every measure over time is a series that can be summarised and drawn", {
  ends <- pair_of("window")
  flow <- data_flows(ends[[1]])$flow[1]
  series <- list(rtt_by_flow(ends[[1]], ends[[2]]), data_ack_rtt(ends[[1]], flow), timestamp_rtt(ends[[1]], flow), interarrival_jitter(ends[[1]], ends[[2]], flow),
                 bytes_in_flight(ends[[1]], flow), advertised_window(ends[[1]], flow), throughput_windows(ends[[2]], 0.25))
  for (x in series) {
    found <- summary(x)
    expect_equal(sum(found$n), nrow(x))
    expect_true(all(found$min <= found$median & found$median <= found$max))
    expect_equal(nrow(ggplot2::autoplot(x)$data), nrow(x))
  }
})

test_that("rbind() of two series gives all times the same epoch, adds up the counts of packets, and names attributes that differ", {
  first <- rtt_of("bulk")
  second <- rtt_of("window")
  expect_false(attr(first, "epoch_s") == attr(second, "epoch_s"))
  for (tables in list(list(first, second), list(second, first))) {
    both <- do.call(rbind, tables)
    expect_s3_class(both, "samovar_series")
    expect_equal(unix_s(both), c(unix_s(tables[[1]]), unix_s(tables[[2]])))
    expect_equal(unix_s(both, "arrival_ns", "arrival_epoch_s"), unlist(lapply(tables, unix_s, "arrival_ns", "arrival_epoch_s")))
    expect_equal(attr(both, "matched"), attr(first, "matched") + attr(second, "matched"))
    expect_equal(nrow(attr(both, "matching")), 4)
  }
  expect_equal(unix_s(first)[1] %/% 1, attr(first, "epoch_s"))
  capture <- pair_of("bulk")[[1]]
  expect_message(other <- rbind(throughput_windows(capture, 0.5), throughput_windows(capture, 1)), "does not keep \"width_s\"", class = "samovar_message_lost")
  expect_null(attr(other, "width_s"))
  expect_message(plain <- rbind(first, first[, .(t_ns, rtt_ms, arrival_ns)]), "does not keep \"epoch_s\"", class = "samovar_message_lost")
  expect_equal(class(plain), c("data.table", "data.frame"))
})

test_that("after rbind(), the windows of two captures count from the first packet of the earlier capture", {
  early <- throughput_windows(pair_of("bulk")[[2]], 1)
  late <- throughput_windows(pair_of("window")[[2]], 1)
  start <- \(x) attr(x, "epoch_s") + attr(x, "origin_ns") / 1e9
  both <- rbind(late, early)
  expect_equal(start(both) + both$t_s, c(start(late) + late$t_s, start(early) + early$t_s))
  expect_equal(attr(both, "width_s"), 1)
})

test_that("merge() of two series with different epochs joins rows of the same moment, and keeps attributes and order", {
  rtt <- rtt_of("window")
  moved <- data.table::copy(rtt)[, t_ns := t_ns + 5e9][10:1]
  data.table::setattr(moved, "epoch_s", attr(rtt, "epoch_s") - 5)
  merged <- merge(rtt, moved[, .(t_ns, k = .I)] |> data.table::setattr("epoch_s", attr(moved, "epoch_s")), by = "t_ns")
  expect_equal(merged$k, 10:1)
  expect_equal(merged$t_ns, rtt$t_ns[1:10])
  expect_equal(attr(merged, "epoch_s"), attr(rtt, "epoch_s"))
  expect_s3_class(merged, "samovar_series")
})

test_that("a campaign prints its design and what was left out, counts the trials of its treatments, and is drawn by trial", {
  campaign <- read_campaign(samovar_example("campaign"))
  expect_equal(utils::capture.output(print(campaign)), c(
    "Campaign campaign: A buffer of 20 packets", "3 of 6 planned trials; left out: not run (3)", "  cc    newreno, cubic", "  rwnd  9KB, 15KB, 21KB, 9999KB", "  mtu   600, 1500"
  ))
  found <- summary(campaign)
  expect_equal(colSums(found[, .(planned, valid, suspect, left_out)]), c(planned = 6, valid = 3, suspect = 0, left_out = 3))
  expect_equal(found[valid == 1, rwnd], c("9KB", "15KB", "21KB"))
  expect_s3_class(ggplot2::autoplot(campaign), "ggplot")
})

test_that("a measure refuses captures that rbind() joined", {
  ends <- pair_of("window")
  expect_error(goodput(rbind(ends[[1]], ends[[2]]), "a"), "not a capture", class = "samovar_error_argument")
})
