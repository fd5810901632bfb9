test_that("both methods estimate a real queue of 20 packets to within one packet", {
  folder <- small_campaign()
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L))
  found <- results$summary[part == "buffer"]
  for (size in c("600", "1500")) {
    value <- \(name) found[mtu == size & metric == name]$median
    expect_equal(value("buffer_truth_packets"), 20)
    expect_lt(abs(value("buffer_method1_packets") - 20), 1)
    expect_lt(abs(value("buffer_method2_packets") - 20), 1)
  }
})

test_that("RTT grows linearly with the receive window, with the slope that theory predicts", {
  folder <- small_campaign()
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L))
  line <- results$summary[grepl("^rtt_rwnd", metric)]
  expect_equal(line$rwnd, c("", ""))
  expect_gt(line[metric == "rtt_rwnd_linearity_r2"]$median, 0.99)
  expect_equal(line[metric == "rtt_rwnd_slope_ratio"]$median, 1, tolerance = 0.05)
})

write_sample_figure <- function(zone = "UTC") {
  path <- tempfile(fileext = ".pdf")
  before <- Sys.getenv("TZ", unset = NA)
  on.exit(if (is.na(before)) Sys.unsetenv("TZ") else Sys.setenv(TZ = before))
  Sys.setenv(TZ = zone)
  plot <- ggplot2::ggplot(mtcars, ggplot2::aes(wt, mpg)) + ggplot2::geom_point() + theme_samovar()
  write_figure(plot, path, 2, 2, as.POSIXct("2013-04-17 12:34:56", tz = "UTC"))
}

test_that("a figure's creation date is that of its data, and its bytes do not depend on the time of drawing or the time zone", {
  path <- write_sample_figure()
  bytes <- readBin(path, "raw", file.size(path))
  expect_length(grepRaw("/CreationDate (D:20130417123456Z", bytes, fixed = TRUE), 1)
  Sys.sleep(1.1)
  expect_equal(unname(tools::md5sum(write_sample_figure("Australia/Melbourne"))), unname(tools::md5sum(path)))
})

test_that("a figure's fonts are embedded", {
  need_tool("pdffonts")
  fonts <- system2("pdffonts", write_sample_figure(), stdout = TRUE)[-(1:2)]
  expect_gt(length(fonts), 0)
  expect_match(fonts, "DejaVuSans .* yes yes (yes|no) +[0-9]+ +[0-9]+$")
})

test_that("progress is printed as one JSON object per line", {
  folder <- small_campaign()
  lines <- utils::capture.output(analyse_campaign(folder, figures = list(), cores = 1L))
  events <- lapply(lines, jsonlite::fromJSON)
  expect_equal(vapply(events, \(s) s$done, 0L), 1:6)
  expect_true(all(vapply(events, \(s) s$event, "") == "analysed"))
})

test_that("a truncated capture is named among the notes, also when measures come from the cache", {
  folder <- small_campaign()
  trial <- trial_named(folder, "buffer")
  capture <- list.files(file.path(trial, "traces"), "^src.*pcap", full.names = TRUE)[1]
  writeBin(readBin(capture, "raw", floor(file.size(capture) * 0.9)), capture)
  edit_json(file.path(trial, "manifest.json"), \(m) {
    at <- which(vapply(m$files, \(f) basename(f$path) == basename(capture), TRUE))
    m$files[[at]][c("sha256", "bytes")] <- list(as.character(samovar:::sha256_file(capture)), file.size(capture))
    m
  })
  for (time in 1:2) {
    lines <- utils::capture.output(results <- analyse_campaign(folder, figures = list(), cores = 2L))
    expect_equal(results$notes$trial, basename(trial))
    expect_match(results$notes$note, paste0("^.?traces/", basename(capture), ".*stream.*; the packets before were read"))
    expect_false(grepl("\n", results$notes$note)) # printed as one line
    expect_match(lines, paste0('"warning","text":"', basename(trial), ": .*the packets before were read"), all = FALSE)
    expect_match(jsonlite::fromJSON(file.path(folder, "bundle", "analysis.json"))$notes, basename(trial))
  }
})

