# Values of a flow that SIFTR reports: flags, local send failures, and srtt compared with the RTT of captures. The data are the first 2.6 s of a trial on emulated hosts with FreeBSD
# 14.0 over a path with 4 Mbit/s, an MTU of 600 and 40 ms; the receive window limits the flow to 14 KB.
limited <- "172.16.1.2:43342 > 172.16.2.2:5001"
limited_data <- function(name) test_path("data", name)
limited_log <- function() {
  log <- read_siftr(limited_data("siftr-14.0-window-limited.log.gz"))
  # The footer is that of the complete log.
  attr(log, "integrity")[, whole := TRUE]
  log
}
limited_capture <- function(host) read_pcap(limited_data(sprintf("window-limited-%s.pcap.gz", host)))

# srtt in 1/32 ms after each RTT sample in whole ms, by the equation in tcp_xmit_timer() of tcp_input.c at hz 1000.
kernel_srtt <- function(samples_ms, first) {
  Reduce(\(srtt, rtt) max(1, srtt + 4 * rtt - srtt %/% 8), samples_ms, first, accumulate = TRUE)[-1]
}

# Acknowledgements of new data: `srtt` that SIFTR logs after each, in 1/32 ms; `rtt_ms`, TSval of the next segment less TSecr; RTT of the first and last segment
# that it acknowledges.
acknowledged <- function(log, capture) {
  out <- capture[as.character(flow) == limited & payload_bytes > 0]
  back <- capture[as.character(flow) == reverse_flow(limited) & bitwAnd(flags, 2L) == 0L]
  back <- back[ack > shift(cummax(ack), fill = 0)]
  t_ns <- log$t_ns + (attr(log, "epoch_s") - attr(capture, "epoch_s")) * 1e9
  into <- which(log$direction == "in")
  into <- into[findInterval(back$t_ns, t_ns[into]) + 1L]
  answer <- out[findInterval(back$t_ns, out$t_ns) + 1L]
  sent <- unique(out[, .(seq, t_ns, tsval)], by = "seq")[order(seq)]
  last <- sent[findInterval(back$ack - 1, sent$seq)]
  oldest <- sent[findInterval(c(sent$seq[1], back$ack[-nrow(back)]), sent$seq)]
  data.table(srtt = round(log$srtt_us[into + 1L] * 32 / 1e3), kernel_ms = answer$tsval - back$tsecr, answered_ms = (answer$t_ns - back$t_ns) / 1e6,
             first_ms = (back$t_ns - oldest$t_ns) / 1e6, last_ms = (back$t_ns - last$t_ns) / 1e6, echoes_oldest = back$tsecr == oldest$tsval)
}

test_that("SIFTR's srtt is the kernel's moving mean of RTTs by time stamps, which can be computed from the capture", {
  found <- acknowledged(limited_log(), limited_capture("src"))[answered_ms < 3 & !is.na(srtt)]
  expect_gt(nrow(found), 400)
  made <- kernel_srtt(found$kernel_ms[-1], found$srtt[1])
  away_ms <- abs(made - found$srtt[-1]) / 32
  expect_lt(stats::median(away_ms), 0.15)
  expect_gt(mean(away_ms < 0.5), 0.85)
  expect_equal(stats::median(made) / 32, stats::median(found$srtt) / 32, tolerance = 0.005)
})

test_that("srtt exceeds the median RTT of packet pairs by the delay of acknowledgements and by the mean above the median", {
  log <- limited_log()
  capture <- limited_capture("src")
  found <- acknowledged(log, capture)
  pairs <- packet_pair_rtt(capture, limited_capture("dst"), limited, reverse_flow(limited))
  srtt_ms <- stats::median(log[in_flight_bytes > 0]$srtt_us) / 1e3
  expect_equal(stats::median(pairs$rtt_ms), 45.6, tolerance = 0.01)
  expect_equal(srtt_ms, 49.2, tolerance = 0.01)
  # Each acknowledgement answers two segments and echoes the time stamp of the first, which waited for the second.
  expect_gt(mean(found$echoes_oldest, na.rm = TRUE), 0.98)
  expect_equal(stats::median(found$last_ms), stats::median(pairs$rtt_ms), tolerance = 0.01)
  expect_gt(stats::median(found$first_ms) - stats::median(found$last_ms), 1.5)
  # srtt is above the median of the samples, since a moving mean spreads each late sample over the samples after it.
  expect_gt(srtt_ms, stats::median(found$first_ms) + 0.5)
  expect_lt(srtt_ms, mean(found$first_ms))
})

