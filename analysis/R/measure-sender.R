# The sender's own view of a flow, alike whichever logger saw it: `t_s`, `sport`, `dport`, `cwnd_packets`, `ssthresh_packets` (Inf before
# it is set), `srtt_us` (NA before a sample), `unacked_packets`, `total_retrans_packets` and `ca_state` as Linux names it (0 Open, 2 CWR,
# 3 Recovery, 4 Loss); beside them what sender_windows() asks for, where the logger has it. TCP_INFO has all of it; SIFTR has it at every
# packet of a FreeBSD host, TCP's tracepoint at every acknowledgement.
sender_sources <- list(
  "tcp-info" = \(path, flow, within) samples_of_tcp_info(within(read_tcp_info(path)), flow),
  "siftr" = \(path, flow, within) samples_of_siftr(within(read_siftr(path)), flow),
  "tcp-probe" = \(path, flow, within) samples_of_tcp_probe(within(read_tcp_probe(path)), flow)
)

tcp_samples <- function(flow, traces) {
  for (logger in names(sender_sources)) {
    path <- traces$path(logger, flow$from)
    samples <- if (length(path) > 0) sender_sources[[logger]](path[1], flow, \(x) traces$within(x, flow$from))
    if (is.null(samples) || nrow(samples) == 0) next
    samples[, t_s := seconds_since(samples, traces$t_start_s)]
    return(samples)
  }
  NULL
}

samples_of_tcp_info <- function(x, flow) {
  ours <- of_port(x, flow$port)
  if (nrow(ours) == 0) return(NULL)
  busiest <- ours[, .(sent = max(bytes_acked, 0, na.rm = TRUE)), by = .(sport, dport)][which.max(sent)]
  keep_epoch(ours[ours$sport == busiest$sport & ours$dport == busiest$dport], x)
}

of_port <- function(x, port) x[x$dport == port | x$sport == port]

# Rows of a table with all that it tells of itself beside them, but for the order of its rows, which data.table keeps as key and index.
alike <- function(rows, x) {
  told <- setdiff(names(attributes(x)), c(names(attributes(rows)), "sorted", "index"))
  for (name in told) setattr(rows, name, attr(x, name))
  rows
}

# Of another table's rows, the moment that its times count from.
keep_epoch <- function(rows, x) {
  setattr(rows, "epoch_s", attr(x, "epoch_s"))
  rows
}

#' Samples of a flow's sender from a log of SIFTR
#'
#' cwnd is counted in full segments: MSS less the 12 bytes of time stamps where the connection has them. FreeBSD tells recovery by
#' flags of the connection; a time-out and a lack of buffers are told by [siftr_collapses()] and last until cwnd grows. A
#' lack of buffers is shown as CWR: nothing was lost on the path.
#' @param x A table of [read_siftr()].
#' @param flow The flow of the manifest.
#' @return See the head of measure-sender.R; NULL when the log does not hold the flow.
#' @noRd
samples_of_siftr <- function(x, flow) {
  own <- as.character(x$src) %in% flow$from_address & as.character(x$dst) %in% flow$to_address
  ours <- of_port(x[own & !is.na(x$cwnd_bytes)], flow$port)
  if (nrow(ours) == 0) return(NULL)
  # A generator's control connection may have the same port: the flow is the one with most records of data under way.
  busiest <- ours[, .(busy = sum(in_flight_bytes > 0, na.rm = TRUE)), by = flow][which.max(busy)]$flow
  ours <- keep_epoch(ours[ours$flow == busiest], x)
  segment <- pmax(ours$mss_bytes - fifelse(has_bit(ours$flags, tf_time_stamps), 12L, 0L), 1L)
  keep_epoch(ours[, .(
    t_ns, sport, dport, cwnd_packets = cwnd_bytes / segment, ssthresh_packets = ssthresh_bytes / segment, srtt_us,
    unacked_packets = ceiling(in_flight_bytes / segment), total_retrans_packets = 0, ca_state = ca_state_of_siftr(ours),
    snd_wnd_bytes, in_flight_bytes, segment_bytes = segment
  )], x)
}

tf_time_stamps <- 8L # 0x00000100 TF_RCVD_TSTMP

ca_state_of_siftr <- function(x) {
  state <- fifelse(has_bit(x$flags, tf_fast_recovery), 3L, fifelse(has_bit(x$flags, tf_congestion_recovery), ca_cwr, 0L))
  collapsed <- siftr_collapses(x)[cause != "recovery"]
  until <- fcoalesce(collapsed$until_ns, Inf)
  for (k in seq_len(nrow(collapsed))) {
    during <- which(x$t_ns >= collapsed$t_ns[k] & x$t_ns < until[k])
    state[during] <- if (collapsed$cause[k] == "timeout") 4L else ca_cwr
  }
  state
}

# The tracepoint has no state: a collapse shows as ssthresh going down with cwnd.
samples_of_tcp_probe <- function(x, flow) {
  ours <- of_port(x, flow$port)
  if (nrow(ours) == 0) return(NULL)
  ours[, in_flight := (snd_nxt - snd_una) %% 2^32]
  busiest <- ours[, .(busy = sum(in_flight > 0)), by = .(sport, dport)][which.max(busy)]
  kept <- ours[ours$sport == busiest$sport & ours$dport == busiest$dport]
  keep_epoch(kept[, .(t_ns, sport, dport, cwnd_packets, ssthresh_packets, srtt_us, unacked_packets = as.double(in_flight > 0),
                      total_retrans_packets = 0, ca_state = 0L, snd_wnd_bytes, in_flight_bytes = in_flight)], x)
}
