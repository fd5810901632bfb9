one_segment <- tcp(1000, 80, seq = 7, ack = 9, flags = 24, window = 512, options = option_timestamps(11, 12),
                   payload = raw(5))
one_tcp <- ipv4(one_segment, 6, id = 77)
columns_of_interest <- c("ip_bytes", "proto", "flow", "sport", "dport", "ip_id", "seq", "ack", "flags", "window",
                         "payload_bytes", "tsval", "tsecr", "id")

test_that("a real capture is read as tcpdump prints it", {
  need_tool("tcpdump")
  for (pair in all_pairs()) {
    path <- plain_copy(pair$sender)
    ours <- read_pcap(path)
    arguments <- c("-r", path, "-tt", "-nn", "-S", "--time-stamp-precision=nano", "ip", "and", "tcp")
    lines <- system2("tcpdump", arguments, stdout = TRUE, stderr = FALSE)
    field <- \(pattern) as.numeric(sub(pattern, "\\1", ifelse(grepl(pattern, lines), lines, NA)))
    tcp <- ours[proto == "tcp"]
    expect_gt(nrow(tcp), 1000)
    expect_equal(nrow(tcp), length(lines))
    seconds <- as.numeric(sub("\\..*", "", lines)) - attr(ours, "epoch_s")
    expect_identical(tcp$t_ns, seconds * 1e9 + field("^[0-9]+\\.([0-9]+) .*"))
    expect_equal(tcp$payload_bytes, field(".*length ([0-9]+).*"))
    expect_equal(tcp$window, field(".* win ([0-9]+).*"))
    with_seq <- grepl(" seq ", lines)
    expect_equal(tcp$seq[with_seq], field(".* seq ([0-9]+).*")[with_seq])
    with_times <- grepl("TS val", lines)
    expect_equal(tcp$tsval[with_times], field(".*TS val ([0-9]+) .*")[with_times])
    expect_equal(tcp$tsecr[with_times], field(".* ecr ([0-9]+).*")[with_times])
    ends <- sub(".* IP ([0-9.]+)\\.([0-9]+) > ([0-9.]+)\\.([0-9]+):.*", "\\1:\\2 > \\3:\\4", lines)
    expect_equal(as.character(tcp$flow), ends)
  }
})

test_that("a compressed capture gives the same table as a plain one", {
  pair <- committed_pair()
  compressed <- read_pcap(pair$sender)
  plain <- read_pcap(plain_copy(pair$sender))
  expect_equal(compressed, plain, ignore_attr = "path")
  expect_equal(attr(compressed, "truncated"), FALSE)
})

test_that("byte order and time resolution of the file do not change the packets", {
  expected <- read_pcap(write_capture(list(ethernet(one_tcp)), t_ns = 123456789))
  expect_equal(expected$t_ns, 123456789)
  expect_equal(attr(expected, "epoch_s"), 1700000000)
  expect_equal(attr(expected, "precision"), "ns")
  swapped <- read_pcap(write_capture(list(ethernet(one_tcp)), t_ns = 123456789, order = "big"))
  expect_equal(swapped, expected, ignore_attr = "path")
  coarse <- read_pcap(write_capture(list(ethernet(one_tcp)), t_ns = 123456789, order = "big", precision = "us"))
  expect_equal(coarse$t_ns, 123456000)
  expect_equal(attr(coarse, "precision"), "us")
})

test_that("the same packet is read from every link type", {
  expected <- read_pcap(write_capture(list(ethernet(one_tcp))))[, columns_of_interest, with = FALSE]
  expect_equal(expected$payload_bytes, 5L)
  expect_equal(as.character(expected$flow), flow_a)
  others <- list(
    vlan = write_capture(list(vlan(one_tcp))), provider = write_capture(list(vlan(one_tcp, tag = 0x88a8))),
    twice = write_capture(list(ethernet(c(big(7, 2), big(0x8100, 2), big(8, 2), big(0x0800, 2), one_tcp), 0x88a8))),
    null = write_capture(list(null_link(one_tcp)), link = 0), raw = write_capture(list(one_tcp), link = 101),
    sll = write_capture(list(sll(one_tcp)), link = 113), sll2 = write_capture(list(sll2(one_tcp)), link = 276)
  )
  for (name in names(others)) {
    x <- read_pcap(others[[name]])[, columns_of_interest, with = FALSE]
    expect_equal(x, expected, info = name, ignore_attr = c("path", "link_type", "interfaces"))
  }
})

