#' Measure one trial, once, for all its figures and tables
#'
#' @param folder The campaign's folder.
#' @param manifest The trial's manifest, as [read_campaign()] gives it.
#' @return A list: `id`, `metrics` (`flow`, `metric`, `unit`, `value`), `cycles` (per flow and cwnd cycle), `rtt` (quantiles of
#'   RTT: `flow`, `share`, `rtt_ms`), `jitter` (the same of jitter: `jitter_ms`), `series` (`flow`, `quantity`, `unit`, `t_s`, `low`, `mid`, `high`),
#'   `pauses` (per flow and episode of PAUSE frames), `closeup` (cwnd and PAUSE frames around one: `flow`, `quantity`, `t_s`, `value`). Times are
#'   seconds since the start of traffic.
#' @export
measure_trial <- function(folder, manifest) {
  manifest$resolved$mtu_bytes <- manifest$resolved$mtu_bytes %||% ethernet_mtu_bytes
  traces <- open_traces(folder, manifest)
  queue <- measure_queue(traces)
  flows <- lapply(manifest$resolved$flows, \(f) measure_flow(f, traces, manifest))
  part <- \(name) rbindlist(c(lapply(flows, \(f) f[[name]]), list(queue[[name]])), use.names = TRUE, fill = TRUE)
  overhead <- metric_rows("", list(overhead_s = as.double(manifest$overhead_s %||% NA)))
  together <- metrics_together(part("size"), manifest$resolved$path$down$rate_bps)
  list(id = manifest$id, metrics = rbind(part("metrics"), together, overhead)[!is.na(value)], cycles = part("cycles"),
       rtt = part("rtt"), jitter = part("jitter"), series = part("series"), pauses = part("pauses"), closeup = part("closeup"))
}

# What interfaces have where nobody sets them.
ethernet_mtu_bytes <- 1500

metric_rows <- function(flow, values) {
  data.table(flow = flow, metric = names(values), unit = unname(metric_units[names(values)]),
             value = unname(vapply(values, as.double, 0)))
}

# What a trial left, by what it is; captures are decoded once, when first asked for. What is read of a path goes through `within`.
open_traces <- function(folder, manifest) {
  at <- file.path(folder, "trials", manifest$id)
  files <- rbindlist(lapply(manifest$files, \(f) {
    list(path = file.path(at, f$path), kind = f$kind, host = f$host %||% "", logger = f$logger %||% "")
  }))
  captures <- list()
  list(
    t_start_s = as.double(manifest$t_start_s),
    path = \(logger_name, of = NULL) {
      files$path[files$logger == logger_name & (is.null(of) | files$host == (of %||% ""))]
    },
    capture = \(of) {
      found <- files$path[files$kind == "capture" & files$host == of]
      if (length(found) == 0) return(NULL)
      if (is.null(captures[[of]])) captures[[of]] <<- within_trial(read_pcap(found[1]), of, manifest)
      captures[[of]]
    },
    within = \(x, host) within_trial(x, host, manifest)
  )
}

# What a host recorded, without what came after the trial. Captures and loggers end after the hosts are restored: by then a queue that was
# still full may have been served at another rate. The moment is of the host's own clock; trials of before it was kept have none.
within_trial <- function(x, host, manifest) {
  over_s <- unlist(lapply(manifest$ends, \(e) if (identical(e$host, host)) e$over_s))
  later <- if (length(over_s) > 0) which(seconds_since(x, over_s[1]) >= 0)
  if (length(later) == 0) x else alike(x[-later], x)
}

measure_queue <- function(traces) {
  path <- traces$path("queue")
  every <- if (length(path) > 0) read_queue(path[1], handle = NULL)
  queue <- if (!is.null(every)) keep_epoch(every[every$handle == "10:"], every)
  if (is.null(queue) || nrow(queue) == 0) return(list())
  queue[, t_s := seconds_since(queue, traces$t_start_s)]
  deepest <- max(queue$backlog_packets)
  dropped <- queue$drops[nrow(queue)] > queue$drops[1]
  list(
    metrics = metric_rows("", list(queue_max_packets = deepest, queue_max_bytes = max(queue$backlog_bytes),
                                   buffer_truth_packets = if (dropped) deepest else NA,
                                   netem_drops_packets = netem_drops(every))),
    series = thin_series(queue$t_s, queue$backlog_packets, "", "queue", "packets")
  )
}

