# Estimate the size of the bottleneck's buffer from the cycles of cwnd, one estimate per cycle, or from PAUSE frames.

#' Cycles of the congestion window
#'
#' A cycle is the growth of cwnd from one reduction to the next. Linux reduces cwnd over a round trip (proportional rate reduction, RFC 6937), so the time
#' of a reduction is when the kernel decides on it, not when cwnd falls: the first sample at which `ca_state` is Recovery (3), Loss (4) or
#' CWR (2), or at which ssthresh has decreased with cwnd or after a retransmission. A new ssthresh without a lower cwnd or a retransmission (HyStart
#' leaving slow start) does not end a cycle. Events until the state is Open or Disorder again, such as a time-out within a recovery, belong to the
#' same reduction.
#'
#' The first cycle of a connection is slow start, which overshoots the buffer by up to the buffer's size before the loss is seen; this cycle is marked
#' (`first`). A reduction that the kernel undid (ssthresh rises again: packets had been reordered, RFC 4015) does not end a cycle.
#'
#' @param samples TCP_INFO samples of one socket: `t_s`, `cwnd_packets`, `ssthresh_packets`, `ca_state`, `total_retrans_packets`.
#' @return A data.table, one row per reduction: `cycle`, `start_s` (the previous reduction, or the first sample), `before_s` (last
#'   sample before the reduction), `end_s` (the sample that shows the reduction), `cwnd_packets` (at `before_s`), `cause`
#'   ("recovery", "timeout", "cwr", "ssthresh"; "enobufs" if the sender's own interface refused a packet, which only SIFTR shows), `first`, `counts`
#'   (whether the cycle is used to estimate the buffer: caused by loss, and not the first of several).
#' @source RFC 5681, RFC 6937; tcp_ca_state in linux/tcp.h.
#' @examples
#' info <- read_tcp_info(samovar_example("bulk-tcp-info.csv.gz"))[dport == 5001 & bytes_acked > 1000]
#' info[, t_s := t_ns / 1e9]
#' cwnd_cycles(info)
#' @export
cwnd_cycles <- function(samples) {
  x <- samples[order(samples$t_s)]
  at <- lasting_collapses(x)
  if (length(at) == 0) return(no_cycles)
  cycles <- data.table(
    cycle = seq_along(at),
    start_s = x$t_s[c(1L, at[-length(at)])],
    before_s = x$t_s[at - 1L],
    end_s = x$t_s[at],
    cwnd_packets = as.double(x$cwnd_packets[at - 1L]),
    cause = mapply(collapse_cause, at, until_next(at, x), MoreArgs = list(x = x)),
    first = seq_along(at) == 1L
  )
  by_loss <- cycles$cause %in% loss_causes
  cycles[, counts := by_loss & !(first & sum(by_loss) > 1L)][]
}

no_cycles <- data.table(
  cycle = integer(), start_s = double(), before_s = double(), end_s = double(), cwnd_packets = double(),
  cause = character(), first = logical(), counts = logical()
)

loss_causes <- c("recovery", "timeout")

# Rows of the reductions that were not undone: ssthresh stays, or falls, until the next reduction.
lasting_collapses <- function(x) {
  at <- which(collapses(x))
  restored <- mapply(\(i, j) max(x$ssthresh_packets[i:j]) > x$ssthresh_packets[i], at, until_next(at, x))
  at[!as.logical(restored)]
}

until_next <- function(at, x) c(at[-1] - 1L, if (length(at) > 0) nrow(x))

ca_cwr <- 2L
ca_loss_states <- c(3L, 4L)

collapses <- function(x) {
  if (nrow(x) < 2) return(logical(nrow(x)))
  now <- x$ca_state
  was <- c(0L, now[-length(now)])
  lost <- now %in% ca_loss_states & !was %in% ca_loss_states
  asked <- now == ca_cwr & !was %in% c(ca_cwr, ca_loss_states)
  fell <- !was %in% c(ca_cwr, ca_loss_states) & went(x$ssthresh_packets, -1) &
    (went(x$cwnd_packets, -1) | went(x$total_retrans_packets, 1))
  found <- lost | asked | fell
  found[1] <- FALSE
  found
}

went <- function(values, sign) c(FALSE, sign * diff(as.double(values)) > 0) %in% TRUE

