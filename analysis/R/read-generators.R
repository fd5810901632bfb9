# Readers for the output of generators: iperf, iperf3, nuttcp, nttcp, httperf and ping.

#' Read a log of iperf 2
#'
#' The log is the output of iperf 2 (2.0.5 to 2.1) as CSV (`-y C`) or as text (also with `-e`), of a client or a server, over TCP or UDP. Each line may
#' begin with a time stamp, as `ts` writes it: seconds since 1970 (`ts '%s'`, `ts '%.s'`), a date, or a month and a day.
#'
#' @param path One log, plain or gzip-compressed.
#' @return A data.table, a row per report in the file's order: `stream` (iperf's id), `src`, `sport`, `dst`, `dport` (iperf's local and
#'   foreign end), `stamp` (in CSV, local time as YYYYMMDDhhmmss in an unknown zone; in text, the line's time stamp), `t_s` (the line's time
#'   stamp, if it is in seconds since 1970), `start_s`, `end_s` (since the start of the stream), `bytes` (payload, rounded in text) and `rate_bps` (both NA
#'   if iperf prints a negative number), `retransmissions`, `cwnd_bytes`, `rtt_us` (`-e`, TCP client), `jitter_ms`, `lost_packets`, `packets` (UDP, at the
#'   receiver; -1 is NA), `sum` (of all streams), `total` (the stream's last report, which covers all intervals: use either this row or the sum of all
#'   other rows).
#' @source iperf(1); Reporter.c and ReportOutputs.c of iperf 2.1.8.
#' @examples
#' read_iperf(samovar_example("iperf.csv"))[total == TRUE, .(stream, bytes, rate_bps)]
#' @export
read_iperf <- function(path) {
  wanted <- "a log of iperf 2, CSV (-y C) or text"
  log <- text_lines(path, wanted)
  lines <- unstamped(if (log$cut) utils::head(log$text, -1) else log$text)
  x <- if (any(grepl(iperf_csv_start, lines$text))) iperf_csv(lines$text) else iperf_text(lines)
  if (nrow(x) == 0) abort_log(path, first_line(log$text), "has no report of iperf", wanted)
  mark_totals(x)
}

iperf_csv_start <- "^[0-9]{14}(\\.[0-9]+)?,"

iperf_columns <- c("stream", "src", "sport", "dst", "dport", "stamp", "t_s", "start_s", "end_s", "bytes", "rate_bps", "retransmissions",
                   "cwnd_bytes", "rtt_us", "jitter_ms", "lost_packets", "packets", "sum")

iperf_csv <- function(text) {
  fields <- strsplit(grep(iperf_csv_start, text, value = TRUE), ",", fixed = TRUE)
  fields <- fields[lengths(fields) %in% c(9L, 13L, 14L)]
  field <- \(k) vapply(fields, \(f) if (length(f) < k) "" else f[k], "")
  interval <- regmatches(field(7), regexec("^([0-9.]+)-([0-9.]+)$", field(7)))
  part <- \(k) as_number(vapply(interval, \(i) if (length(i) == 3) i[k] else "", ""))
  x <- data.table(
    stream = as_number(field(6)), src = field(2), sport = as_number(field(3)), dst = field(4), dport = as_number(field(5)),
    stamp = field(1), t_s = NA_real_, start_s = part(2), end_s = part(3), bytes = as_number(field(8)), rate_bps = as_number(field(9)),
    retransmissions = NA_real_, cwnd_bytes = NA_real_, rtt_us = NA_real_, jitter_ms = as_number(field(10)),
    lost_packets = as_number(field(11)), packets = as_number(field(12)), sum = as_number(field(6)) %in% -1
  )
  x <- x[!is.na(end_s) & !is.na(bytes) & !is.na(rate_bps)][packets %in% -1, `:=`(lost_packets = NA, packets = NA, jitter_ms = NA)]
  # Negative numbers come from counters that overflowed 31 or 32 bits.
  x[bytes < 0, bytes := NA][rate_bps < 0, rate_bps := NA]
}