test_that("flags show SACK, time stamps and recovery in all layouts, and ECN if the bits of ECN in this kernel release are known", {
  flags <- siftr_flags(limited_log())
  expect_true(all(flags$sack & flags$timestamps) && !any(flags$ecn))
  expect_equal(sum(flags$fast_recovery), 32)
  old <- siftr_lines("siftr-13.2-cut.log.gz")
  log <- read_siftr(text_file(old))
  flags <- siftr_flags(log)
  expect_equal(flags$sack, log$sack == 1)
  expect_true(any(flags$congestion_recovery) && all(is.na(flags$ecn)))
  earlier <- as_layout(sub("sysver=1302001", "sysver=1203000", old, fixed = TRUE), \(f) replace(f, 19, as.integer(f[19]) %% 2^26 + 2^26))
  flags <- siftr_flags(read_siftr(text_file(earlier)))
  expect_true(all(flags$ecn) && !any(flags$cwr_pending))
  new <- as_layout(siftr_lines("siftr-14.0-cdg-cut.log.gz"), \(f) replace(f, 9, "230"))
  flags <- siftr_flags(read_siftr(text_file(new)))
  expect_true(all(flags$ecn & flags$cwr_pending & flags$ece_pending))
})

test_that("packets that SIFTR recorded and the sender's capture lacks count as refused by the sender's interface", {
  log <- limited_log()
  capture <- limited_capture("src")
  expect_equal(refused_packets(log, capture, limited), 0)
  refused <- which(as.character(capture$flow) == limited)[c(200, 201, 400)]
  lacking <- capture[-refused]
  setattr(lacking, "epoch_s", attr(capture, "epoch_s"))
  expect_equal(refused_packets(log, lacking, limited), 3)
  expect_true(is.na(refused_packets(log[direction == "in"], capture, limited)))
})

flow_of_log <- list(label = "bulk", from = "src", from_address = "172.16.1.2", to_address = "172.16.2.2", port = 5001)

samples_of_log <- function(log) {
  samples <- samples_of_siftr(log, flow_of_log)
  samples[, t_s := seconds_since(samples, attr(samples, "epoch_s"))]
}

test_that("metrics, series and distributions contain the values that SIFTR reports", {
  samples <- samples_of_log(limited_log())
  near <- limited_capture("src")
  x <- list(sender = samples, cycles = cwnd_cycles(samples), near = near, name = limited)
  m <- sender_metrics(x)
  expect_equal(m[c("ssthresh_median_packets", "send_window_median_bytes", "receive_window_median_bytes")],
               list(ssthresh_median_packets = 13, send_window_median_bytes = 14080, receive_window_median_bytes = 2097152), tolerance = 0.01)
  expect_equal(m$rto_median_ms, 260, tolerance = 0.05)
  expect_lte(m$sender_flight_median_bytes, m$send_window_median_bytes)
  r <- reduction_metrics(x)
  expect_equal(r[c("recoveries", "timeouts", "reductions_without_loss", "local_send_failures", "refused_packets", "sack_negotiated", "ecn_negotiated")],
               list(recoveries = 1, timeouts = 0, reductions_without_loss = 0, local_send_failures = 0, refused_packets = 0, sack_negotiated = 1, ecn_negotiated = 0))
  series <- flow_series("bulk", samples, data.table::data.table(t_s = double(), rtt_ms = double()), near, limited, attr(near, "epoch_s"))
  expect_true(all(names(sender_units) %in% series$quantity))
  expect_true(all(is.finite(series$low)))
  quantiles <- sender_quantiles(samples)
  expect_equal(quantiles[quantity == "srtt" & share == 0.5]$value, m$srtt_median_ms, tolerance = 0.001)
  expect_setequal(quantiles$quantity, names(sender_units))
})