# A recovery shorter than the sampling interval shows only as retransmissions.
collapse_cause <- function(i, j, x) {
  episode <- i + which(!x$ca_state[i:j] %in% c(ca_cwr, ca_loss_states))[1] - 1L
  until <- if (is.na(episode)) j else episode
  if (x$ca_state[i] == 4L) return("timeout")
  if (any(x$ca_state[i:until] %in% ca_loss_states)) return("recovery")
  if (x$total_retrans_packets[until] > x$total_retrans_packets[i - 1L]) return("recovery")
  if (any(x$refused[i:until])) return("enobufs")
  if (x$ca_state[i] == ca_cwr) "cwr" else "ssthresh"
}

#' Buffer size per cwnd cycle, by two methods
#'
#' Method 1 (equations 1 and 2 of the report): `bytes = (RTT_max - RTT_min) * EthernetRate`, `packets = bytes / MTU`.
#' RTT_max is the median of the last ten packet-pair RTTs before the reduction of cwnd, RTT_min is the handshake's RTT, and EthernetRate is the mean over
#' the cycle's one-second windows. The report measures this rate in the sender's capture, with tcpstat. This function measures the rate in a different way:
#'
#' - Rates and sizes are those of IP packets in the direction of the data. A full IP packet has MTU bytes, so rate / MTU is the number of packets per
#'   second, whatever the link adds to each packet. Counting frame bytes would give 14 / MTU more (0.9 % at 1500, 2.3 % at 600); counting both
#'   directions, as tcpstat does, would add the acknowledgements (1.7 % and 4.3 %).
#' - Packets are counted in the receiver's capture, after the queue. A capture before the queue would also count packets that the queue drops, and packets
#'   that fill it: B/2 packets per cycle if the buffer holds B packets. The difference is small, because a Reno cycle carries about 3/8 B^2 packets.
#' - Time windows are whole seconds counted back from the reduction, so that no window contains part of another cycle. A cycle shorter than one second is
#'   one window. At the receiver a cycle is bounded by packets instead of times, so that the clocks need not agree: it starts with the arrival of the
#'   last packet that was answered before the previous reduction, and ends with the arrival of the last of the ten packets of RTT_max.
#'
#' If the link has a constant rate, the mean rate of a cycle is the rate that caused the delay. If the link's rate varies, the two rates may differ,
#' because the delay is measured only at the end of the cycle. If the link idles after a reduction, the mean rate is too low. The link idles if the
#' buffer is smaller than (1 - beta) / beta bandwidth-delay products of the idle path, where a reduction multiplies cwnd by beta; that is 1 product for
#' Reno, and 3/7 of a product for CUBIC. The local variant (`method1_local_packets`) uses the rate during the delay itself: a packet that arrived at time a
#' had waited w = RTT - RTT_min, so the bytes that arrived during (a - w, a] are those of the queue ahead of the packet and of the packet itself. The
#' estimate is the median over the ten packets.
#'
#' Method 2, as published, takes cwnd just before the reduction (`method2_raw_packets`). But TCP notices a drop one round trip later, and cwnd grows in the
#' meantime; also, part of the data in flight is on the links, not in the queue. So the estimate `method2_packets` is W - RTT_min * r / MTU,
#' where W is the cwnd one RTT_max before the reduction, in whole segments, and r is `local_rate_bps`. If
#' there is a sample for every packet, W counts the dropped packet. This packet was never in the buffer, so
#' one packet is subtracted.
#'
#' For a drop-tail queue of N packets that a token bucket drains, both methods are accurate to one packet. The last accepted packet waits for N - 1 to N
#' service times, because the first packet of the queue is already waiting for its tokens, and cwnd grows by whole packets. If packets reach the queue in
#' bursts of b packets, because of a busy host or a coarse timer, the queue overflows while its mean length is up to b packets below N. Both methods then find
#' this mean length, which is also that of the queue samples in the same round trip.
#'
#' Reductions, cwnd and RTTs are on the sender's clock, arrivals on the receiver's; only differences on one clock are used.
#'
#' @param cycles Cycles of one socket, from [cwnd_cycles()].
#' @param samples The TCP_INFO samples of these cycles.
#' @param rtt Packet-pair RTTs in order of `t_s` (time of the answer, as in `samples`), `rtt_ms`, `arrival_s` (arrival of the
#'   packet at the receiver, on its clock).
#' @param arrivals Packets that arrived at the receiver, in the direction of the data, of all flows of the link: `t_s` (as `arrival_s`), `ip_bytes`.
#' @param rtt_min_ms RTT of the idle path.
#' @param mtu_bytes MTU of the path.
#' @param every_packet Whether `samples` are records of every packet, as from SIFTR. Samples taken at intervals mostly show cwnd as it was
#'   before the acknowledgement that let the sender send the dropped packet, so they do not count this packet.
#' @return `cycles` with `rtt_max_ms`, `rate_bps` (IP layer, mean of the cycle), `local_rate_bps` (while the packets of RTT_max waited),
#'   `method1_bytes`, `method1_packets`, `method1_local_packets`, `method2_packets`, `method2_raw_packets`.
#' @source CAIA-TR-130417A, section IV; Claypool et al., PAM 2004 (QFind).
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' flow <- data_flows(sender)$flow[1]
#' info <- read_tcp_info(samovar_example("bulk-tcp-info.csv.gz"))[dport == 5001 & bytes_acked > 1000]
#' info[, t_s := t_ns / 1e9]
#' rtt <- packet_pair_rtt(sender, receiver, flow)[, .(t_s = t_ns / 1e9 + rtt_ms / 2e3, rtt_ms, arrival_s = arrival_ns / 1e9)]
#' name <- flow
#' arrivals <- receiver[flow == name, .(t_s = t_ns / 1e9, ip_bytes)]
#' buffers <- buffer_by_cycle(cwnd_cycles(info), info, rtt, arrivals, rtt_min_ms = min(rtt$rtt_ms), mtu_bytes = 1500)
#' buffers[counts == TRUE, .(cycle, cause, rtt_max_ms, method1_packets, method2_packets)]
#' @export
buffer_by_cycle <- function(cycles, samples, rtt, arrivals, rtt_min_ms, mtu_bytes, every_packet = FALSE) {
  x <- copy(cycles)
  carried <- carried_until(arrivals)
  x[, rtt_max_ms := before_collapse(rtt, before_s, \(seen) seen$rtt_ms)]
  x[, rate_bps := mean_rate(carried, last_arrival(rtt, start_s), last_arrival(rtt, before_s))]
  x[, method1_bytes := (rtt_max_ms - rtt_min_ms) / 8e3 * rate_bps]
  x[, method1_packets := method1_bytes / mtu_bytes]
  waited_for <- before_collapse(rtt, x$before_s, \(seen) waited_bytes(seen, carried, rtt_min_ms))
  x[, local_rate_bps := 8e3 * waited_for / (rtt_max_ms - rtt_min_ms)]
  x[, method1_local_packets := waited_for / mtu_bytes]
  accepted <- floor(cwnd_at(samples, x$before_s - x$rtt_max_ms / 1e3)) - every_packet
  x[, method2_packets := accepted - rtt_min_ms / 8e3 * local_rate_bps / mtu_bytes]
  x[, method2_raw_packets := cwnd_packets][]
}

