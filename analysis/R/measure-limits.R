#' What limits a TCP flow at each moment
#'
#' A sender may have no more in flight than the smaller of two windows,
#'
#' \deqn{swnd = \min(cwnd, rwnd)}
#'
#' Where it has a full segment less than that in flight, the application gave it nothing more to send: `application`. Where it uses swnd,
#' and swnd is more than the idle path holds,
#'
#' \deqn{swnd \ge rate \cdot RTT_{min} / 8}
#'
#' the path sends at its rate whatever the window, the rest waits in a queue: `link`. Else the window limits: `rwnd` where it is the
#' smaller or they are the same, `cwnd` otherwise.
#'
#' @param samples Samples of one sender in time order: `t_s`, `cwnd_bytes`, `rwnd_bytes`, `in_flight_bytes`, `segment_bytes`; see [sender_windows()].
#' @param rate_bps Rate of the bottleneck for TCP payload, bit/s; NA when it is not known: then no moment is `link`.
#' @param rtt_min_ms RTT of the idle path.
#' @return A data.table `t_s`, `until_s` (of the next sample), `swnd_bytes`, `in_flight_bytes`, `limit` (factor "application", "rwnd", "cwnd", "link"; NA
#'   where a window is not known or nothing is in flight yet).
#' @source RFC 9293, section 3.8; RFC 7661, section 4; CAIA-TR-140630A, section IV.
#' @export
flow_limits <- function(samples, rate_bps = NA, rtt_min_ms = NA) {
  x <- as.data.table(samples)[, .(t_s, cwnd_bytes, rwnd_bytes, in_flight_bytes, segment_bytes)]
  x[, until_s := shift(t_s, type = "lead", fill = t_s[.N])]
  x[, swnd_bytes := pmin(cwnd_bytes, rwnd_bytes)]
  idle_bytes <- rate_bps / 8 * rtt_min_ms / 1e3
  full <- !is.na(idle_bytes) & x$swnd_bytes >= idle_bytes
  named <- fcase(
    is.na(x$swnd_bytes) | is.na(x$in_flight_bytes), NA_character_,
    x$in_flight_bytes + x$segment_bytes <= x$swnd_bytes, "application",
    full, "link",
    x$rwnd_bytes <= x$cwnd_bytes, "rwnd",
    default = "cwnd"
  )
  x[, limit := factor(named, levels = limit_names)]
  x[, .(t_s, until_s, swnd_bytes, in_flight_bytes, limit)]
}

limit_names <- c("application", "rwnd", "cwnd", "link")

#' Windows of a sender in bytes, whichever logger saw them
#'
#' @param sender Samples of a sender: `t_s`, `cwnd_packets`, and where the logger has them `segment_bytes`, `snd_wnd_bytes`, `in_flight_bytes`, `unacked_packets`.
#' @param offered The receiver's offer, as of [advertised_window()] with times `t_s`, for loggers that do not tell it.
#' @param segment_bytes Payload of a full segment, where the samples do not tell it.
#' @return A data.table `t_s`, `cwnd_bytes`, `rwnd_bytes`, `in_flight_bytes`, `segment_bytes`.
#' @export
sender_windows <- function(sender, offered = NULL, segment_bytes = NA) {
  n <- nrow(sender)
  segment <- as.double(sender$segment_bytes %||% sender$snd_mss_bytes %||% rep(segment_bytes, n))
  told <- as.double(sender$snd_wnd_bytes %||% rep(NA_real_, n))
  # A kernel that does not tell the window says 0 throughout.
  if (all(told %in% c(0, NA))) told <- window_at(offered, sender$t_s)
  data.table(t_s = sender$t_s, cwnd_bytes = sender$cwnd_packets * segment, rwnd_bytes = told,
             in_flight_bytes = as.double(sender$in_flight_bytes %||% (sender$unacked_packets * segment)), segment_bytes = segment)
}

window_at <- function(offered, t_s) {
  if (is.null(offered) || nrow(offered) == 0) return(rep(NA_real_, length(t_s)))
  at <- findInterval(t_s, offered$t_s)
  offered$window_bytes[fifelse(at == 0L, NA_integer_, at)]
}

# Shares of the time that the flow had something in flight, one per limit; NULL without samples.
limit_shares <- function(limits) {
  if (is.null(limits)) return(NULL)
  busy <- limits[!is.na(limit) & until_s > t_s & (in_flight_bytes > 0 | limit != "application")]
  total_s <- sum(busy$until_s - busy$t_s)
  if (!isTRUE(total_s > 0)) return(NULL)
  share <- vapply(limit_names, \(name) sum((busy$until_s - busy$t_s)[busy$limit == name]) / total_s, 0)
  stats::setNames(as.list(share), paste0("limited_", limit_names, "_share"))
}
