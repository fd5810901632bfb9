#' Was a sender held back by PAUSE frames, and who saw them?
#'
#' A capture need not hold the PAUSE frames that silenced its host: many cards answer them and pass none on. What the card counted tells
#' then, and where it counts nothing the sender's own ring does: it refuses packets while the interface sends more slowly than it has sent
#' before, which a link that nobody silences does not. Where no ring overflowed nothing tells, and this says so.
#'
#' @param seen PAUSE frames that a capture or a logger on the sender saw.
#' @param counted PAUSE frames that the card counted as received; NA where the driver counts none.
#' @param refused Packets that the sender's own ring refused; NA where nobody counted.
#' @param held_share Rate of the interface while its ring refused packets, as a share of the fastest it sent; NA where it refused none.
#' @param lost_share Share of the packets sent that the other end lacks; NA where it is not known.
#' @return "seen"; "swallowed": there were PAUSE frames and the capture lacks them; "none": the counters show that there were none, or packets
#'   were lost beyond a ring that never filled, as where a device drops; "not told": no counter decides it.
#' @source CAIA-TR-130121A, section II-C; IEEE 802.3, annex 31B.
#' @noRd
flow_control_state <- function(seen, counted, refused, held_share, lost_share) {
  told <- \(yes) !is.na(yes) & yes
  overflowed <- told(refused > 0)
  fcase(
    told(seen > 0), "seen",
    told(counted > 0), "swallowed",
    told(counted == 0), "none",
    overflowed & told(held_share < held_back), "swallowed",
    overflowed & told(held_share >= held_back), "none",
    told(refused == 0) & told(lost_share > 0), "none",
    default = "not told"
  )
}

# Slower than this share of its fastest, an interface whose ring is full was held back.
held_back <- 0.9

#' What the counters of an interface say of PAUSE frames
#' @param nic A table of [read_nic()].
#' @param interface Name of the interface.
#' @param window_s Length of the windows in which rates are taken, seconds: longer than a pause.
#' @return A list: `counted` and `held_share` as [flow_control_state()] takes them.
#' @noRd
flow_control_counters <- function(nic, interface, window_s = 0.1) {
  x <- nic[nic$interface == interface]
  kept <- grepl("^card[.]", names(x)) & grepl("rx|rec", names(x)) & grepl("pause|xon|xoff|flow_control", names(x)) & !grepl("duration|transition", names(x))
  grown <- vapply(x[, names(x)[kept], with = FALSE], \(count) max(count) - min(count), 0)
  list(counted = if (any(kept)) sum(grown) else NA_real_, held_share = rate_while_held(x, window_s))
}

# As a share of the fastest; NA where nobody counted what was sent and refused.
rate_while_held <- function(x, window_s) {
  if (!all(c("tx_bytes", "tx_dropped") %in% names(x))) return(NA_real_)
  windows <- x[, .(t_ns = t_ns[1], bytes = tx_bytes[1], drops = tx_dropped[1]), by = .(window = floor((t_ns - t_ns[1]) / (window_s * 1e9)))]
  rates <- windows[, .(bps = 8e9 * diff(bytes) / diff(t_ns), refused = diff(drops) > 0)]
  if (any(rates$refused)) stats::median(rates$bps[rates$refused]) / max(rates$bps) else NA_real_
}

# Only where somebody was asked to watch for PAUSE frames, or one was seen anyway.
flow_control_counts <- function(frames, traces, flow, manifest) {
  nic <- traces$path("nic", flow$from)
  seen <- if (is.null(frames)) NA_real_ else as.double(nrow(frames))
  if (length(nic) == 0 && length(traces$path("pause-frames", flow$from)) == 0 && !isTRUE(seen > 0)) return(list())
  interface <- unlist(manifest$resolved$hosts[[flow$from]]$interfaces)
  counters <- if (length(nic) > 0 && length(interface) == 1) flow_control_counters(traces$within(read_nic(nic[1]), flow$from), interface)
  list(pause_frames_seen = seen, pause_frames_counted = counters$counted %||% NA_real_, ring_held_share = counters$held_share %||% NA_real_)
}
