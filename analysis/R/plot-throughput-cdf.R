#' CDF of throughput
#' @param data A table `curve` (factor), `throughput_mbps`, `share`.
#' @param title Title of the legend.
#' @return A ggplot.
#' @export
plot_throughput_cdf <- function(data, title = "Congestion control") {
  ggplot2::ggplot(data, ggplot2::aes(throughput_mbps, share, colour = curve, linetype = curve)) +
    cdf_layers(levels(data$curve), title, from_zero("Throughput of a flow (Mbit/s)"))
}

#' CDF of the throughput of each flow over windows of five seconds, or of option `window`
#' @noRd
# Shows: throughput_bps.
figure_throughput_cdf <- function(results, options) {
  campaign <- results$campaign
  width_s <- window_option_s(options$window %||% "5s")
  trials <- select_trials(results, options, c("flow", "window"))
  curves <- curves_of(campaign, trials)
  rates <- of_flows(results$series[quantity == "throughput" & trial %in% trials$id], options$flow)
  windows <- wider_windows(rates, width_s)
  if (nrow(windows) == 0) abort_nothing(paste("no trial lasts", format_plain(width_s), "s"))
  windows[, curve := curves$labels[match(trial, trials$id)]]
  data <- windows[, pooled_cdf(mbps, "throughput_mbps"), by = curve][order(curve)]
  data[, curve := droplevels(curve)]
  list(
    plot = plot_throughput_cdf(data, curves$title), data = data, trials = unique(windows$trial), width_in = 6.3, height_in = 3.0,
    title = options$title %||% "Distribution of throughput",
    caption = sentences(
      paste0("CDF of the throughput of IP packets of each flow at its receiver over windows of ", format_plain(width_s), " s, ",
             count_words(uniqueN(windows$trial), "trial"), ", ", count_words(nrow(windows), "window")),
      flow_words(options$flow), fixed_words(campaign, trials, curves$factors), path_words(campaign, trials)
    )
  )
}

window_option_s <- function(text) {
  width_s <- suppressWarnings(as.double(sub("s$", "", text)))
  if (isTRUE(width_s > 0)) return(width_s)
  cli::cli_abort("Option window {.val {text}}: no time; {.val 5s} would have been accepted.", class = "samovar_error_figure", call = NULL)
}

# Means of the narrower windows of a trial's series, in whole windows of `width_s`.
wider_windows <- function(rates, width_s) {
  windows <- rates[, .(mbps = mean(mid), points = .N), by = .(trial, flow, window = floor(t_s / width_s))]
  windows[, whole := points >= 0.99 * max(points), by = .(trial, flow)]
  narrow_s <- rates[, .(span_s = if (.N > 1) min(diff(sort(t_s))) else Inf), by = .(trial, flow)]
  fits <- narrow_s[windows, on = c("trial", "flow")]
  fits[whole == TRUE & points * span_s >= 0.99 * width_s, .(trial, flow, window, mbps)]
}
