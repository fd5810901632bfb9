#' Buffer size per cwnd cycle, by two methods
#'
#' Method 1 (equations 1 and 2 of the report): `bytes = (RTT_max - RTT_min) * rate`, `packets = bytes / MTU`.
#' RTT_max is the median of the ten packet-pair RTTs seen last before the collapse, RTT_min the handshake's RTT, the rate
#' the mean over the cycle's whole seconds, counted back from the collapse (a cycle under one second is one window).
#'
#' Layer: rates and sizes are those of IP packets, in the direction of the data, where they leave the bottleneck (the
#' receiver's capture). A full packet has MTU bytes there, so rate / MTU is packets per second whatever the link adds; a
#' shaper that counts 14 bytes of Ethernet header more per packet slows both alike. tcpstat on the sender's capture, as used by the report, counts frame
#' length less 14, which is the IP packet too, but in both directions and before the queue: acknowledgements add 1.7 % at MTU 1500 and 4.3 % at MTU 600 (52
#' bytes for two packets), and packets that the queue drops count as carried.
#'
#' Method 2: cwnd just before the collapse (`method2_raw_packets`, as published). A drop is noticed one round trip
#' after it happened, in which cwnd goes on growing, and what is in flight then also lies on the idle path. The
#' estimate `method2_packets` is therefore cwnd one RTT_max before the collapse, less `RTT_min * rate / MTU`.
#'
#' Exact for a drop-tail queue of N packets behind a token bucket to -1..+1 packet: the last packet let in waits between
#' N - 1 and N service times (the head of the queue waits for its tokens in the queue), and cwnd grows by whole packets.
#' Method 1 is low where the link idles in a cycle: a buffer below beta / (1 - beta) idle bandwidth-delay
#' products, 1 for Reno (beta 0.5) and 3/7 for CUBIC (0.7), for the mean rate of the cycle is then below the service rate.
#'
#' @param cycles Cycles of one socket, of [cwnd_cycles()].
#' @param samples The TCP_INFO samples that they come from.
#' @param rtt Packet-pair RTTs: `t_s` (when the acknowledgement was seen), `rtt_ms`.
#' @param arrivals Packets in the direction of the data at the receiver, all flows of the link: `t_s`, `ip_bytes`.
#' @param rtt_min_ms RTT of the idle path.
#' @param mtu_bytes MTU of the path.
#' @return `cycles` with `rtt_max_ms`, `rate_bps` (IP layer), `method1_bytes`, `method1_packets`, `method2_raw_packets`, `method2_packets`.
#' @source CAIA-TR-130417A, section IV; Claypool et al., PAM 2004 (QFind).
#' @export
buffer_by_cycle <- function(cycles, samples, rtt, arrivals, rtt_min_ms, mtu_bytes) {
  x <- copy(cycles)
  x[, rtt_max_ms := rtt_before(rtt, x$before_s)]
  x[, rate_bps := rate_before(arrivals, x$start_s, x$end_s)]
  x[, method1_bytes := (rtt_max_ms - rtt_min_ms) / 1e3 * rate_bps / 8]
  x[, method1_packets := method1_bytes / mtu_bytes]
  idle_packets <- rtt_min_ms / 1e3 * x$rate_bps / 8 / mtu_bytes
  x[, method2_raw_packets := cwnd_packets]
  x[, method2_packets := cwnd_at(samples, x$before_s - x$rtt_max_ms / 1e3) - idle_packets]
  x[]
}

#' A trial's buffer: medians over the cycles that count
#' @param cycles A table of [buffer_by_cycle()].
#' @return A list of packets: `method1`, `method2`, `method2_raw`; NA without a cycle that counts.
#' @noRd
buffer_of_trial <- function(cycles) {
  used <- cycles[cycles$counts]
  middle <- \(v) stats::median(as.double(v), na.rm = TRUE)
  list(method1 = middle(used$method1_packets), method2 = middle(used$method2_packets),
       method2_raw = middle(used$method2_raw_packets))
}

samples_before_collapse <- 10L

rtt_before <- function(rtt, moment_s) {
  last <- findInterval(moment_s, rtt$t_s)
  vapply(last, \(i) {
    if (i < samples_before_collapse) return(NA_real_)
    stats::median(rtt$rtt_ms[(i - samples_before_collapse + 1L):i])
  }, 0)
}

rate_before <- function(arrivals, start_s, end_s) {
  total <- c(0, cumsum(as.double(arrivals$ip_bytes)))
  width_s <- pmax(floor(end_s - start_s), 0)
  width_s <- ifelse(width_s < 1, end_s - start_s, width_s)
  carried <- \(t) total[findInterval(t, arrivals$t_s) + 1L]
  8 * (carried(end_s) - carried(end_s - width_s)) / width_s
}

cwnd_at <- function(samples, moment_s) {
  i <- findInterval(moment_s, samples$t_s)
  i[i == 0L] <- NA
  as.double(samples$cwnd_packets[i])
}
