#' CDF of buffer sizes estimated per cwnd cycle
#' @param data A table `curve` (factor), `packets`, one row per estimate.
#' @param truth_packets The buffer to mark; NA marks none.
#' @param title Title of the legend.
#' @return A ggplot.
#' @export
plot_buffer_cdf <- function(data, truth_packets = NA, title = "MTU (bytes)") {
  limits <- buffer_limits(data$packets, truth_packets)
  steps <- data[, cdf_steps(packets, limits), by = curve]
  ggplot2::ggplot(steps, ggplot2::aes(packets, share, colour = curve, linetype = curve)) +
    mark_buffer(truth_packets) +
    cdf_layers(levels(data$curve), title, ggplot2::scale_x_continuous(buffer_axis_title, limits = limits, expand = c(0.01, 0)))
}

buffer_axis_title <- "Estimated buffer (packets)"

# What every CDF has: a step for each curve, told apart by colour and line, over an axis of values.
cdf_layers <- function(curves, title, x) {
  list(
    ggplot2::geom_step(stat = StatThin, linewidth = 0.6),
    scale_levels(curves, title, c("colour", "linetype")),
    x, cdf_axis(), theme_samovar()
  )
}

from_zero <- function(title) {
  ggplot2::scale_x_continuous(title, limits = c(0, NA), expand = ggplot2::expansion(c(0, 0.03)))
}

cdf_axis <- function() {
  ggplot2::scale_y_continuous("Cumulative share", limits = c(0, 1), breaks = seq(0, 1, 0.25), expand = c(0.01, 0.01))
}

mark_buffer <- function(packets) {
  if (is.na(packets)) return(NULL)
  list(
    ggplot2::geom_vline(xintercept = packets, colour = "grey40", linewidth = 0.4, linetype = "dotted"),
    ggplot2::annotate("text", x = packets, y = 0.02, label = paste0(" ", format_plain(packets), " set"), hjust = 0, vjust = 0,
                      size = 2.8, colour = "grey30")
  )
}

# At least 4 % of the buffer to each side: a spread of half a packet must not look like a wide one.
buffer_limits <- function(packets, truth_packets) {
  middle <- if (is.na(truth_packets)) stats::median(packets) else truth_packets
  range(packets, middle * c(0.96, 1.04))
}

# From the left edge at 0 to the right edge at 1: a curve that ends in mid-air looks cut off.
cdf_steps <- function(values, limits) {
  list(packets = c(limits[1], sort(values), limits[2]), share = c(0, seq_along(values) / length(values), 1))
}

#' CDF of buffer size per cwnd cycle, by method 1, 1-local, 2 or 2-raw
#' @noRd
# Words: method=1|1-local|2|2-raw. Shows: buffer_method1_packets.
figure_buffer_cdf <- function(results, options) {
  method <- options$method %||% "1"
  if (!method %in% names(method_words)) abort_choice("Unknown method", method, names(method_words))
  column <- paste0("method", sub("-", "_", method), "_packets")
  trials <- select_trials(results, options, "method")
  if (nrow(results$cycles) == 0) abort_nothing("no cwnd cycle was seen")
  cycles <- results$cycles[trial %in% trials$id & counts == TRUE]
  if (is.null(cycles[[column]]) || nrow(cycles) == 0) abort_nothing("no cwnd cycle was ended by a loss")
  curves <- curves_of(results$campaign, trials)
  cycles[, curve := curves$labels[match(trial, trials$id)]][, packets := get(column)]
  cycles <- cycles[!is.na(packets)]
  data <- cycles[order(curve, packets),
                 .(curve = droplevels(curve), packets, trial, cycle, rtt_max_ms, rate_bps, local_rate_bps)]
  truth <- set_buffer(results$campaign, trials$id)
  list(
    plot = plot_buffer_cdf(data, truth, curves$title), data = data, trials = unique(cycles$trial),
    width_in = 6.3, height_in = 3.0, title = options$title %||% paste("Buffer size estimated by", method_names[[method]]),
    caption = sentences(
      paste0("CDF of buffer size by ", method_names[[method]], ", one estimate per cwnd cycle: ", nrow(cycles), " cycles of ",
             count_words(uniqueN(cycles$trial), "trial")),
      method_words[[method]], path_words(results$campaign, trials)
    )
  )
}

method_names <- c("1" = "method 1", "1-local" = "method 1, local rate", "2" = "method 2", "2-raw" = "method 2, as published")

method_words <- c(
  "1" = "Queueing delay before the collapse of cwnd times mean IP throughput of the cycle, divided by the MTU.",
  "1-local" = "Bytes that left the queue during the queueing delay seen before the collapse of cwnd, divided by the MTU.",
  "2" = "Congestion window one round trip before its collapse is seen, less the idle path's share.",
  "2-raw" = "Congestion window just before its collapse."
)
