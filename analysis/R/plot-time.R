# Draw figures over time: of each treatment, the trial of one replicate.

#' Time series of trials in stacked panels
#'
#' One row per quantity, one column per trial. For each 1/600 of the trial, the line shows the median, and the band reaches from the minimum to the
#' maximum.
#'
#' @param data A table `panel` (factor), `column` (factor), `flow` (factor), `t_s`, `low`, `mid`, `high`.
#' @param limits A table `panel`, `column`, `value` of horizontal marks, or NULL.
#' @param panels A facet of ggplot2.
#' @param y_title Title of the y axis, for panels without their own titles.
#' @param events A table `panel`, `column`, `t_s`, `cause` (factor) of moments to mark on the time axis, or NULL.
#' @return A ggplot.
#' @export
plot_time_series <- function(data, limits = NULL, panels = stacked_panels(), y_title = NULL, events = NULL) {
  flows <- levels(data$flow)
  ggplot2::ggplot(data, ggplot2::aes(t_s, mid, colour = flow)) +
    limit_lines(limits) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = low, ymax = high, fill = flow), colour = NA, alpha = 0.35) +
    ggplot2::geom_line(stat = StatThin, linewidth = 0.35) +
    event_points(events) +
    panels +
    scale_levels(flows, "Flow", c("colour", "fill")) +
    ggplot2::scale_x_continuous("Time since the start of traffic (s)", expand = ggplot2::expansion(c(0.01, 0.02)), n.breaks = 4,
                                labels = format_plain) +
    ggplot2::scale_y_continuous(y_title, limits = c(0, NA), expand = ggplot2::expansion(c(0, 0.08)), n.breaks = 4) +
    theme_samovar() +
    ggplot2::theme(strip.text.y.left = ggplot2::element_text(angle = 90, hjust = 0.5), panel.spacing.x = ggplot2::unit(14, "pt"),
                   legend.position = if (length(flows) > 1 || !is.null(events)) "top" else "none")
}

stacked_panels <- function() ggplot2::facet_grid(panel ~ column, scales = "free_y", switch = "y")
one_panel_per_trial <- function() ggplot2::facet_wrap(~column, ncol = 1)

limit_lines <- function(limits) {
  if (is.null(limits) || nrow(limits) == 0) return(NULL)
  ggplot2::geom_hline(ggplot2::aes(yintercept = value), limits, colour = "grey40", linewidth = 0.4, linetype = "dotted")
}

event_points <- function(events) {
  if (is.null(events) || nrow(events) == 0) return(NULL)
  list(
    ggplot2::geom_point(ggplot2::aes(t_s, 0, shape = cause), events, inherit.aes = FALSE, size = 1.6, colour = "grey15"),
    ggplot2::scale_shape_manual("cwnd reduced", values = stats::setNames(c(16, 4, 2, 8), cause_words)),
    ggplot2::guides(colour = if (nlevels(events$flow) < 2) "none", fill = if (nlevels(events$flow) < 2) "none")
  )
}

cause_words <- c(recovery = "fast recovery", timeout = "timeout", cwr = "no loss", enobufs = "refused packet (ENOBUFS)")

panel_titles <- c(
  cwnd = "cwnd (packets)", ssthresh = "ssthresh\n(packets)", rtt = "RTT (ms)", srtt = "srtt (ms)", rto = "RTO (ms)", flight = "In flight (KB)",
  "send-window" = "Send window\n(KB)", "receive-window" = "Receive window\n(KB)", throughput = "Throughput\n(Mbit/s)", queue = "Queue (packets)"
)

figure_trial_time_series <- function(results, trials, flow = NULL) {
  time_figure(results, trials, c("cwnd", "rtt", "throughput", "queue"), "One trial over time",
              "Congestion window, RTT of packet pairs, throughput of IP packets at the receiver and bottleneck queue", flow)
}

figure_queue_time <- function(results, trials) {
  time_figure(results, trials, "queue", "Bottleneck queue over time", "Packets in the bottleneck's queue")
}

