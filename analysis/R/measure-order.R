#' Packets that overtook each other between two captures, apart from those that were lost
#'
#' Of the packets in order of sending, numbered 1, 2, ..., one is reordered when one sent after it arrived before it: its number is
#' below that of the next expected,
#'
#' \deqn{NextExp = 1 + \max(\mathrm{numbers\ arrived\ so\ far})}
#'
#' A retransmission is a packet of its own and arrives in order of its sending: what TCP's receiver sees out of order because of a
#' loss is not counted. Packets sent after the last one that arrived may have been in flight when a capture ended: they are
#' neither lost nor judged.
#'
#' @inheritParams packet_pair_rtt
#' @return A one-row data.table `sent_packets`, `arrived_packets`, `lost_packets`, `unjudged_packets`, `reordered_packets`, `reordered_share` (of those that
#'   arrived), `extent_packets` (the farthest that one came in behind the first packet that overtook it), `ambiguous_packets` (with an id that
#'   is not unique).
#' @source RFC 4737, sections 3.3 and 4.2.
#' @export
arrival_order <- function(ref, mon, flow) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flow <- check_flow(ref, flow)
  sent <- setDT(matched_rows(ref, mon, flow, reverse_flow(flow))$out[c("row", "other")])
  sent[, number := order(order(ref$t_ns[row]))]
  arrived <- sent[!is.na(other)][order(mon$t_ns[other], other)]
  judged <- if (nrow(arrived) > 0) sent[number <= max(arrived$number)] else sent[0]
  late <- arrived$number < shift(cummax(arrived$number), fill = 0L)
  loss <- loss_by_flow(ref, mon, flow)
  data.table(
    sent_packets = nrow(sent), arrived_packets = nrow(arrived), lost_packets = sum(is.na(judged$other)), unjudged_packets = nrow(sent) - nrow(judged),
    reordered_packets = sum(late), reordered_share = if (nrow(arrived) > 0) mean(late) else NA_real_, extent_packets = reordering_extent(arrived$number, late),
    ambiguous_packets = loss$ambiguous_packets
  )
}

# For each late packet how many places behind the first with a greater number it came in; the greatest of these.
reordering_extent <- function(numbers, late) {
  at <- which(late)
  if (length(at) == 0) return(0)
  ahead <- cummax(numbers)
  as.double(max(at - (findInterval(numbers[at], ahead) + 1L)))
}

#' Packets of a sender's capture that the receiver's lacks
#' @return A table `t_ns` with attribute `epoch_s`; what was sent after the last packet that arrived is left out.
#' @noRd
lost_packets <- function(ref, mon, flow) {
  sent <- setDT(matched_rows(ref, mon, flow, reverse_flow(flow))$out[c("row", "other")])
  arrived <- which(!is.na(sent$other))
  gone <- if (length(arrived) > 0) sent[seq_len(max(arrived))][is.na(other)]$row else integer()
  lost <- data.table(t_ns = ref$t_ns[gone])
  setattr(lost, "epoch_s", attr(ref, "epoch_s"))
  lost
}
