# Measure one trial: metrics, distributions and time series of its flows and its queue.

#' Measure one trial, for all figures and tables
#'
#' @param folder The campaign's folder.
#' @param manifest The trial's manifest, from [read_campaign()].
#' @return A list: `id`, `metrics` (`flow`, `metric`, `unit`, `value`), `cycles` (per flow and cwnd cycle), `rtt` (quantiles of RTT: `flow`,
#'   `share`, `rtt_ms`), `jitter` (quantiles of jitter: `flow`, `share`, `jitter_ms`), `sender` (quantiles of what the sender's TCP reports: `flow`,
#'   `quantity`, `unit`, `share`, `value`), `series` (`flow`, `quantity`, `unit`, `t_s`, `low`, `mid`,
#'   `high`), `samples` (quantiles of what the programs of `http`, `dash`, `incast`, `voip` and `game` logged; the same columns as `sender`), `pauses` (per
#'   flow and episode of PAUSE frames), `closeup` (cwnd and PAUSE frames around one episode: `flow`, `quantity`, `t_s`, `value`), `notes` (`note`: what the
#'   traces lack, such as the end of a truncated capture). Times are seconds since the start of traffic.
#' @examples
#' campaign <- read_campaign(samovar_example("campaign"))
#' measures <- measure_trial(campaign$folder, campaign$manifests[[1]])
#' measures$metrics
#' @export
measure_trial <- function(folder, manifest) {
  notes <- character()
  measures <- withCallingHandlers(measures_of(folder, manifest), samovar_warning = \(w) {
    notes <<- c(notes, gsub(paste0(folder, "/trials/", manifest$id, "/"), "", message_line(w), fixed = TRUE))
    invokeRestart("muffleWarning")
  })
  c(measures, list(notes = data.table(note = unique(notes))))
}

measures_of <- function(folder, manifest) {
  manifest$resolved$mtu_bytes <- mtu_of(manifest)
  traces <- open_traces(folder, manifest)
  flows <- lapply(manifest$resolved$flows, \(f) measure_flow(f, traces, manifest))
  queue <- queue_samples(traces)
  own <- list(series = if (!is.null(queue)) thin_series(queue$t_s, queue$backlog_packets, "", "queue", "packets"))
  applications <- measure_applications(manifest, traces)
  part <- \(name) rbindlist(c(lapply(flows, \(f) f[[name]]), list(own[[name]], applications[[name]])), use.names = TRUE, fill = TRUE)
  trial <- list(manifest = manifest, traces = traces, queue = queue, sizes = part("size"))
  list(id = manifest$id, metrics = rbind(part("metrics"), metric_rows("", measured_metrics("trial", trial)))[!is.na(value)], cycles = part("cycles"),
       rtt = part("rtt"), jitter = part("jitter"), sender = part("sender"), series = part("series"), samples = part("samples"), pauses = part("pauses"), closeup = part("closeup"))
}

# The MTU of a trial's path: that of Ethernet if the experiment sets none.
mtu_of <- function(manifest) as.double(manifest$resolved$mtu_bytes %||% 1500)

# Access to the files of a trial: `path` returns the files that record a quantity of outputs.yaml, or the files of a logger. `log` returns the log of a
# flow's client or server. `capture` returns the capture of a host that has a flow, or else its first. Captures are decoded once, on first use; `within`
# removes rows that were recorded after the trial. `t_start_s` is on the controller's clock, see start_on(). `columns` are those of captures, see read_pcap().
open_traces <- function(folder, manifest, columns = NULL) {
  at <- file.path(folder, "trials", manifest$id)
  files <- rbindlist(lapply(manifest$files, \(f) {
    list(path = file.path(at, f$path), kind = f$kind, host = f$host %||% "", logger = f$logger %||% "")
  }))
  captures <- list()
  list(
    t_start_s = as.double(manifest$t_start_s),
    ahead_s = clocks_ahead_s(manifest),
    path = \(recorded, of = NULL) {
      wanted <- sources_of(recorded)
      here <- files[files$logger %in% wanted & (is.null(of) | files$host == (of %||% ""))]
      here$path[order(match(here$logger, wanted))]
    },
    log = \(flow, end) files$path[files$kind == "generator" & files$path == file.path(at, "logs", paste0(flow, "-", end, ".out.gz"))],
    capture = \(of, flow = NULL) {
      found <- files$path[files$kind == "capture" & files$host == of]
      if (length(found) == 0) return(NULL)
      read <- \(path) {
        if (is.null(captures[[path]])) captures[[path]] <<- set_covered(within_trial(read_pcap(path, columns), of, manifest), of, manifest)
        captures[[path]]
      }
      # A flow passes one of the interfaces at which a host has captures.
      passed <- if (length(found) > 1 && !is.null(flow)) Find(\(path) !is.na(flow_in_capture(flow, read(path), manifest$resolved$flows)), found)
      read(passed %||% found[1])
    },
    within = \(x, host) within_trial(x, host, manifest)
  )
}

