# Measure PAUSE frames: pauses of the link, packets that the sender's own interface rejected, and whether flow control slowed the sender.

#' Times during which PAUSE frames stopped a link
#'
#' A PAUSE frame of q quanta stops a link of rate R for
#'
#' \deqn{T = 512 q / R}
#'
#' from the frame's arrival. A later frame restarts the timer with its own quanta, and a frame of 0 quanta ends the pause. Frames at most `quiet_s`
#' apart belong to one episode, in which the device was full.
#'
#' @param frames PAUSE frames in time order: a table from [read_pause_frames()], or a capture from [read_pcap()] that contains them.
#' @param link_bps Rate of the link between the device and the host, bit/s.
#' @param quiet_s Time without PAUSE frames that ends an episode, seconds.
#' @return A data.table, one row per pause: `episode`, `from_ns`, `to_ns` (ns since attribute `epoch_s`), `paused_s`, `frames`.
#' @source IEEE 802.3, annex 31B; CAIA-TR-130121A, section VI.
#' @examples
#' frames <- read_pause_frames(samovar_example("pause-frames.csv"))
#' pause_intervals(frames, link_bps = 1e9)
#' @export
pause_intervals <- function(frames, link_bps, quiet_s = 0.1) {
  frames <- pauses_of(frames)
  if (nrow(frames) == 0) return(no_pauses)
  until <- frames$t_ns + frames$quanta * 512e9 / link_bps
  # A frame that arrives during a pause restarts the timer.
  after <- shift(frames$t_ns, type = "lead", fill = Inf)
  until <- pmin(until, after)
  begins <- c(TRUE, until[-length(until)] < frames$t_ns[-1])
  x <- data.table(pause = cumsum(begins), episode = episodes_of(frames$t_ns, quiet_s), t_ns = frames$t_ns, until)
  pauses <- x[, .(episode = episode[1], from_ns = t_ns[1], to_ns = until[.N], paused_s = (until[.N] - t_ns[1]) / 1e9, frames = .N), by = pause]
  pauses <- pauses[, pause := NULL][paused_s > 0]
  setattr(pauses, "epoch_s", attr(frames, "epoch_s"))
  pauses[]
}

no_pauses <- data.table(episode = integer(), from_ns = double(), to_ns = double(), paused_s = double(), frames = integer())

episodes_of <- function(t_ns, quiet_s) cumsum(c(TRUE, diff(t_ns) > quiet_s * 1e9)[seq_along(t_ns)])

# `t_ns` and `quanta` of the received PAUSE frames, from a logger or a capture.
pauses_of <- function(x) {
  if (!is.data.table(x) || is.null(attr(x, "epoch_s")) || !any(c("proto", "pause_quanta") %in% names(x))) abort_pauses()
  found <- if ("pause_quanta" %in% names(x)) {
    x[!is.na(pause_quanta) & direction != "out", .(t_ns, quanta = pause_quanta)]
  } else {
    x[proto == "pause" & !is.na(t_ns), .(t_ns, quanta = as.double(window))]
  }
  setorder(found, t_ns)
  setattr(found, "epoch_s", attr(x, "epoch_s"))
  found[]
}

abort_pauses <- function() {
  cli::cli_abort("{.arg frames}: no PAUSE frames; expected a table of {.fn read_pause_frames} or {.fn read_pcap}",
                 class = "samovar_error_argument", call = NULL)
}