figure_rtt_time <- function(results, trials, seconds = Inf, flow = NULL) {
  what <- if (is.finite(seconds)) paste("RTT of packet pairs in the first", format_plain(seconds), "seconds") else "RTT of packet pairs"
  time_figure(results, trials, "rtt", "RTT over time", what, flow, seconds)
}

figure_sender_time <- function(results, trials, show = NULL, flow = NULL) {
  shown <- intersect(names(sender_units), show %||% c("cwnd", "ssthresh", "srtt", "rto", "flight", "send-window"))
  time_figure(results, trials, shown, "The sender's TCP over time", paste("What the sender's TCP reported:", paste(shown, collapse = ", ")), flow,
              events = TRUE, more = srtt_words[intersect(shown, names(srtt_words))])
}

srtt_words <- c(srtt = "srtt is a moving mean of RTTs that include the receiver's delay of acknowledgements; the RTT of packet pairs does not")

# Moments at which cwnd was reduced, in the first panel.
reductions_of <- function(results, chosen, data, flow) {
  found <- of_flows(results$cycles[trial %in% chosen$trials$id], flow)
  if (is.null(found) || nrow(found) == 0) return(NULL)
  found[, .(panel = factor(levels(data$panel)[1], levels = levels(data$panel)), column = chosen$labels[match(trial, chosen$trials$id)], t_s = end_s,
            cause = factor(cause_words[fifelse(cause == "ssthresh", "cwr", cause)], levels = cause_words), flow = factor(flow, levels = levels(data$flow)))]
}

# The queue does not belong to a flow, so option `flow` does not remove it.
time_figure <- function(results, trials, quantities, title, what, flow = NULL, until_s = Inf, events = FALSE, more = NULL) {
  campaign <- results$campaign
  trials <- at_largest_rwnd(campaign, trials)
  chosen <- representatives(campaign, trials)
  series <- if (nrow(results$series) > 0) results$series[trial %in% chosen$trials$id & quantity %in% quantities & t_s <= until_s] else results$series
  data <- of_flows(series, c(flow, if (!is.null(flow)) ""))
  if (nrow(data) == 0) abort_nothing("the trials have no time series")
  name_panels(data, chosen)
  limits <- queue_limits(campaign, chosen, data)
  reductions <- if (events) reductions_of(results, chosen, data, flow)
  stacked <- nlevels(data$panel) > 1
  list(
    plot = if (stacked) {
      plot_time_series(data, limits, events = reductions)
    } else {
      plot_time_series(data, limits, one_panel_per_trial(), levels(data$panel), reductions)
    },
    data = data[, .(trial, flow, quantity, unit, t_s, low, mid, high)], trials = chosen$trials$id, width_in = 6.3,
    height_in = if (stacked) 1 + 1.25 * nlevels(data$panel) else 0.8 + 1.3 * nlevels(data$column),
    title = title,
    caption = sentences(
      paste0(what, " of ", count_words(nrow(chosen$trials), "trial"), " (replicate ",
             paste(unique(chosen$trials$replicate), collapse = ", "), ")"),
      flow_words(flow), if (nlevels(chosen$labels) > 1) paste0(if (stacked) "Columns: " else "Panels: ", chosen$title),
      fixed_words(campaign, trials, chosen$factors),
      "Line: median, band: minimum to maximum of each 1/600 of the trial",
      if (!is.null(limits)) "Dotted line: configured buffer", if (!is.null(reductions)) "Points: reductions of cwnd", more,
      path_words(campaign, trials)
    )
  )
}

# One colour per flow; the queue takes the first colour.
name_panels <- function(data, chosen) {
  flows <- setdiff(unique(data$flow), "")
  if (length(flows) == 0) flows <- "queue"
  data[, flow := factor(fifelse(flow == "", flows[1], flow), levels = flows)]
  data[, panel := factor(panel_titles[quantity], levels = intersect(panel_titles, panel_titles[quantity]))]
  data[, column := chosen$labels[match(trial, chosen$trials$id)]][, column := droplevels(column)]
}

