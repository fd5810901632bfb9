# Distributions, bars, heat maps, two metrics and sequence numbers, of the recorded campaign.

recorded_results <- local({
  kept <- NULL
  function() {
    if (is.null(kept)) {
      campaign <- read_campaign(small_campaign())
      quietly(kept <<- gather(campaign, measure_all(campaign, 1L)))
    }
    kept
  }
})

figure_of <- function(...) make_output(recorded_results(), list(...))

# Write a figure as a PDF, and return the size of the file in bytes.
pdf_bytes <- function(made) {
  path <- tempfile(fileext = ".pdf")
  write_figure(made$plot, path, made$width_in, made$height_in, as.POSIXct("2026-01-01", tz = "UTC"))
  file.size(path)
}

test_that("every kind of distribution is drawn, with panels and without", {
  for (kind in outputs_of("figure")$distribution$options$kind$values) {
    expect_gt(pdf_bytes(figure_of(figure = "distribution", show = "rtt", kind = kind)), 3000)
    made <- figure_of(figure = "distribution", show = "inflight", kind = kind, facet = "mtu", overlay = "cc", from = "1s", to = "2s")
    expect_gt(pdf_bytes(made), 3000)
    expect_true("mtu" %in% names(made$data), info = kind)
  }
})

test_that("the figure distribution of RTT has the values of the figure rtt-cdf", {
  short <- figure_of(figure = "rtt-cdf", part = "buffer")$data
  long <- figure_of(figure = "distribution", show = "rtt", part = "buffer", overlay = "mtu")$data
  expect_equal(long$value, short$rtt_ms)
  above <- figure_of(figure = "distribution", show = "rtt", kind = "ccdf", part = "buffer", overlay = "mtu")$data
  expect_equal(above$share, 1 - long$share)
})

test_that("the figure distribution has the same means over windows as throughput-cdf, and refuses windows for quantities that are not rates", {
  short <- figure_of(figure = "throughput-cdf", window = "1s", part = "window", cc = "newreno")$data
  long <- figure_of(figure = "distribution", show = "throughput", window = "1s", part = "window", cc = "newreno")$data
  expect_equal(long$value, short$throughput_mbps)
  expect_match(figure_of(figure = "distribution", show = "goodput", window = "1s")$caption, "means over windows of 1 s")
  expect_error(figure_of(figure = "distribution", show = "rtt", window = "1s"), "not a rate", class = "samovar_no_data")
})

test_that("a distribution has up to sixteen curves if their levels are rates, and up to eight if their levels are words", {
  rates <- paste0(1:13, "Mbit")
  data <- data.table::rbindlist(lapply(rates, \(l) data.table(curve = factor(l, levels = rates), value = 1:9, share = (1:9) / 9)))
  colours <- ggplot2::ggplot_build(plot_distribution(data, "cdf", "RTT (ms)", "Limit"))$data[[1]]$colour
  expect_equal(data.table::uniqueN(colours), 13)
  expect_error(scale_levels(letters[1:9], "word"), "at most 8 curves", class = "samovar_error_figure")
})

test_that("a table of treatments shows the change from equal treatments of another part", {
  results <- recorded_results()
  shown <- results$campaign$trials[part == "window" & rwnd == "9999KB"]
  results$campaign$trials <- rbind(results$campaign$trials, copy(shown)[, `:=`(part = "other", id = results$campaign$trials[rwnd == "21KB"]$id)])
  made <- table_treatments(results, shown, "rtt_median_ms", against = "other", published = list(cubic = list(3, "+1")))
  medians <- results$metrics[metric == "rtt_median_ms"][c(shown$id, results$campaign$trials[rwnd == "21KB"]$id), on = "trial"]$value
  expect_equal(unname(made$rows[[1]])[c(3, 5, 6)], c(sprintf("%+.1f", 100 * (medians[1] / medians[2] - 1)), "3", "+1"))
  expect_error(table_treatments(results, shown, "rtt_median_ms", against = "none"), "no trial of part none", class = "samovar_no_data")
})

test_that("the rate and buffer of a queue upstream are those of its direction", {
  manifest <- list(resolved = list(
    loggers = list(list(logger = "queue", host = "rtr", interface = "eth1")),
    path = list(rtt_s = 0.34, down = list(interface = "eth2", rate_bps = 50e6), up = list(interface = "eth1", rate_bps = 20e6))
  ))
  expect_equal(path_queued(manifest)$rate_bps, 20e6)
  manifest$resolved$loggers[[1]]$interface <- "eth2"
  expect_equal(path_queued(manifest)$rate_bps, 50e6)
})

