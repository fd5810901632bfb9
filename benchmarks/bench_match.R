# Time round-trip times from two captures, compared with tcptrace on the same files in the same run, and the effect of the
# number of flows: the same packets as one flow and as a hundred.
#
#   Rscript benchmarks/bench_match.R [--append FILE] [--times N] [--packets N]

suppressMessages(library(samovar))
source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))), "shared.R"))

# The columns that matching uses. data_flows() would need more, so the flows are chosen by the sender's address.
needed <- c("t_ns", "flow", "id")

flows_from_sender <- function(ref) {
  flows <- levels(ref$flow)
  flows[startsWith(flows, sub(":.*", ":", flows[ref$flow[1]]))]
}

# Time the reading of two captures, and then five turns of matching. The median of the turns is printed, because the first turn
# includes the time in which R gets memory.
match_once <- function(ref_path, mon_path) {
  read <- spent_on({
    ref <- read_pcap(ref_path, needed)
    mon <- read_pcap(mon_path, needed)
  })
  flows <- flows_from_sender(ref)
  turns <- vapply(1:5, \(i) spent_on(rtt <<- rtt_by_flow(ref, mon, flows)), c(wall_s = 0, cpu_s = 0))
  matched <- apply(turns, 1, stats::median)
  names(read) <- paste0("read_", names(read))
  print_values(c(packets = nrow(ref) + nrow(mon), samples = nrow(rtt), matched, read, peak_mb = peak_mb()))
}

if (!is.null(option("case"))) {
  match_once(option("ref"), option("mon"))
  quit("no")
}
source(file.path(dirname(this_file), "make_capture.R"))
times <- as.integer(option("times", "5"))
packets <- as.numeric(option("packets", "1500000"))
pairs <- list("1" = generated_captures(packets, 1), "100" = generated_captures(packets, 100))
lab <- captures_of_lab()
if (grepl("lab$", lab$made)) pairs$lab <- lab$paths
cases <- unlist(lapply(names(pairs), \(name) stats::setNames(
  list(\() in_child("match", "--ref", pairs[[name]][1], "--mon", pairs[[name]][2]), \() tcptrace_on(pairs[[name]])), paste0(name, c("", " tcptrace")))))
found <- medians_of_turns(cases, times)

row <- function(name) {
  spent <- found[[name]]
  base <- found[[paste(name, "tcptrace")]]
  n <- spent[["packets"]]
  both_s <- spent[["wall_s"]] + spent[["read_wall_s"]]
  both_cpu_s <- spent[["cpu_s"]] + spent[["read_cpu_s"]]
  what <- c("1" = "1 flow", "100" = "100 flows", lab = "the lab's captures")[[name]]
  sprintf("| %s | %s | %s | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f | %.1f | %.0f |", what, with_commas(n), with_commas(spent[["samples"]]), spent[["wall_s"]], spent[["cpu_s"]],
          n / spent[["wall_s"]] / 1e6, base[["wall_s"]] / spent[["wall_s"]], base[["cpu_s"]] / spent[["cpu_s"]], base[["wall_s"]] / both_s, base[["cpu_s"]] / both_cpu_s, spent[["peak_mb"]])
}
report(c(
  heading("Round-trip times of two captures"), "",
  sprintf("rtt_by_flow() on tables of two captures, median of five turns in a process and %d processes; tcptrace -n -l on the same two files.", times), "",
  "| packets as | packets | RTTs | wall (s) | CPU (s) | M packets/s | tcptrace = 1, wall | tcptrace = 1, CPU | with reading both files, wall | and CPU | peak (MB) |", "|---|---|---|---|---|---|---|---|---|---|---|",
  vapply(names(pairs), row, ""), "",
  sprintf("A hundred flows cost %.2f times the wall time of one, %.2f times the CPU time.", found[["100"]][["wall_s"]] / found[["1"]][["wall_s"]], found[["100"]][["cpu_s"]] / found[["1"]][["cpu_s"]])
))
