header <- "t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,overlimits"

trace_file <- function(lines, end = "\n") {
  path <- tempfile(fileext = ".csv.gz")
  connection <- gzfile(path, "wb")
  writeBin(charToRaw(paste0(paste(lines, collapse = "\n"), end)), connection)
  close(connection)
  path
}

test_that("times of a trace in nanoseconds since the epoch are read exactly", {
  path <- trace_file(c(header, "1795272676836408367,e,pfifo,10:,1:1,0,0,0,0,0,0", "1795272676836408368,e,pfifo,10:,1:1,0,1,0,0,0,0"))
  queue <- read_queue(path)
  expect_equal(attr(queue, "epoch_s"), 1795272676)
  expect_identical(queue$t_ns, c(836408367, 836408368))
})

test_that("read_queue() returns only the bottleneck's queue, and counters beyond 31 bits stay exact", {
  path <- trace_file(c(header, "1795272676000000000,e,tbf,1:,root,9,9,9,9,9,9", "1795272676000000000,e,pfifo,10:,1:1,8,7,5000000000,5,4,3"))
  queue <- read_queue(path)
  expect_equal(queue$backlog_packets, 7)
  expect_equal(queue$sent_bytes, 5e9)
})

# Samples of a FreeBSD 14.0-STABLE router with a pipe of 40 slots.
dummynet <- c("1795379494000000000,em2,dummynet,20999:,root,0,0,84,1,0,0", "1795379497000000000,em2,dummynet,20999:,root,45000,30,569895,401,50,0",
              "1795379500000000000,em2,dummynet,20999:,root,60000,40,8992603,6020,63,0")

test_that("the bottleneck's queue of a FreeBSD router is the pipe of dummynet, whatever its number", {
  path <- trace_file(c(header, dummynet))
  expect_equal(read_queue(path)$backlog_packets, c(0, 30, 40))
  expect_equal(nrow(read_queue(path, handle = "20999:")), 3)
  expect_equal(nrow(read_queue(path, handle = "10:")), 0)
  queue <- queue_samples(list(path = \(logger) path, t_start_s = 1795379496))
  expect_equal(queue$t_s, c(-2, 1, 4))
  metrics <- queue_metrics(list(queue = queue))
  expect_equal(metrics[c("queue_max_packets", "queue_max_bytes", "buffer_truth_packets")],
               list(queue_max_packets = 40, queue_max_bytes = 60000, buffer_truth_packets = 40))
})

test_that("ECN marks of a queue are counted per time window, and a queue without a counter of marks has no series of marks", {
  marked <- paste0(header, ",marks")
  row <- \(s, qdisc, marks) sprintf("%d000000000,e,%s,10:,1:1,0,0,0,0,0,0%s", 1795272676L + s, qdisc, marks)
  series <- \(lines) series_of_queue(list(
    traces = list(path = \(logger) trace_file(lines), t_start_s = 1795272676), frame = list(from_s = 0, to_s = 4, width_s = 1),
    manifest = list(resolved = list(path = NULL))
  ))
  counted <- series(c(marked, row(0L, "codel", ",5"), row(1L, "codel", ",7"), row(3L, "codel", ",7"), row(3L, "codel", ",17")))[["queue-marks"]]
  expect_equal(counted$value, c(0, 2, 0, 10))
  expect_null(series(c(marked, row(0L, "pfifo", ","), row(1L, "pfifo", ",")))[["queue-marks"]])
  expect_null(series(c(header, row(0L, "codel", ""), row(1L, "codel", "")))[["queue-marks"]])
})

test_that("a truncated last row of a trace is left out", {
  path <- trace_file(c(header, "1795272676000000000,e,pfifo,10:,1:1,8,7,6,5,4,3", "1795272676005000000,e,pfi"), end = "")
  expect_equal(nrow(read_queue(path)), 1)
  # Of 27 drops, only the first digit was written.
  path <- trace_file(c(header, "1795272676000000000,e,pfifo,10:,1:1,8,7,6,5,26,3", "1795272676005000000,e,pfifo,10:,1:1,8,7,6,5,2"), end = "")
  expect_equal(read_queue(path)$drops, 26)
})

test_that("a trace that lacks a required column, and a trace that does not exist, are errors", {
  expect_error(read_queue(trace_file(c("t_ns,handle", "1795272676000000000,10:"))), "no column backlog_bytes", class = "samovar_error_trace")
  expect_error(read_queue("nowhere.csv.gz"), "no such file", class = "samovar_error_trace")
})
