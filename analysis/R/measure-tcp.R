# Measure a TCP flow from one capture: RTTs from timestamps, completion time, bytes in flight, duplicate acknowledgements.

#' Round-trip times from TCP timestamps
#'
#' For each value v that `flow` puts into the time stamps option,
#'
#' \deqn{RTT_v = t(\mathrm{first\ answer\ with\ TSecr} = v) - t(\mathrm{first\ packet\ with\ TSval} = v)}
#'
#' Only the capture's times are used; the option's values serve as labels. A receiver that delays its acknowledgement echoes the time stamp of the oldest
#' packet that it has not acknowledged (RFC 7323, section 4.3), so the receiver's delay is part of the RTT. A value that was echoed before gives no further
#' sample, because after a loss the receiver repeats the value of the last segment that arrived in order.
#'
#' @inheritParams data_ack_rtt
#' @return A data.table with `t_ns` (time of the answer), `rtt_ms`, `sent_ns`; attribute `epoch_s`. The table has no rows if the packets lack the option.
#' @source RFC 7323, sections 3 and 4.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' flow <- data_flows(sender)$flow[1]
#' timestamp_rtt(sender, flow)
#' @export
timestamp_rtt <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  sent <- rows_of_flow(capture, flow, c("t_ns", "tsval", "payload_bytes", "flags"))
  sent <- sent[!is.na(tsval) & !is.na(t_ns) & (payload_bytes > 0 | bitwAnd(flags, 3L) > 0L), .(sent_ns = t_ns[1]), by = tsval]
  answers <- rows_of_flow(capture, reverse_flow(flow), c("t_ns", "tsecr", "flags"))
  answers <- answers[!is.na(tsecr) & !is.na(t_ns) & bitwAnd(flags, 16L) > 0L, .(t_ns = t_ns[1]), by = tsecr]
  rtt <- answers[sent, .(t_ns = x.t_ns, sent_ns = i.sent_ns), on = c(tsecr = "tsval"), nomatch = NULL]
  rtt <- rtt[t_ns >= sent_ns, .(t_ns, rtt_ms = (t_ns - sent_ns) / 1e6, sent_ns)]
  setorder(rtt, t_ns)
  setattr(rtt, "epoch_s", attr(capture, "epoch_s"))
  as_series(rtt, "rtt_ms", "RTT (ms)")
}

#' Completion time of a flow
#'
#' \deqn{T = t_{done} - t_{start}}
#'
#' For TCP, T is the time from the SYN (or the first data, if the capture has no SYN) to the first acknowledgement of all data. For other protocols,
#' and if the capture has no acknowledgement of the last data, T ends with the last packet with payload.
#'
#' If ports are reused, T is the time from the first connection's SYN to the end of the last connection's data.
#'
#' @param capture A capture at the flow's sender, from [read_pcap()].
#' @param flow Name of the flow that carries the data.
#' @return A one-row data.table with `start_s`, `done_s` (seconds since `epoch_s`), `completion_s`, and TRUE or FALSE in
#'   `handshake` (the capture has the SYN), `acknowledged` (it has the acknowledgement of all data) and `closed` (it has a FIN).
#' @source RFC 9293; N. Dukkipati and N. McKeown, Why flow-completion time is the right metric, 2006.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' flow_completion(sender, data_flows(sender)$flow[1])
#' @export
flow_completion <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  x <- tcp_progress(capture, flow)
  data <- x[out & payload_bytes > 0 & !is.na(t_ns)]
  if (nrow(data) == 0) return(data.table(start_s = NA_real_, done_s = NA_real_, completion_s = NA_real_, handshake = FALSE, acknowledged = FALSE, closed = FALSE))
  syn <- x[out & bitwAnd(flags, 2L) > 0L]
  last <- max(data$end)
  done <- x[!out & !is.na(ack_to) & ack_to >= last & t_ns >= data$t_ns[1]]
  start_ns <- min(syn$t_ns, data$t_ns[1])
  done_ns <- if (nrow(done) > 0) done$t_ns[1] else max(data$t_ns)
  data.table(start_s = start_ns / 1e9, done_s = done_ns / 1e9, completion_s = (done_ns - start_ns) / 1e9, handshake = nrow(syn) > 0,
             acknowledged = nrow(done) > 0, closed = any(bitwAnd(x[(out)]$flags, 1L) > 0L, na.rm = TRUE))
}

