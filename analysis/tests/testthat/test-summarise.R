test_that("the confidence interval of six values is their range, at 96.9 %", {
  found <- median_interval(c(5, 1, 4, 2, 6, 3))
  expect_equal(found[c("median", "lo", "hi", "n")], list(median = 3.5, lo = 1, hi = 6, n = 6L))
  expect_equal(found$confidence, 1 - 2 / 64)
})

test_that("the confidence interval of twenty values is the sixth to the fifteenth, as in Conover's table", {
  found <- median_interval(20:1)
  expect_equal(c(found$lo, found$hi), c(6, 15))
  expect_gte(found$confidence, 0.95)
})

test_that("the interval of three to five values is their range, with its actual confidence level", {
  expect_equal(median_interval(c(3, 1, 2))[c("lo", "hi", "confidence")], list(lo = 1, hi = 3, confidence = 0.75))
})

test_that("the median of even and odd numbers of values is equal to R's", {
  for (n in 1:9) expect_equal(median_interval((1:n)^2)$median, stats::median((1:n)^2))
})

test_that("captions state the confidence of the intervals, and that fewer than 3 trials have no interval", {
  expect_equal(interval_words(5), "Bars: 93.75 % interval of the median (order statistics).")
  expect_equal(interval_words(c(3, 5, 5)), "Bars: interval of the median (order statistics), 75 % for 3 trials, 93.75 % for 5 trials.")
  expect_match(interval_words(3:12), "depends on the number of trials: 75 % to 99.22 %", fixed = TRUE)
  expect_equal(bracket_words(c(1, 6)), "Brackets: 96.88 % interval of the median (order statistics). No interval: fewer than 3 trials.")
  expect_equal(bracket_words(2), "No interval: fewer than 3 trials.")
})

test_that("two values have a median but no interval, no values have neither", {
  expect_equal(median_interval(c(1, 2, NA))[c("median", "lo", "hi", "n")], list(median = 1.5, lo = NA_real_, hi = NA_real_, n = 2L))
  expect_equal(median_interval(numeric())$n, 0)
})

test_that("a trial counts once in a summary, however many flows it has", {
  metrics <- data.table::data.table(trial = c("a", "a", "b"), part = "p", cc = "cubic", replicate = 1L, flow = c("x", "y", "x"),
                                    metric = "m", unit = "ms", value = c(1, 3, 10))
  found <- summarise_metrics(metrics, "cc")
  expect_equal(found$median, 6)
  expect_equal(found$n, 2L)
})

test_that("the line of RTT over window is summarised by its R^2 and by its slope relative to 8 / rate", {
  x <- data.table::data.table(rwnd = c("a", "b", "c"), rwnd_max_bytes = c(50e3, 1e5, 2e5), goodput_bps = 8e6,
                              rtt_median_ms = c(50, 100, 200))
  found <- window_line(x)
  expect_equal(found$median, c(1, 1))
  expect_equal(found$metric, c("rtt_rwnd_linearity_r2", "rtt_rwnd_slope_ratio"))
  expect_null(window_line(x[1:2]))
})

test_that("the line of RTT over window uses windows from the bandwidth-delay product to the size that fills the queue", {
  path <- list(down = list(rate_bps = 8e6, buffer_packets = 100), rtt_s = 0.02)
  limits <- \(path) window_limits(list(resolved = list(mtu_bytes = 1300, path = path)))
  payload <- (1300 - 52) / 1300
  expect_equal(limits(path), list(least_bytes = 20000 * payload, most_bytes = (20000 + 130000) * payload))
  path$down <- list(rate_bps = 8e6, buffer_bytes = 60000)
  expect_equal(limits(path)$most_bytes, 80000 * payload)
})

