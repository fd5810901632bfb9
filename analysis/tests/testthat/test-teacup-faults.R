# Fifteen faults of TEACUP 1.1's analysis changed results: test N shows that samovar does not have fault N. Numbers 11 and 12 are partly
# about planning, and are also tested in tests/unit: netem's own limit in recipes/test_bottleneck.py, a bandwidth-delay product with the wrong packet
# size and unknown units in experiment/test_formulas.py and experiment/test_units.py.

constant_flow <- function(rate_bps, seconds, on = \(t_s) TRUE, port = 1, bytes = 1000) {
  t_s <- seq(0, seconds - 1e-9, by = 8 * bytes / rate_bps)
  t_s <- t_s[vapply(t_s, on, TRUE)]
  frames <- lapply(seq_along(t_s), \(i) ethernet(ipv4(udp(port, 2, raw(12)), 17, id = i, length = bytes)))
  read_pcap(write_capture(frames, t_ns = round(t_s * 1e9)))
}
udp_flow <- \(port = 1) sprintf("10.0.0.1:%d > 10.0.0.2:2", port)

test_that("TEACUP fault 1: a flow of 1.2 Mbit/s is 1.2 Mbit/s in every window, not a ramp of cumulative totals", {
  found <- trial_windows(constant_flow(1.2e6, 5), 1700000000, 1, to_s = 5)
  expect_equal(found$throughput_bps, rep(1.2e6, 5))
})

test_that("TEACUP fault 2: every metric of the package is documented with its unit", {
  page <- readLines(file.path(traces_folder(), "..", "..", "docs", "reference", "metrics.md"))
  page <- page[grep("fab schema: metrics -->", page, fixed = TRUE):grep("<!-- end -->", page, fixed = TRUE)[1]]
  names <- sub("^- ([^:]+): .*", "\\1", grep("^- `", page, value = TRUE))
  documented <- gsub("`", "", unlist(strsplit(names, ", ", fixed = TRUE)))
  expect_setequal(documented, known_names("metric"))
  expect_false(anyDuplicated(documented) > 0)
  # The page says that a name ends with the metric's unit, and that other metrics are counts, ratios or scores.
  units <- metric_unit(documented)
  scores <- c("share", "ratio", "R", "MOS")
  counts <- c("recoveries", "timeouts", "reductions", "failures", "cycles", "frames", "episodes", "objects", "stalls", "switches", "queries")
  with_unit <- !units %in% c(scores, counts)
  expect_setequal(units[with_unit], c("bit/s", "bytes", "ms", "s", "us", "ppm", "packets"))
  expect_true(all(endsWith(documented[with_unit], paste0("_", sub("bit/s", "bps", units[with_unit], fixed = TRUE)))))
})

test_that("TEACUP fault 3: a misspelt option is an error, not ignored", {
  folder <- small_campaign()
  expect_error(analyse_campaign(folder, figures = list(list(figure = "rtt-cdf", axs = "log"))), "did you mean .axis.", class = "samovar_error_name")
})

test_that("TEACUP fault 4: trial 1 does not use the files of trial 10, and port 500 does not match packets of port 5001", {
  folder <- small_campaign()
  first <- basename(trial_named(folder, "window-newreno-9KB"))
  manifest <- read_campaign(folder)$manifests[[first]]
  before <- measure_trial(folder, manifest)
  twin <- file.path(folder, "trials", paste0(first, "0"))
  dir.create(twin)
  file.copy(list.files(trial_named(folder, "buffer-newreno-9999KB-600"), full.names = TRUE), twin, recursive = TRUE)
  expect_equal(measure_trial(folder, manifest), before)
  both <- lapply(c(500, 5001), \(port) constant_flow(1e6, 0.1, port = port))
  capture <- data.table::rbindlist(lapply(both, \(x) data.table::as.data.table(x)[, flow := as.character(flow)]))[, flow := factor(flow)]
  for (name in c("epoch_s", "path")) data.table::setattr(capture, name, attr(both[[1]], name))
  flow <- list(generator = "iperf3-udp", port = 500, from_address = "10.0.0.1", to_address = "10.0.0.2")
  expect_equal(flow_in_capture(flow, capture), udp_flow(500))
  samples <- data.table::data.table(sport = c(500, 5001, 1500), dport = 9)
  expect_equal(nrow(of_port(samples, 500)), 1)
})

test_that("TEACUP fault 5: rates are unbiased by the edges of a window and by silence: 8 Mbit/s is 8, and 1.76 Mbit/s every other second is 880 kbit/s", {
  steady <- trial_windows(constant_flow(8e6, 10), 1700000000, 1, to_s = 10)
  expect_equal(mean(steady$throughput_bps), 8e6)
  expect_equal(diff(range(steady$throughput_bps)), 0)
  on_off <- trial_windows(constant_flow(1.76e6, 10, \(t_s) floor(t_s) %% 2 == 0), 1700000000, 0.25, to_s = 10)
  expect_equal(nrow(on_off), 40)
  expect_equal(mean(on_off$throughput_bps), 0.88e6, tolerance = 0.01)
})

test_that("TEACUP fault 6: a window's time is its midpoint, for every width", {
  burst <- constant_flow(8e6, 10, \(t_s) t_s >= 5 && t_s < 6)
  for (width_s in c(0.05, 0.5, 1)) {
    found <- trial_windows(burst, 1700000000, width_s, to_s = 10)
    expect_equal(stats::weighted.mean(found$middle_s, found$bytes), 5.5, tolerance = 0.002)
  }
})

