# Measure quantities of a trial over time, for figures. outputs.yaml lists the quantities under `series`, with the recordings that each is measured from.

# The functions that outputs.yaml names under `series` return a table of samples with the columns `t_s` and `value`, or a named list of such tables. They
# return NULL if nothing recorded the quantity. A table that does not come from the first source in outputs.yaml names its source in the attribute `from`.
# Times are seconds since the start of traffic. A function with scope `flow` or `application` has the same argument as functions that measure metrics. The
# argument of a function with scope `trial` or `host` has `manifest`, `traces` and, for a host, its name `host`. The argument of every function
# also has `frame`, the time windows in which packets are counted.

#' Measure quantities of one trial over time
#'
#' @param folder The campaign's folder.
#' @param manifest The trial's manifest.
#' @param names Names of series in outputs.yaml.
#' @param from_s,to_s Span to measure, seconds since the start of traffic.
#' @return A list with one element per name. Each element is a list of `series` (a table like `series` of [measure_trial()], with the column `source`) and
#'   `quantiles` (`flow`, `share`, `value`); both are NULL for a quantity that nothing recorded.
#' @noRd
measure_series <- function(folder, manifest, names, from_s = -Inf, to_s = Inf) {
  manifest$resolved$mtu_bytes <- mtu_of(manifest)
  known <- outputs_of("series")[names]
  more <- unique(unlist(lapply(known, `[[`, "columns")))
  traces <- open_traces(folder, manifest, if (length(more) > 0) c("usual", more))
  subjects <- list()
  found <- list()
  for (name in names) {
    scope <- known[[name]]$scope %||% "flow"
    if (is.null(subjects[[scope]])) subjects[[scope]] <- series_subjects(scope, traces, manifest, from_s, to_s)
    found[[name]] <- rows_of_series(name, known[[name]], subjects[[scope]], from_s, to_s)
  }
  found
}

rows_of_series <- function(name, entry, subjects, from_s, to_s) {
  each <- Map(\(label, subject) {
    made <- series_samples(name, entry, subject)
    samples <- if (!is.null(made)) made[is.finite(value) & t_s >= from_s & t_s <= to_s][order(t_s)]
    if (is.null(samples) || nrow(samples) == 0) return(NULL)
    list(series = cbind(thin_series(samples$t_s, samples$value, label, name, entry$unit), source = attr(made, "from") %||% entry$sources[[1]][[1]]),
         quantiles = data.table(flow = label, as.data.table(quantiles_of_samples(samples$value))))
  }, names(subjects), subjects)
  together <- \(part) {
    rows <- rbindlist(lapply(each, `[[`, part))
    if (nrow(rows) > 0) rows
  }
  list(series = together("series"), quantiles = together("quantiles"))
}

# Return the samples of one quantity. A function that returns several quantities is called only once per subject.
series_samples <- function(name, entry, subject) {
  made <- subject$made[[entry[["function"]]]]
  if (is.null(made)) {
    made <- list(function_named(entry[["function"]])(subject))
    subject$made[[entry[["function"]]]] <- made
  }
  if (is.data.table(made[[1]])) made[[1]] else made[[1]][[name]]
}

quantiles_of_samples <- function(values) {
  share <- seq(0, 1, by = 0.002)
  list(share = share, value = stats::quantile(values, share, names = FALSE, type = 1))
}

# Return the arguments of series functions as environments, named by the label of the flow or host; "" is the trial.
series_subjects <- function(scope, traces, manifest, from_s, to_s) {
  flows <- manifest$resolved$flows
  subjects <- switch(scope,
    flow = stats::setNames(lapply(flows, subject_of_flow, traces, manifest), vapply(flows, \(f) f$label, "")),
    trial = stats::setNames(list(list2env(list(traces = traces, manifest = manifest))), ""),
    application = applications_of(manifest, traces),
    host = lapply(stats::setNames(nm = names(manifest$resolved$hosts)), \(host) list2env(list(traces = traces, manifest = manifest, host = host)))
  )
  delayedAssign("frame", series_frame(traces, manifest, from_s, to_s))
  for (subject in subjects) {
    delayedAssign("frame", frame, assign.env = subject)
    subject$made <- list()
  }
  subjects
}

