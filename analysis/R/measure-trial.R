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
  flows <- lapply(manifest$resolved$flows, \(f) measure_flow(f, traces, manifest))
  queue <- queue_samples(traces)
  own <- list(series = if (!is.null(queue)) thin_series(queue$t_s, queue$backlog_packets, "", "queue", "packets"))
  part <- \(name) rbindlist(c(lapply(flows, \(f) f[[name]]), list(own[[name]])), use.names = TRUE, fill = TRUE)
  trial <- list(manifest = manifest, traces = traces, queue = queue, sizes = part("size"))
  list(id = manifest$id, metrics = rbind(part("metrics"), metric_rows("", measured_metrics("trial", trial)))[!is.na(value)], cycles = part("cycles"),
       rtt = part("rtt"), jitter = part("jitter"), series = part("series"), pauses = part("pauses"), closeup = part("closeup"))
}

# The MTU of interfaces where none is configured.
ethernet_mtu_bytes <- 1500

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

# Samples of the bottleneck's queue, with those of all queues in attribute `every`; NULL without the queue logger.
queue_samples <- function(traces) {
  path <- traces$path("queue")
  every <- if (length(path) > 0) read_queue(path[1], handle = NULL)
  queue <- if (!is.null(every)) keep_epoch(every[every$handle == "10:"], every)
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

# A netem after the bottleneck is a queue of its own: where rate times delay exceeds its limit it drops packets, which no other trace shows.
netem_drops <- function(queues) {
  stages <- queues[qdisc == "netem"]
  if (nrow(stages) == 0) return(NA_real_)
  sum(stages[, .(drops = max(drops) - min(drops)), by = .(interface, handle)]$drops)
}

overhead_metrics <- function(trial) list(overhead_s = as.double(trial$manifest$overhead_s %||% NA))

# What is known of a flow is the argument of all functions that measure metrics of a flow: `flow` and `manifest` as planned, `traces`, the
# captures `near` and `far` of its conversation at sender and receiver (NULL without one), its `name` in them, the `sender`'s TCP samples,
# `rtt` samples, `handshake_ms`, cwnd `cycles`, the `clock` offset and the `device` with PAUSE frames.
measure_flow <- function(flow, traces, manifest) {
  ref <- traces$capture(flow$from)
  mon <- traces$capture(flow$to)
  name <- flow_in_capture(flow, mon %||% ref)
  if (is.na(name)) return(list())
  both_ways <- c(name, way_back(mon %||% ref, name))
  x <- list(flow = flow, manifest = manifest, traces = traces, name = name, near = conversation_of(ref, both_ways), far = conversation_of(mon, both_ways))
  x$sender <- tcp_samples(flow, traces)
  x$rtt <- flow_rtt(x$near, x$far, name, traces$t_start_s)
  x$handshake_ms <- if (is.null(ref)) NA_real_ else handshake_rtt(x$near, name)
  x$cycles <- flow_cycles(flow, x$sender, x$rtt, mon, x$handshake_ms, manifest)
  x$clock <- clock_between(traces, flow$from, flow$to)
  x$device <- device_of_flow(flow, ref, mon, name, traces, manifest, x$clock)
  labelled <- \(rows) if (!is.null(rows) && nrow(rows) > 0) cbind(flow = flow$label, rows)
  list(
    metrics = metric_rows(flow$label, measured_metrics("flow", x)),
    size = flow_size(flow, x$far %||% x$near, name, manifest), cycles = labelled(x$cycles),
    rtt = labelled(if (nrow(x$rtt) > 0) rtt_quantiles(x$rtt$rtt_ms)), jitter = labelled(jitter_quantiles(x$rtt$jitter_ms)),
    series = flow_series(flow$label, x$sender, x$rtt, mon %||% ref, name, traces$t_start_s),
    pauses = labelled(x$device$pauses), closeup = labelled(closeup_of(x$device, x$sender))
  )
}

limit_metrics <- function(x) limit_shares(limits_of_flow(x$flow, x$sender, x$near, x$name, x$rtt, x$traces, x$manifest))

device_metrics <- function(x) x$device$metrics

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
