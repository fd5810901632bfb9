#' The window that a flow's receiver offers
#'
#' @param capture A table of [read_pcap()].
#' @param flow Name of the flow that carries the data.
#' @return A data.table `t_ns`, `window_bytes` (scaled by the SYN's option, RFC 7323), one row per change; attributes `max_bytes`, `wscale`
#'   (NA when the handshake was not captured: `window_bytes` is then unscaled), `scaled`.
#' @export
advertised_window <- function(capture, flow) {
  cli::cli_abort("{.fn advertised_window} is being written", class = "samovar_error_todo")
}
