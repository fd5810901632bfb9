#' Median of replicates with its 95 % interval
#'
#' The interval is distribution-free: order statistics r and n + 1 - r, r the largest rank with
#' P(r <= Binomial(n, 1/2) <= n - r) >= 0.95. Such an interval exists from six values on; for three to five the whole range is
#' given, which holds the median with 75, 87.5 and 93.75 %. Below three there is none.
#'
#' @param values Numbers, one per trial; NA is left out.
#' @return A list: `median`, `mean`, `lo`, `hi` (NA below three values), `n`, `confidence` (share that the interval reaches).
#' @source Conover, Practical Nonparametric Statistics, section 3.2.
#' @export
median_interval <- function(values) {
  x <- sort(as.double(values))
  n <- length(x)
  middle <- if (n == 0) NA_real_ else stats::median(x)
  result <- list(median = middle, mean = mean(x), lo = NA_real_, hi = NA_real_, n = n, confidence = NA_real_)
  if (n < 3) return(result)
  rank <- interval_rank(n)
  result$lo <- x[rank]
  result$hi <- x[n + 1L - rank]
  result$confidence <- 1 - 2 * stats::pbinom(rank - 1L, n, 0.5)
  result
}

interval_rank <- function(n) max(1L, as.integer(stats::qbinom(0.025, n, 0.5)))

#' Summary of a campaign's metrics: one row per part, treatment and metric
#'
#' Flows of a trial are taken together first (their median), so that a replicate counts once.
#'
#' @param metrics Table of trial metrics: `trial`, `part`, factor columns, `replicate`, `flow`, `metric`, `unit`, `value`.
#' @param factors Names of the factor columns.
#' @return A data.table: `part`, factors, `metric`, `unit`, `median`, `mean`, `lo`, `hi`, `n`.
#' @export
summarise_metrics <- function(metrics, factors) {
  per_trial <- metrics[, .(value = stats::median(value)), by = c("part", factors, "trial", "metric", "unit")]
  x <- per_trial[, median_interval(value), by = c("part", factors, "metric", "unit")]
  x[, confidence := NULL][]
}

#' Is RTT a straight line of the receive window while the buffer does not fill?
#'
#' While cwnd exceeds the receive window, `RTT = window / rate`: every byte beyond the idle path's bandwidth-delay product waits in
#' the queue. Per part and congestion control, over the windows between that product and product + buffer, a
#' line is fitted to the trials' median RTTs: its R^2, and its slope against theory, 8 / rate. Window and rate are
#' both of payload bytes (what the receiver advertises counts payload), the rate being the trials' median goodput.
#'
#' @param campaign A campaign of [read_campaign()].
#' @param metrics Table of trial metrics.
#' @return Rows as of [summarise_metrics()], metrics `rtt_rwnd_linearity_r2` and `rtt_rwnd_slope_ratio`, the level of rwnd empty, `n`
#'   the number of windows; none where fewer than three windows leave the buffer unfilled.
#' @export
rwnd_linearity <- function(campaign, metrics) {
  if (!all(c("rwnd", "cc") %in% campaign$factors)) return(NULL)
  wide <- dcast(metrics[metric %in% c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes")],
                trial + flow ~ metric, value.var = "value")
  if (!all(c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes") %in% names(wide))) return(NULL)
  # Flows that share the queue share its delay: the line holds for a flow that is alone.
  alone <- wide[, if (.N == 1L) .SD, by = trial][campaign$trials, on = c(trial = "id"), nomatch = NULL]
  limits <- rbindlist(lapply(campaign$manifests[alone$trial], window_limits))
  unfilled <- stats::na.omit(cbind(alone, limits), cols = c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes", "most_bytes"))
  unfilled <- unfilled[rwnd_max_bytes <= most_bytes & rwnd_max_bytes >= least_bytes]
  constant <- setdiff(campaign$factors, "rwnd")
  unfilled[, window_line(.SD), by = c("part", constant)][, rwnd := ""][]
}

# Payload bytes in flight that just begin to queue, and that just fill the queue.
window_limits <- function(manifest) {
  path <- path_down(manifest)
  mtu <- manifest$resolved$mtu_bytes
  payload <- (mtu - tcp_header_bytes) / mtu
  idle_bytes <- (path$rate_bps %||% NA) / 8 * (path$rtt_s %||% 0)
  buffer_bytes <- path$buffer_bytes %||% ((path$buffer_packets %||% NA) * mtu)
  list(least_bytes = as.double(idle_bytes * payload), most_bytes = as.double((idle_bytes + buffer_bytes) * payload))
}

# IPv4 and TCP headers with the time stamp option that both systems send (RFC 7323).
tcp_header_bytes <- 52

window_line <- function(x) {
  if (uniqueN(x$rwnd) < 3) return(NULL)
  line <- stats::lm(rtt_median_ms ~ rwnd_max_bytes, data = x)
  theory_ms_per_byte <- 8e3 / stats::median(x$goodput_bps)
  explained <- stats::cor(x$rtt_median_ms, x$rwnd_max_bytes)^2
  found <- c(rtt_rwnd_linearity_r2 = explained, rtt_rwnd_slope_ratio = unname(stats::coef(line)[2] / theory_ms_per_byte))
  data.table(metric = names(found), unit = unname(metric_units[names(found)]), median = unname(found), mean = unname(found),
             lo = NA_real_, hi = NA_real_, n = uniqueN(x$rwnd))
}
