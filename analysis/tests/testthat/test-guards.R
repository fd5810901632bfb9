# Two packets with a time, then one without, because a simple packet block has no field for a time.
untimed_capture <- function() {
  n <- ng()
  frames <- conversation(list(list(seq = 1, bytes = 100), list(from = "b", ack = 101), list(seq = 101, bytes = 50)))
  read_pcap(write_bytes(c(n$section(), n$interface(), n$enhanced(frames[[1]], 1.7e15), n$enhanced(frames[[2]], 1.7e15 + 1e6), n$simple(frames[[3]]))))
}

test_that("a packet without a time is in no window, but its bytes count in totals", {
  x <- untimed_capture()
  expect_true(is.na(x$t_ns[3]))
  expect_equal(sum(throughput_windows(x, 1, layer = "payload")$bytes), 100)
  expect_equal(sum(tcpstat_windows(x, 1)$packets), 2)
  expect_equal(sum(trial_windows(x, attr(x, "epoch_s"), 1, layer = "payload")$bytes), 100)
  found <- goodput(x, flow_a)
  expect_equal(c(found$unique_bytes, found$data_packets), c(150, 2))
  expect_equal(c(found$first_s, found$last_s), c(0, 0))
})

test_that("a packet without a time has no round-trip time and is not matched", {
  x <- untimed_capture()
  expect_equal(data_ack_rtt(x, flow_a)$rtt_ms, 1000)
  expect_equal(attr(packet_pair_rtt(x, x, flow_a), "matched"), 2)
  expect_equal(arrival_order(x, x, flow_a)$sent_packets, 1)
})

test_that("a capture that another program truncates during reading is an error that does not end R", {
  frames <- rep(list(ethernet(ipv4(udp(1, 2, raw(1200)), 17))), 2000)
  path <- write_capture(frames)
  bytes <- file.size(path)
  cut <- \(part) if (file.size(path) == bytes) writeBin(readBin(path, "raw", 5000), path)
  # Parts are read on demand: the second part is beyond the new end of the file.
  expect_error(read_pcap_parts(path, cut, packets = 100), "became shorter while it was read", class = "samovar_error_capture")
  expect_equal(nrow(read_pcap(write_capture(frames[1:3]))), 3)
})

test_that("a damaged time that would need more than 1e8 windows is an error", {
  capture <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
  capture[.N, t_ns := 1e18]
  expect_error(throughput_windows(capture, 0.01), "more than 1e\\+08 windows of 0.01 s", class = "samovar_error_argument")
})

test_that("a capture with a missing column, or with a column of another type, is an error of the argument", {
  capture <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
  flow <- data_flows(capture)$flow[1]
  expect_error(bytes_in_flight(data.table::copy(capture)[, seq := NULL], flow), "missing column .*seq", class = "samovar_error_argument")
  expect_error(timestamp_rtt(data.table::copy(capture)[, tsval := NULL], flow), "missing column .*tsval", class = "samovar_error_argument")
  early <- with_attributes(capture[t_ns < 2e9], capture)
  expect_error(data_ack_rtt(early[, t_ns := as.integer(t_ns)], flow), "not a capture", class = "samovar_error_argument")
})

test_that("a capture that is read in parts is closed at once", {
  path <- write_capture(list(ethernet(ipv4(udp(), 17))))
  for (i in 1:200) read_pcap_parts(path, nrow, columns = "t_ns")
  expect_false(any(grepl(basename(path), readLines("/proc/self/maps"), fixed = TRUE)))
})

test_that("bytes on the link are unknown for a capture that is not of Ethernet", {
  raw <- read_pcap(write_capture(rep(list(ipv4(tcp(payload = raw(100)), 6)), 2), link = 101))
  flow <- data_flows(raw)$flow[1]
  expect_equal(is.na(throughput_levels(raw, flow)[, c(link_bps, ip_bps)]), c(TRUE, FALSE))
})
