#' Read a log of iperf 2
#'
#' What iperf 2 (2.0.5 to 2.1) prints, as CSV (`-y C`) or as text, also with `-e`, of a client or a server, TCP or UDP.
#'
#' @param path One log, plain or gzip-compressed.
#' @return A data.table, a row per report in the file's order: `stream` (iperf's id), `src`, `sport`, `dst`, `dport` (iperf's local and
#'   foreign end), `stamp` (of CSV: local time, YYYYMMDDhhmmss, its zone is not told), `start_s`, `end_s` (since the stream began),
#'   `bytes` (payload; of text rounded to what it shows; NA where iperf prints less than 0, as `rate_bps`), `rate_bps`, `retransmissions`, `cwnd_bytes`, `rtt_us` (`-e`, TCP
#'   client), `jitter_ms`, `lost_packets`, `packets` (UDP, at the receiver; -1 is NA), `sum` (of all streams), `total` (the stream's last
#'   report, which repeats all intervals: leave it out, or take it alone, when adding up).
#' @source iperf(1); Reporter.c and ReportOutputs.c of iperf 2.1.8.
#' @export
read_iperf <- function(path) {
  wanted <- "a log of iperf 2, CSV (-y C) or text"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  x <- if (any(grepl(iperf_csv_start, text))) iperf_csv(text) else iperf_text(text)
  if (nrow(x) == 0) abort_log(path, first_line(log$text), "holds no report of iperf", wanted)
  mark_totals(x)
}

iperf_csv_start <- "^[0-9]{14}(\\.[0-9]+)?,"

iperf_columns <- c("stream", "src", "sport", "dst", "dport", "stamp", "start_s", "end_s", "bytes", "rate_bps", "retransmissions",
                   "cwnd_bytes", "rtt_us", "jitter_ms", "lost_packets", "packets", "sum")

iperf_csv <- function(text) {
  fields <- strsplit(grep(iperf_csv_start, text, value = TRUE), ",", fixed = TRUE)
  fields <- fields[lengths(fields) %in% c(9L, 13L, 14L)]
  field <- \(k) vapply(fields, \(f) if (length(f) < k) "" else f[k], "")
  interval <- regmatches(field(7), regexec("^([0-9.]+)-([0-9.]+)$", field(7)))
  part <- \(k) as_number(vapply(interval, \(i) if (length(i) == 3) i[k] else "", ""))
  x <- data.table(
    stream = as_number(field(6)), src = field(2), sport = as_number(field(3)), dst = field(4), dport = as_number(field(5)),
    stamp = field(1), start_s = part(2), end_s = part(3), bytes = as_number(field(8)), rate_bps = as_number(field(9)),
    retransmissions = NA_real_, cwnd_bytes = NA_real_, rtt_us = NA_real_, jitter_ms = as_number(field(10)),
    lost_packets = as_number(field(11)), packets = as_number(field(12)), sum = as_number(field(6)) %in% -1
  )
  x <- x[!is.na(end_s) & !is.na(bytes) & !is.na(rate_bps)][packets %in% -1, `:=`(lost_packets = NA, packets = NA, jitter_ms = NA)]
  # Counters that went over 31 or 32 bits.
  x[bytes < 0, bytes := NA][rate_bps < 0, rate_bps := NA]
}

iperf_text <- function(text) {
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
  x[, `:=`(src = ends$src[at], sport = as_number(ends$sport[at]), dst = ends$dst[at], dport = as_number(ends$dport[at]), stamp = NA_character_,
           sum = stream == "SUM", start_s = as_number(start_s), end_s = as_number(end_s),
           bytes = as_number(bytes) * unit_of(bytes_unit, binary_units), jitter_ms = udp[[1]], lost_packets = udp[[2]], packets = udp[[3]],
           rate_bps = as_number(rate) * fifelse(rate_in == "bits", unit_of(rate_unit, metric_prefixes), 8 * unit_of(toupper(rate_unit), binary_units)),
           retransmissions = tcp[[1]], cwnd_bytes = 1024 * tcp[[2]], rtt_us = tcp[[3]])]
  x[, stream := fifelse(sum, -1, as_number(stream))]
  x[, iperf_columns, with = FALSE]
}

# Numbers that a pattern finds in each text, a vector each; NA where it does not.
parts_of <- function(text, pattern, n) {
  found <- regmatches(text, regexec(pattern, text, perl = TRUE))
  lapply(seq_len(n), \(k) as_number(vapply(found, \(f) if (length(f) > k) f[k + 1L] else "", "")))
}

mark_totals <- function(x) {
  x[, total := start_s == 0 & end_s == max(end_s) & seq_len(.N) == max(which(start_s == 0 & end_s == max(end_s)), 0), by = .(stream, sport, dport)][]
}

