#' Time that trials cost beyond their traffic, by phase
#' @noRd
# Shows: overhead_s.
table_overhead <- function(results, options) {
  trials <- select_trials(results, options)
  phases <- results$campaign$phases[id %in% trials$id]
  totals <- trials[!is.na(overhead_s), .(id, phase = "overhead, all phases", seconds = overhead_s)]
  both <- rbind(phases, totals)
  if (nrow(both) == 0) abort_nothing("no trial says what it cost")
  data <- both[, .(median_s = stats::median(seconds), max_s = max(seconds), total_s = sum(seconds), n = .N), by = phase]
  seconds <- \(v) format(round(v, 2), nsmall = 2, trim = TRUE)
  list(
    title = options$title %||% "Time a trial costs beyond its traffic",
    columns = headed(c("Phase", "Median (s)", "Max (s)", "All trials (s)", "Trials"), c("left", rep("right", 4))),
    rows = lapply(seq_len(nrow(data)), \(i) with(data[i], c(phase, seconds(median_s), seconds(max_s), seconds(total_s), n))),
    data = data, trials = trials$id,
    caption = sentences(paste("Time spent per phase, over", count_words(nrow(trials), "trial")))
  )
}

#' Trials that the analysis leaves out, with the reason
#' @noRd
table_left_out <- function(results, options) {
  left <- results$left_out
  list(
    title = options$title %||% "Trials left out",
    columns = headed(c("Trial", "Reason"), c("left", "left")),
    rows = lapply(seq_len(nrow(left)), \(i) c(left$id[i], left$reason[i])),
    data = left, trials = character(),
    caption = sentences(
      if (nrow(left) == 0) "No trial was left out" else paste("Left out:", nrow(left), "of", results$planned, "planned trials")
    )
  )
}
