#' Bytes and rate per window of time
#'
#' @param capture A table of [read_pcap()].
#' @param width_s Width of a window, seconds.
#' @param from_s,to_s First and last moment, seconds since the capture's earliest packet; the whole capture when
#'   not given. A packet at `to_s` itself is only counted when `to_s` is not given.
#' @param by Columns to sum by; "flow" (packets without one are left out), or NULL for all packets together.
#' @param layer "ip" (IP total length), "frame" (with link header), "payload" (transport payload), "tcpstat"
#'   (frame less 14 bytes).
#' @return A data.table with the columns of `by`, `t_s` (start of the window, seconds since the earliest packet
#'   of the capture), `bytes`, `throughput_bps` (`bytes` over the whole `width_s`), `partial` (TRUE for a last
#'   window that reaches beyond the last moment). Empty windows count as zero; `bytes` and rate of a window are NA where the snapshot
#'   length cut what tells the size of a packet in it. Attributes `origin_ns` (the
#'   earliest packet's `t_ns`), `epoch_s`, `width_s`.
#' @export
throughput_windows <- function(capture, width_s, from_s = NULL, to_s = NULL, by = "flow",
                               layer = c("ip", "frame", "payload", "tcpstat")) {
  layer <- match.arg(layer)
  frame <- window_frame(capture, width_s, from_s, to_s)
  simple <- is.null(by) || (identical(by, "flow") && is.factor(capture$flow))
  out <- if (simple) sums_by_flow(capture, frame, by, layer) else sums_by_columns(capture, frame, by, layer)
  set(out, NULL, "t_s", (frame$from_ns + out$window * frame$width_ns) / 1e9)
  set(out, NULL, "throughput_bps", out$bytes * 8 / width_s)
  set(out, NULL, "partial", out$window == frame$count - 1 & frame$last_partial)
  describe_windows(out[, c(by, "t_s", "bytes", "throughput_bps", "partial"), with = FALSE], capture, frame)
}

#' Windows as tcpstat 1.5 counts them
#'
#' Windows start at the first packet, not at a whole second; all protocols and both directions count; of a
#' frame all but 14 bytes of link header count; a packet at a window's very end still belongs to it; the last
#' window is given although it is not over. tcpstat labels a window with its middle, and adds the width to the
#' time of day in a double, whose steps are 2^-22 s: its windows are up to half a step off each, which is
#' followed here. For windows of the width asked for there is [throughput_windows()].
#'
#' @inheritParams throughput_windows
#' @return A data.table `t_s` (start of the window, seconds since the first packet), `label_s` (its middle:
#'   tcpstat's %r), `label_whole_s` (%R: the label rounded), `packets` (%n), `bytes` (%N), `byte_rate` (%B,
#'   bytes per second), `throughput_bps` (%b).
#' @source tcpstat(1); labels, sizes and steps as seen on tcpstat 1.5.
#' @export
tcpstat_windows <- function(capture, width_s) {
  check_capture(capture)
  check_width(width_s)
  capture <- if (anyNA(capture$t_ns)) trim_capture(capture, attr(capture, "epoch_s")) else capture
  # tcpstat knows microseconds only.
  t_s <- attr(capture, "epoch_s") + floor(capture$t_ns / 1000) / 1e6
  step_s <- if (length(t_s)) t_s[1L] + width_s - t_s[1L] else width_s
  window <- if (length(t_s)) pmax(ceiling((t_s - t_s[1L]) / step_s) - 1, 0) else numeric()
  frames <- data.table(window, bytes = capture$frame_bytes - 14L)
  sums <- frames[, .(packets = .N, bytes = sum(as.double(bytes))), by = window]
  all <- sums[data.table(window = seq_len(max(window, -1) + 1) - 1), on = "window"]
  setnafill(all, fill = 0, cols = c("packets", "bytes"))
  label_s <- all$window * step_s + width_s / 2
  all[, .(t_s = window * step_s, label_s, label_whole_s = floor(label_s + 0.5), packets, bytes,
          byte_rate = bytes / width_s, throughput_bps = bytes * 8 / width_s)]
}

#' Sequence space delivered, and what was sent twice
#'
#' Retransmissions are told by sequence numbers: a packet counts as one when any of its bytes was in the
#' capture before. At the receiver's capture a packet that repairs a loss is therefore no retransmission but
#' out of order. SYN and FIN do not count; sequence numbers may wrap. Where ports are used again, a SYN with another number
#' begins another connection, and its bytes count beside those before.
#'
#' @param capture A table of [read_pcap()].
#' @param flow Name of the flow that carries the data.
#' @return A one-row data.table `flow`, `unique_bytes`, `payload_bytes`, `data_packets`,
#'   `retransmitted_packets`, `retransmitted_bytes`, `out_of_order_packets`, `acked_bytes` (between the first
#'   and the highest acknowledgement of each connection), `first_s`, `last_s` (of data, seconds since `epoch_s`), `goodput_bps`
#'   (unique bytes between the two). What counts data is NA where the payload of a packet of the flow is not known, since the snapshot
#'   length cut its header before the data offset, or its place in sequence space, since it is a fragment.
#' @export
goodput <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  space <- sequence_space(capture, flow, reverse_flow(flow))
  first_s <- space$first_ns / 1e9
  last_s <- space$last_ns / 1e9
  sizes <- space[setdiff(names(space), c("first_ns", "last_ns"))]
  elapsed_s <- (space$last_ns - space$first_ns) / 1e9
  goodput_bps <- if (isTRUE(elapsed_s > 0)) space$unique_bytes * 8 / elapsed_s else NA_real_
  as.data.table(c(list(flow = flow), sizes, list(first_s = first_s, last_s = last_s, goodput_bps = goodput_bps)))
}

