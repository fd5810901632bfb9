fixture <- function(name) test_path("data", name)
values <- function(x, ...) unlist(as.list(x)[c(...)], use.names = FALSE)

test_that("iperf 2's CSV is separated into streams, intervals and totals, though its lines are interleaved", {
  x <- read_iperf(fixture("iperf-client.csv"))
  expect_equal(nrow(x), 10)
  expect_equal(x[total == TRUE, bytes], c(1152778300, 565313596))
  expect_equal(x[stream == 1 & total == FALSE, sum(bytes)], 152174652 + 533463040 + 282329088 + 184680448)
  expect_equal(values(x[1], "sport", "dport", "start_s", "end_s", "rate_bps"), c(59874, 5601, 0, 0.5, 2434794432))
})

test_that("iperf 2's UDP reports have jitter and loss, and a client's -1 is NA", {
  x <- read_iperf(fixture("iperf-udp-server.csv"))
  expect_equal(values(x[3], "jitter_ms", "lost_packets", "packets", "total"), c(0.008, 0, 344, 1))
  client <- read_iperf(text_file("20261121185545,127.0.0.1,38249,127.0.0.1,5603,1,0.0-2.0,505680,2011490,0.000,0,-1,-0.000,0"))
  expect_true(is.na(client$packets) && is.na(client$lost_packets))
})

test_that("iperf 2's text report has the same values as its CSV, in rounded units", {
  x <- read_iperf(fixture("iperf-client.txt"))
  expect_equal(x[1, .(stream, src, sport, dport, bytes, rate_bps)], data.table(stream = 2, src = "127.0.0.1", sport = 48682, dport = 5605, bytes = 136 * 2^20, rate_bps = 2.28e9))
  expect_equal(x[sum == FALSE & total == TRUE, .N], 2)
  udp <- read_iperf(fixture("iperf-udp-client.txt"))
  expect_equal(values(udp[!is.na(jitter_ms)], "jitter_ms", "lost_packets", "packets"), c(0.002, 0, 344))
  enhanced <- read_iperf(fixture("iperf-client-e.txt"))
  expect_equal(values(enhanced[1], "retransmissions", "cwnd_bytes", "rtt_us"), c(8, 895 * 1024, 127))
  comma <- read_iperf(text_file("[  3]  0,0- 1,0 sec  1,12 MBytes  9,44 Mbits/sec"))
  expect_equal(values(comma, "end_s", "bytes", "rate_bps"), c(1, 1.12 * 2^20, 9.44e6))
})

test_that("iperf3's JSON has an interval per stream with its addresses and ports", {
  x <- read_iperf3(fixture("iperf3-client.json"))
  truth <- jsonlite::fromJSON(fixture("iperf3-client.json"), simplifyVector = FALSE)
  expect_equal(nrow(x), sum(lengths(lapply(truth$intervals, \(i) i$streams))))
  first <- truth$intervals[[1]]$streams[[1]]
  expect_equal(values(x[1], "stream", "bytes", "rate_bps", "cwnd_bytes", "rtt_us", "retransmissions"),
               c(first$socket, first$bytes, first$bits_per_second, first$snd_cwnd, first$rtt, first$retransmits))
  expect_equal(x$sport[1], truth$start$connected[[1]]$local_port)
  expect_equal(attr(x, "epoch_s"), truth$start$timestamp$timesecs)
  expect_equal(attr(x, "totals")[side == "sender", bytes], truth$end$sum_sent$bytes)
  udp <- read_iperf3(fixture("iperf3-udp-server.json"))
  expect_equal(attr(udp, "protocol"), "UDP")
  expect_true(all(!is.na(udp$jitter_ms)))
})

test_that("JSON that is truncated, deeply nested or without intervals is an error with iperf3's own message", {
  text <- readLines(fixture("iperf3-client.json"))
  expect_error(read_iperf3(text_file(text[1:40])), ":40: the JSON is truncated", class = "samovar_error_log")
  expect_error(read_iperf3(text_file(strrep("[", 1e5))), "nested deeper", class = "samovar_error_log")
  expect_error(read_iperf3(fixture("iperf3-error.json")), "iperf3: unable to connect", class = "samovar_error_log")
  expect_error(read_iperf3(text_file("[1]")), "not an object", class = "samovar_error_log")
})

stream_lines <- function(name) readLines(fixture(paste0("iperf3-stream-", name, ".json")))

