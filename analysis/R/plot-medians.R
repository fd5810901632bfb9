# Draw figures of medians over trials against the levels of a factor.

# --- Against any factor

#' One metric against the levels of a factor
#' @param data A table `level` (number, or a factor where levels are words), `curve` (factor), `median`, `lo`, `hi`.
#' @param x_title,y_title Titles of the axes.
#' @param title Title of the legend.
#' @param log_axis TRUE for a logarithmic y axis.
#' @return A ggplot.
#' @examples
#' data <- data.table::data.table(level = c(9, 15, 21), curve = factor("newreno"), median = c(40, 65, 89), lo = c(39, 64, 88), hi = c(41, 66, 90))
#' plot_by_factor(data, "Receive window (KB)", "RTT (ms)")
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

figure_metric_by_factor <- function(results, trials, factor, metric, flow = NULL, axis = NULL) {
  campaign <- results$campaign
  check_factor(campaign, factor)
  values <- values_of_metrics(results, trials, metric, flow)
  curves <- curves_of(campaign, trials, but = factor)
  shown <- display_unit(values$unit[1])
  values[, curve := curves$labels[match(trial, trials$id)]]
  per_trial <- values[, .(value = stats::median(value) * shown$scale), by = c("trial", "curve", factor)]
  setnames(per_trial, factor, "label")
  data <- per_trial[, median_interval(value), by = .(label, curve)]
  x <- level_axis(data$label, known_levels(campaign, factor), factor_title(factor))
  data <- data[, level := x$at][order(curve, level)][, curve := droplevels(curve)]
  y_title <- metric_title(metric, shown$unit)
  list(
    plot = plot_by_factor(data, x$title, y_title, curves$title, identical(axis, "log")), data = data, trials = unique(per_trial$trial),
    width_in = 6.3, height_in = 3.2, title = paste(y_title, "against", x$title),
    caption = sentences(
      paste0(y_title, ", ", replicate_words(data$n), " (", count_words(uniqueN(per_trial$trial), "trial"), ")"),
      flow_words(flow), interval_words(data$n), path_words(campaign, trials)
    )
  )
}

check_factor <- function(campaign, name, what = "factor") {
  if (!name %in% campaign$factors) abort_choice(paste("Unknown", what), name, campaign$factors)
}

# Rows of metrics.csv for some metrics of the selected trials and flows.
values_of_metrics <- function(results, trials, metrics, flow = NULL) {
  values <- of_flows(results$metrics[metric %in% metrics], flow)[trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(values) == 0) abort_nothing(paste("no trial has", paste(metrics, collapse = ", ")))
  values
}

# Levels on an axis: rates in Mbit/s and plain numbers as numbers, everything else as words in the order of `known`.
level_axis <- function(labels, known, title) {
  rates <- 1e-6 * parse_quantity(labels, "rate")
  if (!anyNA(rates)) return(list(at = rates, title = paste(title, "(Mbit/s)")))
  numbers <- parse_quantity(labels, "number")
  if (!anyNA(numbers)) return(list(at = numbers, title = title))
  list(at = factor(labels, levels = intersect(known, labels)), title = title)
}

# --- Against the receive window

#' Throughput, RTT or cwnd against receive window
#' @param data A table `rwnd_bytes`, `curve` (factor), `median`, `lo`, `hi`.
#' @param y_title Title of the y axis.
#' @param title Title of the legend.
#' @param theory A table `rwnd_bytes`, `value`: the theoretical line, or NULL.
#' @param y_from Where the y axis starts.
#' @return A ggplot.
#' @examples
#' data <- data.table::data.table(rwnd_bytes = c(9, 15, 21) * 1e3, curve = factor("newreno"), median = c(40, 65, 89), lo = c(39, 64, 88), hi = c(41, 66, 90))
#' plot_by_rwnd(data, "RTT (ms)")
#' @export
plot_by_rwnd <- function(data, y_title, title = "Congestion control", theory = NULL, y_from = 0) {
  dodge <- ggplot2::position_dodge(width = 0.012 * nlevels(data$curve))
  ggplot2::ggplot(data, ggplot2::aes(rwnd_bytes, median, colour = curve, linetype = curve, shape = curve)) +
    theory_line(theory) +
    ggplot2::geom_line(linewidth = 0.5, position = dodge) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = lo, ymax = hi), linewidth = 0.7, linetype = "solid", na.rm = TRUE,
                            position = dodge, show.legend = FALSE) +
    ggplot2::geom_point(size = 1.8, position = dodge) +
    scale_levels(levels(data$curve), title) +
    rwnd_axis(unique(data$rwnd_bytes)) +
    ggplot2::scale_y_continuous(y_title, limits = c(y_from, NA), expand = ggplot2::expansion(c(0, 0.06))) +
    theme_samovar()
}