# By how many seconds each host's clock is ahead of the controller's. Flows were started with these offsets. As in samovar/campaign/clocks.py, an offset within
# its error counts as 0. A manifest has no offsets of hosts without generators, and manifests of early campaigns have no offsets at all.
clocks_ahead_s <- function(manifest) {
  offsets_s <- lapply(manifest$clocks, \(clock) if (abs(clock$offset_s) > clock$error_s) as.double(clock$offset_s) else 0)
  stats::setNames(offsets_s, vapply(manifest$clocks, \(clock) clock$host, ""))
}

# The start of traffic, Unix seconds on a host's clock.
start_on <- function(traces, host) traces$t_start_s + (traces$ahead_s[[host]] %||% 0)

# Rows of a trace up to the end of the trial. Captures and loggers stop after the hosts are restored; by then a queue that was
# still full may have drained at another rate. The end is on the host's own clock; early campaigns did not record it.
within_trial <- function(x, host, manifest) {
  over_s <- end_on(manifest, host)
  later <- if (!is.null(over_s)) which(seconds_since(x, over_s) >= 0)
  if (length(later) == 0) x else with_attributes(x[-later], x)
}

# The end of the trial on a host's own clock; NULL if it was not recorded.
end_on <- function(manifest, host) unlist(lapply(manifest$ends, \(e) if (identical(e$host, host)) e$over_s))[1]

# Set the attributes `first_ns` and `last_ns` of a capture: it covers the trial from the start of traffic, even if its first packet is later. If the capture
# was read to its end, it covers the trial to the end on its host, even if its last packet is earlier. If the end on the host was not recorded, it is unknown
# what the capture covers, and no attribute is set.
set_covered <- function(capture, host, manifest) {
  over_s <- end_on(manifest, host)
  if (is.null(over_s)) return(capture)
  start_s <- manifest$t_start_s + (clocks_ahead_s(manifest)[[host]] %||% 0)
  setattr(capture, "first_ns", min((start_s - attr(capture, "epoch_s")) * 1e9, capture$t_ns, na.rm = TRUE))
  if (isTRUE(attr(capture, "truncated"))) return(capture)
  setattr(capture, "last_ns", (over_s - attr(capture, "epoch_s")) * 1e9)
}

# The time until which a capture of a trial shows what was sent, ns since its `epoch_s`.
covered_ns <- function(capture) attr(capture, "last_ns") %||% max(capture$t_ns, na.rm = TRUE)

# Samples of the bottleneck's queue, with the samples of all queues in attribute `every`; NULL without the queue logger.
queue_samples <- function(traces) {
  path <- traces$path("queue")
  every <- if (length(path) > 0) read_queue(path[1], handle = NULL)
  queue <- if (!is.null(every)) keep_epoch(every[which(is_bottleneck(every))], every)
  if (is.null(queue) || nrow(queue) == 0) return(NULL)
  queue[, t_s := seconds_since(queue, traces$t_start_s)]
  setattr(queue, "every", every)
}

queue_metrics <- function(trial) {
  queue <- trial$queue
  if (is.null(queue)) return(NULL)
  longest <- max(queue$backlog_packets)
  dropped <- queue$drops[nrow(queue)] > queue$drops[1]
  list(queue_max_packets = longest, queue_max_bytes = max(queue$backlog_bytes), buffer_truth_packets = if (dropped) longest else NA,
       netem_drops_packets = netem_drops(attr(queue, "every")))
}

