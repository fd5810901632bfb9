#' Round-trip times from two captures by synthetic packet pairs
#'
#' @param ref Capture at the flow's sender, of [read_pcap()].
#' @param mon Capture at the flow's receiver; its clock may differ in offset and rate.
#' @param flow Name of the flow from `ref` to `mon`.
#' @return A data.table `t_ns` (ns since `ref`'s `epoch_s`), `rtt_ms`; attributes `epoch_s`, `matched`, `unmatched`, `ambiguous`
#'   (packets, both directions) and `matching` (a data.table by direction).
#' @source CAIA-TR-060707A, CAIA-TR-130730A (SPP).
#' @export
packet_pair_rtt <- function(ref, mon, flow) {
  cli::cli_abort("{.fn packet_pair_rtt} is being written", class = "samovar_error_todo")
}

#' Packet pair round-trip times of many flows with one join
#'
#' @inheritParams packet_pair_rtt
#' @param flows Flows from `ref` to `mon`; those that carry data when not given.
#' @return As [packet_pair_rtt()] with a column `flow` (factor) in front.
#' @export
rtt_by_flow <- function(ref, mon, flows = NULL) {
  cli::cli_abort("{.fn rtt_by_flow} is being written", class = "samovar_error_todo")
}

#' Packets lost between two captures
#'
#' @inheritParams rtt_by_flow
#' @return A data.table `flow`, `sent_packets`, `lost_packets`, `loss_share`, `ambiguous_packets`, `unjudged_packets`.
#' @export
loss_by_flow <- function(ref, mon, flows = NULL) {
  cli::cli_abort("{.fn loss_by_flow} is being written", class = "samovar_error_todo")
}

#' Round-trip times of data and its acknowledgement in one capture
#'
#' @param capture A table of [read_pcap()], best of the data sender's host.
#' @param flow Name of the flow that carries the data.
#' @return A data.table `t_ns` (when the acknowledgement was seen), `rtt_ms`.
#' @export
data_ack_rtt <- function(capture, flow) {
  cli::cli_abort("{.fn data_ack_rtt} is being written", class = "samovar_error_todo")
}

#' Round-trip time of the handshake: SYN to SYN-ACK at the client
#'
#' @param capture A capture at the client's host.
#' @param flow Name of the flow, in either direction.
#' @return Milliseconds; NA when the capture has no handshake or its SYN was sent again.
#' @export
handshake_rtt <- function(capture, flow) {
  cli::cli_abort("{.fn handshake_rtt} is being written", class = "samovar_error_todo")
}
