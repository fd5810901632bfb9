# Readers for the traces of loggers, and for the output of ss and web10g.

#' Read a trace of TCP_INFO samples
#'
#' One row per socket and sample, as written by the `tcp-info` logger.
#'
#' @param path A CSV file, plain or gzip-compressed.
#' @return A data.table in time order with `t_ns` (ns since attribute `epoch_s`) and the file's columns; `ssthresh_packets`
#'   is Inf if the kernel has not set it (2147483647 in the file).
#' @source linux/tcp.h, struct tcp_info.
#' @examples
#' info <- read_tcp_info(samovar_example("bulk-tcp-info.csv.gz"))
#' info[, .(t_ns, sport, cwnd_packets, srtt_us)]
#' @export
read_tcp_info <- function(path) {
  x <- read_trace_csv(path, c("t_ns", "src", "sport", "dst", "dport", "cwnd_packets", "ssthresh_packets", "srtt_us", "ca_state"))
  x[, ssthresh_packets := fifelse(ssthresh_packets >= 2147483647, Inf, as.double(ssthresh_packets))]
  x[]
}

#' Read a trace of queue samples
#'
#' One row per queueing discipline and sample, as written by the `queue` logger. Counters are cumulative.
#'
#' @inheritParams read_tcp_info
#' @param handle The handle of the queueing discipline to keep, or NULL for all. `"bottleneck"` keeps the bottleneck's queue: on Linux the
#'   rows with handle `10:`, on FreeBSD all rows of dummynet, in which the handle is the number of a pipe.
#' @return A data.table in time order with `t_ns` (ns since attribute `epoch_s`) and the file's columns.
#' @examples
#' queue <- read_queue(samovar_example("bulk-queue.csv.gz"))
#' queue[, .(longest = max(backlog_packets), drops = max(drops))]
#' @export
read_queue <- function(path, handle = "bottleneck") {
  x <- read_trace_csv(path, c("t_ns", "handle", "backlog_bytes", "backlog_packets", "drops"))
  if (is.null(handle)) return(x)
  kept <- if (identical(handle, "bottleneck")) is_bottleneck(x) else x$handle == handle
  keep_epoch(x[which(kept)], x)[]
}

# Rows of the bottleneck's queue. On FreeBSD the queue logger writes only the bottleneck's pipe.
is_bottleneck <- function(x) x$handle == "10:" | (x[["qdisc"]] %||% "") == "dummynet"

#' Convert the times of a table to seconds since `origin_s`
#' @param x A table with `t_ns` (ns since attribute `epoch_s`).
#' @param origin_s Seconds of the Unix epoch.
#' @return Seconds (double), exact to 0.3 microseconds.
#' @noRd
seconds_since <- function(x, origin_s) (attr(x, "epoch_s") - origin_s) + x$t_ns / 1e9

read_trace_csv <- function(path, needed, text = character()) {
  whole <- read_whole(path)
  heading <- strsplit(sub("(?s)[\r\n].*", "", whole, perl = TRUE), ",", fixed = TRUE)[[1]]
  absent <- setdiff(needed, heading)
  if (length(absent) > 0) abort_trace(path, paste("no column", paste(absent, collapse = ", ")))
  x <- tryCatch(
    suppressWarnings(data.table::fread(
      text = whole, sep = ",", header = TRUE, quote = "", na.strings = c("", "NA"), fill = TRUE, integer64 = "double",
      colClasses = list(character = intersect(c("t_ns", text), heading))
    )),
    error = \(e) abort_trace(path, conditionMessage(e))
  )
  absent <- setdiff(needed, names(x))
  if (length(absent) > 0) abort_trace(path, paste("no column", paste(absent, collapse = ", ")))
  split_epoch(x[is_whole_row(x, needed)])
}

# Rows of a damaged file may lack a time or a needed value.
is_whole_row <- function(x, needed) grepl("^[0-9]{10,19}$", x$t_ns) & stats::complete.cases(x[, needed, with = FALSE])

