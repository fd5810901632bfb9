one_packet <- function(bytes) ethernet(ipv4(udp(9, 10, raw(bytes - 28)), 17))

test_that("the bytes of all windows add up to the bytes of the capture, for every layer and width", {
  for (path in unlist(lapply(all_pairs(), `[`, c("sender", "receiver")))) {
    capture <- read_pcap(path)
    totals <- capture[!is.na(flow), .(
      ip = sum(ip_bytes), frame = sum(frame_bytes), payload = sum(payload_bytes), tcpstat = sum(frame_bytes - 14L)
    ), by = flow]
    for (layer in names(totals)[-1]) {
      for (width_s in c(0.01, 0.37, 1, 100)) {
        sums <- throughput_windows(capture, width_s, layer = layer)[, .(bytes = sum(bytes)), by = flow]
        expect_equal(sums$bytes, as.double(totals[[layer]]), info = paste(layer, width_s))
      }
    }
  }
})

test_that("empty windows have zero bytes, and an incomplete last window is marked as partial", {
  packets <- lapply(c(100, 200, 300), one_packet)
  capture <- read_pcap(write_capture(packets, t_ns = c(0.4, 0.6, 3.0) * 1e9))
  windows <- throughput_windows(capture, 1)
  expect_equal(windows$t_s, c(0, 1, 2))
  expect_equal(windows$bytes, c(300, 0, 300))
  expect_equal(windows$throughput_bps, c(2400, 0, 2400))
  expect_equal(windows$partial, c(FALSE, FALSE, TRUE))
  expect_equal(attr(windows, "origin_ns"), 0.4e9)
})

test_that("windows start at the earliest packet, even if it is not the first in the file", {
  packets <- lapply(c(100, 200, 300), one_packet)
  capture <- read_pcap(write_capture(packets, t_ns = c(2.5, 0.5, 1) * 1e9))
  windows <- throughput_windows(capture, 1)
  expect_equal(windows$bytes, c(500, 0, 100))
  expect_equal(attr(windows, "origin_ns"), -1.5e9) # epoch_s is that of the file's first packet
})

test_that("a range that is a multiple of the width has no partial window, and packets outside the range are left out", {
  packets <- lapply(c(100, 200, 300, 400), one_packet)
  capture <- read_pcap(write_capture(packets, t_ns = c(0, 1, 1.5, 3) * 1e9))
  windows <- throughput_windows(capture, 0.5, from_s = 1, to_s = 3)
  expect_equal(windows$t_s, c(1, 1.5, 2, 2.5))
  expect_equal(windows$bytes, c(200, 300, 0, 0))
  expect_false(any(windows$partial))
  expect_equal(throughput_windows(capture, 0.4, from_s = 1, to_s = 3)$partial, c(FALSE, FALSE, FALSE, FALSE, FALSE))
  expect_equal(throughput_windows(capture, 0.7, from_s = 1, to_s = 3)$partial, c(FALSE, FALSE, TRUE))
  expect_equal(throughput_windows(capture, 4, from_s = 1, to_s = 5)$bytes, 900)
})

test_that("windows over all packets together do not need the flow column", {
  capture <- read_pcap(committed_pair()$sender)
  expect_equal(sum(throughput_windows(capture[, !"flow"], 0.5, by = NULL, layer = "frame")$bytes), sum(capture$frame_bytes))
  expect_error(throughput_windows(capture, 0.5, by = "src"), "must be \"flow\" or NULL", class = "samovar_error_argument")
})

test_that("an invalid width of windows is an error", {
  capture <- read_pcap(write_capture(list(one_packet(100))))
  for (width in list(0, -1, NA_real_, "1", c(1, 2))) {
    expect_error(throughput_windows(capture, width), "number of seconds above 0", class = "samovar_error_argument")
    expect_error(tcpstat_windows(capture, width), "number of seconds above 0", class = "samovar_error_argument")
  }
})

