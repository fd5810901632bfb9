# `t_s`, on the sender's clock, is when the answer was seen there (a packet pair is dated midway, and what the receiver waited
# before it answered is left out); `arrival_s`, on the receiver's clock, is when the packet came in there; `jitter_ms` is the
# difference to the packet sent before that has an RTT.
flow_rtt <- function(ref, mon, name, t_start_s) {
  if (is.null(ref)) return(no_rtt)
  paired <- !is.null(mon)
  x <- if (paired) packet_pair_rtt(ref, mon, name, way_back(mon, name)) else data_ack_rtt(ref, name)
  if (nrow(x) == 0) return(no_rtt)
  t_s <- seconds_since(x, t_start_s) + if (paired) x$rtt_ms / 2e3 else 0
  arrival_s <- if (paired) x$arrival_ns / 1e9 else NA_real_
  jitter_ms <- if (paired) c(NA, rtt_jitter(x)) else NA_real_
  setorder(data.table(t_s = t_s, rtt_ms = x$rtt_ms, arrival_s = arrival_s, jitter_ms = jitter_ms), t_s)[]
}

no_rtt <- data.table(t_s = double(), rtt_ms = double(), arrival_s = double(), jitter_ms = double())

# The rows of one conversation: a trial of many flows is then not gone through for each measure of each flow.
conversation_of <- function(capture, names) {
  if (is.null(capture)) return(NULL)
  at <- which(as.integer(capture$flow) %in% match(names, levels(capture$flow)))
  if (length(at) > nrow(capture) / 2) return(capture)
  alike(capture[at], capture)
}

# The flow that returns. UDP of one way is paired with the largest UDP flow of the other, if the hosts have one: what returns on the same ports
# may be a server's report, one packet at the end, as iperf 2 sends it.
way_back <- function(mon, name) {
  back <- reverse_flow(name)
  flows <- levels(mon$flow)
  first <- match(match(name, flows), as.integer(mon$flow))
  if (is.na(first) || !mon$proto[first] %in% "udp") return(back)
  from <- as.character(mon$src[first])
  to <- as.character(mon$dst[first])
  others <- mon[proto == "udp" & as.character(src) == to & as.character(dst) == from & !is.na(sport), .N, by = flow]
  answers <- sum(others$N[others$flow == back])
  if (nrow(others) == 0 || answers >= least_answering_share * sum(mon$flow == name, na.rm = TRUE)) return(back)
  as.character(others$flow[which.max(others$N)])
}

# A call's other end, or a game's server, answers with as many packets or with some for each of many.
least_answering_share <- 0.05

# Throughput is of IP packets at the receiver, from the flow's first to its last packet there.
capture_metrics <- function(x) {
  ref <- x$near
  mon <- x$far
  name <- x$name
  far <- mon %||% ref
  packets <- far[as.character(far$flow) == name & may_carry(far$payload_bytes)]
  levels <- throughput_levels(far, name)
  values <- list(throughput_bps = levels$ip_bps, throughput_link_bps = levels$link_bps, throughput_payload_bps = levels$payload_bps,
                 flow_completion_s = flow_completion(ref %||% far, name)$completion_s)
  values <- c(values, between_metrics(ref, mon, name))
  if (packets$proto[1] != "tcp") values else c(values, tcp_metrics(ref, far, name))
}

tcp_metrics <- function(ref, far, name) {
  near <- ref %||% far
  stamps <- timestamp_rtt(near, name)$rtt_ms
  c(list(goodput_bps = goodput(far, name)$goodput_bps, rwnd_max_bytes = attr(advertised_window(near, name), "max_bytes") %||% NA),
    if (!is.null(ref)) list(
      retransmissions_packets = goodput(ref, name)$retransmitted_packets, duplicate_acks_packets = duplicate_acks(ref, name)$duplicate_acks,
      flight_max_bytes = max(c(bytes_in_flight(ref, name)$flight_bytes, 0)), timestamp_rtt_median_ms = if (length(stamps) > 0) stats::median(stamps) else NA
    ))
}

# What it takes both captures to know.
between_metrics <- function(ref, mon, name) {
  if (is.null(ref) || is.null(mon)) return(list(loss_share = NA))
  order <- arrival_order(ref, mon, name)
  judged <- order$sent_packets - order$unjudged_packets
  arrival <- interarrival_jitter(ref, mon, name)$jitter_ms
  list(loss_share = if (judged > 0) order$lost_packets / judged else NA, reordered_share = order$reordered_share,
       jitter_rfc3550_median_ms = if (length(arrival) > 1) stats::median(arrival) else NA)
}

