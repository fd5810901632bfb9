#' CDF of round-trip times
#' @param data A table `curve` (factor), `rtt_ms`, `share`.
#' @param title Title of the legend.
#' @param log_axis TRUE for a logarithmic RTT axis.
#' @return A ggplot.
#' @export
plot_rtt_cdf <- function(data, title = "Congestion control", log_axis = FALSE) {
  axis <- if (log_axis) {
    ggplot2::scale_x_log10("RTT (ms, log scale)", labels = format_plain)
  } else {
    from_zero("RTT (ms)")
  }
  ggplot2::ggplot(data, ggplot2::aes(rtt_ms, share, colour = curve, linetype = curve)) +
    cdf_layers(levels(data$curve), title, axis)
}

#' CDF of round-trip times at the largest receive window, on a logarithmic axis with `axis: log`
#' @noRd
# Words: axis=log. Shows: rtt_median_ms.
figure_rtt_cdf <- function(results, options) {
  campaign <- results$campaign
  trials <- select_trials(results, options, c("axis", "flow"))
  if (is.null(options$rwnd) && is.null(options$trial)) trials <- at_largest_rwnd(campaign, trials)
  curves <- curves_of(campaign, trials)
  samples <- of_flows(results$rtt[trial %in% trials$id], options$flow)
  if (nrow(samples) == 0) abort_nothing("no trial has RTT samples")
  samples[, curve := curves$labels[match(trial, trials$id)]]
  data <- samples[, pooled_cdf(rtt_ms, "rtt_ms"), by = curve][order(curve)]
  data[, curve := droplevels(curve)]
  list(
    plot = plot_rtt_cdf(data, curves$title, identical(options$axis, "log")), data = data, trials = unique(samples$trial),
    width_in = 6.3, height_in = 3.0, title = options$title %||% "Distribution of RTT",
    caption = sentences(
      paste0("CDF of RTT by packet pairs, ", count_words(uniqueN(samples$trial), "trial"), ", each with the same weight"),
      flow_words(options$flow), fixed_words(campaign, trials, curves$factors), path_words(campaign, trials)
    )
  )
}

# Trials hold the same number of quantiles each, so pooling them gives each trial the same weight.
pooled_cdf <- function(values, name) {
  share <- seq(0, 1, by = 0.002)
  stats::setNames(list(stats::quantile(values, share, names = FALSE, type = 1), share), c(name, "share"))
}

at_largest_rwnd <- function(campaign, trials) {
  if (!"rwnd" %in% campaign$factors) return(trials)
  bytes <- parse_bytes(trials$rwnd)
  if (all(is.na(bytes))) return(trials)
  trials[bytes %in% max(bytes, na.rm = TRUE)]
}
