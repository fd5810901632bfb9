bulk <- list(label = "bulk", from = "src", from_address = "172.16.10.2", to_address = "172.16.11.2", port = 5201)

# Traces of a trial as from open_traces(), with the file of one logger.
traces_of <- function(logger, path) {
  list(t_start_s = 1795268292, path = \(name, of = NULL) if (name == logger && identical(of, "src")) path else character(), within = \(x, host) x)
}

test_that("a FreeBSD sender's cwnd is read from SIFTR, in full segments, on the trial's clock", {
  path <- whole_siftr()
  x <- samovar:::tcp_samples(bulk, traces_of("siftr", path))
  log <- read_siftr(path)[sport == 46740 & !is.na(cwnd_bytes)]
  expect_equal(nrow(x), nrow(log))
  expect_equal(max(x$cwnd_packets), 192584 / 1448)
  expect_equal(unique(x$sport), 46740L)
  expect_equal(unique(x$source), "siftr")
  expect_equal(x$t_s[1], attr(read_siftr(path), "epoch_s") + log$t_ns[1] / 1e9 - 1795268292, tolerance = 1e-5)
})

test_that("departure times are the times of the packets that the flow's connection sent", {
  x <- read_siftr(whole_siftr())
  sent <- x[sport == 46740 & direction == "out" & !state %in% "CLOSED"]
  expect_equal(attr(samovar:::samples_of_siftr(x, bulk), "departures_ns"), sent$t_ns)
  expect_lt(nrow(sent), nrow(x[sport == 46740]))
})

test_that("a socket that TCP_INFO shows while it is closed, with port 0, is not taken for the flow", {
  info <- data.table::fread(text = readLines(samovar_example("bulk-tcp-info.csv.gz")), colClasses = c(t_ns = "character"))
  busiest <- info[which.max(bytes_acked)]
  port <- busiest$dport
  closed <- data.table::copy(busiest)[, `:=`(sport = 0L, state = "UNCONN", bytes_acked = bytes_acked + 1)]
  path <- tempfile(fileext = ".csv")
  data.table::fwrite(rbind(info, closed), path)
  x <- samovar:::samples_of_tcp_info(read_tcp_info(path), list(port = port))
  expect_equal(unique(x$sport), busiest$sport)
  expect_equal(nrow(x), sum(info$sport == busiest$sport & info$dport == port))
})

test_that("a connection to another receiver is not taken for the flow, although it has more data in flight", {
  lines <- siftr_lines("siftr-14.0-cdg-cut.log.gz")
  records <- grep("^[io],", lines, value = TRUE)
  other <- gsub(bulk$to_address, "172.16.11.99", records, fixed = TRUE)
  log_of <- \(lines_between) read_siftr(text_file(c(lines[1], lines_between, lines[length(lines)])))
  own <- samovar:::samples_of_siftr(log_of(records[1:60]), bulk)
  expect_gt(nrow(own), 20)
  expect_equal(nrow(samovar:::samples_of_siftr(log_of(c(other, records[1:60])), bulk)), nrow(own))
  expect_null(samovar:::samples_of_siftr(log_of(other), bulk))
})

test_that("cycles of cwnd are the recoveries marked by SIFTR's flags", {
  x <- samovar:::tcp_samples(bulk, traces_of("siftr", whole_siftr()))
  cycles <- cwnd_cycles(x)
  expect_equal(cycles$cause, rep("recovery", 13))
  expect_equal(sum(cycles$counts), 12)
  k <- siftr_collapses(read_siftr(whole_siftr()))
  expect_true(all(abs(cycles$end_s - (attr(k, "epoch_s") + k$t_ns / 1e9 - 1795268292)) < 0.05))
})