# netem delays packets in its own queue. If rate times delay exceeds this queue's limit, netem drops packets, which no other trace shows.
netem_drops <- function(queues) {
  stages <- queues[qdisc == "netem"]
  if (nrow(stages) == 0) return(NA_real_)
  sum(stages[, .(drops = max(drops) - min(drops)), by = .(interface, handle)]$drops)
}

overhead_metrics <- function(trial) list(overhead_s = as.double(trial$manifest$overhead_s %||% NA))

# The functions that measure metrics of a flow have one argument, which holds everything known about the flow: `flow` as planned, the trial's `manifest` and
# `traces`, the captures `near` and `far` of its packets at sender and receiver (NULL if missing), its `name` in them, `nothing_arrived` (only of a UDP flow
# that the receiver's capture does not show: TRUE, or NA if that is unknown), the `sender`'s TCP samples, `rtt` samples, `handshake_ms`, `idle_ms` (RTT of the
# idle path), cwnd `cycles`, the `clock` offset and the `device` with PAUSE frames.
measure_flow <- function(flow, traces, manifest) {
  x <- subject_of_flow(flow, traces, manifest)
  name <- x$name
  warn_of_captures(flow, x, traces)
  if (is.na(name)) return(list())
  at <- if (is.null(x$far)) flow$from else flow$to
  labelled <- \(rows) if (!is.null(rows) && nrow(rows) > 0) cbind(flow = flow$label, rows)
  list(
    metrics = metric_rows(flow$label, measured_metrics("flow", x)),
    size = size_of_flow(x, traces$ahead_s), cycles = labelled(x$cycles),
    rtt = labelled(if (nrow(x$rtt) > 0) rtt_quantiles(x$rtt$rtt_ms)), sender = labelled(sender_quantiles(x$sender)), jitter = labelled(jitter_quantiles(x$rtt$jitter_ms)),
    series = flow_series(flow$label, x$sender, x$rtt, traces$capture(at, flow), name, start_on(traces, at), sending_ends_s(manifest)),
    pauses = labelled(x$device$pauses), closeup = labelled(closeup_of(x$device, x$sender))
  )
}

# The size and rate of a flow by the capture that shows its arrivals. A flow of which nothing arrived has the interval in which it was sent.
size_of_flow <- function(x, ahead_s) {
  if (anyNA(x$nothing_arrived)) return(NULL)
  at_receiver <- NROW(x$far) > 0
  at <- if (at_receiver) x$flow$to else x$flow$from
  size <- flow_size(x$flow, if (at_receiver) x$far else x$near, x$name, x$manifest, ahead_s[[at]] %||% 0)
  if (isTRUE(x$nothing_arrived) && !is.null(size)) size[, c("throughput_bps", "ip_bytes", "payload_bytes") := 0]
  size
}

# Warn of captures at the ends of a flow that have no packet of it, because they are empty or of another interface, and of captures that begin too late.
warn_of_captures <- function(flow, x, traces) {
  warn <- \(host, what, effect) cli::cli_warn("the capture at {host} {what} of flow {flow$label}: {effect}", class = c("samovar_warning_flow", "samovar_warning"))
  lacks <- \(host, shown, effect) if (NROW(shown) == 0 && !is.null(traces$capture(host, flow))) {
    warn(host, "has no packet", if (is.na(x$name)) "it has no metrics" else effect)
  }
  lacks(flow$from, x$near, "metrics that need the sender's capture are missing")
  lacks(flow$to, x$far, if (is.null(x$far)) "its rates and bytes count what was sent, and metrics that need both captures are missing"
                        else if (isTRUE(x$nothing_arrived)) "its throughput is 0, and all of its packets are lost"
                        else "its rates and metrics that need both captures are missing")
  if (x$tcp && !is.null(x$near) && !any(bitwAnd(rows_of_flow(x$near, x$name, "flags")$flags, 2L) > 0L, na.rm = TRUE)) {
    warn(flow$from, "lacks the handshake", "rtt_min_ms may be the RTT of a full queue, and metrics that need the RTT of the idle path are missing")
  }
}

