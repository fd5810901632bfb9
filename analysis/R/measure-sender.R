# Measure the sender of a TCP flow from the samples of any logger: windows, packets that its own interface refused, and what limits the flow.

# What the sender's TCP reports about a flow (quantity tcp-state), in the same columns from every logger: `source` (the logger), `t_s`, `sport`, `dport`, `cwnd_packets`, `ssthresh_packets`
# (Inf before it is set), `srtt_us` (NA before the first sample), `unacked_packets`, `total_retrans_packets` and `ca_state` with Linux's numbers (0 Open,
# 2 CWR, 3 Recovery, 4 Loss), and the columns that sender_windows() uses if the logger has them. TCP_INFO has all these columns; SIFTR has a row for
# every packet of a FreeBSD host, TCP's tracepoint a row for every acknowledgement. Further columns are present if the logger records them: `rto_us`,
# `rcv_wnd_bytes`, `refused` (TRUE where cwnd fell because the sender's own interface refused a packet), `sack`, `ecn`. If a log of SIFTR is whole,
# attribute `departures_ns` has the times at which the flow's packets were passed to the interface.
sender_sources <- list(
  "tcp-info" = \(path, flow, within) samples_of_tcp_info(within(read_tcp_info(path)), flow),
  "siftr" = \(path, flow, within) samples_of_siftr(within(read_siftr(path)), flow),
  "tcp-probe" = \(path, flow, within) samples_of_tcp_probe(within(read_tcp_probe(path)), flow)
)

tcp_samples <- function(flow, traces) {
  for (logger in sources_of("tcp-state")) {
    path <- traces$path(logger, flow$from)
    samples <- if (length(path) > 0) sender_sources[[logger]](path[1], flow, \(x) traces$within(x, flow$from))
    if (is.null(samples) || nrow(samples) == 0) next
    set(samples, NULL, c("t_s", "source"), list(seconds_since(samples, start_on(traces, flow$from)), logger))
    return(samples)
  }
  NULL
}

samples_of_tcp_info <- function(x, flow) {
  # A sample that is taken while the socket is being closed has port 0 and the counters of the whole flow.
  ours <- of_port(x, flow$port)[sport > 0 & dport > 0]
  if (nrow(ours) == 0) return(NULL)
  busiest <- ours[, .(sent = max(bytes_acked, 0, na.rm = TRUE)), by = .(sport, dport)][which.max(sent)]
  keep_epoch(ours[ours$sport == busiest$sport & ours$dport == busiest$dport], x)
}

of_port <- function(x, port) x[x$dport == port | x$sport == port]

# Copy the attributes of a table to rows taken from it. The attributes of data.table's key and index are left
# out, because they describe the order of all rows.
with_attributes <- function(rows, x) {
  more <- setdiff(names(attributes(x)), c(names(attributes(rows)), "sorted", "index"))
  for (name in more) setattr(rows, name, attr(x, name))
  rows
}

# Copy the attribute `epoch_s` of a table to rows that were derived from it.
keep_epoch <- function(rows, x) {
  setattr(rows, "epoch_s", attr(x, "epoch_s"))
  rows
}

#' Samples of a flow's sender from a log of SIFTR
#'
#' cwnd is counted in full segments, whose size is the MSS, less 12 bytes if the connection uses time stamps. SIFTR's flags of the connection show when it is in
#' recovery. [siftr_collapses()] finds the collapses of cwnd after time-outs, and after packets that the
#' host's own interface refused (ENOBUFS). Both kinds of collapses last until cwnd is above a segment again.
#' While cwnd recovers from a refusal, `ca_state` is CWR, because nothing was lost on the path; `refused` is TRUE where a packet was refused.
#' @param x A table from [read_siftr()].
#' @param flow The flow of the manifest.
#' @return A table with the columns that are listed at the top of measure-sender.R, or NULL if the flow is not in the log.
#' @noRd
samples_of_siftr <- function(x, flow) {
  own <- as.character(x$src) %in% flow$from_address & as.character(x$dst) %in% flow$to_address
  ours <- of_port(x[own & !is.na(x$cwnd_bytes)], flow$port)
  if (nrow(ours) == 0) return(NULL)
  # A generator's control connection may have the same port, so the flow is the connection with the most records that have data in flight.
  busiest <- ours[, .(busy = sum(in_flight_bytes > 0, na.rm = TRUE)), by = flow][which.max(busy)]$flow
  ours <- keep_epoch(ours[ours$flow == busiest], x)
  set_flags <- siftr_flags(ours, attr(x, "integrity")$sysver[1])
  collapsed <- siftr_collapses(ours)
  segment <- pmax(ours$mss_bytes - fifelse(set_flags$timestamps, 12L, 0L), 1L)
  samples <- keep_epoch(ours[, .(
    t_ns, sport, dport, cwnd_packets = cwnd_bytes / segment, ssthresh_packets = ssthresh_bytes / segment, srtt_us,
    unacked_packets = ceiling(in_flight_bytes / segment), total_retrans_packets = 0, ca_state = ca_state_of_siftr(ours, set_flags, collapsed),
    snd_wnd_bytes, in_flight_bytes, segment_bytes = segment, rcv_wnd_bytes, rto_us,
    refused = t_ns %in% collapsed$t_ns[collapsed$cause == "enobufs"], sack = set_flags$sack, ecn = set_flags$ecn
  )], x)
  setattr(samples, "every_packet", TRUE)
  if (isTRUE(all(attr(x, "integrity")$whole))) setattr(samples, "departures_ns", departures(x, busiest))
  samples
}