test_that("IPv6 packets are read through their extension headers", {
  segment <- tcp(payload = raw(3))
  hop_by_hop <- c(as.raw(c(6, 0)), raw(6))
  fragment <- \(offset) c(as.raw(c(6, 0)), big(offset * 8, 2), raw(4))
  x <- read_pcap(write_capture(list(
    ethernet(ipv6(segment, 6), 0x86dd), ethernet(ipv6(c(hop_by_hop, segment), 0), 0x86dd),
    ethernet(ipv6(c(fragment(3), raw(16)), 44), 0x86dd)
  )))
  expect_equal(as.character(x$flow), c(rep("[2001:db8::1]:1000 > [2001:db8::2]:80", 2), "2001:db8::1 > 2001:db8::2"))
  expect_equal(x$payload_bytes, c(3L, 3L, 16L))
  expect_equal(x$ip_bytes, c(63L, 71L, 64L))
  expect_equal(x$sport, c(1000L, 1000L, NA))
})

test_that("a fragment has no ports if the first fragment of its datagram is missing", {
  x <- read_pcap(write_capture(list(
    ethernet(ipv4(udp(payload = raw(16)), 17, fragment = 0x2000)), ethernet(ipv4(raw(24), 17, fragment = 3, id = 2))
  )))
  expect_equal(as.character(x$flow), c("10.0.0.1:1000 > 10.0.0.2:53", "10.0.0.1 > 10.0.0.2"))
  expect_equal(x$sport, c(1000L, NA))
  expect_equal(x$payload_bytes, c(16L, 24L))
})

test_that("TCP and UDP between the same addresses and ports are two flows", {
  packets <- list(ipv4(tcp(5, 6), 6), ipv4(udp(5, 6), 17), ipv4(udp(6, 5), 17))
  x <- read_pcap(write_capture(lapply(packets, ethernet)))
  names <- c("10.0.0.1:5 > 10.0.0.2:6", "10.0.0.1:5 > 10.0.0.2:6 (udp)", "10.0.0.1:6 > 10.0.0.2:5")
  expect_equal(as.character(x$flow), names)
  expect_equal(reverse_flow(levels(x$flow)[2]), "10.0.0.2:6 > 10.0.0.1:5 (udp)")
})

test_that("a superpacket without an IP length has the length of its frame", {
  x <- read_pcap(write_capture(list(ethernet(ipv4(tcp(), 6, length = 0))), wire_bytes = 70000))
  expect_equal(x$ip_bytes, 69986L)
  expect_equal(x$payload_bytes, 69946L)
})

test_that("the padding of short frames does not change a packet's id", {
  frame <- ethernet(ipv4(udp(payload = raw(2)), 17))
  x <- read_pcap(write_capture(list(frame, c(frame, as.raw(1:16)))))
  expect_equal(x$id[1], x$id[2])
})

test_that("a packet's id ignores the fields that routers change and depends on those that the sender sets", {
  id_of <- \(packet) read_pcap(write_capture(list(ethernet(packet))))$id
  routed <- one_tcp
  routed[9] <- as.raw(63) # time to live
  routed[11:12] <- as.raw(c(1, 2)) # header checksum
  routed[2] <- as.raw(3) # ECN
  expect_identical(id_of(routed), id_of(one_tcp))
  for (byte in c(5, 16, 20, 22, 24, 28, 32, 34, 36, 48)) {
    changed <- one_tcp
    changed[byte] <- xor(changed[byte], as.raw(1))
    expect_false(id_of(changed) == id_of(one_tcp), info = paste("byte", byte))
  }
})

test_that("PAUSE frames are read with their quanta", {
  x <- read_pcap(write_capture(list(pause_frame(0xffff), pause_frame(0))))
  expect_equal(as.character(x$proto), c("pause", "pause"))
  expect_equal(x$window, c(65535L, 0L))
})

test_that("SYN options are read, and the window scale is limited to 14", {
  x <- read_pcap(write_capture(list(
    ethernet(ipv4(tcp(flags = 2, options = c(option_mss(1460), option_scale(7))), 6)),
    ethernet(ipv4(tcp(flags = 2, options = option_scale(200)), 6)),
    ethernet(ipv4(tcp(flags = 16, options = option_scale(7)), 6))
  )))
  expect_equal(x$mss_bytes, c(1460L, NA, NA))
  expect_equal(x$wscale, c(7L, 14L, NA))
})

test_that("the two lengths of a record are read from files of older format versions, which may store them in the opposite order", {
  frames <- rep(list(ethernet(one_tcp)), 40)
  now <- read_pcap(write_capture(frames, snaplen = 48), "all")
  for (minor in 2:3) {
    for (order in c("little", "big")) {
      old <- read_pcap(write_capture(frames, snaplen = 48, minor = minor, order = order), "all")
      expect_equal(old, now, ignore_attr = "path", info = paste(minor, order))
    }
  }
  swapped_2.3 <- capture_bytes(frames, snaplen = 48, minor = 2)
  swapped_2.3[7] <- as.raw(3)
  expect_equal(read_pcap(write_bytes(swapped_2.3), "all"), now, ignore_attr = "path")
})

