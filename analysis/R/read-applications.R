# Readers for the logs of samovar's own generators: requests over HTTP, and packets of calls and games.

#' Read the log of a client of `http`, `dash` or `incast`
#'
#' @inheritParams read_tcp_info
#' @return A data.table in time order, a row per request: `t_ns` (when it was sent, ns since attribute `epoch_s`), `bytes` (requested), `seconds`
#'   (until its last byte arrived, or until the flow ended), `late_s` (how much later than planned it was sent), `number` (of its page, query or
#'   chunk of video, from 0), `first_byte_s` (until the answer began), `received_bytes`, `finished` (whether all bytes arrived), `play_s` (play time of
#'   a chunk of video). In logs of early versions each request has its own `number`, unfinished requests are missing, and `first_byte_s` and `play_s` are NA.
#' @source docs/reference/traces.md.
#' @examples
#' read_requests(samovar_example("web-client.csv.gz"))
#' @export
read_requests <- function(path) {
  x <- whole_numbers(read_trace_csv(path, c("t_ns", "bytes", "seconds", "late_s")), c("bytes", "seconds", "late_s"))
  absent <- setdiff(c("number", "first_byte_s", "received_bytes", "play_s"), names(x))
  if (length(absent) > 0) set(x, NULL, absent, NA_real_)
  if ("number" %in% absent) x[, `:=`(number = seq_len(.N) - 1L, received_bytes = bytes)]
  x <- whole_numbers(x, c("number", "received_bytes"), c("first_byte_s", "play_s"))
  x[, finished := received_bytes >= bytes][]
}

#' Read the log of one end of `voip` or `game`
#'
#' @inheritParams read_tcp_info
#' @return A data.table in the order of arrival, a row per packet that arrived: `t_ns` (of arrival, ns since attribute `epoch_s`), `sent_ns` (when
#'   it was sent, on the sender's clock, since the same `epoch_s`), `number` (from 0, in the order of sending), `bytes` (payload).
#' @source docs/reference/traces.md.
#' @examples
#' read_messages(samovar_example("call-to.csv.gz"))
#' @export
read_messages <- function(path) {
  x <- whole_numbers(read_trace_csv(path, c("t_ns", "number", "t_sent_ns", "bytes"), "t_sent_ns"), c("number", "bytes"))
  x <- keep_epoch(x[grepl("^[0-9]{10,19}$", t_sent_ns)], x)
  digits <- nchar(x$t_sent_ns)
  x[, sent_ns := (as.double(substr(t_sent_ns, 1L, digits - 9L)) - attr(x, "epoch_s")) * 1e9 + as.double(substr(t_sent_ns, digits - 8L, digits))]
  x[, .(t_ns, sent_ns, number, bytes)] |> keep_epoch(x)
}

# The rows in which the columns `needed` are numbers, with these columns and `optional` as doubles. A damaged file may have text there, and a column
# without any value is read as logical.
whole_numbers <- function(x, needed, optional = character()) {
  for (name in c(needed, optional)) set(x, NULL, name, as_number(as.character(x[[name]])))
  keep_epoch(x[stats::complete.cases(x[, needed, with = FALSE])], x)
}