# Times at which packets of a flow were passed to the interface. SIFTR does not see the packets with which TCP answers for a closed connection.
departures <- function(x, flow) x$t_ns[which(x$flow == flow & x$direction == "out" & !(x[["state"]] %||% "") %in% "CLOSED")]

#' Packets that the sender's own interface refused
#'
#' SIFTR records a packet before it is passed to the interface; a capture on the same host records it only after the interface has accepted it. A packet
#' that the interface refused (ENOBUFS) is therefore only in SIFTR's log:
#'
#' \deqn{refused = records(out) - captured}
#'
#' counted between the first and the last captured packet of the flow. Packets that the path loses are in both the log and the capture. The number is a lower
#' bound if the log ends before the flow.
#'
#' @param siftr A table from [read_siftr()] for the sender, with a record per packet.
#' @param capture A table from [read_pcap()] for the same host, without packets that the capture dropped.
#' @param flow Name of the flow that carries the data.
#' @return Number of packets; NA if the log or the capture has no packet of the flow.
#' @source siftr.c and ip_output.c (the packet filter's hook), iflib.c (`ETHER_BPF_MTAP` after the packet has its descriptors) of FreeBSD 14.
#' @examples
#' log <- read_siftr(samovar_example("siftr.log.gz"))
#' capture <- read_pcap(samovar_example("siftr-sender.pcap.gz"))
#' refused_packets(log, capture, data_flows(capture)$flow[1])
#' @export
refused_packets <- function(siftr, capture, flow) {
  check_siftr(siftr)
  check_capture(capture)
  shift_ns <- (attr(siftr, "epoch_s") - attr(capture, "epoch_s")) * 1e9
  refused_count(departures(siftr, check_flow(capture, flow)) + shift_ns, capture, flow)
}

refused_count <- function(departures_ns, capture, flow) {
  seen <- rows_of_flow(capture, flow, c("t_ns", "flags"))
  # SIFTR does not see a SYN, and it sees a reset only if the connection still exists.
  captured_ns <- seen[bitwAnd(flags, 6L) == 0L & t_ns >= min(c(departures_ns, Inf))]$t_ns
  if (length(captured_ns) == 0) return(NA_real_)
  first <- max(findInterval(min(captured_ns), departures_ns), 1L)
  max(0, sum(departures_ns[first:length(departures_ns)] <= max(captured_ns)) - length(captured_ns))
}

ca_state_of_siftr <- function(x, set_flags, collapses) {
  state <- fifelse(set_flags$fast_recovery, 3L, fifelse(set_flags$congestion_recovery, ca_cwr, 0L))
  collapsed <- collapses[cause != "recovery"]
  if (nrow(collapsed) == 0) return(state)
  latest <- findInterval(x$t_ns, collapsed$t_ns)
  during <- which(latest > 0L & x$t_ns < c(-Inf, fcoalesce(collapsed$until_ns, Inf))[latest + 1L])
  state[during] <- fifelse(collapsed$cause[latest[during]] == "timeout", 4L, ca_cwr)
  state
}

# The tracepoint does not report the state, so a collapse is recognised by ssthresh decreasing with cwnd.
samples_of_tcp_probe <- function(x, flow) {
  ours <- of_port(x, flow$port)
  if (nrow(ours) == 0) return(NULL)
  ours[, in_flight := (snd_nxt - snd_una) %% 2^32]
  busiest <- ours[, .(busy = sum(in_flight > 0)), by = .(sport, dport)][which.max(busy)]
  kept <- ours[ours$sport == busiest$sport & ours$dport == busiest$dport]
  keep_epoch(kept[, .(t_ns, sport, dport, cwnd_packets, ssthresh_packets, srtt_us, unacked_packets = as.double(in_flight > 0),
                      total_retrans_packets = 0, ca_state = 0L, snd_wnd_bytes, in_flight_bytes = in_flight, rcv_wnd_bytes)], x)
}

