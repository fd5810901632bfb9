#' One metric against the levels of a factor
#' @param data A table `level` (numbers, or a factor where levels are words), `curve` (factor), `median`, `lo`, `hi`.
#' @param x_title,y_title Titles of the axes.
#' @param title Title of the legend.
#' @param log_axis TRUE for a logarithmic y axis.
#' @return A ggplot.
#' @export
plot_by_factor <- function(data, x_title, y_title, title = "Congestion control", log_axis = FALSE) {
  y <- if (log_axis) {
    ggplot2::scale_y_log10(paste0(y_title, ", log scale"), labels = format_plain)
  } else {
    ggplot2::scale_y_continuous(y_title, limits = c(0, NA), expand = ggplot2::expansion(c(0, 0.06)))
  }
  x <- if (is.numeric(data$level)) {
    ggplot2::scale_x_continuous(x_title, labels = format_plain, expand = ggplot2::expansion(0.03))
  } else {
    ggplot2::scale_x_discrete(x_title)
  }
  ggplot2::ggplot(data, ggplot2::aes(level, median, colour = curve, linetype = curve, shape = curve, group = curve)) +
    ggplot2::geom_line(linewidth = 0.5) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = lo, ymax = hi), linewidth = 0.7, linetype = "solid", na.rm = TRUE, show.legend = FALSE) +
    ggplot2::geom_point(size = 1.8) +
    scale_levels(levels(data$curve), title) + x + y + theme_samovar() +
    ggplot2::theme(legend.position = if (nlevels(data$curve) > 1) "top" else "none")
}

#' A metric (option `metric`) against a factor (option `factor`), of one flow (option `flow`) or of all
#' @noRd
# Words: axis=log.
figure_metric_by_factor <- function(results, options) {
  campaign <- results$campaign
  trials <- select_trials(results, options, c("metric", "factor", "flow", "axis"))
  across <- options$factor %||% ""
  if (!across %in% campaign$factors) abort_choice("Unknown factor", across, campaign$factors)
  values <- of_flows(results$metrics[metric == (options$metric %||% "")], options$flow)[trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(values) == 0) abort_nothing(paste("no trial has", options$metric %||% "a metric: the figure names none"))
  curves <- curves_of(campaign, trials, but = across)
  scaled <- crossed_scale(values$unit[1])
  values[, curve := curves$labels[match(trial, trials$id)]]
  per_trial <- values[, .(value = stats::median(value) * scaled$scale), by = c("trial", "curve", across)]
  setnames(per_trial, across, "label")
  data <- per_trial[, median_interval(value), by = .(label, curve)]
  axis <- level_axis(data$label, known_levels(campaign, across), factor_title(across))
  data <- data[, level := axis$at][order(curve, level)][, curve := droplevels(curve)]
  y_title <- metric_words(options$metric, scaled$unit)
  list(
    plot = plot_by_factor(data, axis$title, y_title, curves$title, identical(options$axis, "log")), data = data, trials = unique(per_trial$trial),
    width_in = 6.3, height_in = 3.2, title = options$title %||% paste(y_title, "against", axis$title),
    caption = sentences(
      paste0(y_title, ", ", replicate_words(data$n), " (", count_words(uniqueN(per_trial$trial), "trial"), ")"),
      flow_words(options$flow), interval_words(data$n), path_words(campaign, trials)
    )
  )
}

# Levels on an axis: rates in Mbit/s and plain numbers as numbers, everything else as words in the order of the plan.
level_axis <- function(labels, known, title) {
  rates <- 1e-6 * parse_rate_bps(labels)
  if (!anyNA(rates)) return(list(at = rates, title = paste(title, "(Mbit/s)")))
  numbers <- suppressWarnings(as.double(labels))
  if (!anyNA(numbers)) return(list(at = numbers, title = title))
  list(at = factor(labels, levels = intersect(known, labels)), title = title)
}

parse_rate_bps <- function(text) {
  scale <- c(bit = 1, Kbit = 1e3, Mbit = 1e6, Gbit = 1e9)
  unit <- sub("^[0-9.]+", "", text)
  suppressWarnings(as.double(sub("[A-Za-z]+$", "", text))) * unname(scale[unit])
}

# "rtt_median_ms" in ms is "RTT median (ms)".
metric_words <- function(metric, unit) {
  words <- gsub("_", " ", sub("_(ms|bps|share|packets|bytes|s|us|ppm)$", "", metric))
  words <- sub("^(rtt|owd)", "\\U\\1", words, perl = TRUE)
  paste0(toupper(substring(words, 1, 1)), substring(words, 2), if (nzchar(unit)) paste0(" (", unit, ")"))
}