# Return a table's times in seconds since the start of traffic. The table was recorded at the flow's sender, or at its receiver if the sender has no capture.
seconds_at_near <- function(recorded, x) seconds_since(recorded, start_on(x$traces, if (is.null(x$near)) x$flow$to else x$flow$from))

# Return a table's times in seconds since the start of traffic. The table was recorded at the flow's receiver, or at its sender if the receiver has no capture.
seconds_at_far <- function(recorded, x) seconds_since(recorded, start_on(x$traces, if (is.null(x$far)) x$flow$from else x$flow$to))

# The time windows that a capture shows: if it is truncated, only those before its last packet. `seconds_at` is one of the two functions above.
frame_seen <- function(x, capture, seconds_at) {
  if (!isTRUE(attr(capture, "truncated"))) return(x$frame)
  end_s <- seconds_at(keep_epoch(data.table(t_ns = covered_ns(capture)), capture), x)
  replace(x$frame, c("to_s", "rates_to_s"), pmin(c(x$frame$to_s, x$frame$rates_to_s), end_s))
}

# Everything known about a flow, see measure_flow(); parts that take time are computed on first use. `name` is NA if no capture has the flow.
subject_of_flow <- function(flow, traces, manifest) {
  ref <- traces$capture(flow$from, flow)
  mon <- traces$capture(flow$to, flow)
  name <- flow_in_capture(flow, mon, manifest$resolved$flows)
  # A capture that is empty, or of another interface, does not show the flow.
  silent <- if (is.na(name)) mon
  if (is.na(name)) {
    mon <- NULL
    name <- flow_in_capture(flow, ref, manifest$resolved$flows)
  }
  if (!is.na(name) && !name %in% levels(ref$flow)) ref <- NULL
  # The samples of TCP are found by the port of the data.
  if (!is.na(name) && flow$generator %in% own_port_generators) flow$port <- (mon %||% ref)$dport[first_packet(mon %||% ref, name)]
  x <- list2env(list(flow = flow, manifest = manifest, traces = traces, name = name))
  if (!is.na(name)) {
    both_ways <- c(name, way_back(mon %||% ref, name))
    x$near <- conversation_of(ref, both_ways)
    x$far <- conversation_of(mon, both_ways)
    # A sender of UDP continues even if nothing arrives. A receiver's capture that shows the receiver's address was recorded at the interface of the flow.
    # If this capture lacks the flow, nothing arrived.
    if (!is.null(silent) && protocol_of(ref, name) %in% "udp") {
      x$far <- x$near[0]
      shows_address <- flow$to_address %in% c(levels(silent$src), levels(silent$dst))
      x$nothing_arrived <- if (shows_address && !attr(silent, "truncated")) TRUE else NA
    }
  }
  # Only a TCP flow has samples of TCP: those of a UDP flow would be from its generator's control connection, which has the same port.
  tcp <- is.na(name) || protocol_of(mon %||% ref, name) %in% "tcp"
  delayedAssign("sender", if (tcp) tcp_samples(flow, traces), assign.env = x)
  delayedAssign("rtt", if (is.na(name)) no_rtt else flow_rtt(x$near, x$far, name, start_on(traces, flow$from)), assign.env = x)
  delayedAssign("clock", clock_between(traces, flow$from, flow$to), assign.env = x)
  delayedAssign("handshake_ms", if (is.null(ref)) NA_real_ else handshake_rtt(x$near, name), assign.env = x)
  # The RTT of the idle path. Without the handshake it is unknown: the queue may have been full when the capture began. The handshake is a single sample, which
  # a busy host may have delayed, so the smallest RTT is used if it is lower.
  delayedAssign("idle_ms", if (is.na(x$handshake_ms)) NA_real_ else min(x$handshake_ms, x$rtt$rtt_ms), assign.env = x)
  delayedAssign("cycles", flow_cycles(flow, x$sender, x$rtt, mon, x$idle_ms, manifest), assign.env = x)
  delayedAssign("device", device_of_flow(flow, ref, mon, name, traces, manifest, x$clock), assign.env = x)
  x$tcp <- tcp && !is.na(name)
  x
}