test_that("windows of tcpstat are reproduced to the last digit", {
  need_tool("tcpstat")
  for (path in unlist(lapply(all_pairs(), `[`, c("sender", "receiver")))) {
    plain <- plain_copy(path)
    capture <- read_pcap(plain)
    for (width in c("0.001", "0.1", "0.37", "1", "60")) {
      arguments <- c("-r", plain, "-o", shQuote("%R %r %n %N %B %b\\n"), width)
      lines <- system2("tcpstat", arguments, stdout = TRUE, stderr = FALSE)
      theirs <- data.table::fread(text = c("R r n N B b", lines), sep = " ")
      ours <- tcpstat_windows(capture, as.numeric(width))
      expect_equal(nrow(ours), nrow(theirs))
      expect_identical(ours$label_whole_s, as.double(theirs$R))
      expect_lt(max(abs(ours$label_s - theirs$r)), 1e-6 + 1e-9)
      expect_identical(as.double(ours$packets), as.double(theirs$n))
      expect_identical(ours$bytes, as.double(theirs$N))
      expect_identical(sprintf("%.2f", ours$byte_rate), sprintf("%.2f", theirs$B))
      expect_identical(sprintf("%.2f", ours$throughput_bps), sprintf("%.2f", theirs$b))
    }
  }
})

test_that("unique and retransmitted bytes are equal to tcptrace's", {
  need_tool("tcptrace")
  for (path in unlist(lapply(all_pairs(), `[`, c("sender", "receiver")))) {
    coarse <- microsecond_copy(path)
    capture <- read_pcap(coarse)
    theirs <- tcptrace_table(coarse)
    ours <- data.table::rbindlist(lapply(theirs$flow, \(flow) goodput(capture, flow)))
    expect_equal(ours$unique_bytes, as.double(theirs$unique_bytes_sent))
    expect_equal(ours$payload_bytes, as.double(theirs$actual_data_bytes))
    expect_equal(ours$data_packets, as.double(theirs$actual_data_pkts))
    expect_equal(ours$retransmitted_packets, as.double(theirs$rexmt_data_pkts))
    expect_equal(ours$retransmitted_bytes, as.double(theirs$rexmt_data_bytes))
    expect_gt(max(ours$unique_bytes), 5e5)
  }
})

test_that("the number of acknowledged bytes is equal to the number of unique bytes sent", {
  capture <- read_pcap(committed_pair()$sender)
  closed <- capture[bitwAnd(flags, 1L) > 0L, as.character(unique(flow))]
  for (flow in intersect(data_flows(capture)$flow, closed)) {
    sent <- goodput(capture, flow)
    expect_lte(abs(sent$acked_bytes - sent$unique_bytes), 2) # SYN and FIN
  }
  expect_gt(length(closed), 2)
})

test_that("wrapping sequence numbers do not change the delivered bytes", {
  steps <- c(lapply(0:19, \(k) list(seq = 1 + 400 * k, bytes = 400)), list(list(seq = 1 + 400 * 7, bytes = 600)))
  sums <- \(isn) goodput(read_pcap(write_capture(conversation(steps, isn_a = isn))), flow_a)
  expect_equal(sums(2^32 - 3000), sums(1000))
  expect_equal(sums(1000)$unique_bytes, 8000)
  expect_equal(sums(1000)$retransmitted_bytes, 600)
  expect_equal(sums(1000)$retransmitted_packets, 1)
})

test_that("a segment that fills a gap later is out of order, not a retransmission", {
  steps <- list(list(seq = 1, bytes = 100), list(seq = 201, bytes = 100), list(seq = 101, bytes = 100))
  sums <- goodput(read_pcap(write_capture(conversation(steps))), flow_a)
  expect_equal(sums$unique_bytes, 300)
  expect_equal(sums$retransmitted_packets, 0)
  expect_equal(sums$out_of_order_packets, 1)
})