#' Buffer size of a trial: medians over the cycles that count
#' @param cycles A table from [buffer_by_cycle()].
#' @return A list of metrics, all of them NA if `counts` is FALSE for every cycle.
#' @noRd
buffer_of_trial <- function(cycles) {
  used <- cycles[cycles$counts]
  methods <- c("method1", "method1_local", "method2", "method2_raw")
  found <- lapply(methods, \(m) stats::median(as.double(used[[paste0(m, "_packets")]]), na.rm = TRUE))
  stats::setNames(found, paste0("buffer_", methods, "_packets"))
}

samples_before_collapse <- 10L

# Median over the last ten RTT samples before each reduction.
before_collapse <- function(rtt, moment_s, statistic) {
  vapply(findInterval(moment_s, rtt$t_s), \(last) {
    if (last < samples_before_collapse) return(NA_real_)
    stats::median(statistic(rtt[(last - samples_before_collapse + 1L):last]))
  }, 0)
}

# Find the last answer that the sender saw before a time on the sender's clock; return when the answered packet arrived, on the receiver's clock.
last_arrival <- function(rtt, moment_s) rtt$arrival_s[pmax(findInterval(moment_s, rtt$t_s), 1L)]

waited_bytes <- function(seen, carried, rtt_min_ms) {
  carried(seen$arrival_s) - carried(seen$arrival_s - (seen$rtt_ms - rtt_min_ms) / 1e3)
}

# Return a function that takes a time and returns the number of bytes that had arrived by then.
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

