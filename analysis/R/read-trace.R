#' Read a trace of TCP_INFO samples
#'
#' One row per socket and sample, as the `tcp-info` logger leaves it.
#'
#' @param path A CSV file, plain or gzip-compressed.
#' @return A data.table in time order with `t_ns` (ns since attribute `epoch_s`) and the file's columns; `ssthresh_packets`
#'   is Inf where the kernel has not set it (it says 2147483647).
#' @source linux/tcp.h, struct tcp_info.
#' @export
read_tcp_info <- function(path) {
  x <- read_trace_csv(path, c("t_ns", "src", "sport", "dst", "dport", "cwnd_packets", "ssthresh_packets", "srtt_us", "ca_state"))
  x[, ssthresh_packets := fifelse(ssthresh_packets >= 2147483647, Inf, as.double(ssthresh_packets))]
  x[]
}

#' Read a trace of queue samples
#'
#' One row per queueing discipline and sample, as the `queue` logger leaves it. Counters are cumulative.
#'
#' @inheritParams read_tcp_info
#' @param handle The queueing discipline to keep; all of them when NULL. The bottleneck's queue has handle `10:`.
#' @return A data.table in time order with `t_ns` (ns since attribute `epoch_s`) and the file's columns.
#' @export
read_queue <- function(path, handle = "10:") {
  x <- read_trace_csv(path, c("t_ns", "handle", "backlog_bytes", "backlog_packets", "drops"))
  if (is.null(handle)) return(x)
  wanted <- handle
  kept <- x[x$handle == wanted]
  setattr(kept, "epoch_s", attr(x, "epoch_s"))
  kept[]
}

#' Seconds since a moment, from a table whose `t_ns` counts from its `epoch_s`
#' @param x A table with `t_ns` and attribute `epoch_s`.
#' @param origin_s Seconds of the Unix epoch.
#' @return Double seconds, good to 0.3 microseconds.
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

# A logger that was killed leaves a last row without its end.
is_whole_row <- function(x, needed) grepl("^[0-9]{10,19}$", x$t_ns) & stats::complete.cases(x[, needed, with = FALSE])

# Epoch nanoseconds have more digits than a double keeps: split the text before it becomes a number.
split_epoch <- function(x) {
  digits <- nchar(x$t_ns)
  seconds <- as.double(substr(x$t_ns, 1L, digits - 9L))
  nanoseconds <- as.double(substr(x$t_ns, digits - 8L, digits))
  epoch_s <- if (nrow(x) > 0) min(seconds) else 0
  x[, t_ns := (seconds - epoch_s) * 1e9 + nanoseconds]
  setorder(x, t_ns)
  setattr(x, "epoch_s", epoch_s)
  x[]
}

# fread opens gzip files only through another package; gzfile reads plain files too. R stops at zeros and at bytes that are no text.
read_whole <- function(path) {
  if (!file.exists(path)) abort_trace(path, "no such file")
  bytes <- whole_bytes(path)
  if (length(bytes) == 0) abort_trace(path, "empty or not readable")
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
  cli::cli_abort("{.path {path}}: {what}; a trace is a CSV file with a header line, plain or gzip.",
                 class = "samovar_error_trace", call = NULL)
}
