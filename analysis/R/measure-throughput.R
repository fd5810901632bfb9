# Measure throughput, goodput and sizes of flows: in windows of time, per layer, and over a trial.

#' Bytes and rate per window of time
#'
#' @param capture A table from [read_pcap()].
#' @param width_s Width of a window, seconds.
#' @param from_s,to_s First and last moment, seconds since the capture's earliest packet; by default the whole capture. A packet at exactly `to_s` is counted
#'   only if `to_s` has its default.
#' @param by "flow" to sum by flow (packets without a flow are left out), or NULL for all packets together.
#' @param layer "ip" (IP total length), "frame" (with link header), "payload" (transport payload), "tcpstat"
#'   (frame less 14 bytes).
#' @return A data.table with `flow`, `t_s` (start of the window, seconds since the earliest packet of the capture), `bytes`, `throughput_bps` (8
#'   `bytes` / `width_s`, in a partial window too), `partial` (TRUE for the last window if it ends after the last moment). Empty windows have zero bytes;
#'   `bytes` and rate of a window are NA if the snapshot length cut off the size of one of its packets. Attributes `origin_ns` (the earliest packet's `t_ns`),
#'   `epoch_s`, `width_s`.
#' @examples
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' throughput_windows(receiver, width_s = 1)[flow == data_flows(receiver)$flow[1]]
#' @export
throughput_windows <- function(capture, width_s, from_s = NULL, to_s = NULL, by = "flow",
                               layer = c("ip", "frame", "payload", "tcpstat")) {
  layer <- match.arg(layer)
  frame <- window_frame(capture, width_s, from_s, to_s)
  if (!is.null(by) && !identical(by, "flow")) cli::cli_abort("{.arg by} must be \"flow\" or NULL", class = "samovar_error_argument", call = NULL)
  out <- sums_by_flow(capture, frame, by, layer)
  set(out, NULL, "t_s", (frame$from_ns + out$window * frame$width_ns) / 1e9)
  set(out, NULL, "throughput_bps", out$bytes * 8 / width_s)
  set(out, NULL, "partial", out$window == frame$count - 1 & frame$last_partial)
  describe_windows(out[, c(by, "t_s", "bytes", "throughput_bps", "partial"), with = FALSE], capture, frame)
}

