test_that("the interval of six values is their range, at 96.9 %", {
  found <- median_interval(c(5, 1, 4, 2, 6, 3))
  expect_equal(found[c("median", "lo", "hi", "n")], list(median = 3.5, lo = 1, hi = 6, n = 6L))
  expect_equal(found$confidence, 1 - 2 / 64)
})

test_that("the interval of twenty values is the sixth to the fifteenth, as in Conover's table", {
  found <- median_interval(20:1)
  expect_equal(c(found$lo, found$hi), c(6, 15))
  expect_gte(found$confidence, 0.95)
})

test_that("three to five values give their range and say how little it holds", {
  expect_equal(median_interval(c(3, 1, 2))[c("lo", "hi", "confidence")], list(lo = 1, hi = 3, confidence = 0.75))
})

test_that("two values have a median and no interval, none have nothing", {
  expect_equal(median_interval(c(1, 2, NA))[c("median", "lo", "hi", "n")], list(median = 1.5, lo = NA_real_, hi = NA_real_, n = 2L))
  expect_equal(median_interval(numeric())$n, 0)
})

test_that("a replicate counts once, however many flows it has", {
  metrics <- data.table::data.table(trial = c("a", "a", "b"), part = "p", cc = "cubic", replicate = 1L, flow = c("x", "y", "x"),
                                    metric = "m", unit = "ms", value = c(1, 3, 10))
  found <- summarise_metrics(metrics, "cc")
  expect_equal(found$median, 6)
  expect_equal(found$n, 2L)
})

test_that("a line of RTT on window is told by its R^2 and its slope against 8 / rate", {
  x <- data.table::data.table(rwnd = c("a", "b", "c"), rwnd_max_bytes = c(50e3, 1e5, 2e5), goodput_bps = 8e6,
                              rtt_median_ms = c(50, 100, 200))
  found <- window_line(x)
  expect_equal(found$median, c(1, 1))
  expect_equal(found$metric, c("rtt_rwnd_linearity_r2", "rtt_rwnd_slope_ratio"))
  expect_null(window_line(x[1:2]))
})
