#' Throughput or RTT against receive window
#' @param data A table `rwnd_bytes`, `curve` (factor), `median`, `lo`, `hi`.
#' @param y_title Title of the y axis.
#' @param title Title of the legend.
#' @param theory A table `rwnd_bytes`, `value`: what the path predicts, or NULL.
#' @param y_from Where the y axis starts.
#' @return A ggplot.
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

# Labels of windows close together take two rows, so that none is left out.
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

#' Median throughput against the receive window
#' @noRd
# Shows: throughput_bps.
figure_throughput_by_rwnd <- function(results, options) {
  by_rwnd(results, options, "throughput_bps", 1e-6, "Throughput (Mbit/s)", "Median throughput against receive window",
          "Throughput of IP packets at the receiver")
}

#' Median RTT against the receive window, with what the path predicts
#' @noRd
# Shows: rtt_median_ms.
figure_rtt_by_rwnd <- function(results, options) {
  by_rwnd(results, options, "rtt_median_ms", 1, "Median RTT (ms)", "Median RTT against receive window",
          "RTT by packet pairs", theory = TRUE)
}

#' Median congestion window against the receive window, in the payload that it lets out
#' @noRd
# Shows: cwnd_median_packets.
figure_cwnd_by_rwnd <- function(results, options) {
  mtu_bytes <- unique(vapply(results$campaign$manifests, \(m) as.double(m$resolved$mtu_bytes %||% ethernet_mtu_bytes), 0))
  if (length(mtu_bytes) != 1) abort_nothing("the trials differ in MTU, so that packets of cwnd are not one size")
  by_rwnd(results, options, "cwnd_median_packets", (mtu_bytes - tcp_header_bytes) / 1e3, "Median cwnd (KB)", "Median cwnd against receive window",
          "Congestion window")
}

by_rwnd <- function(results, options, metric_name, scale, y_title, title, what, theory = FALSE) {
  campaign <- results$campaign
  trials <- select_trials(results, options)
  if (!"rwnd" %in% campaign$factors) abort_nothing("the experiment has no factor rwnd")
  curves <- curves_of(campaign, trials, but = "rwnd")
  values <- results$metrics[metric == metric_name][trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(values) == 0) abort_nothing(paste("no trial has", metric_name))
  values[, curve := curves$labels[match(trial, trials$id)]][, rwnd_bytes := parse_bytes(rwnd)]
  per_trial <- values[!is.na(rwnd_bytes), .(value = scale * stats::median(value)), by = .(curve, rwnd, rwnd_bytes, trial)]
  data <- per_trial[, median_interval(value), by = .(curve, rwnd, rwnd_bytes)][order(curve, rwnd_bytes)]
  line <- if (theory) rwnd_theory(campaign, trials, range(data$rwnd_bytes))
  y_from <- if (theory) 0 else y_start(data)
  list(
    plot = plot_by_rwnd(data, y_title, curves$title, line, y_from), data = data, trials = unique(per_trial$trial),
    width_in = 6.3, height_in = 3.2, title = options$title %||% title,
    caption = sentences(
      paste0(what, ", ", replicate_words(data$n), " (", count_words(uniqueN(per_trial$trial), "trial"), ")"),
      interval_words(data$n),
      if (!is.null(line)) "Grey: a window that fills the path and its queue, RTT = window / rate, up to a full buffer",
      if (y_from > 0) "The y axis does not start at zero",
      path_words(campaign, trials)
    )
  )
}

# Curves that all lie near the top are shown apart, over a fifth of the axis at least so that noise does not look like an effect.
y_start <- function(data) {
  top <- max(data$median, data$hi, na.rm = TRUE)
  bottom <- min(data$median, data$lo, na.rm = TRUE)
  if (bottom < 0.6 * top) 0 else pretty(min(bottom, 0.8 * top), 2)[1]
}

# RTT of a flow that keeps its whole window in flight; none when the trials' paths differ.
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