rtt_metrics <- function(x) {
  rtt <- x$rtt
  if (nrow(rtt) == 0) return(list(handshake_rtt_ms = x$handshake_ms))
  list(rtt_median_ms = stats::median(rtt$rtt_ms), rtt_max_ms = max(rtt$rtt_ms), rtt_min_ms = min(rtt$rtt_ms),
       jitter_median_ms = stats::median(rtt$jitter_ms, na.rm = TRUE), handshake_rtt_ms = x$handshake_ms)
}

# What the link carries meanwhile: alike at any rate, where a full queue is some thousands of packets.
rtt_in_packets <- function(x) {
  resolved <- x$manifest$resolved
  rate_bps <- resolved$path$down$rate_bps
  if (nrow(x$rtt) == 0 || is.null(rate_bps)) return(NULL)
  packets <- \(rtt_ms) rtt_ms / 8e3 * rate_bps / resolved$mtu_bytes
  list(rtt_median_packets = packets(stats::median(x$rtt$rtt_ms)), rtt_max_packets = packets(max(x$rtt$rtt_ms)))
}

# Samples taken while nothing is in flight (before the first byte, after the last) tell nothing of the flow.
sender_metrics <- function(x) {
  if (is.null(x$sender)) return(NULL)
  busy <- x$sender[which(x$sender$unacked_packets > 0)]
  list(srtt_median_ms = stats::median(busy$srtt_us, na.rm = TRUE) / 1e3,
       cwnd_median_packets = stats::median(as.double(busy$cwnd_packets), na.rm = TRUE))
}

cycle_metrics <- function(x) {
  cycles <- x$cycles
  if (is.null(cycles)) return(NULL)
  counted <- list(cycles = sum(cycles$cause %in% loss_causes))
  if (is.null(cycles$method1_packets)) return(counted)
  c(counted, buffer_of_trial(cycles))
}

# Enough steps that a CDF drawn from them is the CDF of all samples to half a thousandth.
rtt_quantiles <- function(rtt_ms) {
  share <- seq(0, 1, by = 0.002)
  data.table(share = share, rtt_ms = stats::quantile(rtt_ms, share, names = FALSE, type = 1))
}

jitter_quantiles <- function(jitter_ms) {
  known <- jitter_ms[!is.na(jitter_ms)]
  if (length(known) == 0) return(NULL)
  rtt_quantiles(known)[, .(share, jitter_ms = rtt_ms)]
}

# A figure lays series of three clocks (sender's, receiver's, router's) over one axis; no number is made from them together.
flow_series <- function(label, sender, rtt, far, name, t_start_s) {
  parts <- list(thin_series(rtt$t_s, rtt$rtt_ms, label, "rtt", "ms"))
  if (!is.null(sender)) {
    parts <- c(parts, list(thin_series(sender$t_s, sender$cwnd_packets, label, "cwnd", "packets")))
  }
  rbindlist(c(parts, list(rate_series(label, far, name, t_start_s))))
}

# Windows of the trial, the same for all its flows: a flow that begins late is zero until then.
rate_series <- function(label, far, name, t_start_s) {
  packets <- far[as.character(far$flow) == name]
  if (nrow(packets) < 2) return(NULL)
  setattr(packets, "epoch_s", attr(far, "epoch_s"))
  ends_s <- max(seconds_since(far, t_start_s), na.rm = TRUE)
  width_s <- rate_window_s(ends_s)
  windows <- trial_windows(packets, t_start_s, width_s, to_s = ends_s, flows = name)[partial == FALSE]
  if (nrow(windows) == 0) return(NULL)
  rate <- windows$throughput_bps / 1e6
  data.table(flow = label, quantity = "throughput", unit = "Mbit/s", t_s = windows$middle_s, low = rate, mid = rate, high = rate)
}

rate_window_s <- function(time_s) {
  choices <- c(0.1, 0.2, 0.5, 1, 2, 5, 10)
  choices[min(which(time_s / choices <= 120), length(choices))]
}

series_columns <- 600L

# Minimum, median and maximum per column of a figure: no extreme is lost, and the file stays small.
thin_series <- function(t_s, value, flow, quantity, unit) {
  if (length(t_s) == 0) return(NULL)
  width_s <- max(diff(range(t_s)) / series_columns, 1e-6)
  column <- floor((t_s - t_s[1]) / width_s)
  x <- data.table(column = column, t_s = t_s, value = as.double(value))
  # With nothing but such functions of columns data.table sums up all groups at once, ten times as fast where they are small.
  thin <- x[, .(t_s = mean(t_s), low = min(value), mid = median(value), high = max(value)), by = column]
  data.table(flow = flow, quantity = quantity, unit = unit, thin[, !"column"])
}
