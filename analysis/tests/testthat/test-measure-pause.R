frames_at <- function(t_s, quanta = 1000) {
  x <- data.table::data.table(t_ns = t_s * 1e9, direction = rep("in", length(t_s)), pause_quanta = rep_len(quanta, length(t_s)))
  data.table::setattr(x, "epoch_s", 1700000000)
}

test_that("a PAUSE frame of 1000 quanta stops 100 Mbit/s for 5.12 ms, and one of 0 quanta ends the pause", {
  found <- pause_intervals(frames_at(c(1, 2, 2.002), c(1000, 1000, 0)), 100e6)
  expect_equal(found$paused_s, c(0.00512, 0.002))
  expect_equal(found$from_ns, c(1e9, 2e9))
})

test_that("PAUSE frames that arrive before a pause is over prolong this pause, and a tenth of a second without frames ends an episode", {
  found <- pause_intervals(frames_at(c(1, 1.004, 1.008, 1.05, 3)), 100e6)
  expect_equal(found$paused_s, c(0.01312, 0.00512, 0.00512))
  expect_equal(found$frames, c(3L, 1L, 1L))
  expect_equal(found$episode, c(1L, 1L, 2L))
  expect_equal(nrow(pause_intervals(frames_at(numeric()), 1e8)), 0)
})

test_that("PAUSE frames are found both in a capture and in a logger's trace", {
  capture <- read_pcap(write_capture(list(pause_frame(1000), ethernet(ipv4(udp(1, 2), 17)), pause_frame(0)), t_ns = c(1, 2, 3) * 1e6))
  trace <- read_pause_frames(text_file(c("t_ns,interface,direction,src,opcode,classes,quanta", "1700000000001000000,eth1,in,a,0x0001,,1000",
                                         "1700000000002000000,eth1,in,a,0x0101,1,1 0 0 0 0 0 0 0", "1700000000003000000,eth1,in,a,0x0001,,0")))
  expect_equal(pause_intervals(capture, 1e8), pause_intervals(trace, 1e8))
  expect_equal(pause_intervals(capture, 1e8)$paused_s, 0.002)
  expect_error(pause_intervals(data.table::data.table(t_ns = 1), 1e8), class = "samovar_error_argument")
})

test_that("the time to the first drop is measured from the first PAUSE frame of its episode", {
  drops <- frames_at(c(1.15, 1.16, 9.2))[, .(t_ns, packets = c(1, 5, 2))]
  data.table::setattr(drops, "epoch_s", 1700000000)
  found <- pause_to_drop(frames_at(c(1, 1.05, 1.1, 1.14, 5, 5.01, 9, 9.08, 9.16)), drops)
  expect_equal(found$pause_to_drop_s, c(0.15, NA, 0.2))
  expect_equal(found$drops, c(6, 0, 2))
})

test_that("the number of drops is the growth of the interface's counter, and their time that of the first packet that never arrived", {
  nic <- data.table::data.table(t_ns = (0:5) * 1e8, interface = rep("eth1", 6), tx_dropped = c(3, 3, 7, 7, 8, 8))
  data.table::setattr(nic, "epoch_s", 1700000000)
  expect_equal(local_drops(nic)[, .(t_ns, packets)], data.table::data.table(t_ns = c(2e8, 4e8), packets = c(4, 1)), ignore_attr = TRUE)
  lost <- data.table::setattr(data.table::data.table(t_ns = c(0.5e8, 1.3e8, 1.4e8)), "epoch_s", 1700000000)
  expect_equal(local_drops(nic, lost = lost)$t_ns, c(1.3e8, 4e8))
  expect_null(local_drops())
})

test_that("a FreeBSD host's drops are the collapses of cwnd after ENOBUFS that SIFTR recorded", {
  x <- read_siftr(text_file(siftr_lines("siftr-14.0-cdg-cut.log.gz")))
  expect_equal(nrow(local_drops(siftr = x)), 0)
  refused <- data.table::copy(x)
  late <- refused[, which(as.character(flow) == as.character(refused$flow[100]))]
  for (change in list(list("cwnd_bytes", 90000), list("ssthresh_bytes", 44888), list("flags", 996))) data.table::set(refused, late, change[[1]], change[[2]])
  data.table::set(refused, late[5:8], "cwnd_bytes", 1448)
  found <- local_drops(siftr = refused)
  expect_equal(found$t_ns, refused$t_ns[late[5]])
})

