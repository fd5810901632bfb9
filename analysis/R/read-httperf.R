#' Read the report of httperf
#'
#' @param path One log, plain or gzip-compressed; several reports in it are several rows.
#' @return A data.table, a row per report: `connections`, `requests`, `replies`, `duration_s`, `connection_rate_per_s`, `connection_time_*_ms` (min,
#'   avg, max, median, stddev), `connect_time_ms`, `request_rate_per_s`, `request_bytes`, `reply_rate_*_per_s` (min, avg, max, stddev), `response_time_ms`,
#'   `transfer_time_ms`, `reply_header_bytes`, `reply_content_bytes`, `status_1xx` to `status_5xx`, `cpu_user_s`, `cpu_system_s`,
#'   `net_rate_bps` (httperf's KB are 1024 bytes), `errors`, `client_timeouts`, `socket_timeouts`, `refused`, `reset`; NA where the report lacks a line.
#' @source httperf(1), version 0.9.
#' @export
read_httperf <- function(path) {
  wanted <- "a report of httperf, with its line Total: connections \u2026"
  log <- text_lines(path, wanted)
  text <- trimws(if (log$cut) utils::head(log$text, -1) else log$text)
  starts <- grep("^Total: connections", text)
  if (length(starts) == 0) abort_log(path, first_line(log$text), "holds no report of httperf", wanted)
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