test_that("goodput needs only the sequence number and data offset of a truncated header", {
  steps <- list(
    list(seq = 0, bytes = 1000, options = option_timestamps(1, 0)), list(from = "b", ack = 1000, options = option_timestamps(9, 1)),
    list(seq = 1000, bytes = 500), list(seq = 1000, bytes = 500), list(seq = 2000, bytes = 100, flags = 17), list(seq = 1500, bytes = 500)
  )
  frames <- conversation(steps, isn_a = 2^32 - 700)
  at <- \(snaplen) goodput(read_pcap(write_capture(frames, snaplen = snaplen, wire_bytes = lengths(frames))), flow_a)
  whole <- at(2000)
  expect_equal(unlist(whole[, .(unique_bytes, data_packets, retransmitted_packets, out_of_order_packets, acked_bytes)], use.names = FALSE), c(2100, 5, 1, 1, 0))
  for (snaplen in c(48:54, 60, 70)) expect_equal(at(snaplen), whole, info = snaplen)
  # Without flags, acknowledgements cannot be recognised; without the data offset the payload is unknown.
  expect_equal(at(47), data.table::copy(whole)[, acked_bytes := 0])
  for (snaplen in c(46, 44, 40)) expect_true(all(is.na(at(snaplen)[, .(unique_bytes, payload_bytes, data_packets, retransmitted_bytes, first_s, goodput_bps)])), info = snaplen)
})

test_that("a real capture truncated to IP and TCP headers, or within the TCP header, has the same goodput, flows and data RTTs", {
  need_tool("editcap")
  path <- committed_pair()$sender
  whole <- read_pcap(path)
  for (snaplen in c(66, 54, 50)) {
    copy <- tempfile(fileext = ".pcap")
    expect_equal(system2("editcap", c("-F", "nsecpcap", "-s", snaplen, plain_copy(path), copy)), 0L)
    cut <- read_pcap(copy, c("usual", "header_cut"))
    expect_equal(max(attr(cut, "cut_packets")) > 0, snaplen < 66 || any(cut$header_cut))
    expect_equal(data_flows(cut), data_flows(whole))
    for (flow in data_flows(whole)$flow) {
      expect_equal(goodput(cut, flow), goodput(whole, flow))
      expect_equal(data_ack_rtt(cut, flow), data_ack_rtt(whole, flow))
      expect_equal(bytes_in_flight(cut, flow), bytes_in_flight(whole, flow))
      expect_equal(flow_completion(cut, flow), flow_completion(whole, flow))
    }
  }
})

test_that("a flow whose headers were cut before the data offset has the metrics that need only IP, and the others are NA", {
  need_tool("editcap")
  cut <- lapply(committed_pair()[c("sender", "receiver")], \(path) {
    copy <- tempfile(fileext = ".pcap")
    expect_equal(system2("editcap", c("-F", "nsecpcap", "-s", 46, plain_copy(path), copy)), 0L)
    read_pcap(copy)
  })
  whole <- lapply(committed_pair()[c("sender", "receiver")], read_pcap)
  flow <- data_flows(whole$receiver)$flow[1]
  expect_equal(data_flows(cut$receiver)$flow[1], flow)
  expected <- capture_metrics(list(near = whole$sender, far = whole$receiver, name = flow))
  found <- capture_metrics(list(near = cut$sender, far = cut$receiver, name = flow))
  # SYNs and acknowledgements have options: from their length alone, the reader cannot exclude that they carry data.
  packets <- rows_of_flow(whole$receiver, flow, c("t_ns", "ip_bytes"))[ip_bytes > 40]
  expect_equal(found$throughput_bps, 8 * sum(packets$ip_bytes) / diff(range(packets$t_ns)) * 1e9)
  expect_equal(found[c("loss_share", "reordered_share")], expected[c("loss_share", "reordered_share")])
  for (lacking in c("throughput_payload_bps", "goodput_bps", "retransmissions_packets", "flow_completion_s")) expect_true(is.na(found[[lacking]]), info = lacking)
  # Series that need the payload are missing as well.
  frame <- list(from_s = 0, to_s = 2, rates_to_s = 2, width_s = 0.1)
  subject <- list(near = cut$sender, far = cut$receiver, name = flow, tcp = TRUE, frame = frame, flow = list(from = "a", to = "b"), traces = list(t_start_s = attr(cut$sender, "epoch_s")))
  expect_null(series_of_goodput(subject))
  expect_null(series_of_retransmissions(subject))
  rates <- series_of_throughput(subject)
  expect_true(is.null(rates[["throughput-payload"]]) && max(rates$throughput$value) > 1)
})