limit_metrics <- function(x) limit_shares(limits_of_flow(x$flow, x$sender, x$near, x$name, x$idle_ms, x$traces, x$manifest))

device_metrics <- function(x) x$device$metrics

# A generator's control connection may have the same addresses and port, so the flow is the connection with the most payload. `flows` are all flows of the
# trial.
flow_in_capture <- function(flow, capture, flows = list(flow)) {
  if (is.null(capture)) return(NA_character_)
  seen <- data_flows(capture, proto = c("tcp", "udp"))
  ends <- c(flow$from_address, flow$to_address)
  between <- as.character(seen$src) %in% ends & as.character(seen$dst) %in% ends
  has_port <- \(ports) seen$dport %in% ports | seen$sport %in% ports
  ours <- between & has_port(flow$port) & !flow$generator %in% "nttcp"
  if (!any(ours) && flow$generator %in% own_port_generators && alone_in_choosing(flow, flows)) {
    ours <- between & !has_port(vapply(flows, \(f) as.integer(f$port), 1L))
  }
  if (any(ours)) return(direction_from(flow$from_address, seen[which(ours)[1L]], capture))
  # ICMP echoes have no ports.
  echoes <- paste(flow$from_address, ">", flow$to_address)
  if (echoes %in% levels(capture$flow) && identical(flow$generator, "ping")) echoes else NA_character_
}

# Generators whose data may have other ports than that of the flow, which for nttcp is the port of the control connection.
own_port_generators <- c("nttcp", "command")

# Whether a flow is the only flow of these generators between its hosts. If there are several, a capture does not show which packets belong to which.
alone_in_choosing <- function(flow, flows) {
  ends <- \(f) sort(c(f$from_address, f$to_address))
  sum(vapply(flows, \(f) f$generator %in% own_port_generators && identical(ends(f), ends(flow)), TRUE)) == 1
}

# A call sends about the same amount of payload in both directions, and more payload arrives in the direction
# without losses. The flow is nevertheless the direction that starts at the host `from`, unless hardly any
# packets of this direction carry data.
direction_from <- function(address, found, capture) {
  back <- reverse_flow(found$flow)
  if (identical(as.character(found$src), address) || !back %in% levels(capture$flow)) return(found$flow)
  answers <- sum(capture$flow == back & may_carry(capture$payload_bytes), na.rm = TRUE)
  if (answers >= least_answering_share * found$packets) back else found$flow
}

# Whether flows in the same direction go to other receivers. The capture at this receiver then lacks a part of what left the queue, so that it shows neither
# the rate of the link nor the size of the queue.
shares_queue_with_others <- function(flow, manifest) {
  any(vapply(manifest$resolved$flows, \(f) f$to != flow$to && shares_link(f, flow, manifest), TRUE))
}

flow_cycles <- function(flow, sender, rtt, mon, idle_ms, manifest) {
  if (is.null(sender)) return(NULL)
  cycles <- cwnd_cycles(sender)
  if (nrow(rtt) == 0 || is.null(mon) || is.na(idle_ms) || shares_queue_with_others(flow, manifest)) return(cycles)
  # With flows in both directions, the receiver's own packets are not arrivals.
  from <- setdiff(vapply(manifest$resolved$flows, \(f) f$from_address, ""), flow$to_address)
  # These times are on the receiver's clock, like `arrival_s` of the RTT samples, because the hosts' clocks
  # may differ.
  arrivals <- mon[as.character(mon$src) %in% from, .(t_s = t_ns / 1e9, ip_bytes)]
  # On a host with several CPUs packets may be captured slightly out of order.
  setorder(arrivals, t_s)
  buffer_by_cycle(cycles, sender, rtt, arrivals, idle_ms, manifest$resolved$mtu_bytes, isTRUE(attr(sender, "every_packet")))
}