# If receive windows are close together, their labels alternate between two rows, so that no label is omitted.
rwnd_axis <- function(bytes) {
  gaps <- diff(sort(log10(bytes)))
  tight <- length(gaps) > 0 && min(gaps) < 0.09 * sum(gaps)
  ggplot2::scale_x_log10("Receive window (log scale)", breaks = sort(bytes), labels = label_bytes,
                         guide = ggplot2::guide_axis(n.dodge = if (tight) 2 else 1))
}

theory_line <- function(theory) {
  if (is.null(theory)) return(NULL)
  ggplot2::geom_line(ggplot2::aes(rwnd_bytes, value), theory, inherit.aes = FALSE, colour = "grey60", linewidth = 1.6, alpha = 0.5)
}

figure_throughput_by_rwnd <- function(results, trials) {
  by_rwnd(results, trials, "throughput_bps", 1e-6, "Throughput (Mbit/s)", "Median throughput against receive window",
          "Throughput of IP packets at the receiver")
}

figure_rtt_by_rwnd <- function(results, trials) {
  by_rwnd(results, trials, "rtt_median_ms", 1, "Median RTT (ms)", "Median RTT against receive window",
          "RTT of packet pairs", theory = TRUE)
}

# In bytes of payload, as the receive window counts them.
figure_cwnd_by_rwnd <- function(results, trials) {
  mtu_bytes <- unique(vapply(results$campaign$manifests, \(m) as.double(m$resolved$mtu_bytes %||% ethernet_mtu_bytes), 0))
  if (length(mtu_bytes) != 1) abort_nothing("the trials have different MTUs, so that cwnd in packets cannot be converted to bytes")
  by_rwnd(results, trials, "cwnd_median_packets", (mtu_bytes - tcp_header_bytes) / 1e3, "Median cwnd (KB)", "Median cwnd against receive window",
          "Congestion window")
}

by_rwnd <- function(results, trials, metric_name, scale, y_title, title, what, theory = FALSE) {
  campaign <- results$campaign
  if (!"rwnd" %in% campaign$factors) abort_nothing("the experiment has no factor rwnd")
  curves <- curves_of(campaign, trials, but = "rwnd")
  values <- values_of_metrics(results, trials, metric_name)
  values[, curve := curves$labels[match(trial, trials$id)]][, rwnd_bytes := parse_quantity(rwnd, "size")]
  per_trial <- values[!is.na(rwnd_bytes), .(value = scale * stats::median(value)), by = .(curve, rwnd, rwnd_bytes, trial)]
  data <- per_trial[, median_interval(value), by = .(curve, rwnd, rwnd_bytes)][order(curve, rwnd_bytes)]
  line <- if (theory) rwnd_theory(campaign, trials, range(data$rwnd_bytes))
  y_from <- if (theory) 0 else y_start(data)
  list(
    plot = plot_by_rwnd(data, y_title, curves$title, line, y_from), data = data, trials = unique(per_trial$trial),
    width_in = 6.3, height_in = 3.2, title = title,
    caption = sentences(
      paste0(what, ", ", replicate_words(data$n), " (", count_words(uniqueN(per_trial$trial), "trial"), ")"),
      interval_words(data$n),
      if (!is.null(line)) "Grey line: theory, RTT = window / rate once the window fills the path, up to a full buffer",
      if (y_from > 0) "The y axis does not start at zero",
      path_words(campaign, trials)
    )
  )
}

# Curves that are all near the top get an axis that starts higher, but at most at 80 % of the top, so that noise does not look like an effect.
y_start <- function(data) {
  top <- max(data$median, data$hi, na.rm = TRUE)
  bottom <- min(data$median, data$lo, na.rm = TRUE)
  if (bottom < 0.6 * top) 0 else pretty(min(bottom, 0.8 * top), 2)[1]
}

# RTT of a flow that keeps its whole window in flight; NULL when the trials' paths differ.
rwnd_theory <- function(campaign, trials, range_bytes) {
  paths <- unique(lapply(campaign$manifests[trials$id],
                         \(m) c(path_down(m)[c("rate_bps", "rtt_s", "buffer_packets")], mtu = m$resolved$mtu_bytes)))
  if (length(paths) != 1 || anyNA(match(c("rate_bps", "rtt_s", "buffer_packets"), names(unlist(paths[[1]]))))) return(NULL)
  p <- paths[[1]]
  rwnd_bytes <- exp(seq(log(range_bytes[1]), log(range_bytes[2]), length.out = 200))
  wire_bytes <- rwnd_bytes * p$mtu / (p$mtu - tcp_header_bytes)
  idle_ms <- 1e3 * p$rtt_s
  full_ms <- idle_ms + 8e3 * p$buffer_packets * p$mtu / p$rate_bps
  data.table(rwnd_bytes = rwnd_bytes, value = pmin(full_ms, pmax(idle_ms, 8e3 * wire_bytes / p$rate_bps)))
}
