# Measure figures of a million samples: time, size of the file, and whether every run gives the same file. Each figure is drawn in its own process,
# and compared with a figure in which ggplot2 draws each point as a vector.
# Rscript benchmarks/bench_figure.R [--append benchmarks/results.md]
suppressPackageStartupMessages({
  library(samovar)
  library(data.table)
})
samples <- 1e6L
`%||%` <- \(a, b) if (is.null(a)) b else a
arguments <- commandArgs(TRUE)

# Round-trip times of four flows, with slow waves and a tail. Samples of kind `noise` are uniform random numbers, which no file format compresses.
made_samples <- function(kind, count = samples) {
  set.seed(20130417)
  x <- data.table(t_s = seq(0, 300, length.out = count), flow = factor(sample(paste0("flow-", 1:4), count, TRUE)))
  if (kind == "noise") return(x[, value := stats::runif(count, 0, 100)][])
  x[, value := 20 + 15 * abs(sin(t_s / 7 + as.integer(flow))) + stats::rexp(count, 1 / 3)][]
}

vectors <- function(x) {
  ggplot2::ggplot(x, ggplot2::aes(t_s, value, colour = flow)) + ggplot2::geom_point(size = 0.4, stroke = 0) + theme_samovar()
}

cases <- list(
  list(name = "points", kind = "rtt", plot = \(x) plot_samples(x, "RTT (ms)", "points")),
  list(name = "points of pure noise", kind = "noise", plot = \(x) plot_samples(x, "RTT (ms)", "points")),
  list(name = "lines", kind = "rtt", plot = \(x) plot_samples(x, "RTT (ms)", "line")),
  list(name = "steps", kind = "rtt", plot = \(x) plot_samples(x, "RTT (ms)", "step")),
  # A million vectors would take gigabytes of memory.
  list(name = "100,000 points, each a vector (ggplot2)", kind = "rtt", plot = vectors, count = 1e5L)
)

draw <- function(case, path) {
  x <- made_samples(case$kind, case$count %||% samples)
  spent <- system.time(write_figure(case$plot(x), path, 6.3, 3, as.POSIXct(0, origin = "1970-01-01", tz = "UTC")))
  cat(unclass(spent)[c("user.self", "sys.self", "elapsed")], "\n")
}

if (identical(arguments[1], "--draw")) {
  draw(cases[[as.integer(arguments[2])]], arguments[3])
  quit("no")
}

self <- sub("--file=", "", grep("^--file=", commandArgs(), value = TRUE), fixed = TRUE)
draw_in_process <- function(k) {
  path <- tempfile(fileext = ".pdf")
  spent <- as.numeric(strsplit(trimws(system2("Rscript", c(self, "--draw", k, path), stdout = TRUE)), " ")[[1]])
  list(cpu = sum(spent[1:2]), wall = spent[3], mb = file.size(path) / 1e6, sum = unname(tools::md5sum(path)))
}

row <- function(k) {
  runs <- list(draw_in_process(k), draw_in_process(k))
  pick <- \(what) min(vapply(runs, `[[`, 0, what))
  same <- runs[[1]]$sum == runs[[2]]$sum
  sprintf("| %s | %.1f | %.1f | %.2f | %s |", cases[[k]]$name, pick("wall"), pick("cpu"), pick("mb"), if (same) "yes" else "NO")
}

load <- strsplit(readLines("/proc/loadavg"), " ")[[1]][1]
text <- c("", sprintf("## Figures, %s, %s on %s, %d processors, load %s", Sys.Date(), R.version.string, R.version$arch, parallel::detectCores(), load), "",
          sprintf("%s samples of 4 flows, from the table to the PDF of 6.3 in by 3 in; the faster of two processes.", format(samples, big.mark = ",", scientific = FALSE)), "",
          "| drawn as | wall (s) | CPU (s) | file (MB) | same bytes |", "|---|---|---|---|---|", vapply(seq_along(cases), row, ""))
if (length(arguments) == 2 && arguments[1] == "--append") cat(text, file = arguments[2], sep = "\n", append = TRUE)
cat(text, sep = "\n")
