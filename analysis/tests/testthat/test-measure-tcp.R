stamped <- function(from, bytes = 0, value, echo, ...) list(from = from, bytes = bytes, options = option_timestamps(value, echo), ...)

test_that("a timestamp's RTT is from the first packet that carries the value to its first echo, ignoring repetitions", {
  steps <- list(
    stamped("a", 100, 7, 1, seq = 1), stamped("a", 100, 7, 1, seq = 101), stamped("b", 0, 1, 7, ack = 101), stamped("b", 0, 1, 7, ack = 201),
    stamped("a", 100, 9, 1, seq = 201), stamped("b", 0, 2, 7, ack = 201), stamped("b", 0, 2, 9, ack = 301), stamped("a", 0, 11, 2), stamped("b", 0, 3, 11)
  )
  x <- read_pcap(write_capture(conversation(steps), t_ns = c(0, 5, 30, 31, 40, 50, 65, 70, 90) * 1e6))
  found <- timestamp_rtt(x, flow_a)
  # The acknowledgement with TSval 11 carries no data and is therefore not acknowledged.
  expect_equal(found$rtt_ms, c(30, 25))
  expect_equal(found$t_ns, c(30, 65) * 1e6)
  expect_equal(nrow(timestamp_rtt(read_pcap(write_capture(conversation(list(list(bytes = 5))))), flow_a)), 0)
})

test_that("on a real flow the median RTT of timestamps is within 10 % of the median RTT of data and acknowledgements", {
  ref <- read_pcap(committed_pair()$sender)
  flow <- data_flows(ref)$flow[1]
  stamps <- timestamp_rtt(ref, flow)
  expect_gt(nrow(stamps), 100)
  expect_equal(stats::median(stamps$rtt_ms), stats::median(data_ack_rtt(ref, flow)$rtt_ms), tolerance = 0.1)
})

handshake <- list(list(flags = 2), list(from = "b", ack = 1, flags = 18), list(seq = 1, ack = 1))

test_that("the completion time of a flow is from its SYN to the acknowledgement of its last byte", {
  steps <- c(handshake, list(list(seq = 1, bytes = 1000), list(seq = 1001, bytes = 500, flags = 17), list(from = "b", seq = 1, ack = 1001), list(from = "b", seq = 1, ack = 1502)))
  x <- read_pcap(write_capture(conversation(steps), t_ns = c(1000, 1020, 1021, 1021, 1022, 1041, 1043) * 1e6))
  expect_equal(flow_completion(x, flow_a)[, .(start_s, done_s, completion_s, handshake, acknowledged, closed)],
               data.table::data.table(start_s = 0, done_s = 0.043, completion_s = 0.043, handshake = TRUE, acknowledged = TRUE, closed = TRUE))
})

test_that("without the SYN or the last acknowledgement the completion time is from first to last data, and the result shows it", {
  x <- read_pcap(write_capture(conversation(list(list(seq = 1, bytes = 10), list(seq = 11, bytes = 10), list(from = "b", ack = 11))), t_ns = c(0, 5, 9) * 1e6))
  found <- flow_completion(x, flow_a)
  expect_equal(found$completion_s, 0.005)
  expect_false(found$handshake || found$acknowledged || found$closed)
  udp_flow <- read_pcap(write_capture(list(ethernet(ipv4(udp(1, 2), 17)), ethernet(ipv4(udp(1, 2), 17, id = 2))), t_ns = c(1, 4) * 1e9))
  expect_equal(flow_completion(udp_flow, "10.0.0.1:1 > 10.0.0.2:2")$completion_s, 3)
  expect_true(is.na(flow_completion(x, flow_b)$completion_s))
})

test_that("bytes in flight are the end of sent data less what was acknowledged, also when sequence numbers wrap", {
  steps <- list(list(seq = 1, bytes = 1000), list(seq = 1001, bytes = 1000), list(from = "b", ack = 1001), list(seq = 1, bytes = 1000), list(from = "b", ack = 2001))
  for (isn in c(1000, 2^32 - 1500)) {
    x <- read_pcap(write_capture(conversation(steps, isn_a = isn), t_ns = 1:5 * 1e6))
    expect_equal(bytes_in_flight(x, flow_a)$flight_bytes, c(1000, 2000, 1000, 0))
    expect_equal(bytes_in_flight(x, flow_a)$t_ns, c(1, 2, 3, 5) * 1e6)
  }
})