# Time windows for counts, each `width_s` long. An infinite `from_s` stands for the start of traffic, an
# infinite `to_s` for the end of the trial. If `to_s` is infinite, the windows for rates end earlier, at
# `rates_to_s`: when the last flow stops sending (as in rate_series()).
series_frame <- function(traces, manifest, from_s, to_s) {
  ends_s <- min(to_s, end_of_trial_s(traces, manifest))
  starts_s <- if (is.finite(from_s)) from_s else 0
  rates_to_s <- if (is.finite(to_s)) ends_s else min(ends_s, sending_ends_s(manifest))
  list(from_s = starts_s, to_s = ends_s, rates_to_s = rates_to_s, width_s = rate_window_s(max(ends_s - starts_s, 0)))
}

end_of_trial_s <- function(traces, manifest) {
  last_s <- unlist(lapply(names(manifest$resolved$hosts), \(host) {
    x <- traces$capture(host)
    if (!is.null(x) && nrow(x) > 0) max(seconds_since(x, start_on(traces, host)), na.rm = TRUE)
  }))
  max(last_s, as.double(manifest$resolved$duration_s %||% 0))
}

# Sum the weights per window and return the sums as samples in the middle of each window; windows without events are zero. An incomplete last window is
# left out.
per_window <- function(frame, t_s, weight = rep(1, length(t_s))) {
  count <- floor((frame$to_s - frame$from_s) / frame$width_s + 1e-9)
  if (count < 1) return(NULL)
  window <- floor((t_s - frame$from_s) / frame$width_s) + 1
  inside <- which(window >= 1 & window <= count)
  sums <- numeric(count)
  totals <- tapply(as.double(weight[inside]), window[inside], sum)
  sums[as.integer(names(totals))] <- totals
  data.table(t_s = frame$from_s + (seq_len(count) - 0.5) * frame$width_s, value = sums)
}

rate_mbps <- function(frame, t_s, bytes) {
  windows <- per_window(replace(frame, "to_s", frame$rates_to_s), t_s, bytes)
  if (is.null(windows)) NULL else windows[, value := 8e-6 * value / frame$width_s][]
}

from_source <- function(samples, source) if (is.null(samples)) NULL else setattr(samples, "from", source)

# --- What the sender's TCP reports

series_of_sender <- function(x) {
  sender <- x$sender
  if (is.null(sender)) return(NULL)
  values <- values_of_sender(sender)
  more <- list(rttvar = c("rttvar_us", 1e-3), "pacing-rate" = c("pacing_rate_bps", 1e-6), "delivery-rate" = c("delivery_rate_bps", 1e-6))
  for (name in names(more)) {
    column <- sender[[more[[name]][1]]]
    if (!is.null(column)) set(values, NULL, name, as.double(column) * as.double(more[[name]][2]))
  }
  names <- setdiff(names(values), "t_s")
  lapply(stats::setNames(nm = names), \(name) from_source(data.table(t_s = values$t_s, value = values[[name]]), sender$source[1]))
}

# --- Round-trip times and delays

series_of_rtt <- function(x) {
  if (nrow(x$rtt) == 0) return(NULL)
  from <- if (is.null(x$far)) "capture-at-sender" else "captures-at-both-ends"
  list(rtt = from_source(x$rtt[, .(t_s, value = rtt_ms)], from), jitter = from_source(x$rtt[, .(t_s, value = jitter_ms)], from))
}

series_of_ack_rtt <- function(x) {
  if (is.null(x$near) || !x$tcp) return(NULL)
  rtt <- data_ack_rtt(x$near, x$name)
  data.table(t_s = seconds_at_near(rtt, x), value = rtt$rtt_ms)
}

series_of_timestamp_rtt <- function(x) {
  if (is.null(x$near) || !x$tcp) return(NULL)
  rtt <- timestamp_rtt(x$near, x$name)
  data.table(t_s = seconds_at_near(rtt, x), value = rtt$rtt_ms)
}

