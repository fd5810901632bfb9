#' CDF of jitter
#' @param data A table `curve` (factor), `jitter_ms`, `share`.
#' @param title Title of the legend.
#' @return A ggplot.
#' @export
plot_jitter_cdf <- function(data, title = "Congestion control") {
  ggplot2::ggplot(data, ggplot2::aes(jitter_ms, share, colour = curve, linetype = curve)) +
    cdf_layers(levels(data$curve), title, from_zero("Difference of consecutive RTTs (ms)"))
}

#' CDF of the differences of consecutive round-trip times, of all flows or (option `flow`) of some
#' @noRd
# Shows: jitter_median_ms.
figure_jitter_cdf <- function(results, options) {
  campaign <- results$campaign
  trials <- select_trials(results, options, "flow")
  samples <- of_flows(results$jitter[trial %in% trials$id], options$flow)
  if (nrow(samples) == 0) abort_nothing("no flow has two round-trip times")
  curves <- curves_of(campaign, trials)
  samples[, curve := curves$labels[match(trial, trials$id)]]
  data <- samples[, pooled_cdf(jitter_ms, "jitter_ms"), by = curve][order(curve)]
  data[, curve := droplevels(curve)]
  list(
    plot = plot_jitter_cdf(data, curves$title), data = data, trials = unique(samples$trial), width_in = 6.3, height_in = 3.0,
    title = options$title %||% "Distribution of jitter",
    caption = sentences(
      paste0("CDF of the difference between the RTTs of consecutive packets of a flow, ", count_words(uniqueN(samples$trial), "trial"),
             ", each flow with the same weight"),
      flow_words(options$flow), path_words(campaign, trials)
    )
  )
}