# The first replicate of each treatment, at most four: more columns cannot be read.
representatives <- function(campaign, trials) {
  curves <- curves_of(campaign, trials)
  first <- trials[order(curves$labels, trials$replicate)][, label := sort(curves$labels)][, .SD[1], by = label]
  shown <- utils::head(first, 4)
  list(trials = shown, labels = droplevels(shown$label), title = curves$title, factors = curves$factors)
}

queue_limits <- function(campaign, chosen, data) {
  limits <- data.table(
    panel = factor(panel_titles[["queue"]], levels = levels(data$panel)), column = chosen$labels,
    value = vapply(chosen$trials$id, \(id) set_buffer(campaign, id), 0)
  )[!is.na(panel) & !is.na(value)]
  if (nrow(limits) > 0) limits
}

# --- PAUSE frames

#' Congestion window and PAUSE frames over time
#'
#' Each PAUSE frame is drawn as a tick below the curve of cwnd, and each packet that the host's own interface rejected as a dotted line.
#'
#' @param data A table `column` (factor, one panel each), `quantity` ("cwnd", "pause", "drop"), `t_s`, `value` (packets, of cwnd).
#' @return A ggplot.
#' @export
plot_cwnd_pause <- function(data) {
  top <- max(data[quantity == "cwnd"]$value)
  colours <- okabe_ito[c(2, 1)]
  words <- data[, .(t_s = min(t_s)), by = column]
  drops <- data[quantity == "drop"]
  ggplot2::ggplot(data[quantity == "cwnd"], ggplot2::aes(t_s, value)) +
    ggplot2::geom_segment(ggplot2::aes(x = t_s, xend = t_s, y = -0.16 * top, yend = -0.04 * top), data[quantity == "pause"],
                          colour = colours[2], linewidth = 0.25) +
    ggplot2::geom_vline(ggplot2::aes(xintercept = t_s), drops, colour = "grey30", linewidth = 0.4, linetype = "dotted") +
    ggplot2::geom_text(ggplot2::aes(x = t_s, y = top * 1.06), drops, label = " packet rejected", hjust = 0, vjust = 0, size = 2.8, colour = "grey30") +
    ggplot2::geom_step(stat = StatThin, colour = colours[1], linewidth = 0.5) +
    ggplot2::geom_text(ggplot2::aes(y = top * 0.97), words, label = "cwnd", hjust = 0, vjust = 1, size = 2.8, colour = colours[1]) +
    ggplot2::geom_text(ggplot2::aes(y = -0.1 * top), words, label = "PAUSE", hjust = 0, size = 2.8, colour = colours[2]) +
    ggplot2::facet_wrap(~column, ncol = 1, scales = "free_x") +
    ggplot2::scale_x_continuous("Time since the start of traffic (s)", n.breaks = 6, labels = format_plain) +
    ggplot2::scale_y_continuous("cwnd (packets)", limits = c(-0.18 * top, 1.14 * top), breaks = \(range) Filter(\(b) b >= 0, pretty(c(0, top), 4))) +
    theme_samovar()
}

figure_cwnd_pause <- function(results, trials) {
  campaign <- results$campaign
  seen <- trials[id %in% results$closeup[["trial"]]]
  if (nrow(seen) == 0) abort_nothing("no trial has both PAUSE frames and a congestion window")
  chosen <- representatives(campaign, seen)
  data <- results$closeup[trial %in% chosen$trials$id]
  data[, column := droplevels(chosen$labels[match(trial, chosen$trials$id)])]
  list(
    plot = plot_cwnd_pause(data), data = data[, .(trial, flow, quantity, t_s, value)], trials = chosen$trials$id, width_in = 6.3,
    height_in = 0.8 + 1.6 * nlevels(data$column), title = "Congestion window and PAUSE frames",
    caption = sentences(
      paste0("cwnd and PAUSE frames of ", count_words(nrow(chosen$trials), "trial"),
             ", around the first episode that ended with a rejected packet, or around the first episode if none did"),
      fixed_words(campaign, trials, chosen$factors), path_words(campaign, trials)
    )
  )
}