# `t_s` is when the answer was seen, on the sender's clock. Packet pairs are dated midway between sending and return, so half an RTT is added. The result is too
# early by half of the time between arrival and answer at the receiver, which is short. `arrival_s` is when the packet arrived, on the receiver's clock;
# `jitter_ms` is the difference to the RTT of the previous packet.
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

# The rows of one conversation, so that measures of a flow do not scan the packets of all flows. The attributes `first_ns` and `last_ns` are the begin and the
# end of the whole capture: the flow was silent before its first packet and after its last.
conversation_of <- function(capture, names) {
  if (is.null(capture)) return(NULL)
  at <- which(as.integer(capture$flow) %in% match(names, levels(capture$flow)))
  if (length(at) > nrow(capture) / 2) return(capture)
  setattr(setattr(with_attributes(capture[at], capture), "first_ns", began_ns(capture)), "last_ns", covered_ns(capture))
}

# The flow in the opposite direction. One-way UDP is paired with the largest UDP flow between the same hosts
# in the other direction, because the reverse flow of the same ports may consist of a single report, which an
# iperf 2 server sends at the end.
way_back <- function(mon, name) {
  back <- reverse_flow(name)
  if (!protocol_of(mon, name) %in% "udp") return(back)
  first <- first_packet(mon, name)
  from <- as.character(mon$src[first])
  to <- as.character(mon$dst[first])
  others <- mon[proto == "udp" & as.character(src) == to & as.character(dst) == from & !is.na(sport), .N, by = flow]
  answers <- sum(others$N[others$flow == back])
  if (nrow(others) == 0 || answers >= least_answering_share * sum(mon$flow == name, na.rm = TRUE)) return(back)
  as.character(others$flow[which.max(others$N)])
}

protocol_of <- function(capture, name) as.character(capture$proto[first_packet(capture, name)])

first_packet <- function(capture, name) match(match(name, levels(capture$flow)), as.integer(capture$flow))

# A game server, or the other end of a call, answers at least this share of the packets.
least_answering_share <- 0.05

# Throughput is measured from IP packets at the receiver, over the time in which the flow's generator sends.
capture_metrics <- function(x) {
  ref <- x$near
  mon <- x$far
  name <- x$name
  far <- mon %||% ref
  if (nrow(far) == 0) {
    return(if (isTRUE(x$nothing_arrived)) list(throughput_bps = 0, throughput_link_bps = 0, throughput_payload_bps = 0, loss_share = 1) else list())
  }
  packets <- far[as.character(far$flow) == name & may_carry(far$payload_bytes)]
  lasts_s <- sending_s(x$flow, x$manifest)
  levels <- throughput_levels(far, name, lasts_s)
  values <- list(throughput_bps = levels$ip_bps, throughput_link_bps = levels$link_bps, throughput_payload_bps = levels$payload_bps,
                 flow_completion_s = flow_completion(ref %||% far, name)$completion_s)
  values <- c(values, between_metrics(ref, mon, name))
  # A flow that has only a handshake has no packet that may carry data.
  if (!packets$proto[1] %in% "tcp") values else c(values, tcp_metrics(ref, far, name, lasts_s))
}

tcp_metrics <- function(ref, far, name, lasts_s) {
  near <- ref %||% far
  stamps <- timestamp_rtt(near, name)$rtt_ms
  c(list(goodput_bps = goodput(far, name, lasts_s)$goodput_bps, delivered_bytes = goodput(far, name)$unique_bytes, rwnd_max_bytes = attr(advertised_window(near, name), "max_bytes") %||% NA),
    if (!is.null(ref)) list(
      retransmissions_packets = goodput(ref, name)$retransmitted_packets, duplicate_acks_packets = duplicate_acks(ref, name)$duplicate_acks,
      flight_max_bytes = max(c(bytes_in_flight(ref, name)$flight_bytes, 0)), timestamp_rtt_median_ms = if (length(stamps) > 0) stats::median(stamps) else NA
    ))
}

# Metrics that need both captures.
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

