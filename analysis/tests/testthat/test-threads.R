# The result does not depend on the number of threads. A part of a capture has 32,768 packets: these captures have three parts, and
# new flows, new interfaces and truncated packets also occur after the first part.

# Packets of four flows, in a different order in each third, so that each part numbers flows differently from the whole.
long_capture <- function(per_third = 30000) {
  frame <- \(n, seq) ethernet(ipv4(tcp(sport = n, seq = seq, options = option_timestamps(n, seq)), 6, src = paste0("10.0.0.", n)))
  record <- \(bytes) capture_bytes(list(bytes), t_ns = 1e6)[-(1:24)]
  header <- capture_bytes(list(raw(60)))[1:24]
  third <- \(which) rep(unlist(lapply(which, \(n) record(frame(n, 7 * n)))), per_third %/% length(which))
  path <- tempfile(fileext = ".pcap")
  cut <- record(frame(9, 1)[1:40])
  writeBin(c(header, third(1:2), cut, third(c(3, 2, 1)), third(c(4, 3)), cut, head(record(frame(1, 1)), 30)), path)
  path
}

many_interfaces <- function() {
  x <- ng()
  frame <- \(n) ethernet(ipv4(udp(sport = n), 17, src = paste0("10.0.1.", n)))
  of <- \(interface, n, times) rep(x$enhanced(frame(n), 1e6 * n, interface), times)
  path <- tempfile(fileext = ".pcapng")
  writeBin(c(x$section(), x$interface(), of(0, 1, 20000), x$interface(), of(1, 2, 20000), of(0, 3, 20000),
             x$section(), x$interface(), of(0, 2, 20000)), path)
  path
}

as_stream <- function(path, columns = "all") {
  packed <- paste0(path, ".gz")
  to <- gzfile(packed, "wb", compression = 1)
  writeBin(readBin(path, "raw", file.size(path)), to)
  close(to)
  setattr(read_incomplete(packed, columns), "path", path)
}

test_that("a capture gives the same table with one thread, with several and as a stream", {
  for (path in c(long_capture(), many_interfaces())) {
    one <- run_with_threads(1, read_incomplete(path, "all"))
    expect_gt(nrow(one), 65536)
    expect_identical(run_with_threads(3, read_incomplete(path, "all")), one)
    expect_identical(as_stream(path), one)
  }
})

test_that("packets whose payload contains capture records are read as packets, wherever a thread starts", {
  record <- \(bytes) capture_bytes(list(bytes), t_ns = 1e6)[-(1:24)]
  short <- record(ethernet(ipv4(udp(), 17)))
  long <- record(ethernet(ipv4(udp(payload = rep(short, 60000 %/% length(short))), 17)))
  path <- tempfile(fileext = ".pcap")
  # More packets than one part has, then enough bytes for three threads to start in.
  writeBin(c(capture_bytes(list(raw(60)))[1:24], rep(short, 40000), rep(long, 900), short), path)
  capture <- run_with_threads(3, read_pcap(path))
  expect_identical(nrow(capture), 40901L)
  expect_identical(capture, as_stream(path, NULL))
})

# Number of full garbage collections while a new R process reads a capture.
full_collections_of_reading <- function(path, threads) {
  code <- sprintf("library(samovar); options(samovar.threads = %d); invisible(gc()); before <- gcinfo(TRUE); capture <- read_pcap('%s', 'all')",
                  threads, path)
  messages <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE, stderr = TRUE)
  expect_match(messages, "^Garbage collection", all = FALSE)
  length(grep("^Garbage collection.*level 2", messages))
}

test_that("reading a wide table triggers at most one full garbage collection", {
  path <- long_capture(200000)
  for (threads in 1:2) expect_lte(full_collections_of_reading(path, threads), 1)
})

test_that("a capture whose packet sizes change is read completely", {
  of_size <- \(bytes, times) rep(capture_bytes(list(ethernet(raw(bytes))), t_ns = 1e6)[-(1:24)], times)
  path <- tempfile(fileext = ".pcap")
  header <- capture_bytes(list(raw(60)))[1:24]
  for (sizes in list(c(40, 1400), c(1400, 40))) {
    writeBin(c(header, of_size(sizes[1], 20000), of_size(sizes[2], 60000)), path)
    capture <- read_pcap(path, "all")
    expect_identical(as.integer(table(capture$frame_bytes)[as.character(sizes + 14)]), c(20000L, 60000L))
  }
})

test_that("flows are numbered in the order in which they appear in the capture, with any number of threads", {
  capture <- run_with_threads(4, read_incomplete(long_capture(), c("flow", "src", "header_cut")))
  expect_identical(unique(as.character(capture$flow)), levels(capture$flow))
  expect_identical(unique(as.character(capture$src[1:80000])), paste0("10.0.0.", c(1, 2, 9, 3, 4)))
  expect_identical(attr(capture, "cut_packets"), 2)
  expect_true(attr(capture, "truncated"))
})
