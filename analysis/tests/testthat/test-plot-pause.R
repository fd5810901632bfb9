# A measured campaign, with PAUSE frames added to one of its trials.
paused_results <- function() {
  folder <- small_campaign()
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L))
  id <- basename(trial_named(folder, "buffer-newreno-9999KB-1500"))
  results$pauses <- data.table::data.table(trial = id, flow = "bulk", episode = 1:3, first_s = c(1, 2, 3), last_s = c(1.2, 2.2, 3.2), frames = 40L, drop_s = c(1.15, 2.18, NA),
                                           drops = c(3, 2, 0), pause_to_drop_s = c(0.15, 0.18, NA))
  cwnd <- data.table::data.table(quantity = "cwnd", t_s = seq(0.5, 2, by = 0.01), value = c(seq(10, 140, length.out = 66), rep(1, 10), seq(1, 60, length.out = 75)))
  other <- data.table::data.table(quantity = c(rep("pause", 40), "drop"), t_s = c(seq(1, 1.2, length.out = 40), 1.15), value = c(rep(NA, 40), 3))
  results$closeup <- data.table::data.table(trial = id, flow = "bulk", rbind(cwnd, other))
  results
}

write_pdf <- function(made) write_figure(made$plot, tempfile(fileext = ".pdf"), made$width_in, made$height_in, as.POSIXct("2026-01-01", tz = "UTC"))

test_that("cwnd with PAUSE frames, the time to a drop and jitter are drawn as vectors with units on their axes", {
  results <- paused_results()
  made <- lapply(list(list(figure = "cwnd-pause"), list(figure = "pause-to-drop"), list(figure = "jitter-cdf", part = "window")),
                 \(entry) make_output(results, entry))
  for (one in made) {
    expect_no_warning(path <- write_pdf(one))
    expect_lt(file.size(path), 2e5)
    expect_equal(length(grepRaw("/Subtype /Image", readBin(path, "raw", file.size(path)), fixed = TRUE)), 0)
    expect_match(one$caption, "trial")
    expect_gt(length(one$trials), 0)
  }
  units <- vapply(made, \(one) paste(one$plot$scales$get_scales("x")$name, one$plot$scales$get_scales("y")$name), "")
  expect_match(units, "\\((s|ms)\\)")
  expect_equal(nrow(made[[2]]$data), 2)
})

test_that("figures of PAUSE frames are left out with the reason if the campaign has none", {
  folder <- small_campaign()
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L))
  expect_error(make_output(results, list(figure = "cwnd-pause")), "no trial has both", class = "samovar_no_data")
  expect_error(make_output(results, list(figure = "pause-to-drop")), "PAUSE frame", class = "samovar_no_data")
})
