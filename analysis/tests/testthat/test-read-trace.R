header <- "t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,overlimits"

trace_file <- function(lines, end = "\n") {
  path <- tempfile(fileext = ".csv.gz")
  connection <- gzfile(path, "wb")
  writeBin(charToRaw(paste0(paste(lines, collapse = "\n"), end)), connection)
  close(connection)
  path
}

test_that("nanoseconds since the epoch are read exactly", {
  path <- trace_file(c(header, "1795272676836408367,e,pfifo,10:,1:1,0,0,0,0,0,0", "1795272676836408368,e,pfifo,10:,1:1,0,1,0,0,0,0"))
  queue <- read_queue(path)
  expect_equal(attr(queue, "epoch_s"), 1795272676)
  expect_identical(queue$t_ns, c(836408367, 836408368))
})

test_that("only the bottleneck's queue is returned, and counters beyond 31 bits stay exact", {
  path <- trace_file(c(header, "1795272676000000000,e,tbf,1:,root,9,9,9,9,9,9", "1795272676000000000,e,pfifo,10:,1:1,8,7,5000000000,5,4,3"))
  queue <- read_queue(path)
  expect_equal(queue$backlog_packets, 7)
  expect_equal(queue$sent_bytes, 5e9)
})

test_that("a truncated last row is dropped", {
  path <- trace_file(c(header, "1795272676000000000,e,pfifo,10:,1:1,8,7,6,5,4,3", "1795272676005000000,e,pfi"), end = "")
  expect_equal(nrow(read_queue(path)), 1)
})

test_that("a missing column and a missing file are errors with the path", {
  expect_error(read_queue(trace_file(c("t_ns,handle", "1795272676000000000,10:"))), "no column backlog_bytes", class = "samovar_error_trace")
  expect_error(read_queue("nowhere.csv.gz"), "no such file", class = "samovar_error_trace")
})