test_that("an analysis that fails while it writes leaves no analysis.json, so that no report is made of incomplete files", {
  folder <- small_campaign()
  quietly(analyse_campaign(folder, figures = list(), cores = 1L))
  analysis <- file.path(folder, "bundle", "analysis.json")
  files <- file.path(folder, c("plan.json", manifest_path(vapply(read_plan(folder)$trials, \(t) t$id, ""))))
  expect_equal(jsonlite::read_json(analysis)$inputs_sha256, sha256_texts(paste(sha256_files(files), collapse = "\n")))
  unlink(file.path(folder, "tables", "metrics.csv"))
  dir.create(file.path(folder, "tables", "metrics.csv"))
  expect_error(suppressWarnings(quietly(analyse_campaign(folder, figures = list(), cores = 1L))))
  expect_false(file.exists(analysis))
})

test_that("the bundle lists its figures with captions, data and trials", {
  folder <- small_campaign()
  quietly(analyse_campaign(folder, cores = 1L))
  figures <- jsonlite::fromJSON(file.path(folder, "bundle", "figures.json"), simplifyVector = FALSE)
  expect_equal(length(figures), 6)
  for (f in figures) {
    expect_true(file.exists(file.path(folder, "bundle", f$file)))
    expect_true(file.exists(file.path(folder, "bundle", f$data)))
    expect_match(f$caption, "trial")
    expect_gt(length(f$trials), 0)
  }
  tables <- jsonlite::fromJSON(file.path(folder, "bundle", "tables.json"), simplifyVector = FALSE)
  for (t in tables) for (row in t$rows) expect_equal(length(row), length(t$columns))
  estimates <- Filter(\(t) startsWith(t$name, "buffer-estimates"), tables)[[1]]
  expect_match(unlist(estimates$trials), "^buffer-")
})

test_that("a trial whose capture cannot be read is left out, and the others are analysed", {
  folder <- small_campaign()
  trial <- trial_named(folder, "window-cubic")
  capture <- file.path(trial, "traces", "src-eth1.pcap.gz")
  writeBin(as.raw(rep(7, file.size(capture))), capture)
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L))
  expect_equal(results$left_out$id, basename(trial))
  expect_match(results$left_out$reason, "cannot be measured")
})

test_that("an unknown figure name is an error before anything is measured, with the nearest name", {
  folder <- small_campaign()
  expect_error(analyse_campaign(folder, figures = "bufer-cdf"), "did you mean .buffer-cdf.", class = "samovar_error_name")
  expect_false(dir.exists(file.path(folder, "tables")))
})

test_that("an unknown level, part or option is an error with the nearest name", {
  folder <- small_campaign()
  refused <- \(...) expect_error(analyse_campaign(folder, figures = list(list(figure = "rtt-cdf", ...))), class = "samovar_error_name")
  expect_match(conditionMessage(refused(cc = "cubik")), "did you mean .cubic.")
  expect_match(conditionMessage(refused(part = "bufer")), "did you mean .buffer.")
  expect_match(conditionMessage(refused(parts = "buffer")), "did you mean .part.")
  expect_match(conditionMessage(refused(method = "1")), "Unknown option .method.")
  expect_match(conditionMessage(refused(axis = "lag")), "did you mean .log.")
})

test_that("every option that outputs.yaml declares passes the check before measuring", {
  campaign <- read_campaign(small_campaign())
  for (kind in c("figure", "table")) {
    for (name in known_names(kind)) {
      valid <- c(seconds = "6s", moment = "0s", series = "cwnd", measure = "cwnd")
      options <- lapply(outputs_of(kind)[[name]]$options, \(o) c(o$values, if (isTRUE(o$type %in% names(valid))) valid[[o$type]] else "x")[1])
      expect_no_error(check_entries(campaign, list(c(stats::setNames(list(name), kind), options))))
    }
  }
})

test_that("a figure without data in the campaign is left out with the reason", {
  folder <- small_campaign()
  quietly(analyse_campaign(folder, figures = list(list(figure = "buffer-cdf", rwnd = "9KB")), cores = 1L))
  left <- jsonlite::fromJSON(file.path(folder, "bundle", "analysis.json"), simplifyVector = FALSE)$figures_left_out
  expect_equal(left[[1]]$name, "buffer-cdf-9KB")
  expect_match(left[[1]]$reason, "no trial has a buffer size by method 1")
})