test_that("packets below MPLS, PPPoE and SNAP headers are named and counted", {
  snap <- c(as.raw(c(0xAA, 0xAA, 3, 0, 0, 0)), big(0x0800, 2), one_tcp)
  frames <- list(ethernet(one_tcp), ethernet(c(raw(4), one_tcp), 0x8847), ethernet(c(raw(4), one_tcp), 0x8848),
                 vlan(c(raw(8), one_tcp), 0x8864), ethernet(snap, length(snap)), ethernet(as.raw(c(0x42, 0x42, 3)), 3))
  expect_warning(x <- read_pcap(write_capture(frames)), '"2 mpls", "1 pppoe", and "1 snap" packets', class = "samovar_warning_undecoded")
  expect_equal(as.character(x$proto), c("tcp", "mpls", "mpls", "pppoe", "snap", "other"))
  expect_equal(attr(x, "undecoded_packets"), c(mpls = 2, pppoe = 1, snap = 1, "unknown link type" = 0))
  expect_no_warning(read_pcap(write_capture(frames[c(1, 6)])))
})

test_that("tshark sees the same numbers of packets below MPLS, PPPoE and SNAP headers", {
  need_tool("tshark")
  label <- \(number, bottom) big(number * 4096 + bottom * 256 + 64, 4)
  session <- c(as.raw(c(0x11, 0)), big(7, 2), big(length(one_tcp) + 2, 2), big(0x0021, 2), one_tcp)
  snap <- c(as.raw(c(0xAA, 0xAA, 3, 0, 0, 0)), big(0x0800, 2), one_tcp)
  frames <- list(ethernet(one_tcp), ethernet(c(label(16, 1), one_tcp), 0x8847), vlan(c(label(16, 0), label(17, 1), one_tcp), 0x8847), ethernet(session, 0x8864),
                 vlan(session, 0x8864), ethernet(session, 0x8864), ethernet(snap, length(snap)), ethernet(as.raw(c(0x42, 0x42, 3)), 3))
  path <- write_capture(frames)
  expect_warning(x <- read_pcap(path), class = "samovar_warning_undecoded")
  theirs <- tshark_table(path, c("frame.protocols", "llc.oui"))
  below <- \(header) sum(grepl(paste0("\\b", header, "\\b"), theirs$frame.protocols) & grepl("\\bip\\b", theirs$frame.protocols))
  expect_equal(attr(x, "undecoded_packets")[c("mpls", "pppoe", "snap")], c(mpls = below("mpls"), pppoe = below("pppoes"), snap = sum(!is.na(theirs$llc.oui))))
  expect_equal(attr(x, "undecoded_packets")[["pppoe"]], 3)
  expect_equal(which(!is.na(x$flow)), 1)
})

test_that("a file that is cut anywhere in its last record gives the packets before this record, and a warning", {
  bytes <- capture_bytes(list(ethernet(one_tcp), ethernet(one_tcp), ethernet(one_tcp)))
  record <- 16 + 14 + length(one_tcp)
  whole <- read_pcap(write_bytes(bytes))
  expect_false(attr(whole, "truncated"))
  for (kept in seq(length(bytes) - record + 1, length(bytes) - 1)) {
    for (compressed in c(FALSE, TRUE)) {
      expect_warning(x <- read_pcap(write_bytes(bytes[seq_len(kept)], compressed)), "the packets before were read", class = "samovar_warning_truncated")
      expect_equal(nrow(x), 2L)
      expect_true(attr(x, "truncated"))
    }
  }
  expect_match(attr(x, "truncated_note"), sprintf("ends inside a record \\(byte %d\\)", length(bytes) - record))
})

test_that("a truncated gzip stream gives the packets before its end", {
  path <- committed_pair()$receiver
  bytes <- readBin(path, "raw", file.size(path))
  whole <- read_pcap(path)
  for (share in c(0.1, 0.5, 0.9, 0.9999)) {
    expect_warning(x <- read_pcap(write_bytes(bytes[seq_len(floor(length(bytes) * share))])), "gzip stream", class = "samovar_warning_truncated")
    expect_true(attr(x, "truncated"))
    expect_match(attr(x, "truncated_note"), "gzip stream")
    expect_gt(nrow(x), 0.8 * share * nrow(whole))
    expect_identical(x$t_ns, whole$t_ns[seq_len(nrow(x))])
    expect_identical(x$id, whole$id[seq_len(nrow(x))])
  }
})