test_that("a time-out within a recovery is state 4, and a local lack of buffers is CWR, not a loss", {
  x <- read_siftr(text_file(siftr_lines("siftr-14.0-cdg-cut.log.gz")))
  samples <- samovar:::samples_of_siftr(x, bulk)
  at <- siftr_collapses(x)[cause == "timeout", t_ns]
  expect_equal(samples$ca_state[match(at, samples$t_ns) + c(-1, 0)], c(3L, 4L))
  refused <- copy(x)
  late <- refused[, which(as.character(flow) == as.character(refused$flow[100]))]
  set(refused, late, "cwnd_bytes", 90000)
  set(refused, late, "ssthresh_bytes", 44888)
  set(refused, late, "flags", 996)
  set(refused, late[5:8], "cwnd_bytes", 1448)
  samples <- samovar:::samples_of_siftr(refused, bulk)
  expect_equal(which(samples$ca_state == 2L), 5:8)
  samples[, t_s := t_ns / 1e9]
  expect_false(any(cwnd_cycles(samples)$cause %in% c("recovery", "timeout")))
})

test_that("the metrics and series of a sender can be computed from SIFTR", {
  x <- samovar:::tcp_samples(bulk, traces_of("siftr", whole_siftr()))
  m <- samovar:::sender_metrics(list(sender = x))
  expect_equal(m$srtt_median_ms, 58.593, tolerance = 0.01)
  expect_gt(m$cwnd_median_packets, 30)
  series <- samovar:::thin_series(x$t_s, x$cwnd_packets, "bulk", "cwnd", "packets")
  expect_false(anyNA(series$low))
  expect_equal(max(series$high), max(x$cwnd_packets))
})

test_that("TCP's tracepoint is used if no other logger recorded the sender", {
  rows <- sprintf("17952682920%08.0f,172.16.10.2,46740,172.16.11.2,5201,0,%d,1,%d,%s,65535,250,65535,1a", 1e6 * 1:6, 2000, c(10, 12, 14, 7, 8, 9),
                  c(rep("2147483647", 3), rep("7", 3)))
  path <- text_file(c("t_ns,src,sport,dst,dport,data_bytes,snd_nxt,snd_una,cwnd_packets,ssthresh_packets,snd_wnd_bytes,srtt_us,rcv_wnd_bytes,cookie", rows))
  x <- samovar:::tcp_samples(bulk, traces_of("tcp-probe", path))
  expect_equal(x$cwnd_packets, c(10, 12, 14, 7, 8, 9))
  expect_equal(cwnd_cycles(x)$cwnd_packets, 14)
  expect_null(samovar:::tcp_samples(bulk, traces_of("none", path)))
})

test_that("a UDP flow gets no TCP samples of a generator's control connection on its port", {
  folder <- small_campaign()
  manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, "window-cubic"))]]
  flow <- manifest$resolved$flows[[1]]
  traces <- open_traces(folder, manifest)
  tcp <- measure_flow(flow, traces, manifest)
  captured <- traces$capture
  traces$capture <- \(of, flow = NULL) data.table::copy(captured(of))[, proto := factor("udp")]
  udp <- measure_flow(flow, traces, manifest)
  of_tcp <- c("cwnd_median_packets", "srtt_median_ms")
  expect_true(all(of_tcp %in% tcp$metrics$metric))
  expect_false(any(of_tcp %in% udp$metrics$metric))
  expect_true(nrow(tcp$sender) > 0 && is.null(udp$sender) && is.null(udp$cycles))
  expect_false(any(c("cwnd", "srtt") %in% udp$series$quantity))
  throughput <- \(found) found$metrics[metric == "throughput_bps"]$value
  expect_equal(throughput(udp), throughput(tcp))
})

test_that("the cause of a reduction of cwnd is unknown in figures if the logger records no state of congestion avoidance", {
  probe <- data.table::data.table(t_s = seq(0, 10, by = 0.1), cwnd_packets = 20, ssthresh_packets = Inf, ca_state = 0L, total_retrans_packets = 0)
  probe[t_s >= 5, `:=`(cwnd_packets = 10, ssthresh_packets = 10)]
  results <- list(cycles = cbind(trial = "a", flow = "bulk", cwnd_cycles(probe)))
  chosen <- list(trials = data.table::data.table(id = "a"), column = factor("c"))
  expect_equal(as.character(reductions_of(results, chosen, data.table::data.table(t_s = c(0, 10), panel = factor("cwnd")), NULL)$cause), "cause unknown")
})
