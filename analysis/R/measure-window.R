#' The window that a flow's receiver offers
#'
#' Both SYNs must offer scaling for it to be used; the window of a SYN itself is never scaled. Without the
#' handshake in the capture, or where the snapshot length cut headers and a SYN shows no scale, the scale is not known and the windows are given as they are.
#'
#' @param capture A table of [read_pcap()].
#' @param flow Name of the flow that carries the data; its receiver is the one that offers.
#' @return A data.table `t_ns`, `window_bytes`, one row per change; attributes `max_bytes`, `wscale` (NA when
#'   it is not known, 0 when scaling is off) and `epoch_s`.
#' @source RFC 7323, section 2.
#' @export
advertised_window <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  offered <- rows_of_flow(capture, reverse_flow(flow), c("t_ns", "flags", "window", "wscale"))
  # A reset's window means nothing (RFC 9293, section 3.10.7).
  offered <- offered[bitwAnd(flags, 4L) == 0L & bitwAnd(flags, 18L) > 0L]
  scale <- window_shift(offered, rows_of_flow(capture, flow, c("flags", "wscale")), isTRUE(attr(capture, "cut_packets") > 0))
  offered <- offered[!is.na(window)]
  factor <- fifelse(bitwAnd(offered$flags, 2L) > 0L | is.na(scale), 1, 2^scale)
  window <- offered[, .(t_ns, window_bytes = window * factor)]
  window <- window[rleid(window_bytes) != shift(rleid(window_bytes), fill = 0L)]
  setattr(window, "max_bytes", if (nrow(window)) max(window$window_bytes) else NA_real_)
  setattr(window, "wscale", scale)
  setattr(window, "epoch_s", attr(capture, "epoch_s"))
  window[]
}

# The receiver's scale when both ends offered one, 0 when either did not, NA when either SYN is missing. A SYN may have lost its options to the
# snapshot length: then it is not known whether it offered any.
window_shift <- function(receiver, sender, cut) {
  receiver_syn <- receiver[bitwAnd(flags, 2L) > 0L, wscale]
  sender_syn <- sender[bitwAnd(flags, 2L) > 0L, wscale]
  if (length(receiver_syn) == 0L || length(sender_syn) == 0L) return(NA_integer_)
  if (anyNA(receiver_syn) || anyNA(sender_syn)) return(if (cut) NA_integer_ else 0L)
  receiver_syn[1L]
}