test_that("flows that share a queue, and windows that do not fill the path, are left out of the line of RTT over window", {
  campaign <- read_campaign(samovar_example("campaign"))
  metrics <- data.table::CJ(trial = names(campaign$manifests), metric = c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes"))
  metrics[, `:=`(flow = "bulk", value = as.double(seq_len(.N)))]
  metrics[metric == "rwnd_max_bytes", value := c(9e3, 15e3, 21e3)]
  expect_equal(nrow(rwnd_linearity(campaign, metrics)), 2)
  first <- names(campaign$manifests)[1]
  beside <- data.table::copy(metrics[trial == first])[, flow := "other"]
  expect_equal(NROW(rwnd_linearity(campaign, rbind(metrics, beside))), 0)
  # With an RTT of 50 ms, the path holds 12500 bytes.
  campaign$manifests <- lapply(campaign$manifests, \(m) utils::modifyList(m, list(resolved = list(path = list(rtt_s = 0.05)))))
  expect_equal(NROW(rwnd_linearity(campaign, metrics)), 0)
  wide <- data.table::copy(metrics)[metric == "rwnd_max_bytes", value := c(13e3, 15e3, 21e3)]
  expect_equal(NROW(rwnd_linearity(campaign, wide)), 2)
})

test_that("a trial without a configured MTU has the MTU of Ethernet", {
  campaign <- read_campaign(samovar_example("campaign"))
  metrics <- data.table::CJ(trial = names(campaign$manifests), metric = c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes"))
  metrics[, `:=`(flow = "bulk", value = as.double(seq_len(.N)))]
  metrics[metric == "rwnd_max_bytes", value := c(9e3, 15e3, 21e3)]
  found <- rwnd_linearity(campaign, metrics)
  expect_equal(nrow(found), 2)
  campaign$manifests <- lapply(campaign$manifests, \(m) replace(m, "resolved", list(replace(m$resolved, "mtu_bytes", list(NULL)))))
  expect_equal(rwnd_linearity(campaign, metrics), found)
})

test_that("quantiles are equal to R's", {
  x <- c(5, 1, 9, 2, 2, 8)
  expect_equal(quantiles_of(x, c(0, 0.1, 0.5, 0.9, 1)), stats::quantile(x, c(0, 0.1, 0.5, 0.9, 1), names = FALSE))
})

test_that("a summary has the number of trials behind each value and their verdicts", {
  metrics <- data.table::data.table(trial = letters[1:7], part = "p", cc = "cubic", replicate = 1:7, flow = "x", metric = "m", unit = "ms", value = 1:7,
                                    verdict = rep(c("valid", "suspect"), c(5, 2)))
  found <- summarise_metrics(metrics, "cc")
  expect_equal(unlist(found[, .(n, valid, suspect, min, p25, p75, p90, max)], use.names = FALSE), c(7, 5, 2, 1, 2.5, 5.5, 6.4, 7))
  expect_equal(found$confidence, 1 - 2 / 2^7)
})

test_that("flows are summarised separately, and members of a counted flow also by its label", {
  metrics <- data.table::data.table(trial = rep(c("a", "b"), each = 4), part = "p", cc = "cubic", flow = c("bulk-1", "bulk-2", "voip", ""), metric = "m", unit = "ms",
                                    value = c(1, 3, 100, 50, 5, 7, 200, 60))
  found <- summarise_flows(metrics, "cc")
  expect_setequal(found$flow, c("bulk", "bulk-1", "bulk-2", "voip"))
  expect_equal(found[match(c("bulk", "bulk-2", "voip"), flow)]$median, c(4, 5, 150))
  expect_true(all(found$n == 2))
})

test_that("a table states how many of its trials are suspect", {
  values <- data.table::data.table(level = "a", trial = c("x", "x", "y"), verdict = c("valid", "valid", "suspect"))
  expect_equal(trial_count(values, "a"), "2 (1 suspect)")
  expect_equal(trial_count(values[1:2], "a"), "1")
})

test_that("cells of a crossed table have an interval only if their trials are of one treatment", {
  trials <- data.table::CJ(cc = c("cubic", "cdg"), rwnd = c("9KB", "15KB"), mtu = c("600", "1500"), replicate = 1:3)[, `:=`(id = paste0("t", .I), part = "main", verdict = "valid")]
  metrics <- trials[, .(trial = id, flow = "bulk", metric = "rtt_median_ms", unit = "ms", value = seq_len(.N))]
  plan <- list(parts = list(list(name = "main", factors = lapply(trials[, .(cc, rwnd, mtu)], unique))))
  results <- list(campaign = list(factors = c("cc", "rwnd", "mtu"), plan = plan, trials = trials, manifests = list()), metrics = metrics)
  found <- table_crossed(results, trials, "rtt_median_ms", "cc", "rwnd")
  expect_true(all(is.na(found$data$lo)) && !anyNA(found$data$median))
  expect_equal(found$title, "RTT median (ms) by Congestion control and Receive window")
  expect_match(found$caption, "No interval: each cell has trials of several treatments")
  expect_false(anyNA(table_crossed(results, trials[mtu == "600"], "rtt_median_ms", "cc", "rwnd")$data$lo))
})

test_that("a trial with several flows counts once in the interval of the buffer", {
  trials <- data.table::data.table(id = paste0("t", 1:3), part = "main", cc = "cubic", verdict = "valid")
  metrics <- data.table::CJ(trial = trials$id, flow = c("a", "b", "c"))[, `:=`(metric = "buffer_method1_packets", unit = "packets", value = 100 + seq_len(.N))]
  campaign <- list(factors = "cc", plan = list(parts = list(list(name = "main", factors = list(cc = list("cubic"))))), trials = trials, manifests = list())
  found <- table_buffer_estimates(list(campaign = campaign, metrics = metrics), trials)
  expect_equal(unlist(found$data[, .(median, lo, hi, n, confidence)]), c(median = 105, lo = 102, hi = 108, n = 3, confidence = 0.75))
})
