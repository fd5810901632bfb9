#' How long a link was silenced by PAUSE frames
#'
#' A PAUSE frame of q quanta silences a link of rate R for
#'
#' \deqn{T = 512 q / R}
#'
#' from when it came. A later frame begins anew with its own quanta, one of 0 quanta ends the pause. Pauses that follow each
#' other in less than `quiet_s` belong to one episode: one time that the device was full.
#'
#' @param frames PAUSE frames in time order: a table of [read_pause_frames()], or a capture of [read_pcap()] in which the interface showed them.
#' @param link_bps Rate of the link between the device and the host, bit/s.
#' @param quiet_s Silence of PAUSE frames that ends an episode, seconds.
#' @return A data.table, one row per pause: `episode`, `from_ns`, `to_ns` (ns since attribute `epoch_s`), `paused_s`, `frames`.
#' @source IEEE 802.3, annex 31B; CAIA-TR-130121A, section VI.
#' @export
pause_intervals <- function(frames, link_bps, quiet_s = 0.1) {
  frames <- pauses_of(frames)
  if (nrow(frames) == 0) return(no_pauses)
  until <- frames$t_ns + frames$quanta * 512e9 / link_bps
  # A frame that comes while the pause before lasts takes its place.
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

# `t_ns` and `quanta` of the PAUSE frames that came in, from either kind of witness.
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
  cli::cli_abort("{.arg frames}: no PAUSE frames; a table of {.fn read_pause_frames} or {.fn read_pcap} would have been accepted",
                 class = "samovar_error_argument", call = NULL)
}

#' Time from the first PAUSE frame to the packet that the host's own ring refused
#'
#' \deqn{T = t_{drop} - t_{PAUSE,1}}
#'
#' of each episode of PAUSE frames: how long the host's own queue held once the device was full. Only the first drop of an episode
#' counts; an episode without a drop has none.
#'
#' @inheritParams pause_intervals
#' @param drops Drops: a table with `t_ns` and attribute `epoch_s`, times on the same host's clock as the frames'. [local_drops()] makes one.
#' @return A data.table, one row per episode: `episode`, `first_ns`, `last_ns` (of its PAUSE frames, ns since attribute `epoch_s`), `frames`, `drop_ns`,
#'   `drops` (packets), `pause_to_drop_s` (NA without a drop).
#' @source CAIA-TR-130121A, section VI-C, Figure 8.
#' @export
pause_to_drop <- function(frames, drops, quiet_s = 0.1) {
  frames <- pauses_of(frames)
  if (nrow(frames) == 0) return(no_episodes)
  episodes <- frames[, .(first_ns = t_ns[1], last_ns = t_ns[.N], frames = .N), by = .(episode = episodes_of(t_ns, quiet_s))]
  apart_ns <- if (nrow(drops) > 0) (attr(drops, "epoch_s") - attr(frames, "epoch_s")) * 1e9 else 0
  at_ns <- drops$t_ns + apart_ns
  count <- drops$packets %||% rep(1, nrow(drops))
  # The ring still drains, and may refuse a packet, a little after the last frame.
  belongs <- Map(\(from, to) which(at_ns >= from & at_ns <= to + quiet_s * 1e9), episodes$first_ns, episodes$last_ns)
  episodes[, drop_ns := vapply(belongs, \(k) if (length(k) > 0) min(at_ns[k]) else NA_real_, 0)]
  episodes[, drops := vapply(belongs, \(k) sum(count[k]), 0)]
  episodes[, pause_to_drop_s := (drop_ns - first_ns) / 1e9]
  setattr(episodes, "epoch_s", attr(frames, "epoch_s"))
  episodes[]
}

no_episodes <- data.table(episode = integer(), first_ns = double(), last_ns = double(), frames = integer(), drop_ns = double(), drops = double(),
                          pause_to_drop_s = double())

#' Packets that a host's own interface refused
#'
#' The interface's counter of packets that were not sent (`tx_dropped`) tells how many and, to a sampling interval, when; a
#' capture on the host tells the moment, for it sees a packet before the interface does: of the packets that never reached
#' the other end those sent in an interval in which the counter grew. FreeBSD's TCP is told ENOBUFS at once, and SIFTR shows it as a
#' collapse of cwnd ([siftr_collapses()]): then each collapse is a drop.
#'
#' @param nic A table of [read_nic()] of the sender, or NULL.
#' @param siftr A table of [read_siftr()] of the sender, or NULL; used where there is no `nic`.
#' @param interface Name of the interface towards the path; the one that dropped most when NULL.
#' @param lost Packets of the sender's capture that the receiver's lacks: a table with `t_ns` and attribute `epoch_s`, or NULL.
#' @return A data.table `t_ns` (ns since attribute `epoch_s`), `packets`; NULL where neither counter was kept.
#' @source CAIA-TR-130121A, section VI-B; linux/Documentation/networking/statistics.rst.
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

# The first moment after `from` and up to `to`; `to` itself where there is none.
first_between <- function(moments, from, to) {
  found <- moments[findInterval(from, moments) + 1L]
  fifelse(!is.na(found) & found <= to, found, to)
}
