#' Time series of trials in stacked panels
#'
#' One row per quantity, one column per trial. The line is the median and the band minimum to maximum of each 1/600 of the trial.
#'
#' @param data A table `panel` (factor), `column` (factor), `flow` (factor), `t_s`, `low`, `mid`, `high`.
#' @param limits A table `panel`, `column`, `value` of horizontal marks, or NULL.
#' @param panels A facet of ggplot2.
#' @param y_title Title of the y axis, where the panels do not carry one each.
#' @return A ggplot.
#' @export
plot_time_series <- function(data, limits = NULL, panels = stacked_panels(), y_title = NULL) {
  flows <- levels(data$flow)
  ggplot2::ggplot(data, ggplot2::aes(t_s, mid, colour = flow)) +
    limit_lines(limits) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = low, ymax = high, fill = flow), colour = NA, alpha = 0.35) +
    ggplot2::geom_line(stat = StatThin, linewidth = 0.35) +
    panels +
    scale_levels(flows, "Flow", c("colour", "fill")) +
    ggplot2::scale_x_continuous("Time since the start of traffic (s)", expand = ggplot2::expansion(c(0.01, 0.02)), n.breaks = 4,
                                labels = format_plain) +
    ggplot2::scale_y_continuous(y_title, limits = c(0, NA), expand = ggplot2::expansion(c(0, 0.08)), n.breaks = 4) +
    theme_samovar() +
    ggplot2::theme(strip.text.y.left = ggplot2::element_text(angle = 90, hjust = 0.5), panel.spacing.x = ggplot2::unit(14, "pt"),
                   legend.position = if (length(flows) > 1) "top" else "none")
}

stacked_panels <- function() ggplot2::facet_grid(panel ~ column, scales = "free_y", switch = "y")
one_panel_per_trial <- function() ggplot2::facet_wrap(~column, ncol = 1)

limit_lines <- function(limits) {
  if (is.null(limits) || nrow(limits) == 0) return(NULL)
  ggplot2::geom_hline(ggplot2::aes(yintercept = value), limits, colour = "grey40", linewidth = 0.4, linetype = "dotted")
}

panel_titles <- c(cwnd = "cwnd (packets)", rtt = "RTT (ms)", throughput = "Throughput\n(Mbit/s)", queue = "Queue (packets)")

#' cwnd, RTT, throughput and queue of one trial per treatment over time
#' @noRd
# Shows: throughput_bps or queue_max_packets.
figure_trial_time_series <- function(results, options) {
  time_figure(results, options, names(panel_titles), "One trial over time",
              "Congestion window, RTT by packet pairs, throughput of IP packets at the receiver and bottleneck queue", options$flow)
}

#' Bottleneck queue of one trial per treatment over time
#' @noRd
# Shows: queue_max_packets.
figure_queue_time <- function(results, options) {
  time_figure(results, options, "queue", "Bottleneck queue over time", "Packets in the bottleneck's queue")
}

# The queue, which is no flow's, is shown beside those that `flows` names.
time_figure <- function(results, options, quantities, title, what, flows = NULL) {
  campaign <- results$campaign
  trials <- select_trials(results, options, "flow")
  if (is.null(options$rwnd) && is.null(options$trial)) trials <- at_largest_rwnd(campaign, trials)
  chosen <- representatives(campaign, trials)
  data <- of_flows(results$series[trial %in% chosen$trials$id & quantity %in% quantities], c(flows, if (!is.null(flows)) ""))
  if (nrow(data) == 0) abort_nothing("the trials have no time series")
  name_panels(data, chosen)
  limits <- queue_limits(campaign, chosen, data)
  stacked <- nlevels(data$panel) > 1
  list(
    plot = if (stacked) plot_time_series(data, limits) else plot_time_series(data, limits, one_panel_per_trial(), panel_titles[[quantities]]),
    data = data[, .(trial, flow, quantity, unit, t_s, low, mid, high)], trials = chosen$trials$id, width_in = 6.3,
    height_in = if (stacked) 1 + 1.25 * nlevels(data$panel) else 0.8 + 1.3 * nlevels(data$column),
    title = options$title %||% title,
    caption = sentences(
      paste0(what, " of ", count_words(nrow(chosen$trials), "trial"), " (replicate ",
             paste(unique(chosen$trials$replicate), collapse = ", "), ")"),
      flow_words(flows), fixed_words(campaign, trials, chosen$factors),
      "Line: median, band: minimum to maximum of each 1/600 of the trial",
      if (!is.null(limits)) "Dotted: buffer set",
      path_words(campaign, trials)
    )
  )
}

# A flow of its own colour; the queue belongs to none and takes the first.
name_panels <- function(data, chosen) {
  flows <- setdiff(unique(data$flow), "")
  if (length(flows) == 0) flows <- "queue"
  data[, flow := factor(fifelse(flow == "", flows[1], flow), levels = flows)]
  data[, panel := factor(panel_titles[quantity], levels = intersect(panel_titles, panel_titles[quantity]))]
  data[, column := chosen$labels[match(trial, chosen$trials$id)]][, column := droplevels(column)]
}

# The first replicate of each treatment, at most four: more columns than that cannot be read.
representatives <- function(campaign, trials) {
  curves <- curves_of(campaign, trials)
  first <- trials[order(curves$labels, trials$replicate)][, label := sort(curves$labels)][, .SD[1], by = label]
  shown <- utils::head(first, 4)
  list(trials = shown, labels = droplevels(shown$label), factors = curves$factors)
}

queue_limits <- function(campaign, chosen, data) {
  limits <- data.table(
    panel = factor(panel_titles[["queue"]], levels = levels(data$panel)), column = chosen$labels,
    value = vapply(chosen$trials$id, \(id) set_buffer(campaign, id), 0)
  )[!is.na(panel) & !is.na(value)]
  if (nrow(limits) > 0) limits
}
