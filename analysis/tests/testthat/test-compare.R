# Rows of metrics.csv of two campaigns: `values` has a vector of replicates per campaign and treatment.
metrics_of_both <- function(values, metric = "goodput_bps", unit = "bit/s") {
  rows <- rbindlist(Map(\(treatments, side) rbindlist(Map(\(value, cc) {
    data.table(campaign = side, trial = paste0(side, ":", cc, "-r", seq_along(value)), part = "main", cc = cc, replicate = seq_along(value), run = seq_along(value), value = value)
  }, treatments, names(treatments))), values, names(values)))
  rows[, `:=`(metric = metric, unit = unit, flow = "bulk")][]
}

by_cc <- list(treatments = "cc", pairs = "part")

test_that("the change of each treatment is computed from its pairs of trials, and is not distinct for equal values", {
  found <- changes_between(metrics_of_both(list(
    A = list(cubic = 1:6 + 10, cdg = 1:6 + 10), B = list(cubic = 1:6 + 10, cdg = 0.8 * (1:6 + 10))
  )), by_cc)
  expect_equal(found$treatment, c("cubic", "cdg"))
  expect_equal(found$ratio, c(1, 0.8))
  expect_equal(found$distinct, c(FALSE, TRUE))
  expect_equal(found$confidence, rep(1 - 2 * 0.5^6, 2))
  expect_equal(found$difference_lo, c(0, -0.2 * 16))
})

test_that("a treatment of one campaign only has a row without a change", {
  found <- changes_between(metrics_of_both(list(A = list(cubic = 1:3, cdg = 1:3), B = list(cubic = 2:4))), by_cc)
  expect_equal(found[treatment == "cdg", .(n, distinct, change = is.na(difference))], data.table(n = 0L, distinct = FALSE, change = TRUE))
  expect_equal(found[treatment == "cubic"]$difference, 1)
})

test_that("values that are not positive have a difference and no ratio", {
  found <- changes_between(metrics_of_both(list(A = list(cubic = c(0, 0, 0)), B = list(cubic = c(1, 2, 3)))), by_cc)
  expect_equal(found[, .(difference, ratio)], data.table(difference = 2, ratio = NA_real_))
})

test_that("a factor that does not distinguish treatments is used to pair trials of the same treatment", {
  rows <- metrics_of_both(list(A = list(cubic = 1:3, cdg = 11:13), B = list(cubic = 2:4, cdg = 13:15)))
  found <- changes_between(rows, list(treatments = "part", pairs = "cc"))
  expect_equal(found[, .(treatment, difference, n)], data.table(treatment = "all", difference = 1.5, n = 6L))
})

test_that("campaigns without a metric in common are an error that names the metrics of each", {
  rows <- rbind(metrics_of_both(list(A = list(cubic = 1:3))), metrics_of_both(list(B = list(cubic = 1:3)), "loss_share", "share"))
  expect_error(changes_between(rows, by_cc), "no metric is measured in both: A has goodput_bps; B has loss_share", class = "samovar_error_comparison")
})

test_that("if two campaigns of 5 replicates do not differ, intervals contain no change as often as their confidence states, within 1.5 percentage points", {
  set.seed(18)
  treatments <- sprintf("t%04d", 1:4000)
  draw <- list(normal = \() stats::rnorm(5, 10), lognormal = \() stats::rlnorm(5, 0, 1))
  for (one in draw) {
    values <- lapply(c(A = 1, B = 2), \(side) lapply(stats::setNames(nm = treatments), \(name) one()))
    found <- changes_between(metrics_of_both(values), by_cc)
    expect_equal(mean(!found$distinct), found$confidence[1], tolerance = 0.015)
  }
})

test_that("a factor without a level in common is an error that names the levels of each campaign and the options that would be accepted", {
  side <- \(...) list(factors = c("cc", "rwnd"), trials = data.table(part = "main", ...))
  both <- list(A = side(cc = c("cubic", "cdg"), rwnd = "50KB"), B = side(cc = c("cubic", "bbr"), rwnd = "1MB"))
  expect_equal(matched_factors(both), list(treatments = c("part", "cc"), pairs = character()))
  expect_equal(matched_factors(both, "part"), list(treatments = "part", pairs = "cc"))
  expect_error(matched_factors(both, "rwnd"), "rwnd has no level in common .A has 50KB; B has 1MB.; --by accepts part, cc")
  both$B$trials <- data.table(part = "main", cc = c("bbr", "vegas"), rwnd = "1MB")
  expect_error(matched_factors(both), "cc has no level in common .A has cubic, cdg; B has bbr, vegas.; pick one level of each with --only-a and --only-b, or match by part with --by")
})

test_that("figures that compare two campaigns can show quantities that are measured only when a figure is drawn", {
  folders <- c(small_campaign(), small_campaign())
  figures <- list(
    list(figure = "time-series", show = "inflight", part = "buffer", mtu = "1500", overlay = "campaign"), list(figure = "distribution", show = "inflight", part = "buffer"),
    list(figure = "buffer-cdf", part = "buffer"), list(figure = "time-sequence", part = "buffer", to = "1s")
  )
  edit_json(file.path(folders[1], "plan.json"), \(plan) replace(plan, "figures", list(figures)))
  to <- tempfile()
  quietly(compare_campaigns(list(folder = folders[1]), list(folder = folders[2]), to, cores = 1L))
  made <- jsonlite::fromJSON(file.path(to, "comparison.json"), simplifyVector = FALSE)
  expect_true(all(startsWith(vapply(made$figures, \(one) one$name, ""), c("time-series", "distribution", "buffer-cdf", "time-sequence"))))
  data <- data.table::fread(file.path(to, made$figures[[1]]$data))
  expect_setequal(data$curve, c("A", "B"))
  expect_equal(data[curve == "A"]$mid, data[curve == "B"]$mid)
})