#' Receive window that a flow's receiver advertises
#'
#' Window scaling needs the option in both SYNs; the window of a SYN itself is never scaled. If the capture lacks the handshake, or the snapshot
#' length cut a SYN's options, the scale is unknown and the windows are unscaled.
#'
#' @param capture A table from [read_pcap()].
#' @param flow Name of the flow that carries the data; its receiver advertises the window.
#' @return A data.table with `t_ns`, `window_bytes`, one row per change; attributes `wscale` (NA if unknown, 0 if scaling is off), `max_bytes` (NA if the
#'   scale is unknown) and `epoch_s`.
#' @source RFC 7323, section 2.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' flow <- data_flows(sender)$flow[1]
#' window <- advertised_window(sender, flow)
#' attr(window, "max_bytes")
#' @export
advertised_window <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  offered <- rows_of_flow(capture, reverse_flow(flow), c("t_ns", "flags", "window", "wscale"))
  # The window of a reset is meaningless (RFC 9293, section 3.10.7).
  offered <- offered[bitwAnd(flags, 4L) == 0L & bitwAnd(flags, 18L) > 0L]
  scale <- window_shift(offered, rows_of_flow(capture, flow, c("flags", "wscale")), isTRUE(attr(capture, "cut_packets") > 0))
  offered <- offered[!is.na(window)]
  factor <- fifelse(bitwAnd(offered$flags, 2L) > 0L | is.na(scale), 1, 2^scale)
  window <- offered[, .(t_ns, window_bytes = window * factor)]
  window <- window[rleid(window_bytes) != shift(rleid(window_bytes), fill = 0L)]
  setattr(window, "max_bytes", if (nrow(window) > 0 && !is.na(scale)) max(window$window_bytes) else NA_real_)
  setattr(window, "wscale", scale)
  setattr(window, "epoch_s", attr(capture, "epoch_s"))
  as_series(window, "window_bytes", "Advertised window (bytes)", "step")
}

# The windows of a flow's receiver in bytes; NULL if their scale is unknown.
scaled_window <- function(capture, flow) {
  window <- advertised_window(capture, flow)
  if (!is.na(attr(window, "wscale"))) window
}

# The receiver's scale if both ends offered a scale, 0 if one end did not, NA if either SYN is missing or the snapshot length may have cut its
# options.
window_shift <- function(receiver, sender, cut) {
  receiver_syn <- receiver[bitwAnd(flags, 2L) > 0L, wscale]
  sender_syn <- sender[bitwAnd(flags, 2L) > 0L, wscale]
  if (length(receiver_syn) == 0L || length(sender_syn) == 0L) return(NA_integer_)
  if (anyNA(receiver_syn) || anyNA(sender_syn)) return(if (cut) NA_integer_ else 0L)
  receiver_syn[1L]
}

#' What limits a TCP flow at each moment
#'
#' A sender may have no more data in flight than the smaller of two windows,
#'
#' \deqn{swnd = \min(cwnd, rwnd)}
#'
#' If the data in flight are at least a full segment less than swnd, the limit is `application`, because the application had nothing more to send. If the
#' data in flight reach swnd, and swnd is more than the idle path holds,
#'
#' \deqn{swnd \ge rate \cdot RTT_{min} / 8}
#'
#' the limit is `link`: the path carries its full rate, which a larger window would not increase, and data that exceed the capacity of the path wait in a queue.
#' Otherwise the limit is the smaller window: `rwnd` if it is smaller than cwnd or equal to it, else `cwnd`.
#'
#' @param samples Samples of one sender in time order: `t_s`, `cwnd_bytes`, `rwnd_bytes`, `in_flight_bytes`, `segment_bytes`; see [sender_windows()].
#' @param rate_bps Rate of the bottleneck for TCP payload, bit/s; NA if it is unknown.
#' @param rtt_min_ms RTT of the idle path; NA if it is unknown.
#' @return A data.table with `t_s`, `until_s` (time of the next sample), `swnd_bytes`, `in_flight_bytes`, `limit` (factor: "application", "rwnd", "cwnd",
#'   "link"; NA if a window is unknown or no data was in flight yet). If rate or RTT is unknown, the factor has no level "link": the limit of a flow that
#'   fills the link is then the smaller window.
#' @source RFC 9293, section 3.8; RFC 7661, section 4; CAIA-TR-140630A, section IV.
#' @examples
#' info <- read_tcp_info(samovar_example("bulk-tcp-info.csv.gz"))[dport == 5001 & bytes_acked > 1000]
#' info[, t_s := t_ns / 1e9]
#' limits <- flow_limits(sender_windows(info), rate_bps = 2e6 * 1448 / 1500, rtt_min_ms = 0.1)
#' limits[!is.na(limit), .(seconds = sum(until_s - t_s)), by = limit]
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
  x[, limit := factor(named, levels = if (is.na(idle_bytes)) setdiff(limit_names, "link") else limit_names)]
  x[, .(t_s, until_s, swnd_bytes, in_flight_bytes, limit)]
}

