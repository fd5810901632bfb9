# Columns that read_pcap() returns only on request, from frames made byte by byte.

read_all <- function(frames, ...) read_pcap(write_capture(frames, ...), "all")

test_that("the VLAN ids of one and two tags are read", {
  x <- read_all(list(
    ethernet(ipv4(udp(), 17)), vlan(ipv4(udp(), 17)),
    ethernet(c(big(0xf065, 2), big(0x8100, 2), big(8, 2), big(0x0800, 2), ipv4(udp(), 17)), 0x88a8)
  ))
  expect_equal(x$vlan, c(NA, 7L, 0x065L))
  expect_equal(x$vlan_inner, c(NA, NA, 8L))
})

test_that("DSCP, ECN and time to live are read from the header", {
  four <- ipv4(udp(), 17)
  four[2] <- as.raw(46 * 4 + 1)
  six <- ipv6(udp(), 17)
  six[1:2] <- as.raw(c(0x6b, 0x83)) # EF, congestion experienced
  six[2] <- as.raw(0xb0)
  six[1] <- as.raw(0x6b)
  x <- read_all(list(ethernet(four), ethernet(six, 0x86dd)))
  expect_equal(x$tos, c(185L, 0xbbL))
  expect_equal(x$ttl, c(64L, 64L))
})

test_that("the columns of a fragment state its offset and whether more fragments follow", {
  piece <- \(offset, more) c(as.raw(c(17, 0)), big(offset * 8 + more, 2), raw(4))
  x <- read_all(list(
    ethernet(ipv4(udp(), 17)), ethernet(ipv4(udp(), 17, fragment = 0x2000)), ethernet(ipv4(raw(24), 17, fragment = 3, id = 2)),
    ethernet(ipv6(c(piece(0, 1), udp()), 44), 0x86dd), ethernet(ipv6(c(piece(5, 0), raw(8)), 44), 0x86dd)
  ))
  expect_equal(x$fragment_bytes, c(NA, 0L, 24L, 0L, 40L))
  expect_equal(x$more_fragments, c(NA, TRUE, FALSE, TRUE, FALSE))
  expect_equal(x$sport, c(1000L, 1000L, NA, 1000L, 1000L))
})

test_that("IPv4 options are part of the header, not of the payload", {
  packet <- ipv4(c(as.raw(rep(1, 8)), tcp(payload = raw(3))), 6)
  packet[1] <- as.raw(0x47)
  x <- read_all(list(ethernet(packet)))
  expect_equal(x$sport, 1000L)
  expect_equal(x$payload_bytes, 3L)
})

test_that("every kind of IPv6 extension header is skipped", {
  kinds <- c(0, 43, 60, 135, 139, 140)
  chain <- \(kind) ethernet(ipv6(c(as.raw(c(6, 1)), raw(14), tcp(payload = raw(9))), kind), 0x86dd)
  authentication <- ethernet(ipv6(c(as.raw(c(6, 4)), raw(22), tcp(payload = raw(9))), 51), 0x86dd)
  x <- read_all(c(lapply(kinds, chain), list(authentication)))
  expect_equal(x$sport, rep(1000L, 7))
  expect_equal(x$payload_bytes, rep(9L, 7))
})

test_that("TCP options are listed by kind, including malformed ones", {
  sack <- \(left, right) c(as.raw(c(1, 1, 5, 18)), big(left, 4), big(right, 4), big(1, 4), big(2, 4))
  with <- \(options, flags = 16) ethernet(ipv4(tcp(flags = flags, options = options), 6))
  x <- read_all(list(
    with(raw()), with(option_timestamps(1, 2)), with(c(option_mss(9), option_scale(3), as.raw(c(4, 2))), 2),
    with(sack(2^32 - 1, 5)), with(as.raw(c(34, 2, 30, 4, 0, 0, 28, 4, 0, 0, 19, 2))), with(as.raw(c(253, 4, 0, 0))),
    with(as.raw(c(8, 10, 0, 0))), with(as.raw(c(8, 1, 0, 0))), with(as.raw(c(0, 8, 10, 0)))
  ))
  expect_equal(x$options, c(0L, 16L, 7L, 8L, 32L + 64L + 256L + 128L, 512L, 1024L, 1024L, 0L))
  expect_equal(x$sack_blocks[4], 2L)
  expect_equal(c(x$sack_left[4], x$sack_right[4]), c(2^32 - 1, 5))
  expect_true(all(is.na(x$sack_left[-4])))
})

