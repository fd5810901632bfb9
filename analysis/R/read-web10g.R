#' Read a log of web10g
#'
#' Logs of web10g-logger as TEACUP made them, for old results: version 2.0.9 with a line of names, 2.0.7 (and the Windows logger) without.
#'
#' @param path One log, plain or gzip-compressed.
#' @return A data.table in time order: `t_ns` (ns since attribute `epoch_s`), `connection` (web10g's id), `src`, `sport`, `dst`, `dport`, `srtt_us`,
#'   `sample_rtt_us` (the last, not smoothed), `cwnd_bytes`; with a line of names, all other variables under those.
#' @source web10g's tcp-kis.txt; TEACUP 1.1, chapter on loggers, for the positions in logs without names.
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
  if (!any(kept)) abort_log(path, first_line(log$text), "holds no sample of web10g", wanted)
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