series_of_delay <- function(x) {
  if (is.null(x$near) || is.null(x$far) || is.null(x$clock)) return(NULL)
  delay <- one_way_delay(x$near, x$far, x$name, x$clock)
  forward <- which(delay$direction == "forward")
  data.table(t_s = seconds_at_near(delay, x)[forward], value = delay$delay_ms[forward])
}

# --- Windows and bytes in flight, from a capture or else as TCP reports them

series_of_flight <- function(x) {
  if (is.null(x$near) || !x$tcp) return(from_tcp_state(x, "flight"))
  flight <- bytes_in_flight(x$near, x$name)
  data.table(t_s = seconds_at_near(flight, x), value = flight$flight_bytes / 1e3)
}

series_of_rwnd <- function(x) {
  capture <- x$near %||% x$far
  offered <- if (!is.null(capture) && x$tcp) scaled_window(capture, x$name)
  if (is.null(offered)) return(from_tcp_state(x, "send-window"))
  data.table(t_s = seconds_at_near(offered, x), value = offered$window_bytes / 1e3)
}

from_tcp_state <- function(x, name) series_of_sender(x)[[name]]

# --- Rates

series_of_throughput <- function(x) {
  capture <- x$far %||% x$near
  if (is.null(capture) || anyNA(x$nothing_arrived)) return(NULL)
  packets <- packets_out(x, capture)
  bytes <- list(throughput = packets$ip_bytes, "throughput-payload" = packets$payload_bytes,
                "throughput-link" = bytes_on_link(packets$frame_bytes, capture))
  lapply(Filter(\(sizes) !anyNA(sizes), bytes), \(sizes) rate_mbps(frame_seen(x, capture, seconds_at_far), packets$t_s, sizes))
}

packets_out <- function(x, capture) {
  rows <- which(as.character(capture$flow) == x$name)
  cbind(t_s = seconds_at_far(capture, x)[rows], as.data.table(capture)[rows])
}

# At the receiver, each byte counts when it arrives for the first time.
series_of_goodput <- function(x) {
  capture <- x$far %||% x$near
  if (is.null(capture)) return(NULL)
  if (!x$tcp) return(series_of_throughput(x)[["throughput-payload"]])
  data <- data_packets(capture, x$name)
  if (attr(data, "of_all")$unknown) return(NULL)
  rate_mbps(frame_seen(x, capture, seconds_at_far), seconds_at_far(data, x), data$new_bytes)
}

series_of_all_flows <- function(x) {
  each <- lapply(x$manifest$resolved$flows, \(flow) {
    one <- subject_of_flow(flow, x$traces, x$manifest)
    one$frame <- x$frame
    series_of_throughput(one)$throughput
  })
  each <- Filter(Negate(is.null), each)
  # After the end of a truncated capture, the rate of its flows is unknown, and so is that of all flows together.
  if (length(each) > 0) rbindlist(each)[, .(value = sum(value), flows = .N), by = t_s][flows == length(each), .(t_s, value)]
}

# --- Loss, retransmissions, marks, order

series_of_loss <- function(x) {
  if (is.null(x$near) || NROW(x$far) == 0) return(NULL)
  judged <- judged_packets(x$near, x$far, x$name, way_back(x$far, x$name))
  if (nrow(judged) == 0) return(NULL)
  at_s <- seconds_at_near(x$near, x)
  lost <- per_window(x$frame, at_s[judged$row], is.na(judged$other))
  if (is.null(lost)) return(NULL)
  all <- per_window(x$frame, at_s[judged$row])
  lost[, value := fifelse(all$value > 0, 100 * value / all$value, NA_real_)]
  seen <- list(frame_seen(x, x$near, seconds_at_near), frame_seen(x, x$far, seconds_at_far))
  shorter <- seen[[which.min(c(seen[[1]]$to_s, seen[[2]]$to_s))]]
  list(loss = lost, reordering = per_window(shorter, at_s[in_order_of_arrival(judged, x$far)[late == TRUE]$row]))
}

