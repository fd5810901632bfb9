# Read logs of SIFTR, and find options, state and collapses of cwnd of the connections in a log.

#' Read a log of SIFTR, which records the state of FreeBSD's TCP connections at each packet
#'
#' All layouts are read: those of versions 1.2.3 and 1.2.4 (25, 26 and 28 fields; 27 with the ERTT column of CAIA's patch) and 1.3.0 (27 fields; 30 with
#' sequence numbers), and the text records of siftr2. The header gives the version, and the number of fields determines the layout. Times of 1.2.x are
#' in ticks of the kernel that wrote the log (`hz`, `tcp_rtt_scale` of its header), times of 1.3.0 in microseconds; all are converted to microseconds.
#'
#' @param path A log, plain or gzip-compressed. Several logs, in order, are read as one log, because header and footer are in
#'   different files if the log's name was changed while SIFTR was enabled.
#' @return A data.table in time order, one row per record, `src` being the host that logged:
#' - `t_ns` (ns since attribute `epoch_s`), `direction` (factor in, out), `flow` (factor "a.b.c.d:p > e.f.g.h:q"), `src`,
#'   `sport`, `dst`, `dport`;
#' - `cwnd_bytes` (NA before it is set), `ssthresh_bytes` (Inf before it is set), `snd_wnd_bytes` (advertised by the peer, scaled),
#'   `swnd_bytes` (the smaller of cwnd and that window: cwnd alone keeps growing while the window limits the flow), `rcv_wnd_bytes`,
#'   `in_flight_bytes` (including SACKed bytes), `mss_bytes` (without options);
#' - `srtt_us`, `ertt_us` (unsmoothed; if the log has it), both NA before the first sample, `rto_us`;
#' - `state` (factor, as in RFC 9293), `flags` and `flags2` (t_flags and t_flags2 of tcp_var.h; `flags2` is 0 before 2023), `sack`,
#'   `snd_scale`, `rcv_scale`, `snd_buffer_bytes`, `snd_buffered_bytes`, `rcv_buffer_bytes`, `rcv_buffered_bytes`,
#'   `reassembly_segments`;
#' - if the log has them, `flow_id`, `flow_type`, `seq`, `ack`, `payload_bytes`, `hash`.
#'
#' Attribute `integrity` is a data.table with a row for each time that SIFTR was enabled: `layout`, `version`, `sysver` (the kernel's __FreeBSD_version),
#' `header`, `footer` (TRUE if present), `cut` (TRUE if the last line has no end), `enabled_s`, `disabled_s`, `records`, `records_in`, `counted_in`,
#' `counted_out` and `skipped` (packets, from the footer), `malformed` and `first_malformed_line` (lines that are not records of this layout), `backwards`
#' (records earlier than the previous record) and `whole`: header and footer are present, nothing is malformed and there are as many records as packets
#' that were not skipped (NA with `packets_per_line` above 1, when there are fewer records).
#' @param packets_per_line Value of `net.inet.siftr.ppl` when the log was made.
#' @source siftr(4); CAIA technical report 070824A; sys/netinet/siftr.c of FreeBSD 9.3, 10.4, 13.2 and 14.0.
#' @examples
#' log <- read_siftr(samovar_example("siftr.log.gz"))
#' attr(log, "integrity")[, .(version, records, whole)]
#' log[direction == "out", .(median_srtt_ms = median(srtt_us, na.rm = TRUE) / 1e3), by = flow]
#' @export
read_siftr <- function(path, packets_per_line = 1) {
  check_files(path, "a log of SIFTR")
  found <- tryCatch(read_siftr_files(path.expand(path)), error = \(e) abort_core(conditionMessage(e)))
  x <- setDT(found$table)
  name_siftr(x, setDT(found$flows))
  sessions <- setDT(found$sessions)
  sessions[, whole := whole_session(sessions, packets_per_line)]
  if (any(sessions$backwards > 0)) setorder(x, t_ns)
  shift_epoch(x, found$epoch_s)
  setattr(x, "integrity", sessions)
  setattr(x, "path", path)
  x[]
}

