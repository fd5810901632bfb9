# Datagrams that exceed the MTU: only the first fragment has ports.

# A UDP datagram with `payload_bytes` of payload, in IPv4 or IPv6 fragments of 1480 bytes.
in_fragments <- function(payload_bytes, id, sport = 1000, version = 4) {
  datagram <- udp(sport, 53, as.raw(seq_len(payload_bytes) %% 251))
  from <- seq(0, length(datagram) - 1, 1480)
  lapply(from, \(at) {
    part <- datagram[(at + 1):min(at + 1480, length(datagram))]
    more <- at + 1480 < length(datagram)
    if (version == 4) return(ethernet(ipv4(part, 17, id = id, fragment = at / 8 + more * 0x2000)))
    ethernet(ipv6(c(as.raw(c(17, 0)), big(at + more, 2), big(id, 4), part), 44), 0x86dd)
  })
}

flow_of_fragments <- "10.0.0.1:1000 > 10.0.0.2:53"

test_that("all fragments of a datagram belong to its flow: 20 datagrams of 8000 bytes have 160000 bytes of payload", {
  for (version in c(4, 6)) {
    frames <- unlist(lapply(1:20, in_fragments, payload_bytes = 8000, version = version), recursive = FALSE)
    x <- read_pcap(write_capture(frames, t_ns = seq_along(frames) * 1e6))
    expect_equal(data.table::uniqueN(x$flow), 1)
    expect_true(all(x$sport == 1000 & x$dport == 53))
    flow <- as.character(x$flow[1])
    expect_equal(data_flows(x, "udp")$payload_bytes, 160000)
    levels <- throughput_levels(x, flow)
    expect_equal(levels$payload_bps, 8 * 160000 / 0.119)
    expect_equal(levels$ip_bps, 8 * sum(x$ip_bytes) / 0.119)
    expect_equal(trial_windows(x, attr(x, "epoch_s"), 1)$bytes, sum(x$ip_bytes))
  }
})

test_that("a lost fragment is a lost packet of its flow", {
  frames <- unlist(lapply(1:20, in_fragments, payload_bytes = 8000), recursive = FALSE)
  ref <- read_pcap(write_capture(frames))
  mon <- read_pcap(write_capture(frames[-c(3, 50, 60)]))
  expect_equal(loss_by_flow(ref, mon, flow_of_fragments)[, c(sent_packets, lost_packets)], c(120, 3))
})

test_that("interleaved fragments of several datagrams and echo requests are assigned to the right flows", {
  a <- in_fragments(4000, 1)
  b <- in_fragments(4000, 2, sport = 2000)
  echo <- list(ethernet(ipv4(c(as.raw(c(8, 0, 0, 0)), big(7, 2), big(1, 2), raw(1472)), 1, id = 3, fragment = 0x2000)), ethernet(ipv4(raw(100), 1, id = 3, fragment = 185)))
  x <- read_pcap(write_capture(c(a[1], b[1], echo[1], b[3], a[2], echo[2], a[3], b[2])))
  expect_equal(x$sport, c(1000, 2000, NA, 2000, 1000, NA, 1000, 2000))
  expect_equal(unique(as.character(x$flow[c(3, 6)])), "10.0.0.1 > 10.0.0.2")
  # Another flow uses the same identification later.
  again <- read_pcap(write_capture(c(a, in_fragments(4000, 1, sport = 3000))))
  expect_equal(again$sport, rep(c(1000, 3000), each = 3))
})

test_that("fragments are read with the same values from a file, from a compressed file, in parts and with few columns", {
  frames <- unlist(lapply(1:11000, in_fragments, payload_bytes = 2000), recursive = FALSE)
  frames <- unlist(lapply(seq(1, 22000, 20), \(k) c(frames[k + 0:19], in_fragments(5000, k, 4000))), recursive = FALSE)
  frames <- lapply(frames, \(f) f[seq_len(min(length(f), 60))])
  # More packets than one part of 32768 holds, with the boundary inside a datagram.
  path <- write_capture(rep(frames, 2), wire_bytes = rep(1514, 2 * length(frames)))
  whole <- read_pcap(path)
  expect_gt(nrow(whole), 2 * 22000)
  expect_false(anyNA(whole$sport))
  packed <- paste0(path, ".gz")
  to <- gzfile(packed, "wb")
  writeBin(readBin(path, "raw", file.size(path)), to)
  close(to)
  expect_equal(read_pcap(packed), whole, ignore_attr = TRUE)
  parts <- read_pcap_parts(path, \(part) part[, .(flow = as.character(flow), sport)], packets = 1001)
  expect_equal(data.table::rbindlist(parts), whole[, .(flow = as.character(flow), sport)])
  expect_equal(read_pcap(path, "sport")$sport, whole$sport)
  expect_equal(names(read_pcap(path, "t_ns")), "t_ns")
})

test_that("delivered bytes of fragmented TCP are NA, because only the first fragment has a sequence number", {
  segment <- tcp(seq = 1, payload = raw(3000))
  frames <- list(ethernet(ipv4(segment[1:1480], 6, fragment = 0x2000)), ethernet(ipv4(segment[1481:3020], 6, fragment = 185)))
  x <- read_pcap(write_capture(frames))
  expect_true(is.na(goodput(x, flow_a)$unique_bytes))
  expect_equal(throughput_levels(x, flow_a)$payload_bps, 8 * 3000 / 1e-3)
})
