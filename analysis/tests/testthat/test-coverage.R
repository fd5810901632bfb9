# Confidence intervals of the package: the share of intervals that contain the true value is the stated confidence.
tolerance <- 0.015 # at a confidence of 75 %, three standard errors for 8000 repetitions, and two standard errors for 4000
sizes <- c(3L, 5L, 10L, 30L)
shapes <- list(normal = stats::rnorm, lognormal = stats::rlnorm)

# Expect that the share of intervals that contain the true value is the stated confidence. `simulate` gets the number of repetitions, the number of replicates and
# a function that draws random values, and returns a table of intervals and true values.
expect_coverage <- function(repetitions, simulate) {
  set.seed(20261123)
  for (shape in names(shapes)) for (n in sizes) {
    found <- simulate(repetitions, n, shapes[[shape]])
    expect_equal(nrow(found), repetitions)
    expect_equal(unique(found$confidence), interval_confidence(n))
    seen <- mean(found$lo <= found$truth & found$truth <= found$hi)
    expect_lt(abs(seen - interval_confidence(n)), tolerance, label = sprintf("n = %d, %s: |%.4f - %.4f|", n, shape, seen, interval_confidence(n)))
  }
}

# Pairs of trials in blocks: the path drifts far between blocks, and the second level varies more than the first.
simulated_pairs <- function(repetitions, n, first, second) {
  blocks <- repetitions * n
  data.table::data.table(
    curve = rep(seq_len(repetitions), each = 2 * n), pair = rep(rep(seq_len(n), each = 2), repetitions), level = c("a", "b"),
    run = rep(seq_len(2 * n), repetitions), drift = rep(stats::rnorm(blocks, sd = 3), each = 2), value = c(rbind(first(blocks), second(blocks)))
  )
}

test_that("the interval of a median contains the true median as often as its confidence states", {
  expect_coverage(8000L, \(repetitions, n, draw) {
    values <- data.table::data.table(treatment = rep(seq_len(repetitions), each = n), value = draw(n * repetitions))
    values[, median_interval(value), by = treatment][, truth := if (identical(draw, stats::rnorm)) 0 else 1]
  })
})

test_that("the interval of a difference paired by block contains the true difference as often as its confidence states, even if blocks differ", {
  expect_coverage(4000L, \(repetitions, n, draw) {
    spread <- if (identical(draw, stats::rnorm)) 5 else 1 # the median of the difference of two lognormals of unequal spread has no formula
    values <- simulated_pairs(repetitions, n, draw, \(k) 2 + spread * draw(k))[, value := drift + value]
    paired_changes(values, "a")[, truth := 2]
  })
})

test_that("the interval of a ratio paired by block contains the true ratio as often as its confidence states, even if blocks differ", {
  expect_coverage(4000L, \(repetitions, n, draw) {
    # A normal level with a small spread is positive, and the ratio of two has the median 2.
    one <- if (identical(draw, stats::rnorm)) \(k) 1 + 0.1 * draw(k) else draw
    values <- simulated_pairs(repetitions, n, one, \(k) 2 * one(k))[, value := exp(drift) * value]
    paired_changes(values, "a", as = "ratio")[, truth := 2]
  })
})

test_that("levels whose trials were run one after the other have no interval, because a difference between two boots would be part of every pair", {
  for (n in sizes) {
    values <- simulated_pairs(20L, n, stats::rnorm, stats::rnorm)
    boots <- values[, run := pair + n * (level == "b")][, value := value + (level == "b") * 4]
    found <- paired_changes(boots, "a")
    expect_true(all(is.na(found$lo) & is.na(found$hi) & is.na(found$confidence) & !found$distinct))
    expect_false(anyNA(found$change))
  }
})

test_that("the ellipse of a trade-off contains another trial as often as its caption states", {
  set.seed(20261123)
  for (n in sizes) {
    # The ellipse has the mean and covariance of the sample, so the share does not depend on the true mean and covariance.
    seen <- mean(replicate(8000L, {
      x <- matrix(stats::rnorm(2 * (n + 1)), ncol = 2)
      stats::mahalanobis(x[n + 1, ], colMeans(x[1:n, ]), stats::cov(x[1:n, ])) <= 1
    }))
    expect_lt(abs(seen - ellipse_share(n)), tolerance, label = sprintf("n = %d: |%.4f - %.4f|", n, seen, ellipse_share(n)))
  }
  expect_equal(round(100 * ellipse_share(c(3, 5, 10, 30))), c(15, 25, 32, 37))
})

test_that("only interval_rank() uses quantiles of distributions, and summaries have no interval except that of the median", {
  space <- asNamespace("samovar")
  quantiles <- c("confint", "qbeta", "qbinom", "qchisq", "qf", "qnorm", "qsignrank", "qt", "qwilcox", "sample.int")
  using <- Filter(\(name) is.function(space[[name]]) && any(quantiles %in% all.names(body(space[[name]]))), ls(space))
  expect_equal(using, "interval_rank")
  metrics <- data.table::data.table(trial = letters[1:6], part = "main", cc = "cubic", flow = "bulk", metric = "m", unit = "ms", value = c(1, 2, 4, 8, 16, 32))
  for (found in list(summarise_metrics(metrics, "cc"), summarise_flows(metrics, "cc"))) {
    expect_equal(unlist(found[, .(median, lo, hi, n, confidence)]), unlist(median_interval(metrics$value)[c("median", "lo", "hi", "n", "confidence")]))
    expect_equal(grep("(^|_)(lo|hi|low|high|lower|upper)$", names(found), value = TRUE), c("lo", "hi"))
  }
})
