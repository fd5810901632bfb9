#' RTT against time, of the whole trial or (option `seconds`) of its beginning
#' @noRd
# Shows: rtt_median_ms.
figure_rtt_time <- function(results, options) {
  shown <- options$seconds %||% "all"
  shown_s <- if (identical(shown, "all")) Inf else suppressWarnings(as.double(sub("s$", "", shown)))
  if (is.na(shown_s)) cli::cli_abort("Option seconds {.val {shown}}: no time; {.val 6s} would have been accepted.", class = "samovar_error_figure", call = NULL)
  seen <- results
  if (nrow(results$series) > 0) seen$series <- results$series[t_s <= shown_s]
  which <- if (is.finite(shown_s)) paste("Round-trip times of the first", format_plain(shown_s), "seconds") else "Round-trip times"
  figure <- time_figure(seen, options[setdiff(names(options), "seconds")], "rtt", "RTT over time", paste(which, "by packet pairs,"), options$flow)
  if (is.null(figure)) abort_nothing("the trials have no RTT")
  figure
}
