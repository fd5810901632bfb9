# Time the reading of a SIFTR log of a million records into a table: the median of five runs.
# Rscript benchmarks/bench_siftr.R [--append benchmarks/results.md]
suppressPackageStartupMessages(library(samovar))
records <- 1e6L
arguments <- commandArgs(TRUE)

# Write a log that repeats the records of a real log of FreeBSD 14.0, 100 us apart, and return its path.
made_log <- function() {
  connection <- gzfile("analysis/tests/testthat/data/siftr-14.0-cdg-cut.log.gz")
  on.exit(close(connection))
  lines <- readLines(connection)
  real <- grep("^[io],", lines, value = TRUE)
  us <- seq_len(records) * 100
  times <- sprintf("%.0f.%06.0f", 1795269972 + us %/% 1e6, us %% 1e6)
  rest <- sub("^.,[0-9.]+", "", real)
  path <- tempfile(fileext = ".log")
  body <- paste0(rep_len(substr(real, 1, 2), records), times, rep_len(rest, records))
  writeLines(c(lines[1], body, lines[length(lines)]), path)
  path
}

peak_mb <- function() as.numeric(sub("\\D*(\\d+).*", "\\1", grep("^VmHWM", readLines("/proc/self/status"), value = TRUE))) / 1024

path <- made_log()
invisible(gc())
before_mb <- peak_mb()
runs <- replicate(5, { invisible(gc()); unclass(system.time(x <<- read_siftr(path)))[c("user.self", "sys.self", "elapsed")] })
stopifnot(nrow(x) == records)
load <- strsplit(readLines("/proc/loadavg"), " ")[[1]][1]
row <- sprintf("| %s | %.0f | %.2f | %.2f | %.2f | %.1f | %.0f |", format(records, big.mark = ",", scientific = FALSE), file.size(path) / 1e6,
               stats::median(runs["elapsed", ]), min(runs["elapsed", ]), stats::median(runs["user.self", ] + runs["sys.self", ]),
               records / stats::median(runs["elapsed", ]) / 1e6, peak_mb())
text <- c("", sprintf("## SIFTR, %s, %s on %s, %d processors, load %s", Sys.Date(), R.version.string, R.version$arch, parallel::detectCores(), load), "",
          "| records | file (MB) | wall (s) | fastest of five (s) | CPU (s) | M records/s | peak of the process (MB) |", "|---|---|---|---|---|---|---|", row)
unlink(path)
if (length(arguments) == 2 && arguments[1] == "--append") cat(text, file = arguments[2], sep = "\n", append = TRUE)
cat(text, sep = "\n")
