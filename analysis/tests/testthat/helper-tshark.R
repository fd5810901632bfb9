# Fields of each packet as tshark reads them: one row per packet, one column per field, the first value if a field occurs more than once.

tshark_table <- function(path, fields) {
  field_options <- c(rbind("-e", fields))
  # No reassembly, and no dissection above the transport layer.
  preferences <- c("-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-o", "tcp.relative_sequence_numbers:FALSE",
                   "-o", "tcp.desegment_tcp_streams:FALSE", "-o", "tcp.analyze_sequence_numbers:FALSE")
  lines <- system2("tshark", c("-n", "-r", path, preferences, "-T", "fields", "-E", "occurrence=f", "-E", "separator=/t", field_options),
                   stdout = TRUE, stderr = FALSE)
  data.table::fread(text = c(paste(fields, collapse = "\t"), lines), sep = "\t", colClasses = "character", na.strings = "",
                    fill = TRUE, blank.lines.skip = FALSE)
}

# Numbers in tshark's notation: decimal, 0x, True and False.
number_of <- function(text) {
  out <- suppressWarnings(as.numeric(text))
  out[text %in% c("True", "1")] <- 1
  out[text %in% c("False", "0")] <- 0
  out
}

either <- function(a, b) ifelse(is.na(a), b, a)

# Expect that read_pcap() and tshark read the same values from a capture, column by column.
expect_as_tshark <- function(path, min_packets = 1) {
  ours <- read_pcap(path, "all")
  fields <- c(
    "frame.time_epoch", "frame.len", "frame.cap_len", "vlan.id", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.len",
    "ipv6.plen", "ip.id", "ip.ttl", "ipv6.hlim", "ip.dsfield", "ipv6.tclass", "ip.frag_offset", "ip.flags.mf",
    "ipv6.fraghdr.offset", "ipv6.fraghdr.more", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport", "tcp.seq_raw",
    "tcp.ack_raw", "tcp.flags", "tcp.window_size_value", "tcp.len", "tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr",
    "tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.options.sack_le", "tcp.options.sack_re", "icmp.type", "icmp.code",
    "icmp.ident", "icmp.seq", "icmpv6.type", "icmpv6.code", "icmpv6.echo.identifier", "icmpv6.echo.sequence_number",
    "macc.opcode", "macc.pause_time"
  )
  theirs <- tshark_table(path, fields)
  testthat::expect_equal(nrow(ours), nrow(theirs))
  testthat::expect_gte(nrow(ours), min_packets)
  same <- function(name, of) testthat::expect_equal(as.double(ours[[name]]), number_of(of), info = paste(name, path))
  text <- function(name, of) testthat::expect_equal(as.character(ours[[name]]), of, info = paste(name, path))
  t <- theirs
  seconds <- as.numeric(sub("\\..*", "", t$frame.time_epoch)) - attr(ours, "epoch_s")
  testthat::expect_equal(ours$t_ns, seconds * 1e9 + as.numeric(sub(".*\\.", "", t$frame.time_epoch)), info = path)
  same("frame_bytes", t$frame.len)
  same("captured_bytes", t$frame.cap_len)
  same("vlan", t$vlan.id)
  text("src", either(t$ip.src, t$ipv6.src))
  text("dst", either(t$ip.dst, t$ipv6.dst))
  same("ip_bytes", either(t$ip.len, as.character(number_of(t$ipv6.plen) + 40)))
  same("ip_id", as.character(strtoi(t$ip.id, 16L)))
  same("ttl", either(t$ip.ttl, t$ipv6.hlim))
  same("tos", as.character(strtoi(either(t$ip.dsfield, t$ipv6.tclass), 16L)))
  same("sport", either(t$tcp.srcport, t$udp.srcport))
  same("dport", either(t$tcp.dstport, t$udp.dstport))
  same("seq", t$tcp.seq_raw)
  same("ack", t$tcp.ack_raw)
  same("flags", as.character(strtoi(t$tcp.flags, 16L)))
  tcp <- which(ours$proto == "tcp" & !is.na(ours$seq))
  testthat::expect_equal(as.double(ours$window[tcp]), number_of(t$tcp.window_size_value[tcp]))
  whole <- which(ours$proto == "tcp" & !is.na(t$tcp.len))
  testthat::expect_equal(as.double(ours$payload_bytes[whole]), number_of(t$tcp.len[whole]), info = path)
  same("tsval", t$tcp.options.timestamp.tsval)
  same("tsecr", t$tcp.options.timestamp.tsecr)
  same("mss_bytes", t$tcp.options.mss_val)
  same("wscale", t$tcp.options.wscale.shift)
  same("sack_left", t$tcp.options.sack_le)
  same("sack_right", t$tcp.options.sack_re)
  # An IPv6 packet with a fragment header is a fragment, even if it contains the whole datagram (RFC 6946).
  units <- number_of(either(t$ip.frag_offset, t$ipv6.fraghdr.offset))
  more <- number_of(either(t$ip.flags.mf, t$ipv6.fraghdr.more)) == 1
  is_fragment <- units > 0 | more | !is.na(t$ipv6.fraghdr.offset)
  same("fragment_bytes", ifelse(is_fragment, 8 * units, NA))
  testthat::expect_equal(ours$more_fragments, ifelse(is_fragment, more, NA), info = path)
  same("icmp_type", either(t$icmp.type, t$icmpv6.type))
  same("icmp_code", either(t$icmp.code, t$icmpv6.code))
  same("echo_id", either(t$icmp.ident, as.character(strtoi(t$icmpv6.echo.identifier, 16L))))
  same("echo_seq", either(t$icmp.seq, t$icmpv6.echo.sequence_number))
  same("opcode", as.character(strtoi(t$macc.opcode, 16L)))
  invisible(ours)
}
