# `t_s`, on the sender's clock, is when the answer was seen there (a packet pair is dated midway, and what the receiver waited
# before it answered is left out); `arrival_s`, on the receiver's clock, is when the packet came in there.
flow_rtt <- function(ref, mon, name, t_start_s) {
  if (is.null(ref)) return(no_rtt)
  paired <- !is.null(mon)
  x <- if (paired) packet_pair_rtt(ref, mon, name) else data_ack_rtt(ref, name)
  if (nrow(x) == 0) return(no_rtt)
  t_s <- seconds_since(x, t_start_s) + if (paired) x$rtt_ms / 2e3 else 0
  arrival_s <- if (paired) x$arrival_ns / 1e9 else NA_real_
  setorder(data.table(t_s = t_s, rtt_ms = x$rtt_ms, arrival_s = arrival_s), t_s)[]
}

no_rtt <- data.table(t_s = double(), rtt_ms = double(), arrival_s = double())

# Throughput is of IP packets at the receiver, from the flow's first to its last packet there.
capture_metrics <- function(ref, mon, name) {
  far <- mon %||% ref
  packets <- far[as.character(far$flow) == name & far$payload_bytes > 0]
  time_s <- if (nrow(packets) > 1) (packets$t_ns[nrow(packets)] - packets$t_ns[1]) / 1e9 else NA_real_
  values <- list(throughput_bps = 8 * sum(packets$ip_bytes) / time_s)
  if (packets$proto[1] != "tcp") return(c(values, loss_metric(ref, mon, name)))
  c(values, goodput_bps = goodput(far, name)$goodput_bps,
    retransmissions_packets = if (is.null(ref)) NA else goodput(ref, name)$retransmitted_packets,
    rwnd_max_bytes = attr(advertised_window(ref %||% far, name), "max_bytes") %||% NA,
    loss_metric(ref, mon, name))
}

loss_metric <- function(ref, mon, name) {
  if (is.null(ref) || is.null(mon)) return(list(loss_share = NA))
  lost <- loss_by_flow(ref, mon, name)
  list(loss_share = if (nrow(lost) == 1) lost$loss_share else NA)
}

rtt_metrics <- function(rtt, handshake_ms) {
  if (nrow(rtt) == 0) return(list(handshake_rtt_ms = handshake_ms))
  list(rtt_median_ms = stats::median(rtt$rtt_ms), rtt_max_ms = max(rtt$rtt_ms), rtt_min_ms = min(rtt$rtt_ms),
       handshake_rtt_ms = handshake_ms)
}

# Samples taken while nothing is in flight (before the first byte, after the last) tell nothing of the flow.
sender_metrics <- function(sender) {
  if (is.null(sender)) return(list())
  busy <- sender[which(sender$unacked_packets > 0)]
  list(srtt_median_ms = stats::median(busy$srtt_us, na.rm = TRUE) / 1e3,
       cwnd_median_packets = stats::median(as.double(busy$cwnd_packets), na.rm = TRUE))
}

cycle_metrics <- function(cycles) {
  if (is.null(cycles)) return(list())
  counted <- list(cycles = sum(cycles$cause %in% loss_causes))
  if (is.null(cycles$method1_packets)) return(counted)
  c(counted, buffer_of_trial(cycles))
}

# Enough steps that a CDF drawn from them is the CDF of all samples to half a thousandth.
rtt_quantiles <- function(rtt_ms) {
  share <- seq(0, 1, by = 0.002)
  data.table(share = share, rtt_ms = stats::quantile(rtt_ms, share, names = FALSE, type = 1))
}

# A figure lays series of three clocks (sender's, receiver's, router's) over one axis; no number is made from them together.
flow_series <- function(label, sender, rtt, far, name, t_start_s) {
  parts <- list(thin_series(rtt$t_s, rtt$rtt_ms, label, "rtt", "ms"))
  if (!is.null(sender)) {
    parts <- c(parts, list(thin_series(sender$t_s, sender$cwnd_packets, label, "cwnd", "packets")))
  }
  rbindlist(c(parts, list(rate_series(label, far, name, t_start_s))))
}

rate_series <- function(label, far, name, t_start_s) {
  packets <- far[as.character(far$flow) == name]
  if (nrow(packets) < 2) return(NULL)
  setattr(packets, "epoch_s", attr(far, "epoch_s"))
  t_s <- seconds_since(packets, t_start_s)
  width_s <- rate_window_s(diff(range(t_s)))
  windows <- throughput_windows(packets, width_s, by = NULL, layer = "ip")
  whole <- windows[!windows$partial]
  rate <- whole$throughput_bps / 1e6
  data.table(flow = label, quantity = "throughput", unit = "Mbit/s", t_s = t_s[1] + whole$t_s + width_s / 2,
             low = rate, mid = rate, high = rate)
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
  x[, .(flow = flow, quantity = quantity, unit = unit, t_s = mean(t_s), low = min(value), mid = stats::median(value),
        high = max(value)), by = column][, column := NULL][]
}
