# How fast a capture becomes a table in R, against tcptrace on the same file in the same run.
#
#   Rscript benchmarks/bench_reader.R [--append FILE] [--packets N] [--times N]
#
# Each reading is done in turn with one of tcptrace, so that what else the machine does falls on both; medians are told.
# R's start does not count; processor time does, for on a busy machine the wall clock measures the others.

suppressMessages(library(samovar))
from <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
given <- commandArgs(trailingOnly = TRUE)
option <- function(name, otherwise) {
  at <- match(paste0("--", name), given)
  if (is.na(at)) otherwise else given[at + 1]
}

# A reading in a process of its own: seconds by the wall and of the processor, MB at the peak.
read_once <- function(path, columns) {
  spent <- system.time(table <- read_pcap(path, columns))
  peak_kb <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  cat(nrow(table), spent[["elapsed"]], sum(spent[c("user.self", "sys.self")]), as.numeric(gsub("\\D", "", peak_kb)) / 1024)
}

in_child <- function(path, columns) {
  out <- system2("Rscript", c(from, "--read", path, "--columns", columns), stdout = TRUE)
  stats::setNames(as.numeric(strsplit(out, " ")[[1]]), c("packets", "wall_s", "cpu_s", "peak_mb"))
}

tcptrace_once <- function(path) {
  spent <- system.time(system2("tcptrace", c("-n", "-l", path), stdout = FALSE, stderr = FALSE))
  c(wall_s = spent[["elapsed"]], cpu_s = sum(spent[c("user.child", "sys.child")]))
}

measure <- function(path, times) {
  runs <- lapply(seq_len(times), \(i) list(usual = in_child(path, "usual"), all = in_child(path, "all"), tcptrace = tcptrace_once(path)))
  of <- \(who) apply(do.call(rbind, lapply(runs, `[[`, who)), 2, stats::median)
  list(usual = of("usual"), all = of("all"), tcptrace = of("tcptrace"))
}

row_of <- function(name, spent, packets, reference) {
  peak <- if ("peak_mb" %in% names(spent)) sprintf("%.0f", spent[["peak_mb"]]) else ""
  sprintf("| %s | %.2f | %.2f | %.1f | %.1f | %.1f | %s |", name, spent[["wall_s"]], spent[["cpu_s"]],
          packets / spent[["cpu_s"]] / 1e6, reference[["cpu_s"]] / spent[["cpu_s"]], reference[["wall_s"]] / spent[["wall_s"]], peak)
}

report <- function(found, packets, bytes, times) {
  load <- strsplit(readLines("/proc/loadavg"), " ")[[1]][1]
  c("", sprintf("## Reading a capture, %s, %s, %d processors, load %s", Sys.Date(), R.version.string, parallel::detectCores(), load), "",
    sprintf("%s packets of 4 flows, %.0f MB, 96 bytes kept of each; medians of %d turns.", format(packets, big.mark = ",", scientific = FALSE), bytes / 1e6, times), "",
    "| read by | wall (s) | CPU (s) | M packets per CPU second | tcptrace = 1, CPU | tcptrace = 1, wall | peak (MB) |", "|---|---|---|---|---|---|---|",
    row_of("read_pcap(), usual columns", found$usual, packets, found$tcptrace), row_of("read_pcap(), all columns", found$all, packets, found$tcptrace),
    row_of("tcptrace -n -l", found$tcptrace, packets, found$tcptrace))
}

if (!is.na(match("--read", given))) {
  read_once(option("read"), option("columns"))
} else {
  source(file.path(dirname(from), "make_capture.R"))
  packets <- as.numeric(option("packets", "1500000"))
  times <- as.integer(option("times", "5"))
  path <- tempfile(fileext = ".pcap")
  write_bulk_capture(path, packets, 4)
  found <- measure(path, times)
  text <- report(found, found$usual[["packets"]], file.size(path), times)
  writeLines(text)
  if (!is.na(match("--append", given))) cat(text, file = option("append"), sep = "\n", append = TRUE)
}
