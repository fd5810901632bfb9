# Frames and capture files made byte by byte, for traffic that is hard to produce on a real network.

big <- function(x, bytes) {
  out <- raw(bytes)
  for (i in bytes:1) {
    out[i] <- as.raw(x %% 256)
    x <- x %/% 256
  }
  out
}

address4 <- function(text) as.raw(as.integer(strsplit(text, ".", fixed = TRUE)[[1]]))

# An IPv4 packet with the bytes of any transport protocol. `length` is the value of the total length field, which may differ from the number of bytes.
ipv4 <- function(transport, protocol, src = "10.0.0.1", dst = "10.0.0.2", id = 1, fragment = 0,
                 length = 20L + base::length(transport)) {
  c(as.raw(c(0x45, 0)), big(length, 2), big(id, 2), big(fragment, 2), as.raw(c(64, protocol, 0, 0)),
    address4(src), address4(dst), transport)
}

ipv6 <- function(transport, next_header, payload = base::length(transport)) {
  address <- \(last) c(as.raw(c(0x20, 0x01, 0x0d, 0xb8)), raw(11), as.raw(last))
  c(as.raw(c(0x60, 0, 0, 0)), big(payload, 2), as.raw(c(next_header, 64)), address(1), address(2), transport)
}

tcp <- function(sport = 1000, dport = 80, seq = 1, ack = 0, flags = 16, window = 1000, options = raw(),
                payload = raw()) {
  options <- c(options, rep(as.raw(1), -length(options) %% 4))
  offset <- (20 + length(options)) / 4
  c(big(sport, 2), big(dport, 2), big(seq, 4), big(ack, 4), as.raw(c(offset * 16 + flags %/% 256, flags %% 256)),
    big(window, 2), raw(4), options, payload)
}

udp <- function(sport = 1000, dport = 53, payload = raw(12)) {
  c(big(sport, 2), big(dport, 2), big(8 + length(payload), 2), raw(2), payload)
}

option_timestamps <- function(value, echo) c(as.raw(c(1, 1, 8, 10)), big(value, 4), big(echo, 4))
option_scale <- function(shift) as.raw(c(1, 3, 3, shift))
option_mss <- function(bytes) c(as.raw(c(2, 4)), big(bytes, 2))

ethernet <- function(inside, type = 0x0800) c(raw(12), big(type, 2), inside)
vlan <- function(inside, type = 0x0800, tag = 0x8100) c(raw(12), big(tag, 2), big(7, 2), big(type, 2), inside)
sll <- function(inside, type = 0x0800) c(raw(14), big(type, 2), inside)
sll2 <- function(inside, type = 0x0800) c(big(type, 2), raw(18), inside)
null_link <- function(inside, family = 2) c(as.raw(c(family, 0, 0, 0)), inside)
pause_frame <- function(quanta) {
  c(as.raw(c(0x01, 0x80, 0xc2, 0, 0, 1)), raw(6), big(0x8808, 2), big(1, 2), big(quanta, 2), raw(42))
}

# `frames`: a list of raw vectors; `t_ns`: times since `epoch_s`; `wire_bytes`: lengths of the frames before truncation to `snaplen`;
# `minor`: minor version of the file format (below 3, each record stores its two lengths in the opposite order).
capture_bytes <- function(frames, t_ns = seq_along(frames) * 1e6, epoch_s = 1700000000, link = 1,
                          precision = "ns", order = "little", snaplen = 262144, wire_bytes = lengths(frames), minor = 4) {
  word <- \(x) if (order == "little") rev(big(x, 4)) else big(x, 4)
  half <- \(x) if (order == "little") rev(big(x, 2)) else big(x, 2)
  magic <- if (precision == "ns") 0xa1b23c4d else 0xa1b2c3d4
  records <- Map(\(frame, t, wire) {
    kept <- frame[seq_len(min(length(frame), snaplen))]
    fraction <- (t %% 1e9) %/% (if (precision == "ns") 1 else 1000)
    sizes <- if (minor < 3) c(wire, length(kept)) else c(length(kept), wire)
    c(word(epoch_s + t %/% 1e9), word(fraction), word(sizes[1]), word(sizes[2]), kept)
  }, frames, t_ns, wire_bytes)
  c(word(magic), half(2), half(minor), raw(8), word(snaplen), word(link), unlist(records))
}

write_capture <- function(frames, ..., compressed = FALSE) write_bytes(capture_bytes(frames, ...), compressed)

# Read a capture, and suppress the warnings that it is truncated or not decoded completely.
read_incomplete <- function(...) suppressWarnings(read_pcap(...), classes = c("samovar_warning_truncated", "samovar_warning_undecoded"))

write_bytes <- function(bytes, compressed = FALSE) {
  path <- tempfile(fileext = ".pcap")
  connection <- if (compressed) gzfile(path, "wb") else file(path, "wb")
  on.exit(close(connection))
  writeBin(bytes, connection)
  path
}

# The frames of a TCP connection: one per element of `steps`, sent `from` "a" (10.0.0.1:1000) or "b" (10.0.0.2:80).
conversation <- function(steps, isn_a = 1000, isn_b = 5000) {
  lapply(steps, \(step) {
    usual <- list(from = "a", seq = 0, ack = 0, flags = 16, bytes = 0, window = 1000, options = raw(), id = 1)
    step <- utils::modifyList(usual, step)
    out <- step$from == "a"
    own <- if (out) isn_a else isn_b
    other <- if (out) isn_b else isn_a
    segment <- tcp(if (out) 1000 else 80, if (out) 80 else 1000, (own + step$seq) %% 2^32,
                   (other + step$ack) %% 2^32, step$flags, step$window, step$options, raw(step$bytes))
    ethernet(ipv4(segment, 6, if (out) "10.0.0.1" else "10.0.0.2", if (out) "10.0.0.2" else "10.0.0.1", step$id))
  })
}

flow_a <- "10.0.0.1:1000 > 10.0.0.2:80"
flow_b <- "10.0.0.2:80 > 10.0.0.1:1000"