test_that("with skewed clocks both methods estimate buffers of 2720 and of 911 frames to one percent", {
  for (built in list(list(2720, 1500, 80e6, 35e6, 1.2), list(2720, 600, 80e6, 31e6, 0.5), list(911, 1500, 60e6, 35e6, 0.7), list(911, 600, 50e6, 31e6, 0.4))) {
    trial <- device_trial(built[[1]], built[[2]], built[[3]], built[[4]], seconds = built[[5]])
    files <- device_captures(trial)
    at_s <- seq(-1, 4, by = 0.1)
    set.seed(3)
    late_us <- replace(abs(rnorm(51, 4, 1.5)), 17, 3000)
    offset <- clock_offset(heard_beacons(at_s), heard_beacons(at_s, trial$receiver, late_us))
    ref <- read_pcap(files$sender)
    found <- buffer_by_pause(ref, read_pcap(files$receiver), data_flows(ref, "udp")$flow, offset, ref, built[[2]])
    expect_equal(found$method1_packets, built[[1]], tolerance = 0.003)
    expect_equal(found$method1_raw_packets, built[[1]], tolerance = 0.01)
    expect_equal(found$method2_packets, built[[1]], tolerance = 0.003)
    expect_equal(found$rate_bps, built[[4]], tolerance = 1e-3)
    # With clocks that are not aligned, sent and arrived packets are counted a quarter of a second apart.
    blind <- buffer_by_pause(ref, read_pcap(files$receiver), data_flows(ref, "udp")$flow, assumed_offset(ref), ref, built[[2]])
    expect_equal(blind$method1_packets, built[[1]], tolerance = 0.01)
    expect_equal(blind$method2_packets, built[[1]], tolerance = 0.01)
    expect_gt(abs(blind$method1_raw_packets - built[[1]]), 400)
  }
})

test_that("the buffer of a device that sent no PAUSE frame is not estimated", {
  trial <- device_trial(5000, 1500, 80e6, 35e6, seconds = 0.1)
  files <- device_captures(trial)
  ref <- read_pcap(files$sender)
  expect_length(trial$pauses_s, 0)
  expect_null(buffer_by_pause(ref, read_pcap(files$receiver), data_flows(ref, "udp")$flow, assumed_offset(ref), ref, 1500))
})

test_that("the buffer of a device is not estimated if the captures end before the buffer was emptied", {
  trial <- device_trial(400, 1500, 80e6, 40e6, seconds = 0.5)
  files <- device_captures(trial)
  ref <- read_pcap(files$sender)
  mon <- read_pcap(files$receiver)
  last_s <- trial$receiver(trial$arrived_s[max(which(trial$sent_s < trial$pauses_s[1]))])
  until <- \(to_s) buffer_by_pause(ref, trim_capture(mon, trial$epoch_s, to_s = to_s), data_flows(ref, "udp")$flow, assumed_offset(ref), ref, 1500)
  expect_null(until(last_s - 1e-6))
  expect_equal(until(last_s + 1e-6)$method1_packets, 400, tolerance = 0.01)
})

test_that("a capture that begins after the device's buffer has begun to fill gives no estimate", {
  trial <- device_trial(400, 1500, 80e6, 40e6, seconds = 0.5)
  files <- device_captures(trial)
  ref <- read_pcap(files$sender)
  mon <- read_pcap(files$receiver)
  buffer <- \(ref, mon) buffer_by_pause(ref, mon, data_flows(ref, "udp")$flow, assumed_offset(ref), ref, 1500)
  expect_equal(buffer(ref, mon)$method1_packets, 400, tolerance = 0.01)
  half_s <- trial$sent_s[max(which(trial$sent_s < trial$pauses_s[1])) %/% 2]
  later <- mon[t_ns >= min(t_ns) + half_s * 1e9]
  expect_null(buffer(ref, later))
  # If the capture had begun in time but the first packets were lost, there is an estimate.
  data.table::setattr(later, "first_ns", min(mon$t_ns) - 1e9)
  expect_gt(buffer(ref, later)$idle_ms, buffer(ref, mon)$idle_ms)
  expect_null(buffer(ref[t_ns >= min(t_ns) + half_s * 1e9], mon))
})

