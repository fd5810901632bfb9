# Successive connections between the same addresses and ports.

exchange <- function(segments) {
  steps <- lapply(seq_len(segments), \(k) list(list(seq = 1 + (k - 1) * 1000, ack = 1, bytes = 1000), list(from = "b", seq = 1, ack = 1 + k * 1000)))
  c(list(list(flags = 2), list(from = "b", ack = 1, flags = 18), list(seq = 1, ack = 1)), unlist(steps, recursive = FALSE))
}

# Two connections of ten segments each, one packet every 10 ms; the second starts a second after the first.
two_connections <- function(isn) {
  frames <- c(conversation(exchange(10)), conversation(exchange(10), isn_a = isn, isn_b = 7e8))
  second <- seq_along(frames) > 23
  read_pcap(write_capture(frames, t_ns = (seq_along(frames) + 77 * second) * 1e7))
}

test_that("if ports are reused, the bytes of each connection are counted, whatever its initial sequence number", {
  # In turn, the second initial sequence number is within the range of the first connection, above it, below it, and half the sequence space away.
  for (isn in c(3000, 5e6, 4e9, 2^31 + 900)) {
    x <- two_connections(isn)
    space <- goodput(x, flow_a)
    expect_equal(c(space$unique_bytes, space$payload_bytes, space$acked_bytes), c(20000, 20000, 20000))
    expect_equal(c(space$retransmitted_packets, space$out_of_order_packets), c(0, 0))
    expect_equal(max(bytes_in_flight(x, flow_a)$flight_bytes), 1000)
    expect_equal(nrow(data_ack_rtt(x, flow_a)), 22)
    expect_equal(flow_completion(x, flow_a)$completion_s, 1.22)
    expect_equal(duplicate_acks(x, flow_a)$duplicate_acks, 0)
    expect_equal(handshake_rtt(x, flow_a), 10)
  }
})

test_that("a capture that starts during the first connection contains the data of both", {
  x <- two_connections(4e9)
  late <- x[-(1:3)]
  data.table::setattr(late, "epoch_s", attr(x, "epoch_s"))
  expect_equal(goodput(late, flow_a)$unique_bytes, 20000)
  expect_equal(goodput(late, flow_a)$out_of_order_packets, 0)
  expect_equal(max(bytes_in_flight(late, flow_a)$flight_bytes), 1000)
})

test_that("a retransmitted SYN, or one that is in the file after its data, does not start a new connection", {
  frames <- conversation(exchange(10))
  again <- read_pcap(write_capture(frames[c(1, 1:23)]))
  behind <- read_pcap(write_capture(frames[c(4, 1:3, 5:23)]))
  for (x in list(again, behind)) {
    expect_equal(goodput(x, flow_a)$unique_bytes, 10000)
    expect_equal(goodput(x, flow_a)$retransmitted_packets, 0)
    expect_equal(max(bytes_in_flight(x, flow_a)$flight_bytes), 1000)
  }
})

test_that("a refused SYN has no handshake RTT, and a challenge ACK for an earlier connection acknowledges nothing", {
  refused <- list(list(flags = 2), list(from = "b", ack = 1, flags = 20))
  frames <- c(conversation(refused, isn_a = 9e8), conversation(exchange(10), isn_a = 3e9))
  x <- read_pcap(write_capture(frames, t_ns = seq_along(frames)^2 * 1e6))
  # The third packet is the second SYN.
  expect_equal(handshake_rtt(x, flow_a), 16 - 9)
  expect_equal(max(bytes_in_flight(x, flow_a)$flight_bytes), 1000)
  only_refused <- read_pcap(write_capture(frames[1:2]))
  expect_true(is.na(handshake_rtt(only_refused, flow_a)))

  # The other host still has the old connection and sends a challenge ACK (RFC 5961, section 4); the SYN is retransmitted.
  challenge <- list(list(from = "b", ack = 1e6))
  syn <- conversation(exchange(10), isn_a = 3e9)
  x <- read_pcap(write_capture(c(syn[1], conversation(challenge, isn_a = 3e9), syn)))
  expect_equal(max(bytes_in_flight(x, flow_a)$flight_bytes), 1000)
  expect_equal(goodput(x, flow_a)$acked_bytes, 10000)
})

test_that("the SYN-ACK to a SYN with data may acknowledge the data or only the SYN", {
  for (acked in c(1, 101)) {
    x <- read_pcap(write_capture(conversation(list(list(flags = 2, bytes = 100), list(from = "b", ack = acked, flags = 18))), t_ns = c(0, 25) * 1e6))
    expect_equal(handshake_rtt(x, flow_a), 25)
  }
})