test_that("the comparison of congestion controls shows the published numbers of the experiment, and a dash for a level without one", {
  folder <- small_campaign()
  published <- list(`TP-Link` = list(newreno = list(median = "~150", max = "~240")))
  edit_json(file.path(folder, "plan.json"), \(p) {
    p$tables <- list(list(table = "cc-comparison", part = "window", published = published))
    p
  })
  quietly(analyse_campaign(folder, figures = list(), cores = 1L))
  table <- jsonlite::fromJSON(file.path(folder, "bundle", "tables.json"), simplifyVector = FALSE)[[1]]
  expect_equal(table$columns[[5]]$name, "TP-Link: median")
  expect_equal(table$rows[[1]][[1]], "cubic")
  expect_equal(table$rows[[1]][[5]], "-")
})

test_that("buffer-cdf can be drawn for both variants of both methods", {
  folder <- small_campaign()
  forms <- lapply(c("1", "1-local", "2", "2-raw"), \(m) list(figure = "buffer-cdf", method = m, part = "buffer"))
  quietly(analyse_campaign(folder, figures = forms, cores = 1L))
  figures <- jsonlite::fromJSON(file.path(folder, "bundle", "figures.json"), simplifyVector = FALSE)
  expect_equal(vapply(figures, \(f) f$name, ""), paste0("buffer-cdf-", c("1", "1-local", "2", "2-raw"), "-buffer"))
})

test_that("packets and samples that a host recorded after the end of the trial on its own clock are left out", {
  folder <- small_campaign()
  manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, "buffer-.*-1500"))]]
  flow <- manifest$resolved$flows[[1]]
  whole <- open_traces(folder, manifest)
  over_s <- manifest$t_start_s + 2
  manifest$ends <- list(list(host = flow$to, over_s = over_s))
  cut <- open_traces(folder, manifest)
  expect_identical(cut$capture(flow$from), whole$capture(flow$from))
  kept <- cut$capture(flow$to)
  expect_lt(max(seconds_since(kept, over_s)), 0)
  original <- whole$capture(flow$to)
  expect_equal(kept$t_ns, original$t_ns[seconds_since(original, over_s) < 0])
  expect_identical(attr(kept, "path"), attr(original, "path"))
  carried <- \(traces) measure_flow(flow, traces, manifest)$size$payload_bytes
  expect_lt(carried(cut), carried(whole))
  manifest$ends <- list(list(host = flow$from, over_s = over_s))
  sampled <- \(traces) max(tcp_samples(flow, traces)$t_s)
  expect_lt(sampled(open_traces(folder, manifest)), 2)
  expect_gt(sampled(whole), 2)
})

test_that("times count from the start of traffic on the clock of the host that recorded them", {
  folder <- small_campaign()
  manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, "buffer-.*-1500"))]]
  names <- c("throughput", "throughput-total", "goodput", "rtt", "rtt-ack", "rtt-timestamp", "cwnd", "inflight", "rwnd", "loss", "retransmissions", "duplicate-acks", "buffer-method1")
  measured <- function(manifest) {
    one <- measure_trial(folder, manifest)
    c(one[c("metrics", "rtt")], list(series = one$series[flow != ""], others = measure_series(folder, manifest, names, 0.5, 4)))
  }
  # The same trial, as recorded if the controller's clock were 0.7 s behind the clocks of the hosts.
  behind <- manifest
  behind$t_start_s <- manifest$t_start_s - 0.7
  behind$t_end_s <- manifest$t_end_s - 0.7
  behind$clocks <- lapply(c("src", "dst"), \(host) list(host = host, offset_s = 0.7, error_s = 0.001))
  expect_equal(measured(behind), measured(manifest), tolerance = 1e-9)
  # An offset that is smaller than its error is not applied.
  behind$clocks <- lapply(c("src", "dst"), \(host) list(host = host, offset_s = 0.7, error_s = 0.8))
  expect_equal(min(measured(behind)$rtt$rtt_ms), min(measured(manifest)$rtt$rtt_ms))
  expect_gt(min(measure_trial(folder, behind)$series[quantity == "rtt", t_s]), 0.7)
})

