#' CDF of buffer sizes estimated per cwnd cycle
#' @param data A table `curve` (factor), `packets`, `share`.
#' @param truth_packets The buffer to mark; NA marks none.
#' @param title Title of the legend.
#' @return A ggplot.
#' @export
plot_buffer_cdf <- function(data, truth_packets = NA, title = "MTU (bytes)") {
  ggplot2::ggplot(data, ggplot2::aes(packets, share, colour = curve, linetype = curve)) +
    mark_buffer(truth_packets) +
    ggplot2::geom_step(linewidth = 0.6) +
    scale_levels(levels(data$curve), title, c("colour", "linetype")) +
    ggplot2::scale_x_continuous(buffer_axis_title, limits = buffer_limits(data$packets, truth_packets)) +
    cdf_axis() +
    theme_samovar()
}

buffer_axis_title <- "Estimated buffer (packets)"

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

# A step CDF starts at zero and every curve reaches the right edge's neighbour only at its own maximum.
cdf_points <- function(values) {
  x <- sort(values)
  list(packets = c(x[1], x), share = c(0, seq_along(x) / length(x)))
}

#' @noRd
figure_buffer_cdf <- function(results, options) {
  method <- options$method %||% "1"
  if (!method %in% c("1", "2", "2-raw")) abort_choice("Unknown method", method, c("1", "2", "2-raw"))
  column <- c("1" = "method1_packets", "2" = "method2_packets", "2-raw" = "method2_raw_packets")[[method]]
  trials <- select_trials(results, options, "method")
  cycles <- results$cycles[trial %in% trials$id & counts == TRUE]
  if (nrow(cycles) == 0 || is.null(cycles[[column]])) abort_nothing("no cwnd cycle ended by a loss")
  curves <- curves_of(results$campaign, trials)
  cycles[, curve := curves$labels[match(trial, trials$id)]][, packets := get(column)]
  cycles <- cycles[!is.na(packets)]
  data <- cycles[, cdf_points(packets), by = curve][order(curve)]
  data[, curve := droplevels(curve)]
  truth <- set_buffer(results$campaign, trials$id)
  list(
    plot = plot_buffer_cdf(data, truth, curves$title), data = data, trials = unique(cycles$trial),
    width_in = 6.3, height_in = 3.0, title = options$title %||% paste("Buffer size estimated by method", method),
    caption = sentences(
      paste0("CDF of buffer size by method ", method, ", one estimate per cwnd cycle: ", nrow(cycles), " cycles of ",
             count_words(uniqueN(cycles$trial), "trial")),
      method_words[[method]], path_words(results$campaign, trials)
    )
  )
}

method_words <- c(
  "1" = "Queueing delay before the collapse of cwnd times IP throughput of the cycle, divided by the MTU.",
  "2" = "Congestion window one round trip before its collapse, less the idle path's share.",
  "2-raw" = "Congestion window just before its collapse, as it is."
)