# Return RTTs in packets: the number of full packets that the path carries downstream in one RTT. This number
# is comparable between rates, since a full queue has about the same number of packets at every rate.
rtt_in_packets <- function(x) {
  resolved <- x$manifest$resolved
  rate_bps <- resolved$path$down$rate_bps
  if (nrow(x$rtt) == 0 || is.null(rate_bps)) return(NULL)
  packets <- \(rtt_ms) rtt_ms / 8e3 * rate_bps / resolved$mtu_bytes
  list(rtt_median_packets = packets(stats::median(x$rtt$rtt_ms)), rtt_max_packets = packets(max(x$rtt$rtt_ms)))
}

# Samples without data in flight (before the first byte, after the last) are not used.
sender_metrics <- function(x) {
  values <- values_of_sender(x$sender, busy = TRUE)
  middle <- \(quantity, scale = 1) if (is.null(values[[quantity]])) NA_real_ else stats::median(finite(values[[quantity]])) * scale
  if (!is.null(values)) list(
    srtt_median_ms = middle("srtt"), cwnd_median_packets = middle("cwnd"), ssthresh_median_packets = middle("ssthresh"), rto_median_ms = middle("rto"),
    send_window_median_bytes = middle("send-window", 1e3), receive_window_median_bytes = middle("receive-window", 1e3), sender_flight_median_bytes = middle("flight", 1e3)
  )
}

# Units of the quantities that a sender's TCP reports. `send-window` is the window that the peer advertises, `receive-window` that of the host itself.
sender_units <- c(cwnd = "packets", ssthresh = "packets", srtt = "ms", rto = "ms", flight = "KB", "send-window" = "KB", "receive-window" = "KB")

# The quantities that a sender's TCP reports, in these units, with `t_s`; columns that the logger does not have are absent. NULL without samples.
values_of_sender <- function(sender, busy = FALSE) {
  if (is.null(sender)) return(NULL)
  windows <- sender_windows(sender)
  whole <- Filter(Negate(is.null), list(
    t_s = sender$t_s, cwnd = sender$cwnd_packets, ssthresh = sender$ssthresh_packets, srtt = sender$srtt_us / 1e3,
    rto = if (!is.null(sender[["rto_us"]])) sender$rto_us / 1e3, flight = windows$in_flight_bytes / 1e3, "send-window" = windows$rwnd_bytes / 1e3,
    "receive-window" = if (!is.null(sender[["rcv_wnd_bytes"]])) sender$rcv_wnd_bytes / 1e3
  ))
  at <- if (busy) which(sender$unacked_packets > 0) else seq_len(nrow(sender))
  as.data.table(lapply(whole, \(column) as.double(column)[at]))
}

finite <- function(values) values[is.finite(values)]

# How often cwnd was reduced, and why. Only SIFTR shows whether a reduction without loss was caused by a
# packet that the sender's own interface refused.
reduction_metrics <- function(x) {
  if (is.null(x$sender)) return(NULL)
  now <- x$sender$ca_state
  was <- shift(now, fill = 0L)
  # The tracepoint tcp_probe does not report `ca_state`, so the cause of a fall of ssthresh is unknown.
  known <- any(now != 0L, na.rm = TRUE) || nrow(x$cycles) == 0
  count <- \(events) if (known) sum(events, na.rm = TRUE) else NA_real_
  departures_ns <- attr(x$sender, "departures_ns")
  on_capture <- departures_ns + (attr(x$sender, "epoch_s") - (attr(x$near, "epoch_s") %||% NA)) * 1e9
  first <- \(flag) if (is.null(x$sender[[flag]])) NA_real_ else as.double(x$sender[[flag]][nrow(x$sender)])
  list(recoveries = count(now == 3L & !was %in% ca_loss_states), timeouts = count(now == 4L & was != 4L),
       reductions_without_loss = count(x$cycles$cause == "cwr"),
       local_send_failures = if (is.null(x$sender[["refused"]])) NA_real_ else sum(x$sender$refused),
       refused_packets = if (is.null(departures_ns) || is.null(x$near)) NA_real_ else refused_count(on_capture, x$near, x$name),
       recovery_share = if (known) recovery_share(x$sender) else NA_real_, sack_negotiated = first("sack"), ecn_negotiated = first("ecn"))
}