# netem after a bottleneck is a queue of its own: where rate times delay exceeds its limit, it drops and nothing else tells.
netem_drops <- function(queues) {
  stages <- queues[qdisc == "netem"]
  if (nrow(stages) == 0) return(NA_real_)
  sum(stages[, .(drops = max(drops) - min(drops)), by = .(interface, handle)]$drops)
}

measure_flow <- function(flow, traces, manifest) {
  ref <- traces$capture(flow$from)
  mon <- traces$capture(flow$to)
  name <- flow_in_capture(flow, mon %||% ref)
  if (is.na(name)) return(list())
  both_ways <- c(name, way_back(mon %||% ref, name))
  near <- conversation_of(ref, both_ways)
  far <- conversation_of(mon, both_ways)
  sender <- tcp_samples(flow, traces)
  rtt <- flow_rtt(near, far, name, traces$t_start_s)
  handshake_ms <- if (is.null(ref)) NA_real_ else handshake_rtt(near, name)
  cycles <- flow_cycles(flow, sender, rtt, mon, handshake_ms, manifest)
  offset <- clock_between(traces, flow$from, flow$to)
  device <- device_of_flow(flow, ref, mon, name, traces, manifest, offset)
  labelled <- \(x) if (!is.null(x) && nrow(x) > 0) cbind(flow = flow$label, x)
  list(
    metrics = metric_rows(flow$label, c(
      capture_metrics(near, far, name), rtt_metrics(rtt, handshake_ms), rtt_in_packets(rtt, manifest), sender_metrics(sender), cycle_metrics(cycles),
      limit_metrics(limits_of_flow(flow, sender, near, name, rtt, traces, manifest)), clock_metrics(near, far, name, offset), device$metrics
    )),
    size = flow_size(flow, far %||% near, name, manifest), cycles = labelled(cycles),
    rtt = labelled(if (nrow(rtt) > 0) rtt_quantiles(rtt$rtt_ms)), jitter = labelled(jitter_quantiles(rtt$jitter_ms)),
    series = flow_series(flow$label, sender, rtt, mon %||% ref, name, traces$t_start_s),
    pauses = labelled(device$pauses), closeup = labelled(closeup_of(device, sender))
  )
}

limit_metrics <- function(limits) if (is.null(limits)) list() else limit_shares(limits) %||% list()

# A generator's control connection may share addresses and port: the flow is the connection with most payload.
flow_in_capture <- function(flow, capture) {
  if (is.null(capture)) return(NA_character_)
  seen <- data_flows(capture, proto = c("tcp", "udp"))
  port <- flow$port
  ends <- c(flow$from_address, flow$to_address)
  ours <- as.character(seen$src) %in% ends & as.character(seen$dst) %in% ends & (seen$dport == port | seen$sport == port)
  if (any(ours)) return(seen$flow[which(ours)[1L]])
  # Echoes have no ports.
  echoes <- paste(flow$from_address, ">", flow$to_address)
  if (echoes %in% levels(capture$flow) && identical(flow$generator, "ping")) echoes else NA_character_
}

flow_cycles <- function(flow, sender, rtt, mon, handshake_ms, manifest) {
  if (is.null(sender)) return(NULL)
  cycles <- cwnd_cycles(sender)
  if (nrow(rtt) == 0 || is.null(mon) || is.na(handshake_ms)) return(cycles)
  from <- vapply(manifest$resolved$flows, \(f) f$from_address, "")
  # On the receiver's own clock, as `arrival_s` of the RTT samples is: the hosts' clocks need not agree.
  arrivals <- mon[as.character(mon$src) %in% from, .(t_s = t_ns / 1e9, ip_bytes)]
  # With several CPUs a capture's order is not quite that of its time stamps.
  setorder(arrivals, t_s)
  # The handshake is one sample: a host that was busy just then must not pass for a long path.
  buffer_by_cycle(cycles, sender, rtt, arrivals, min(handshake_ms, rtt$rtt_ms), manifest$resolved$mtu_bytes)
}