test_that("link utilisation of flows to receivers with different clocks is computed over an interval on one clock", {
  x <- read_pcap(test_path("data", "outage-receiver.pcap.gz"))
  flow <- list(from = "a", to = "b", start_s = 0, duration_s = 3)
  manifest <- list(resolved = list(hosts = list(a = list(role = "sender")), path = list(down = list(rate_bps = 2e6))), t_start_s = 0, t_end_s = 5)
  size <- \(capture, ahead_s) flow_size(flow, capture, data_flows(x)$flow[1], manifest, ahead_s)
  later <- copy(x)
  setattr(later, "epoch_s", attr(x, "epoch_s") + 1)
  used <- \(other) metrics_together(list(sizes = rbind(size(x, 0), other), manifest = manifest))$link_utilisation_share
  expect_equal(used(size(later, 1)), used(size(x, 0)))
})

test_that("the rates of a single flow that stops sending early are means over its whole duration if the capture continues until the end of the trial", {
  folder <- small_campaign()
  manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, "buffer-.*-1500"))]]
  flow <- manifest$resolved$flows[[1]]
  traces <- open_traces(folder, manifest)
  whole <- traces$capture(flow$to)
  silent <- with_attributes(whole[seconds_since(whole, manifest$t_start_s) < 3], whole)
  measured <- function(capture, over_s) {
    manifest$ends <- lapply(c(flow$from, flow$to), \(host) list(host = host, over_s = over_s))
    traces$capture <- \(of, flow = NULL) if (of == flow$to) set_covered(within_trial(copy(capture), of, manifest), of, manifest)
    found <- measure_flow(flow, traces, manifest)
    together <- metrics_together(list(sizes = found$size, manifest = manifest))
    c(list(throughput = found$series[quantity == "throughput"]), together, as.list(stats::setNames(found$metrics$value, found$metrics$metric)))
  }
  found <- measured(silent, manifest$t_start_s + 5.2)
  expect_equal(found$goodput_bps, 8 * found$delivered_bytes / flow$duration_s)
  expect_equal(found$link_utilisation_share, found$throughput_bps / manifest$resolved$path$down$rate_bps)
  expect_lt(found$link_utilisation_share, 0.61)
  expect_equal(range(found$throughput[t_s > 3]$mid), c(0, 0))
  expect_gt(max(found$throughput$t_s), 4.8)
  # A truncated capture shows no packets after its end.
  cut <- measured(setattr(copy(silent), "truncated", TRUE), manifest$t_start_s + 5.2)
  expect_gt(cut$link_utilisation_share, 0.98)
  expect_lt(max(cut$throughput$t_s), 3)
})

test_that("packets of a trial are lost also if none arrived before, because its captures begin before the traffic", {
  folder <- small_campaign()
  manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, "buffer-.*-1500"))]]
  flow <- manifest$resolved$flows[[1]]
  traces <- open_traces(folder, manifest)
  whole <- traces$capture(flow$to)
  later <- with_attributes(whole[seconds_since(whole, manifest$t_start_s) > 1], whole)
  loss_share <- function(far) {
    traces$capture <- \(of, flow = NULL) if (of == flow$to) far else open_traces(folder, manifest)$capture(of, flow)
    metrics <- measure_flow(flow, traces, manifest)$metrics
    metrics$value[metrics$metric == "loss_share"]
  }
  manifest$ends <- list(list(host = flow$to, over_s = manifest$t_start_s + 60))
  expect_gt(loss_share(set_covered(copy(later), flow$to, manifest)), 0.2)
  expect_lt(loss_share(later), 0.1)
})

