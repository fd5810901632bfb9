# A capture of bulk TCP flows, made without a network: each data segment is followed by its acknowledgement after the
# round-trip time; headers, time stamps option and lengths are as on a path with an MTU of 1500 bytes.
# The capture is made at the sender or, with other times and without one segment in a thousand, at the receiver.
# The same arguments give the same bytes.

bytes_of <- function(x, width) {
  places <- lapply(seq(width - 1L, 0L), \(place) as.raw((x %/% 256^place) %% 256))
  matrix(unlist(places), ncol = width)
}

little <- function(x) bytes_of(x, 4L)[, 4:1, drop = FALSE]

# A table of packets in both directions: time, flow, and the values of the header fields.
bulk_packets <- function(packets, flows, at_receiver, gap_ns = 24000, rtt_ns = 2e7, mss_bytes = 1448) {
  segments <- packets %/% 2
  number <- seq_len(segments) - 1
  flow <- number %% flows
  count <- number %/% flows
  sent <- data.table::data.table(t_ns = number * gap_ns, flow, out = TRUE, id = count %% 65536,
                                 seq = (1000 + count * mss_bytes) %% 2^32, ack = 5000, payload_bytes = mss_bytes)
  answered <- data.table::data.table(t_ns = sent$t_ns + rtt_ns, flow, out = FALSE, id = sent$id, seq = 5000,
                                     ack = (sent$seq + mss_bytes) %% 2^32, payload_bytes = 0)
  both <- rbind(sent, answered)
  both[, stamp_ms := t_ns %/% 1e6 + 1000]
  if (at_receiver) both <- both[!out | id %% 1000 != 999]
  if (at_receiver) both[, t_ns := t_ns + rtt_ns * ifelse(out, 0.4, -0.4)]
  both[order(both$t_ns)]
}

# One matrix column per record: record header (16), Ethernet (14), IPv4 (20), TCP with time stamps (32).
bulk_records <- function(table, captured_bytes = 96L, epoch_s = 1700000000) {
  header_bytes <- 66L
  frame_bytes <- header_bytes + table$payload_bytes
  kept_bytes <- pmin(frame_bytes, captured_bytes)
  n <- nrow(table)
  port <- 40000 + table$flow
  out <- table$out
  either <- \(a, b) ifelse(out, a, b)
  parts <- list(
    little(epoch_s + table$t_ns %/% 1e9), little(table$t_ns %% 1e9), little(kept_bytes), little(frame_bytes),
    matrix(as.raw(0), n, 12L), bytes_of(rep(0x0800, n), 2L), bytes_of(rep(0x4500, n), 2L),
    bytes_of(frame_bytes - 14, 2L), bytes_of(table$id, 2L), bytes_of(rep(0x4000, n), 2L), bytes_of(rep(0x4006, n), 2L),
    bytes_of(rep(0, n), 2L), bytes_of(0x0a000000 + either(1, 2), 4L), bytes_of(0x0a000000 + either(2, 1), 4L),
    bytes_of(either(port, 5201), 2L), bytes_of(either(5201, port), 2L), bytes_of(table$seq, 4L),
    bytes_of(table$ack, 4L), bytes_of(rep(0x8010, n), 2L), bytes_of(rep(4096, n), 2L), bytes_of(rep(0, n), 4L),
    bytes_of(rep(0x0101080a, n), 4L), bytes_of(table$stamp_ms, 4L), bytes_of(table$stamp_ms - 20, 4L)
  )
  list(heads = do.call(cbind, parts), spare = kept_bytes - header_bytes)
}

write_bulk_capture <- function(path, packets, flows, at_receiver = FALSE, at_once = 2e5) {
  table <- bulk_packets(packets, flows, at_receiver)
  to <- file(path, "wb")
  on.exit(close(to))
  word <- \(x) bytes_of(x, 4L)[4:1]
  header <- c(word(0xa1b23c4d), as.raw(c(2, 0, 4, 0)), raw(8), little(96), little(1))
  writeBin(header, to)
  for (from in seq(1, nrow(table), at_once)) {
    made <- bulk_records(table[from:min(from + at_once - 1, nrow(table))])
    writeBin(with_spare(made$heads, made$spare), to)
  }
  invisible(nrow(table))
}

# Join records, each followed by zeros as the captured part of its payload.
with_spare <- function(heads, spare) {
  widest <- max(spare)
  wide <- t(cbind(heads, matrix(as.raw(0), nrow(heads), widest)))
  kept <- rep(spare, each = nrow(wide)) >= rep(seq_len(nrow(wide)) - ncol(heads), length(spare))
  wide[kept]
}