test_that("echo requests and replies have their identifier and sequence number", {
  echo <- \(type, id, seq) c(as.raw(c(type, 0, 0, 0)), big(id, 2), big(seq, 2), raw(8))
  x <- read_all(list(
    ethernet(ipv4(echo(8, 77, 65535), 1)), ethernet(ipv4(echo(3, 77, 1), 1)), ethernet(ipv6(echo(129, 5, 6), 58), 0x86dd)
  ))
  expect_equal(as.character(x$proto), c("icmp", "icmp", "icmp6"))
  expect_equal(x$icmp_type, c(8L, 3L, 129L))
  expect_equal(x$echo_id, c(77L, NA, 5L))
  expect_equal(x$echo_seq, c(65535L, NA, 6L))
  expect_equal(x$payload_bytes, rep(8L, 3))
})

test_that("PFC frames have classes and quanta, other MAC control frames their opcode", {
  control <- \(opcode, rest) c(as.raw(c(0x01, 0x80, 0xc2, 0, 0, 1)), raw(6), big(0x8808, 2), big(opcode, 2), rest)
  quanta <- c(0, 100, 0, 65535, 0, 0, 0, 7)
  x <- read_all(list(
    control(0x0101, c(big(0x8a, 2), unlist(lapply(quanta, big, 2)))), control(2, raw(40)), pause_frame(9)
  ))
  expect_equal(as.character(x$proto), c("pfc", "mac-control", "pause"))
  expect_equal(x$opcode, c(257L, 2L, 1L))
  expect_equal(x$pfc_classes, c(138L, NA, NA))
  expect_equal(x$quanta, c(65535L, NA, 9L))
  classes <- attr(x, "class_pauses")
  expect_equal(classes$priority, c(1L, 3L, 7L))
  expect_equal(classes$quanta, c(100L, 65535L, 7L))
  expect_equal(classes$t_ns, rep(x$t_ns[1], 3))
})

test_that("superpackets are recognised by an IP length of 0 or an IP length that no link carries", {
  x <- read_all(list(
    ethernet(ipv4(tcp(payload = raw(3)), 6)), ethernet(ipv4(tcp(), 6, length = 0)), ethernet(ipv4(tcp(), 6, length = 2948)),
    ethernet(ipv4(tcp(), 6, length = 65212)), ethernet(ipv6(tcp(), 6, payload = 0), 0x86dd), ethernet(ipv6(raw(), 59), 0x86dd)
  ), wire_bytes = c(57, 70000, 2962, 65226, 200014, 60))
  expect_equal(x$superpacket, c(FALSE, TRUE, FALSE, TRUE, TRUE, FALSE))
  expect_equal(x$ip_bytes, c(43L, 69986L, 2948L, 65212L, 200000L, 40L))
  path <- write_capture(list(ethernet(ipv4(tcp(), 6, length = 2948))), wire_bytes = 2962)
  expect_true(read_pcap(path, mtu_bytes = 1500)$superpacket)
})

# Segments with timestamps, SACK and other options, complete and truncated by the snapshot length.
segments <- list(
  ethernet(ipv4(tcp(seq = 7, ack = 9, flags = 24, options = option_timestamps(5, 6), payload = raw(100)), 6)),
  ethernet(ipv4(tcp(seq = 2^32 - 1, ack = 2^31, flags = 256 + 17, window = 65535), 6, id = 2)),
  ethernet(ipv4(tcp(seq = 1, flags = 2, options = c(option_mss(1460), option_scale(7), as.raw(c(4, 2)), option_timestamps(1, 0))), 6, id = 3))
)
cut_at <- \(snaplen, frames = segments) read_all(frames, snaplen = snaplen, wire_bytes = lengths(frames))

test_that("every completely captured field of a truncated TCP header is read", {
  whole <- cut_at(200)
  needs <- c(sport = 4, dport = 4, seq = 8, ack = 12, payload_bytes = 13, flags = 14, window = 16)
  for (captured in 0:20) {
    x <- cut_at(34 + captured)
    for (field in names(needs)) {
      # The second packet is 40 bytes long and cannot have a payload.
      missing <- captured < needs[[field]] & (field != "payload_bytes" | whole$ip_bytes > 40)
      expect_equal(x[[field]], replace(whole[[field]], missing, NA), info = paste(field, captured))
    }
    expect_equal(x$header_cut, captured < c(32, 20, 44))
    expect_equal(x$ip_bytes, whole$ip_bytes)
  }
  expect_false(any(cut_at(34 + 44)$header_cut))
})

