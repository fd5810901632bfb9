# Real captures: a committed pair, and a new pair from this kernel if network namespaces can be created.

traces_folder <- function() {
  folder <- test_path("..", "..", "..", "tests", "traces")
  if (!dir.exists(folder)) skip("the repository's traces are not beside the package")
  folder
}

committed_pair <- function() {
  folder <- traces_folder()
  list(
    sender = file.path(folder, "bulk-sender.pcap.gz"), receiver = file.path(folder, "bulk-receiver.pcap.gz"),
    drops = queue_drops(file.path(folder, "bulk-queue.json"))
  )
}

fresh <- new.env()

# Two seconds of traffic over a bottleneck of 20 Mbit/s, captured once per test run.
fresh_pair <- function() {
  if (is.null(fresh$pair)) fresh$pair <- make_fresh_pair()
  if (is.character(fresh$pair)) skip(fresh$pair)
  fresh$pair
}

make_fresh_pair <- function() {
  tools <- c("ip", "tc", "ethtool", "tcpdump", "iperf3", "ping", "ss")
  if (any(Sys.which(tools) == "")) return("a tool that makes captures is not installed")
  allowed <- system2("unshare", c("-n", "true"), stdout = FALSE, stderr = FALSE) == 0L
  if (!allowed) return("network namespaces are not allowed here")
  folder <- tempfile("captures-")
  dir.create(folder)
  log <- file.path(folder, "log")
  made <- c(test_path("make-captures.sh"), folder, "2", "20mbit", "3", "25")
  status <- system2("sh", made, stdout = log, stderr = log)
  if (status != 0L) return(paste("captures could not be made here:", paste(readLines(log), collapse = " ")))
  list(
    sender = file.path(folder, "sender.pcap"), receiver = file.path(folder, "receiver.pcap"),
    drops = queue_drops(file.path(folder, "queue.json"))
  )
}

queue_drops <- function(path) {
  queues <- jsonlite::fromJSON(path)
  queues$drops[queues$handle == "10:"]
}

all_pairs <- function() {
  made <- tryCatch(list(fresh = fresh_pair()), skip = \(skipped) list())
  c(list(committed = committed_pair()), made)
}

need_tool <- function(name) {
  if (Sys.which(name) == "") skip(paste(name, "is not installed"))
}

plain_copy <- function(path) {
  copy <- tempfile(fileext = ".pcap")
  connection <- gzfile(path, "rb")
  on.exit(close(connection))
  bytes <- raw()
  while (length(more <- readBin(connection, "raw", 2^20))) bytes <- c(bytes, more)
  writeBin(bytes, copy)
  copy
}

# tcptrace reads times in microseconds: libpcap rounds the nanoseconds of a file down. Tables that are compared with
# its output are therefore read from a copy in microseconds that tcpdump writes.
microsecond_copy <- function(path) {
  copy <- tempfile(fileext = ".pcap")
  status <- system2("tcpdump", c("-r", plain_copy(path), "-w", copy), stdout = FALSE, stderr = FALSE)
  stopifnot(status == 0L)
  copy
}

# One row per direction of a connection, with tcptrace's values.
tcptrace_table <- function(path) {
  lines <- system2("tcptrace", c("-n", "-lr", "--csv", path), stdout = TRUE, stderr = FALSE)
  lines <- sub(",[[:space:]]*$", "", lines[nzchar(lines) & !startsWith(lines, "#")])
  table <- data.table::fread(text = lines, na.strings = "NA", strip.white = TRUE)
  data.table::setnames(table, gsub(" ", "_", names(table)))
  sides <- lapply(c("a2b", "b2a"), \(side) {
    own <- grep(paste0("_", side, "$"), names(table), value = TRUE)
    ends <- if (side == "a2b") c("a", "b") else c("b", "a")
    flow <- sprintf("%s:%s > %s:%s", table[[paste0("host_", ends[1])]], table[[paste0("port_", ends[1])]],
                    table[[paste0("host_", ends[2])]], table[[paste0("port_", ends[2])]])
    numbers <- data.table::setnames(table[, own, with = FALSE], sub(paste0("_", side, "$"), "", own))
    data.table::data.table(flow = flow, numbers)
  })
  data.table::rbindlist(sides)
}

# First sequence number and whole milliseconds of every sample, as `tcptrace -Z` prints them, by connection and side.
tcptrace_samples <- function(path) {
  folder <- tempfile("rtt-")
  dir.create(folder)
  before <- setwd(folder)
  on.exit(setwd(before))
  system2("tcptrace", c("-n", "-lr", "-Z", path), stdout = FALSE, stderr = FALSE)
  files <- list.files(folder, "_rttraw\\.dat$")
  read <- \(file) data.table::fread(file, col.names = c("seq", "rtt_ms"), integer64 = "double")
  lapply(stats::setNames(files, sub("_.*", "", files)), read)
}

# Return the capture with the times that a clock with another offset and rate would have recorded, in whole nanoseconds.
move_clock <- function(capture, offset_ns = 0, ppm = 0) {
  moved <- data.table::copy(capture)
  epoch_s <- attr(capture, "epoch_s")
  data.table::set(moved, NULL, "t_ns", round(capture$t_ns * (1 + ppm * 1e-6)) + offset_ns %% 1e9)
  data.table::setattr(moved, "epoch_s", epoch_s + offset_ns %/% 1e9)
  moved
}
