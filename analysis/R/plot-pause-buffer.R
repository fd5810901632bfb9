#' CDF of the buffer of a device that sends PAUSE frames, by method 1 (packets in flight) or 2 (one-way delay)
#' @noRd
# Words: method=1|2. Shows: buffer_pause_packets.
figure_pause_buffer_cdf <- function(results, options) {
  method <- options$method %||% "1"
  if (!method %in% names(pause_methods)) abort_choice("Unknown method", method, names(pause_methods))
  trials <- select_trials(results, options, "method")
  data <- pause_estimates(results, trials, pause_methods[[method]])
  truth <- set_buffer(results$campaign, trials$id)
  list(
    plot = plot_buffer_cdf(data[, .(curve, packets)], truth, attr(data, "title")), data = data, trials = unique(data$trial),
    width_in = 6.3, height_in = 3.0, title = options$title %||% paste("Buffer size estimated by method", method),
    caption = sentences(
      paste0("CDF of the buffer by method ", method, ", one estimate per trial: ", count_words(nrow(data), "trial")),
      pause_method_words[[method]], path_words(results$campaign, trials)
    )
  )
}

pause_methods <- c("1" = "buffer_pause_packets", "2" = "buffer_delay_packets")

pause_method_words <- c(
  "1" = "Packets in flight when the packet left that brought the first PAUSE frame, less those on the idle path.",
  "2" = "One-way delay of that packet, less the idle one, times the rate of the link, divided by the MTU."
)

# One row per estimate. How fast and how much was sent is no property of the device: such factors share a curve.
pause_estimates <- function(results, trials, metrics) {
  campaign <- results$campaign
  found <- results$metrics[metric %in% metrics][trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(found) == 0) abort_nothing("no trial saw a PAUSE frame in time for an estimate")
  curves <- curves_of(campaign, trials, but = grep("^traffic[.]", campaign$factors, value = TRUE))
  found[, curve := droplevels(curves$labels[match(trial, trials$id)])]
  mtu_bytes <- vapply(campaign$manifests[found$trial], \(m) as.double(m$resolved$mtu_bytes %||% ethernet_mtu_bytes), 0)
  data <- found[, .(curve, packets = value, trial, metric, mtu_bytes)][order(curve, metric, packets)]
  setattr(data, "title", curves$title)
  data
}

#' Buffer by both methods, in packets and MiB, beside numbers `published` elsewhere
#' @noRd
# Shows: buffer_pause_packets.
table_pause_buffer <- function(results, options) {
  trials <- select_trials(results, options, "published")
  data <- pause_estimates(results, trials, pause_methods)
  medians <- data[, c(median_interval(packets), list(mtu_bytes = mtu_bytes[1])), by = .(curve, metric)]
  cell <- \(l, m) {
    row <- medians[curve == l & metric == m]
    if (nrow(row) == 0) return("-")
    paste0(interval_text(row, 5), " (", format(round(row$median * row$mtu_bytes / 2^20, 1), nsmall = 1), ")")
  }
  told <- options$published %||% list()
  rows <- lapply(levels(data$curve), \(l) {
    c(l, vapply(pause_methods, \(m) cell(l, m), ""), uniqueN(data[curve == l]$trial), vapply(told[[l]], as.character, ""))
  })
  sources <- if (length(told) > 0) paste("Method", seq_along(told[[1]]), "as published")
  list(
    title = options$title %||% "Estimated buffer size",
    columns = headed(c(attr(data, "title"), "Method 1", "Method 2", "Trials", sources), c("left", rep("right", 3 + length(sources)))),
    rows = rows, data = medians, trials = unique(data$trial),
    caption = sentences(
      "Median buffer in packets, with its interval in brackets, and in MiB at the MTU", pause_method_words,
      if (length(told) > 0) "Published numbers are not measured here", bracket_words(medians$n), path_words(results$campaign, trials)
    )
  )
}