#' Throughput in the windows of tcpstat 1.5
#'
#' Windows start at the first packet, not at a whole second. Packets of all protocols in both directions count, each with the bytes of its frame
#' minus 14. A packet at the very end of a window belongs to that window, and the last window is included although it is incomplete. tcpstat labels a
#' window with its middle. tcpstat adds the width to the time of day in a double, whose resolution is 2^-22 s, so the start of each window is off by up to 2^-23
#' s; this function reproduces the error. [throughput_windows()] has windows of the exact width.
#'
#' @inheritParams throughput_windows
#' @return A data.table with `t_s` (start of the window, seconds since the first packet), `label_s` (its middle:
#'   tcpstat's %r), `label_whole_s` (%R: the label rounded), `packets` (%n), `bytes` (%N), `byte_rate` (%B,
#'   bytes per second), `throughput_bps` (%b).
#' @source tcpstat(1); labels, sizes and steps as observed with tcpstat 1.5.
#' @examples
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' tcpstat_windows(receiver, width_s = 1)
#' @export
tcpstat_windows <- function(capture, width_s) {
  check_capture(capture)
  check_width(width_s)
  capture <- if (anyNA(capture$t_ns)) trim_capture(capture, attr(capture, "epoch_s")) else capture
  # tcpstat has microseconds only.
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

#' Delivered bytes, retransmissions and goodput of a flow
#'
#' A packet is a retransmission if any of its bytes was in the capture before. In the receiver's capture a packet that repairs a loss is
#' therefore out of order, not a retransmission. SYN and FIN do not count; sequence numbers may wrap. While the receiver's
#' window is 0, a segment of one new byte is a probe of the window (RFC 9293, section 3.8.6.1), neither data nor a retransmission; if the byte is
#' acknowledged, it counts as delivered. If ports are reused, a SYN with another sequence
#' number starts another connection, whose bytes are added.
#'
#' @param capture A table from [read_pcap()].
#' @param flow Name of the flow that carries the data.
#' @param duration_s Length in seconds of the interval in which packets count, such as the time for which the flow's generator sent. The interval starts at the
#'   flow's first packet with payload, and ends earlier if the capture does. If `duration_s` is NULL, the interval ends with the flow's last packet with
#'   payload, even if that is a late retransmission after a time-out. Rates are computed over the same interval.
#' @return A one-row data.table with `flow`, `unique_bytes`, `payload_bytes`, `data_packets`,
#'   `retransmitted_packets`, `retransmitted_bytes`, `out_of_order_packets`, `window_probes`, `acked_bytes` (between the first
#'   and the highest acknowledgement of each connection), `first_s`, `last_s` (of data, seconds since `epoch_s`), `goodput_bps`
#'   (unique bytes between these two times, or over `duration_s`). Counts of data are NA if the payload of a packet of the flow is unknown, because the snapshot length cut
#'   the packet's header before the data offset, or because the packet is a fragment.
#' @examples
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' flow <- data_flows(receiver)$flow[1]
#' goodput(receiver, flow)[, .(unique_bytes, goodput_bps)]
#' # In the first second only.
#' goodput(receiver, flow, duration_s = 1)[, .(unique_bytes, goodput_bps)]
#' @export
goodput <- function(capture, flow, duration_s = NULL) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  interval <- if (!is.null(duration_s)) rate_interval(capture, flow, "payload_bytes", duration_s)
  if (isTRUE(interval$end_ns < Inf)) capture <- with_attributes(capture[which(capture$t_ns < interval$end_ns)], capture)
  data <- data_packets(capture, flow)
  of_all <- attr(data, "of_all")
  again_bytes <- data$payload_bytes - data$new_bytes
  delivered_bytes <- sum(data$new_bytes) + of_all$probe_bytes
  timed_s <- data$t_ns[!is.na(data$t_ns)] / 1e9
  known <- \(value) if (of_all$unknown) NA_real_ else as.double(value)
  x <- data.table(
    flow, unique_bytes = known(delivered_bytes), payload_bytes = known(delivered_bytes + sum(again_bytes)), data_packets = known(nrow(data)),
    retransmitted_packets = known(sum(again_bytes > 0)), retransmitted_bytes = known(sum(again_bytes)),
    out_of_order_packets = known(sum(again_bytes == 0 & data$first < shift(cummax(data$end), fill = -Inf))), window_probes = known(of_all$window_probes),
    acked_bytes = of_all$acked_bytes, first_s = known(timed_s[1]), last_s = known(rev(timed_s)[1])
  )
  elapsed_s <- interval$elapsed_s %||% (x$last_s - x$first_s)
  x[, goodput_bps := if (isTRUE(elapsed_s > 0)) unique_bytes * 8 / elapsed_s else NA_real_][]
}

# Data packets of a TCP flow in order of time: `t_ns`, `first`, `end`, `payload_bytes` and `new_bytes`, the bytes that were not in the capture before. The
# attribute `of_all` has what data_segments() returns of the flow as a whole.
data_packets <- function(capture, flow) {
  found <- data_segments(capture, flow, reverse_flow(flow))
  packets <- setDT(found$packets)[, payload_bytes := end - first]
  setattr(keep_epoch(packets, capture), "of_all", found[names(found) != "packets"])
}

# The interval over which rates of a flow are computed: `packets` (those that may carry data, with `columns`), `elapsed_s` (NA if unknown), `first_ns`, and
# `end_ns`, the first moment after the interval. Without `duration_s` the interval ends with the last of these packets.
rate_interval <- function(capture, flow, columns, duration_s = NULL) {
  packets <- rows_of_flow(capture, flow, c("t_ns", columns))[may_carry(payload_bytes)]
  timed_ns <- packets$t_ns[!is.na(packets$t_ns)]
  if (length(timed_ns) == 0) return(list(packets = packets, elapsed_s = NA_real_, first_ns = NA_real_, end_ns = Inf))
  first_ns <- min(timed_ns)
  if (is.null(duration_s)) return(list(packets = packets, elapsed_s = (max(timed_ns) - first_ns) / 1e9, first_ns = first_ns, end_ns = Inf))
  end_ns <- first_ns + duration_s * 1e9
  # A capture that ends sooner does not show that the flow was silent afterwards.
  elapsed_s <- (min(end_ns, covered_ns(capture)) - first_ns) / 1e9
  list(packets = packets[t_ns < end_ns], elapsed_s = elapsed_s, first_ns = first_ns, end_ns = end_ns)
}

