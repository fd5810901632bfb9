#' Read a log of nuttcp
#'
#' @param path One log of `nuttcp -fparse` or of its usual text, with or without `-i`, plain or gzip-compressed.
#' @return A data.table, a row per report: `start_s`, `end_s` (since the transfer began), `bytes` (nuttcp's MB are 2^20 bytes),
#'   `rate_bps`, `retransmissions`, `rtt_ms` (TCP), `lost_packets`, `packets` (UDP), `tx_cpu_share`, `rx_cpu_share`, `total` (the last line, of
#'   the whole transfer).
#' @source nuttcp(8), version 8.2.2.
#' @export
read_nuttcp <- function(path) {
  wanted <- "a log of nuttcp, of -fparse or text"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  x <- rbind(nuttcp_pairs(text), nuttcp_text(text), fill = TRUE)
  if (nrow(x) == 0) {
    said <- grep("error", log$text, ignore.case = TRUE, value = TRUE)
    abort_log(path, first_line(log$text), paste0("holds no report of nuttcp", if (length(said) > 0) paste0(" (", substr(said[1], 1, 80), ")")), wanted)
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
#' @export
read_nttcp <- function(path) {
  wanted <- "a log of nttcp with its usual columns (Bytes, Real s, CPU s, Real-MBit/s \u2026)"
  log <- text_lines(path, wanted)
  text <- if (log$cut) utils::head(log$text, -1) else log$text
  number <- paste0(" *", decimal_number)
  x <- match_lines(text, paste0("^ *([l1-9][0-9]?) +([0-9]+)", strrep(number, 4), " +([0-9]+)(?: +[0-9.,]+){0,2} *$"),
                   c("side", "bytes", "real_s", "cpu_s", "rate", "cpu_rate", "calls"))
  if (nrow(x) == 0) abort_log(path, first_line(log$text), "holds no line of totals of nttcp", wanted)
  x[, .(side = fifelse(side == "l", "local", "remote"), bytes = as_number(bytes), real_s = as_number(real_s), cpu_s = as_number(cpu_s),
        rate_bps = as_number(rate) * 1e6, cpu_rate_bps = as_number(cpu_rate) * 1e6, calls = as_number(calls))]
}
