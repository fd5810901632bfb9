#' Read the output of ping
#'
#' Of iputils and FreeBSD, in any language: numbers and `icmp_seq` are looked for, not words.
#'
#' @param path One log, plain or gzip-compressed.
#' @return A data.table, a row per line of an echo: `sequence` (counted on over 65535), `answer` (reply, duplicate, none: `-O` saw none in
#'   time, or another host said why), `from`, `ttl`, `rtt_ms` (NA where the line has no time: one of no answer, of an answer that came back
#'   `(truncated)`, which iputils does not mark as a duplicate either, or of echoes too small to hold their time, `-s` below 16), `rtt_below_ms` (1 where the
#'   line has `time<1 ms`, which is an answer with an RTT that is not known any better and NA in `rtt_ms`; else NA), `t_s` (seconds since 1970 with
#'   `ping -D`, else NA). Attributes `sent` and `received`, of the summary, NA without one.
#' @source ping(8) of iputils and FreeBSD; the ping of OpenHarmony, for `time<1 ms`.
#' @export
read_ping <- function(path) {
  wanted <- "output of ping, with icmp_seq in its lines"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  x <- match_lines(text, "^(?:\\[([0-9]+\\.[0-9]+)\\] )?(.*?)\\bicmp_seq[= ]([0-9]+)\\b(.*)$", c("t_s", "before", "sequence", "rest"))
  counts <- ping_summary(text)
  if (nrow(x) == 0 && is.na(counts[1])) abort_log(path, first_line(log$text), "is no output of ping", wanted)
  time_of <- \(sign) parts_of(x$rest, paste0(sign, " ?", decimal_number, " ?ms"), 1)[[1]]
  rtt_ms <- time_of("=")
  below_ms <- time_of("<")
  # An answer begins with its length, in any language; what another host says, or nobody, does not.
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

# ICMP has 16 bits for it.
unwrapped <- function(sequence) {
  if (length(sequence) < 2) return(sequence)
  step <- diff(sequence)
  sequence + 65536 * cumsum(c(0, (step < -32768) - (step > 32768)))
}
