packet <- ethernet(ipv4(tcp(seq = 7, payload = raw(5)), 6))
at <- 1700000000.25

test_that("a pcapng file gives the table of the pcap file with the same packets", {
  count <- 1700000000 * 1e9 + 256e6 # a multiple of 256, because doubles of this size have no other values
  for (order in c("little", "big")) {
    n <- ng(order)
    x <- read_pcap(write_bytes(c(
      n$section(), n$interface(1, 262144, n$option(9, as.raw(9))),
      n$enhanced(packet, count), n$enhanced(packet, count + 1024, wire = 900)
    )), columns = "all")
    same <- read_pcap(write_capture(list(packet, packet), t_ns = c(256e6, 256e6 + 1024), wire_bytes = c(length(packet), 900)),
                      columns = "all")
    expect_equal(x, same, ignore_attr = c("path", "format"))
    expect_equal(attr(x, "format"), "pcapng")
  }
})

test_that("each interface of a pcapng file has its own time resolution, offset, link type and name", {
  n <- ng()
  minus <- rev(c(rep(as.raw(0xff), 7), as.raw(0xfe))) # -2 s
  x <- read_pcap(write_bytes(c(
    n$section(n$option(1, charToRaw("made by hand"))),
    n$interface(1, 96, n$option(2, charToRaw("eth0"))), # microseconds are the default
    n$interface(101, 0, n$option(9, as.raw(0)), n$option(14, minus)),
    n$interface(113, 128, n$option(9, as.raw(0x80 + 10))), n$interface(1, 0, n$option(9, as.raw(12)), n$option(14, n$number(1700000000, 8))),
    n$enhanced(packet, at * 1e6, 0), n$enhanced(packet[-(1:14)], 1700000005, 1),
    n$enhanced(sll(packet[-(1:14)]), at * 1024, 2), n$enhanced(packet, 1999, 3)
  )), columns = "all")
  expect_equal(attr(x, "epoch_s"), 1700000000)
  expect_equal(x$t_ns, c(0.25e9, 3e9, 0.25e9, 1))
  expect_equal(x$interface, 1:4)
  expect_equal(as.character(x$flow), rep(flow_a, 4))
  expect_equal(length(unique(x$id)), 1L)
  about <- attr(x, "interfaces")
  expect_equal(about$name, c("eth0", NA, NA, NA))
  expect_equal(about$link_type, c("ethernet", "raw", "sll", "ethernet"))
  expect_equal(about$precision, c("us", "s", "2^-10 s", "10^-12 s"))
  expect_equal(about$offset_s, c(0, -2, 0, 1700000000))
  expect_equal(attr(x, "precision"), "s")
  expect_equal(attr(x, "link_type"), "ethernet, raw, sll")
  expect_equal(attr(x, "snaplen_bytes"), 96)
})

test_that("unknown blocks and options of a pcapng file are skipped, and obsolete packet blocks are read", {
  n <- ng()
  x <- read_pcap(write_bytes(c(
    n$section(), n$block(0x0bad, raw(8)), n$interface(1, 0, n$option(77, raw(5)), n$option(2, charToRaw("x"))),
    n$block(4, raw(2^21)), n$enhanced(packet, 1e6, 0, length(packet), n$option(1, charToRaw("comment")), n$option(2, raw(4))),
    n$block(10, raw(40)), n$packet(packet, 2e6), n$block(0x40000bad, raw())
  )))
  expect_equal(x$t_ns, c(0, 1e9))
  expect_false(attr(x, "truncated"))
  expect_equal(attr(x, "interfaces")$name, "x")
})

test_that("a simple packet block has no time and is cut at the interface's snapshot length", {
  n <- ng()
  x <- read_pcap(write_bytes(c(
    n$section(), n$interface(1, 40), n$simple(packet[1:40], wire = length(packet)), n$enhanced(packet[1:40], 5e6, 0)
  )), columns = "all")
  expect_equal(x$t_ns, c(NA, 0))
  expect_equal(attr(x, "epoch_s"), 5)
  expect_equal(x$captured_bytes, c(40L, 40L))
  expect_equal(x$frame_bytes[1], length(packet))
  expect_true(is.na(x$id[1]))
  expect_equal(attr(x, "untimed_packets"), 1)
})