test_that("TEACUP fault 7: flows that start at different times are compared over the same span of the trial", {
  x <- constant_flow(8e6, 10, \(t_s) t_s >= 4)
  moved <- trim_capture(x, 1700000000, 4, 6)
  expect_equal(range(seconds_since(moved, 1700000000)), c(4, 5.999))
  series <- rate_series("late", x, udp_flow(), 1700000000)
  expect_equal(series$t_s[1], 0.05)
  expect_true(all(series$mid[series$t_s < 3.9] == 0))
})

test_that("TEACUP fault 8: a replicate is one value: a trial with a thousand windows has the weight of one with ten", {
  rows <- \(trial, n, value) data.table::data.table(trial = trial, part = "p", cc = "x", flow = as.character(seq_len(n)), metric = "m", unit = "u", value = value)
  found <- summarise_metrics(rbind(rows("a", 1000, 1), rows("b", 10, 5), rows("c", 10, 9)), "cc")
  expect_equal(unlist(found[, .(median, mean, n)], use.names = FALSE), c(5, 5, 3))
})

test_that("TEACUP fault 9: options of one figure do not carry over to the next", {
  folder <- small_campaign()
  choose <- \(rwnd) select_trials(list(campaign = read_campaign(folder)), list(figure = "rtt-cdf", rwnd = rwnd))$rwnd
  expect_equal(choose("9KB"), "9KB")
  expect_equal(choose("15KB"), "15KB")
})

test_that("TEACUP fault 10: reordering, an early end of a capture and window updates are not counted as losses or duplicates", {
  sent <- lapply(1:20, \(i) ethernet(ipv4(udp(1, 2, big(i, 12)), 17, id = i)))
  ref <- read_pcap(write_capture(sent))
  early <- read_pcap(write_capture(sent[c(1, 3, 2, 4:12)]))
  expect_equal(loss_by_flow(ref, early, udp_flow())$lost_packets, 0)
  expect_equal(arrival_order(ref, early, udp_flow())$reordered_packets, 1)
  updates <- conversation(c(list(list(seq = 1, bytes = 10)), lapply(1:4, \(k) list(from = "b", ack = 1, window = 1000 + k))))
  expect_equal(duplicate_acks(read_pcap(write_capture(updates)), flow_a)$duplicate_acks, 0)
})

test_that("TEACUP fault 11: packets dropped by netem are reported in addition to the drops of the bottleneck", {
  rows <- c("t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,overlimits",
            "1700000000000000000,eth2,netem,20:,root,0,0,0,0,5,0", "1700000000000000000,eth2,pfifo,10:,1:1,0,0,0,0,0,0",
            "1700000001000000000,eth2,netem,20:,root,0,0,0,0,48,0", "1700000001000000000,eth2,pfifo,10:,1:1,0,0,0,0,7,0")
  path <- text_file(rows)
  expect_equal(netem_drops(read_queue(path, handle = NULL)), 43)
  found <- queue_metrics(list(queue = queue_samples(list(t_start_s = 1700000000, path = \(name) path))))
  expect_equal(found$netem_drops_packets, 43)
  expect_true(is.na(netem_drops(read_queue(path, handle = NULL)[qdisc == "pfifo"])))
})

test_that("TEACUP fault 12: half a millisecond of delay is not rounded, and a bandwidth-delay product uses the packet size of its path, not 600 bytes", {
  manifest <- list(resolved = list(mtu_bytes = 1500, path = list(rtt_s = 0.0005, down = list(rate_bps = 12e6, buffer_packets = 10))))
  theory <- rwnd_theory(list(manifests = list(a = manifest)), data.table::data.table(id = "a"), c(100, 50000))
  # At 12 Mbit/s a packet of 1500 bytes takes a millisecond: a full queue of ten adds 10 ms to the delay of half a millisecond.
  expect_equal(range(theory$value), c(0.5, 10.5))
  windows <- data.table::data.table(t_s = 0:1, cwnd_bytes = c(749, 751), rwnd_bytes = 1e6, in_flight_bytes = c(749, 751), segment_bytes = 100)
  expect_equal(as.character(flow_limits(windows, 12e6, 0.5)$limit), c("cwnd", "link"))
})

test_that("TEACUP fault 13: the measurements of a trial do not depend on the order of the requested figures", {
  folder <- small_campaign()
  quietly(analyse_campaign(folder, figures = list("rtt-cdf", "queue-time"), cores = 1L))
  other <- small_campaign()
  quietly(analyse_campaign(other, figures = list("queue-time", "rtt-cdf"), cores = 1L))
  sums <- \(at) unname(tools::md5sum(file.path(at, "tables", c("metrics.csv", "summary.csv"))))
  expect_equal(sums(folder), sums(other))
})

test_that("TEACUP fault 14: a smoothed RTT of a quarter of a millisecond is not rounded", {
  lines <- as_layout(siftr_lines("siftr-13.2-cut.log.gz"), \(f) replace(f, 17, "8"))
  hz_scale <- read_siftr(text_file(lines))
  expect_true(all(hz_scale$srtt_us[!is.na(hz_scale$srtt_us)] == 250))
})

test_that("TEACUP fault 15: a compressed capture is read like a plain one, and two variants of one figure have different file names", {
  plain <- plain_copy(committed_pair()$sender)
  expect_equal(read_pcap(committed_pair()$sender), read_pcap(plain), ignore_attr = TRUE)
  expect_false(entry_name(list(figure = "buffer-cdf", method = "1"), "figure") == entry_name(list(figure = "buffer-cdf", method = "2"), "figure"))
})
