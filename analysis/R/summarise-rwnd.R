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
  data.table(metric = names(found), unit = metric_unit(names(found)), median = unname(found), mean = unname(found),
             lo = NA_real_, hi = NA_real_, n = uniqueN(x$rwnd))
}