test_that("each section of a pcapng file numbers its interfaces from 0, in its own byte order", {
  a <- ng("little")
  b <- ng("big")
  x <- read_pcap(write_bytes(c(
    a$section(), a$interface(), a$enhanced(packet, 1e6), b$section(), b$interface(101, 0, b$option(9, as.raw(3))),
    b$enhanced(packet[-(1:14)], 2e3)
  )), columns = c("usual", "interface"))
  expect_equal(x$interface, 1:2)
  expect_equal(x$t_ns, c(0, 1e9))
  expect_equal(x$seq, c(7, 7))
})

test_that("packets that the capturing program dropped are reported per interface", {
  n <- ng()
  x <- read_pcap(write_bytes(c(
    n$section(), n$interface(), n$interface(), n$enhanced(packet, 1),
    n$statistics(1, n$option(5, n$number(3, 8)), n$option(7, n$number(40, 8)))
  )))
  expect_equal(attr(x, "interfaces")$interface_drops, c(NA, 3))
  expect_equal(attr(x, "interfaces")$system_drops, c(NA, 40))
})

test_that("a damaged pcapng file gives the packets before the damage, and a note with the cause and the byte", {
  n <- ng()
  head <- c(n$section(), n$interface(), n$enhanced(packet, 1))
  after <- \(bytes, why) {
    x <- read_incomplete(write_bytes(c(head, bytes)))
    expect_equal(nrow(x), 1L)
    expect_match(attr(x, "truncated_note"), sprintf("%s.*\\(byte %d\\)", why, length(head)))
  }
  last <- n$enhanced(packet, 2)
  for (kept in seq_len(length(last) - 1)) after(last[seq_len(kept)], "ends inside a block")
  after(n$enhanced(packet, 2, interface = 3), "refers to interface 3, which the file does not describe")
  after(c(n$number(6, 4), n$number(13, 4), raw(40)), "impossible length of 13")
  after(c(n$number(6, 4), n$number(8, 4), raw(40)), "impossible length of 8")
  after(c(n$number(6, 4), n$number(2^31, 4), raw(40)), "impossible length of 2147483648")
  after(n$block(6, raw(16)), "too short")
  differ <- replace(last, length(last) - 3, as.raw(1))
  after(differ, "two lengths differ")
  longer <- n$block(6, c(raw(12), n$number(100, 4), n$number(100, 4), raw(8)))
  after(longer, "longer than its block")
  after(n$interface(1, 0, n$option(9, as.raw(20))), "finer than 64 bits")
  after(c(n$number(0x0a0d0d0a, 4), n$number(28, 4), n$number(0x1a2b3c4d, 4), n$number(2, 2), raw(14)), "version 2")
})

test_that("times beyond the range of a double or of 64 bits are clamped", {
  n <- ng()
  far <- c(rep(as.raw(0xff), 7), as.raw(0x7f))
  x <- read_pcap(write_bytes(c(
    n$section(), n$interface(1, 0, n$option(9, as.raw(0))), n$interface(1, 0, n$option(9, as.raw(0)), n$option(14, far)),
    n$enhanced(packet, 0, 0), n$enhanced(packet, 2^63, 1)
  )))
  expect_equal(x$t_ns, c(0, 2e18))
})

test_that("packets of an unknown link type are counted, and a file with only such packets is an error", {
  n <- ng()
  head <- c(n$section(), n$interface(189), n$enhanced(packet, 1e6))
  expect_error(read_pcap(write_bytes(head)), "link type 189; expected Ethernet", class = "samovar_error_capture")
  x <- read_incomplete(write_bytes(c(head, n$interface(1), n$enhanced(packet, 2e6, 1))))
  expect_equal(as.character(x$proto), c("other", "tcp"))
  expect_equal(attr(x, "undecoded_packets")[["unknown link type"]], 1)
  expect_equal(attr(x, "link_type"), "unknown (189), ethernet")
})

test_that("a pcapng file written by editcap is read like the capture that it was made from", {
  need_tool("editcap")
  from <- plain_copy(committed_pair()$sender)
  to <- tempfile(fileext = ".pcapng")
  stopifnot(system2("editcap", c("-F", "pcapng", from, to), stdout = FALSE, stderr = FALSE) == 0L)
  expect_equal(read_pcap(to, "all"), read_pcap(from, "all"), ignore_attr = c("path", "format", "interfaces", "snaplen_bytes"))
})
