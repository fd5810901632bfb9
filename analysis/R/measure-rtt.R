# Measure round-trip times, jitter, loss and reordering of packets, from two captures or one.

#' Round-trip times from two captures by synthetic packet pairs
#'
#' Every packet that returns from `mon` to `ref` is paired with the last packet that reached `mon` strictly before the returning packet left; each
#' packet is used once. The round-trip time is the time between the two packets at `ref` minus the time between them at `mon`. Only differences on one
#' clock are used, so the two clocks need not agree.
#'
#' Packets are recognised by the fields that routers do not change: addresses, protocol, IP id, ports, sequence and
#' acknowledgement numbers, offset, flags, window and TCP options (for UDP the first 12 bytes of payload, for ICMP the first 20).
#' Both captures should have the same snapshot length. Only the columns `t_ns`, `flow` and `id` of the captures are used.
#'
#' @param ref Capture at the flow's sender, from [read_pcap()].
#' @param mon Capture at the flow's receiver; its clock may differ in offset and rate.
#' @param flow Name of the flow from `ref` to `mon`.
#' @param back Name of the flow from `mon` to `ref`. If UDP traffic in both directions is recorded as two flows, this is the other flow.
#' @return A data.table with `t_ns` (ns since `ref`'s `epoch_s`: midway between sending and return), `rtt_ms`,
#'   `arrival_ns` (arrival of the outgoing packet at `mon`, on `mon`'s clock, since `mon`'s `epoch_s`); attributes `epoch_s`, `matched`, `unmatched` and
#'   `ambiguous` (numbers of packets in both directions that were found at the other end, were not found there, or have an id that is not unique),
#'   `floored` (number of negative times, which were set to 0) and `matching` (a data.table with such numbers by flow and direction).
#' @source CAIA-TR-060707A, CAIA-TR-130730A (SPP).
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' flow <- data_flows(sender)$flow[1]
#' rtt <- packet_pair_rtt(sender, receiver, flow)
#' rtt
#' attr(rtt, "matching")
#' @export
packet_pair_rtt <- function(ref, mon, flow, back = reverse_flow(flow)) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flow <- check_flow(ref, flow)
  match <- matched_pairs(ref, mon, flow, as.character(back))
  rtt <- setDT(match$pairs[c("t_ns", "rtt_ms", "arrival_ns")])
  describe_match(rtt, match, ref, mon, flow)
}

#' Packet-pair round-trip times of many flows at once
#'
#' @inheritParams packet_pair_rtt
#' @param flows Flows from `ref` to `mon`; by default those of `data_flows(ref)`.
#' @return A table like that of [packet_pair_rtt()] with a first column `flow` (factor), ordered by flow and time.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' rtt_by_flow(sender, receiver)[, .(samples = .N, median_ms = median(rtt_ms)), by = flow]
#' @export
rtt_by_flow <- function(ref, mon, flows = NULL) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flows <- flows_or_data_flows(ref, flows)
  match <- matched_pairs(ref, mon, flows, reverse_flow(flows))
  flow <- structure(match$pairs$group, levels = flows, class = "factor")
  rtt <- setDT(c(list(flow = flow), match$pairs[c("t_ns", "rtt_ms", "arrival_ns")]))
  describe_match(rtt, match, ref, mon, flows)
}

#' Packets lost between two captures
#'
#' Packets sent after the last packet that was seen at both ends are not judged, since they may have been in flight when a capture ended. Packets
#' that would have arrived before the first packet in `mon` are not judged either, since `mon` may have begun later.
#'
#' @inheritParams rtt_by_flow
#' @return A data.table with `flow` (factor), `sent_packets`, `lost_packets`, `loss_share` (of the packets judged),
#'   `ambiguous_packets`, `unjudged_packets`.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' loss_by_flow(sender, receiver)
#' @export
loss_by_flow <- function(ref, mon, flows = NULL) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flows <- flows_or_data_flows(ref, flows)
  out <- matched_counts(ref, mon, flows, reverse_flow(flows))$out
  lost <- out$sent - out$matched - out$unjudged
  judged <- out$sent - out$unjudged
  data.table(
    flow = factor(flows, levels = flows), sent_packets = out$sent, lost_packets = lost,
    loss_share = fifelse(judged > 0, lost / judged, NA_real_),
    ambiguous_packets = out$ambiguous, unjudged_packets = out$unjudged
  )
}

#' Round-trip times of data and its acknowledgement in one capture
#'
#' A sample is the time from a segment (also a SYN or FIN) to the first acknowledgement of exactly its end. A segment gives no sample if one of its bytes
#' was sent twice (Karn's algorithm), or if it was first acknowledged in part. A segment also gives no sample if a segment with lower sequence numbers was sent
#' later, because the acknowledgement then had to wait for that segment. An acknowledgement of several segments gives a sample for the last segment only.
#' Segments sent into a closed window are probes and are ignored. tcptrace has the same rules.
#'
#' @param capture A capture from [read_pcap()], preferably recorded at the sender's host.
#' @param flow Name of the flow that carries the data.
#' @return A data.table with `t_ns` (time of the acknowledgement), `rtt_ms`, `bytes` (sequence space of the segment).
#' @source tcptrace 6.6.7; RFC 6298, section 3.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' flow <- data_flows(sender)$flow[1]
#' data_ack_rtt(sender, flow)
#' @export
data_ack_rtt <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  rtt <- setDT(acknowledged_segments(capture, flow, reverse_flow(flow)))
  setattr(rtt, "epoch_s", attr(capture, "epoch_s"))
  as_series(rtt, "rtt_ms", "RTT (ms)")
}