#' Estimate, by two methods, the buffer size of a device that sends PAUSE frames when its buffer is full
#'
#' A sender that is faster than the link fills the device until the device sends its first PAUSE frame. Let x be the last packet that the host sent before
#' that frame arrived, and t the time at which x was sent.
#'
#' Method 1 counts packets in flight. Of the packets that reach the other end, `sent(t)` is the number that have been sent by time t, and `arrived(t)` the
#' number that have arrived by then:
#'
#' \deqn{packets = sent(t) - arrived(t)}
#'
#' This is x - a of the report, a being the packet that arrived at t (`method1_raw_packets`). Some of the counted packets were on the idle path, not in the
#' device. `method1_packets` excludes them: it subtracts all packets that would have arrived by time t if there were no queue:
#'
#' \deqn{packets = sent(t) - arrived(t + OWD_{idle})}
#'
#' An error of the clock offset shifts the arrivals and the idle delay equally, so it does not affect this variant.
#'
#' Method 2 multiplies the growth of the one-way delay by the rate of the link (equations 2, 3 and 4 of the report):
#'
#' \deqn{OWD_{buffer} = OWD_{load} - OWD_{idle}}
#' \deqn{bytes = OWD_{buffer} \cdot rate, \quad packets = bytes / MTU}
#'
#' `OWD_load` is the delay of x, `OWD_idle` the smallest delay before x (the report uses the delay of the first packet, but a busy host may have
#' delayed a single packet). The rate is the rate of IP packets downstream of the device, from the first arrival to the last: a full IP packet has MTU
#' bytes, so rate / MTU is the number of packets per second. Ethernet's own 14 bytes, which are in the report's rate but not in its MTU, would give
#' 0.9 % more at MTU 1500 and 2.3 % at 600.
#'
#' @inheritParams one_way_delay
#' @param frames PAUSE frames received at `ref`, see [pause_intervals()].
#' @param mtu_bytes MTU of the path.
#' @return A one-row data.table: `pause_ns` (the first PAUSE frame), `sent_ns` (x; both ns since `ref`'s `epoch_s`), `method1_packets`, `method1_raw_packets`,
#'   `method2_packets`, `method2_bytes`, `idle_ms`, `load_ms`, `rate_bps`, `error_packets` (effect of the clocks' error on `method1_raw_packets`); NULL if no
#'   PAUSE frame was received, if no packet sent before the first one reached the other end, if a capture begins later than the flow (its first packets
#'   show the idle delay), or if the captures end before all packets that the device held at the time of the PAUSE frame had arrived.
#' @source CAIA-TR-130121A, section V-B, V-C, equations 2 to 4.
#' @examples
#' ref <- read_pcap(samovar_example("beacons-sender.pcap.gz"))
#' mon <- read_pcap(samovar_example("beacons-receiver.pcap.gz")) # its clock is 0.25 s ahead
#' offset <- clock_offset(beacons_of_capture(ref), beacons_of_capture(mon))
#' frames <- ref[100, .(t_ns, direction = "in", pause_quanta = 65535)] # as if the 100th packet had met a full device
#' data.table::setattr(frames, "epoch_s", attr(ref, "epoch_s"))
#' buffer_by_pause(ref, mon, data_flows(ref)$flow[1], offset, frames, mtu_bytes = 1500)
#' @export
buffer_by_pause <- function(ref, mon, flow, offset, frames, mtu_bytes) {
  pauses <- pauses_of(frames)
  if (nrow(pauses) == 0) return(NULL)
  delays <- one_way_delay(ref, mon, flow, offset)[direction == "forward" & !is.na(delay_ms)]
  pause_ns <- pauses$t_ns[1] + (attr(pauses, "epoch_s") - attr(ref, "epoch_s")) * 1e9
  before <- findInterval(pause_ns, delays$t_ns)
  if (before < 1L || !seen_from_first(ref, mon, flow) || !seen_to_empty(ref$t_ns[which(ref$flow == flow)], delays$t_ns, pause_ns)) return(NULL)
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

# Return TRUE if both captures show the flow from its first packet on, which meets an empty device and has the idle delay. A later begin shows in the other
# capture: it then has packets that were sent or have arrived before.
seen_from_first <- function(ref, mon, flow) {
  judged <- judged_packets(ref, mon, flow)
  arrived <- judged$other[!is.na(judged$other)]
  unsent <- setdiff(which(mon$flow == flow), arrived)
  min(ref$t_ns[which(ref$flow == flow)]) == ref$t_ns[judged$row[1]] && all(mon$t_ns[unsent] > min(mon$t_ns[arrived]))
}

# Return TRUE if the captures last until everything that was in the device at its first PAUSE frame has left it, that is, until the last packet sent before
# that frame, or a later packet, has arrived. Otherwise the last packet that arrived was sent while the device still had room.
seen_to_empty <- function(sent_ns, arrived_sent_ns, pause_ns) {
  max(arrived_sent_ns) >= max(sent_ns[sent_ns <= pause_ns])
}
