#' Congestion window and PAUSE frames over time
#'
#' Each PAUSE frame is a stroke below the window, each packet that the host's own interface refused a dotted line.
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
    ggplot2::geom_text(ggplot2::aes(x = t_s, y = top * 1.06), drops, label = " packet refused", hjust = 0, vjust = 0, size = 2.8, colour = "grey30") +
    ggplot2::geom_step(stat = StatThin, colour = colours[1], linewidth = 0.5) +
    ggplot2::geom_text(ggplot2::aes(y = top * 0.97), words, label = "cwnd", hjust = 0, vjust = 1, size = 2.8, colour = colours[1]) +
    ggplot2::geom_text(ggplot2::aes(y = -0.1 * top), words, label = "PAUSE", hjust = 0, size = 2.8, colour = colours[2]) +
    ggplot2::facet_wrap(~column, ncol = 1, scales = "free_x") +
    ggplot2::scale_x_continuous("Time since the start of traffic (s)", n.breaks = 6, labels = format_plain) +
    ggplot2::scale_y_continuous("cwnd (packets)", limits = c(-0.18 * top, 1.14 * top), breaks = \(range) Filter(\(b) b >= 0, pretty(c(0, top), 4))) +
    theme_samovar()
}

#' Congestion window and PAUSE frames around one time that the device was full
#' @noRd
# Shows: pause_episodes, cwnd_median_packets.
figure_cwnd_pause <- function(results, options) {
  campaign <- results$campaign
  trials <- select_trials(results, options)
  seen <- trials[id %in% results$closeup[["trial"]]]
  if (nrow(seen) == 0) abort_nothing("no trial has both PAUSE frames and a congestion window")
  chosen <- representatives(campaign, seen)
  data <- results$closeup[trial %in% chosen$trials$id]
  data[, column := droplevels(chosen$labels[match(trial, chosen$trials$id)])]
  list(
    plot = plot_cwnd_pause(data), data = data[, .(trial, flow, quantity, t_s, value)], trials = chosen$trials$id, width_in = 6.3,
    height_in = 0.8 + 1.6 * nlevels(data$column), title = options$title %||% "Congestion window and PAUSE frames",
    caption = sentences(
      paste0("cwnd and PAUSE frames around the first episode of PAUSE frames that ended with a refused packet, else the first of all, of ",
             count_words(nrow(chosen$trials), "trial")),
      fixed_words(campaign, trials, chosen$factors), path_words(campaign, trials)
    )
  )
}

#' CDF of the time from the first PAUSE frame to the first packet that the host refused
#' @param data A table `curve` (factor), `pause_to_drop_s`.
#' @param title Title of the legend.
#' @return A ggplot.
#' @export
plot_pause_to_drop <- function(data, title = "Transmit descriptors") {
  longest_ms <- max(data$pause_to_drop_s) * 1e3
  steps <- data[, .(time_ms = c(0, sort(pause_to_drop_s) * 1e3, longest_ms), share = c(0, seq_len(.N) / .N, 1)), by = curve]
  ggplot2::ggplot(steps, ggplot2::aes(time_ms, share, colour = curve, linetype = curve)) +
    cdf_layers(levels(data$curve), title, from_zero("Time from first PAUSE frame to first refused packet (ms)"))
}

#' CDF of the time that the host's own queue held once the device was full
#' @noRd
# Shows: pause_to_drop_median_s.
figure_pause_to_drop <- function(results, options) {
  trials <- select_trials(results, options)
  if (nrow(results$pauses) == 0) abort_nothing("no PAUSE frame was seen")
  episodes <- results$pauses[trial %in% trials$id & !is.na(pause_to_drop_s)]
  if (nrow(episodes) == 0) abort_nothing("no packet was refused by a sender's own interface")
  curves <- curves_of(results$campaign, trials)
  episodes[, curve := curves$labels[match(trial, trials$id)]][, curve := droplevels(curve)]
  data <- episodes[order(curve, pause_to_drop_s), .(curve, pause_to_drop_s, trial, flow, episode, drops)]
  list(
    plot = plot_pause_to_drop(data, curves$title), data = data, trials = unique(data$trial), width_in = 6.3, height_in = 3.0,
    title = options$title %||% "Time from PAUSE to a refused packet",
    caption = sentences(
      paste0("CDF over ", count_words(nrow(data), "episode"), " of PAUSE frames, of ", count_words(uniqueN(data$trial), "trial"),
             ": time from the first frame to the first packet that the sender's own interface refused"),
      path_words(results$campaign, trials)
    )
  )
}
