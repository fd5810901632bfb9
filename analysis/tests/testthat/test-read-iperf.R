# Several iperf3 tests in one file, bidirectional tests, and counters of iperf 2 that overflowed.

fixture <- function(name) test_path("data", name)

test_that("a number of bytes or a rate below 0, from an overflow of 31 bits, is NA", {
  x <- read_iperf(text_file(c("20240101120000,10.0.0.1,5001,10.0.0.2,45000,3,0.0-1.0,1000000,8000000", "20240101120001,10.0.0.1,5001,10.0.0.2,45000,3,1.0-2.0,-1000000,-8000000")))
  expect_equal(x$bytes, c(1e6, NA))
  expect_equal(x$rate_bps, c(8e6, NA))
})

test_that("each of several tests in the output of an iperf3 server is read by its number", {
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

test_that("the text of iperf3 has the rows of its JSON in rounded units, and the time stamp that precedes each line", {
  x <- read_iperf3(fixture("iperf3-text-client.txt"))
  expect_equal(names(x), c(names(read_iperf3(fixture("iperf3-client.json"))), "t_s"))
  expect_equal(x[, .(stream, sport, dport, start_s, end_s, bytes, rate_bps, retransmissions, cwnd_bytes, omitted, sender, t_s)], data.table(
    stream = 5, sport = 52910, dport = 5999, start_s = c(0, 0.5, 0, 0.5), end_s = c(0.5, 1, 0.5, 1), bytes = 3 * 2^20, rate_bps = c(50, 50.3, 50.3, 50.5) * 1e6,
    retransmissions = c(0, 0, 0, 1), cwnd_bytes = 1.12 * 2^20, omitted = c(TRUE, TRUE, FALSE, FALSE), sender = TRUE, t_s = 1795447810 + c(1, 1, 2, 2)))
  expect_equal(attr(x, "totals")[, .(side, bytes, retransmissions)], data.table(side = c("sender", "receiver"), bytes = 6 * 2^20, retransmissions = c(1, NA)))
})

test_that("each test in the text of an iperf3 server is read by its number, with UDP and both directions", {
  path <- fixture("iperf3-text-server.txt")
  expect_error(read_iperf3(path), "has 3 tests of iperf3", class = "samovar_error_log")
  tests <- lapply(1:3, read_iperf3, path = path)
  expect_equal(vapply(tests, attr, "", "protocol"), c("TCP", "UDP", "TCP"))
  expect_equal(tests[[2]][, .(jitter_ms, lost_packets, packets, sender)], data.table(jitter_ms = 0.475, lost_packets = 0, packets = 4, sender = FALSE))
  expect_equal(tests[[3]][, .(stream, sender)], data.table(stream = c(5, 8), sender = c(FALSE, TRUE)))
  expect_equal(attr(tests[[3]], "totals")$side, c("receiver", "sender-reverse"))
  udp <- read_iperf3(fixture("iperf3-text-udp-client.txt"))
  expect_equal(udp[, .(packets, retransmissions, sender, t_s)], data.table(packets = 4, retransmissions = NA_real_, sender = TRUE, t_s = 1795447813))
})

test_that("the sums over streams in iperf3's text are totals, not rows", {
  x <- read_iperf3(text_file(c(
    "Connecting to host 10.0.0.2, port 5201", "[  5] local 10.0.0.1 port 1 connected to 10.0.0.2 port 5201", "[  7] local 10.0.0.1 port 2 connected to 10.0.0.2 port 5201",
    "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", "[  5]   0.00-1.00   sec  1.00 GBytes  8.59 Gbits/sec    0   1.37 MBytes",
    "[  7]   0.00-1.00   sec  2.00 GBytes  17.2 Gbits/sec    3    320 KBytes", "[SUM]   0.00-1.00   sec  3.00 GBytes  25.8 Gbits/sec    3", "- - - -",
    "[  5]   0.00-1.00   sec  1.00 GBytes  8.59 Gbits/sec    0             sender", "[SUM]   0.00-1.00   sec  3.00 GBytes  25.8 Gbits/sec    3             sender")))
  expect_equal(x$bytes, c(1, 2) * 2^30)
  expect_equal(x$cwnd_bytes, c(1.37 * 2^20, 320 * 2^10))
  expect_equal(attr(x, "totals")$bytes, 3 * 2^30)
  expect_error(read_iperf3(text_file("iperf3: error - unable to connect to server: Connection refused")), "has no interval \\(iperf3: error - unable", class = "samovar_error_log")
})

test_that("a time stamp on each line does not change the values read from the output of iperf and iperf3", {
  stamps <- c("1795447810", "1795447810.123456", "2026-11-23T15:30:14+0000", "2026-11-23 15:30:14.5", "Nov 23 15:30:14", "Mon Nov 23 15:30:14 2026", "Jan  3 15:30:14")
  plain <- read_iperf(fixture("iperf-client.txt"))
  for (stamp in stamps) {
    stamped <- \(name) text_file(paste(stamp, readLines(fixture(name))))
    x <- read_iperf(stamped("iperf-client.txt"))
    expect_equal(x[, !c("stamp", "t_s")], plain[, !c("stamp", "t_s")], info = stamp)
    expect_equal(unique(x$stamp), stamp)
    for (name in c("iperf3-client.json", "iperf3-stream-client.json", "iperf3-server-three.json")) {
      expect_equal(read_iperf3(stamped(name), 1), read_iperf3(fixture(name), 1), info = paste(name, stamp))
    }
  }
  expect_equal(unique(read_iperf(text_file(paste("1795447810.25", readLines(fixture("iperf-client.txt")))))$t_s), 1795447810.25)
  csv <- fixture("iperf-client.csv")
  expect_equal(read_iperf(text_file(paste("1795447810", readLines(csv)))), read_iperf(csv))
})