test_that("a flow has the same metrics from every layout of SIFTR, whatever the units of its times", {
  flow <- list(label = "bulk", from = "src", from_address = "172.16.10.2", to_address = "172.16.11.2", port = 5201)
  old <- siftr_lines("siftr-13.2-cut.log.gz")
  measured <- \(lines) {
    samples <- samples_of_siftr(read_siftr(text_file(lines)), flow)
    samples[, t_s := t_ns / 1e9]
    x <- list(sender = samples, cycles = cwnd_cycles(samples), near = NULL)
    c(sender_metrics(x), reduction_metrics(x))
  }
  found <- measured(old)
  expect_equal(found[c("recoveries", "timeouts", "local_send_failures", "sack_negotiated")],
               list(recoveries = 1, timeouts = 1, local_send_failures = 0, sack_negotiated = 1))
  expect_gt(found$rto_median_ms, found$srtt_median_ms)
  expect_true(is.na(found$ecn_negotiated))
  for (fields in list(1:25, 1:26, c(1:26, 26))) expect_equal(measured(as_layout(old, \(f) f[fields])), found)
  # SIFTR 1.3.0 records no hash; its times are in us instead of ticks of 1/32 ms and 1 ms
  new <- as_layout(sub("siftrver=1.2.4\thz=1000\ttcp_rtt_scale=32", "siftrver=1.3.0", old, fixed = TRUE),
                   \(f) replace(f, c(17, 20), sprintf("%.0f", as.double(f[c(17, 20)]) * c(1e3 / 32, 1e3)))[-2])
  expect_equal(measured(new), found, tolerance = 1e-4)
})

test_that("a refused packet is a local send failure and not a loss, in metrics and in the cycles of cwnd", {
  log <- limited_log()
  rows <- log[, which(in_flight_bytes > 0 & !siftr_flags(log)$fast_recovery & t_ns > 2e9)][101:104]
  refused <- data.table::copy(log)
  data.table::set(refused, rows, "cwnd_bytes", 548)
  samples <- samples_of_log(refused)
  near <- limited_capture("src")
  found <- reduction_metrics(list(sender = samples, cycles = cwnd_cycles(samples), near = near, name = limited))
  before <- reduction_metrics(list(sender = samples_of_log(log), cycles = cwnd_cycles(samples_of_log(log)), near = near, name = limited))
  expect_equal(found$local_send_failures, 1)
  expect_equal(cwnd_cycles(samples)[cause == "enobufs", .N], 1)
  expect_equal(found[c("recoveries", "timeouts")], before[c("recoveries", "timeouts")])
  expect_equal(found$reductions_without_loss, 0)
})

test_that("metrics of values that a logger does not report are NA, and a tracepoint without states gives no causes of reductions", {
  samples <- data.table::data.table(t_s = 1:4 / 10, cwnd_packets = c(10, 20, 5, 6), ssthresh_packets = c(Inf, Inf, 5, 5), srtt_us = 2e4, unacked_packets = 1,
                                    total_retrans_packets = 0, ca_state = 0L, in_flight_bytes = 1e4, snd_wnd_bytes = 6e4)
  x <- list(sender = samples, cycles = cwnd_cycles(samples), near = NULL, name = limited)
  expect_true(all(is.na(unlist(reduction_metrics(x)))))
  m <- sender_metrics(x)
  expect_true(is.na(m$rto_median_ms) && is.na(m$receive_window_median_bytes))
  expect_equal(m$ssthresh_median_packets, 5)
  expect_null(sender_metrics(list()))
})

test_that("figures show the values that the sender's TCP reports, over time and as a distribution, and the causes of reductions of cwnd", {
  folder <- small_campaign()
  wanted <- list(list(figure = "sender-time", part = "buffer"), list(figure = "sender-cdf", part = "buffer", quantity = "rto"), list(figure = "sender-time", show = "receive-window"))
  quietly(results <- analyse_campaign(folder, figures = wanted, cores = 1L))
  figures <- jsonlite::fromJSON(file.path(folder, "bundle", "figures.json"), simplifyVector = FALSE)
  expect_length(figures, 2) # TCP_INFO has no receive window
  expect_match(figures[[1]]$caption, "srtt is a moving mean of RTTs that include the receiver's delay", fixed = TRUE)
  series <- data.table::fread(file.path(folder, "bundle", figures[[1]]$data))
  expect_setequal(series$quantity, c("cwnd", "ssthresh", "srtt", "rto", "flight", "send-window"))
  shares <- data.table::fread(file.path(folder, "bundle", figures[[2]]$data))
  expect_equal(unique(shares[, .(quantity, unit)]), data.table::data.table(quantity = "rto", unit = "ms"))
  one <- results$metrics[metric == "rto_median_ms" & part == "buffer", stats::median(value)]
  expect_equal(stats::median(shares[share >= 0.5]$value[1]), one, tolerance = 0.1)
  plot <- figure_sender_time(results, select_trials(results, wanted[[1]]))$plot
  marked <- Filter(\(layer) "cause" %in% names(layer$data), plot$layers)[[1]]$data
  expect_equal(as.character(unique(marked$cause)), "fast recovery")
  expect_equal(nrow(marked), nrow(results$cycles[part == "buffer"]))
})