limit_names <- c("application", "rwnd", "cwnd", "link")

#' Windows of a sender in bytes, from the samples of any logger
#'
#' @param sender Samples of a sender: `t_s`, `cwnd_packets` and, if the logger has them, `segment_bytes`, `snd_wnd_bytes`, `in_flight_bytes`,
#'   `unacked_packets`.
#' @param offered The receiver's window, from [advertised_window()] with times `t_s`, for loggers that do not report it.
#' @param segment_bytes Payload of a full segment, for samples that do not report it.
#' @return A data.table with `t_s`, `cwnd_bytes`, `rwnd_bytes`, `in_flight_bytes`, `segment_bytes`.
#' @examples
#' info <- read_tcp_info(samovar_example("bulk-tcp-info.csv.gz"))[dport == 5001 & bytes_acked > 1000]
#' info[, t_s := t_ns / 1e9]
#' sender_windows(info)
#' @export
sender_windows <- function(sender, offered = NULL, segment_bytes = NA) {
  n <- nrow(sender)
  segment <- as.double(sender$segment_bytes %||% sender$snd_mss_bytes %||% rep(segment_bytes, n))
  advertised <- as.double(sender$snd_wnd_bytes %||% rep(NA_real_, n))
  # If a kernel does not report the window, the column is 0 throughout.
  if (all(advertised %in% c(0, NA))) advertised <- window_at(offered, sender$t_s)
  data.table(t_s = sender$t_s, cwnd_bytes = sender$cwnd_packets * segment, rwnd_bytes = advertised,
             in_flight_bytes = as.double(sender$in_flight_bytes %||% (sender$unacked_packets * segment)), segment_bytes = segment)
}

window_at <- function(offered, t_s) {
  if (is.null(offered) || nrow(offered) == 0) return(rep(NA_real_, length(t_s)))
  at <- findInterval(t_s, offered$t_s)
  offered$window_bytes[fifelse(at == 0L, NA_integer_, at)]
}

# Return for each limit how long it applied, as a share of the time with data in flight; NULL without samples.
limit_shares <- function(limits) {
  if (is.null(limits)) return(NULL)
  busy <- limits[!is.na(limit) & until_s > t_s & (in_flight_bytes > 0 | limit != "application")]
  total_s <- sum(busy$until_s - busy$t_s)
  if (!isTRUE(total_s > 0)) return(NULL)
  share <- vapply(levels(busy$limit), \(name) sum((busy$until_s - busy$t_s)[busy$limit == name]) / total_s, 0)
  stats::setNames(as.list(share), paste0("limited_", names(share), "_share"))
}

# Return what limited a flow after each of its samples; NULL without samples. Flows in the same direction are assumed to have equal shares of the link's rate.
limits_of_flow <- function(flow, sender, ref, name, idle_ms, traces, manifest) {
  if (is.null(sender) || nrow(sender) < 2) return(NULL)
  offered <- if (!is.null(ref)) scaled_window(ref, name)
  if (!is.null(offered)) set(offered, NULL, "t_s", seconds_since(offered, start_on(traces, flow$from)))
  segment_bytes <- manifest$resolved$mtu_bytes - tcp_header_bytes
  sharing <- sum(vapply(manifest$resolved$flows, \(f) shares_link(f, flow, manifest), TRUE))
  way <- if (is_down(flow, manifest)) "down" else "up"
  rate_bps <- as.double(manifest$resolved$path[[way]]$rate_bps %||% NA) / sharing * segment_bytes / manifest$resolved$mtu_bytes
  windows <- sender_windows(sender, offered, segment_bytes)
  flow_limits(windows, rate_bps, idle_ms)
}

is_down <- function(flow, manifest) identical(manifest$resolved$hosts[[flow$from]]$role, "sender")

# Whether flow `f` takes a share of the link's rate in the direction of `flow`. Echo requests take too little to matter.
shares_link <- function(f, flow, manifest) !f$generator %in% "ping" && is_down(f, manifest) == is_down(flow, manifest)