#' Round-trip time of the handshake
#'
#' The time from the SYN of `flow` to the first packet that acknowledges it: SYN to SYN-ACK for the client's flow at
#' the client's host, SYN-ACK to ACK for the server's flow at the server's host. If the SYN was sent more than once, the time stamps option shows
#' which SYN was answered (RFC 7323); without that option the result is NA. The result is also NA if the SYN was answered with a reset. If ports are reused,
#' the first established connection counts.
#'
#' @param capture A capture at the host that sends `flow`.
#' @param flow Name of the flow.
#' @return Milliseconds; NA if the capture has no handshake or the handshake is ambiguous.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' handshake_rtt(sender, data_flows(sender)$flow[1])
#' @export
handshake_rtt <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  syn <- rows_of_flow(capture, flow, c("t_ns", "seq", "flags", "tsval", "payload_bytes"))[bitwAnd(flags, 2L) > 0L]
  answers <- rows_of_flow(capture, reverse_flow(flow), c("t_ns", "ack", "flags", "tsecr"))[bitwAnd(flags, 20L) == 16L]
  for (number in unique(syn$seq)) {
    own <- syn[seq == number]
    # A SYN with data (RFC 7413) may be acknowledged with or without its data.
    ends <- (number + 1 + c(0, fcoalesce(own$payload_bytes, 0L))) %% 2^32
    answer <- answers[ack %in% ends & t_ns >= own$t_ns[1L]]
    if (nrow(answer) > 0L) return(answered_after_ms(own, answer))
  }
  NA_real_
}

answered_after_ms <- function(syn, answer) {
  asked <- if (nrow(syn) == 1L) syn else syn[tsval %in% answer$tsecr[1L]]
  if (nrow(asked) != 1L) return(NA_real_)
  (answer$t_ns[1L] - asked$t_ns) / 1e6
}

flows_or_data_flows <- function(ref, flows) {
  if (is.null(flows)) return(data_flows(ref)$flow)
  vapply(as.character(flows), \(flow) check_flow(ref, flow), "", USE.NAMES = FALSE)
}

describe_match <- function(rtt, match, ref, mon, flows) {
  sides <- rbindlist(list(out = setDT(match$out), back = setDT(match$back)), idcol = "direction")
  matching <- sides[, .(
    flow = rep(flows, 2L), direction, sent, matched, unmatched = sent - matched, ambiguous, unjudged
  )]
  setattr(rtt, "epoch_s", attr(ref, "epoch_s"))
  for (count in c("matched", "unmatched", "ambiguous")) setattr(rtt, count, sum(matching[[count]]))
  setattr(rtt, "floored", match$pairs$floored)
  setattr(rtt, "arrival_epoch_s", attr(mon, "epoch_s"))
  setattr(rtt, "matching", matching)
  if (match$pairs$floored > nrow(rtt) / 2) {
    cli::cli_warn(
      "most round-trip times are negative: {.arg ref} must be the capture at the sender of {.val {flows[1L]}}",
      class = c("samovar_warning_direction", "samovar_warning")
    )
  }
  as_series(rtt, "rtt_ms", "RTT (ms)")
}

#' Jitter as the difference of consecutive round-trip times
#'
#' \deqn{J_i = |RTT_i - RTT_{i-1}|}
#'
#' over the packets that have an RTT, in the order in which they were sent.
#'
#' @param rtt Round-trip times of one flow in the order of sending: `rtt_ms`, as from [packet_pair_rtt()].
#' @return Jitter in milliseconds, one value fewer than round-trip times.
#' @source CAIA-TR-121113A, section V-D, Figure 11.
#' @examples
#' rtt_jitter(data.frame(rtt_ms = c(10, 12, 11)))
#' @export
rtt_jitter <- function(rtt) abs(diff(as.double(rtt$rtt_ms)))

