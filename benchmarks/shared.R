# Functions shared by the benchmarks of the R package: run a case in its own process, run tcptrace, write rows of results.

this_file <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
arguments <- commandArgs(trailingOnly = TRUE)

option <- function(name, otherwise = NULL) {
  at <- match(paste0("--", name), arguments)
  if (is.na(at)) otherwise else arguments[at + 1]
}

peak_mb <- function() {
  peak_kb <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("\\D", "", peak_kb)) / 1024
}

# The host of a virtual machine takes back unused memory within seconds, and needs 2 to 4 s per GB to provide it again, ten times as long as the
# kernel needs to clear it. A program that uses and frees memory right before a measurement keeps this out of the results.
provide_memory <- function() {
  system2("dd", c("if=/dev/zero", "of=/dev/null", "bs=800M", "count=1", "status=none"), env = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1")
}

# Return the wall and CPU time of code in seconds. The garbage of the case before is collected first, so that it does not count.
spent_on <- function(code) {
  provide_memory()
  invisible(gc())
  spent <- system.time(code, gcFirst = FALSE)
  c(wall_s = spent[["elapsed"]], cpu_s = sum(spent[c("user.self", "sys.self")]))
}

print_values <- function(values) cat(paste(names(values), signif(values, 8), sep = "="), "\n")

# The option with which samovar/analyse.py starts R.
heap_option <- "--min-vsize=512M"

# Run a case of this benchmark in a new R process, and return the values that the case prints.
in_child <- function(case, ..., heap = heap_option) {
  output <- system2("Rscript", c(heap, this_file, "--case", case, ...), stdout = TRUE)
  if (!is.null(attr(output, "status"))) stop("the case ", case, " failed")
  parts <- strsplit(strsplit(trimws(output[length(output)]), " +")[[1]], "=")
  stats::setNames(as.numeric(vapply(parts, `[`, "", 2)), vapply(parts, `[`, "", 1))
}

tcptrace_on <- function(paths) {
  once <- \(path) system.time(system2("tcptrace", c("-n", "-l", path), stdout = FALSE, stderr = FALSE))
  spent <- Reduce(`+`, lapply(paths, once))
  c(wall_s = spent[["elapsed"]], cpu_s = sum(spent[c("user.child", "sys.child")]))
}

# Run all cases in turn, `times` times, so that other programs disturb all cases equally; return the medians of each case.
medians_of_turns <- function(cases, times) {
  runs <- lapply(seq_len(times), \(i) lapply(cases, \(case) case()))
  lapply(stats::setNames(nm = names(cases)), \(name) apply(do.call(rbind, lapply(runs, `[[`, name)), 2, stats::median))
}

heading <- function(title) {
  load <- strsplit(readLines("/proc/loadavg"), " ")[[1]][1]
  sprintf("## %s, %s, %s, %d processors, load %s", title, Sys.Date(), R.version.string, parallel::detectCores(), load)
}

with_commas <- function(n) format(n, big.mark = ",", scientific = FALSE, trim = TRUE)

report <- function(text) {
  writeLines(text)
  if (!is.null(option("append"))) cat("", text, file = option("append"), sep = "\n", append = TRUE)
}

# Return the paths of the captures that lab_captures.py made in the lab, or of generated captures if there are none.
captures_of_lab <- function() {
  paths <- file.path(".stamps/bench", c("sender.pcap", "receiver.pcap"))
  if (all(file.exists(paths))) list(paths = paths, made = "by iperf3 in the lab")
  else list(paths = generated_captures(1.5e6, 1), made = "by make_capture.R")
}

generated_captures <- function(packets, flows) {
  paths <- vapply(c("ref", "mon"), \(end) tempfile(end, fileext = ".pcap"), "", USE.NAMES = FALSE)
  write_bulk_capture(paths[1], packets, flows)
  write_bulk_capture(paths[2], packets, flows, at_receiver = TRUE)
  paths
}