series_of_retransmissions <- function(x) {
  if (!is.null(x$near) && x$tcp) {
    data <- data_packets(x$near, x$name)
    if (attr(data, "of_all")$unknown) return(NULL)
    return(per_window(frame_seen(x, x$near, seconds_at_near), seconds_at_near(data, x)[data$new_bytes < data$payload_bytes]))
  }
  sender <- x$sender
  # Only TCP_INFO counts retransmissions; the other logs have zeros.
  if (is.null(sender) || sender$source[1] != "tcp-info") return(NULL)
  from_source(counted(x$frame, sender$t_s, sender$total_retrans_packets), "tcp-info")
}

# Growth of a counter per window.
counted <- function(frame, t_s, counter) {
  grown <- diff(as.double(counter))
  per_window(frame, t_s[-1], pmax(fcoalesce(grown, 0), 0))
}

series_of_duplicate_acks <- function(x) {
  if (is.null(x$near) || !x$tcp) return(NULL)
  answers <- marked_acks(x$near, x$name)
  per_window(frame_seen(x, x$near, seconds_at_near), seconds_at_near(answers, x)[which(answers$duplicate)])
}

# Packets that arrive with Congestion Experienced, and acknowledgements that echo it (RFC 3168).
series_of_marks <- function(x) {
  marked <- if (NROW(x$far) > 0) packets_out(x, x$far)[bitwAnd(tos, 3L) == 3L]
  back <- if (!is.null(x$near) && x$tcp) which(as.character(x$near$flow) == reverse_flow(x$name) & bitwAnd(x$near$flags, 66L) == 64L)
  list("ecn-marks" = if (!is.null(marked)) per_window(frame_seen(x, x$far, seconds_at_far), marked$t_s),
       "ecn-echoes" = if (!is.null(back)) per_window(frame_seen(x, x$near, seconds_at_near), seconds_at_near(x$near, x)[back]))
}

# --- The bottleneck's queue

series_of_queue <- function(x) {
  queue <- queue_samples(x$traces)
  if (is.null(queue)) return(NULL)
  rate_bps <- as.double(path_queued(x$manifest)$rate_bps %||% NA)
  list(queue = queue[, .(t_s, value = as.double(backlog_packets))], "queue-bytes" = queue[, .(t_s, value = backlog_bytes / 1e3)],
       "queue-delay" = queue[, .(t_s, value = 8e3 * backlog_bytes / rate_bps)], drops = counted(x$frame, queue$t_s, queue$drops),
       # Traces of FreeBSD, and those of earlier versions of samovar, have no column `marks`; queue disciplines that do not mark packets leave it empty.
       "queue-marks" = if (!all(is.na(queue[["marks"]]))) counted(x$frame, queue$t_s, queue$marks))
}

# --- Estimates of buffers

series_of_cycles <- function(x) {
  if (is.null(x$cycles[["method1_packets"]])) return(NULL)
  methods <- c("buffer-method1" = "method1_packets", "buffer-method1-local" = "method1_local_packets", "buffer-method2" = "method2_packets",
               "buffer-method2-raw" = "method2_raw_packets")
  cycles <- x$cycles[counts == TRUE]
  lapply(methods, \(column) data.table(t_s = cycles$end_s, value = cycles[[column]]))
}

series_of_pauses <- function(x) {
  if (!is.null(x$device$pauses)) list("pause-to-drop" = x$device$pauses[, .(t_s = first_s, value = 1e3 * pause_to_drop_s)])
}

# --- Hosts

series_of_pause <- function(x) {
  frames <- pause_witness(x$traces, x$host, x$traces$capture(x$host))
  if (is.null(frames)) return(NULL)
  from_source(per_window(x$frame, seconds_since(frames, start_on(x$traces, x$host))), attr(frames, "from"))
}

