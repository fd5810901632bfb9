#' Round-trip times from two captures by synthetic packet pairs
#'
#' Every packet that returns from `mon` to `ref` is paired with the last packet that reached `mon` strictly
#' before it left there, each packet being used once; the round-trip time is what passed between the two at
#' `ref` less what passed at `mon`. Only differences on one clock are taken, so the two clocks need not agree.
#'
#' Packets are recognised by what routers leave alone: addresses, protocol, IP id, ports, sequence and
#' acknowledgement numbers, offset, flags, window and TCP options (for UDP the first 12 bytes of payload, for ICMP its first 20).
#' Both captures should have the same snapshot length.
#'
#' @param ref Capture at the flow's sender, of [read_pcap()].
#' @param mon Capture at the flow's receiver; its clock may differ in offset and rate.
#' @param flow Name of the flow from `ref` to `mon`.
#' @param back Name of the flow from `mon` to `ref`; where two flows of one way each make the pairs (UDP, both hosts
#'   sending), it is the other one.
#' @return A data.table `t_ns` (ns since `ref`'s `epoch_s`: midway between sending and return), `rtt_ms`,
#'   `arrival_ns` (when the packet that went out reached `mon`, on its clock, since its `epoch_s`); attributes
#'   `epoch_s`, `matched`, `unmatched`, `ambiguous` (packets of both directions: found at the other end, not
#'   found, with an id that is not unique), `floored` (negative times set to 0) and `matching` (a data.table
#'   by direction).
#' @source CAIA-TR-060707A, CAIA-TR-130730A (SPP).
#' @export
packet_pair_rtt <- function(ref, mon, flow, back = reverse_flow(flow)) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flow <- check_flow(ref, flow)
  match <- matched_pairs(ref, mon, flow, as.character(back))
  rtt <- setDT(match$pairs[c("t_ns", "rtt_ms", "arrival_ns")])
  describe_match(rtt, match, ref, flow)
}

#' Packet pair round-trip times of many flows with one join
#'
#' @inheritParams packet_pair_rtt
#' @param flows Flows from `ref` to `mon`; those that carry data when not given.
#' @return As [packet_pair_rtt()] with a column `flow` (factor) in front, ordered by flow and time.
#' @export
rtt_by_flow <- function(ref, mon, flows = NULL) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flows <- flows_or_data_flows(ref, flows)
  match <- matched_pairs(ref, mon, flows, reverse_flow(flows))
  flow <- structure(match$pairs$group, levels = flows, class = "factor")
  rtt <- setDT(c(list(flow = flow), match$pairs[c("t_ns", "rtt_ms", "arrival_ns")]))
  describe_match(rtt, match, ref, flows)
}

#' Packets lost between two captures
#'
#' A packet sent after the last one that was seen at both ends is not judged: it may have been in flight when
#' a capture ended.
#'
#' @inheritParams rtt_by_flow
#' @return A data.table `flow` (factor), `sent_packets`, `lost_packets`, `loss_share` (of the packets judged),
#'   `ambiguous_packets`, `unjudged_packets`.
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
#' A sample is the time from a segment (SYN and FIN count) to the first acknowledgement of exactly its end.
#' There is none from a segment of which any byte was sent twice (Karn), nor from one that was sent before
#' another with lower sequence numbers: its acknowledgement waited for that one. Acknowledgements that cover
#' more than they end at give no sample for the rest. Segments sent into a closed window are probes and left
#' out. These are tcptrace's rules.
#'
#' @param capture A table of [read_pcap()], best of the data sender's host.
#' @param flow Name of the flow that carries the data.
#' @return A data.table `t_ns` (when the acknowledgement was seen), `rtt_ms`, `bytes` (sequence space of the
#'   segment).
#' @source tcptrace 6.6.7; RFC 6298, section 3.
#' @export
data_ack_rtt <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  rtt <- setDT(acknowledged_segments(capture, flow, reverse_flow(flow)))
  setattr(rtt, "epoch_s", attr(capture, "epoch_s"))
  rtt[]
}

#' Round-trip time of the handshake
#'
#' From the SYN of `flow` to the first packet that acknowledges it: SYN to SYN-ACK for the client's flow at
#' the client's host, SYN-ACK to ACK for the server's flow at the server's host. When the SYN was sent more
#' than once, the time stamps option tells which one was answered (RFC 7323); without it there is no answer.
#' A SYN that was refused with a reset has none; where ports are used again, the first connection that came about counts.
#'
#' @param capture A capture at the host that sends `flow`.
#' @param flow Name of the flow.
#' @return Milliseconds; NA when the capture has no handshake or it is ambiguous.
#' @export
handshake_rtt <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  syn <- rows_of_flow(capture, flow, c("t_ns", "seq", "flags", "tsval", "payload_bytes"))[bitwAnd(flags, 2L) > 0L]
  answers <- rows_of_flow(capture, reverse_flow(flow), c("t_ns", "ack", "flags", "tsecr"))[bitwAnd(flags, 20L) == 16L]
  for (number in unique(syn$seq)) {
    own <- syn[seq == number]
    # With data in it (RFC 7413) the SYN may be acknowledged alone or with them.
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

describe_match <- function(rtt, match, ref, flows) {
  sides <- rbindlist(list(out = setDT(match$out), back = setDT(match$back)), idcol = "direction")
  matching <- sides[, .(
    flow = rep(flows, 2L), direction, sent, matched, unmatched = sent - matched, ambiguous, unjudged
  )]
  setattr(rtt, "epoch_s", attr(ref, "epoch_s"))
  for (count in c("matched", "unmatched", "ambiguous")) setattr(rtt, count, sum(matching[[count]]))
  setattr(rtt, "floored", match$pairs$floored)
  setattr(rtt, "matching", matching)
  if (match$pairs$floored > nrow(rtt) / 2) {
    cli::cli_warn(
      "most round-trip times came out negative: {.arg ref} must be the capture at the sender of {.val {flows[1L]}}",
      class = "samovar_warning_direction"
    )
  }
  rtt[]
}
