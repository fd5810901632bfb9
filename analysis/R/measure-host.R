# Measures of a flow that rest on what its hosts logged beside the captures: clocks, PAUSE frames, drops at the sender's own interface, windows.

# The clocks' difference between two hosts of the trial; NULL where their beacons were not kept or too few were heard by both.
clock_between <- function(traces, ref, mon) {
  paths <- lapply(c(ref, mon), \(host) traces$path("beacons", host))
  if (any(lengths(paths) == 0)) return(NULL)
  tryCatch(clock_offset(read_beacons(paths[[1]][1]), read_beacons(paths[[2]][1])),
           samovar_error_beacons = \(e) NULL, samovar_error_trace = \(e) NULL)
}

# Without beacons the clocks are taken as one: differences of delays hold, delays do not.
assumed_offset <- function(capture) {
  data.table(from_s = attr(capture, "epoch_s"), to_s = attr(capture, "epoch_s"), epoch_s = attr(capture, "epoch_s"), at_ns = 0, offset_ns = 0,
             drift_ppm = 0, error_ns = NA_real_, beacons = 0L, cause = "start")
}

clock_metrics <- function(x) {
  ref <- x$near
  mon <- x$far
  name <- x$name
  offset <- x$clock
  if (is.null(offset) || is.null(ref) || is.null(mon)) return(list())
  longest <- which.max(offset$to_s - offset$from_s)
  delays <- one_way_delay(ref, mon, name, offset)
  told <- list(clock_offset_ms = offset$offset_ns[longest] / 1e6, clock_drift_ppm = offset$drift_ppm[longest], clock_error_us = max(offset$error_ns, na.rm = TRUE) / 1e3)
  forward <- delays[direction == "forward" & !is.na(delay_ms)]$delay_ms
  if (length(forward) == 0) return(told)
  c(told, list(owd_median_ms = stats::median(forward), owd_min_ms = min(forward), owd_rtt_gap_us = delay_consistency(ref, mon, name, offset)$max_us))
}

# PAUSE frames that the sender's interface showed: in its capture, or to the logger.
pause_witness <- function(traces, host, capture) {
  path <- traces$path("pause-frames", host)
  logged <- if (length(path) > 0) pauses_of(traces$within(read_pause_frames(path[1]), host))
  seen <- if (!is.null(capture)) pauses_of(capture)
  if (is.null(logged) || nrow(logged) < nrow(seen %||% no_pauses)) seen %||% logged else logged
}

drops_witness <- function(traces, flow, ref, mon, name, manifest) {
  nic <- traces$path("nic", flow$from)
  siftr <- traces$path("siftr", flow$from)
  if (length(nic) == 0 && length(siftr) == 0) return(NULL)
  lost <- if (!is.null(ref) && !is.null(mon)) lost_packets(ref, mon, name)
  if (length(nic) == 0) return(local_drops(siftr = traces$within(read_siftr(siftr[1]), flow$from)))
  interface <- unlist(manifest$resolved$hosts[[flow$from]]$interfaces)
  local_drops(traces$within(read_nic(nic[1]), flow$from), interface = if (length(interface) == 1) interface, lost = lost)
}

# A list: `metrics`; `pauses`, a row per episode of PAUSE frames; `closeup` for the figure of cwnd and PAUSE frames.
device_of_flow <- function(flow, ref, mon, name, traces, manifest, offset) {
  frames <- pause_witness(traces, flow$from, ref)
  drops <- drops_witness(traces, flow, ref, mon, name, manifest)
  metrics <- c(if (!is.null(drops)) list(local_drops_packets = sum(drops$packets)), flow_control_counts(frames, traces, flow, manifest))
  if (is.null(frames) || nrow(frames) == 0) return(list(metrics = metrics))
  frames[, pause_quanta := quanta][, direction := "in"]
  episodes <- pause_to_drop(frames, drops %||% data.table(t_ns = double()))
  found <- if (!is.null(ref) && !is.null(mon)) {
    buffer_by_pause(ref, mon, name, offset %||% assumed_offset(mon), frames, manifest$resolved$mtu_bytes)
  }
  since <- \(t_ns) t_ns / 1e9 + attr(frames, "epoch_s") - traces$t_start_s
  pauses <- episodes[, .(episode, first_s = since(first_ns), last_s = since(last_ns), frames, drop_s = since(drop_ns), drops, pause_to_drop_s)]
  list(metrics = c(metrics, pause_metrics(episodes, found, offset, manifest$resolved$mtu_bytes)), pauses = pauses, frames_s = since(frames$t_ns))
}

pause_metrics <- function(episodes, found, offset, mtu_bytes) {
  waited <- episodes$pause_to_drop_s[!is.na(episodes$pause_to_drop_s)]
  c(list(pause_episodes = nrow(episodes), pause_to_drop_median_s = if (length(waited) > 0) stats::median(waited) else NA),
    if (!is.null(found)) list(buffer_pause_packets = found$method1_packets, buffer_pause_bytes = found$method1_packets * mtu_bytes,
                              buffer_delay_packets = found$method2_packets,
                              buffer_pause_raw_packets = if (is.null(offset)) NA else found$method1_raw_packets))
}

# cwnd and PAUSE frames around the first episode that ended with a drop, or the first of all: `quantity` "cwnd" (packets), "pause", "drop".
closeup_of <- function(device, sender) {
  if (is.null(device$pauses) || is.null(sender)) return(NULL)
  shown <- device$pauses[order(is.na(drop_s), first_s)][1]
  margin_s <- max(0.5, 2 * (shown$last_s - shown$first_s))
  span_s <- c(shown$first_s - margin_s, max(shown$last_s, shown$drop_s, na.rm = TRUE) + margin_s)
  near <- sender[t_s >= span_s[1] & t_s <= span_s[2]]
  near <- near[unique(round(seq(1, .N, length.out = min(.N, 2000L))))]
  frames_s <- device$frames_s[device$frames_s >= span_s[1] & device$frames_s <= span_s[2]]
  rbind(near[, .(quantity = "cwnd", t_s, value = as.double(cwnd_packets))],
        data.table(quantity = "pause", t_s = utils::head(unique(round(frames_s, 4)), 4000L), value = NA_real_),
        if (!is.na(shown$drop_s)) data.table(quantity = "drop", t_s = shown$drop_s, value = as.double(shown$drops)))
}

# What limited the flow from sample to sample, where its windows are known. Flows that go the same way share the link's rate.
limits_of_flow <- function(flow, sender, ref, name, rtt, traces, manifest) {
  if (is.null(sender) || nrow(sender) < 2) return(NULL)
  offered <- if (!is.null(ref)) advertised_window(ref, name)
  if (!is.null(offered)) set(offered, NULL, "t_s", seconds_since(offered, traces$t_start_s))
  segment_bytes <- manifest$resolved$mtu_bytes - tcp_header_bytes
  alike <- sum(vapply(manifest$resolved$flows, \(f) identical(is_down(f, manifest), is_down(flow, manifest)), TRUE))
  way <- if (is_down(flow, manifest)) "down" else "up"
  rate_bps <- as.double(manifest$resolved$path[[way]]$rate_bps %||% NA) / alike * segment_bytes / manifest$resolved$mtu_bytes
  windows <- sender_windows(sender, offered, segment_bytes)
  flow_limits(windows, rate_bps, if (nrow(rtt) > 0) min(rtt$rtt_ms) else NA)
}

is_down <- function(flow, manifest) identical(manifest$resolved$hosts[[flow$from]]$role, "sender")
