drawn <- function(campaign, options = list()) figure_design(list(campaign = campaign), c(figure = "design", options))

test_that("the design has every trial of the plan in order, and tells those that are not analysed apart", {
  folder <- small_campaign()
  unlink(trial_named(folder, "window-newreno-21KB"), recursive = TRUE)
  made <- drawn(read_campaign(folder))
  expect_equal(made$data$order, 1:6)
  expect_equal(made$data$standing == "analysed", c(TRUE, TRUE, TRUE, TRUE, FALSE, TRUE))
  expect_equal(made$data$rwnd, c("9999KB", "9999KB", "9KB", "15KB", "21KB", "9999KB"))
  expect_s3_class(made$plot, "ggplot")
})

test_that("a part of the design is drawn by its own order", {
  made <- drawn(read_campaign(small_campaign()), list(part = "window"))
  expect_equal(made$data$order, 1:4)
  expect_match(made$caption, "Levels of 4 trials")
})

test_that("neighbours of one level are one stroke, and another standing begins another", {
  design <- data.table(order = 1:5, trial = letters[1:5], part = "main", replicate = 1L, block = 1L,
                       standing = used_or_not[c(1, 1, 2, 1, 1)], cc = c("cubic", "cubic", "cubic", "cdg", "cdg"))
  campaign <- list(plan = list(parts = list(list(name = "main", factors = list(cc = list("cubic", "cdg"))))), factors = "cc")
  runs <- level_runs(design, campaign)
  expect_equal(runs[, .(from, to)], data.table(from = c(1L, 3L, 4L), to = c(2L, 3L, 5L)))
})

test_that("the design is a page that can be drawn, one panel per factor", {
  made <- drawn(read_campaign(small_campaign()))
  built <- ggplot2::ggplot_build(made$plot)
  expect_equal(as.character(built$layout$layout$factor), c("cc", "rwnd", "mtu"))
  path <- tempfile(fileext = ".pdf")
  write_figure(made$plot, path, made$width_in, made$height_in, as.POSIXct("2026-01-01", tz = "UTC"))
  expect_gt(file.size(path), 2000)
})