#' Time from the first PAUSE frame to the first packet that the host's own ring rejected
#'
#' \deqn{T = t_{drop} - t_{PAUSE,1}}
#'
#' for each episode of PAUSE frames. T is the time for which the host's own queue had room after the device was full. Only the first drop of an episode
#' counts; the time is NA for an episode without a drop.
#'
#' @inheritParams pause_intervals
#' @param drops Drops on the same host's clock: a table with `t_ns` and attribute `epoch_s`, such as [local_drops()] returns.
#' @return A data.table, one row per episode: `episode`, `first_ns`, `last_ns` (of its PAUSE frames, ns since attribute `epoch_s`), `frames`, `drop_ns`,
#'   `drops` (packets), `pause_to_drop_s` (NA without a drop).
#' @source CAIA-TR-130121A, section VI-C, Figure 8.
#' @examples
#' frames <- read_pause_frames(samovar_example("pause-frames.csv"))
#' drops <- frames[1, .(t_ns = t_ns + 2e6, packets = 3)] # three packets, 2 ms after the first frame
#' data.table::setattr(drops, "epoch_s", attr(frames, "epoch_s"))
#' pause_to_drop(frames, drops)
#' @export
pause_to_drop <- function(frames, drops, quiet_s = 0.1) {
  frames <- pauses_of(frames)
  if (nrow(frames) == 0) return(no_episodes)
  episodes <- frames[, .(first_ns = t_ns[1], last_ns = t_ns[.N], frames = .N), by = .(episode = episodes_of(t_ns, quiet_s))]
  apart_ns <- if (nrow(drops) > 0) (attr(drops, "epoch_s") - attr(frames, "epoch_s")) * 1e9 else 0
  at_ns <- drops$t_ns + apart_ns
  count <- drops$packets %||% rep(1, nrow(drops))
  # The ring still drains shortly after the last frame, and may reject a packet then.
  belongs <- Map(\(from, to) which(at_ns >= from & at_ns <= to + quiet_s * 1e9), episodes$first_ns, episodes$last_ns)
  episodes[, drop_ns := vapply(belongs, \(k) if (length(k) > 0) min(at_ns[k]) else NA_real_, 0)]
  episodes[, drops := vapply(belongs, \(k) sum(count[k]), 0)]
  episodes[, pause_to_drop_s := (drop_ns - first_ns) / 1e9]
  setattr(episodes, "epoch_s", attr(frames, "epoch_s"))
  episodes[]
}

no_episodes <- data.table(episode = integer(), first_ns = double(), last_ns = double(), frames = integer(), drop_ns = double(), drops = double(),
                          pause_to_drop_s = double())

#' Packets that a host's own interface rejected
#'
#' The interface's counter of unsent packets (`tx_dropped`) gives the number of drops and, to within a sampling interval, their time. A capture on the
#' host gives the exact time, because it records packets before the interface rejects them. While the counter grew, the drops are the captured
#' packets that never reached the other end. FreeBSD informs TCP of each drop at once (ENOBUFS), and cwnd collapses. So each collapse with this cause in SIFTR's
#' log is a drop (see [siftr_collapses()]).
#'
#' @param nic A table from [read_nic()] for the sender, or NULL.
#' @param siftr A table from [read_siftr()] for the sender, or NULL; used if `nic` is NULL.
#' @param interface Name of the interface towards the path; by default the interface with the most drops.
#' @param lost Packets of the sender's capture that are missing in the receiver's capture: a table with `t_ns` and attribute `epoch_s`, or NULL.
#' @return A data.table with `t_ns` (ns since attribute `epoch_s`), `packets`; NULL if neither counter was recorded, or `nic` has no row of the interface.
#' @source CAIA-TR-130121A, section VI-B; linux/Documentation/networking/statistics.rst.
#' @examples
#' trace <- tempfile()
#' writeLines(c("t_ns,interface,tx_bytes,tx_dropped", "1795272676000000000,em0,0,0", "1795272677000000000,em0,9000000,4"), trace)
#' local_drops(read_nic(trace))
#' @export
local_drops <- function(nic = NULL, siftr = NULL, interface = NULL, lost = NULL) {
  if (!is.null(nic)) return(drops_of_nic(nic, interface, lost))
  if (is.null(siftr)) return(NULL)
  refused <- siftr_collapses(siftr)[cause == "enobufs", .(t_ns, packets = 1)]
  setattr(refused, "epoch_s", attr(siftr, "epoch_s"))
  refused[]
}

