# Time the reading of a capture into a table in R, compared with tcptrace on the same file in the same run.
#
#   Rscript benchmarks/bench_reader.R [--append FILE] [--times N] [--path CAPTURE]
#
# The start of R is not measured. CPU time is printed as well, because wall time on a busy machine depends on other programs.

suppressMessages(library(samovar))
source(file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))), "shared.R"))

# The columns for rates, and the columns for matching.
few <- c("t_ns", "flow", "id", "ip_bytes")
matching <- c("t_ns", "flow", "id", "proto", "src", "dst", "sport", "dport", "payload_bytes")

read_once <- function(path, columns) {
  if (grepl("-one-thread$", columns)) options(samovar.threads = 1)
  columns <- sub("-one-thread$", "", columns)
  wanted <- switch(columns, few = few, matching = matching, columns)
  spent <- spent_on(table <- read_pcap(path, wanted))
  print_values(c(packets = nrow(table), flows = nlevels(table$flow), spent, peak_mb = peak_mb()))
}

if (!is.null(option("case"))) {
  read_once(option("path"), option("case"))
  quit("no")
}
source(file.path(dirname(this_file), "make_capture.R"))
capture <- if (is.null(option("path"))) captures_of_lab() else list(paths = option("path"), made = "elsewhere")
path <- capture$paths[1]
times <- as.integer(option("times", "5"))
cases <- c("usual", "few", "matching", "all")
cases <- stats::setNames(nm = c(cases, paste0(cases[-4], "-one-thread")))
plain <- list("usual-heap" = \() in_child("usual", "--path", path, heap = NULL), tcptrace = \() tcptrace_on(path))
found <- medians_of_turns(c(lapply(cases, \(case) \() in_child(case, "--path", path)), plain), times)

packets <- found$usual[["packets"]]
base <- found$tcptrace
row <- function(name, spent) {
  sprintf("| %s | %.2f | %.2f | %.1f | %.1f | %.1f | %s |", name, spent[["wall_s"]], spent[["cpu_s"]], packets / spent[["wall_s"]] / 1e6,
          base[["wall_s"]] / spent[["wall_s"]], base[["cpu_s"]] / spent[["cpu_s"]], if ("peak_mb" %in% names(spent)) sprintf("%.0f", spent[["peak_mb"]]) else "")
}
report(c(
  heading("Reading a capture"), "",
  sprintf("%s packets of %d flows, %.0f MB, made %s; medians of %d turns.", with_commas(packets), as.integer(found$usual[["flows"]]), file.size(path) / 1e6, capture$made, times), "",
  "| read by | wall (s) | CPU (s) | M packets/s | tcptrace = 1, wall | tcptrace = 1, CPU | peak (MB) |", "|---|---|---|---|---|---|---|",
  row("read_pcap(), usual columns", found$usual), row(paste("the same, R started without", heap_option), found[["usual-heap"]]),
  row("the same, one thread", found[["usual-one-thread"]]), row("read_pcap(), t_ns, flow, id, ip_bytes", found$few),
  row("the same, one thread", found[["few-one-thread"]]), row("read_pcap(), columns of matching", found$matching),
  row("the same, one thread", found[["matching-one-thread"]]), row("read_pcap(), all columns", found$all), row("tcptrace -n -l", base)
))