test_that("iperf3's JSON stream of events gives the same table as its single JSON object", {
  lines <- stream_lines("full")
  events <- startsWith(lines, '{"event":')
  whole <- read_iperf3(text_file(lines[!events]))
  expect_equal(nrow(whole), 2)
  expect_equal(read_iperf3(fixture("iperf3-stream-full.json")), whole)
  expect_equal(read_iperf3(text_file(lines[events])), whole)
  client <- read_iperf3(fixture("iperf3-stream-client.json"))
  truth <- lapply(stream_lines("client"), jsonlite::fromJSON, simplifyVector = FALSE)
  expect_equal(client$bytes, unlist(lapply(truth[2:3], \(e) lapply(e$data$streams, \(s) s$bytes))))
  expect_equal(client[3, .(stream, sport, cwnd_bytes, retransmissions)], with(truth[[3]]$data$streams[[1]], data.table(
    stream = socket, sport = truth[[1]]$data$connected[[1]]$local_port, cwnd_bytes = snd_cwnd, retransmissions = retransmits)))
  expect_equal(attr(client, "epoch_s"), truth[[1]]$data$timestamp$timesecs)
  expect_equal(attr(client, "totals")[, .(side, bytes)], data.table(side = c("sender", "receiver"), bytes = c(truth[[4]]$data$sum_sent$bytes, truth[[4]]$data$sum_received$bytes)))
})

test_that("the intervals of an interrupted JSON stream are read, with iperf3's error message", {
  x <- read_iperf3(fixture("iperf3-stream-interrupted.json"))
  expect_equal(nrow(x), 4)
  expect_match(attr(x, "error"), "interrupt")
  expect_equal(attr(x, "totals")[side == "sender", bytes], sum(x$bytes))
  lines <- stream_lines("interrupted")
  killed <- read_iperf3(text_file(c(lines[1:3], substr(lines[4], 1, 300)), end = ""))
  expect_equal(killed$bytes, x$bytes[1:2])
  expect_equal(nrow(attr(killed, "totals")), 0)
  expect_null(attr(killed, "error"))
  expect_equal(nrow(read_iperf3(text_file(lines[1:4], end = ""))), 3)
  expect_equal(nrow(read_iperf3(text_file(c(lines[1:4], '{"ev'), end = ""))), 3)
  # A server that is stopped adds an error and an empty end after its test.
  server <- stream_lines("server")
  stopped <- read_iperf3(text_file(server[c(4:8)]))
  expect_equal(attr(stopped, "totals")$bytes, c(NA, 131072, NA))
  expect_match(attr(stopped, "error"), "interrupt - the server")
})

test_that("a JSON stream that is damaged in the middle or has no interval is an error with the line number", {
  lines <- stream_lines("client")
  refuse <- \(text, what) expect_error(read_iperf3(text_file(text)), what, class = "samovar_error_log")
  refuse(c(lines[1:2], "warning: x", lines[3:4]), ":3: is not an event of --json-stream")
  refuse(c(lines, "iperf3: x"), ":5: is not an event of --json-stream")
  refuse(c(lines[1], substr(lines[2], 1, 200), lines[3]), ":2: the JSON is truncated")
  expect_error(read_iperf3(text_file('{"event":"sta', end = "")), "has no interval", class = "samovar_error_log")
  refuse(c(lines[1:2], '{"event":"interval",,}'), ":3: is not JSON")
  refuse(c(lines[1], paste0('{"event":', strrep("[", 100))), ":2: is nested deeper")
  refuse(c('{"event":"error","data":"unable to connect to server: Connection refused"}', '{"event":"end","data":{}}'), "has no interval \\(iperf3: unable to connect")
})

test_that("nuttcp's intervals are added up to times, from key=value pairs and from text", {
  x <- read_nuttcp(fixture("nuttcp.txt"))
  expect_equal(x$end_s, c(0.5, 1, 1.5, 2))
  expect_equal(values(x[4], "start_s", "bytes", "rate_bps", "retransmissions", "rtt_ms", "tx_cpu_share"), c(0, 3271.8125 * 2^20, 13718.8263e6, 0, 0.09, 0.39))
  udp <- read_nuttcp(fixture("nuttcp-udp.txt"))
  expect_equal(values(udp[4], "lost_packets", "packets"), c(0, 62))
  text <- read_nuttcp(fixture("nuttcp-text.txt"))
  expect_equal(text$total, c(FALSE, FALSE, FALSE, TRUE))
  expect_equal(values(text[4], "bytes", "rtt_ms", "rx_cpu_share"), c(1804.6875 * 2^20, 0.14, 0.24))
})