test_that("an acknowledgement with another window is a window update, not a duplicate", {
  ack <- \(number, window = 1000, ...) list(from = "b", ack = number, window = window, ...)
  steps <- c(list(list(seq = 1, bytes = 1000), list(seq = 1001, bytes = 1000), list(seq = 2001, bytes = 1000), ack(1001), ack(1001), ack(1001, 1200), ack(1001, 1200), ack(1001, 1200)),
             list(list(seq = 1001, bytes = 1000), ack(3001, 1200), ack(3001, 1200)))
  found <- duplicate_acks(read_pcap(write_capture(conversation(steps))), flow_a)
  # The last acknowledgement is a keep-alive: no data is outstanding.
  expect_equal(c(found$duplicate_acks, found$window_updates, found$triple_duplicates), c(3, 1, 1))
})

test_that("the maximum of bytes in flight and the number of duplicate acknowledgements are equal to tshark's", {
  need_tool("tshark")
  path <- plain_copy(committed_pair()$sender)
  x <- read_pcap(path)
  lines <- system2("tshark", c("-n", "-r", path, "-o", "tcp.desegment_tcp_streams:FALSE", "-T", "fields", "-E", "separator=/t", "-e", "tcp.stream", "-e", "ip.src", "-e", "tcp.srcport",
                               "-e", "ip.dst", "-e", "tcp.dstport", "-e", "tcp.analysis.bytes_in_flight", "-e", "tcp.analysis.duplicate_ack_num"), stdout = TRUE, stderr = FALSE)
  theirs <- data.table::fread(text = lines, sep = "\t", fill = TRUE, col.names = c("stream", "src", "sport", "dst", "dport", "flight", "duplicate"))
  theirs[, flow := sprintf("%s:%s > %s:%s", src, sport, dst, dport)]
  flow <- data_flows(x)$flow[1]
  expect_equal(max(bytes_in_flight(x, flow)$flight_bytes), max(theirs$flight[theirs$flow == flow], na.rm = TRUE), tolerance = 1e-3)
  expect_equal(duplicate_acks(x, flow)$duplicate_acks, sum(!is.na(theirs$duplicate[theirs$flow == reverse_flow(flow)])))
})

test_that("the maximum of bytes in flight is equal to tcptrace's outstanding data", {
  need_tool("tcptrace")
  path <- microsecond_copy(committed_pair()$sender)
  x <- read_pcap(path)
  lines <- system2("tcptrace", c("-n", "-lW", "--csv", path), stdout = TRUE, stderr = FALSE)
  lines <- sub(",[[:space:]]*$", "", lines[nzchar(lines) & !startsWith(lines, "#")])
  theirs <- data.table::fread(text = lines, na.strings = "NA", strip.white = TRUE)
  flow <- data_flows(x)$flow[1]
  columns <- grep("^max_owin", names(theirs), value = TRUE)
  row <- theirs[sprintf("%s:%s", host_a, port_a) == sub(" >.*", "", flow)]
  expect_equal(max(bytes_in_flight(x, flow)$flight_bytes), as.double(row[[columns[1]]]), tolerance = 1e-3)
})

test_that("throughput of link, frames, IP and payload is equal to the values computed by hand", {
  # Three packets in two seconds: each has 1000 bytes of payload, 1028 as IP packet, 1042 as frame and 1066 on the medium.
  packet <- \(id) ethernet(ipv4(udp(1, 2, raw(1000)), 17, id = id))
  x <- read_pcap(write_capture(lapply(1:3, packet), t_ns = c(0, 1, 2) * 1e9))
  found <- throughput_levels(x, "10.0.0.1:1 > 10.0.0.2:2")
  expect_equal(unlist(found[, .(link_bps, frame_bps, ip_bps, payload_bps)], use.names = FALSE), 12 * c(1066, 1042, 1028, 1000))
  small <- read_pcap(write_capture(lapply(1:2, \(id) ethernet(ipv4(udp(1, 2, raw(1)), 17, id = id))), t_ns = c(0, 1) * 1e9))
  expect_equal(throughput_levels(small, "10.0.0.1:1 > 10.0.0.2:2")$link_bps, 16 * 84)
})

