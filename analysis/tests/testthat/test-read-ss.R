fixture <- function(name) test_path("data", name)

test_that("samples of iproute2 6.1 are read with the timestamps between them", {
  x <- read_ss(fixture("ss-6.1.txt"))
  expect_equal(nrow(x), 12)
  expect_equal(attr(x, "epoch_s"), 1795288592)
  expect_equal(unique(x$t_ns)[1:2], c(583462681, 952714545))
  bulk <- x[sport == 40426][1]
  expect_equal(as.character(bulk$cc), "bbr")
  expect_equal(unlist(bulk[, .(srtt_us, rttvar_us, min_rtt_us, rto_us, cwnd_packets, snd_mss_bytes, bytes_sent, send_rate_bps, delivery_rate_bps, reordering_packets)], use.names = FALSE),
               c(120, 20, 7, 204000, 18, 65483, 6553637, 78579600000, 74837714280, 7))
  expect_equal(c(bulk$ssthresh_packets, bulk$total_retrans_packets, bulk$bbr_rate_bps), c(Inf, 0, 74837709824))
  expect_false(bulk$app_limited)
  expect_true("127.0.0.1" %in% levels(x$src) && !any(grepl("ffff", levels(x$src))))
})

test_that("output of ss with one line per socket (-O), or with memory before the other values (-m), is read", {
  one <- read_ss(fixture("ss-6.1-one-line.txt"))
  expect_equal(nrow(one), 2)
  expect_equal(as.character(one$cc), c("bbr", "bbr"))
  expect_equal(one$cwnd_packets, c(13, 18))
  expect_true(all(is.na(one$t_ns)))
  memory <- read_ss(fixture("ss-6.1-memory.txt"))
  expect_equal(as.character(memory$cc), c("bbr", "bbr"))
})

test_that("rates with prefixes, and retransmissions as older versions of ss print them, are read", {
  x <- read_ss(text_file(c(
    "State Recv-Q Send-Q    Local Address:Port     Peer Address:Port", "ESTAB 0      0      192.168.178.24:52180      10.20.7.9:5432",
    "\t cubic wscale:7,7 rto:236 rtt:34.812/2.104 ato:40 mss:1348 cwnd:10 ssthresh:7 send 3.1Mbps lastsnd:12 pacing_rate 6.2Mbps retrans:1/61 lost:2 rcv_space:14480 minrtt:33.9",
    "tcp   ESTAB 0 512 [2001:db8::1]%eth0:22 [2001:db8::2]:50000 timer:(on,200ms,0)", "\t ts sack cubic rto:201 rtt:0,5/0,25 cwnd:10 rwnd_limited:16ms(0.5%)"
  )))
  expect_equal(unlist(x[1, .(srtt_us, send_rate_bps, pacing_rate_bps, retrans_packets, total_retrans_packets, lost_packets, ssthresh_packets)], use.names = FALSE),
               c(34812, 3.1e6, 6.2e6, 1, 61, 2, 7))
  expect_equal(as.character(x$src[2]), "2001:db8::1")
  expect_equal(c(x$srtt_us[2], x$rwnd_limited_ms[2], x$send_q_bytes[2]), c(500, 16, 512))
  expect_equal(as.character(x$cc), c("cubic", "cubic"))
})

test_that("output of ss with a time stamp on each line gives the same samples as with a line of the time before each sample", {
  lines <- readLines(fixture("ss-6.1.txt"))
  times <- grepl("^[0-9.]+$", lines)
  stamped <- paste(lines[times][cumsum(times)], lines)[!times]
  expect_equal(read_ss(text_file(stamped)), read_ss(fixture("ss-6.1.txt")))
  whole_s <- read_ss(text_file(sub("[.][0-9]+", "", stamped)))
  expect_equal(unique(whole_s$t_ns), c(0, 1e9))
  expect_equal(attr(whole_s, "strange_lines"), 0)
  # A blank line with a stamp ends a sample, and an incomplete last line removes the sample that it belongs to.
  expect_equal(read_ss(text_file(c(stamped, "1795288600.5 ", "1795288600.5"))), read_ss(text_file(stamped)))
  expect_equal(nrow(read_ss(text_file(substr(stamped[1:3], 1, c(500, 500, 80)), end = ""))), nrow(read_ss(text_file(stamped[1:3]))) - 1)
})

test_that("a truncated last sample of ss is left out, unknown lines are counted, and a file that is not output of ss is an error", {
  lines <- readLines(fixture("ss-6.1.txt"))
  whole <- read_ss(text_file(lines[1:6]))
  expect_equal(nrow(read_ss(text_file(c(lines[1:5], substr(lines[6], 1, 60)), end = ""))), nrow(whole) - 1)
  expect_equal(attr(read_ss(text_file(c(lines[1:4], "ss: no memory", lines[5:6]))), "strange_lines"), 1)
  expect_equal(nrow(read_ss(text_file(c("1795288592.5", lines[2])))), 0)
  expect_error(read_ss(text_file("hello")), ":1: is not output of ss", class = "samovar_error_log")
})

test_that("reading damaged output of ss returns a table or raises a samovar error", {
  set.seed(1)
  source <- readBin(fixture("ss-6.1.txt"), "raw", 3000)
  path <- tempfile()
  ends <- vapply(1:80, \(i) {
    writeBin(damaged(source), path)
    tryCatch(if (is.data.table(read_ss(path))) "table", samovar_error_log = \(e) "refused", error = \(e) conditionMessage(e))
  }, "")
  expect_true(all(ends %in% c("table", "refused")))
})
