# Time the analysis of one trial: read its two captures, about 3 million packets, and compute throughput, RTT, loss and delay.
#
#   Rscript benchmarks/bench_trial.R [--append FILE] [--times N]
#
# The times include garbage collection, but not R's start and the loading of the package.

suppressMessages(library(samovar))
source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))), "shared.R"))

# A clock difference of zero; an analysis computes it from beacons, which are not part of this benchmark.
no_offset <- function(capture) {
  data.table::data.table(from_s = 0, to_s = 1e10, epoch_s = attr(capture, "epoch_s"), at_ns = 0, offset_ns = 0, drift_ppm = 0, error_ns = 1e3, beacons = 0L, cause = "start")
}

measure_once <- function(ref_path, mon_path) {
  provide_memory()
  clock <- \() proc.time()[["elapsed"]]
  began <- clock()
  cpu <- sum(proc.time()[1:2])
  steps <- double()
  done <- function(step) steps[[step]] <<- clock() - began - sum(steps)
  ref <- read_pcap(ref_path)
  mon <- read_pcap(mon_path)
  done("read_s")
  rate <- throughput_windows(mon, 1)
  done("throughput_s")
  rtt <- rtt_by_flow(ref, mon)
  done("rtt_s")
  loss <- loss_by_flow(ref, mon)
  done("loss_s")
  delay <- one_way_delay(ref, mon, as.character(loss$flow[1]), no_offset(ref))
  done("delay_s")
  stopifnot(nrow(rate) > 0, nrow(rtt) > 0, loss$sent_packets[1] > 0, nrow(delay) > 0)
  print_values(c(packets = nrow(ref) + nrow(mon), steps, wall_s = sum(steps), cpu_s = sum(proc.time()[1:2]) - cpu, peak_mb = peak_mb()))
}

if (!is.null(option("case"))) {
  if (option("case") == "one-thread") options(samovar.threads = 1)
  measure_once(option("ref"), option("mon"))
  quit("no")
}
source(file.path(dirname(this_file), "make_capture.R"))
capture <- captures_of_lab()
times <- as.integer(option("times", "5"))
at <- c("--ref", capture$paths[1], "--mon", capture$paths[2])
found <- medians_of_turns(list(all = \() in_child("all", at), one = \() in_child("one-thread", at), tcptrace = \() tcptrace_on(capture$paths)), times)
row <- function(name, x) {
  sprintf("| %s | %s | %.2f | %.2f | %.0f |", name, paste(sprintf("%.2f", x[c("read_s", "throughput_s", "rtt_s", "loss_s", "delay_s")]), collapse = " | "), x[["wall_s"]], x[["cpu_s"]], x[["peak_mb"]])
}
report(c(
  heading("A trial: throughput, RTT, loss and delay"), "",
  sprintf("%s packets in two captures, made %s; medians of %d turns. tcptrace takes %.2f s (CPU %.2f) for the two files.", with_commas(found$all[["packets"]]), capture$made, times,
          found$tcptrace[["wall_s"]], found$tcptrace[["cpu_s"]]), "",
  "| threads | read (s) | throughput (s) | RTT (s) | loss (s) | delay (s) | together, wall (s) | CPU (s) | peak (MB) |", "|---|---|---|---|---|---|---|---|---|",
  row("as many as processors", found$all), row("one", found$one)
))
