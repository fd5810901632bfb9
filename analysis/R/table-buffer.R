# Option `published`: per level of the rows, the report's numbers by column, as in `{1500: {Method 1: 542, Method 2: 546}}`.

#' Buffer estimates by both methods, beside the queue sampler's
#' @noRd
# Shows: buffer_method1_packets or buffer_truth_packets.
table_buffer_estimates <- function(results, options) {
  campaign <- results$campaign
  trials <- select_trials(results, options, "published")
  curves <- curves_of(campaign, trials)
  values <- results$metrics[metric %in% names(buffer_columns)][trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(values) == 0) abort_nothing("no trial has a buffer estimate")
  values[, level := curves$labels[match(trial, trials$id)]]
  data <- values[, median_interval(value), by = .(level, metric)][order(level, match(metric, names(buffer_columns)))]
  shown <- intersect(names(buffer_columns), data$metric)
  told <- unique(unlist(lapply(options$published, names)))
  rows <- lapply(levels(droplevels(data$level)), \(l) {
    c(l, vapply(shown, \(m) interval_text(data[level == l & metric == m]), ""), trial_count(values, l),
      vapply(told, \(k) as.character(options$published[[l]][[k]] %||% "-"), ""))
  })
  list(
    title = options$title %||% "Buffer size estimates",
    columns = headed(c(curves$title, buffer_columns[shown], "Trials", if (length(told) > 0) paste0(told, ", published")),
                     c("left", rep("right", length(shown) + 1 + length(told)))),
    rows = rows, data = data, trials = unique(values$trial),
    caption = sentences(
      "Buffer in packets: median over trials of each trial's median over cwnd cycles, with its interval in brackets",
      "The queue sampler's figure is the deepest queue that it saw in trials with drops",
      "Method 1 takes the cycle's mean rate, its local form the rate during the queueing delay itself",
      "Method 2 takes cwnd one round trip before its collapse less the idle path's share, as published cwnd at its collapse",
      if (length(told) > 0) "Published numbers are not measured here", bracket_words(data$n), path_words(campaign, trials)
    )
  )
}

buffer_columns <- c(
  buffer_method1_packets = "Method 1", buffer_method2_packets = "Method 2", buffer_truth_packets = "Queue sampler",
  buffer_method1_local_packets = "Method 1, local rate", buffer_method2_raw_packets = "Method 2, as published"
)

# "6", or "6 (1 suspect)": how many trials a number rests on, and how they were judged.
trial_count <- function(values, l) {
  trials <- unique(values[level == l], by = "trial")
  doubted <- sum(trials$verdict %in% "suspect")
  if (doubted == 0) as.character(nrow(trials)) else paste0(nrow(trials), " (", doubted, " suspect)")
}

headed <- function(names, align) {
  Map(\(name, align) list(name = name, align = align), unname(names), align) |> unname()
}

# "546 [545, 547]"; without interval below three trials.
interval_text <- function(row, digits = 4) {
  if (nrow(row) == 0 || is.na(row$median)) return("-")
  number <- \(v) format(signif(v, digits), trim = TRUE, scientific = FALSE)
  if (is.na(row$lo)) return(number(row$median))
  paste0(number(row$median), " [", number(row$lo), ", ", number(row$hi), "]")
}

bracket_words <- function(n) sub("^Bars:", "Brackets:", interval_words(n))