test_that("probes of a closed window are neither data nor retransmissions, and an acknowledged probe is delivered once", {
  steps <- list(
    list(seq = 1, bytes = 100), list(from = "b", seq = 1, ack = 101, window = 0),
    list(seq = 101, bytes = 1, id = 2), list(from = "b", seq = 1, ack = 101, window = 0),
    list(seq = 101, bytes = 1, id = 3), list(from = "b", seq = 1, ack = 102, window = 900),
    list(seq = 102, bytes = 100, id = 4), list(seq = 102, bytes = 100, id = 5)
  )
  x <- goodput(read_pcap(write_capture(conversation(steps))), flow_a)
  expect_equal(unlist(x[, .(window_probes, data_packets, retransmitted_packets, retransmitted_bytes, unique_bytes, payload_bytes)], use.names = FALSE),
               c(2, 3, 1, 100, 201, 301))
  # A byte that is sent again into a closed window is a retransmission, for goodput() and for figures over time.
  again <- read_pcap(write_capture(conversation(c(steps[1:2], list(list(seq = 100, bytes = 1, id = 2))))))
  expect_equal(goodput(again, flow_a)$retransmitted_packets, 1)
  expect_equal(as.character(sequence_events(again, flow_a)[event %in% c("segment", "retransmission")]$event), c("segment", "retransmission"))
  refused <- steps[c(1:5)]
  later <- list(list(from = "b", seq = 1, ack = 101, window = 900), list(seq = 101, bytes = 100, id = 4))
  x <- goodput(read_pcap(write_capture(conversation(c(refused, later)))), flow_a)
  expect_equal(unlist(x[, .(window_probes, data_packets, retransmitted_packets, unique_bytes)], use.names = FALSE), c(2, 2, 0, 200))
})

# make-captures.sh FOLDER 3 2mbit 1 20 2.9: iperf3 sends for 3 s; the path drops all packets from 2.9 to 3.9 s, and the rest of the data arrives after
# a time-out.
test_that("rates over the time for which a flow sends exclude the tail after a time-out, rates over its whole life include it", {
  x <- read_pcap(test_path("data", "outage-receiver.pcap.gz"))
  name <- data_flows(x)$flow[1]
  whole <- throughput_levels(x, name)
  sent <- throughput_levels(x, name, duration_s = 3)
  expect_equal(whole$elapsed_s, 4.6083147)
  expect_equal(c(sent$elapsed_s, sent$packets, whole$packets), c(3, 497, 568))
  data <- x[flow == name & payload_bytes > 0]
  expect_equal(sent$ip_bps, data[t_ns < data$t_ns[1] + 3e9, sum(ip_bytes)] * 8 / 3)
  # The link carries 2 Mbit/s.
  expect_true(sent$ip_bps > 1.9e6 && sent$ip_bps < 2e6 && whole$ip_bps < 1.5e6)
  delivered <- goodput(x, name, duration_s = 3)
  expect_equal(delivered$goodput_bps, delivered$unique_bytes * 8 / 3)
  expect_equal(c(delivered$unique_bytes < goodput(x, name)$unique_bytes, delivered$last_s - delivered$first_s < 3), c(TRUE, TRUE))
})