iperf_text <- function(lines) {
  text <- lines$text
  ends <- match_lines(text, "^\\[ *\\*?([0-9]+)\\] local (\\S+?)(?:%\\S+)? port ([0-9]+) connected with (\\S+) port ([0-9]+)",
                      c("stream", "src", "sport", "dst", "dport"))
  x <- match_lines(text, paste0(
    "^\\[ *\\*?(SUM|[0-9]+)(?:-[0-9]+)?\\] +", decimal_number, " *- *", decimal_number, " +sec +", decimal_number, " +([KMGT]?)Bytes +",
    decimal_number, " +([KMGTk]?)(bits|Bytes)/sec(.*)$"
  ), c("stream", "start_s", "end_s", "bytes", "bytes_unit", "rate", "rate_unit", "rate_in", "rest"))
  if (nrow(x) == 0) return(x)
  at <- vapply(seq_len(nrow(x)), \(i) utils::tail(c(NA, which(ends$stream == x$stream[i] & ends$line < x$line[i])), 1), 1L)
  udp <- parts_of(x$rest, paste0("^ +", decimal_number, " +ms +(-?[0-9]+)/ *(-?[0-9]+)"), 3)
  tcp <- parts_of(x$rest, "^ +[0-9]+/[0-9]+ +([0-9]+) +(-?[0-9]+)K(?:\\([0-9]+\\))?/([0-9]+)(?:\\([0-9]+\\))? us", 3)
  x[, `:=`(src = ends$src[at], sport = as_number(ends$sport[at]), dst = ends$dst[at], dport = as_number(ends$dport[at]), stamp = lines$stamp[line],
           t_s = stamp_seconds(lines$stamp[line]), sum = stream == "SUM", start_s = as_number(start_s), end_s = as_number(end_s),
           bytes = as_number(bytes) * unit_of(bytes_unit, binary_units), jitter_ms = udp[[1]], lost_packets = udp[[2]], packets = udp[[3]],
           rate_bps = as_number(rate) * fifelse(rate_in == "bits", unit_of(rate_unit, metric_prefixes), 8 * unit_of(toupper(rate_unit), binary_units)),
           retransmissions = tcp[[1]], cwnd_bytes = 1024 * tcp[[2]], rtt_us = tcp[[3]])]
  x[, stream := fifelse(sum, -1, as_number(stream))]
  x[, iperf_columns, with = FALSE]
}

# The numbers that a pattern finds in each text, one vector per number; NA without a match.
parts_of <- function(text, pattern, n) {
  found <- regmatches(text, regexec(pattern, text, perl = TRUE))
  lapply(seq_len(n), \(k) as_number(vapply(found, \(f) if (length(f) > k) f[k + 1L] else "", "")))
}

mark_totals <- function(x) {
  x[, total := start_s == 0 & end_s == max(end_s) & seq_len(.N) == max(which(start_s == 0 & end_s == max(end_s)), 0), by = .(stream, sport, dport)][]
}

#' Read the output of iperf3
#'
#' The file is the output of either end: of `-J` (one object), of `--json-stream` (3.17 and later; one event per line), or text. An incomplete last line of
#' `--json-stream` and of text is ignored, so that the log of a killed test can be read up to that point. The whole object that
#' `--json-stream-full-output` appends repeats the events and is not read. Each line may begin with a time stamp, as `--timestamps` and `ts` write it.
#'
#' In text output, iperf3 rounds the values and does not print `snd_wnd_bytes`, `rtt_us`, `rttvar_us` and `pmtu_bytes`. A row is `omitted` if its line is
#' marked "(omitted)".
#'
#' @param path One file, plain or gzip-compressed.
#' @param test Number of the test in a file with several tests, which servers write: 1 for the first test that has an interval.
#' @return A data.table, a row per interval and stream: `stream` (iperf3's socket), `src`, `sport`, `dst`, `dport` (its local and foreign
#'   end), `start_s`, `end_s` (since the start of the test), `bytes`, `rate_bps`, `retransmissions`, `cwnd_bytes`, `snd_wnd_bytes`,
#'   `rtt_us`, `rttvar_us`, `pmtu_bytes` (TCP, sender), `jitter_ms`, `lost_packets`, `packets` (UDP), `omitted`, `sender` (TRUE if this end sends; NA if
#'   text does not show it); for text also `t_s` (the line's time stamp, if it is in seconds since 1970). Attributes: `epoch_s` (start of the test, whole
#'   seconds; NA for text), `protocol`, `mss_bytes`, `error` (iperf3's error message, or NULL), `totals` (a data.table:
#'   `side` ("sender", "receiver" or, for UDP, "both", with the suffix "-reverse" for the reverse direction of `--bidir`), `bytes`, `seconds_s`,
#'   `rate_bps`, `retransmissions`; NA where a server prints 0 because it does not know the client's values; without rows if the test did not end).
#' @source iperf3(1); iperf_api.c of iperf 3.12; output of iperf 3.22.
#' @examples
#' read_iperf3(samovar_example("iperf3.json"))[, .(stream, start_s, end_s, rate_bps, cwnd_bytes)]
#' text <- read_iperf3(samovar_example("iperf3.txt"))
#' text[omitted == FALSE, .(t_s, start_s, end_s, rate_bps)]
#' attr(text, "totals")
#' @export
read_iperf3 <- function(path, test = NULL) {
  wanted <- "the output of iperf3, JSON or text"
  log <- text_lines(path, wanted)
  lines <- unstamped(log$text)
  log$text <- lines$text
  first <- log$text[first_line(log$text)]
  tests <- if (grepl(iperf3_event, first)) iperf3_stream(path, log, wanted) else if (any(grepl(iperf3_text, log$text))) {
    iperf3_texts(lines, log$cut)
  } else {
    iperf3_objects(path, log$text, wanted)
  }
  x <- one_test(path, tests, test)
  intervals <- x[["intervals"]]
  if (!is.list(intervals)) intervals <- list()
  rows <- rbindlist(lapply(intervals, iperf3_interval), fill = TRUE)
  if (nrow(rows) == 0) abort_log(path, NULL, paste0("has no interval", if (is_text(x[["error"]])) paste0(" (iperf3: ", x[["error"]], ")")), wanted)
  start <- if (is.list(x[["start"]])) x[["start"]] else list()
  rows <- cbind(rows[, .(stream)], iperf3_ends(start[["connected"]], rows$stream), rows[, -"stream"])
  setattr(rows, "epoch_s", number_in(as_record(start[["timestamp"]]), "timesecs"))
  setattr(rows, "protocol", if (is_text(as_record(start[["test_start"]])[["protocol"]])) start[["test_start"]][["protocol"]])
  setattr(rows, "mss_bytes", number_in(start, "tcp_mss_default"))
  setattr(rows, "error", if (is_text(x[["error"]])) x[["error"]])
  setattr(rows, "totals", iperf3_totals(as_record(x[["end"]]), is.list(start[["accepted_connection"]])))
  rows[]
}

