# Compare tables with tshark's reading of the same packets.

# Packets of every kind, with random numbers from the whole range of each field.
random_frames <- function(count, seed) {
  set.seed(seed)
  pick <- \(...) sample(c(...), 1)
  word <- \(bytes) as.raw(sample(0:255, bytes, replace = TRUE))
  random_options <- function(syn) {
    stamps <- c(as.raw(c(1, 1, 8, 10)), word(8))
    sack <- \(n) c(as.raw(c(1, 1, 5, 2 + 8 * n)), word(8 * n))
    if (syn) return(c(option_mss(pick(536:9000)), option_scale(pick(0:14)), as.raw(c(4, 2)), stamps))
    switch(pick(1:5), raw(), stamps, c(stamps, sack(pick(1:3))), sack(pick(1:4)), as.raw(c(253, 6, 0, 0, 1, 2)))
  }
  segment <- function() {
    syn <- runif(1) < 0.1
    tcp(pick(1024:65535), pick(20000:30000), sum(as.integer(word(4)) * 256^(0:3)), sum(as.integer(word(4)) * 256^(0:3)),
        if (syn) 2 else pick(16, 17, 24, 20, 16 + 64, 256 + 16), pick(0:65535), random_options(syn), word(pick(0:40)))
  }
  datagram <- \() udp(pick(40000:50000), pick(50001:60000), word(pick(0:40)))
  echo <- \(type) c(as.raw(c(type, 0)), raw(2), word(4), word(pick(0:20)))
  four <- function() {
    inside <- switch(pick(1:4), list(segment(), 6), list(segment(), 6), list(datagram(), 17), list(echo(pick(0, 8)), 1))
    fragment <- if (runif(1) < 0.1) pick(0x2000, 0x2000 + 185, 185) else 0x4000
    packet <- ipv4(inside[[1]], inside[[2]], paste0("10.0.0.", pick(1:9)), paste0("10.9.0.", pick(1:9)), pick(0:65535), fragment)
    packet[2] <- word(1)
    packet[9] <- as.raw(pick(1:255))
    ethertype <- 0x0800
    list(packet, ethertype)
  }
  six <- function() {
    inside <- switch(pick(1:3), list(segment(), 6), list(datagram(), 17), list(echo(pick(128, 129)), 58))
    header <- switch(pick(1:4), NULL, NULL, list(c(as.raw(c(inside[[2]], 0, 1, 4)), raw(4)), 0),
                     list(c(as.raw(c(inside[[2]], 0)), big(pick(0, 1, 185 * 8), 2), word(4)), 44))
    packet <- if (is.null(header)) ipv6(inside[[1]], inside[[2]]) else ipv6(c(header[[1]], inside[[1]]), header[[2]])
    packet[1:2] <- c(as.raw(0x60 + pick(0:15)), as.raw(16 * pick(0:15)))
    packet[8] <- as.raw(pick(1:255))
    list(packet, 0x86dd)
  }
  lapply(seq_len(count), \(i) if (runif(1) < 0.7) four() else six())
}

as_ethernet <- function(packets) {
  lapply(seq_along(packets), \(i) {
    wrap <- switch(i %% 4 + 1, ethernet, ethernet, vlan, vlan)
    if (i %% 40 == 0) pause_frame(i) else wrap(packets[[i]][[1]], packets[[i]][[2]])
  })
}

test_that("packets of every kind are read as tshark reads them", {
  need_tool("tshark")
  frames <- as_ethernet(random_frames(600, 1981))
  expect_as_tshark(write_capture(frames, t_ns = cumsum(seq_along(frames) * 12345) %% 5e9), 600)
})

test_that("segments whose TCP header is truncated are read as tshark reads them", {
  need_tool("tshark")
  whole <- \(p) p[[2]] == 0x0800 && p[[1]][10] == as.raw(6) && p[[1]][7] == as.raw(0x40)
  frames <- lapply(Filter(whole, random_frames(500, 54)), \(p) ethernet(p[[1]]))
  for (snaplen in c(50, 52, 54, 58, 66, 70)) expect_as_tshark(write_capture(frames, snaplen = snaplen, wire_bytes = lengths(frames)), 100)
  # From headers that are truncated further, tshark reads only the ports. Here read_pcap() is compared with tshark's values for the whole packets.
  theirs <- tshark_table(write_capture(frames), c("tcp.seq_raw", "tcp.ack_raw", "tcp.len"))
  for (snaplen in 42:49) {
    ours <- read_pcap(write_capture(frames, snaplen = snaplen, wire_bytes = lengths(frames)))
    expect_equal(ours$seq, number_of(theirs$tcp.seq_raw))
    if (snaplen >= 46) expect_equal(ours$ack, number_of(theirs$tcp.ack_raw))
    if (snaplen >= 47) expect_equal(as.double(ours$payload_bytes), number_of(theirs$tcp.len))
  }
})

test_that("every link type, byte order and file format is read as tshark reads it", {
  need_tool("tshark")
  packets <- random_frames(100, 793)
  wrapped <- \(wrap) lapply(packets, \(p) wrap(p[[1]], p[[2]]))
  family <- \(packet, type) null_link(packet, if (type == 0x0800) 2 else 30)
  expect_as_tshark(write_capture(wrapped(sll), link = 113, order = "big"), 100)
  expect_as_tshark(write_capture(wrapped(sll2), link = 276, precision = "us"), 100)
  expect_as_tshark(write_capture(wrapped(family), link = 0), 100)
  expect_as_tshark(write_capture(lapply(packets, `[[`, 1), link = 101, precision = "us", order = "big"), 100)
  n <- ng("big")
  blocks <- Map(\(frame, i) n$enhanced(frame, 1.7e15 + i * 1001), as_ethernet(packets), seq_along(packets))
  expect_as_tshark(write_bytes(c(n$section(), n$interface(), unlist(blocks))), 100)
})

test_that("captures of a real kernel are read as tshark reads them", {
  need_tool("tshark")
  for (pair in all_pairs()) expect_as_tshark(plain_copy(pair$sender), 1000)
})
