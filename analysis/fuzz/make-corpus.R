# Make the corpus: small captures of every format and kind of header, complete, truncated, with flipped bits and hostile. Run in this
# folder; the files are the same every time.

library(testthat)
source("../tests/testthat/helper-packets.R")
source("../tests/testthat/helper-pcapng.R")
set.seed(20130417)
folder <- "corpus/capture"
keep <- function(name, bytes) writeBin(bytes, file.path(folder, name))

sack <- c(as.raw(c(1, 1, 5, 10)), big(5, 4), big(9, 4))
frames <- list(
  ethernet(ipv4(tcp(flags = 2, options = c(option_mss(1460), option_scale(7), as.raw(c(4, 2)))), 6)),
  vlan(ipv4(tcp(options = c(option_timestamps(1, 2), sack)), 6)),
  ethernet(ipv4(udp(), 17, fragment = 0x2000)),
  ethernet(ipv6(c(as.raw(c(44, 0)), raw(6), as.raw(c(17, 0, 0, 1)), raw(4), udp()), 0), 0x86dd),
  ethernet(ipv4(c(as.raw(c(8, 0)), raw(14)), 1)), pause_frame(100),
  c(as.raw(c(1, 0x80, 0xc2, 0, 0, 1)), raw(6), big(0x8808, 2), big(0x0101, 2), big(0x8a, 2), raw(16)),
  ethernet(ipv4(tcp(), 6, length = 0))
)
inside <- list(ipv4(tcp(payload = raw(4)), 6), ipv6(tcp(), 6))
classic <- capture_bytes(frames)
keep("classic.pcap", classic)
keep("classic-big.pcap", capture_bytes(frames[1:2], precision = "us", order = "big"))
keep("sll.pcap", capture_bytes(list(sll(inside[[1]]), sll(inside[[2]], 0x86dd)), link = 113))
keep("sll2.pcap", capture_bytes(list(sll2(inside[[1]])), link = 276))
keep("null.pcap", capture_bytes(lapply(inside, null_link), link = 0))
keep("raw.pcap", capture_bytes(inside, link = 101))
keep("cut.pcap", classic[seq_len(length(classic) - 7)])
keep("snaplen.pcap", capture_bytes(frames, snaplen = 37, wire_bytes = rep(1500, length(frames))))
for (i in 1:4) keep(sprintf("flipped-%d.pcap", i), {
  at <- sample(25:length(classic), 12)
  replace(classic, at, xor(classic[at], as.raw(2^sample(0:7, 12, replace = TRUE))))
})
in_two <- \(id) list(ethernet(ipv4(udp(id, payload = raw(16)), 17, id = id, fragment = 0x2000)), ethernet(ipv4(raw(8), 17, id = id, fragment = 3)))
keep("fragments.pcap", capture_bytes(c(in_two(1), in_two(2)[1], in_two(3), in_two(2)[2], in_two(1)[2:1], in_two(3)[2], in_two(2))))
keep("lengths.pcap", replace(classic, 33:36, as.raw(0xff)))

n <- ng()
name <- n$option(2, charToRaw("eth0"))
blocks <- c(
  n$section(n$option(1, charToRaw("x"))), n$interface(1, 96, name, n$option(9, as.raw(9))), n$interface(101, 0, n$option(9, as.raw(0x8a))),
  n$enhanced(frames[[2]], 1.7e18), n$enhanced(inside[[1]], 1e6, 1, 60, n$option(2, raw(4))), n$simple(frames[[3]]),
  n$packet(frames[[5]], 3), n$block(4, raw(16)), n$statistics(0, n$option(5, raw(8)), n$option(7, raw(8)))
)
b <- ng("big")
keep("blocks.pcapng", blocks)
keep("sections.pcapng", c(blocks, b$section(), b$interface(113, 0, b$option(14, as.raw(rep(0xff, 8)))), b$enhanced(sll(inside[[1]]), 2^40)))
keep("cut.pcapng", blocks[seq_len(length(blocks) - 50)])
for (i in 1:4) keep(sprintf("flipped-%d.pcapng", i), {
  at <- sample(29:length(blocks), 12)
  replace(blocks, at, xor(blocks[at], as.raw(2^sample(0:7, 12, replace = TRUE))))
})
keep("hostile.pcapng", c(blocks, rep(n$interface(), 50), n$number(6, 4), n$number(2^26, 4), raw(12)))

# Files longer than one part, so that the reader has to guess where a record begins: the guess is right, is inside a packet whose payload
# contains records, or is impossible because an interface is described late.
records <- classic[-(1:24)]
keep("shares.pcap", c(classic, rep(records, 3)))
keep("shares-cut.pcap", head(c(classic, rep(records, 3)), -5))
keep("nested.pcap", c(classic, capture_bytes(rep(list(ethernet(ipv4(udp(payload = rep(records, 2)), 17))), 3))[-(1:24)], records))
keep("shares.pcapng", c(blocks, rep(n$enhanced(frames[[1]], 1.7e18), 9), n$interface(1), rep(n$enhanced(frames[[2]], 1e6, 2), 5)))

for (tool in c("gzip -n -9", "zstd -q -19")) {
  to <- file.path(folder, paste0("classic.", sub(" .*", "", tool)))
  stopifnot(system(paste(tool, "-c", file.path(folder, "classic.pcap"), ">", to)) == 0L)
}

# An initial number, then steps of six bytes: neighbouring segments with acknowledgements in between, and numbers that wrap.
folder <- "corpus/sequence"
dir.create(folder, showWarnings = FALSE)
steps <- \(n) as.raw(t(cbind(sample(0:7, n, TRUE), sample(0:255, n, TRUE), matrix(0, n, 3), sample(c(0, 9, 99, 255), n, TRUE))))
for (start in c(1, 2^31 - 50, 2^32 - 50)) keep(sprintf("from-%.0f.bin", start), c(rev(big(start, 4)), steps(60)))

# Two bytes select format, members and truncation, one the number of bytes cut off; the data to compress follow.
folder <- "corpus/stream"
dir.create(folder, showWarnings = FALSE)
for (choice in 0:7) keep(sprintf("form-%d.bin", choice), c(as.raw(c(choice, 16 * choice + 3, 20 * choice)), rep(classic, choice + 1)[1:(300 * (choice + 1))]))