iperf3_event <- '^\\{"event":'

# Return a test from a server's log, by its number among the tests that have an interval. A server adds
# objects without an interval when it is stopped, and for failed tests.
one_test <- function(path, tests, number) {
  begun <- Filter(\(x) is.list(x[["intervals"]]) && length(x[["intervals"]]) > 0, tests)
  if (length(begun) == 0) return(if (length(tests) > 0) tests[[length(tests)]])
  if (is.null(number) && length(begun) == 1) return(begun[[1]])
  if (is.numeric(number) && length(number) == 1 && isTRUE(number %in% seq_along(begun))) return(begun[[number]])
  abort_log(path, NULL, paste("has", length(begun), "tests of iperf3"), paste("test = 1", if (length(begun) > 1) paste("to", length(begun))))
}

# One object per test of -J.
iperf3_objects <- function(path, text, wanted) {
  first <- which(text == "{")
  if (length(first) < 2 || any(nzchar(trimws(text[seq_len(first[1] - 1L)])))) return(list(parse_json(path, text, wanted)))
  last <- c(first[-1] - 1L, length(text))
  Map(\(i, j) parse_json(path, text[i:j], wanted, i), first, last)
}

# Combine the events of each test into an object like the one that `iperf3 -J` writes.
iperf3_stream <- function(path, log, wanted) {
  at <- grep(iperf3_event, log$text)
  refuse_between(path, log$text, at, wanted)
  last <- at[length(at)]
  if (log$cut && last == length(log$text) && !jsonlite::validate(log$text[last])) at <- at[-length(at)]
  events <- lapply(at, \(line) parse_json(path, log$text[line], wanted, line))
  test <- cumsum(vapply(events, text_in, "", "event") %in% "start")
  unname(lapply(split(events, pmax(test, 1)), iperf3_of_events))
}

iperf3_of_events <- function(events) {
  kind <- vapply(events, text_in, "", "event")
  data_of <- \(name) lapply(events[kind %in% name], \(event) event[["data"]])
  first_of <- \(data) if (length(data) > 0) data[[1]]
  # A server that is stopped after its test adds an empty event `end`.
  ends <- Filter(\(data) length(data) > 0, data_of("end"))
  list(start = first_of(data_of("start")), intervals = data_of("interval"), end = first_of(ends), error = first_of(data_of("error")))
}

# --- Text of iperf3, converted to the structure of its JSON

iperf3_text <- "^(Connecting to host |Accepted connection from |Server listening on |iperf3: |iperf 3|\\[ *(SUM|[0-9]+)\\][ [])"

# A client's test begins where the client connects. Each test of a server begins where the server accepts a
# connection.
iperf3_texts <- function(lines, cut) {
  kept <- seq_len(length(lines$text) - cut)
  test <- cumsum(grepl("^(Accepted connection from|Connecting to host) ", lines$text[kept]))
  unname(lapply(split(kept, pmax(test, 1)), \(at) iperf3_of_text(lapply(lines, `[`, at))))
}

iperf3_of_text <- function(lines) {
  ends <- match_lines(lines$text, "^\\[ *([0-9]+)\\] local (\\S+) port ([0-9]+) connected to (\\S+) port ([0-9]+)",
                      c("socket", "local_host", "local_port", "remote_host", "remote_port"))
  ends[, c("socket", "local_port", "remote_port") := lapply(.SD, as_number), .SDcols = c("socket", "local_port", "remote_port")]
  rows <- iperf3_rows(lines)
  total <- grepl("(sender|receiver)$", rows$rest)
  streams <- rows[stream != "SUM" & !total, c("stream", names(iperf3_fields)[-1], "omitted", "sender", "t_s"), with = FALSE]
  error <- sub("^iperf3: ", "", grep("^iperf3: ", lines$text, value = TRUE))
  list(start = list(connected = lapply(seq_len(nrow(ends)), \(k) as.list(ends[k])),
                    test_start = list(protocol = if (nrow(rows) > 0) if (anyNA(rows$jitter_ms) && all(is.na(rows$packets))) "TCP" else "UDP")),
       intervals = if (nrow(streams) > 0) list(streams[, stream := as_number(stream)]), end = iperf3_text_sums(rows[total]),
       error = if (length(error) > 0) error[1])
}

