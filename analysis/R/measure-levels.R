#' Throughput of a flow at the link, of IP and of payload
#'
#' \deqn{throughput_{layer} = 8 \sum bytes_{layer} / (t_{last} - t_{first})}
#'
#' over the flow's packets with payload, or that may have some where the snapshot length cut what tells it (`payload_bps` is NA then). `link` is what the medium carries for a packet: the frame with its check sequence (4 bytes), and on
#' Ethernet its preamble and gap (20 bytes), at least 84 bytes together; `frame` what the capture shows; `ip` the IP packet; `payload` what
#' TCP or UDP delivers, repeated or not ([goodput()] has each byte once).
#'
#' @inheritParams goodput
#' @return A one-row data.table `packets`, `elapsed_s`, `link_bps`, `frame_bps`, `ip_bps`, `payload_bps`; NA below two packets.
#' @source IEEE 802.3, clauses 3 and 4; RFC 2544, section 20.
#' @export
throughput_levels <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  x <- rows_of_flow(capture, flow, c("t_ns", "frame_bytes", "ip_bytes", "payload_bytes"))[may_carry(payload_bytes)]
  elapsed_s <- if (sum(!is.na(x$t_ns)) > 1) diff(range(x$t_ns, na.rm = TRUE)) / 1e9 else NA_real_
  rate <- \(bytes) if (isTRUE(elapsed_s > 0)) 8 * sum(as.double(bytes)) / elapsed_s else NA_real_
  data.table(packets = nrow(x), elapsed_s, link_bps = rate(pmax(x$frame_bytes + frame_check_bytes, shortest_frame_bytes) + gap_bytes),
             frame_bps = rate(x$frame_bytes), ip_bps = rate(x$ip_bytes), payload_bps = rate(x$payload_bytes))
}

frame_check_bytes <- 4
shortest_frame_bytes <- 64
gap_bytes <- 20

#' The part of a capture that lies within a span of the trial
#'
#' Start and end of every flow are then the same moments, whenever each of them began: what starts late is seen late, and slow start or the
#' last packets of a flow are left out by the trial's clock, not by its own.
#'
#' @param capture A table of [read_pcap()].
#' @param origin_s The start of traffic, Unix seconds on the capture's clock.
#' @param from_s,to_s The span kept, seconds since `origin_s`: packets at `from_s` are in, at `to_s` out.
#' @return The rows of the capture, with its attributes.
#' @export
trim_capture <- function(capture, origin_s, from_s = -Inf, to_s = Inf) {
  check_capture(capture)
  t_s <- seconds_since(capture, origin_s)
  alike(capture[which(t_s >= from_s & t_s < to_s)], capture)[]
}

#' Bytes and rate per window of a trial, the same windows for every flow
#'
#' Windows begin at the start of traffic, whichever flow sends first and whenever: window k holds the packets with
#'
#' \deqn{from + k\,w \le t < from + (k + 1)\,w}
#'
#' A window without packets is zero, not missing; every flow asked for has all of them. One that is covered in part only
#' says so (`partial`): one that reaches beyond the span, or beyond the end of a capture that was cut short. A mean over the others is the
#' flow's mean rate. Where the snapshot length cut what tells the payload of a packet, bytes and rate of its window are NA.
#'
#' @inheritParams throughput_windows
#' @param origin_s The start of traffic, Unix seconds on the capture's clock.
#' @param from_s,to_s The span, seconds since `origin_s`; to the last packet of the capture where `to_s` is not given.
#' @param flows Flows to count, in this order; all of the capture when NULL.
#' @return A data.table `flow`, `t_s` (start of the window since `origin_s`), `middle_s`, `bytes`, `packets`, `throughput_bps`, `partial`.
#' @export
trial_windows <- function(capture, origin_s, width_s, from_s = 0, to_s = NULL, flows = NULL, layer = c("ip", "frame", "payload")) {
  check_capture(capture)
  check_width(width_s)
  layer <- match.arg(layer)
  at_ns <- ns_since(capture, origin_s) - round(from_s * 1e9)
  width_ns <- round(width_s * 1e9)
  # A packet at the very end of the capture still belongs to it.
  seen_ns <- max(c(at_ns, -1), na.rm = TRUE) + 1
  end_ns <- if (is.null(to_s)) seen_ns else round((to_s - from_s) * 1e9)
  codes <- if (is.null(flows)) unique(as.integer(capture$flow)[!is.na(capture$flow)]) else match(as.character(flows), levels(capture$flow), nomatch = -1L)
  names <- if (is.null(flows)) levels(capture$flow)[codes] else as.character(flows)
  bytes <- as.double(capture[[paste0(layer, "_bytes")]])
  at <- which(at_ns >= 0 & at_ns < end_ns & as.integer(capture$flow) %in% codes)
  packets <- data.table(flow = names[match(as.integer(capture$flow)[at], codes)], window = floor(at_ns[at] / width_ns), bytes = bytes[at])
  sums <- packets[, .(bytes = sum(bytes), packets = .N), by = .(flow, window)]
  every <- CJ(flow = names, window = seq_len(max(ceiling(end_ns / width_ns), 0)) - 1, sorted = FALSE)
  windows <- sums[every, on = c("flow", "window")]
  set(windows, which(is.na(windows$packets)), c("bytes", "packets"), 0)
  windows[, t_s := from_s + window * width_s][, middle_s := t_s + width_s / 2][, throughput_bps := 8 * bytes / width_s]
  covered_ns <- if (isTRUE(attr(capture, "truncated"))) min(seen_ns, end_ns) else end_ns
  windows[, partial := (window + 1) * width_ns > covered_ns]
  windows[, flow := factor(flow, levels = names)][, .(flow, t_s, middle_s, bytes, packets, throughput_bps, partial)]
}

# Whole nanoseconds since a moment, exact where the moment is.
ns_since <- function(x, origin_s) {
  whole_s <- floor(origin_s)
  (attr(x, "epoch_s") - whole_s) * 1e9 - round((origin_s - whole_s) * 1e9) + x$t_ns
}
