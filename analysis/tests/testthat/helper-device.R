# A device that holds `buffer` frames and sends PAUSE frames when it is full, between a host with a ring of `ring` descriptors and a slower link:
# the captures, beacons and counters that such a trial records, each with the clock of its host.
#
# Times are computed exactly: a packet is sent every `8 mtu / sent_bps` seconds, and the link carries one every `8 mtu / link_bps`. The true buffer
# size is that of the simulated device.
device_trial <- function(buffer, mtu, sent_bps, link_bps, ring = 512, seconds = 3, idle_s = 0.001, clock = list(offset_s = 0.25, ppm = 40)) {
  gap <- 8 * mtu / sent_bps
  service <- 8 * mtu / link_bps
  sent <- seq(0, seconds, by = gap)
  through <- forward_frames(sent, service, buffer, ring)
  arrived <- through$leaves + idle_s
  list(
    mtu = mtu, epoch_s = 1700000000, sent_s = sent, arrived_s = arrived, refused = is.na(arrived), pauses_s = through$pauses,
    receiver = \(t_s) t_s * (1 + clock$ppm / 1e6) + clock$offset_s, first_refused_s = sent[which(is.na(arrived))[1]]
  )
}

# Return the time at which each frame leaves the device (NA if the ring rejected the frame), and the times at which PAUSE frames reach the host.
forward_frames <- function(sent, service, buffer, ring) {
  leaves <- rep(NA_real_, length(sent))
  last <- -Inf
  first <- 1L
  pauses <- numeric()
  accepted <- numeric()
  for (i in seq_along(sent)) {
    while (first <= length(accepted) && accepted[first] <= sent[i]) first <- first + 1L
    waiting <- length(accepted) - first + 1L
    if (waiting >= buffer + ring) next
    last <- max(last, sent[i]) + service
    accepted <- c(accepted, last)
    leaves[i] <- last
    if (waiting + 1L >= buffer) pauses <- c(pauses, sent[i] + 1e-5)
  }
  list(leaves = leaves, pauses = pauses)
}

le <- function(x, bytes) vapply(seq_len(bytes) - 1, \(k) floor(x / 256^k) %% 256, numeric(length(x)))

# UDP packets numbered in id and payload, captured with a snapshot length of 54 bytes.
udp_records <- function(t_s, number, mtu, epoch_s) {
  frame <- ethernet(ipv4(udp(5001, 5001, raw(12)), 17, src = "172.16.10.2", dst = "172.16.11.2", length = mtu))
  frame[39:40] <- big(mtu - 20, 2)
  rows <- matrix(as.integer(frame), length(t_s), length(frame), byrow = TRUE)
  rows[, 19:20] <- cbind(floor(number / 256) %% 256, number %% 256)
  rows[, 43:46] <- le(number, 4)
  record_rows(t_s, rows, mtu + 14, epoch_s)
}

pause_records <- function(t_s, quanta, epoch_s) {
  record_rows(t_s, matrix(rep(as.integer(pause_frame(quanta)), length(t_s)), ncol = 60, byrow = TRUE), 60, epoch_s)
}

record_rows <- function(t_s, rows, wire_bytes, epoch_s) {
  at_ns <- round(t_s * 1e9)
  n <- length(t_s)
  list(t_s = t_s, rows = cbind(
    matrix(le(epoch_s + at_ns %/% 1e9, 4), n), matrix(le(at_ns %% 1e9, 4), n), matrix(le(rep(ncol(rows), n), 4), n), matrix(le(rep(wire_bytes, n), 4), n), rows
  ))
}

write_records <- function(..., path = tempfile(fileext = ".pcap")) {
  parts <- list(...)
  t_s <- unlist(lapply(parts, `[[`, "t_s"))
  rows <- unlist(lapply(parts, \(p) lapply(seq_len(nrow(p$rows)), \(i) as.raw(p$rows[i, ]))), recursive = FALSE)
  writeBin(c(capture_bytes(list(), epoch_s = 0), unlist(rows[order(t_s)])), path)
  path
}

# The two captures of a device's trial, with the clocks of their hosts.
device_captures <- function(trial, folder = tempfile("device-")) {
  dir.create(folder, showWarnings = FALSE)
  number <- seq_along(trial$sent_s)
  arrived <- which(!trial$refused)
  list(
    sender = write_records(udp_records(trial$sent_s, number, trial$mtu, trial$epoch_s), pause_records(trial$pauses_s, 1000, trial$epoch_s),
                           path = file.path(folder, "src.pcap")),
    receiver = write_records(udp_records(trial$receiver(trial$arrived_s[arrived]), number[arrived], trial$mtu, trial$epoch_s), path = file.path(folder, "dst.pcap"))
  )
}

# Beacons that one host received: `at_s` are true times, `clock` converts them to the host's clock, `late_us` is the delay on a busy host.
heard_beacons <- function(at_s, clock = identity, late_us = 0, epoch_s = 1700000000) {
  x <- data.table::data.table(t_ns = round(clock(at_s) * 1e9 + late_us * 1e3), direction = "in", src = "10.0.0.9", id = 1, sequence = seq_along(at_s))
  data.table::setattr(x, "epoch_s", epoch_s)
}

beacon_file <- function(x, path = tempfile(fileext = ".csv")) {
  t_ns <- sprintf("%.0f%09.0f", attr(x, "epoch_s") + x$t_ns %/% 1e9, x$t_ns %% 1e9)
  writeLines(c("t_ns,direction,src,id,sequence,sent_ns", paste(t_ns, x$direction, x$src, x$id, x$sequence, "", sep = ",")), path)
  path
}