test_that("nttcp's two lines of totals are found among its other output", {
  x <- read_nttcp(text_file(c(
    "nttcp-l: nttcp, version 1.47", "nttcp-l: transmitted 8388608 bytes", "     Bytes  Real s   CPU s Real-MBit/s  CPU-MBit/s   Calls  Real-C/s   CPU-C/s",
    "l  8388608    4.73    4.60     14.2004     14.5911    2048    433.36     445.3", "nttcp-l: try to get outstanding messages from 1 remote clients",
    "1  8388608    4.73    0.03     14.1984   2236.9621    6145   1300.12  204833.3", "nttcp-1: exiting"
  )))
  expect_equal(x$side, c("local", "remote"))
  expect_equal(values(x[2], "bytes", "real_s", "cpu_s", "rate_bps", "cpu_rate_bps", "calls"), c(8388608, 4.73, 0.03, 14.1984e6, 2236.9621e6, 6145))
})

test_that("ping's replies are read in any language, with counts from its summary", {
  x <- read_ping(fixture("ping.txt"))
  expect_equal(x$rtt_ms, c(0.025, 0.065, 0.039))
  expect_equal(x$t_s[1], 1795287353.9008)
  expect_equal(c(attr(x, "sent"), attr(x, "received")), c(3, 3))
  german <- read_ping(text_file(c(
    "PING 10.0.0.1 (10.0.0.1) 56(84) Bytes an Daten.", "64 Bytes von 10.0.0.1: icmp_seq=65535 ttl=64 Zeit=0,254 ms", "no answer yet for icmp_seq=0",
    "64 Bytes von 10.0.0.1: icmp_seq=1 ttl=64 Zeit=1,5 ms (DUP!)", "Von 10.0.0.9 icmp_seq=2 Zielhost nicht erreichbar",
    "--- 10.0.0.1 Ping-Statistiken ---", "4 Pakete \u00fcbertragen, 2 empfangen, 50% Paketverlust, Zeit 3004ms"
  )))
  expect_equal(german$rtt_ms, c(0.254, NA, 1.5, NA))
  expect_equal(german$sequence, c(65535, 65536, 65537, 65538))
  expect_equal(german$answer, c("reply", "none", "duplicate", "none"))
  expect_equal(german$from[c(1, 4)], c("10.0.0.1", "10.0.0.9"))
  expect_equal(c(attr(german, "sent"), attr(german, "received")), c(4, 2))
})

test_that("a truncated reply and a reply without a time count as replies", {
  x <- read_ping(fixture("ping-truncated.txt"))
  expect_equal(x$sequence, c(1, 2, 2, 3, 3, 4))
  expect_equal(x$answer, c("reply", "reply", "reply", "reply", "duplicate", "reply"))
  expect_equal(x$rtt_ms, c(NA, NA, NA, 0.170, 0.193, NA))
  expect_equal(uniqueN(x[answer == "reply", sequence]), attr(x, "received"))
  untimed <- read_ping(fixture("ping-untimed.txt"))
  expect_equal(untimed$answer, c("reply", "reply"))
  expect_equal(untimed[, .(rtt_ms, rtt_below_ms, ttl, from)], data.table(rtt_ms = NA_real_, rtt_below_ms = NA_real_, ttl = 64, from = c("127.0.0.1", "127.0.0.1")))
  expect_equal(untimed$t_s[2], 1795337737.679169)
  quiet <- read_ping(text_file(c("--- 10.0.0.1 ping statistics ---", "4 packets transmitted, 2 received, 50% packet loss, time 3004ms")))
  expect_equal(c(nrow(quiet), attr(quiet, "sent")), c(0, 4))
})

test_that("a ping reply whose time is only known to be below a limit has an unknown RTT", {
  x <- read_ping(text_file(c(
    "56 bytes from 2001:A:B:C:D:E:F:B : icmp_seq=1 time<1 ms", "64 bytes from router (10.0.0.2): icmp_seq=2 ttl=64 time<1 ms", "64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time=2 ms",
    "64 bytes from 10.0.0.2: icmp_seq=4 ttl=64 time<1 ms (DUP!)", "From 10.0.0.9 icmp_seq=5 Destination Host Unreachable", "Request timeout for icmp_seq 6"
  )))
  expect_equal(x$answer, c("reply", "reply", "reply", "duplicate", "none", "none"))
  expect_equal(x$rtt_ms, c(NA, NA, 2, NA, NA, NA))
  expect_equal(x$rtt_below_ms, c(1, 1, NA, 1, NA, NA))
})

