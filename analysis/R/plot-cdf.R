# Draw figures of cumulative distributions.

# Layers that all CDFs share: one step line per curve, distinguished by colour and line type, over an axis of values.
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

cdf_axis <- function(title = "Cumulative share") {
  ggplot2::scale_y_continuous(title, limits = c(0, 1), breaks = seq(0, 1, 0.25), expand = c(0.01, 0.01))
}

# Each trial has the same number of quantiles, so pooling them gives each trial the same weight.
pooled_cdf <- function(values, name) {
  share <- seq(0, 1, by = 0.002)
  stats::setNames(list(stats::quantile(values, share, names = FALSE, type = 1), share), c(name, "share"))
}

# A cumulative distribution of `samples` (`trial`, `value`), whose column of values is called `column` in the data.
cdf_figure <- function(samples, column, curves, trials, x_title, title, caption, log_axis = FALSE) {
  samples[, curve := curves$labels[match(trial, trials$id)]]
  data <- samples[, pooled_cdf(value, "value"), by = curve][order(curve)]
  data[, curve := droplevels(curve)]
  list(
    plot = plot_distribution(data, "cdf", x_title, curves$title, log_axis = log_axis), data = setnames(copy(data), "value", column),
    trials = unique(samples$trial), width_in = 6.3, height_in = 3.0, title = title,
    layout = list(kind = "step", x = column, y = "share", curve = "curve", facets = I(character())), caption = caption
  )
}

# --- RTT, jitter, throughput

figure_rtt_cdf <- function(results, trials, flow = NULL, axis = NULL) {
  campaign <- results$campaign
  trials <- at_largest_rwnd(campaign, trials)
  curves <- curves_of(campaign, trials)
  samples <- of_flows(results$rtt[trial %in% trials$id], flow)
  if (nrow(samples) == 0) abort_nothing("no trial has RTT samples")
  cdf_figure(samples[, .(trial, value = rtt_ms)], "rtt_ms", curves, trials, "RTT (ms)", "Distribution of RTT", log_axis = identical(axis, "log"), sentences(
    paste0("CDF of the RTT of packet pairs in ", count_words(uniqueN(samples$trial), "trial"), ", all with the same weight"),
    flow_words(flow), fixed_words(campaign, trials, curves$factors), path_words(campaign, trials)
  ))
}

figure_jitter_cdf <- function(results, trials, flow = NULL) {
  campaign <- results$campaign
  samples <- of_flows(results$jitter[trial %in% trials$id], flow)
  if (nrow(samples) == 0) abort_nothing("no flow has two RTT samples")
  curves <- curves_of(campaign, trials)
  cdf_figure(samples[, .(trial, value = jitter_ms)], "jitter_ms", curves, trials, "Difference between consecutive RTTs (ms)", "Distribution of jitter", sentences(
    paste0("CDF of the difference between the RTTs of consecutive packets in ", count_words(uniqueN(samples$trial), "trial"),
           ", each flow with the same weight"),
    flow_words(flow), path_words(campaign, trials)
  ))
}

figure_sender_cdf <- function(results, trials, quantity = "srtt", flow = NULL) {
  campaign <- results$campaign
  trials <- at_largest_rwnd(campaign, trials)
  shown <- which(results$sender[["quantity"]] == quantity & results$sender[["trial"]] %in% trials$id)
  samples <- of_flows(results$sender[shown], flow)
  if (nrow(samples) == 0) abort_nothing(paste("no sender's log has", quantity))
  curves <- curves_of(campaign, trials)
  name <- one_line(series_title(quantity))
  plain <- sub(" [(].*", "", name)
  made <- cdf_figure(samples[, .(trial, value)], "value", curves, trials, name, paste("Distribution of", plain), sentences(
    paste0("CDF of ", plain, " as the sender's TCP reported it while data was in flight, ", count_words(uniqueN(samples$trial), "trial"),
           ", all with the same weight, each sample of a trial once"),
    srtt_words[intersect(quantity, names(srtt_words))], flow_words(flow), fixed_words(campaign, trials, curves$factors), path_words(campaign, trials)
  ))
  made$data <- cbind(made$data[, .(curve)], quantity = quantity, unit = sender_units[[quantity]], made$data[, .(value, share)])
  made
}