iperf3_rows <- function(lines) {
  x <- match_lines(lines$text, paste0(
    "^\\[ *(SUM|[0-9]+)\\](?:\\[([TR]X)-([CS])\\])? +", decimal_number, " *- *", decimal_number, " +sec +", decimal_number, " +([KMGT]?)Bytes +",
    decimal_number, " +([KMGT]?)(bits|Bytes)/sec(.*)$"
  ), c("stream", "role", "end", "start_s", "end_s", "bytes", "bytes_unit", "rate", "rate_unit", "rate_in", "rest"))
  x[, rest := trimws(rest)]
  tcp <- parts_of(x$rest, paste0("^([0-9]+)(?: +", decimal_number, " +[KMGT]?Bytes)?(?: |$)(?! *[0-9]*/)"), 2)
  cwnd_unit <- sub("^[0-9]+ +[0-9.,]+ +([KMGT]?)Bytes.*$|^.*$", "\\1", x$rest)
  udp <- parts_of(x$rest, paste0("^", decimal_number, " +ms +(-?[0-9]+)/ *(-?[0-9]+)"), 3)
  # A UDP client prints the number of its datagrams in the column in which a TCP sender prints retransmissions; the column's heading tells which.
  datagrams <- any(grepl("Datagrams", lines$text, fixed = TRUE))
  x[, `:=`(
    start_s = as_number(start_s), end_s = as_number(end_s), bytes = as_number(bytes) * unit_of(bytes_unit, binary_units),
    rate_bps = as_number(rate) * fifelse(rate_in == "bits", unit_of(rate_unit, metric_prefixes), 8 * unit_of(rate_unit, binary_units)),
    retransmissions = if (datagrams) NA_real_ else tcp[[1]], cwnd_bytes = tcp[[2]] * unit_of(cwnd_unit, binary_units), snd_wnd_bytes = NA_real_, rtt_us = NA_real_,
    rttvar_us = NA_real_, pmtu_bytes = NA_real_, jitter_ms = udp[[1]], lost_packets = udp[[2]], packets = fcoalesce(udp[[3]], if (datagrams) tcp[[1]] else NA_real_),
    omitted = grepl("(omitted)", rest, fixed = TRUE), t_s = stamp_seconds(lines$stamp[line])
  )]
  x[, sender := fcase(role == "TX", TRUE, role == "RX", FALSE, !is.na(jitter_ms), FALSE, !is.na(retransmissions) | !is.na(packets), TRUE)]
}

# The totals of the test as records of JSON. If totals over all streams are printed, only these are used.
iperf3_text_sums <- function(x) {
  x[, name := paste0(fifelse(grepl("sender$", rest), "sum_sent", "sum_received"), fifelse(paste(role, end) %in% c("RX C", "TX S"), "_bidir_reverse", ""))]
  x <- x[, .SD[if (any(stream == "SUM")) stream == "SUM" else TRUE], by = name]
  records <- x[, .(bytes, seconds = end_s - start_s, bits_per_second = rate_bps, retransmits = retransmissions)]
  stats::setNames(lapply(seq_len(nrow(x)), \(k) as.list(records[k])), x$name)
}

# Raise an error for text between events. After the last event, only the JSON object that repeats all events
# may follow.
refuse_between <- function(path, text, at, wanted) {
  others <- setdiff(which(nzchar(trimws(text))), at)
  strange <- others[others < at[length(at)]]
  behind <- others[others > at[length(at)]]
  if (length(behind) > 0 && !startsWith(trimws(text[behind[1]]), "{")) strange <- c(strange, behind[1])
  if (length(strange) > 0) abort_log(path, strange[1], "is not an event of --json-stream", wanted)
}

# `line` is the line's number if the text is a single line of the file.
parse_json <- function(path, text, wanted, line = NULL) {
  bytes <- charToRaw(paste(text, collapse = "\n"))
  depth <- cumsum((bytes == 0x7b | bytes == 0x5b) - (bytes == 0x7d | bytes == 0x5d))
  if (max(depth, 0) > 64) abort_log(path, line, "is nested deeper than 64 levels, more than iperf3 writes", wanted)
  x <- tryCatch(jsonlite::parse_json(rawToChar(bytes)), error = \(e) {
    open <- depth[length(depth)] > 0
    abort_log(path, line %||% (if (open) length(text) else first_line(text)), if (open) "the JSON is truncated" else "is not JSON", wanted)
  })
  if (!is.list(x) || is.null(names(x))) abort_log(path, line %||% 1, "is JSON, but not an object", wanted)
  x
}