test_that("the address that answered a ping is found between host names, zones and punctuation", {
  before <- c("64 bytes from host.example (10.0.0.2):", "64 bytes from fe80::1%eth0:", "16 bytes from 2001:db8::5,", "64 bytes from a.example (2001:db8::7):")
  x <- read_ping(text_file(paste0(before, " icmp_seq=", 1:4, " ttl=64 time=1.5 ms")))
  expect_equal(x$from, c("10.0.0.2", "fe80::1%eth0", "2001:db8::5", "2001:db8::7"))
})

test_that("httperf's report is one row", {
  x <- read_httperf(text_file(c(
    "Total: connections 50 requests 5050 replies 5000 test-duration 9.193 s", "", "Connection rate: 5.4 conn/s (183.9 ms/conn, <=50 concurrent connections)",
    "Connection time [ms]: min 8364.0 avg 8757.5 max 9014.7 median 8899.5 stddev 231.9", "Connection time [ms]: connect 89.9",
    "Request rate: 549.3 req/s (1.8 ms/req)", "Reply rate [replies/s]: min 514.8 avg 514.8 max 514.8 stddev 0.0 (1 samples)",
    "Reply time [ms]: response 25.5 transfer 61.0", "Reply size [B]: header 147.0 content 53263.0 footer 2.0 (total 53412.0)",
    "Reply status: 1xx=0 2xx=5000 3xx=0 4xx=0 5xx=0", "CPU time [s]: user 9.00 system 0.20 (user 97.9% system 2.1% total 100.0%)",
    "Net I/O: 28407.8 KB/s (232.7*10^6 bps)", "Errors: total 50 client-timo 0 socket-timo 0 connrefused 0 connreset 50"
  )))
  expect_equal(values(x, "connections", "replies", "duration_s", "connection_time_median_ms", "connect_time_ms", "response_time_ms", "transfer_time_ms", "status_2xx", "reset"),
               c(50, 5000, 9.193, 8899.5, 89.9, 25.5, 61, 5000, 50))
  expect_equal(round(x$net_rate_bps / 1e6, 1), 232.7)
  expect_true(is.na(x$request_bytes))
})

test_that("a log of web10g is read by its column names, or by position if it has no header", {
  sample <- as.character(1:60)
  sample[1:6] <- c("1395884781.250001", "7", "10.0.0.1", "5000", "10.0.0.2", "80")
  unnamed <- read_web10g(text_file(paste(sample, collapse = ",")))
  expect_equal(values(unnamed, "connection", "sport", "dport", "srtt_us", "cwnd_bytes", "sample_rtt_us"), c(7, 5000, 80, 23000, 26, 45000))
  names <- paste0("V", 1:60)
  names[c(1:6, 23, 26, 47)] <- c("Timestamp", "CID", "LocalAddress", "LocalPort", "RemAddress", "RemPort", "SmoothedRTT", "CurCwnd", "SampleRTT")
  named <- read_web10g(text_file(c(paste(names, collapse = ","), paste(sample, collapse = ","))))
  expect_equal(c(attr(named, "epoch_s"), named$t_ns), c(1395884781, 250001000))
  expect_equal(values(named, "srtt_us", "sample_rtt_us", "V10"), c(23000, 47000, 10))
})

test_that("traces of tcp-probe, cpu, nic, pause-frames and beacons are read with the exact values of large numbers", {
  probe <- read_tcp_probe(text_file(c("t_ns,src,sport,dst,dport,data_bytes,snd_nxt,snd_una,cwnd_packets,ssthresh_packets,snd_wnd_bytes,srtt_us,rcv_wnd_bytes,cookie",
                                      "1795272676836408367,10.0.0.1,5000,10.0.0.2,80,0,4294967295,7,10,2147483647,65535,250,65535,1a")))
  expect_equal(values(probe, "t_ns", "snd_nxt", "cwnd_packets", "ssthresh_packets", "srtt_us"), c(836408367, 4294967295, 10, Inf, 250))
  cpu <- read_cpu(text_file(c("t_ns,cpu,busy_share,softirq_share,steal_share,user_s", "1795272676000000000,0,,,,1.5", "1795272677000000000,0,0.5,0.1,,2.0")))
  expect_equal(cpu$busy_share, c(NA, 0.5))
  nic <- read_nic(text_file(c("t_ns,interface,rx_bytes,card.rx_pause", "1795272676000000000,em1,5000000000,3")))
  expect_equal(values(nic, "rx_bytes", "card.rx_pause"), c(5e9, 3))
  pause <- read_pause_frames(text_file(c("t_ns,interface,direction,src,opcode,classes,quanta", "1795272676000000000,e,in,a,0x0001,,65535", "1795272676000000001,e,in,a,0x0101,3,1 2 0 0 0 0 0 0")))
  expect_equal(pause$pause_quanta, c(65535, NA))
  beacons <- read_beacons(text_file(c("t_ns,direction,src,id,sequence,sent_ns", "1795272676000000000,in,10.0.0.1,9,1,1795272675999999999")))
  expect_identical(beacons$sent_ns, "1795272675999999999")
})