figure_throughput_cdf <- function(results, trials, window = 5, flow = NULL) {
  campaign <- results$campaign
  curves <- curves_of(campaign, trials)
  rates <- of_flows(results$series[quantity == "throughput" & trial %in% trials$id], flow)
  windows <- wider_windows(rates, window)
  if (nrow(windows) == 0) abort_nothing(paste("no trial lasts", format_plain(window), "s"))
  cdf_figure(windows[, .(trial, value = mbps)], "throughput_mbps", curves, trials, "Throughput of a flow (Mbit/s)", "Distribution of throughput", sentences(
    paste0("CDF of the throughput of each flow (IP packets at its receiver) in windows of ", format_plain(window), " s, ",
           count_words(uniqueN(windows$trial), "trial"), ", ", count_words(nrow(windows), "window")),
    flow_words(flow), fixed_words(campaign, trials, curves$factors), path_words(campaign, trials)
  ))
}

# The mean rate in each complete window of `width_s`, from the narrower windows of a trial's time series.
wider_windows <- function(rates, width_s) {
  windows <- rates[, .(mbps = mean(mid), points = .N), by = .(trial, flow, window = floor(t_s / width_s))]
  windows[, whole := points >= 0.99 * max(points), by = .(trial, flow)]
  narrow_s <- rates[, .(span_s = if (.N > 1) min(diff(sort(t_s))) else Inf), by = .(trial, flow)]
  fits <- narrow_s[windows, on = c("trial", "flow")]
  fits[whole == TRUE & points * span_s >= 0.99 * width_s, .(trial, flow, window, mbps)]
}

# --- Buffer size

#' CDF of estimated buffer sizes
#' @param data A table `curve` (factor), `packets`, one row per estimate.
#' @param truth_packets The configured buffer, which the figure marks; NA for no mark.
#' @param title Title of the legend.
#' @return A ggplot.
#' @examples
#' plot_buffer_cdf(data.table::data.table(curve = factor("1500"), packets = c(19.6, 19.9, 20.1, 20.4)), truth_packets = 20)
#' @export
plot_buffer_cdf <- function(data, truth_packets = NA, title = "MTU (bytes)") {
  limits <- buffer_limits(data$packets, truth_packets)
  steps <- data[, cdf_steps(packets, limits), by = curve]
  ggplot2::ggplot(steps, ggplot2::aes(packets, share, colour = curve, linetype = curve)) +
    mark_buffer(truth_packets) +
    cdf_layers(levels(data$curve), title, ggplot2::scale_x_continuous("Estimated buffer (packets)", limits = limits, expand = c(0.01, 0)))
}

mark_buffer <- function(packets) {
  if (is.na(packets)) return(NULL)
  list(
    ggplot2::geom_vline(xintercept = packets, colour = "grey40", linewidth = 0.4, linetype = "dotted"),
    ggplot2::annotate("text", x = packets, y = 0.02, label = paste0(" configured: ", format_plain(packets)), hjust = 0, vjust = 0,
                      size = 2.8, colour = "grey30")
  )
}

# At least 4 % of the buffer to each side: a spread of half a packet must not look like a wide one.
buffer_limits <- function(packets, truth_packets) {
  middle <- if (is.na(truth_packets)) stats::median(packets) else truth_packets
  range(packets, middle * c(0.96, 1.04))
}

# From 0 at the left edge to 1 at the right edge, so that no curve looks cut off.
cdf_steps <- function(values, limits) {
  list(packets = c(limits[1], sort(values), limits[2]), share = c(0, seq_along(values) / length(values), 1))
}

figure_buffer_cdf <- function(results, trials, method = "1") {
  column <- paste0("method", sub("-", "_", method), "_packets")
  if (nrow(results$cycles) == 0) abort_nothing("no trial has a cwnd cycle")
  cycles <- results$cycles[trial %in% trials$id & counts == TRUE]
  if (is.null(cycles[[column]]) || nrow(cycles) == 0) abort_nothing("no cwnd cycle ended with a loss")
  curves <- curves_of(results$campaign, trials)
  cycles[, curve := curves$labels[match(trial, trials$id)]][, packets := get(column)]
  cycles <- cycles[!is.na(packets)]
  data <- cycles[order(curve, packets),
                 .(curve = droplevels(curve), packets, trial, cycle, rtt_max_ms, rate_bps, local_rate_bps)]
  truth <- set_buffer(results$campaign, trials$id)
  list(
    plot = plot_buffer_cdf(data, truth, curves$title), data = data, trials = unique(cycles$trial),
    width_in = 6.3, height_in = 3.0, title = paste("Buffer size estimated by", method_names[[method]]),
    caption = sentences(
      paste0("CDF of buffer size by ", method_names[[method]], ", one estimate per cwnd cycle: ", count_words(nrow(cycles), "cycle"), " of ",
             count_words(uniqueN(cycles$trial), "trial")),
      method_words[[method]], path_words(results$campaign, trials)
    )
  )
}