test_that("if a host has several captures, a flow is measured in the capture of the interface that its packets pass", {
  folder <- small_campaign()
  id <- basename(trial_named(folder, "buffer-.*-1500"))
  manifest <- read_campaign(folder)$manifests[[id]]
  metrics <- \(files) measure_trial(folder, replace(manifest, "files", list(files)))$metrics
  other <- file.path("traces", "src-eth0.pcap")
  file.copy(write_capture(list(ethernet(ipv4(udp(), 17))), epoch_s = floor(manifest$t_start_s)), file.path(folder, "trials", id, other))
  elsewhere <- list(path = other, kind = "capture", host = "src", interface = "eth0", logger = "tcpdump")
  expect_identical(metrics(c(list(elsewhere), manifest$files)), metrics(manifest$files))
  # If the sender's only capture is of another interface, the flow has the metrics of the receiver's capture.
  is_at_sender <- vapply(manifest$files, \(f) f$kind == "capture" && f$host == "src", TRUE)
  expect_identical(metrics(c(list(elsewhere), manifest$files[!is_at_sender])), metrics(manifest$files[!is_at_sender]))
})

test_that("a flow that the receiver's capture does not show is measured as if only the sender had a capture, and a note says so", {
  folder <- small_campaign()
  manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, "buffer-.*-1500"))]]
  is_at <- \(host) vapply(manifest$files, \(f) f$kind == "capture" && f$host == host, TRUE)
  write_empty <- \(host) file.copy(write_capture(list()), file.path(folder, "trials", manifest$id, manifest$files[[which(is_at(host))]]$path), overwrite = TRUE)
  alone <- measure_trial(folder, replace(manifest, "files", list(manifest$files[!is_at("dst")])))
  write_empty("dst")
  found <- measure_trial(folder, manifest)
  expect_identical(found[names(found) != "notes"], alone[names(alone) != "notes"])
  expect_true(all(c("rtt_median_ms", "retransmissions_packets", "throughput_bps") %in% found$metrics$metric))
  expect_equal(found$notes$note, "the capture at dst has no packet of flow bulk: its rates and bytes count what was sent, and metrics that need both captures are missing")
  expect_s3_class(measure_series(folder, manifest, "throughput")$throughput$series, "data.table")
  write_empty("src")
  expect_equal(measure_trial(folder, manifest)$notes$note, sprintf("the capture at %s has no packet of flow bulk: it has no metrics", c("src", "dst")))
})

test_that("a UDP flow of which nothing arrives has no throughput, not the rate at which it was sent", {
  folder <- tempfile("campaign-")
  dir.create(file.path(folder, "trials", "t1"), recursive = TRUE)
  path <- \(host) file.path(folder, "trials", "t1", paste0(host, ".pcap"))
  file.copy(write_capture(rep(list(ethernet(ipv4(udp(1000, 5001, raw(1000)), 17))), 100), t_ns = (1:100) * 1e7), path("src"))
  flow <- list(label = "flood", generator = "iperf-udp", from = "src", to = "dst", from_address = "10.0.0.1", to_address = "10.0.0.2", port = 5001, start_s = 0, duration_s = 1)
  capture <- \(host) list(path = basename(path(host)), kind = "capture", host = host, logger = "tcpdump")
  hosts <- list(src = list(role = "sender", interfaces = list("eth1")), dst = list(role = "receiver", interfaces = list("eth1")))
  manifest <- list(id = "t1", t_start_s = 1700000000, t_end_s = 1700000001, resolved = list(mtu_bytes = 1500, flows = list(flow), hosts = hosts, path = list()), files = lapply(c("src", "dst"), capture))
  measured <- function(frames) {
    file.copy(write_capture(frames), path("dst"), overwrite = TRUE)
    found <- measure_trial(folder, manifest)
    rates <- measure_series(folder, manifest, "throughput")$throughput$series
    list(metrics = stats::setNames(found$metrics$value, found$metrics$metric), note = found$notes$note, mbps = rates$mid)
  }
  # The capture shows another connection of the receiver.
  none <- measured(list(ethernet(ipv4(tcp(), 6))))
  expect_equal(none$metrics, c(throughput_bps = 0, throughput_link_bps = 0, throughput_payload_bps = 0, loss_share = 1, throughput_total_bps = 0))
  expect_equal(range(none$mbps), c(0, 0))
  expect_equal(none$note, "the capture at dst has no packet of flow flood: its throughput is 0, and all of its packets are lost")
  unknown <- measured(list())
  expect_length(c(unknown$metrics, unknown$mbps), 0)
  expect_match(unknown$note, "no packet of flow flood: its rates and metrics that need both captures are missing")
})