# Both directions of a flow in order of time: `out`, `t_ns`, `flags`, `payload_bytes`, `window`, and unwrapped sequence numbers: `first`, `end` (of
# outgoing packets; SYN and FIN count), `ack_to` (of returning packets), `origin` (first sequence number of
# the connection; if connections reuse the ports, the numbers of each are above those of all earlier ones).
tcp_progress <- function(capture, flow) {
  check_columns(capture, c("t_ns", "seq", "ack", "flags", "payload_bytes", "window"))
  level <- match(c(flow, reverse_flow(flow)), levels(capture$flow), nomatch = -1L)
  at <- in_order_of_time(capture, which(as.integer(capture$flow) %in% level))
  x <- capture[at, .(t_ns, seq, ack, flags, payload_bytes, window)]
  x[, out := as.integer(capture$flow)[at] == level[1]]
  marks <- fcoalesce(x$flags, 0L)
  x[, length := payload_bytes + bitwAnd(marks, 1L) + bitwAnd(marks, 2L) %/% 2L]
  set(x, NULL, c("first", "ack_to", "origin"), connection_numbers(x$out, x$seq, x$ack, x$flags, x$payload_bytes))
  x[, end := first + length][]
}

# On a host with several CPUs packets may be captured slightly out of order. If some packets have no time, the file's order is used.
in_order_of_time <- function(capture, rows) {
  t_ns <- capture$t_ns[rows]
  if (anyNA(t_ns) || !is.unsorted(t_ns)) rows else rows[order(t_ns)]
}

#' Bytes in flight
#'
#' At the sender, after each packet,
#'
#' \deqn{flight = \max(\mathrm{end\ of\ data\ sent}) - \max(\mathrm{acknowledged})}
#'
#' in sequence numbers (SYN and FIN count as one each). The result is snd_max - snd_una of the connection: data that SACK has reported as received count too. If
#' ports are reused, each connection starts with nothing in flight.
#'
#' @inheritParams flow_completion
#' @return A data.table with `t_ns`, `flight_bytes`, one row per packet of either direction that changes the bytes in flight; attribute `epoch_s`.
#' @source RFC 9293, section 3.3.1; outstanding data of tcptrace.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' flow <- data_flows(sender)$flow[1]
#' bytes_in_flight(sender, flow)[, max(flight_bytes)]
#' @export
bytes_in_flight <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  # Without flags it is unknown what is acknowledged.
  x <- tcp_progress(capture, flow)[!is.na(flags)]
  sent <- cummax(fcoalesce(x$end, -Inf))
  acked <- pmax(cummax(fcoalesce(x$ack_to, -Inf)), x$origin)
  flight <- data.table(t_ns = x$t_ns, flight_bytes = pmax(sent - acked, 0))
  flight <- flight[is.finite(flight_bytes) & flight_bytes != shift(flight_bytes, fill = -1)]
  setattr(flight, "epoch_s", attr(capture, "epoch_s"))
  as_series(flight, "flight_bytes", "Bytes in flight", "step")
}

#' Duplicate acknowledgements, not counting window updates
#'
#' An acknowledgement is a duplicate if data is outstanding, it carries no data, SYN or FIN, it acknowledges exactly the highest previous acknowledgement,
#' and it advertises the same window as the previous acknowledgement. If only the last condition fails, because the advertised window has changed, the
#' acknowledgement is a window update.
#'
#' @inheritParams flow_completion
#' @return A one-row data.table with `duplicate_acks`, `window_updates`, `triple_duplicates` (how often a third duplicate in a row arrived).
#' @source RFC 5681, section 2.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' duplicate_acks(sender, data_flows(sender)$flow[1])
#' @export
duplicate_acks <- function(capture, flow) {
  check_capture(capture)
  answers <- marked_acks(capture, check_flow(capture, flow))
  in_row <- rowid(rleid(answers$highest), answers$duplicate) * answers$duplicate
  data.table(duplicate_acks = sum(answers$duplicate), window_updates = sum(answers$same & !answers$duplicate), triple_duplicates = sum(in_row == 3L))
}

# Acknowledgements of a flow: `t_ns`, `highest` (acknowledged so far), `same` (acknowledges nothing new while data is outstanding), `duplicate`
# (the same, and advertises the same window).
marked_acks <- function(capture, flow) {
  x <- tcp_progress(capture, flow)
  x[, outstanding := cummax(fcoalesce(end, -Inf)) > cummax(fcoalesce(ack_to, -Inf))]
  answers <- x[!out & bitwAnd(flags, 22L) == 16L & !is.na(ack_to)]
  answers[, highest := cummax(fcoalesce(ack_to, -Inf))]
  answers[, same := ack_to == shift(highest, fill = -Inf) & payload_bytes == 0 & bitwAnd(flags, 1L) == 0L & outstanding]
  answers[, duplicate := same & window == shift(window, fill = -1L)]
  keep_epoch(answers[, .(t_ns, highest, same, duplicate)], capture)
}
