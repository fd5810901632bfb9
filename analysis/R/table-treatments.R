# Option `published`: per row, the report's numbers in the order of `metrics`, as in `{40Mbit: [16.35, 0]}`.

#' Medians of several metrics (option `metrics`) of one flow (option `flow`) or of all, a row for each treatment
#' @noRd
table_treatments <- function(results, options) {
  campaign <- results$campaign
  wanted <- unlist(options$metrics)
  trials <- select_trials(results, options, c("metrics", "flow", "published"))
  curves <- curves_of(campaign, trials)
  values <- of_flows(results$metrics[metric %in% wanted], options$flow)[trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(values) == 0) abort_nothing(if (is.null(wanted)) "the table names no metrics" else paste("no trial has", paste(wanted, collapse = ", ")))
  values[, level := curves$labels[match(trial, trials$id)]]
  per_trial <- values[, .(value = stats::median(value) * crossed_scale(unit[1])$scale, unit = crossed_scale(unit[1])$unit), by = .(level, metric, trial)]
  data <- per_trial[, c(median_interval(value), list(unit = unit[1])), by = .(level, metric)][order(level, match(metric, wanted))]
  shown <- intersect(wanted, data$metric)
  heads <- vapply(shown, \(m) metric_words(m, data[metric == m]$unit[1]), "")
  told <- if (is.null(options$published)) character() else shown
  rows <- lapply(levels(droplevels(data$level)), \(l) {
    published <- as.character(unlist(options$published[[l]]))[match(told, wanted)]
    c(l, vapply(shown, \(m) interval_text(data[level == l & metric == m], 3), ""), trial_count(values, l), ifelse(is.na(published), "-", published))
  })
  list(
    title = options$title %||% paste(heads, collapse = ", "),
    columns = headed(c(curves$title, heads, "Trials", if (length(told) > 0) paste0(heads, ", published")), c("left", rep("right", length(shown) + 1 + length(told)))),
    rows = rows, data = data, trials = unique(per_trial$trial),
    caption = sentences(
      paste0("Medians, ", replicate_words(data$n), ", with intervals in brackets"), flow_words(options$flow),
      if (length(told) > 0) "Published numbers are not measured here", bracket_words(data$n), path_words(campaign, trials)
    )
  )
}