window_frame <- function(capture, width_s, from_s, to_s) {
  check_width(width_s)
  # Packets of pcapng's simple blocks have no time and are in no window.
  timed_ns <- if (anyNA(capture$t_ns)) capture$t_ns[!is.na(capture$t_ns)] else capture$t_ns
  # The earliest packet need not be the first of the file if the host has several CPUs.
  origin_ns <- if (length(timed_ns)) min(timed_ns) else 0
  last_ns <- if (length(timed_ns)) max(timed_ns) - origin_ns else 0
  from_ns <- round(fcoalesce(as.double(from_s %||% 0), 0) * 1e9)
  # A packet at the very end of the capture is included.
  to_ns <- if (is.null(to_s)) last_ns + 1 else round(to_s * 1e9)
  width_ns <- round(width_s * 1e9)
  count <- max(ceiling((to_ns - from_ns) / width_ns), 0)
  if (!isTRUE(count <= most_windows)) {
    cli::cli_abort("{.arg width_s}: the packets span {format_plain((to_ns - from_ns) / 1e9)} s, which is more than {most_windows} windows of {width_s} s",
                   class = "samovar_error_argument", call = NULL)
  }
  list(origin_ns = origin_ns, from_ns = from_ns, to_ns = to_ns, width_ns = width_ns, count = count,
       last_partial = from_ns + count * width_ns > to_ns)
}

most_windows <- 1e8

check_width <- function(width_s) {
  if (is.numeric(width_s) && length(width_s) == 1L && isTRUE(width_s > 0)) return(invisible(width_s))
  cli::cli_abort("{.arg width_s} must be one number of seconds above 0, not {.val {width_s}}",
                 class = "samovar_error_argument", call = NULL)
}

# Rows of `by`, `window` (from 0) and `bytes`, for every window of every flow that has packets, or of all packets together.
sums_by_flow <- function(capture, frame, by, layer) {
  flow <- if (is.null(by)) integer() else coded(capture$flow)
  sums <- window_sums(capture$t_ns, layer_bytes(capture, layer), flow, length(levels(flow)), frame)
  if (!is.null(by) && length(levels(flow)) == 0L) sums <- list(groups = integer(), bytes = double())
  out <- data.table(window = rep(seq_len(frame$count) - 1, length(sums$groups)), bytes = sums$bytes)
  set(out, which(is.nan(out$bytes)), "bytes", NA_real_)
  if (!is.null(by)) set(out, NULL, "flow", structure(rep(sums$groups, each = frame$count), levels = levels(flow), class = "factor"))
  out
}

# Return the bytes of each packet at a layer: NA if unknown, zero for packets without that layer (ARP, PAUSE).
layer_bytes <- function(capture, layer) {
  bytes <- switch(layer, ip = capture$ip_bytes, frame = capture$frame_bytes, payload = capture$payload_bytes,
                  tcpstat = capture$frame_bytes - 14L)
  lacking <- which(is.na(bytes))
  if (length(lacking) == 0L) return(bytes)
  has_layer <- if (is.null(capture$proto)) !is.na(capture$flow) else capture$proto %in% ip_protocols
  replace(bytes, lacking[!has_layer[lacking]], 0L)
}

ip_protocols <- c("tcp", "udp", "icmp", "icmp6", "ip")

describe_windows <- function(windows, capture, frame) {
  setattr(windows, "origin_ns", frame$origin_ns)
  setattr(windows, "epoch_s", attr(capture, "epoch_s"))
  setattr(windows, "width_s", frame$width_ns / 1e9)
  as_series(windows, "throughput_bps", "Throughput (bit/s)", "step")
}