test_that("if headers were cut before the data offset, throughput counts all packets that may carry data, and payload throughput is NA", {
  frames <- conversation(list(list(flags = 2), list(seq = 1, bytes = 1000), list(from = "b", ack = 1001), list(seq = 1001, bytes = 1000)))
  x <- read_pcap(write_capture(frames, t_ns = c(0, 1, 1.5, 2) * 1e9, snaplen = 46, wire_bytes = lengths(frames)))
  found <- throughput_levels(x, flow_a)
  expect_equal(c(found$packets, found$ip_bps), c(2, 8 * 2 * 1040))
  expect_true(is.na(found$payload_bps))
  expect_equal(nrow(bytes_in_flight(x, flow_a)), 0)
  expect_equal(nrow(data_ack_rtt(x, flow_a)), 0)
})

test_that("without flags no data counts as acknowledged, and a flow ends with its last data", {
  frames <- conversation(list(list(flags = 2), list(seq = 1, bytes = 1000), list(from = "b", ack = 1001), list(seq = 1001, bytes = 1000), list(from = "b", ack = 2001)))
  x <- read_pcap(write_capture(frames, t_ns = (0:4) * 1e9, snaplen = 47, wire_bytes = lengths(frames)))
  expect_equal(unlist(flow_completion(x, flow_a)[, .(completion_s, handshake, acknowledged)], use.names = FALSE), c(2, 0, 0))
  expect_equal(nrow(bytes_in_flight(x, flow_a)), 0)
})

numbered <- function(order, t_ns = seq_along(order) * 1e6) {
  read_pcap(write_capture(lapply(order, \(i) ethernet(ipv4(udp(1, 2, big(i, 12)), 17, id = i))), t_ns = t_ns))
}

test_that("overtaken packets are reordered, missing packets are lost, and missing packets at the end are not judged", {
  flow <- "10.0.0.1:1 > 10.0.0.2:2"
  found <- arrival_order(numbered(1:10), numbered(c(1, 2, 4, 5, 3, 7, 8)), flow)
  expect_equal(found[, .(sent_packets, arrived_packets, lost_packets, unjudged_packets, reordered_packets, extent_packets)],
               data.table::data.table(sent_packets = 10L, arrived_packets = 7L, lost_packets = 1L, unjudged_packets = 2L, reordered_packets = 1L, extent_packets = 2))
  same <- arrival_order(numbered(1:10), numbered(1:10), flow)
  expect_equal(c(same$lost_packets, same$reordered_packets, same$extent_packets), c(0, 0, 0))
})

test_that("packets that would have arrived before the receiver's capture began are not judged", {
  flow <- "10.0.0.1:1 > 10.0.0.2:2"
  ref <- numbered(1:10)
  counts <- function(mon) {
    expect_equal(nrow(lost_packets(ref, mon, flow)), loss_by_flow(ref, mon, flow)$lost_packets)
    unlist(arrival_order(ref, mon, flow)[, .(arrived_packets, lost_packets, unjudged_packets)], use.names = FALSE)
  }
  # Each packet arrives after 20 ms by the receiver's clock. The second capture begins with a packet of another flow, when the third packet would have arrived.
  frame <- \(i) ethernet(ipv4(udp(1, 2, big(i, 12)), 17, id = i))
  late <- write_capture(lapply(c(6, 7, 9, 10), frame), t_ns = c(26, 27, 29, 30) * 1e6)
  expect_equal(counts(read_pcap(late)), c(4, 1, 5))
  earlier <- write_capture(c(list(ethernet(ipv4(udp(3, 4), 17))), lapply(c(6, 7, 9, 10), frame)), t_ns = c(23, 26, 27, 29, 30) * 1e6)
  expect_equal(counts(read_pcap(earlier)), c(4, 4, 2))
  expect_equal(counts(read_pcap(write_capture(list(ethernet(ipv4(udp(3, 4), 17)))))), c(0, 0, 10))
})

test_that("matched, lost and unjudged packets add up to the sent packets, also in real captures", {
  for (pair in all_pairs()) {
    ref <- read_pcap(pair$sender)
    mon <- read_pcap(pair$receiver)
    flow <- data_flows(ref)$flow[1]
    found <- arrival_order(ref, mon, flow)
    expect_equal(found$arrived_packets + found$lost_packets + found$unjudged_packets, found$sent_packets)
    expect_equal(found$lost_packets, loss_by_flow(ref, mon, flow)$lost_packets)
    expect_equal(found$lost_packets, nrow(lost_packets(ref, mon, flow)))
  }
})