# Write the folder of a campaign that has only the traces of one trial on a simulated device.
device_folder <- function(trial) {
  folder <- tempfile("campaign-")
  at <- file.path(folder, "trials", "t1", "traces")
  dir.create(at, recursive = TRUE)
  device_captures(trial, at)
  beacons_s <- seq(-1, 4, by = 0.1)
  beacon_file(heard_beacons(beacons_s), file.path(at, "src-beacons.csv"))
  beacon_file(heard_beacons(beacons_s, trial$receiver), file.path(at, "dst-beacons.csv"))
  sampled <- seq(0, 1, by = 0.01)
  refused <- vapply(sampled, \(t) sum(trial$refused[trial$sent_s <= t]), 0)
  writeLines(c("t_ns,interface,tx_dropped", sprintf("%.0f%09.0f,eth1,%d", 1700000000 + sampled %/% 1, (sampled %% 1) * 1e9, refused)), file.path(at, "src-nic.csv"))
  folder
}

device_manifest <- function(mtu) {
  host <- \(role) list(role = role, interfaces = list("eth1"))
  file <- \(path, kind, host, logger) list(path = file.path("traces", path), kind = kind, host = host, logger = logger)
  flow <- list(label = "flood", generator = "iperf-udp", from = "src", to = "dst", from_address = "172.16.10.2", to_address = "172.16.11.2", port = 5001, start_s = 0)
  list(id = "t1", t_start_s = 1700000000, resolved = list(mtu_bytes = mtu, flows = list(flow), hosts = list(src = host("sender"), dst = host("receiver")), path = list()),
       files = list(file("src.pcap", "capture", "src", "tcpdump"), file("dst.pcap", "capture", "dst", "tcpdump"), file("src-beacons.csv", "logger", "src", "beacons"),
                    file("dst-beacons.csv", "logger", "dst", "beacons"), file("src-nic.csv", "logger", "src", "nic")))
}

test_that("a trial's files give its metrics: buffer, clocks, drops and the time to the first drop", {
  trial <- device_trial(911, 1500, 80e6, 35e6, ring = 256, seconds = 0.5)
  found <- measure_trial(device_folder(trial), device_manifest(1500))
  value <- \(name) found$metrics[metric == name]$value
  expect_equal(value("buffer_pause_packets"), 911, tolerance = 0.003)
  expect_equal(value("buffer_delay_packets"), 911, tolerance = 0.003)
  expect_equal(value("buffer_pause_raw_packets"), 911, tolerance = 0.01)
  expect_equal(value("local_drops_packets"), sum(trial$refused))
  # A ring of 256 descriptors fills at 80 - 35 = 45 Mbit/s, or 3750 packets/s, so it is full after 256 / 3750 s.
  expect_equal(value("pause_to_drop_median_s"), 256 / 3750, tolerance = 0.01)
  expect_equal(value("clock_drift_ppm"), -40, tolerance = 1e-3)
  expect_equal(value("owd_min_ms"), 1 + 8e3 * 1500 / 35e6, tolerance = 0.01)
  expect_equal(nrow(found$pauses), 1)
  expect_false(anyNA(found$metrics$unit))
})

test_that("the series of PAUSE frames names the logger that recorded the frames, and drops are NA if no counter was recorded", {
  path <- tempfile(fileext = ".csv")
  frame <- \(t_ns) paste0(t_ns, ",eth0,in,00:00:00:00:00:01,0x0001,,65535")
  writeLines(c("t_ns,interface,direction,src,opcode,classes,quanta", frame(c("1700000001000000000", "1700000002000000000"))), path)
  capture <- read_pcap(write_capture(list(ethernet(ipv4(udp(), 17)))))
  traces <- list(t_start_s = 1700000000, path = \(recorded, of) if (recorded == "pause-frames") path else character(), capture = \(of, flow = NULL) capture, within = \(x, of) x)
  seen <- series_of_pause(list2env(list(traces = traces, host = "src", frame = list(from_s = 0, to_s = 10, width_s = 1))))
  expect_equal(sum(seen$value), 2)
  expect_equal(attr(seen, "from"), "pause-frames")
  flow <- list(from = "src", from_address = "10.0.0.1", to_address = "10.0.0.2")
  device <- device_of_flow(flow, capture, NULL, NA, traces, list(resolved = list(mtu_bytes = 1500, hosts = list(src = list(interfaces = "eth0")))), NULL)
  expect_equal(device$pauses$drops, c(NA_real_, NA_real_))
})