#' Throughput of a flow at the link, IP and payload layers
#'
#' \deqn{throughput_{layer} = 8 \sum bytes_{layer} / T}
#'
#' T is the time from the flow's first to its last packet with payload, or `duration_s` from the first. If a time-out stops a flow shortly before its
#' generator ends, the flow lasts until the retransmissions arrive; a rate over its whole lifetime is then lower than the rate at which it sent. The sum is
#' over the flow's packets with payload within T, including packets whose payload is unknown because the snapshot length cut the header (`payload_bps` is
#' NA then). The layers count these bytes of a packet:
#'
#' - `link`: what the medium carries, that is, the frame with its check sequence (4 bytes), preamble and gap (20 bytes), together at least 84 bytes; NA if the
#'   capture's link type is not Ethernet.
#' - `frame`: the frame as captured.
#' - `ip`: the IP packet.
#' - `payload`: what TCP or UDP carries, including retransmissions ([goodput()] counts each byte once).
#'
#' @inheritParams goodput
#' @return A one-row data.table with `packets`, `elapsed_s`, `link_bps`, `frame_bps`, `ip_bps`, `payload_bps`. Rates are averages over `elapsed_s`, and NA if
#'   `elapsed_s` is 0.
#' @source IEEE 802.3, clauses 3 and 4; RFC 2544, section 20.
#' @examples
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' flow <- data_flows(receiver)$flow[1]
#' throughput_levels(receiver, flow)
#' throughput_levels(receiver, flow, duration_s = 1)
#' @export
throughput_levels <- function(capture, flow, duration_s = NULL) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  interval <- rate_interval(capture, flow, c("frame_bytes", "ip_bytes", "payload_bytes"), duration_s)
  x <- interval$packets
  elapsed_s <- if (isTRUE(interval$elapsed_s > 0)) interval$elapsed_s else NA_real_
  rate <- \(bytes) 8 * sum(as.double(bytes)) / elapsed_s
  data.table(packets = nrow(x), elapsed_s, link_bps = rate(bytes_on_link(x$frame_bytes, capture)),
             frame_bps = rate(x$frame_bytes), ip_bps = rate(x$ip_bytes), payload_bps = rate(x$payload_bytes))
}

# Bytes that frames occupy on the link, with check sequences, preambles and gaps; NA if the capture is not of Ethernet.
bytes_on_link <- function(frame_bytes, capture) {
  if (!(attr(capture, "link_type") %||% "ethernet") %in% "ethernet") return(rep(NA_real_, length(frame_bytes)))
  pmax(frame_bytes + frame_check_bytes, shortest_frame_bytes) + gap_bytes
}

frame_check_bytes <- 4
shortest_frame_bytes <- 64
gap_bytes <- 20

#' Packets of a capture within a time span of the trial
#'
#' The span is the same for all flows, even if they start at different times: if slow start or the last
#' packets are cut off, all flows are cut at the same moment of the trial.
#'
#' @param capture A table from [read_pcap()].
#' @param origin_s The start of traffic, Unix seconds on the capture's clock.
#' @param from_s,to_s The span, seconds since `origin_s`: packets at `from_s` are included, packets at `to_s` are not.
#' @return The rows of the capture, with its attributes.
#' @examples
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' # Without the first second of the trial.
#' start_s <- attr(receiver, "epoch_s") + receiver$t_ns[1] / 1e9
#' nrow(trim_capture(receiver, start_s, from_s = 1)) / nrow(receiver)
#' @export
trim_capture <- function(capture, origin_s, from_s = -Inf, to_s = Inf) {
  check_capture(capture)
  t_s <- seconds_since(capture, origin_s)
  with_attributes(capture[which(t_s >= from_s & t_s < to_s)], capture)[]
}