test_that("without the handshake, the RTT of the idle path is unknown: a note says so, and metrics that need it are missing", {
  folder <- small_campaign()
  manifest <- read_campaign(folder)$manifests[[basename(trial_named(folder, "buffer-.*-1500"))]]
  traces <- open_traces(folder, manifest)
  whole <- lapply(c(src = "src", dst = "dst"), traces$capture)
  from <- function(begin_s) {
    traces$capture <- \(of, flow = NULL) with_attributes(whole[[of]][seconds_since(whole[[of]], manifest$t_start_s) >= begin_s], whole[[of]])
    metrics <- measure_flow(manifest$resolved$flows[[1]], traces, manifest)$metrics
    stats::setNames(metrics$value, metrics$metric)
  }
  expect_no_warning(found <- from(-1))
  needing <- c("handshake_rtt_ms", "limited_link_share", "buffer_method1_packets")
  expect_false(anyNA(found[needing]))
  expect_warning(late <- from(2), "the capture at src lacks the handshake of flow bulk: rtt_min_ms may be the RTT of a full queue", class = "samovar_warning")
  expect_gt(late[["rtt_min_ms"]], 100 * found[["rtt_min_ms"]])
  expect_true(all(is.na(late[needing])))
})

test_that("a flow whose generator chooses its own data port is identified by the addresses of its hosts", {
  packet <- \(sport, dport, seq, bytes) ethernet(ipv4(tcp(sport, dport, seq, payload = raw(bytes)), 6))
  frames <- c(list(packet(40000, 5001, 1, 100)), lapply(0:9, \(i) packet(40001, 32768, 1000 * i, 1000)), lapply(0:9, \(i) packet(40002, 5002, 1400 * i, 1400)))
  capture <- read_pcap(write_capture(frames))
  flow <- \(generator, port) list(label = generator, generator = generator, from = "a", to = "b", from_address = "10.0.0.1", to_address = "10.0.0.2", port = port)
  nttcp <- flow("nttcp", 5001L)
  iperf3 <- flow("iperf3", 5002L)
  data <- "10.0.0.1:40001 > 10.0.0.2:32768"
  expect_equal(flow_in_capture(nttcp, capture, list(nttcp, iperf3)), data)
  expect_equal(flow_in_capture(iperf3, capture, list(nttcp, iperf3)), "10.0.0.1:40002 > 10.0.0.2:5002")
  # A flow of generator command may use its own port or another one.
  expect_equal(flow_in_capture(flow("command", 5001L), capture), "10.0.0.1:40000 > 10.0.0.2:5001")
  command <- flow("command", 5003L)
  expect_equal(flow_in_capture(command, capture, list(command, iperf3)), data)
  # With two such flows between the same hosts, a capture does not show which packets are of which flow.
  expect_equal(flow_in_capture(nttcp, capture, list(nttcp, iperf3, command)), NA_character_)
  traces <- list(t_start_s = 0, capture = \(of, flow = NULL) if (of == "b") capture, path = \(...) character())
  expect_equal(subject_of_flow(nttcp, traces, list(resolved = list(flows = list(nttcp, iperf3))))$flow$port, 32768L)
})

test_that("a part of a campaign can be analysed alone, and the measurements of the other trials stay in the cache", {
  folder <- small_campaign()
  quietly(whole <- analyse_campaign(folder, figures = list(), cores = 1L))
  ids <- whole$campaign$trials[part == "buffer"]$id
  stored <- list.files(file.path(cache_folder(folder), "trials"))
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L, part = list(picked = "part=buffer", options = "", trials = as.list(ids))))
  expect_setequal(results$campaign$trials$id, ids)
  expect_equal(unique(results$summary$part), "buffer")
  expect_equal(results$planned, length(ids))
  expect_setequal(list.files(file.path(cache_folder(folder), "trials")), stored)
  written <- jsonlite::read_json(file.path(folder, "bundle", "analysis.json"))
  expect_equal(written$part$picked, "part=buffer")
  expect_setequal(unlist(written$part$trials), ids)
})