test_that("PAUSE frames logged by FreeBSD's recipe are equal to those read from the capture", {
  logged <- read_pause_frames(test_path("data", "pause-frames-freebsd.csv"))
  expect_equal(logged$direction, c("in", "in", "in", "in", "in", "out"))
  expect_equal(logged$pause_quanta, c(65535, 0, 4660, NA, NA, 255))
  expect_equal(logged$quanta[4], "1 2 0 0 0 0 0 65535")
  expect_equal(pause_intervals(logged, link_bps = 1e9)$paused_s, c(65535, 4660) * 512 / 1e9)
  captured <- read_pcap(test_path("data", "pause-frames.pcap"))
  expect_equal(captured[proto == "pause", window], logged[opcode == "0x0001", pause_quanta])
  later_ns <- (attr(logged, "epoch_s") - attr(captured, "epoch_s")) * 1e9
  expect_equal(captured[proto == "pause", t_ns], logged[opcode == "0x0001", t_ns] + later_ns)
})

readers <- list(
  read_iperf = c("iperf-client.csv", "iperf-client.txt", "iperf-udp-server.csv", "iperf-client-e.txt"), read_iperf3 = c("iperf3-client.json", "iperf3-stream-client.json", "iperf3-text-server.txt"),
  read_nuttcp = c("nuttcp.txt", "nuttcp-text.txt"), read_ping = c("ping.txt", "ping-truncated.txt"), read_nttcp = "nuttcp.txt", read_httperf = "ping.txt", read_web10g = "iperf-client.csv",
  read_cpu = "iperf-client.csv", read_beacons = "ss-6.1.txt", read_nic = "nuttcp.txt", read_pause_frames = "ping.txt", read_tcp_probe = "ping.txt",
  read_tcp_info = "ping.txt", read_queue = "iperf-client.csv",
  read_requests = "requests.csv", read_messages = "messages.csv"
)

test_that("every reader of a log or trace is tested with damaged files", {
  elsewhere <- c("read_pcap", "read_pcap_parts", "read_siftr", "read_ss", "read_campaign")
  expect_setequal(c(names(readers), elsewhere), grep("^read_", getNamespaceExports("samovar"), value = TRUE))
})

test_that("every reader raises an error with the name of the file for empty files and files of another format", {
  empty <- text_file(character(), end = "")
  for (name in names(readers)) {
    read <- getExportedValue("samovar", name)
    for (path in c(empty, text_file("hello\nworld"), text_file(rawToChar(as.raw(c(1:9, 11:200)))))) {
      expect_error(read(path), basename(path), fixed = TRUE, info = name)
    }
    expect_error(read("nowhere"), "no such file", info = name)
  }
})

test_that("every reader of logs returns a table or raises a samovar error for damaged files", {
  set.seed(20261121)
  path <- tempfile()
  strange <- character()
  for (name in names(readers)) {
    read <- getExportedValue("samovar", name)
    for (i in seq_len(16)) {
      file <- fixture(readers[[name]][1 + i %% length(readers[[name]])])
      writeBin(damaged(readBin(file, "raw", 4000)), path)
      outcome <- tryCatch(if (is.data.table(read(path))) "", samovar_error_log = \(e) "", samovar_error_trace = \(e) "", error = \(e) paste(name, conditionMessage(e)))
      strange <- c(strange, outcome)
    }
  }
  expect_equal(setdiff(strange, ""), character())
})

test_that("reading a damaged trace of logger cpu returns a table or raises a samovar error", {
  set.seed(3)
  rows <- c("t_ns,cpu,busy_share,softirq_share,steal_share", sprintf("17952726%011.0f,0,0.5,0.1,", 1e9 * 1:20))
  source <- charToRaw(paste0(paste(rows, collapse = "\n"), "\n"))
  path <- tempfile()
  ends <- vapply(1:30, \(i) {
    writeBin(damaged(source), path)
    tryCatch(if (is.data.table(read_cpu(path))) "table", samovar_error_trace = \(e) "refused", error = \(e) conditionMessage(e))
  }, "")
  expect_true(all(ends %in% c("table", "refused")))
})
