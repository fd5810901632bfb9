#' Jitter as the difference of consecutive round-trip times
#'
#' \deqn{J_i = |RTT_i - RTT_{i-1}|}
#'
#' over the packets that have an RTT, in the order of their sending.
#'
#' @param rtt Round-trip times of one flow in order of sending: `rtt_ms`, as of [packet_pair_rtt()].
#' @return Milliseconds, one less than there are round-trip times.
#' @source CAIA-TR-121113A, section V-D, Figure 11.
#' @examples
#' rtt_jitter(data.frame(rtt_ms = c(10, 12, 11)))
#' @export
rtt_jitter <- function(rtt) abs(diff(as.double(rtt$rtt_ms)))

#' Interarrival jitter
#'
#' With S the times of sending and R those of arrival of the packets that reached the other end, in the order of arrival:
#'
#' \deqn{D_i = (R_i - R_{i-1}) - (S_i - S_{i-1}), \quad J_i = J_{i-1} + (|D_i| - J_{i-1}) / 16}
#'
#' J begins at 0. Only differences on one clock are taken, so the two clocks need not agree.
#'
#' @inheritParams packet_pair_rtt
#' @return A data.table `t_ns` (of arrival, on `mon`'s clock since its `epoch_s`), `transit_change_ms` (D), `jitter_ms` (J); attribute `epoch_s`.
#' @source RFC 3550, section 6.4.1 and appendix A.8.
#' @export
interarrival_jitter <- function(ref, mon, flow) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flow <- check_flow(ref, flow)
  rows <- setDT(matched_rows(ref, mon, flow, reverse_flow(flow))$out[c("row", "other")])[!is.na(other)]
  x <- data.table(sent_ns = ref$t_ns[rows$row], t_ns = mon$t_ns[rows$other])
  setorder(x, t_ns)
  change_ms <- c(0, diff(x$t_ns) - diff(x$sent_ns))[seq_len(nrow(x))] / 1e6
  smoothed <- if (nrow(x) > 0) as.double(stats::filter(abs(change_ms) / 16, 15 / 16, method = "recursive")) else double()
  jitter <- data.table(t_ns = x$t_ns, transit_change_ms = change_ms, jitter_ms = smoothed)
  setattr(jitter, "epoch_s", attr(mon, "epoch_s"))
  jitter[]
}