test_that("the rates of a flow with a duration are means over this duration, and the rates of a flow with a size are means over its whole life", {
  x <- read_pcap(test_path("data", "outage-receiver.pcap.gz"))
  name <- data_flows(x)$flow[1]
  start_s <- attr(x, "epoch_s") + 1
  flow <- list(label = "bulk", generator = "iperf3", from = "a", to = "b", from_address = "172.16.10.2", to_address = "172.16.11.2", port = 5201L,
               start_s = 0, duration_s = 3)
  measured <- function(flow, ended_s = 5) {
    manifest <- list(resolved = list(mtu_bytes = 1500, hosts = list(a = list(role = "sender")), flows = list(flow), path = list(down = list(rate_bps = 2e6))),
                     t_start_s = start_s, t_end_s = start_s + ended_s)
    traces <- list(t_start_s = start_s, capture = \(of, flow = NULL) if (of == "b") x, path = \(...) character())
    found <- measure_flow(flow, traces, manifest)
    value <- stats::setNames(found$metrics$value, found$metrics$metric)
    list(rates = value[c("throughput_bps", "throughput_link_bps", "throughput_payload_bps", "goodput_bps")], together = metrics_together(list(sizes = found$size, manifest = manifest)),
         last_s = max(found$series[quantity == "throughput", t_s]))
  }
  levels <- \(duration_s) with(throughput_levels(x, name, duration_s), c(ip_bps, link_bps, payload_bps, goodput(x, name, duration_s)$goodput_bps))
  timed <- measured(flow)
  expect_equal(unname(timed$rates), levels(3))
  expect_equal(timed$together$throughput_total_bps, levels(3)[1])
  expect_equal(timed$together$link_utilisation_share, levels(3)[1] / 2e6)
  expect_lt(timed$last_s, 3)
  sized <- measured(flow[names(flow) != "duration_s"])
  expect_equal(unname(sized$rates), levels(NULL))
  expect_gt(sized$last_s, 4)
  # A condition ended the traffic after 2 s.
  expect_equal(unname(measured(flow, 2)$rates), levels(2))
})

test_that("rates over time end when the last flow stops sending, so that a tail of retransmissions is not in their distribution, unless the figure has its own end", {
  x <- read_pcap(test_path("data", "outage-receiver.pcap.gz"))
  start_s <- attr(x, "epoch_s") + 1
  flow <- list(label = "bulk", generator = "iperf3", from = "a", to = "b", from_address = "172.16.10.2", to_address = "172.16.11.2", port = 5201L,
               start_s = 0, duration_s = 3)
  traces <- list(t_start_s = start_s, capture = \(of, flow = NULL) if (of == "b") x, path = \(...) character())
  samples <- function(name, flow, to_s = Inf) {
    manifest <- list(resolved = list(mtu_bytes = 1500, hosts = list(a = list(role = "sender"), b = list(role = "receiver")), flows = list(flow)),
                     t_start_s = start_s, t_end_s = start_s + 5)
    entry <- outputs_of("series")[[name]]
    rows_of_series(name, entry, series_subjects(entry$scope %||% "flow", traces, manifest, -Inf, to_s), -Inf, to_s)
  }
  for (name in c("throughput", "throughput-payload", "throughput-link", "goodput", "throughput-total")) {
    sent <- samples(name, flow)
    expect_true(max(sent$series$t_s) > 2.8 && max(sent$series$t_s) < 3, info = name)
    # The path was cut for the last 0.1 s of the traffic and 0.9 s of the tail.
    expect_lt(mean(sent$quantiles$value == 0), 0.1)
    expect_gt(max(samples(name, flow, to_s = 4.5)$series$t_s), 4.4)
    expect_gt(max(samples(name, flow[names(flow) != "duration_s"])$series$t_s), 4.4)
  }
  # Counts per window also include retransmissions after the flow's duration.
  counted <- series_frame(traces, list(resolved = list(hosts = list(b = list()), flows = list(flow)), t_start_s = start_s, t_end_s = start_s + 5), -Inf, Inf)
  expect_gt(counted$to_s, 4.5)
})