#' Read the JSON of iperf3
#'
#' What `-J` prints, one object, or `--json-stream` (3.17 and later), an event per line as they happen, of either end. Of the latter a last line that was
#' cut off is left out, so that a test that was killed is read as far as it went; the whole object that `--json-stream-full-output` prints
#' behind them repeats them and is not read.
#'
#' @param path One file, plain or gzip-compressed.
#' @param test Which test of a file of several, as a server writes them that goes on: 1 for the first of those that have an interval.
#' @return A data.table, a row per interval and stream: `stream` (iperf3's socket), `src`, `sport`, `dst`, `dport` (its local and foreign
#'   end), `start_s`, `end_s` (since the test began), `bytes`, `rate_bps`, `retransmissions`, `cwnd_bytes`, `snd_wnd_bytes`,
#'   `rtt_us`, `rttvar_us`, `pmtu_bytes` (TCP, sender), `jitter_ms`, `lost_packets`, `packets` (UDP), `omitted`, `sender`. Attributes: `epoch_s`
#'   (start of the test, whole seconds), `protocol`, `mss_bytes`, `error` (what iperf3 complained of, or NULL), `totals` (a data.table:
#'   `side` sender or receiver, `both` of UDP, with `-reverse` for the way back of `--bidir`; `bytes`, `seconds_s`, `rate_bps`, `retransmissions`; NA where a
#'   server, which prints 0 then, does not know what the client did; without rows where the test did not come to its end).
#' @source iperf3(1); iperf_api.c of iperf 3.12; output of iperf 3.22.
#' @export
read_iperf3 <- function(path, test = NULL) {
  wanted <- "the output of iperf3 -J or --json-stream"
  log <- text_lines(path, wanted)
  tests <- if (grepl(iperf3_event, log$text[first_line(log$text)])) iperf3_stream(path, log, wanted) else iperf3_objects(path, log$text, wanted)
  x <- one_test(path, tests, test)
  intervals <- x[["intervals"]]
  if (!is.list(intervals)) intervals <- list()
  rows <- rbindlist(lapply(intervals, iperf3_interval), fill = TRUE)
  if (nrow(rows) == 0) abort_log(path, NULL, paste0("holds no interval", if (is_text(x[["error"]])) paste0(" (iperf3: ", x[["error"]], ")")), wanted)
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

# Of a server that goes on, those that have an interval: it adds an object without one when it is stopped, and for what failed.
one_test <- function(path, tests, number) {
  begun <- Filter(\(x) is.list(x[["intervals"]]) && length(x[["intervals"]]) > 0, tests)
  if (length(begun) == 0) return(tests[[length(tests)]])
  if (is.null(number) && length(begun) == 1) return(begun[[1]])
  if (is.numeric(number) && length(number) == 1 && isTRUE(number %in% seq_along(begun))) return(begun[[number]])
  abort_log(path, NULL, paste("holds", length(begun), "tests of iperf3"), paste("test = 1", if (length(begun) > 1) paste("to", length(begun))))
}

# Of -J one object per test.
iperf3_objects <- function(path, text, wanted) {
  first <- which(text == "{")
  if (length(first) < 2 || any(nzchar(trimws(text[seq_len(first[1] - 1L)])))) return(list(parse_json(path, text, wanted)))
  last <- c(first[-1] - 1L, length(text))
  Map(\(i, j) parse_json(path, text[i:j], wanted, i), first, last)
}

# The events of each test put together as -J would have.
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
  # A server that is stopped after its test adds an end without content.
  ends <- Filter(\(data) length(data) > 0, data_of("end"))
  list(start = first_of(data_of("start")), intervals = data_of("interval"), end = first_of(ends), error = first_of(data_of("error")))
}

# Between events there is nothing else; behind the last the whole object may follow.
refuse_between <- function(path, text, at, wanted) {
  others <- setdiff(which(nzchar(trimws(text))), at)
  strange <- others[others < at[length(at)]]
  behind <- others[others > at[length(at)]]
  if (length(behind) > 0 && !startsWith(trimws(text[behind[1]]), "{")) strange <- c(strange, behind[1])
  if (length(strange) > 0) abort_log(path, strange[1], "is no event of --json-stream", wanted)
}

# `line` of the file where the text is one line of it.
parse_json <- function(path, text, wanted, line = NULL) {
  bytes <- charToRaw(paste(text, collapse = "\n"))
  depth <- cumsum((bytes == 0x7b | bytes == 0x5b) - (bytes == 0x7d | bytes == 0x5d))
  if (max(depth, 0) > 64) abort_log(path, line, "is nested deeper than JSON of iperf3 is", wanted)
  x <- tryCatch(jsonlite::parse_json(rawToChar(bytes)), error = \(e) {
    open <- depth[length(depth)] > 0
    abort_log(path, line %||% (if (open) length(text) else first_line(text)), if (open) "ends before its JSON does" else "is no JSON", wanted)
  })
  if (!is.list(x) || is.null(names(x))) abort_log(path, line %||% 1, "is JSON, but no object", wanted)
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