# Nanoseconds since 1970 have more digits than a double can hold, so the text is split before it is converted to numbers.
split_epoch <- function(x) {
  digits <- nchar(x$t_ns)
  seconds <- as.double(substr(x$t_ns, 1L, digits - 9L))
  nanoseconds <- as.double(substr(x$t_ns, digits - 8L, digits))
  epoch_s <- if (nrow(x) > 0) min(seconds) else 0
  # set() is used instead of `:=`, because a trace may have a column `seconds`.
  set(x, NULL, "t_ns", (seconds - epoch_s) * 1e9 + nanoseconds)
  setorder(x, t_ns)
  setattr(x, "epoch_s", epoch_s)
  x[]
}

# fread needs another package for gzip files; gzfile reads plain files too. R's strings end at zeros and reject bytes that are not text. A logger that was
# killed leaves a last row without a line end, in which even the last number may lack digits: this row is left out.
read_whole <- function(path) {
  if (!file.exists(path)) abort_trace(path, "no such file")
  bytes <- whole_bytes(path)
  if (length(bytes) == 0) abort_trace(path, "empty or not readable")
  if (bytes[length(bytes)] != 10) bytes <- utils::head(bytes, max(which(bytes == 10), 0))
  rawToChar(ascii_only(bytes))
}

ascii_only <- function(bytes) replace(bytes, bytes == 0 | bytes > 126, as.raw(63L))

whole_bytes <- function(path) {
  connection <- tryCatch(gzfile(path, "rb"), error = \(e) NULL, warning = \(w) NULL)
  if (is.null(connection)) return(raw())
  on.exit(close(connection))
  chunks <- list()
  repeat {
    chunk <- tryCatch(readBin(connection, "raw", n = 2^24), error = \(e) raw(), warning = \(w) raw())
    if (length(chunk) == 0) break
    chunks[[length(chunks) + 1L]] <- chunk
  }
  if (length(chunks) > 0) do.call(c, chunks) else raw()
}

abort_trace <- function(path, what) {
  cli::cli_abort("{.path {path}}: {what}; expected a trace: a CSV file with a header line, plain or gzip.",
                 class = "samovar_error_trace", call = NULL)
}

#' Read the traces of the other loggers
#'
#' docs/reference/traces.md describes the traces. Rows are in time order, and an incomplete last row is left out.
#'
#' - `read_tcp_probe()`: the tracepoint tcp:tcp_probe, a row per received segment: `src`, `sport`, `dst`, `dport`, `data_bytes`, `snd_nxt`,
#'   `snd_una`, `cwnd_packets`, `ssthresh_packets` (Inf if not set), `snd_wnd_bytes`, `rcv_wnd_bytes`, `srtt_us`, `cookie`.
#' - `read_cpu()`: `cpu`, `busy_share`, `softirq_share`, `steal_share` (0 to 1, since the previous row), counters in seconds.
#' - `read_nic()`: `interface`, counters of bytes, packets, errors and drops, and the card's own counters as `card.NAME`.
#' - `read_pause_frames()`: `interface`, `direction`, `src`, `opcode`, `classes`, `quanta` (of 512 bit times; text, because a frame of priority flow
#'   control has eight values), `pause_quanta` (a number, for PAUSE frames).
#' - `read_beacons()`: `direction`, `src`, `id`, `sequence`, `sent_ns` (sender's clock; text, because a double cannot hold nanoseconds since 1970).
#' @inheritParams read_tcp_info
#' @return A data.table with `t_ns` (ns since attribute `epoch_s`) and the columns named above.
#' @examples
#' read_pause_frames(samovar_example("pause-frames.csv"))
#' trace <- tempfile()
#' writeLines(c("t_ns,cpu,busy_share", "1795272676000000000,0,", "1795272677000000000,0,0.5"), trace)
#' read_cpu(trace)
#' @name read_loggers
NULL

#' @rdname read_loggers
#' @export
read_tcp_probe <- function(path) {
  x <- read_trace_csv(path, c("t_ns", "src", "sport", "dst", "dport", "snd_nxt", "snd_una", "cwnd_packets", "ssthresh_packets", "srtt_us"))
  numbers(x, c("sport", "dport", "data_bytes", "snd_nxt", "snd_una", "cwnd_packets", "ssthresh_packets", "snd_wnd_bytes", "rcv_wnd_bytes", "srtt_us"))
  set(x, NULL, "ssthresh_packets", fifelse(x$ssthresh_packets >= 2147483647, Inf, x$ssthresh_packets))
  x[]
}

