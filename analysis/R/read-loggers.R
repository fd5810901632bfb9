#' Read the traces of the other loggers
#'
#' Each as docs/reference/traces.md describes it, in time order, a last row that was cut off left out.
#'
#' - `read_tcp_probe()`: the tracepoint tcp:tcp_probe, a row per segment that came in: `src`, `sport`, `dst`, `dport`, `data_bytes`, `snd_nxt`,
#'   `snd_una`, `cwnd_packets`, `ssthresh_packets` (Inf where not set), `snd_wnd_bytes`, `rcv_wnd_bytes`, `srtt_us`, `cookie`.
#' - `read_cpu()`: `cpu`, `busy_share`, `softirq_share`, `steal_share` (0 to 1, since the row before), counters in seconds.
#' - `read_nic()`: `interface`, counters of bytes, packets, errors and drops, and the card's own as `card.NAME`.
#' - `read_pause_frames()`: `interface`, `direction`, `src`, `opcode`, `classes`, `quanta` (of 512 bit times; text, as priority
#'   flow control has eight), `pause_quanta` (of a PAUSE frame, a number).
#' - `read_beacons()`: `direction`, `src`, `id`, `sequence`, `sent_ns` (sender's clock, text: a double holds no nanoseconds since 1970).
#' - `read_clock()`: `source`, `quantity` (its name ends in its unit), `value` (text), `number` (NA where it is none).
#'
#' @inheritParams read_tcp_info
#' @return A data.table with `t_ns` (ns since attribute `epoch_s`) and the columns named above.
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

#' @rdname read_loggers
#' @export
read_clock <- function(path) {
  x <- read_trace_csv(path, c("t_ns", "source", "quantity"), text = "value")
  x[, number := as_number(value)][]
}

# Columns as numbers: where one row of a damaged file holds text, fread reads them all as text.
numbers <- function(x, columns) {
  for (name in intersect(columns, names(x))) {
    set(x, NULL, name, if (is.numeric(x[[name]])) as.double(x[[name]]) else as_number(as.character(x[[name]])))
  }
  x
}
