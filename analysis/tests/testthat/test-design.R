design_figure <- function(campaign, options = list()) make_output(list(campaign = campaign), c(figure = "design", options))

test_that("the design figure has every trial of the plan in order, and marks those that are not analysed", {
  folder <- small_campaign()
  unlink(trial_named(folder, "window-newreno-21KB"), recursive = TRUE)
  made <- design_figure(read_campaign(folder))
  expect_equal(made$data$order, 1:6)
  expect_equal(made$data$standing == "analysed", c(TRUE, TRUE, TRUE, TRUE, FALSE, TRUE))
  expect_equal(made$data$rwnd, c("9999KB", "9999KB", "9KB", "15KB", "21KB", "9999KB"))
  expect_s3_class(made$plot, "ggplot")
})

test_that("the axis of the design figure spans the first to the last trial, including trials of parts without factors", {
  data <- data.table(factor = factor("cc"), level = factor("cdg"), standing = factor(used_or_not[1]), from = 3L, to = 3L)
  blocks <- data.table(from = c(1L, 3L), to = c(2L, 3L), shaded = c(FALSE, TRUE))
  parts <- data.table(part = c("alone", "main"), from = c(1L, 3L))
  panel <- ggplot2::ggplot_build(plot_design(data, blocks, parts))$layout$panel_params[[1]]$x
  expect_lte(panel$continuous_range[1], 0.5)
  expect_gte(panel$continuous_range[2], 3.5)
  expect_equal(order_breaks(c(0.5, 6.5)), 1:6)
  expect_equal(order_breaks(c(0.5, 480.5)), c(1, 100, 200, 300, 400))
  expect_equal(order_breaks(c(0.5, 1.5)), 1)
})

test_that("a design figure of one part numbers the trials of this part from 1", {
  made <- design_figure(read_campaign(small_campaign()), list(part = "window"))
  expect_equal(made$data$order, 1:4)
  expect_match(made$caption, "Levels of 4 trials")
})

test_that("a campaign without factors has no figure of its design", {
  planned <- lapply(1:2, \(i) list(id = letters[i], part = "main", replicate = i, block = i, treatment = list()))
  campaign <- list(plan = list(parts = list(list(name = "main")), trials = planned), factors = NULL, trials = data.table::data.table(id = letters[1:2]))
  expect_error(figure_design(list(campaign = campaign), planned_trials(campaign)), "no factors", class = "samovar_no_data")
})

test_that("adjacent trials with the same level are one stroke, unless only one of them was analysed", {
  design <- data.table(order = 1:5, trial = letters[1:5], part = "main", replicate = 1L, block = 1L,
                       standing = used_or_not[c(1, 1, 2, 1, 1)], cc = c("cubic", "cubic", "cubic", "cdg", "cdg"))
  campaign <- list(plan = list(parts = list(list(name = "main", factors = list(cc = list("cubic", "cdg"))))), factors = "cc")
  runs <- level_runs(design, campaign)
  expect_equal(runs[, .(from, to)], data.table(from = c(1L, 3L, 4L), to = c(2L, 3L, 5L)))
})

test_that("the design figure can be written as a PDF, with one panel per factor", {
  made <- design_figure(read_campaign(small_campaign()))
  built <- ggplot2::ggplot_build(made$plot)
  expect_equal(as.character(built$layout$layout$factor), c("cc", "rwnd", "mtu"))
  path <- tempfile(fileext = ".pdf")
  write_figure(made$plot, path, made$width_in, made$height_in, as.POSIXct("2026-01-01", tz = "UTC"))
  expect_gt(file.size(path), 2000)
})

test_that("blocks whose numbers start again from 1 at the next level of a factor are shaded separately", {
  planned <- lapply(1:8, \(i) list(id = letters[i], part = "main", replicate = 1L, block = c(1L, 1L, 2L, 2L)[(i - 1) %% 4 + 1],
                                   treatment = list(txd = if (i <= 4) "64" else "256")))
  plan <- list(parts = list(list(name = "main", factors = list(txd = list("64", "256")))), trials = planned)
  campaign <- list(plan = plan, factors = "txd", trials = data.table::data.table(id = letters[1:8]))
  shaded <- ggplot2::layer_data(figure_design(list(campaign = campaign), planned_trials(campaign))$plot, 1)
  expect_equal(sort(as.numeric(shaded$xmin)), c(2.5, 6.5))
})