drops_of_nic <- function(nic, interface, lost) {
  wanted <- interface %||% nic[, .(grown = max(tx_dropped) - min(tx_dropped)), by = interface][which.max(grown)]$interface
  x <- nic[nic$interface == wanted]
  if (nrow(x) == 0) return(NULL)
  grown <- c(0, diff(as.double(x$tx_dropped)))[seq_len(nrow(x))]
  at <- which(grown > 0)
  t_ns <- x$t_ns[at]
  if (!is.null(lost)) {
    lost_ns <- sort(lost$t_ns) + (attr(lost, "epoch_s") - attr(nic, "epoch_s")) * 1e9
    t_ns <- first_between(lost_ns, x$t_ns[at - 1L], t_ns)
  }
  drops <- data.table(t_ns, packets = grown[at])
  setattr(drops, "epoch_s", attr(nic, "epoch_s"))
  drops[]
}

# Return the first of `moments` in the interval (from, to], or `to` if there is none.
first_between <- function(moments, from, to) {
  found <- moments[findInterval(from, moments) + 1L]
  fifelse(!is.na(found) & found <= to, found, to)
}

#' Return whether PAUSE frames slowed down a sender
#'
#' A capture need not contain the PAUSE frames that stopped its host: many network cards handle them without passing them on, and only the card's own counter
#' shows them. Without that counter, PAUSE frames are recognised by a ring that rejects packets while the interface sends more slowly than before, because
#' a link that is not paused keeps its rate. If no ring overflowed, nothing can be concluded.
#'
#' @param seen Number of PAUSE frames in a capture or log of the sender.
#' @param counted Number of PAUSE frames that the card counted as received; NA if its driver does not count them.
#' @param refused Number of packets that the sender's own ring rejected; NA if they were not counted.
#' @param held_share Rate of the interface while its ring rejected packets, relative to its highest rate; NA if it rejected none.
#' @param lost_share Share of the sent packets that did not arrive; NA if unknown.
#' @return "seen"; "swallowed": there were PAUSE frames, but not in the capture; "none": the counters show that there were none, or packets were lost
#'   elsewhere while the ring never filled, for example because a device drops packets instead of sending PAUSE frames; "not told": no counter shows
#'   whether there were PAUSE frames.
#' @source CAIA-TR-130121A, section II-C; IEEE 802.3, annex 31B.
#' @noRd
flow_control_state <- function(seen, counted, refused, held_share, lost_share) {
  is_true <- \(yes) !is.na(yes) & yes
  overflowed <- is_true(refused > 0)
  fcase(
    is_true(seen > 0), "seen",
    is_true(counted > 0), "swallowed",
    is_true(counted == 0), "none",
    overflowed & is_true(held_share < held_back), "swallowed",
    overflowed & is_true(held_share >= held_back), "none",
    is_true(refused == 0) & is_true(lost_share > 0), "none",
    default = "not told"
  )
}

# An interface with a full ring that sends below this share of its highest rate was slowed down by PAUSE frames.
held_back <- 0.9

#' Return what an interface's counters show about PAUSE frames
#' @param nic A table from [read_nic()].
#' @param wanted Name of the interface.
#' @param window_s Length of the windows in which rates are computed, seconds: longer than a pause.
#' @return A list: `counted` and `held_share`, see [flow_control_state()]; both NA if the table has no row of the interface.
#' @noRd
flow_control_counters <- function(nic, wanted, window_s = 0.1) {
  x <- nic[nic$interface == wanted]
  if (nrow(x) == 0) return(list(counted = NA_real_, held_share = NA_real_))
  kept <- grepl("^card[.]", names(x)) & grepl("rx|rec", names(x)) & grepl("pause|xon|xoff|flow_control", names(x)) & !grepl("duration|transition|entered|storm", names(x))
  grown <- vapply(x[, names(x)[kept], with = FALSE], \(count) max(count) - min(count), 0)
  list(counted = if (any(kept)) frames_counted(grown) else NA_real_, held_share = rate_while_held(x, window_s))
}

