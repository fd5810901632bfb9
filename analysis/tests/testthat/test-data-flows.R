# Data flows, compared with sums by data.table.

flow_sums <- function(capture, kinds) {
  counted <- capture[as.character(proto) %in% kinds & !is.na(flow) & !is.na(sport)]
  counted[, .(src = src[1], sport = sport[1], dst = dst[1], dport = dport[1], packets = .N, payload_bytes = sum(as.double(payload_bytes)),
              first_ns = t_ns[1], last_ns = t_ns[.N]), by = .(flow = as.character(flow))]
}

# Choose one flow of each connection: the one with more payload, or the first if both have the same payload.
data_directions <- function(sums) {
  kept <- vapply(seq_len(nrow(sums)), \(i) {
    other <- which(sums$flow == reverse_flow(sums$flow[i]))
    bytes <- sums$payload_bytes
    length(other) == 0 || bytes[i] > bytes[other] || (bytes[i] == bytes[other] && i < other)
  }, NA)
  sums[kept][order(-payload_bytes)]
}

between <- function(segment, from, to, protocol = 6, ...) ethernet(ipv4(segment, protocol, paste0("10.0.0.", from), paste0("10.0.0.", to), ...))

test_that("data_flows() of a real capture agrees with sums by data.table, in all columns", {
  pair <- committed_pair()
  for (path in c(pair$sender, pair$receiver)) {
    capture <- read_pcap(path)
    for (kinds in list("tcp", c("tcp", "udp"), "udp", "icmp")) expect_equal(data_flows(capture, kinds), data_directions(flow_sums(capture, kinds)))
  }
})

test_that("data_flows() of random packets of many connections agrees with sums by data.table", {
  set.seed(25)
  frames <- lapply(1:3000, \(i) {
    ends <- sample(4, 2)
    port <- sample(c(1000, 2000), 2, replace = TRUE)
    payload <- raw(sample(c(0, 0, 10, 100), 1))
    if (i %% 3 == 0) between(udp(port[1], port[2], payload), ends[1], ends[2], 17) else between(tcp(port[1], port[2], payload = payload), ends[1], ends[2])
  })
  capture <- read_pcap(write_capture(frames))
  for (kinds in list("tcp", c("tcp", "udp"), "udp")) {
    expect_equal(data_flows(capture, kinds), data_directions(flow_sums(capture, kinds)))
    expect_gt(nrow(data_flows(capture, kinds)), 20)
  }
})

test_that("with equal payload in both directions the direction seen first is the data flow, and flows with equal payload are in order of appearance", {
  capture <- read_pcap(write_capture(list(
    between(tcp(80, 1000, flags = 18), 2, 1), between(tcp(1000, 80, payload = raw(9)), 1, 2), between(tcp(80, 1000, payload = raw(9)), 2, 1),
    between(tcp(7, 8, payload = raw(9)), 3, 4), between(udp(7, 8, raw(50)), 3, 4, 17), between(tcp(5, 6, payload = raw(10)), 1, 4)
  )))
  flows <- data_flows(capture)
  expect_equal(flows$flow, c("10.0.0.1:5 > 10.0.0.4:6", "10.0.0.2:80 > 10.0.0.1:1000", "10.0.0.3:7 > 10.0.0.4:8"))
  expect_equal(flows$packets, c(1L, 2L, 1L))
  expect_equal(flows[2, c(first_ns, last_ns)], c(1e6, 3e6))
  expect_equal(data_flows(capture, c("tcp", "udp"))$payload_bytes, c(50, 10, 9, 9))
})

test_that("packets without ports have no data flow: echo requests, and fragments whose first fragment was not captured", {
  capture <- read_pcap(write_capture(list(
    between(udp(1, 2, raw(8)), 1, 2, 17, fragment = 0x2000), between(raw(100), 1, 2, 17, id = 2, fragment = 2), between(c(as.raw(c(8, 0)), raw(30)), 1, 2, 1)
  )))
  flows <- data_flows(capture, c("udp", "icmp"))
  expect_equal(flows$flow, "10.0.0.1:1 > 10.0.0.2:2")
  expect_equal(flows$payload_bytes, 8)
})

test_that("if headers were cut before the data offset, payload is NA and the direction with more IP bytes is the data flow", {
  talk <- \(port, bytes) list(between(tcp(80, port), 2, 1), between(tcp(port, 80, payload = raw(bytes)), 1, 2), between(tcp(80, port), 2, 1))
  frames <- c(talk(1000, 10), talk(2000, 500), list(between(udp(7, 8, raw(1)), 1, 2, 17)))
  path <- write_capture(frames, snaplen = 46, wire_bytes = lengths(frames))
  flows <- data_flows(read_pcap(path), c("tcp", "udp"))
  expect_equal(flows$flow, c("10.0.0.1:7 > 10.0.0.2:8", "10.0.0.1:2000 > 10.0.0.2:80", "10.0.0.1:1000 > 10.0.0.2:80"))
  expect_equal(flows$payload_bytes, c(1, NA, NA))
  whole <- data_flows(read_pcap(write_capture(frames)))
  expect_equal(whole$flow, flows$flow[2:3])
})

test_that("a table without a required column is an error that names the required columns", {
  path <- committed_pair()$sender
  needed <- c("t_ns", "flow", "proto", "src", "sport", "dst", "dport", "payload_bytes")
  expect_equal(data_flows(read_pcap(path, needed)), data_flows(read_pcap(path)))
  for (column in needed) expect_error(data_flows(read_pcap(path, setdiff(needed, column))), paste0('missing column "', column, '"'), class = "samovar_error_argument")
  expect_error(data_flows(data.frame(flow = "a")), "read_pcap", class = "samovar_error_argument")
})