window_frame <- function(capture, width_s, from_s, to_s) {
  check_width(width_s)
  # Packets of pcapng's simple blocks have no time: they are in no window.
  timed_ns <- if (anyNA(capture$t_ns)) capture$t_ns[!is.na(capture$t_ns)] else capture$t_ns
  # The earliest, which with several CPUs need not be the first of the file.
  origin_ns <- if (length(timed_ns)) min(timed_ns) else 0
  last_ns <- if (length(timed_ns)) max(timed_ns) - origin_ns else 0
  from_ns <- round(fcoalesce(as.double(from_s %||% 0), 0) * 1e9)
  # A packet at the very end of the capture still belongs to it.
  to_ns <- if (is.null(to_s)) last_ns + 1 else round(to_s * 1e9)
  width_ns <- round(width_s * 1e9)
  count <- max(ceiling((to_ns - from_ns) / width_ns), 0)
  list(origin_ns = origin_ns, from_ns = from_ns, to_ns = to_ns, width_ns = width_ns, count = count,
       last_partial = from_ns + count * width_ns > to_ns)
}

check_width <- function(width_s) {
  if (is.numeric(width_s) && length(width_s) == 1L && isTRUE(width_s > 0)) return(invisible(width_s))
  cli::cli_abort("{.arg width_s}: {.val {width_s}}; one number of seconds above 0 would have been accepted",
                 class = "samovar_error_argument", call = NULL)
}

# Rows of `by`, `window` (from 0) and `bytes`, for every window of every group that has packets.
sums_by_columns <- function(capture, frame, by, layer) {
  packets <- packets_in_frame(capture, frame, by, layer)
  sums <- packets[, .(bytes = sum(as.double(bytes)), seen = .N), by = c(by, "window")]
  out <- sums[window_grid(packets, frame, by), on = c(by, "window")]
  set(out, which(is.na(out$seen)), "bytes", 0)
  out
}

# The same where packets are grouped by flow or not at all, in one pass.
sums_by_flow <- function(capture, frame, by, layer) {
  flow <- if (is.null(by)) integer() else capture$flow
  sums <- window_sums(capture$t_ns, layer_bytes(capture, layer), flow, length(levels(flow)), frame)
  if (!is.null(by) && length(levels(flow)) == 0L) sums <- list(groups = integer(), bytes = double())
  out <- data.table(window = rep(seq_len(frame$count) - 1, length(sums$groups)), bytes = sums$bytes)
  set(out, which(is.nan(out$bytes)), "bytes", NA_real_)
  if (!is.null(by)) set(out, NULL, by, structure(rep(sums$groups, each = frame$count), levels = levels(flow), class = "factor"))
  out
}

# NA where it is not known; what has no such layer (ARP, PAUSE) has none of its bytes.
layer_bytes <- function(capture, layer) {
  bytes <- switch(layer, ip = capture$ip_bytes, frame = capture$frame_bytes, payload = capture$payload_bytes,
                  tcpstat = capture$frame_bytes - 14L)
  lacking <- which(is.na(bytes))
  if (length(lacking) == 0L) return(bytes)
  has_layer <- if (is.null(capture$proto)) !is.na(capture$flow) else capture$proto %in% ip_protocols
  replace(bytes, lacking[!has_layer[lacking]], 0L)
}

ip_protocols <- c("tcp", "udp", "icmp", "icmp6", "ip")

packets_in_frame <- function(capture, frame, by, layer) {
  bytes <- layer_bytes(capture, layer)
  at_ns <- capture$t_ns - frame$origin_ns
  packets <- data.table(window = floor((at_ns - frame$from_ns) / frame$width_ns), bytes = bytes)
  if (!is.null(by)) set(packets, NULL, by, as.list(capture[, by, with = FALSE]))
  keep <- at_ns >= frame$from_ns & at_ns < frame$to_ns & !is.na(at_ns)
  if ("flow" %in% by) keep <- keep & !is.na(packets$flow)
  if (all(keep)) packets else packets[keep]
}

window_grid <- function(packets, frame, by) {
  windows <- data.table(window = seq_len(frame$count) - 1)
  if (is.null(by)) return(windows)
  groups <- unique(packets[, by, with = FALSE])
  each <- rep(seq_len(nrow(groups)), each = nrow(windows))
  data.table(groups[each], windows[rep(seq_len(.N), nrow(groups))])
}

describe_windows <- function(windows, capture, frame) {
  setattr(windows, "origin_ns", frame$origin_ns)
  setattr(windows, "epoch_s", attr(capture, "epoch_s"))
  setattr(windows, "width_s", frame$width_ns / 1e9)
  windows[]
}
