#' Bytes and rate per window of time
#'
#' @param capture A table of [read_pcap()].
#' @param width_s Width of a window, seconds.
#' @param from_s,to_s First and last moment, seconds since the capture's first packet; the whole capture when not given.
#' @param by Columns to sum by; "flow", or NULL for all packets together.
#' @param layer "ip" (IP total length), "frame" (with link header), "payload" (transport payload), "tcpstat" (frame less 14 bytes).
#' @return A data.table `flow`, `t_s` (start of the window, seconds since the first packet of the capture), `bytes`, `throughput_bps`, `partial`
#'   (TRUE for a last window shorter than `width_s`, whose rate is over its own width). Empty windows count as zero.
#' @export
throughput_windows <- function(capture, width_s, from_s = NULL, to_s = NULL, by = "flow",
                               layer = c("ip", "frame", "payload", "tcpstat")) {
  cli::cli_abort("{.fn throughput_windows} is being written", class = "samovar_error_todo")
}

#' Windows as tcpstat 1.5 counts them
#'
#' @inheritParams throughput_windows
#' @return A data.table `t_s` (tcpstat's %R: end of the window), `packets` (%n), `bytes` (%N), `byte_rate` (%B), `bit_rate_bps` (%b).
#' @export
tcpstat_windows <- function(capture, width_s) {
  cli::cli_abort("{.fn tcpstat_windows} is being written", class = "samovar_error_todo")
}

#' Sequence space delivered, and what was sent twice
#'
#' @param capture A table of [read_pcap()].
#' @param flow Name of the flow that carries the data.
#' @return A one-row data.table `flow`, `unique_bytes`, `payload_bytes`, `retransmitted_packets`, `retransmitted_bytes`,
#'   `data_packets`, `acked_bytes`, `first_s`, `last_s`, `goodput_bps`.
#' @export
goodput <- function(capture, flow) {
  cli::cli_abort("{.fn goodput} is being written", class = "samovar_error_todo")
}
