# The equations that the five reports use to measure, with numbers that can be checked by hand. Not tested, because they are not
# measurements: equation 3 of CAIA-TR-160923A (recommended buffer size) and equations 1 to 6 of CAIA-TR-121113A (CDG's algorithm).

as_beacons <- function(t_ns) {
  x <- data.table::data.table(t_ns, direction = "in", src = "10.0.0.9", id = 1, sequence = seq_along(t_ns))
  data.table::setattr(x, "epoch_s", 1700000000)
}

test_that("CAIA-TR-130121A, equation 1: beacons received 3 ms later on the other clock are an offset of -3 ms", {
  found <- clock_offset(as_beacons(c(1, 2, 3) * 1e9), as_beacons(c(1.003, 2.003, 3.003) * 1e9))
  expect_equal(found$offset_ns, -3e6)
  expect_equal(found$drift_ppm, 0)
})

# Ten datagrams of 1000 bytes, a millisecond apart. The first takes 1 ms, then the link carries one every 4 ms, and the others queue.
paused_queue <- function(late_ns = 0) {
  sent_ns <- 0:9 * 1e6
  arrived_ns <- 1e6 + 0:9 * 4e6
  frames <- lapply(1:10, \(i) ethernet(ipv4(udp(1, 2, big(i, 12)), 17, id = i, length = 1000)))
  pauses <- data.table::setattr(data.table::data.table(t_ns = 5.5e6, direction = "in", pause_quanta = 100), "epoch_s", 1700000000)
  buffer_by_pause(
    read_pcap(write_capture(frames, t_ns = sent_ns)), read_pcap(write_capture(frames, t_ns = arrived_ns + late_ns)), "10.0.0.1:1 > 10.0.0.2:2",
    clock_offset(as_beacons(0:2 * 1e9), as_beacons(0:2 * 1e9 + late_ns)), pauses, 1000
  )
}

test_that("CAIA-TR-130121A, method 1 and equations 2 to 4: of six packets sent before the PAUSE frame one has arrived, and the sixth waited 15 ms at 2 Mbit/s", {
  found <- paused_queue()
  expect_equal(found$sent_ns, 5e6)
  expect_equal(found[, .(method1_raw_packets, method1_packets)], data.table::data.table(method1_raw_packets = 4, method1_packets = 4))
  expect_equal(c(found$idle_ms, found$load_ms), c(1, 1 + 5 * 3))
  expect_equal(found$rate_bps, 9 * 1000 * 8 / (9 * 4e-3))
  expect_equal(found$method2_bytes, 15e-3 * 2e6 / 8)
  expect_equal(found$method2_packets, 3.75)
})

test_that("CAIA-TR-130121A: the buffer is the same if the receiver's clock is a quarter of a second ahead", {
  expect_equal(paused_queue(0.25e9), paused_queue())
})

test_that("CAIA-TR-130417A, equations 1 and 2: an RTT growing from 10 to 130 ms at 2 Mbit/s is a buffer of 30000 bytes, 20 packets of 1500", {
  samples <- data.table::data.table(t_s = c(0, 1.9, 2), cwnd_packets = c(5, 22, 11), ssthresh_packets = c(99, 99, 11), ca_state = c(0, 0, 3), total_retrans_packets = 0)
  rtt <- data.table::data.table(t_s = seq(0.1, 1.9, by = 0.1))[, `:=`(rtt_ms = fifelse(t_s < 0.55, 10, 130), arrival_s = t_s)]
  arrivals <- data.table::data.table(t_s = seq(0, 1.9, by = 0.006), ip_bytes = 1500)
  found <- buffer_by_cycle(cwnd_cycles(samples), samples, rtt, arrivals, 10, 1500)
  expect_equal(found$rtt_max_ms, 130)
  expect_equal(found$rate_bps, 2e6, tolerance = 0.007)
  expect_equal(found$method1_bytes, 0.12 * found$rate_bps / 8)
  expect_equal(found$method1_packets, 20, tolerance = 0.007)
  expect_equal(found$method2_raw_packets, 22)
})

test_that("CAIA-TR-110930A: a packet pair 50 ms apart at one end and 30 ms apart at the other has an RTT of 20 ms", {
  frames <- conversation(list(list(seq = 1, bytes = 100), list(from = "b", seq = 1, ack = 101)))
  ref <- read_pcap(write_capture(frames, t_ns = c(0, 50e6)))
  mon <- read_pcap(write_capture(frames, t_ns = c(8e6, 38e6), epoch_s = 1600000000))
  found <- packet_pair_rtt(ref, mon, flow_a)
  expect_equal(found$rtt_ms, 20)
  expect_equal(found$t_ns, 25e6)
})

test_that("CAIA-TR-160923A, equation 1: with cwnd 30000 and rwnd 20000 bytes the sender may have 20000 bytes in flight", {
  sample <- data.table::data.table(t_s = 0:1, cwnd_bytes = 30000, rwnd_bytes = 20000, in_flight_bytes = 20000, segment_bytes = 1000)
  expect_equal(flow_limits(sample)$swnd_bytes, c(20000, 20000))
  expect_equal(as.character(flow_limits(sample)$limit), c("rwnd", "rwnd"))
})

test_that("CAIA-TR-160923A, equations 2, 4 and 5: at 8 Mbit/s and 20 ms, a full queue of 100 packets of 1000 bytes adds a delay of 100 ms, and a larger window adds nothing", {
  manifest <- list(resolved = list(mtu_bytes = 1000, path = list(rtt_s = 0.02, down = list(rate_bps = 8e6, buffer_packets = 100))))
  theory <- rwnd_theory(list(manifests = list(a = manifest)), data.table::data.table(id = "a"), c(1000, 960000))
  # 20000 bytes of packets fill the idle path, and 120000 bytes also fill the queue; of every 1000 bytes, 960 are payload.
  at <- \(data_bytes) stats::approx(theory$level, theory$value, data_bytes)$y
  share <- (1000 - tcp_header_bytes) / 1000
  expect_equal(at(10000 * share), 20)
  expect_equal(at(60000 * share), 60, tolerance = 0.001)
  expect_equal(at(200000 * share), 20 + 100)
  expect_equal(max(theory$value), 120)
})

test_that("CAIA-TR-121113A: round-trip times of 10, 12, 9 and 9 ms have a jitter of 2, 3 and 0", {
  expect_equal(rtt_jitter(data.table::data.table(rtt_ms = c(10, 12, 9, 9))), c(2, 3, 0))
})
