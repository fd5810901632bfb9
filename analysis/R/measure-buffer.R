#' Buffer size per cwnd cycle, by two methods
#'
#' Method 1 (equations 1 and 2 of the report): `bytes = (RTT_max - RTT_min) * EthernetRate`, `packets = bytes / MTU`.
#' RTT_max is the median of the ten packet-pair RTTs seen last before the collapse, RTT_min the handshake's RTT,
#' EthernetRate the mean over the cycle's one-second windows. Where the report leaves room:
#'
#' - Rates and sizes are those of IP packets in the direction of the data. A full packet has MTU bytes there, so rate / MTU is
#'   packets per second whatever the link adds to each. Frame bytes would say 14 / MTU more (0.9 % at 1500, 2.3 % at
#'   600); both directions, as tcpstat counts, add acknowledgements (1.7 % and 4.3 %).
#' - They are counted behind the queue, in the receiver's capture. Before it, packets that the queue drops count as carried, and
#'   so do those with which it fills: half a buffer per cycle, of some 3/8 buffer squared packets for Reno.
#' - Windows are whole seconds counted back from the collapse: none holds a part of another cycle. A cycle under one second is one
#'   window. Where the seconds begin and end is told by packets, not by clocks: at the receiver, a cycle ends when the last of the
#'   ten came in, and begins when the one came in that was answered last before the collapse before.
#'
#' The mean of a cycle is the rate that made the delay as long as the link serves at one rate. Where the rate wanders, the two are
#' taken at different times; where the link idles after a collapse (a buffer below beta / (1 - beta) idle
#' bandwidth-delay products, 1 for Reno and 3/7 for CUBIC) the mean is too low. The local variant (`method1_local_packets`)
#' takes the rate during the delay itself: a packet that came in at moment a had waited w = RTT - RTT_min, so what came in during
#' (a - w, a] stood in the queue before it or was itself; the median over the ten.
#'
#' Method 2: cwnd just before the collapse (`method2_raw_packets`, as published). A drop is noticed one round trip
#' after it happened, in which cwnd goes on growing, and what is in flight then also lies on the idle path. The
#' estimate `method2_packets` is therefore cwnd one RTT_max before the collapse, less RTT_min * local rate / MTU.
#'
#' Both are exact for a drop-tail queue of N packets behind a token bucket to one packet: the last packet let in waits
#' between N - 1 and N service times (the head of the queue waits for its tokens in the queue), and cwnd grows by whole packets.
#' Where packets reach the queue in bursts (a busy host, a coarse timer) a burst of b overflows it before it stands full, and
#' both methods give the queue that stood there, up to b lower: the queue sampler's mean backlog in that round trip tells.
#'
#' Collapses, cwnd and RTTs are of the sender's clock, arrivals of the receiver's; only differences on one clock are taken.
#'
#' @param cycles Cycles of one socket, of [cwnd_cycles()].
#' @param samples The TCP_INFO samples that they come from.
#' @param rtt Packet-pair RTTs in order of `t_s` (when the answer was seen, as in `samples`), `rtt_ms`, `arrival_s` (when the
#'   packet came in at the receiver, on its clock).
#' @param arrivals Packets in the direction of the data at the receiver, all flows of the link: `t_s` (as `arrival_s`), `ip_bytes`.
#' @param rtt_min_ms RTT of the idle path.
#' @param mtu_bytes MTU of the path.
#' @return `cycles` with `rtt_max_ms`, `rate_bps` (IP layer, mean of the cycle), `local_rate_bps` (during RTT_max),
#'   `method1_bytes`, `method1_packets`, `method1_local_packets`, `method2_packets`, `method2_raw_packets`.
#' @source CAIA-TR-130417A, section IV; Claypool et al., PAM 2004 (QFind).
#' @export
buffer_by_cycle <- function(cycles, samples, rtt, arrivals, rtt_min_ms, mtu_bytes) {
  x <- copy(cycles)
  carried <- carried_until(arrivals)
  x[, rtt_max_ms := before_collapse(rtt, before_s, \(seen) seen$rtt_ms)]
  x[, rate_bps := mean_rate(carried, last_arrival(rtt, start_s), last_arrival(rtt, before_s))]
  x[, method1_bytes := (rtt_max_ms - rtt_min_ms) / 8e3 * rate_bps]
  x[, method1_packets := method1_bytes / mtu_bytes]
  waited_for <- before_collapse(rtt, x$before_s, \(seen) waited_bytes(seen, carried, rtt_min_ms))
  x[, local_rate_bps := 8e3 * waited_for / (rtt_max_ms - rtt_min_ms)]
  x[, method1_local_packets := waited_for / mtu_bytes]
  x[, method2_packets := cwnd_at(samples, before_s - rtt_max_ms / 1e3) - rtt_min_ms / 8e3 * local_rate_bps / mtu_bytes]
  x[, method2_raw_packets := cwnd_packets][]
}

#' A trial's buffer: medians over the cycles that count
#' @param cycles A table of [buffer_by_cycle()].
#' @return A list of metrics; NA without a cycle that counts.
#' @noRd
buffer_of_trial <- function(cycles) {
  used <- cycles[cycles$counts]
  methods <- c("method1", "method1_local", "method2", "method2_raw")
  found <- lapply(methods, \(m) stats::median(as.double(used[[paste0(m, "_packets")]]), na.rm = TRUE))
  stats::setNames(found, paste0("buffer_", methods, "_packets"))
}

samples_before_collapse <- 10L

# Median of what the ten RTT samples last seen before each collapse say.
before_collapse <- function(rtt, moment_s, say) {
  vapply(findInterval(moment_s, rtt$t_s), \(last) {
    if (last < samples_before_collapse) return(NA_real_)
    stats::median(say(rtt[(last - samples_before_collapse + 1L):last]))
  }, 0)
}

# When the packet came in, on the receiver's clock, whose answer the sender saw last before a moment on its own.
last_arrival <- function(rtt, moment_s) rtt$arrival_s[pmax(findInterval(moment_s, rtt$t_s), 1L)]

waited_bytes <- function(seen, carried, rtt_min_ms) {
  carried(seen$arrival_s) - carried(seen$arrival_s - (seen$rtt_ms - rtt_min_ms) / 1e3)
}

# Bytes that had arrived by a moment, as a function of it.
carried_until <- function(arrivals) {
  total <- c(0, cumsum(as.double(arrivals$ip_bytes)))
  \(t_s) total[findInterval(t_s, arrivals$t_s) + 1L]
}

mean_rate <- function(carried, start_s, end_s) {
  whole_s <- floor(end_s - start_s)
  width_s <- fifelse(whole_s < 1, end_s - start_s, whole_s)
  8 * (carried(end_s) - carried(end_s - width_s)) / width_s
}

cwnd_at <- function(samples, moment_s) {
  i <- findInterval(moment_s, samples$t_s)
  i[i == 0L] <- NA
  as.double(samples$cwnd_packets[i])
}