test_that("the distribution of a metric has one value per trial, and refuses a span of time", {
  made <- figure_of(figure = "distribution", show = "goodput_bps", kind = "box")
  expect_equal(nrow(made$data), 6)
  expect_error(figure_of(figure = "distribution", show = "goodput_bps", from = "1s"), "metric of the whole trial", class = "samovar_no_data")
})

test_that("the data of a distribution of few values per trial have one row per value, with its trial", {
  results <- recorded_results()
  made <- figure_of(figure = "buffer-cdf", part = "buffer")
  cycles <- results$cycles[trial %in% made$trials & counts == TRUE & !is.na(method1_packets)]
  expect_equal(sort(made$data$value), sort(cycles$method1_packets))
  expect_equal(made$data[, max(share), by = curve]$V1, rep(1, uniqueN(made$data$curve)))
  expect_setequal(made$data$trial, cycles$trial)
  expect_equal(made$plot$scales$get_scales("x")$limits, buffer_limits(made$data$value, set_buffer(results$campaign, made$trials)))
  middle_s <- stats::median(cycles$end_s)
  late <- figure_of(figure = "distribution", show = "buffer-method1", part = "buffer", from = sprintf("%.3fs", middle_s - 0.001))
  expect_equal(nrow(late$data), sum(cycles$end_s >= middle_s))
  expect_equal(figure_of(figure = "distribution", show = "goodput_bps", part = "window", overlay = "rwnd", facet = "cc")$data$share, rep(1, 4))
})

test_that("the stored buffer estimates of cwnd cycles are equal to those measured again from the traces", {
  results <- recorded_results()
  id <- results$campaign$trials[part == "buffer"]$id[1]
  measured <- measure_series(results$campaign$folder, results$campaign$manifests[[id]], c("buffer-method2", "pause-to-drop"))
  kept <- results$cycles[trial == id & counts == TRUE & !is.na(method2_packets)]
  expect_equal(range(measured$`buffer-method2`$quantiles$value), range(kept$method2_packets))
  expect_null(measured$`pause-to-drop`$series)
})

test_that("the figures bars and heatmap show the medians of the summary", {
  results <- recorded_results()
  summary <- results$summary[metric == "rtt_median_ms" & rwnd != ""]
  bars <- figure_of(figure = "bars", show = "rtt_median_ms", by = "rwnd", overlay = "cc", part = "window")
  expect_gt(pdf_bytes(bars), 3000)
  known <- summary[part == "window"]
  expect_equal(bars$data$median[match(paste(known$cc, known$rwnd), paste(bars$data$curve, bars$data$level))], known$median)
  tiles <- figure_of(figure = "heatmap", show = "rtt_median_ms", rows = "cc", columns = "rwnd", part = "window")
  expect_gt(pdf_bytes(tiles), 3000)
  expect_equal(tiles$data$median[match(paste(known$cc, known$rwnd), paste(tiles$data$row, tiles$data$column))], known$median)
})

test_that("the ellipse of a trade-off is at Mahalanobis distance 1 from the mean of its points", {
  set.seed(3)
  x <- stats::rnorm(9, 50, 4)
  y <- 0.3 * x + stats::rnorm(9)
  ring <- ellipse_of(x, y)
  expect_equal(stats::mahalanobis(cbind(ring$x, ring$y), c(mean(x), mean(y)), stats::cov(cbind(x, y))), rep(1, 73))
})