#' @rdname read_loggers
#' @export
read_cpu <- function(path) {
  x <- read_trace_csv(path, c("t_ns", "cpu"))
  numbers(x, grep("_(share|s)$", names(x), value = TRUE))[]
}

#' @rdname read_loggers
#' @export
read_nic <- function(path) {
  x <- read_trace_csv(path, c("t_ns", "interface"))
  numbers(x, setdiff(names(x), c("t_ns", "interface")))[]
}

#' @rdname read_loggers
#' @export
read_pause_frames <- function(path) {
  x <- read_trace_csv(path, c("t_ns", "interface", "direction", "opcode"))
  set(x, NULL, "quanta", as.character(x$quanta))
  paused <- as.character(x$opcode) == "0x0001"
  x[, pause_quanta := fifelse(paused, as_number(quanta), NA_real_)][]
}

#' @rdname read_loggers
#' @export
read_beacons <- function(path) {
  x <- read_trace_csv(path, c("t_ns", "direction", "src", "id", "sequence"), text = "sent_ns")
  numbers(x, c("id", "sequence"))[]
}

# Convert columns to numbers. If one row of a damaged file holds text, fread returns the whole column as text.
numbers <- function(x, columns) {
  for (name in intersect(columns, names(x))) {
    set(x, NULL, name, if (is.numeric(x[[name]])) as.double(x[[name]]) else as_number(as.character(x[[name]])))
  }
  x
}

#' Read the output of `ss -tin`
#'
#' Output of iproute2's ss(8), of any version since 4: one or two lines per socket (also with `-O`, `-m` and `-e`). ss prints no time, so each sample
#' must follow a line that contains only the time, or each line must begin with the time and a blank (`ss -tin | ts '%.s'`): seconds (`date +%s.%N`)
#' or nanoseconds since 1970. The time of a row is that of its socket's first line.
#'
#' @param path A file, plain or gzip-compressed, with any number of samples.
#' @return A data.table in the file's order, one row per socket and sample: `t_ns` (ns since attribute `epoch_s`; NA without time lines), `src` (this host),
#'   `sport`, `dst`, `dport`, `state` (as ss names it), `cc`, `cwnd_packets`, `ssthresh_packets` (Inf if ss shows none: not set yet), `srtt_us`, `rttvar_us`,
#'   `min_rtt_us`, `rto_us`, `snd_mss_bytes`, `rcv_mss_bytes`, `pmtu_bytes`, `unacked_packets`, `sacked_packets`, `lost_packets`, `retrans_packets` (at that
#'   time), `total_retrans_packets` (0 if ss omits them), `reordering_packets`, `bytes_sent`, `bytes_acked`, `bytes_received`, `bytes_retrans`, `segs_out`,
#'   `segs_in`, `notsent_bytes`, `snd_wnd_bytes`, `rcv_space_bytes`, `rcv_ssthresh_bytes`, `send_rate_bps`, `pacing_rate_bps`, `delivery_rate_bps`, `busy_ms`,
#'   `rwnd_limited_ms`, `sndbuf_limited_ms`, `last_sent_ms`, `app_limited` (logical), `bbr_rate_bps`, `recv_q_bytes`, `send_q_bytes`. Attribute `strange_lines`
#'   counts lines that are not in the format of ss. An incomplete last sample is left out.
#' @source ss(8); misc/ss.c of iproute2.
#' @examples
#' ss <- read_ss(samovar_example("ss.txt"))
#' ss[, .(t_ns, sport, cc, cwnd_packets, srtt_us, delivery_rate_bps)]
#' @export
read_ss <- function(path) {
  check_files(path, "output of ss -tin")
  found <- tryCatch(read_ss_file(path.expand(path[1])), error = \(e) abort_core(conditionMessage(e), "samovar_error_log"))
  x <- setDT(found$table)
  informed <- !is.na(x$rto_us)
  for (name in c("unacked_packets", "sacked_packets", "lost_packets", "retrans_packets", "total_retrans_packets", "app_limited")) {
    set(x, which(informed & is.na(x[[name]])), name, 0)
  }
  set(x, which(informed & is.na(x$ssthresh_packets)), "ssthresh_packets", Inf)
  set(x, NULL, "app_limited", x$app_limited == 1)
  first_s <- if (any(!is.na(x$epoch_s))) min(x$epoch_s, na.rm = TRUE) else 0
  set(x, NULL, "t_ns", (x$epoch_s - first_s) * 1e9 + x$t_ns)
  set(x, NULL, "epoch_s", NULL)
  setattr(x, "epoch_s", first_s)
  setattr(x, "strange_lines", found$strange)
  x[]
}

