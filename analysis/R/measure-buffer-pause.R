#' Buffer of a device that sends PAUSE frames when it is full, by two methods
#'
#' A sender faster than the link fills the device until it sends its first PAUSE frame. x is the last packet sent before that frame
#' came in, t the moment it was sent.
#'
#' Method 1 counts packets in flight. With `sent(t)` the packets that had left and `arrived(t)` those that had reached the other end,
#' of the packets that did reach it:
#'
#' \deqn{packets = sent(t) - arrived(t)}
#'
#' which is x - a of the report, a being the packet that came in at t (`method1_raw_packets`). Some of them lay on the idle path, not in the
#' device. `method1_packets` leaves them out: what would have arrived by then, had it met no queue, is not counted,
#'
#' \deqn{packets = sent(t) - arrived(t + OWD_{idle})}
#'
#' An error of the clocks' offset is in the arrivals and in the idle delay alike, so this form does not feel it.
#'
#' Method 2 multiplies the growth of the one-way delay with the rate of the link (equations 2, 3 and 4 of the report):
#'
#' \deqn{OWD_{buffer} = OWD_{load} - OWD_{idle}}
#' \deqn{bytes = OWD_{buffer} \cdot rate, \quad packets = bytes / MTU}
#'
#' `OWD_load` is x's, `OWD_idle` the smallest before it (the report takes the first packet's; one packet may have met a busy host, so the
#' smaller counts). The rate is that of IP packets behind the device, from the first arrival to the last: a full packet has MTU
#' bytes there, so that rate / MTU is packets per second. Ethernet's own 14 bytes, which the report's rate holds and
#' its MTU does not, would say 0.9 % more at MTU 1500 and 2.3 % at 600.
#'
#' @inheritParams one_way_delay
#' @param frames PAUSE frames that came in at `ref`, see [pause_intervals()].
#' @param mtu_bytes MTU of the path.
#' @return A one-row data.table: `pause_ns` (the first PAUSE frame), `sent_ns` (x; both ns since `ref`'s `epoch_s`), `method1_packets`, `method1_raw_packets`,
#'   `method2_packets`, `method2_bytes`, `idle_ms`, `load_ms`, `rate_bps`, `error_packets` (by which the clocks' error may move `method1_raw_packets`); NULL
#'   without a PAUSE frame, or where no packet before it reached the other end, or where the captures end before what the device held then had
#'   reached it.
#' @source CAIA-TR-130121A, section V-B, V-C, equations 2 to 4.
#' @export
buffer_by_pause <- function(ref, mon, flow, offset, frames, mtu_bytes) {
  pauses <- pauses_of(frames)
  if (nrow(pauses) == 0) return(NULL)
  delays <- one_way_delay(ref, mon, flow, offset)[direction == "forward" & !is.na(delay_ms)]
  pause_ns <- pauses$t_ns[1] + (attr(pauses, "epoch_s") - attr(ref, "epoch_s")) * 1e9
  before <- findInterval(pause_ns, delays$t_ns)
  if (before < 1L || !seen_to_empty(ref$t_ns[which(ref$flow == flow)], delays$t_ns, pause_ns)) return(NULL)
  sent_ns <- delays$t_ns[before]
  arrivals <- delays[, .(t_ns = t_ns + delay_ms * 1e6, ip_bytes)]
  setorder(arrivals, t_ns)
  idle_ms <- min(delays$delay_ms[seq_len(before)])
  load_ms <- delays$delay_ms[before]
  rate_bps <- 8 * sum(as.double(arrivals$ip_bytes[-1])) / diff(range(arrivals$t_ns)) * 1e9
  per_ms <- rate_bps / 8e3 / mean(delays$ip_bytes)
  bytes <- (load_ms - idle_ms) / 8e3 * rate_bps
  in_flight <- \(at_ns) as.double(before - findInterval(at_ns, arrivals$t_ns))
  data.table(pause_ns, sent_ns, method1_packets = in_flight(sent_ns + idle_ms * 1e6), method1_raw_packets = in_flight(sent_ns),
             method2_packets = bytes / mtu_bytes, method2_bytes = bytes, idle_ms, load_ms, rate_bps,
             error_packets = max(delays$error_ms[seq_len(before)]) * per_ms)
}

# Whether the captures go on until what the device held at its first PAUSE frame had come out of it: of what had been sent, the last packet
# before that frame has arrived, or a later one. Else the last that did arrive was sent while the device still had room.
seen_to_empty <- function(sent_ns, arrived_sent_ns, pause_ns) {
  max(arrived_sent_ns) >= max(sent_ns[sent_ns <= pause_ns])
}
