#' Read the output of ping
#'
#' Of iputils and FreeBSD, in any language: numbers and `icmp_seq` are looked for, not words.
#'
#' @param path One log, plain or gzip-compressed.
#' @return A data.table, a row per line of an echo: `sequence` (counted on over 65535), `answer` (reply, duplicate, none: `-O` saw none in
#'   time, or another host said why), `from`, `ttl`, `rtt_ms`, `t_s` (seconds since 1970 with `ping -D`, else NA). Attributes `sent` and
#'   `received`, of the summary, NA without one.
#' @source ping(8) of iputils and FreeBSD.
#' @export
read_ping <- function(path) {
  wanted <- "output of ping, with icmp_seq in its lines"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  x <- match_lines(text, "^(?:\\[([0-9]+\\.[0-9]+)\\] )?(.*?)\\bicmp_seq[= ]([0-9]+)\\b(.*)$", c("t_s", "before", "sequence", "rest"))
  counts <- ping_summary(text)
  if (nrow(x) == 0 && is.na(counts[1])) abort_log(path, first_line(log$text), "is no output of ping", wanted)
  timed <- parts_of(x$rest, paste0("= ?", decimal_number, " ?ms"), 1)[[1]]
  rows <- x[, .(
    sequence = unwrapped(as_number(sequence)), answer = fifelse(is.na(timed), "none", fifelse(grepl("DUP", rest, fixed = TRUE), "duplicate", "reply")),
    from = sub("^.*[ (]([0-9a-fA-F.:]*[.:][0-9a-fA-F.:]*[0-9a-fA-F](%[^ ):,]+)?)[ ):,].*$|^.*$", "\\1", before), ttl = parts_of(rest, "(?:ttl|hlim)=([0-9]+)", 1)[[1]],
    rtt_ms = timed, t_s = as_number(t_s)
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

# ICMP has 16 bits for it.
unwrapped <- function(sequence) {
  if (length(sequence) < 2) return(sequence)
  step <- diff(sequence)
  sequence + 65536 * cumsum(c(0, (step < -32768) - (step > 32768)))
}
