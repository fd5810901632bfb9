# Several iperf3 tests in one file, bidirectional tests, and counters of iperf 2 that overflowed.

fixture <- function(name) test_path("data", name)

test_that("a number of bytes or a rate below 0, from an overflow of 31 bits, is NA", {
  x <- read_iperf(text_file(c("20240101120000,10.0.0.1,5001,10.0.0.2,45000,3,0.0-1.0,1000000,8000000", "20240101120001,10.0.0.1,5001,10.0.0.2,45000,3,1.0-2.0,-1000000,-8000000")))
  expect_equal(x$bytes, c(1e6, NA))
  expect_equal(x$rate_bps, c(8e6, NA))
})

test_that("each of several tests in a server's file is read by its number", {
  path <- fixture("iperf3-server-three.json")
  expect_error(read_iperf3(path), "has 3 tests of iperf3; expected test = 1 to 3", class = "samovar_error_log")
  expect_error(read_iperf3(path, 4), "test = 1 to 3", class = "samovar_error_log")
  tests <- lapply(1:3, read_iperf3, path = path)
  expect_equal(vapply(tests, attr, "", "protocol"), c("TCP", "UDP", "TCP"))
  expect_equal(vapply(tests, \(x) x$dport[1], 0), c(41374, 55706, 41390))
  # A server prints 0 for the client's values, which it does not know.
  for (x in tests) expect_equal(sum(x$bytes), attr(x, "totals")[side == "receiver", bytes])
  for (x in tests) expect_true(is.na(attr(x, "totals")[side == "sender", bytes]))
  # A server that is stopped after one test adds another object.
  lines <- readLines(path)
  one <- text_file(c(lines[seq_len(which(lines == "{")[2] - 1)], utils::tail(lines, length(lines) - which(lines == "{")[4] + 1)))
  expect_equal(read_iperf3(one), tests[[1]], ignore_attr = TRUE)
  stream <- fixture("iperf3-stream-server.json")
  expect_error(read_iperf3(stream), "has 2 tests", class = "samovar_error_log")
  expect_equal(read_iperf3(stream, 2)$start_s[1], 0)
  expect_false(identical(attr(read_iperf3(stream, 1), "totals"), attr(read_iperf3(stream, 2), "totals")))
})

test_that("a bidirectional test has the totals of each direction", {
  client <- attr(read_iperf3(fixture("iperf3-bidir-client.json")), "totals")
  expect_equal(client$side, c("sender", "receiver", "sender-reverse", "receiver-reverse"))
  expect_equal(client$bytes, c(1378746368, 1377435648, 1173094400, 1170341888))
  server <- attr(read_iperf3(fixture("iperf3-bidir-server.json")), "totals")
  expect_equal(server$bytes, c(NA, 1377435648, 1173094400, NA))
})