#' Read a log of web10g
#'
#' TEACUP recorded such logs with web10g-logger: version 2.0.9 writes a header line; version 2.0.7 and the Windows logger do not.
#'
#' @param path One log, plain or gzip-compressed.
#' @return A data.table in time order: `t_ns` (ns since attribute `epoch_s`), `connection` (web10g's id), `src`, `sport`, `dst`, `dport`, `srtt_us`,
#'   `sample_rtt_us` (the last, not smoothed), `cwnd_bytes`. If the log has a header line, all other columns are included under their own names.
#' @source web10g's tcp-kis.txt; TEACUP 1.1, chapter on loggers, for the positions in logs without a header line.
#' @examples
#' log <- tempfile()
#' writeLines(c("Timestamp,CID,LocalAddress,LocalPort,RemAddress,RemPort,SmoothedRTT,SampleRTT,CurCwnd",
#'              paste0("1395884781.250001,7,10.0.0.1,5000,10.0.0.2,80,23,25,14480", strrep(",0", 40))), log)
#' read_web10g(log)
#' @export
read_web10g <- function(path) {
  wanted <- "a log of web10g-logger: Timestamp,CID,LocalAddress,LocalPort,RemAddress,RemPort and at least 45 fields"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  named <- length(text) > 0 && grepl("^Timestamp,", text[1])
  fields <- strsplit(if (named) text[-1] else text, ",", fixed = TRUE)
  names <- if (named) trimws(strsplit(text[1], ",", fixed = TRUE)[[1]]) else web10g_unnamed
  absent <- setdiff(c(web10g_ends, "SmoothedRTT", "CurCwnd"), names)
  if (length(absent) > 0) abort_log(path, 1, paste("no variable", paste(absent, collapse = ", ")), wanted)
  fields <- fields[lengths(fields) >= if (named) length(names) else 45L]
  field <- \(name) vapply(fields, \(f) f[match(name, names)], "")
  stamp <- regmatches(field("Timestamp"), regexec("^([0-9]{1,12})(?:\\.([0-9]{1,9}))?$", field("Timestamp"), perl = TRUE))
  kept <- lengths(stamp) == 3
  if (!any(kept)) abort_log(path, first_line(log$text), "has no sample of web10g", wanted)
  fields <- fields[kept]
  x <- web10g_table(stamp[kept], field, names, if (named) setdiff(names, c(web10g_ends, web10g_known)) else character())
  setorder(x, t_ns)[]
}

web10g_ends <- c("Timestamp", "CID", "LocalAddress", "LocalPort", "RemAddress", "RemPort")
web10g_known <- c("SmoothedRTT", "SampleRTT", "CurCwnd")
web10g_unnamed <- replace(rep("", 45), c(1:6, 23, 26, 45), c(web10g_ends, "SmoothedRTT", "CurCwnd", "SampleRTT"))

web10g_table <- function(stamp, field, names, others) {
  seconds <- as.numeric(vapply(stamp, \(s) s[2], ""))
  part <- vapply(stamp, \(s) s[3], "")
  ns <- as.numeric(paste0("0", part, strrep("0", 9 - nchar(part))))
  x <- data.table(
    t_ns = (seconds - min(seconds)) * 1e9 + ns, connection = as_number(field("CID")), src = field("LocalAddress"),
    sport = as_number(field("LocalPort")), dst = field("RemAddress"), dport = as_number(field("RemPort")),
    srtt_us = as_number(field("SmoothedRTT")) * 1e3, sample_rtt_us = if ("SampleRTT" %in% names) as_number(field("SampleRTT")) * 1e3 else NA_real_,
    cwnd_bytes = as_number(field("CurCwnd"))
  )
  for (name in setdiff(unique(others), c("", names(x)))) set(x, NULL, name, as_number(field(name)))
  setattr(x, "epoch_s", min(seconds))
  x
}