# The mean over all CPUs of a host.
series_of_cpu <- function(x) {
  path <- x$traces$path("cpu", x$host)
  if (length(path) == 0) return(NULL)
  rows <- x$traces$within(read_cpu(path[1]), x$host)
  rows <- cbind(t_s = seconds_since(rows, start_on(x$traces, x$host)), as.data.table(rows))
  counters <- intersect(c("user_s", "nice_s", "system_s", "idle_s", "iowait_s", "irq_s", "softirq_s", "steal_s"), names(rows))
  totals <- rows[, .(whole = sum(unlist(.SD), na.rm = TRUE)), by = t_s, .SDcols = counters]
  handled <- rows[, .(handled = sum(unlist(.SD), na.rm = TRUE)), by = t_s, .SDcols = intersect(c("irq_s", "softirq_s"), counters)]
  interrupts <- data.table(t_s = totals$t_s[-1], value = 100 * diff(handled$handled) / diff(totals$whole))
  list(cpu = rows[!is.na(busy_share), .(value = 100 * mean(busy_share)), by = t_s], interrupts = interrupts)
}

series_of_nic <- function(x) {
  path <- x$traces$path("nic", x$host)
  if (length(path) == 0) return(NULL)
  rows <- x$traces$within(read_nic(path[1]), x$host)
  t_s <- seconds_since(rows, start_on(x$traces, x$host))
  if (length(t_s) < 2) return(NULL)
  per_second <- \(column) data.table(t_s = t_s[-1], value = pmax(diff(rows[[column]]), 0) / diff(t_s))[value < Inf]
  list("frames-sent" = per_second("tx_packets"), "frames-received" = per_second("rx_packets"))
}

# --- Cache

#' Return quantities over time of some trials, measured now or read from the cache
#'
#' @param results Results of a campaign, or of two, see [side_by_side()].
#' @param needs A list with what to measure: each element has the `id` of a trial, `names` of series, `from_s`, `to_s`.
#' @param cores Number of trials measured at a time.
#' @return A list of `series` and `quantiles`, tables as from [measure_series()] with a column `trial`; `quantiles` also has `quantity`.
#' @noRd
series_of_trials <- function(results, needs, cores = 1L) {
  if (!is.null(results$sides)) {
    of_side <- split(needs, substr(vapply(needs, \(need) need$id, ""), 1, 1))
    found <- Map(\(needs, side) {
      own <- lapply(needs, \(need) replace(need, "id", substring(need$id, 3)))
      lapply(series_of_trials(results$sides[[side]], own, cores), labelled_rows, "trial", side)
    }, of_side, names(of_side))
    return(lapply(c(series = "series", quantiles = "quantiles"), \(part) rbindlist(lapply(found, `[[`, part))))
  }
  version <- series_version()
  path <- \(need, name) {
    text <- paste(results$keys[[need$id]], version, name, format(need$from_s, digits = 15), format(need$to_s, digits = 15))
    file.path(cache_folder(results$campaign$folder), "series", sha256_texts(text))
  }
  missing <- lapply(needs, \(need) {
    need$names <- need$names[!file.exists(vapply(need$names, \(name) path(need, name), ""))]
    need
  })
  missing <- Filter(\(need) length(need$names) > 0, missing)
  share_out(missing, cores, \(need) {
    measured <- measure_series(results$campaign$folder, results$campaign$manifests[[need$id]], need$names, need$from_s, need$to_s)
    for (name in need$names) store_write(measured[[name]], path(need, name))
  }, \(i, one) force(one)) # if this process does the work, force() starts it
  read <- lapply(needs, \(need) lapply(need$names, \(name) {
    one <- store_read(path(need, name))
    list(series = if (!is.null(one$series)) data.table(trial = need$id, one$series),
         quantiles = if (!is.null(one$quantiles)) data.table(trial = need$id, quantity = name, one$quantiles))
  }))
  read <- unlist(read, recursive = FALSE)
  list(series = rbindlist(lapply(read, `[[`, "series")), quantiles = rbindlist(lapply(read, `[[`, "quantiles")))
}

# A hash of the code that measures quantities over time. A project's R files may mix measuring and drawing, so all of them are hashed.
series_version <- function() {
  known <- outputs_of("series")
  functions <- unique(vapply(known, \(s) s[["function"]], ""))
  own <- if (!all(functions %in% ls(topenv()))) sha256_files(manifest$files)
  hash_of_code(c("measure_series", functions), c(names(known), unlist(known), own))
}