name_siftr <- function(x, flows) {
  at <- x$flow
  as_levels <- \(text) list(codes = match(text, unique(text))[at], levels = unique(text))
  ends <- list(src = as_levels(flows$src), sport = flows$sport[at], dst = as_levels(flows$dst), dport = flows$dport[at])
  for (end in c("src", "dst")) ends[[end]] <- factor_of(ends[[end]]$codes, ends[[end]]$levels)
  set(x, NULL, names(ends), ends)
  setattr(x$flow, "levels", flows$flow)
  setattr(x$flow, "class", "factor")
  setattr(x$direction, "levels", c("in", "out"))
  setattr(x$direction, "class", "factor")
  if (!is.null(x$state)) {
    setattr(x$state, "levels", tcp_states)
    setattr(x$state, "class", "factor")
  }
  if (!all(is.na(flows$mss_bytes))) set(x, NULL, "mss_bytes", as.integer(flows$mss_bytes)[at])
  setcolorder(x, c("t_ns", "direction", "flow", names(ends)))
}

factor_of <- function(codes, levels) structure(codes, levels = levels, class = "factor")

tcp_states <- c("CLOSED", "LISTEN", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "CLOSE-WAIT", "FIN-WAIT-1", "CLOSING",
                "LAST-ACK", "FIN-WAIT-2", "TIME-WAIT")

whole_session <- function(sessions, packets_per_line) {
  complete <- sessions$header & sessions$footer & sessions$malformed == 0
  counted <- sessions$counted_in + sessions$counted_out
  if (packets_per_line != 1) return(fifelse(complete, NA, FALSE))
  complete & (is.na(counted) | sessions$records == counted - fcoalesce(sessions$skipped, 0))
}

# Make times relative to a whole second: that of the first record, or of an earlier record out of order.
shift_epoch <- function(x, epoch_s) {
  first <- if (nrow(x) > 0) min(0, floor(x$t_ns[1] / 1e9)) else 0
  if (first < 0) set(x, NULL, "t_ns", x$t_ns - first * 1e9)
  setattr(x, "epoch_s", epoch_s + first)
}

# Errors of the C++ readers are "file<tab>line N: message", with the line if it is known.
abort_core <- function(message, class = "samovar_error_siftr") {
  parts <- strsplit(message, "\t", fixed = TRUE)[[1]]
  what <- parts[length(parts)]
  line <- regmatches(what, regexec("^line ([0-9]+): (.*)$", what))[[1]]
  where <- if (length(line) > 0) paste0(parts[1], ":", line[2]) else parts[1]
  message <- if (length(line) > 0) line[3] else what
  cli::cli_abort("{where}: {message}", class = class, call = NULL)
}

#' Options and state of the connections in a log of SIFTR, from the flags of each record
#'
#' Recovery, SACK and time stamps have had the same bits of t_flags since FreeBSD 9. The bits of ECN moved: up to FreeBSD 12 they are in t_flags, and
#' from FreeBSD 13 on they are in t_flags2, which SIFTR logs from its version 1.3.0 on. In a log that SIFTR 1.2.4 wrote on FreeBSD 13, ECN is therefore unknown (NA).
#'
#' @param x A table from [read_siftr()], or some of its rows.
#' @param sysver The kernel's __FreeBSD_version, which determines where the bits of ECN are; by default the version in the log's header.
#' @return A data.table of logical columns, a row per record: `sack`, `timestamps` and `ecn` (negotiated), `fast_recovery` (repairing a loss),
#'   `congestion_recovery` (cwnd has been reduced and has not grown again; if `fast_recovery` is FALSE, the cause is ECN or a delay that
#'   congestion control took as a signal), `cwr_pending` (the next segment announces a reduction after ECN) and `ece_pending` (the next
#'   acknowledgement echoes a congestion mark).
#' @source tcp_var.h of FreeBSD 9 to 15.
#' @examples
#' log <- read_siftr(samovar_example("siftr.log.gz"))
#' siftr_flags(log)[, .N, by = .(sack, fast_recovery)]
#' @export
siftr_flags <- function(x, sysver = attr(x, "integrity")$sysver[1]) {
  check_siftr(x)
  first <- \(name) has_bit(x$flags, bits_of_flags[[name]])
  written <- any(x$flags2 > 0, na.rm = TRUE)
  ecn <- \(old, new) if (written) has_bit(x$flags2, new) else if (isTRUE(sysver < 1300000)) has_bit(x$flags, old) else rep(NA, nrow(x))
  data.table(
    sack = first("sack"), timestamps = first("timestamps"), ecn = ecn(26L, 5L), fast_recovery = first("fast_recovery"),
    congestion_recovery = first("congestion_recovery"), cwr_pending = ecn(27L, 6L), ece_pending = ecn(28L, 7L)
  )
}

# Bits of t_flags in tcp_var.h: TF_RCVD_TSTMP, TF_SACK_PERMIT, TF_FASTRECOVERY, TF_CONGRECOVERY.
bits_of_flags <- list(timestamps = 8L, sack = 9L, fast_recovery = 20L, congestion_recovery = 29L)