is_text <- function(x) is.character(x) && length(x) == 1
as_record <- function(x) if (is.list(x)) x else list()

number_in <- function(record, name) {
  value <- as_record(record)[[name]]
  if (is.numeric(value) && length(value) == 1) as.double(value) else NA_real_
}

iperf3_fields <- c(
  stream = "socket", start_s = "start", end_s = "end", bytes = "bytes", rate_bps = "bits_per_second", retransmissions = "retransmits",
  cwnd_bytes = "snd_cwnd", snd_wnd_bytes = "snd_wnd", rtt_us = "rtt", rttvar_us = "rttvar", pmtu_bytes = "pmtu", jitter_ms = "jitter_ms",
  lost_packets = "lost_packets", packets = "packets"
)

iperf3_interval <- function(interval) {
  if (is.data.table(interval)) return(interval)
  streams <- as_record(as_record(interval)[["streams"]])
  rbindlist(lapply(streams, \(s) {
    row <- lapply(iperf3_fields, \(name) number_in(s, name))
    c(row, list(omitted = isTRUE(as_record(s)[["omitted"]]), sender = if (is.logical(as_record(s)[["sender"]])) isTRUE(s[["sender"]]) else NA))
  }))
}

iperf3_ends <- function(connected, stream) {
  ends <- rbindlist(lapply(as_record(connected), \(e) list(
    socket = number_in(e, "socket"), src = text_in(e, "local_host"), sport = number_in(e, "local_port"),
    dst = text_in(e, "remote_host"), dport = number_in(e, "remote_port")
  )))
  if (nrow(ends) == 0) ends <- data.table(socket = NA_real_, src = NA_character_, sport = NA_real_, dst = NA_character_, dport = NA_real_)
  ends[match(stream, ends$socket), -"socket"]
}

text_in <- function(record, name) {
  value <- as_record(record)[[name]]
  if (is_text(value)) value else NA_character_
}

iperf3_totals <- function(end, of_server) {
  sums <- c(sender = "sum_sent", receiver = "sum_received", both = "sum")
  way_back <- stats::setNames(paste0(sums, "_bidir_reverse"), paste0(names(sums), "-reverse"))
  rbindlist(list(iperf3_sums(end, sums, of_server), iperf3_sums(end, way_back, of_server)))
}

iperf3_sums <- function(end, names, of_server) {
  x <- rbindlist(lapply(names, \(name) {
    if (!is.list(end[[name]])) return(NULL)
    list(bytes = number_in(end[[name]], "bytes"), seconds_s = number_in(end[[name]], "seconds"),
         rate_bps = number_in(end[[name]], "bits_per_second"), retransmissions = number_in(end[[name]], "retransmits"))
  }), idcol = "side")
  if (!of_server || !any(x$bytes > 0, na.rm = TRUE)) return(x)
  set(x, which(x$bytes == 0), c("bytes", "rate_bps"), NA_real_)
}

#' Read a log of nuttcp
#'
#' @param path One log of `nuttcp -fparse` or of nuttcp's usual text, with or without `-i`, plain or gzip-compressed.
#' @return A data.table, a row per report: `start_s`, `end_s` (since the start of the transfer), `bytes` (nuttcp's MB are 2^20 bytes),
#'   `rate_bps`, `retransmissions`, `rtt_ms` (TCP), `lost_packets`, `packets` (UDP), `tx_cpu_share`, `rx_cpu_share`, `total` (the last line, of
#'   the whole transfer).
#' @source nuttcp(8), version 8.2.2.
#' @examples
#' read_nuttcp(samovar_example("nuttcp.txt"))
#' @export
read_nuttcp <- function(path) {
  wanted <- "a log of nuttcp, of -fparse or text"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  x <- rbind(nuttcp_pairs(text), nuttcp_text(text), fill = TRUE)
  if (nrow(x) == 0) {
    errors <- grep("error", log$text, ignore.case = TRUE, value = TRUE)
    abort_log(path, first_line(log$text), paste0("has no report of nuttcp", if (length(errors) > 0) paste0(" (", substr(errors[1], 1, 80), ")")), wanted)
  }
  setorder(x, line)
  x[, run := cumsum(c(0, utils::head(total, -1)))]
  x[, end_s := fifelse(total, seconds, cumsum(seconds)), by = run]
  x[, .(start_s = fifelse(total, 0, end_s - seconds), end_s, bytes = megabytes * 2^20, rate_bps = rate * 1e6, retransmissions, rtt_ms,
        lost_packets, packets, tx_cpu_share = tx_cpu / 100, rx_cpu_share = rx_cpu / 100, total)]
}