test_that("the captured part of a packet is read, wherever the snapshot length cut it", {
  frames <- list(vlan(one_tcp), ethernet(ipv4(udp(), 17)), ethernet(ipv6(tcp(), 6), 0x86dd), pause_frame(9))
  for (snaplen in 1:90) {
    x <- read_pcap(write_capture(frames, snaplen = snaplen, wire_bytes = lengths(frames)))
    expect_equal(nrow(x), 4L)
    expect_equal(x$frame_bytes, lengths(frames))
    expect_equal(attr(x, "cut_packets") > 0, snaplen < 74)
  }
})

test_that("a capture of random bytes is read with one row per frame", {
  set.seed(20130417)
  noise <- \(n) as.raw(sample(0:255, n, replace = TRUE))
  frames <- c(
    lapply(1:1000, \(i) noise(sample(1:120, 1))),
    lapply(1:1000, \(i) ethernet(c(as.raw(0x45 + sample(0:10, 1)), noise(sample(0:100, 1))))),
    lapply(1:1000, \(i) ethernet(ipv4(noise(sample(0:60, 1)), 6))),
    lapply(1:1000, \(i) ethernet(c(as.raw(0x60), noise(60)), 0x86dd))
  )
  for (link in c(0, 1, 101, 113, 276)) expect_equal(nrow(read_pcap(write_capture(frames, link = link))), 4000L)
})

test_that("a record with an impossible length ends the reading without ending R", {
  bytes <- capture_bytes(list(ethernet(one_tcp), ethernet(one_tcp)))
  second <- 24 + 16 + 14 + length(one_tcp)
  bytes[second + 9:12] <- as.raw(0xff)
  x <- read_incomplete(write_bytes(bytes))
  expect_equal(nrow(x), 1L)
  expect_match(attr(x, "truncated_note"), sprintf("impossible length of 4294967295 bytes \\(byte %d\\)", second))
})

test_that("a damaged length ends the reading there, although bytes of a packet follow that would be records", {
  frames <- lapply(1:40, \(k) ethernet(ipv4(tcp(seq = 1448 * k, payload = raw(1448)), 6)))
  bytes <- capture_bytes(frames)
  tenth <- 24 + 9 * (16 + length(frames[[1]]))
  for (kept in c(500, 502, 508, 512)) {
    bytes[tenth + 9:10] <- rev(big(kept, 2))
    for (compressed in c(FALSE, TRUE)) {
      x <- read_incomplete(write_bytes(bytes, compressed))
      expect_equal(nrow(x), 10L)
      expect_match(attr(x, "truncated_note"), sprintf("impossible header \\(byte %d\\)", tenth + 16 + kept))
    }
  }
})

test_that("a capture without packets is an empty table", {
  x <- read_pcap(write_capture(list()))
  expect_equal(nrow(x), 0L)
  expect_true(all(c("t_ns", "flow", "id") %in% names(x)))
  expect_equal(nrow(data_flows(x)), 0L)
})

test_that("a file that is not a capture is an error that names the expected formats", {
  refuse <- \(bytes, text) expect_error(read_pcap(write_bytes(as.raw(bytes))), text, class = "samovar_error_capture")
  refuse(integer(), "is empty; expected a capture in pcap")
  refuse(charToRaw("hello, world, this is text"), "not a packet capture; expected a capture in pcap")
  refuse(c(0x0a, 0x0d, 0x0d, 0x0a, rep(0, 40)), "pcapng file whose section header is damaged: .*byte-order mark")
  refuse(c(0xfd, charToRaw("7zXZ"), 0), "xz-compressed; expected a plain, gzip- or zstd-compressed")
  refuse(c(0x04, 0x22, 0x4d, 0x18, 0, 0), "lz4-compressed")
  refuse(c(0x28, 0xb5, 0x2f, 0xfd, 0, 0), "cannot be read: the zstd stream .*; expected a capture")
  refuse(c(0x1f, 0x8b, 8, 0, 0, 0), "cannot be read: the gzip stream .*; expected a capture")
  refuse(capture_bytes(list(), link = 147), "link type 147; expected Ethernet")
  whole <- capture_bytes(list(ethernet(one_tcp)))
  for (kept in 4:23) refuse(whole[seq_len(kept)], "ends inside its file header")
  expect_error(read_pcap(tempdir()), "not a regular file", class = "samovar_error_capture")
  expect_error(read_pcap(tempfile()), "does not exist; expected a capture", class = "samovar_error_file")
  expect_error(read_pcap(NULL), "path of one capture", class = "samovar_error_argument")
})

test_that("data flows are the direction with more payload of each connection, the largest first", {
  flows <- data_flows(read_pcap(committed_pair()$sender))
  expect_equal(nrow(flows), 3L)
  expect_true(all(grepl("> 172.16.11.2:5201$", flows$flow)))
  expect_false(is.unsorted(-flows$payload_bytes))
  expect_gt(flows$payload_bytes[2], 1e6)
})
