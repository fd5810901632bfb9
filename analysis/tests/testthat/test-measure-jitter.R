test_that("jitter is the difference between the round-trip times of consecutive packets", {
  expect_equal(rtt_jitter(data.frame(rtt_ms = c(10, 12, 11, 11))), c(2, 1, 0))
  expect_length(rtt_jitter(data.frame(rtt_ms = 5)), 0)
})

# Packets sent every 20 ms, each with its own delay; the two clocks are an hour apart.
voice <- function(delays_ms, apart_s = 3600, ppm = 0) {
  frames <- lapply(seq_along(delays_ms), \(i) ethernet(ipv4(udp(9, 10, big(i, 12)), 17, id = i)))
  sent_ns <- seq_along(frames) * 20e6
  arrived_ns <- (sent_ns + delays_ms * 1e6) * (1 + ppm * 1e-6)
  list(ref = read_pcap(write_capture(frames, t_ns = sent_ns)), mon = read_pcap(write_capture(frames, t_ns = round(arrived_ns), epoch_s = 1700000000 + apart_s)))
}

test_that("interarrival jitter follows the recursion of RFC 3550 step by step", {
  x <- voice(c(10, 14, 10, 26))
  found <- interarrival_jitter(x$ref, x$mon, "10.0.0.1:9 > 10.0.0.2:10")
  expect_equal(found$transit_change_ms, c(0, 4, -4, 16))
  expect_equal(found$jitter_ms, c(0, 0.25, 0.25 * 15 / 16 + 0.25, (0.25 * 15 / 16 + 0.25) * 15 / 16 + 1))
})

test_that("interarrival jitter does not depend on a clock's offset, and a drift of 40 ppm changes it by less than a microsecond per packet", {
  set.seed(4)
  delays <- runif(50, 5, 15)
  jitter <- \(...) interarrival_jitter(voice(delays, ...)$ref, voice(delays, ...)$mon, "10.0.0.1:9 > 10.0.0.2:10")$jitter_ms
  expect_equal(jitter(3600), jitter(0))
  expect_lt(max(abs(jitter(0, 40) - jitter(0))), 20 * 40e-6 + 1e-6)
})

test_that("the RTT is computed from two one-way UDP flows between the same hosts, and from echo requests and their replies", {
  there <- \(i) ethernet(ipv4(udp(9, 10, big(i, 12)), 17, id = i))
  back <- \(i) ethernet(ipv4(udp(77, 78, big(i, 12)), 17, src = "10.0.0.2", dst = "10.0.0.1", id = i))
  echo <- \(type, i) { a <- c("10.0.0.1", "10.0.0.2"); if (type == 0) a <- rev(a)
    ethernet(ipv4(c(as.raw(c(type, 0, 0, 0, 0, 7)), big(i, 2), raw(16)), 1, src = a[1], dst = a[2], id = i)) }
  frames <- list(there(1), back(1), there(2), back(2), echo(8, 1), echo(0, 1))
  # The delay is 10 ms in each direction; the answer leaves 3 ms after the packet arrived.
  ref <- read_pcap(write_capture(frames, t_ns = c(0, 23, 40, 63, 80, 100) * 1e6))
  mon <- read_pcap(write_capture(frames, t_ns = c(10, 13, 50, 53, 90, 90.001) * 1e6, epoch_s = 1.6e9))
  name <- "10.0.0.1:9 > 10.0.0.2:10"
  expect_equal(way_back(mon, name), "10.0.0.2:77 > 10.0.0.1:78")
  expect_equal(flow_rtt(ref, mon, name, 1.7e9)$rtt_ms, c(20, 20))
  expect_equal(packet_pair_rtt(ref, mon, "10.0.0.1 > 10.0.0.2")$rtt_ms, 19.999)
})

test_that("a server's report on the ports of a UDP flow is not used as the return flow", {
  there <- \(i) ethernet(ipv4(udp(9, 10, big(i, 12)), 17, id = i))
  back <- \(i) ethernet(ipv4(udp(77, 78, big(i, 12)), 17, src = "10.0.0.2", dst = "10.0.0.1", id = i))
  report <- ethernet(ipv4(udp(10, 9, big(99, 12)), 17, src = "10.0.0.2", dst = "10.0.0.1", id = 999))
  seen <- \(frames) read_pcap(write_capture(frames, t_ns = seq_along(frames) * 1e6))
  name <- "10.0.0.1:9 > 10.0.0.2:10"
  mon <- seen(c(unlist(lapply(1:30, \(i) list(there(i), back(i))), recursive = FALSE), list(report)))
  expect_equal(way_back(mon, name), "10.0.0.2:77 > 10.0.0.1:78")
  expect_equal(way_back(mon, "10.0.0.2:77 > 10.0.0.1:78"), name)
  # The other end of a call answers on the same ports, even if there is more traffic on other ports.
  answer <- \(i) ethernet(ipv4(udp(10, 9, big(i, 12)), 17, src = "10.0.0.2", dst = "10.0.0.1", id = 500 + i))
  call <- seen(unlist(lapply(1:30, \(i) c(list(there(i), back(i), back(100 + i)), if (i %% 5 == 0) list(answer(i)))), recursive = FALSE))
  expect_equal(way_back(call, name), "10.0.0.2:10 > 10.0.0.1:9")
})