test_that("TCP options cut by the snapshot length are marked, those before the cut are read", {
  expect_equal(cut_at(54)$options, c(1024L, 0L, 1024L))
  expect_equal(cut_at(47)$options, c(1024L, 0L, 1024L))
  expect_equal(cut_at(46)$options, rep(NA_integer_, 3))
  x <- cut_at(62) # cuts the third segment between MSS and window scale, and the first within its timestamps
  expect_equal(x$options, c(1024L, 0L, 1024L + 1L + 2L))
  expect_equal(c(x$mss_bytes[3], x$wscale[3]), c(1460L, 7L))
  expect_equal(cut_at(78)$options, cut_at(200)$options)
})

test_that("the first block of a truncated SACK option is read if it is complete", {
  sack <- c(as.raw(c(1, 1, 5, 18)), big(4000, 4), big(5000, 4), big(1000, 4), big(2000, 4))
  frames <- list(ethernet(ipv4(tcp(options = sack), 6)))
  expect_equal(unlist(cut_at(66, frames)[, .(sack_left, sack_right, sack_blocks, options)], use.names = FALSE), c(4000, 5000, 2, 1024 + 8))
  expect_true(is.na(cut_at(65, frames)$sack_left))
})

test_that("a segment that is too short for a TCP header has no payload, whatever was captured", {
  short <- list(ethernet(ipv4(raw(10), 6)), ethernet(ipv4(raw(20), 6)))
  for (snaplen in c(36, 42, 60)) expect_equal(cut_at(snaplen, short)$payload_bytes, c(0L, 0L))
})

test_that("a packet has the same id in two captures whose snapshot length cuts the TCP header, even within the checksum, which the sender's capture lacks", {
  frame <- \(checksum, seq) {
    segment <- tcp(seq = seq, payload = raw(40))
    segment[17:18] <- as.raw(checksum)
    ethernet(ipv4(segment, 6))
  }
  for (snaplen in c(42, 46, 50:54, 100)) {
    ends <- lapply(list(0, c(7, 9)), \(checksum) cut_at(snaplen, lapply(1:9, \(seq) frame(checksum, 40 * seq))))
    expect_equal(ends[[1]]$id, ends[[2]]$id, info = snaplen)
    expect_equal(uniqueN(ends[[1]]$id), 9, info = snaplen)
  }
})

test_that("a truncated header is marked for its own packet only", {
  x <- read_all(list(ethernet(ipv4(tcp(), 6)), ethernet(ipv4(udp(), 17))), snaplen = 45,
                wire_bytes = c(54, 54))
  expect_equal(x$header_cut, c(TRUE, FALSE))
  expect_equal(x$captured_bytes, c(45L, 45L))
})

test_that("packets with the most common headers are decoded like the same packets behind a VLAN tag", {
  stamps <- option_timestamps(4000000001, 2^32 - 2)
  segments <- list(
    tcp(seq = 2^32 - 1, ack = 5, payload = raw(9)), tcp(options = stamps, payload = raw(3), flags = 256 + 194), tcp(options = stamps),
    tcp(options = rev(stamps)), tcp(options = c(stamps, stamps)), tcp(options = option_mss(1460), flags = 2), tcp(options = raw(12))
  )
  packets <- c(lapply(segments, \(segment) ipv4(segment, 6, id = 65535)), list(
    ipv4(tcp(), 6, length = 39L), ipv4(tcp(options = stamps), 6, length = 51L), ipv4(tcp(), 6, length = 0L), ipv4(tcp(), 6, length = 9217L),
    ipv4(tcp(), 6, fragment = 0x4000), ipv4(tcp(), 6, fragment = 0x2000), ipv4(tcp(), 6, fragment = 1L, id = 3), ipv4(tcp(), 17)
  ))
  for (cut in c(100, 66, 65, 54, 53, 34)) {
    plain <- read_all(lapply(packets, \(packet) utils::head(ethernet(packet), cut)), wire_bytes = lengths(packets) + 14)
    tagged <- read_all(lapply(packets, \(packet) utils::head(vlan(packet), cut + 4)), wire_bytes = lengths(packets) + 18)
    same <- setdiff(names(plain), c("frame_bytes", "captured_bytes", "vlan"))
    expect_identical(lapply(plain[, same, with = FALSE], as.vector), lapply(tagged[, same, with = FALSE], as.vector))
  }
})