test_that("a trade-off has a reversed axis of delay, and its caption states that curves with too few trials have no ellipse", {
  made <- figure_of(figure = "tradeoff", of = "bulk", overlay = "cc")
  expect_gt(pdf_bytes(made), 3000)
  expect_equal(made$layout[c("reversed", "ellipses")], list(reversed = "x", ellipses = TRUE))
  expect_match(made$caption, "No ellipse: fewer than 3 trials")
  several <- data.table::data.table(trial = 1:14, x = 1, y = 1, curve = factor(rep(c("a", "b", "c"), c(3, 10, 1))))
  expect_match(ellipse_words(several[curve == "b"]), "from the covariance of 10 trials. Another trial lies inside with a probability of 32 %", fixed = TRUE)
  expect_match(ellipse_words(several), "from the covariance of 3 to 10 trials.*15 % to 32 % if both metrics are normally distributed. No ellipse")
  data <- data.table::data.table(x = c(1, 2, 3, 9), y = c(1, 3, 2, 9), curve = factor(c("a", "a", "a", "b")))
  layers <- ggplot2::ggplot_build(plot_two_metrics(data, "Delay", "Rate", delay = TRUE))$data
  expect_equal(nrow(layers[[1]]), 73)
  metrics <- recorded_results()$metrics
  scatter <- figure_of(figure = "scatter", x = "cwnd_median_packets", y = "rtt_median_ms")$data
  expect_equal(scatter$x, metrics[metric == "cwnd_median_packets"]$value[match(scatter$trial, metrics[metric == "cwnd_median_packets"]$trial)])
})

test_that("curves beyond those that colours can tell apart are left out and counted", {
  data <- data.table::data.table(curve = factor(sprintf("c%02d", 1:11)))
  expect_match(drop_curves(data)$left_out, "8 of 11 curves are shown")
  expect_null(drop_curves(data[1:8][, curve := droplevels(curve)])$left_out)
})

test_that("levels of all parts are in the order of their values if they are quantities, else in the order of the experiment file", {
  parts <- \(...) list(plan = list(parts = lapply(list(...), \(levels) list(factors = list(f = as.list(levels))))))
  order_of <- \(...) factor_levels(parts(...), "f")
  expect_equal(order_of(c("9999KB"), c("9KB", "15KB", "1MiB", "2000kB")), c("9KB", "15KB", "1MiB", "2000kB", "9999KB"))
  expect_equal(order_of(c("1Gbit", "500kbit", "40Mbit")), c("500kbit", "40Mbit", "1Gbit"))
  expect_equal(order_of(c("1s", "20ms", "0")), c("0", "20ms", "1s"))
  expect_equal(order_of(c("100packets", "1packet")), c("1packet", "100packets"))
  expect_equal(order_of(c("10%", "2%", "0.5%")), c("0.5%", "2%", "10%"))
  expect_equal(order_of(c("2 BDP", "0.5 BDP")), c("0.5 BDP", "2 BDP"))
  expect_equal(order_of(c("1500", "600"), "9000"), c("600", "1500", "9000"))
  for (words in list(c("newreno", "cubic", "cdg"), c("100packets", "50KB"), c("none", "9KB"), c("1500", "600", "auto"))) expect_equal(order_of(words), words)
  expect_equal(in_order_of_value(character()), character())
})

test_that("curves are in the order of values, even if a part with a large value is first in the plan", {
  campaign <- recorded_results()$campaign
  expect_equal(planned_levels(campaign, "rwnd")[1], "9999KB")
  expect_equal(levels(curves_of(campaign, campaign$trials, but = c("part", "cc", "mtu"))$labels), c("9KB", "15KB", "21KB", "9999KB"))
})

test_that("trials of a part without a factor have a level of their own", {
  campaign <- recorded_results()$campaign
  expect_equal(levels(level_factor(campaign, "mtu", c("1500", NA, "600"))), c("600", "1500", "\u2013"))
})

test_that("the figure time-sequence has as many retransmissions and bytes as goodput() counts, and SACK blocks lie within the sent data", {
  campaign <- recorded_results()$campaign
  id <- campaign$trials[part == "buffer"]$id[2]
  traces <- open_traces(campaign$folder, campaign$manifests[[id]], c("usual", "sack_left", "sack_right"))
  flow <- campaign$manifests[[id]]$resolved$flows[[1]]
  capture <- traces$capture(flow$from)
  name <- flow_in_capture(flow, capture)
  events <- sequence_events(capture, name)
  known <- goodput(capture, name)
  expect_equal(sum(events$event == "retransmission"), known$retransmitted_packets)
  expect_equal(max(events[event == "segment"]$high), known$unique_bytes)
  sack <- events[event == "SACK"]
  expect_gt(nrow(sack), 10)
  expect_true(all(sack$high > sack$low))
  expect_true(all(sack$high <= max(events[event == "segment"]$high)))
  expect_false(is.unsorted(events[event == "ACK"]$high[cummax(events[event == "ACK"]$high) == events[event == "ACK"]$high]))
  expect_gt(pdf_bytes(figure_of(figure = "time-sequence", part = "buffer", from = "0s", to = "1s")), 3000)
})