test_that("rates over a duration are taken up to the last packet of a capture that ends sooner", {
  x <- read_pcap(test_path("data", "outage-receiver.pcap.gz"))
  name <- data_flows(x)$flow[1]
  first_ns <- x[flow == name & payload_bytes > 0, min(t_ns)]
  cut <- with_attributes(x[t_ns < first_ns + 2e9], x)
  found <- throughput_levels(cut, name, 3)
  expect_equal(found$elapsed_s, (max(cut$t_ns) - first_ns) / 1e9)
  expect_equal(found$ip_bps, throughput_levels(cut, name)$ip_bps, tolerance = 0.001)
})

test_that("the rates of a flow that stops sending early are means over its duration if the capture shows later packets of other flows", {
  packet <- \(sport) ethernet(ipv4(tcp(sport, 5001, payload = raw(1000)), 6))
  at_s <- c(seq(0, 2, by = 0.1), seq(0, 20, by = 0.1))
  capture <- read_pcap(write_capture(lapply(rep(c(40001, 40002), c(21, 201))[order(at_s)], packet), t_ns = sort(at_s) * 1e9))
  name <- "10.0.0.1:40001 > 10.0.0.2:5001"
  far <- conversation_of(capture, c(name, reverse_flow(name)))
  expect_equal(nrow(far), 21)
  expect_equal(throughput_levels(far, name, 20)$elapsed_s, 20)
  expect_equal(throughput_levels(far, name, 20), throughput_levels(capture, name, 20))
  expect_equal(goodput(far, name, 20)$goodput_bps, goodput(capture, name, 20)$goodput_bps)
})

test_that("a flow that has only a handshake has no rate, and does not prevent metrics of the trial's other flows", {
  packet <- \(sport, flags, bytes = 0) ethernet(ipv4(tcp(sport, 5001, flags = flags, payload = raw(bytes)), 6))
  frames <- c(lapply(0:19, \(i) packet(40001, 16, 100)), list(packet(40002, 2), packet(40002, 16)))
  capture <- read_pcap(write_capture(frames, t_ns = seq_along(frames) * 1e8))
  metrics <- \(name) capture_metrics(list(near = NULL, far = capture, name = name, flow = list(start_s = 0), manifest = list(t_start_s = 0, t_end_s = 2)))
  expect_gt(metrics("10.0.0.1:40001 > 10.0.0.2:5001")$throughput_bps, 0)
  expect_equal(metrics("10.0.0.1:40002 > 10.0.0.2:5001")$throughput_bps, NA_real_)
})

test_that("a span of time that ends after the trial has no windows after the end of the trial", {
  x <- read_pcap(test_path("data", "outage-receiver.pcap.gz"))
  traces <- list(t_start_s = attr(x, "epoch_s") + 1, capture = \(of, flow = NULL) x)
  manifest <- list(resolved = list(hosts = list(b = list()), flows = list()))
  ends_s <- end_of_trial_s(traces, manifest)
  expect_equal(series_frame(traces, manifest, 0, 100)[c("to_s", "rates_to_s")], list(to_s = ends_s, rates_to_s = ends_s))
  expect_equal(series_frame(traces, manifest, 0, 2)$rates_to_s, 2)
})

test_that("a capture whose packets have no times gives bytes but no rates", {
  capture <- read_pcap(committed_pair()$receiver)
  data.table::set(capture, NULL, "t_ns", NA_real_)
  flow <- data_flows(capture)$flow[1]
  for (duration_s in list(NULL, 1)) {
    expect_no_warning(found <- goodput(capture, flow, duration_s = duration_s))
    expect_identical(found$goodput_bps, NA_real_)
    expect_gt(found$unique_bytes, 0)
    expect_no_warning(levels <- throughput_levels(capture, flow, duration_s = duration_s))
    expect_identical(levels$payload_bps, NA_real_)
  }
})