nuttcp_names <- c(megabytes = "megabytes", seconds = "real_sec(?:onds)?", rate = "rate_Mbps", retransmissions = "retrans", rtt_ms = "rtt_ms",
                  lost_packets = "drop", packets = "pkt", tx_cpu = "tx_cpu", rx_cpu = "rx_cpu")

nuttcp_pairs <- function(text) {
  at <- grep("megabytes=[0-9.,]+ real_sec(onds)?=[0-9.,]+ rate_Mbps=", text)
  found <- lapply(nuttcp_names, \(name) parts_of(text[at], paste0("(?:^| )", name, "=", decimal_number), 1)[[1]])
  as.data.table(c(found, list(total = grepl("real_seconds=", text[at], fixed = TRUE), line = at)))
}

nuttcp_text <- function(text) {
  x <- match_lines(text, paste0("^ *", decimal_number, " MB / +", decimal_number, " sec = +", decimal_number, " Mbps(.*)$"),
                   c("megabytes", "seconds", "rate", "rest"))
  if (nrow(x) == 0) return(NULL)
  cpu <- parts_of(x$rest, "^ +([0-9]+) %TX +([0-9]+) %RX", 2)
  drops <- parts_of(x$rest, " ([0-9]+) / +([0-9]+) (?:~?drop|.*%loss)", 2)
  x[, .(megabytes = as_number(megabytes), seconds = as_number(seconds), rate = as_number(rate),
        retransmissions = parts_of(rest, " ([0-9]+) retrans", 1)[[1]], rtt_ms = parts_of(rest, paste0(decimal_number, " msRTT"), 1)[[1]],
        lost_packets = drops[[1]], packets = drops[[2]], tx_cpu = cpu[[1]], rx_cpu = cpu[[2]], total = !is.na(cpu[[1]]), line = line)]
}

#' Read a log of nttcp
#'
#' @param path One log of `nttcp -T` (also with `-v`), plain or gzip-compressed.
#' @return A data.table, a row per end of each transfer: `side` (local, remote), `bytes`, `real_s`, `cpu_s`, `rate_bps`,
#'   `cpu_rate_bps`, `calls`.
#' @source nttcp(1), version 1.47.
#' @examples
#' log <- tempfile()
#' writeLines(c("     Bytes  Real s   CPU s Real-MBit/s  CPU-MBit/s   Calls  Real-C/s   CPU-C/s",
#'              "l  8388608    4.73    4.60     14.2004     14.5911    2048    433.36     445.3"), log)
#' read_nttcp(log)
#' @export
read_nttcp <- function(path) {
  wanted <- "a log of nttcp with its usual columns (Bytes, Real s, CPU s, Real-MBit/s \u2026)"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  number <- paste0(" *", decimal_number)
  x <- match_lines(text, paste0("^ *([l1-9][0-9]?) +([0-9]+)", strrep(number, 4), " +([0-9]+)(?: +[0-9.,]+){0,2} *$"),
                   c("side", "bytes", "real_s", "cpu_s", "rate", "cpu_rate", "calls"))
  if (nrow(x) == 0) abort_log(path, first_line(log$text), "has no line with totals of nttcp", wanted)
  x[, .(side = fifelse(side == "l", "local", "remote"), bytes = as_number(bytes), real_s = as_number(real_s), cpu_s = as_number(cpu_s),
        rate_bps = as_number(rate) * 1e6, cpu_rate_bps = as_number(cpu_rate) * 1e6, calls = as_number(calls))]
}

#' Read the report of httperf
#'
#' @param path One log, plain or gzip-compressed; each report in it is a row.
#' @return A data.table, a row per report: `connections`, `requests`, `replies`, `duration_s`, `connection_rate_per_s`, `connection_time_*_ms` (min,
#'   avg, max, median, stddev), `connect_time_ms`, `request_rate_per_s`, `request_bytes`, `reply_rate_*_per_s` (min, avg, max, stddev), `response_time_ms`,
#'   `transfer_time_ms`, `reply_header_bytes`, `reply_content_bytes`, `status_1xx` to `status_5xx`, `cpu_user_s`, `cpu_system_s`,
#'   `net_rate_bps` (httperf's KB are 1024 bytes), `errors`, `client_timeouts`, `socket_timeouts`, `refused`, `reset`; NA if the report lacks the line.
#' @source httperf(1), version 0.9.
#' @examples
#' log <- tempfile()
#' writeLines(c("Total: connections 50 requests 5050 replies 5000 test-duration 9.193 s",
#'              "Reply time [ms]: response 25.5 transfer 61.0"), log)
#' read_httperf(log)[, .(connections, replies, duration_s, response_time_ms)]
#' @export
read_httperf <- function(path) {
  wanted <- "a report of httperf, with its line Total: connections \u2026"
  log <- text_lines(path, wanted)
  text <- trimws(if (log$cut) utils::head(log$text, -1) else log$text)
  starts <- grep("^Total: connections", text)
  if (length(starts) == 0) abort_log(path, first_line(log$text), "has no report of httperf", wanted)
  report <- findInterval(seq_along(text), starts)
  x <- rbindlist(lapply(seq_along(starts), \(k) httperf_report(text[report == k])))
  x[, net_rate_bps := net_rate_bps * 8 * 1024][]
}