test_that("the distance between two sequence numbers is the shorter way around the sequence space", {
  expect_equal(distance(c(10, 2^32 - 5, 5), c(30, 5, 2^32 - 5)), c(20, 10, -10))
})

test_that("the bars of each curve of a histogram add up to 1 in each panel", {
  values <- data.table::data.table(curve = factor(rep(c("cubic", "cdg"), c(900, 100))), mtu = factor(rep(c("600", "1500"), 500)), value = seq_len(1000))
  bars <- data.table::as.data.table(ggplot2::layer_data(plot_distribution(values, "histogram", "RTT (ms)", panels = "mtu")))
  expect_equal(bars[, sum(y), by = .(PANEL, group)]$V1, rep(1, 4))
})

test_that("the table cc-comparison is left out if the experiment has no factor cc", {
  results <- recorded_results()
  results$campaign$factors <- setdiff(results$campaign$factors, "cc")
  expect_error(table_cc_comparison(results, results$campaign$trials), "no factor cc", class = "samovar_no_data")
})

test_that("a logarithmic axis shows only positive values, and the caption says how many others there are", {
  results <- recorded_results()
  zeros <- sum(results$metrics[metric == "loss_share"]$value <= 0)
  expect_true(zeros %in% 1:5)
  words <- paste("zero or negative:", zeros, "of 6 values")
  for (kind in c("box", "violin", "histogram")) {
    made <- figure_of(figure = "distribution", show = "loss_share", kind = kind, axis = "log")
    expect_match(made$caption, paste0(words, "."), fixed = TRUE)
    expect_true(all(made$data$value > 0))
    expect_gt(suppressWarnings(pdf_bytes(made)), 3000)
  }
  made <- figure_of(figure = "distribution", show = "loss_share", axis = "log")
  expect_match(made$caption, paste0(words, ", which count in the shares"), fixed = TRUE)
  expect_equal(nrow(made$data), 6)
  expect_error(figure_of(figure = "distribution", show = "reordered_share", axis = "log"), "all values are zero or negative", class = "samovar_no_data")
  made <- figure_of(figure = "bars", show = "loss_share", by = "rwnd", axis = "log", part = "window")
  expect_match(made$caption, "zero or negative: [1-3] of 4 medians")
  drawn <- ggplot2::layer_data(made$plot, 1)$y
  expect_true(all(is.finite(drawn) | is.na(drawn)))
})

test_that("a caption does not mention reductions of cwnd if no trial of the campaign has one", {
  results <- as.list(recorded_results())
  results$cycles <- data.table()
  expect_no_match(make_output(results, list(figure = "sender-time", part = "window"))$caption, "reductions of cwnd")
})

test_that("a heat map over all factors of a campaign has a panel for each of its parts", {
  results <- as.list(recorded_results())
  results$campaign$factors <- c("cc", "mtu")
  made <- make_output(results, list(figure = "heatmap", show = "goodput_bps", rows = "cc", columns = "mtu"))
  expect_setequal(as.character(made$data$part), c("buffer", "window"))
})

test_that("a figure over time has up to sixteen curves if their levels are rates, and up to eight if their levels are words", {
  rates <- data.table(curve = factor(paste0(1:20, "Mbit"), levels = paste0(1:20, "Mbit")))
  expect_length(drop_curves(rates)$kept, 16)
  expect_length(drop_curves(data.table(curve = factor(letters[1:20])))$kept, 8)
})

test_that("long titles of panels and labels of axes are not cut off and do not overlap", {
  expect_equal(broken_titles("main, 9KB, congestion", 4), "main, 9KB,\ncongestion")
  expect_equal(broken_titles("main, 9KB, congestion", 1), "main, 9KB, congestion")
  expect_equal(word_axis("Rate", paste0(10:60, "Mbit"))$guide$angle, 90)
  expect_equal(word_axis("Rate", strrep(letters, 20))$guide$angle, 35)
  expect_gt(legend_height_in(strrep(letters[1:8], 60), "Congestion control"), 0.5)
  expect_equal(legend_height_in(letters[1:8], "Congestion control"), 0)
})