# Return the number of frames in counters with the names of ethtool -S. Cards may count a frame under several names: mlx5 counts it as rx_global_pause
# and as rx_pause_ctrl_phy. Other cards count it in a total, and also in a counter of XON or XOFF, or of a priority.
frames_counted <- function(grown) {
  kinds <- vapply(regmatches(names(grown), gregexpr("prio(rity)?_?[0-9]+|xon|xoff", names(grown))), paste, "", collapse = " ")
  most <- tapply(grown, kinds, max)
  total <- names(most) == ""
  max(most[total], sum(most[!total]))
}

# Return the rate while packets were rejected, relative to the highest rate; NA unless both sent bytes and rejected packets were counted.
rate_while_held <- function(x, window_s) {
  if (!all(c("tx_bytes", "tx_dropped") %in% names(x))) return(NA_real_)
  windows <- x[, .(t_ns = t_ns[1], bytes = tx_bytes[1], drops = tx_dropped[1]), by = .(window = floor((t_ns - t_ns[1]) / (window_s * 1e9)))]
  rates <- windows[, .(bps = 8e9 * diff(bytes) / diff(t_ns), refused = diff(drops) > 0)]
  if (any(rates$refused)) stats::median(rates$bps[rates$refused]) / max(rates$bps) else NA_real_
}

# The result is empty if the trial has no log of PAUSE frames, no interface counters and no captured PAUSE frame.
flow_control_counts <- function(frames, traces, flow, manifest) {
  nic <- traces$path("nic", flow$from)
  seen <- if (is.null(frames)) NA_real_ else as.double(nrow(frames))
  if (length(nic) == 0 && length(traces$path("pause-frames", flow$from)) == 0 && !isTRUE(seen > 0)) return(list())
  interface <- unlist(manifest$resolved$hosts[[flow$from]]$interfaces)
  counters <- if (length(nic) > 0 && length(interface) == 1) flow_control_counters(traces$within(read_nic(nic[1]), flow$from), interface)
  list(pause_frames_seen = seen, pause_frames_counted = counters$counted %||% NA_real_, ring_held_share = counters$held_share %||% NA_real_)
}

# PAUSE frames that the sender's interface received, from its capture or its log; the attribute `from` says from which.
pause_witness <- function(traces, host, capture) {
  path <- traces$path("pause-frames", host)
  logged <- if (length(path) > 0) pauses_of(traces$within(read_pause_frames(path[1]), host))
  seen <- if (!is.null(capture)) pauses_of(capture)
  by_capture <- is.null(logged) || nrow(logged) < nrow(seen %||% no_pauses)
  from_source(if (by_capture) seen else logged, if (by_capture) "capture" else "pause-frames")
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

# A list: `metrics`; `pauses`, a row per episode of PAUSE frames; `frames_s`, their times.
device_of_flow <- function(flow, ref, mon, name, traces, manifest, offset) {
  frames <- pause_witness(traces, flow$from, ref)
  drops <- drops_witness(traces, flow, ref, mon, name, manifest)
  metrics <- c(if (!is.null(drops)) list(local_drops_packets = sum(drops$packets)), flow_control_counts(frames, traces, flow, manifest))
  if (is.null(frames) || nrow(frames) == 0) return(list(metrics = metrics))
  frames[, pause_quanta := quanta][, direction := "in"]
  episodes <- pause_to_drop(frames, drops %||% data.table(t_ns = double()))
  if (is.null(drops)) episodes[, drops := NA_real_]
  found <- if (!is.null(ref) && !is.null(mon)) {
    buffer_by_pause(ref, mon, name, offset %||% assumed_offset(mon), frames, manifest$resolved$mtu_bytes)
  }
  since <- \(t_ns) t_ns / 1e9 + (attr(frames, "epoch_s") - start_on(traces, flow$from))
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

# Return cwnd and PAUSE frames around the first episode that ended with a drop, or else around the first episode; `quantity` is "cwnd" (packets), "pause"
# or "drop".
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