httperf_patterns <- list(
  list("^Total: connections N requests N replies N test-duration N s", c("connections", "requests", "replies", "duration_s")),
  list("^Connection rate: N conn/s", "connection_rate_per_s"),
  list("^Connection time \\[ms\\]: min N avg N max N median N stddev N", paste0("connection_time_", c("min", "avg", "max", "median", "stddev"), "_ms")),
  list("^Connection time \\[ms\\]: connect N", "connect_time_ms"),
  list("^Request rate: N req/s", "request_rate_per_s"),
  list("^Request size \\[B\\]: N", "request_bytes"),
  list("^Reply rate \\[replies/s\\]: min N avg N max N stddev N", paste0("reply_rate_", c("min", "avg", "max", "stddev"), "_per_s")),
  list("^Reply time \\[ms\\]: response N transfer N", c("response_time_ms", "transfer_time_ms")),
  list("^Reply size \\[B\\]: header N content N", c("reply_header_bytes", "reply_content_bytes")),
  list("^Reply status: 1xx=N 2xx=N 3xx=N 4xx=N 5xx=N", paste0("status_", 1:5, "xx")),
  list("^CPU time \\[s\\]: user N system N", c("cpu_user_s", "cpu_system_s")),
  list("^Net I/O: N KB/s", "net_rate_bps"),
  list("^Errors: total N client-timo N socket-timo N connrefused N connreset N", c("errors", "client_timeouts", "socket_timeouts", "refused", "reset"))
)

httperf_report <- function(text) {
  found <- lapply(httperf_patterns, \(p) {
    pattern <- gsub(" N|=N", paste0("[ =]+", decimal_number), p[[1]])
    at <- utils::head(grep(pattern, text, perl = TRUE), 1)
    values <- if (length(at) == 1) parts_of(text[at], pattern, length(p[[2]])) else rep(list(NA_real_), length(p[[2]]))
    stats::setNames(values, p[[2]])
  })
  as.data.table(unlist(found, recursive = FALSE))
}

#' Read the output of ping
#'
#' Output of ping of iputils or FreeBSD, in any language: the reader looks for numbers and `icmp_seq`, not for words.
#'
#' @param path One log, plain or gzip-compressed.
#' @return A data.table, a row per line of an echo: `sequence` (continued beyond 65535), `answer` (reply, duplicate, or none: ping `-O` reported
#'   no answer in time, or another host reported an error), `from`, `ttl`,
#'   `rtt_ms` (NA if the line has no time: there was no answer, the answer is marked `(truncated)`, or `-s` is
#'   below 16, so that echoes are too small for a time stamp; iputils does not mark duplicates among truncated
#'   answers), `rtt_below_ms` (1 if the line has `time<1 ms`, for which `rtt_ms` is NA; else NA), `t_s`
#'   (seconds since 1970 with `ping -D`, else NA). Attributes `sent` and `received` from the summary, NA
#'   without a summary.
#' @source ping(8) of iputils and FreeBSD; the ping of OpenHarmony, for `time<1 ms`.
#' @examples
#' ping <- read_ping(samovar_example("ping.txt"))
#' ping
#' attr(ping, "received")
#' @export
read_ping <- function(path) {
  wanted <- "output of ping, with icmp_seq in its lines"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  x <- match_lines(text, "^(?:\\[([0-9]+\\.[0-9]+)\\] )?(.*?)\\bicmp_seq[= ]([0-9]+)\\b(.*)$", c("t_s", "before", "sequence", "rest"))
  counts <- ping_summary(text)
  if (nrow(x) == 0 && is.na(counts[1])) abort_log(path, first_line(log$text), "is not output of ping", wanted)
  time_of <- \(sign) parts_of(x$rest, paste0(sign, " ?", decimal_number, " ?ms"), 1)[[1]]
  rtt_ms <- time_of("=")
  below_ms <- time_of("<")
  # In every language of ping, a line that reports an answer starts with the length of the answer. Lines that
  # report an error of another host, or that no answer came, do not start with a length.
  came <- grepl("^[0-9]+ ", x$before) | !is.na(rtt_ms) | !is.na(below_ms)
  rows <- x[, .(
    sequence = unwrapped(as_number(sequence)), answer = fifelse(!came, "none", fifelse(grepl("DUP", rest, fixed = TRUE), "duplicate", "reply")),
    from = sub("^.*[ (]([0-9a-fA-F.:]*[.:][0-9a-fA-F.:]*[0-9a-fA-F](%[^ ):,]+)?)[ ):,].*$|^.*$", "\\1", before), ttl = parts_of(rest, "(?:ttl|hlim)=([0-9]+)", 1)[[1]],
    rtt_ms = rtt_ms, rtt_below_ms = below_ms, t_s = as_number(t_s)
  )]
  setattr(rows, "sent", counts[1])
  setattr(rows, "received", counts[2])
  rows[]
}

