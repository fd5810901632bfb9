# Option `published`: per level of the rows, per level of the columns, a number as text, as in `{1: {50KB: 53.2, 200KB: 69.5}}`.

#' Medians of one `metric` over two factors, `rows` down and `columns` across, beside numbers `published` elsewhere
#' @noRd
table_crossed <- function(results, options) {
  campaign <- results$campaign
  trials <- select_trials(results, options, c("metric", "rows", "columns", "published"))
  for (way in c("rows", "columns")) if (!options[[way]] %||% "" %in% campaign$factors) abort_choice(paste("Unknown factor of", way), options[[way]] %||% "", campaign$factors)
  values <- results$metrics[metric == (options$metric %||% "")][trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(values) == 0) abort_nothing(paste("no trial has", options$metric %||% "a metric: the table names none"))
  scaled <- crossed_scale(values$unit[1])
  per_trial <- values[, .(value = stats::median(value) * scaled$scale), by = c("trial", options$rows, options$columns)]
  setnames(per_trial, c(options$rows, options$columns), c("row", "column"))
  data <- per_trial[, median_interval(value), by = .(row, column)]
  down <- intersect(known_levels(campaign, options$rows), data$row)
  across <- intersect(known_levels(campaign, options$columns), data$column)
  told <- options$published
  cells <- \(l) c(l, vapply(across, \(a) interval_text(data[row == l & column == a], 3), ""), if (!is.null(told)) vapply(across, \(a) as.character(told[[l]][[a]] %||% "-"), ""))
  list(
    title = options$title %||% paste(options$metric, "by", factor_title(options$rows), "and", factor_title(options$columns)),
    columns = headed(c(factor_title(options$rows), paste0(options$columns, " ", across), if (!is.null(told)) paste(across, "as published")),
                     c("left", rep("right", length(across) * (1L + !is.null(told))))),
    rows = lapply(down, cells), data = data, trials = unique(per_trial$trial),
    caption = sentences(
      paste0("Median ", sub("_[a-z]+$", "", options$metric), " in ", scaled$unit, ", ", replicate_words(data$n), ", with its interval in brackets"),
      if (!is.null(told)) "Published numbers are not measured here", bracket_words(data$n), path_words(campaign, trials)
    )
  )
}

crossed_scale <- function(unit) switch(unit, "bit/s" = list(scale = 1e-6, unit = "Mbit/s"), share = list(scale = 100, unit = "%"), list(scale = 1, unit = unit))