#' Interarrival jitter
#'
#' Let S be the sending times and R the arrival times of the packets that reached the other end, in the order of arrival:
#'
#' \deqn{D_i = (R_i - R_{i-1}) - (S_i - S_{i-1}), \quad J_i = J_{i-1} + (|D_i| - J_{i-1}) / 16}
#'
#' J starts at 0. Only differences on one clock are used, so the two clocks need not agree.
#'
#' @inheritParams packet_pair_rtt
#' @return A data.table with `t_ns` (of arrival, on `mon`'s clock since its `epoch_s`), `transit_change_ms` (D), `jitter_ms` (J); attribute `epoch_s`.
#' @source RFC 3550, section 6.4.1 and appendix A.8.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' flow <- data_flows(sender)$flow[1]
#' interarrival_jitter(sender, receiver, flow)
#' @export
interarrival_jitter <- function(ref, mon, flow) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flow <- check_flow(ref, flow)
  rows <- setDT(matched_rows(ref, mon, flow, reverse_flow(flow))$out[c("row", "other")])[!is.na(other)]
  x <- data.table(sent_ns = ref$t_ns[rows$row], t_ns = mon$t_ns[rows$other])
  setorder(x, t_ns)
  as_series(keep_epoch(smoothed_jitter(x$sent_ns, x$t_ns), mon), "jitter_ms", "Interarrival jitter (ms)", "line")
}

# The jitter of packets in the order of arrival.
smoothed_jitter <- function(sent_ns, t_ns) {
  change_ms <- c(0, diff(t_ns) - diff(sent_ns))[seq_along(t_ns)] / 1e6
  smoothed <- if (length(t_ns) > 0) as.double(stats::filter(abs(change_ms) / 16, 15 / 16, method = "recursive")) else double()
  data.table(t_ns, transit_change_ms = change_ms, jitter_ms = smoothed)
}

#' Reordered packets between two captures, not counting losses
#'
#' Packets are numbered 1, 2, ... in the order of sending. A packet is reordered if a packet that was sent later arrived earlier, that is, if its
#' number is below the next expected number,
#'
#' \deqn{NextExp = 1 + \max(\mathrm{numbers\ arrived\ so\ far})}
#'
#' A retransmission is a separate packet with its own sending time, so segments that TCP's receiver sees out of order because of a loss are not
#' counted. Packets that were sent after the last packet that arrived, or would have arrived before `mon` began, count as unjudged, not as lost.
#'
#' @inheritParams packet_pair_rtt
#' @return A one-row data.table with `sent_packets`, `arrived_packets`, `lost_packets`, `unjudged_packets`, `reordered_packets`, `reordered_share` (of the
#'   packets that arrived), `extent_packets` (the largest reordering extent: by how many packets a packet arrived later than the
#'   first packet that overtook it), `ambiguous_packets` (with an id that is not unique).
#' @source RFC 4737, sections 3.3 and 4.2.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' flow <- data_flows(sender)$flow[1]
#' arrival_order(sender, receiver, flow)
#' @export
arrival_order <- function(ref, mon, flow) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flow <- check_flow(ref, flow)
  arrived <- in_order_of_arrival(judged_packets(ref, mon, flow), mon)
  loss <- loss_by_flow(ref, mon, flow)
  data.table(
    sent_packets = loss$sent_packets, arrived_packets = nrow(arrived), lost_packets = loss$lost_packets, unjudged_packets = loss$unjudged_packets,
    reordered_packets = sum(arrived$late), reordered_share = if (nrow(arrived) > 0) mean(arrived$late) else NA_real_,
    extent_packets = reordering_extent(arrived$number, arrived$late), ambiguous_packets = loss$ambiguous_packets
  )
}

# Packets of a flow in the order of sending: `row` in `ref`, `other` (row in `mon`, NA if lost), `number` from 1. Packets that loss_by_flow() does not judge
# are left out.
judged_packets <- function(ref, mon, flow, back = reverse_flow(flow)) {
  sent <- setDT(matched_rows(ref, mon, flow, back)$out[c("row", "other")])[order(ref$t_ns[row])]
  arrived <- which(!is.na(sent$other))
  if (length(arrived) == 0) return(sent[0][, number := integer()][])
  first <- sent[arrived[1]]
  running_ns <- mon$t_ns[first$other] - began_ns(mon)
  sent[seq_len(max(arrived))][!is.na(other) | ref$t_ns[row] >= ref$t_ns[first$row] - running_ns][, number := .I][]
}

# The time since which a capture shows what was sent, ns since its `epoch_s`.
began_ns <- function(capture) attr(capture, "first_ns") %||% min(capture$t_ns, na.rm = TRUE)

# The packets that arrived, in that order; `late` is TRUE for a packet that arrived after a packet sent later.
in_order_of_arrival <- function(judged, mon) {
  judged[!is.na(other)][order(mon$t_ns[other], other)][, late := number < shift(cummax(number), fill = 0L)][]
}

# The largest number of places by which a late packet arrived after the first packet with a greater number.
reordering_extent <- function(numbers, late) {
  at <- which(late)
  if (length(at) == 0) return(0)
  ahead <- cummax(numbers)
  as.double(max(at - (findInterval(numbers[at], ahead) + 1L)))
}

#' Packets of a sender's capture that are missing in the receiver's capture
#' @return A table with `t_ns`, and with attribute `epoch_s`; packets that [loss_by_flow()] does not judge are left out.
#' @noRd
lost_packets <- function(ref, mon, flow) {
  keep_epoch(data.table(t_ns = ref$t_ns[judged_packets(ref, mon, flow)[is.na(other)]$row]), ref)
}