ping_summary <- function(text) {
  at <- grep("^--- .* ---$", text)
  if (length(at) == 0 || at[length(at)] == length(text)) return(c(NA_real_, NA_real_))
  vapply(parts_of(text[at[length(at)] + 1L], "^([0-9]+) [^,]*, ([0-9]+) ", 2), \(v) v[1], 0)
}

# ICMP sequence numbers have 16 bits.
unwrapped <- function(sequence) {
  if (length(sequence) < 2) return(sequence)
  step <- diff(sequence)
  sequence + 65536 * cumsum(c(0, (step < -32768) - (step > 32768)))
}

# --- Shared by the readers of text logs

check_files <- function(path, wanted) {
  if (!is.character(path) || length(path) == 0 || anyNA(path)) {
    cli::cli_abort("{.arg path} must be the path of {wanted}, as text", class = "samovar_error_argument",
                   call = NULL)
  }
  absent <- path[!file.exists(path)]
  if (length(absent) > 0) {
    cli::cli_abort("{absent[1]}: no such file; expected {wanted}", class = "samovar_error_file", call = NULL)
  }
  invisible(path)
}

#' Read the lines of one log, plain or gzip, as ASCII
#'
#' Zero bytes and bytes beyond ASCII, which occur only in names and translated words, become question marks.
#' @return A list: `text`, `cut` (TRUE if the last line has no end).
#' @noRd
text_lines <- function(path, wanted) {
  if (length(path) != 1) abort_log(path[1], NULL, "more than one file", wanted)
  check_files(path, wanted)
  bytes <- whole_bytes(path)
  if (length(bytes) == 0) abort_log(path, NULL, "empty or not readable", wanted)
  text <- strsplit(rawToChar(ascii_only(bytes)), "\r?\n", perl = TRUE)[[1]]
  list(text = text, cut = bytes[length(bytes)] != 10)
}

# Separate the lines of a log from the time stamps that `ts` or a program's own option may have put in front of them: `text`, and `stamp` (NA for lines
# without a time stamp).
unstamped <- function(text) {
  length <- attr(regexpr(line_stamp, text, perl = TRUE), "match.length")
  stamped <- length > 0
  list(text = fifelse(stamped, substring(text, length + 1L), text), stamp = fifelse(stamped, trimws(substr(text, 1L, length)), NA_character_))
}

# Seconds since 1970 (ts '%s', ts '%.s'), a date of ISO 8601 (ts '%FT%T%z'), or a month and day (ts; iperf3 --timestamps).
line_stamp <- paste0(
  "^(?:[0-9]{10}(?:[.,][0-9]{1,9})?(?![0-9.,])|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?: ?Z| ?[+-][0-9]{2}:?[0-9]{2})?|",
  "(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ 0-3][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?: [0-9]{4})?) ?"
)

stamp_seconds <- function(stamp) as_number(fifelse(grepl("^[0-9]{10}([.,][0-9]+)?$", stamp), stamp, NA_character_))

abort_log <- function(path, line, what, wanted) {
  where <- if (is.null(line)) path else paste0(path, ":", line)
  cli::cli_abort("{where}: {what}; expected {wanted}", class = "samovar_error_log", call = NULL)
}

# The capture groups of a pattern, one column each, for the lines that match; `line` is the line's number.
match_lines <- function(text, pattern, names) {
  found <- regmatches(text, regexec(pattern, text, perl = TRUE))
  at <- which(lengths(found) > 0)
  parts <- matrix(as.character(unlist(found[at])), ncol = length(names) + 1L, byrow = TRUE)
  x <- as.data.table(parts[, -1, drop = FALSE])
  setnames(x, names)
  x[, line := at][]
}

# Numbers as programs write them in any language, with a decimal comma or point; NA for anything else.
as_number <- function(text) {
  plain <- grepl("^ *-?[0-9]{1,18}([.,][0-9]*)?([eE][-+]?[0-9]{1,2})? *$", text)
  value <- rep(NA_real_, length(text))
  value[plain] <- as.numeric(sub(",", ".", text[plain], fixed = TRUE))
  value
}

decimal_number <- "([0-9]+(?:[.,][0-9]+)?)"

binary_units <- c(1, K = 2^10, M = 2^20, G = 2^30, T = 2^40)
metric_prefixes <- c(1, K = 1e3, k = 1e3, M = 1e6, G = 1e9, T = 1e12)

unit_of <- function(letter, units) unname(units[match(letter, names(units))])

# The first line that is not empty: it shows what kind of log this is.
first_line <- function(text) {
  at <- which(nzchar(trimws(text)))
  if (length(at) > 0) at[1] else 1L
}