method_names <- c("1" = "method 1", "1-local" = "method 1, local rate", "2" = "method 2", "2-raw" = "method 2, as published")

method_words <- c(
  "1" = "Queueing delay before cwnd is reduced, times the mean IP throughput of the cycle, divided by the MTU.",
  "1-local" = "Bytes that left the queue during the queueing delay before cwnd is reduced, divided by the MTU.",
  "2" = "Congestion window one round trip before its reduction, less the packets on the idle path.",
  "2-raw" = "Congestion window just before its reduction."
)

figure_pause_buffer_cdf <- function(results, trials, method = "1") {
  data <- pause_estimates(results, trials, pause_methods[[method]])
  truth <- set_buffer(results$campaign, trials$id)
  list(
    plot = plot_buffer_cdf(data[, .(curve, packets)], truth, attr(data, "title")), data = data, trials = unique(data$trial),
    width_in = 6.3, height_in = 3.0, title = paste("Buffer size estimated by method", method),
    caption = sentences(
      paste0("CDF of buffer size by method ", method, ", one estimate per trial: ", count_words(nrow(data), "trial")),
      pause_method_words[[method]], path_words(results$campaign, trials)
    )
  )
}

pause_methods <- c("1" = "buffer_pause_packets", "2" = "buffer_delay_packets")

pause_method_words <- c(
  "1" = "Packets in flight when the packet that triggered the first PAUSE frame was sent, less those on the idle path.",
  "2" = "One-way delay of that packet, less the idle one-way delay, times the link rate, divided by the MTU."
)

# One row per estimate. The sending rate and size are not properties of the device: trials that differ only in such factors share a curve.
pause_estimates <- function(results, trials, metrics) {
  campaign <- results$campaign
  found <- results$metrics[metric %in% metrics][trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(found) == 0) abort_nothing("no trial has a PAUSE frame early enough for an estimate")
  curves <- curves_of(campaign, trials, but = grep("^traffic[.]", campaign$factors, value = TRUE))
  found[, curve := droplevels(curves$labels[match(trial, trials$id)])]
  mtu_bytes <- vapply(campaign$manifests[found$trial], \(m) as.double(m$resolved$mtu_bytes %||% ethernet_mtu_bytes), 0)
  data <- found[, .(curve, packets = value, trial, metric, mtu_bytes)][order(curve, metric, packets)]
  setattr(data, "title", curves$title)
  data
}

# --- PAUSE frames

#' CDF of the time from the first PAUSE frame to the first packet that the host's ring rejected
#' @param data A table `curve` (factor), `pause_to_drop_s`.
#' @param title Title of the legend.
#' @return A ggplot.
#' @examples
#' plot_pause_to_drop(data.table::data.table(curve = factor("512"), pause_to_drop_s = c(0.0101, 0.0112, 0.0117)))
#' @export
plot_pause_to_drop <- function(data, title = "Transmit descriptors") {
  longest_ms <- max(data$pause_to_drop_s) * 1e3
  steps <- data[, .(time_ms = c(0, sort(pause_to_drop_s) * 1e3, longest_ms), share = c(0, seq_len(.N) / .N, 1)), by = curve]
  ggplot2::ggplot(steps, ggplot2::aes(time_ms, share, colour = curve, linetype = curve)) +
    cdf_layers(levels(data$curve), title, from_zero("Time from first PAUSE frame to first rejected packet (ms)"))
}

figure_pause_to_drop <- function(results, trials) {
  if (nrow(results$pauses) == 0) abort_nothing("no trial has a PAUSE frame")
  episodes <- results$pauses[trial %in% trials$id & !is.na(pause_to_drop_s)]
  if (nrow(episodes) == 0) abort_nothing("no sender's own interface rejected a packet")
  curves <- curves_of(results$campaign, trials)
  episodes[, curve := curves$labels[match(trial, trials$id)]][, curve := droplevels(curve)]
  data <- episodes[order(curve, pause_to_drop_s), .(curve, pause_to_drop_s, trial, flow, episode, drops)]
  list(
    plot = plot_pause_to_drop(data, curves$title), data = data, trials = unique(data$trial), width_in = 6.3, height_in = 3.0,
    title = "Time from PAUSE to a rejected packet",
    caption = sentences(
      paste0("CDF over ", count_words(nrow(data), "episode"), " of PAUSE frames in ", count_words(uniqueN(data$trial), "trial"),
             ": time from the first frame to the first packet that the sender's own interface rejected"),
      path_words(results$campaign, trials)
    )
  )
}