#' Bytes and rate per window of a trial, the same windows for every flow
#'
#' Windows start at the start of traffic, whichever flow sends first: window k contains the packets with
#'
#' \deqn{from + k\,w \le t < from + (k + 1)\,w}
#'
#' A window without packets is zero, not missing; every flow has all windows. `partial` marks windows that are covered in part only: those that extend beyond
#' the span, or beyond the end of a truncated capture. The mean over the complete windows is the flow's mean rate. Bytes and rate of a window are NA if the
#' snapshot length cut off the payload size of one of its packets.
#'
#' @inheritParams throughput_windows
#' @param origin_s The start of traffic, Unix seconds on the capture's clock.
#' @param from_s,to_s The span, seconds since `origin_s`; by default to the last packet of the capture.
#' @param flows Flows to count, in this order; by default all flows of the capture.
#' @return A data.table with `flow`, `t_s` (start of the window since `origin_s`), `middle_s`, `bytes`, `packets`, `throughput_bps`, `partial`.
#' @examples
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' start_s <- attr(receiver, "epoch_s") + receiver$t_ns[1] / 1e9
#' trial_windows(receiver, start_s, width_s = 1, flows = data_flows(receiver)$flow[1])
#' @export
trial_windows <- function(capture, origin_s, width_s, from_s = 0, to_s = NULL, flows = NULL, layer = c("ip", "frame", "payload")) {
  check_capture(capture)
  check_width(width_s)
  layer <- match.arg(layer)
  at_ns <- ns_since(capture, origin_s) - round(from_s * 1e9)
  width_ns <- round(width_s * 1e9)
  # A packet at the very end of the capture is included.
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

# Nanoseconds since `origin_s` as whole numbers; exact if `origin_s` is exact.
ns_since <- function(x, origin_s) {
  whole_s <- floor(origin_s)
  (attr(x, "epoch_s") - whole_s) * 1e9 - round((origin_s - whole_s) * 1e9) + x$t_ns
}

# Metrics of all flows of a trial together. `sizes` has a row per flow: `down` (TRUE if it comes from a sender of the testbed), `competes` (FALSE for echo
# requests, which only measure the path), `start_s` (planned), `throughput_bps`, `ip_bytes`, `payload_bytes`, and on the controller's clock `first_s` and
# `last_s`, the interval in which the bytes were counted.
metrics_together <- function(trial) {
  sizes <- trial$sizes
  if (is.null(sizes) || nrow(sizes) == 0) return(NULL)
  competing <- sizes[sizes$competes]
  list(throughput_total_bps = rate_together(sizes), link_utilisation_share = utilisation(sizes[sizes$down], trial$manifest$resolved$path$down$rate_bps),
       domination_share = domination(competing), fairness_jain = jain(competing$throughput_bps))
}

utilisation <- function(sizes, rate_bps) {
  if (nrow(sizes) == 0 || length(rate_bps) == 0) return(NA)
  rate_together(sizes) / rate_bps
}

# The rate of flows from the start of the first to the end of the last. The sum of their rates would be higher than the link's rate if they follow each other.
rate_together <- function(sizes) 8 * sum(sizes$ip_bytes) / (max(sizes$last_s) - min(sizes$first_s))

# The payload of the flow that starts first, relative to all payload in its direction. A direction with only one flow is ignored.
domination <- function(sizes) {
  competing <- sizes[, .SD[.N > 1], by = "down"]
  if (nrow(competing) == 0) return(NA)
  first <- competing[order(start_s)][1]
  first$payload_bytes / sum(competing$payload_bytes[competing$down == first$down])
}

# Jain, Chiu, Hawe: A quantitative measure of fairness and discrimination, DEC-TR-301, 1984.
jain <- function(x) if (length(x) > 1) sum(x)^2 / (length(x) * sum(x^2)) else NA

# `ahead_s` is the offset of the clock of the host with capture `far`, see clocks_ahead_s().
flow_size <- function(flow, far, name, manifest, ahead_s = 0) {
  interval <- rate_interval(far, name, c("ip_bytes", "payload_bytes"), sending_s(flow, manifest))
  # One packet, or packets at one instant, have no rate.
  if (nrow(interval$packets) < 2 || !isTRUE(interval$elapsed_s > 0)) return(NULL)
  ip_bytes <- sum(as.double(interval$packets$ip_bytes))
  first_s <- attr(far, "epoch_s") + interval$first_ns / 1e9 - ahead_s
  data.table(
    down = is_down(flow, manifest), competes = !identical(flow$generator, "ping"), start_s = as.double(flow$start_s %||% 0),
    throughput_bps = 8 * ip_bytes / interval$elapsed_s, ip_bytes,
    payload_bytes = sum(as.double(interval$packets$payload_bytes)), first_s = first_s, last_s = first_s + interval$elapsed_s
  )
}

# The time for which a flow's generator sends: its planned duration, or less if the traffic of the trial ended sooner. NULL if the flow ends after a given
# number of bytes.
sending_s <- function(flow, manifest) {
  if (is.null(flow$duration_s)) return(NULL)
  left_s <- as.double(manifest$t_end_s %||% Inf) - as.double(manifest$t_start_s %||% 0) - as.double(flow$start_s %||% 0)
  min(as.double(flow$duration_s), if (left_s > 0) left_s)
}

# Return the time at which the last flow of a trial stops sending, in seconds since the start of traffic; Inf
# if a flow ends after a given number of bytes.
sending_ends_s <- function(manifest) {
  ends_s <- lapply(manifest$resolved$flows, \(flow) as.double(flow$start_s %||% 0) + (sending_s(flow, manifest) %||% Inf))
  max(unlist(ends_s))
}