has_bit <- function(flags, bit) floor(flags / 2^bit) %% 2 == 1

#' Collapses of the congestion window in a log of SIFTR, by cause
#'
#' A collapse is a record in which cwnd has fallen to one segment or less. The records around a collapse show its cause:
#'
#' - `recovery`: the connection is in fast recovery (TF_FASTRECOVERY, TF_CONGRECOVERY): FreeBSD sets cwnd to a segment and
#'   inflates it with each SACK.
#' - `timeout`: ssthresh has changed with cwnd; or ssthresh was already at its minimum of two segments, and RTO has grown by at least half.
#' - `enobufs`: neither of the above. The queue of an interface on this host was full: tcp_output() got ENOBUFS, set cwnd to a segment and left ssthresh
#'   unchanged. [refused_packets()] and the interface's output drops (`netstat -i -d`) confirm this cause. TCP is not informed of drops
#'   in a dummynet pipe.
#'
#' @param x A table from [read_siftr()].
#' @return A data.table, a row per collapse in time order: `flow`, `t_ns` (as in `x`), `cause`, `cwnd_before_bytes`, `cwnd_bytes`,
#'   `ssthresh_before_bytes`, `ssthresh_bytes`, `until_ns` (time of the first record after the collapse in
#'   which cwnd is above one segment and, for `recovery`, the recovery flags are cleared; NA if the log ends
#'   first), with attribute `epoch_s`.
#' @source tcp_output.c and tcp_input.c (cc_cong_signal) of FreeBSD; CAIA-TR-130417A, on full transmit queues.
#' @examples
#' log <- read_siftr(samovar_example("siftr.log.gz"))
#' siftr_collapses(log)[, .N, by = .(flow, cause)]
#' @export
siftr_collapses <- function(x) {
  check_siftr(x)
  open <- x[as.integer(x$state %||% 5L) >= 5L & !is.na(x$cwnd_bytes)]
  found <- if (nrow(open) > 0) open[, collapses_of_flow(.SD), by = flow] else data.table()
  if (nrow(found) == 0) found <- copy(no_collapses) else setorder(found, t_ns)
  setattr(found, "epoch_s", attr(x, "epoch_s"))
  found[]
}

no_collapses <- data.table(
  flow = factor(), t_ns = double(), cause = character(), cwnd_before_bytes = double(), cwnd_bytes = double(),
  ssthresh_before_bytes = double(), ssthresh_bytes = double(), until_ns = double()
)

collapses_of_flow <- function(x) {
  small <- x$cwnd_bytes <= x$mss_bytes
  at <- which(small & !c(TRUE, small[-length(small)]) & !is.na(small))
  if (length(at) == 0) return(NULL)
  recovering <- has_bit(x$flags, bits_of_flags$fast_recovery) | has_bit(x$flags, bits_of_flags$congestion_recovery)
  was <- at - 1L
  same_ssthresh <- x$ssthresh_bytes[at] == x$ssthresh_bytes[was]
  at_floor <- x$ssthresh_bytes[at] <= 2 * x$mss_bytes[at] & x$rto_us[at] >= 1.5 * x$rto_us[was]
  cause <- fifelse(recovering[at], "recovery", fifelse(!same_ssthresh | at_floor, "timeout", "enobufs"))
  list(t_ns = x$t_ns[at], cause = cause, cwnd_before_bytes = x$cwnd_bytes[was], cwnd_bytes = x$cwnd_bytes[at],
       ssthresh_before_bytes = x$ssthresh_bytes[was], ssthresh_bytes = x$ssthresh_bytes[at],
       until_ns = end_of_collapse(x, at, small, recovering, cause))
}

end_of_collapse <- function(x, at, small, recovering, cause) {
  grown <- which(!small)
  over <- which(!small & !recovering)
  after <- \(rows) rows[findInterval(at, rows) + 1L]
  x$t_ns[fifelse(cause == "recovery", after(over), after(grown))]
}

check_siftr <- function(x) {
  needed <- c("flow", "t_ns", "cwnd_bytes", "ssthresh_bytes", "flags", "mss_bytes", "rto_us")
  if (is.data.table(x) && all(needed %in% names(x))) return(invisible(x))
  cli::cli_abort("{.arg x}: not a log of SIFTR; expected a table of {.fn read_siftr}, or rows of one",
                 class = "samovar_error_argument", call = NULL)
}