# Share of the time with data in flight in which the sender repaired a loss.
recovery_share <- function(sender) {
  until_s <- shift(sender$t_s, type = "lead", fill = sender$t_s[nrow(sender)])
  busy_s <- (until_s - sender$t_s) * (sender$unacked_packets > 0)
  total_s <- sum(busy_s, na.rm = TRUE)
  if (total_s > 0) sum(busy_s[sender$ca_state %in% ca_loss_states], na.rm = TRUE) / total_s else NA_real_
}

# Quantiles of what a sender's TCP reports while data is in flight; each sample counts once.
sender_quantiles <- function(sender) {
  values <- values_of_sender(sender, busy = TRUE)
  share <- seq(0, 1, by = 0.002)
  rbindlist(lapply(intersect(names(sender_units), names(values)), \(name) {
    known <- finite(values[[name]])
    if (length(known) > 0) data.table(quantity = name, unit = sender_units[[name]], share, value = stats::quantile(known, share, names = FALSE, type = 1))
  }))
}

cycle_metrics <- function(x) {
  cycles <- x$cycles
  if (is.null(cycles)) return(NULL)
  counted <- list(cycles = sum(cycles$cause %in% loss_causes))
  if (is.null(cycles$method1_packets)) return(counted)
  c(counted, buffer_of_trial(cycles))
}

# Enough steps that a CDF drawn from them differs from the CDF of all samples by at most half a thousandth.
rtt_quantiles <- function(rtt_ms) {
  share <- seq(0, 1, by = 0.002)
  data.table(share = share, rtt_ms = stats::quantile(rtt_ms, share, names = FALSE, type = 1))
}

jitter_quantiles <- function(jitter_ms) {
  known <- jitter_ms[!is.na(jitter_ms)]
  if (length(known) == 0) return(NULL)
  rtt_quantiles(known)[, .(share, jitter_ms = rtt_ms)]
}

# A figure shows series of three clocks (sender, receiver, router) over one axis, each since the start of traffic on its clock.
flow_series <- function(label, sender, rtt, far, name, t_start_s, sending_ends_s = Inf) {
  parts <- list(thin_series(rtt$t_s, rtt$rtt_ms, label, "rtt", "ms"))
  values <- values_of_sender(sender)
  reported <- lapply(intersect(names(sender_units), names(values)), \(quantity) {
    known <- which(is.finite(values[[quantity]]))
    thin_series(values$t_s[known], values[[quantity]][known], label, quantity, sender_units[[quantity]])
  })
  rbindlist(c(parts, reported, list(rate_series(label, far, name, t_start_s, sending_ends_s))))
}

# All flows have the time windows of the trial, so the rate of a flow that starts late is zero until then. No window is after the time at which the last
# flow stopped sending, because retransmissions after a time-out would count as rates of the traffic.
rate_series <- function(label, far, name, t_start_s, sending_ends_s = Inf) {
  packets <- far[as.character(far$flow) == name]
  if (nrow(packets) < 2) return(NULL)
  setattr(packets, "epoch_s", attr(far, "epoch_s"))
  # The windows reach to the planned end of the flows, even if no packet arrives at the end; if a flow ends by its size, to the last packet.
  last_ns <- if (sending_ends_s < Inf) covered_ns(far) else max(far$t_ns, na.rm = TRUE)
  ends_s <- min((attr(far, "epoch_s") - t_start_s) + last_ns / 1e9, sending_ends_s)
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

# Minimum, median and maximum per column of a figure: extremes stay visible and the file stays small.
thin_series <- function(t_s, value, flow, quantity, unit) {
  if (length(t_s) == 0) return(NULL)
  width_s <- max(diff(range(t_s)) / series_columns, 1e-6)
  # The last sample is at the end of the last column.
  column <- pmin(floor((t_s - t_s[1]) / width_s), series_columns - 1L)
  x <- data.table(column = column, t_s = t_s, value = as.double(value))
  # data.table optimises these functions of single columns, which makes them ten times as fast with many small groups.
  thin <- x[, .(t_s = mean(t_s), low = min(value), mid = median(value), high = max(value)), by = column]
  data.table(flow = flow, quantity = quantity, unit = unit, thin[, !"column"])
}
