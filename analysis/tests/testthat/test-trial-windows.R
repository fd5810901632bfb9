udp_at <- function(t_s, port = 1, bytes = 972) {
  frames <- lapply(seq_along(t_s), \(i) ethernet(ipv4(udp(port, 2, raw(bytes)), 17, id = i)))
  list(frames = frames, t_ns = t_s * 1e9)
}
flow_of_port <- \(port) sprintf("10.0.0.1:%d > 10.0.0.2:2", port)

two_flows <- function() {
  early <- udp_at(seq(0.05, 9.95, by = 0.1), 1)
  late <- udp_at(seq(5.05, 7.95, by = 0.1), 3)
  order <- order(c(early$t_ns, late$t_ns))
  read_pcap(write_capture(c(early$frames, late$frames)[order], t_ns = c(early$t_ns, late$t_ns)[order]))
}

test_that("every flow has the same windows on the trial's clock, with zero bytes where it sent nothing", {
  found <- trial_windows(two_flows(), 1700000000, 1, to_s = 10)
  expect_equal(found[, .N, by = flow]$N, c(10L, 10L))
  expect_equal(found[flow == flow_of_port(3)]$bytes, c(rep(0, 5), rep(10000, 3), rep(0, 2)))
  expect_equal(found[flow == flow_of_port(3)]$t_s, 0:9)
  expect_false(any(found$partial))
  expect_equal(mean(found[flow == flow_of_port(1)]$throughput_bps), 80000)
})

test_that("a requested flow without packets is zero in all windows, and packets before the start of the trial are left out", {
  found <- trial_windows(two_flows(), 1700000002.5, 0.5, to_s = 3, flows = c(flow_of_port(1), "10.9.9.9:1 > 10.0.0.2:2"))
  expect_equal(found[flow == flow_of_port(1)]$packets, rep(5, 6))
  expect_equal(found[flow == "10.9.9.9:1 > 10.0.0.2:2"]$bytes, rep(0, 6))
})

test_that("a window that is only partly covered by the time span or by a truncated capture is marked as partial", {
  expect_equal(trial_windows(two_flows(), 1700000000, 1, to_s = 2.5, flows = flow_of_port(1))$partial, c(FALSE, FALSE, TRUE))
  cut <- two_flows()
  data.table::setattr(cut, "truncated", TRUE)
  expect_equal(which(trial_windows(cut, 1700000000, 1, to_s = 12, flows = flow_of_port(1))$partial), 10:12)
})

test_that("the bytes of all windows add up to the bytes of the capture, for every width and layer", {
  x <- read_pcap(committed_pair()$sender)
  for (width_s in c(0.013, 0.1, 0.7)) for (layer in c("ip", "frame", "payload")) {
    found <- trial_windows(x, attr(x, "epoch_s"), width_s, layer = layer)
    expect_equal(sum(found$bytes), sum(as.double(x[!is.na(flow)][[paste0(layer, "_bytes")]]), na.rm = TRUE))
  }
})

test_that("trimming by the trial's clock returns a capture", {
  kept <- trim_capture(two_flows(), 1700000000, 5, 7)
  expect_equal(nrow(kept), 40)
  expect_equal(attr(kept, "epoch_s"), 1700000000)
  expect_equal(nrow(trim_capture(two_flows(), 1700000000)), 130)
  expect_equal(goodput(kept, flow_of_port(1))$data_packets, 0)
})

test_that("a capture that was indexed by a lookup can be looked up again after trimming", {
  x <- two_flows()[, third := seq_len(.N) %% 3L]
  x[third == 1L] # data.table stores the row numbers of this lookup as an index
  expect_false(is.null(attr(x, "index")))
  kept <- trim_capture(x, 1700000000, 5, 7)
  expect_equal(kept[third == 1L]$t_ns, kept$t_ns[kept$third == 1L])
})

test_that("bytes are NA in a window with a packet of unknown payload, per flow and for all flows together; other windows are not affected", {
  # A snapshot length of 46 bytes cuts the TCP data offset: a segment of 40 bytes of IP has no payload, a longer one may have payload or only options.
  arp <- ethernet(raw(28), 0x0806)
  frames <- list(ethernet(ipv4(tcp(payload = raw(100)), 6)), arp, ethernet(ipv4(tcp(), 6)), arp, ethernet(ipv4(tcp(payload = raw(50)), 6)))
  cut <- frames
  cut[[5]] <- cut[[5]][1:46]
  path <- write_capture(cut, t_ns = c(0.1, 0.2, 1.1, 1.2, 2.1) * 1e9, wire_bytes = lengths(frames))
  x <- read_pcap(path)
  expect_equal(trial_windows(x, 1700000000, 1, to_s = 4, layer = "payload")[, .(bytes, throughput_bps, packets)],
               data.table::data.table(bytes = c(100, 0, NA, 0), throughput_bps = c(800, 0, NA, 0), packets = c(1, 1, 1, 0)))
  expect_equal(trial_windows(x, 1700000000, 1, to_s = 4, layer = "ip")$bytes, c(140, 40, 90, 0))
  for (columns in list("usual", c("t_ns", "flow", "id", "payload_bytes", "ip_bytes"))) for (by in list("flow", NULL)) {
    y <- read_pcap(path, columns)
    found <- throughput_windows(y[is.null(by) | !is.na(flow)], 1, from_s = -0.1, to_s = 3.9, by = by, layer = "payload")
    expect_identical(found$bytes, c(100, 0, NA, 0))
    expect_identical(found$throughput_bps, c(800, 0, NA, 0))
  }
})
