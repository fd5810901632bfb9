# Option `published`: per source, per congestion control, `median` and `max` in ms or as text, as in
# `{TP-Link: {newreno: {median: "~150", max: "~240"}}}`.

#' RTT per congestion control at the largest receive window, beside numbers `published` elsewhere
#' @noRd
# Shows: rtt_median_ms.
table_cc_comparison <- function(results, options) {
  campaign <- results$campaign
  trials <- select_trials(results, options, "published")
  if (is.null(options$rwnd)) trials <- at_largest_rwnd(campaign, trials)
  curves <- curves_of(campaign, trials)
  values <- results$metrics[metric %in% c("rtt_median_ms", "rtt_max_ms")][trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(values) == 0) abort_nothing("no trial has an RTT")
  values[, level := curves$labels[match(trial, trials$id)]]
  per_trial <- values[, .(value = stats::median(value)), by = .(level, cc, metric, trial)]
  data <- per_trial[, median_interval(value), by = .(level, cc, metric)][order(level)]
  published <- options$published
  rows <- lapply(levels(droplevels(data$level)), \(l) cc_row(data[level == l], l, published, trial_count(values, l)))
  sources <- as.vector(vapply(names(published), \(s) paste0(s, ": ", c("median", "max")), character(2)))
  list(
    title = options$title %||% "RTT by congestion control",
    columns = headed(c(curves$title, "RTT median (ms)", "RTT max (ms)", "Trials", sources),
                     c("left", rep("right", 3 + length(sources)))),
    rows = rows, data = data, trials = unique(values$trial),
    caption = sentences(
      "RTT by packet pairs: median over trials of each trial's median and maximum, with its interval in brackets",
      if (length(published) > 0) paste("Columns of", paste(names(published), collapse = " and "), "(ms) are published numbers, not measured here"),
      fixed_words(campaign, trials, curves$factors), bracket_words(data$n), path_words(campaign, trials)
    )
  )
}

cc_row <- function(measured, label, published, n) {
  told <- unlist(lapply(published, \(source) {
    entry <- source[[measured$cc[1]]]
    vapply(c("median", "max"), \(k) as.character(entry[[k]] %||% "-"), "")
  }))
  c(label, interval_text(measured[metric == "rtt_median_ms"], 3), interval_text(measured[metric == "rtt_max_ms"], 3), n, unname(told))
}
