old <- siftr_lines("siftr-13.2-cut.log.gz")
new <- siftr_lines("siftr-14.0-cdg-cut.log.gz")
integrity <- function(x) attr(x, "integrity")
records <- function(lines) grep("^[io],", lines, value = TRUE)

test_that("a complete log of SIFTR has the independently computed counts, RTTs and window", {
  x <- read_siftr(whole_siftr())
  bulk <- x[flow == "172.16.10.2:46740 > 172.16.11.2:5201"]
  expect_equal(c(nrow(bulk), bulk[, sum(direction == "out")], bulk[, sum(direction == "in")]), c(25469, 16698, 8771))
  expect_equal(round(mean(bulk[state == "ESTABLISHED"]$srtt_us) / 1e3, 3), 59.376)
  expect_equal(range(bulk$srtt_us, na.rm = TRUE) / 1e3, c(22.406, 245.187))
  expect_equal(max(bulk$cwnd_bytes, na.rm = TRUE), 192584)
  expect_true(integrity(x)$whole)
  expect_equal(integrity(x)$records, 25509 - 10)
})

test_that("a record of SIFTR 1.2.4 is read field by field, with times converted to microseconds", {
  x <- read_siftr(text_file(c(old[1], "o,0xbb65b0bf,1795269403.222385,172.16.10.2,56722,172.16.11.2,5201,750064,749368,0,1473408,1500928,6,6,4,1460,5075,1,537920481,362,1860396,1621476,1500880,0,1473368,0,0,0", old[length(old)])))
  expect_equal(attr(x, "epoch_s"), 1795269403)
  expect_equal(x$t_ns, 222385000)
  expect_equal(as.character(x$flow), "172.16.10.2:56722 > 172.16.11.2:5201")
  expect_equal(list(as.character(x$src), x$sport, as.character(x$dst), x$dport), list("172.16.10.2", 56722L, "172.16.11.2", 5201L))
  expect_equal(x$srtt_us, 5075 * 1e6 / (1000 * 32))
  expect_equal(x$rto_us, 362e3)
  expect_equal(c(x$ssthresh_bytes, x$cwnd_bytes, x$snd_wnd_bytes, x$rcv_wnd_bytes, x$in_flight_bytes), c(750064, 749368, 1473408, 1500928, 1473368))
  expect_equal(c(x$flags, x$flags2, x$hash, x$mss_bytes, x$sack), c(537920481, 0, 0xbb65b0bf, 1460, 1))
  expect_equal(c(x$snd_buffer_bytes, x$snd_buffered_bytes, x$rcv_buffer_bytes, x$rcv_buffered_bytes, x$reassembly_segments), c(1860396, 1621476, 1500880, 0, 0))
  expect_equal(as.character(x$state), "ESTABLISHED")
})

test_that("a record of SIFTR 1.3.0 has no hash, and its times are in microseconds", {
  x <- read_siftr(text_file(c(new[1], "o,1795267976.270963,172.16.10.2,45737,172.16.11.2,5201,1073725440,14480,2,65535,1500880,6,6,4,1460,74000,1,16778209,422000,33580,0,1500880,0,0,0,866519386,63")))
  expect_equal(c(x$srtt_us, x$rto_us, x$ssthresh_bytes, x$cwnd_bytes, x$flags2, x$flow_id, x$flow_type),
               c(74000, 422000, Inf, 14480, 2, 866519386, 63))
  expect_false("hash" %in% names(x))
})

test_that("the layout of a SIFTR log is identified by version and number of fields", {
  layout <- \(lines) integrity(read_siftr(text_file(lines)))$layout
  expect_equal(layout(old), "1.2.4-flowid")
  expect_equal(layout(as_layout(old, \(f) f[1:26])), "1.2.4")
  expect_equal(layout(as_layout(old, \(f) f[1:25])), "1.2.3")
  expect_equal(layout(as_layout(old, \(f) c(f[1:26], "2400"))), "1.2.4-ertt")
  expect_equal(layout(new), "1.3.0")
  expect_equal(layout(as_layout(new, \(f) c(f, "4294967295", "17", "1448"))), "1.3.0-data")
})

test_that("the additional fields of the layouts 1.2.4-ertt and 1.3.0-data are read, and an unsmoothed RTT of -1 is NA", {
  ertt <- read_siftr(text_file(as_layout(old, \(f) c(f[1:26], if (f[1] == "i") "-1" else "2400"))))
  expect_equal(unique(ertt$ertt_us[ertt$direction == "out"]), 2400 * 1e6 / 32000)
  expect_true(all(is.na(ertt$ertt_us[ertt$direction == "in"])))
  data <- read_siftr(text_file(as_layout(new, \(f) c(f, "4294967295", "17", "1448"))))
  expect_equal(unlist(data[1, .(seq, ack, payload_bytes)], use.names = FALSE), c(4294967295, 17, 1448))
})

test_that("siftr2's hexadecimal records get their times from the header and their addresses from the footer", {
  x <- read_siftr(text_file(c(
    "enable_time_secs=1700000000\tenable_time_usecs=999500\tsiftrver=2.5\trec_fmt=txt\tsysver=1500000",
    "8a1b,o,3e8,3908,3fffc000,2710,5a8,10000,16e6c0,3e4,2,38270,8330,0,16e6c0,0,5a8,0",
    "disable_time_secs=1700000009\tdisable_time_usecs=1\tglobal_flow_cnt=1\tring_drops=3\tmax_str_size=90\tgen_flowid_cnt=0\tflow_list=8a1b,4,10.0.0.1,5000,10.0.0.2,80,freebsd,cubic,1448,1,6,6,1,1;"
  )))
  expect_equal(as.character(x$flow), "10.0.0.1:5000 > 10.0.0.2:80")
  expect_equal(attr(x, "epoch_s") + x$t_ns / 1e9, 1700000001.9995)
  expect_equal(c(x$cwnd_bytes, x$ssthresh_bytes, x$srtt_us, x$mss_bytes, x$in_flight_bytes, x$rto_us), c(14600, Inf, 10000, 1448, 1448, 230000))
  expect_equal(integrity(x)$skipped, 3)
})

test_that("IPv6 addresses have one form, whatever form the version of SIFTR prints", {
  swap <- \(f) replace(f, c(4, 6), c("fd00:0:0:0:0:0:0:1", "fd00:0:0:0:0:0:0:2"))
  x <- read_siftr(text_file(as_layout(old[c(1, 3)], swap)))
  expect_match(as.character(x$flow), "[fd00::1]:", fixed = TRUE)
})

test_that("a congestion window that was never set, for which SIFTR logs 1 GB, is NA", {
  x <- read_siftr(text_file(as_layout(new[1:3], \(f) replace(f, 8, "1073725440"))))
  expect_true(all(is.na(x$cwnd_bytes)) && all(is.na(x$swnd_bytes)))
  expect_true(all(x$ssthresh_bytes == Inf))
})

test_that("swnd is the smaller of cwnd and the window of the peer", {
  x <- read_siftr(text_file(as_layout(new[1:2], \(f) replace(f, c(8, 10), c("4194240", "1500928")))))
  expect_equal(c(x$cwnd_bytes, x$swnd_bytes), c(4194240, 1500928))
})

test_that("a smoothed RTT of zero in a SIFTR log, which means that TCP has no sample yet, is read as NA", {
  x <- read_siftr(text_file(as_layout(new[1:2], \(f) replace(f, 16, "0"))))
  expect_true(is.na(x$srtt_us))
})

test_that("a SIFTR log without a footer, or with fewer records than its footer counts, is incomplete", {
  lines <- c(new[1], records(new))
  expect_false(integrity(read_siftr(text_file(lines)))$whole)
  counts <- \(n) sprintf("disable_time_secs=1\tdisable_time_usecs=2\tnum_inbound_tcp_pkts=%d\tnum_outbound_tcp_pkts=7\ttotal_tcp_pkts=9\ttotal_skipped_tcp_pkts=7\tflow_list=,", n)
  expect_true(integrity(read_siftr(text_file(c(lines, counts(length(lines) - 1)))))$whole)
  expect_false(integrity(read_siftr(text_file(c(lines, counts(length(lines))))))$whole)
  expect_true(is.na(integrity(read_siftr(text_file(c(lines, counts(9))), packets_per_line = 10))$whole))
})

test_that("if a SIFTR log is split into two files, the footer in the second belongs to the header in the first", {
  head <- text_file(old[1:20])
  rest <- text_file(old[21:length(old)])
  both <- read_siftr(c(head, rest))
  expect_equal(nrow(integrity(both)), 1)
  expect_true(integrity(both)$footer)
  attributes <- c("path", "epoch_s")
  expect_equal(both, read_siftr(text_file(old)), ignore_attr = attributes)
  expect_error(read_siftr(rest), ":1: records of version 1.2 without the header", class = "samovar_error_siftr")
  expect_error(read_siftr(text_file(old[length(old)])), "only a footer of SIFTR", class = "samovar_error_siftr")
})

test_that("records of SIFTR 1.3.0 can be read without a header, but the log counts as incomplete", {
  x <- read_siftr(text_file(new[-1]))
  expect_equal(nrow(x), length(records(new)))
  expect_false(integrity(x)$header)
})

test_that("two SIFTR sessions in one file are reported separately", {
  x <- read_siftr(text_file(c(new, old)))
  expect_equal(integrity(x)$layout, c("1.3.0", "1.2.4-flowid"))
  expect_equal(integrity(x)$records, c(length(records(new)), length(records(old))))
  expect_equal(nrow(x), sum(integrity(x)$records))
})

test_that("records of other connections at the beginning of a SIFTR log are separate flows", {
  x <- read_siftr(text_file(old))
  expect_equal(as.character(x$flow[1]), "10.0.2.15:22 > 10.0.2.2:40134")
  expect_true("172.16.10.2:56722 > 172.16.11.2:5201" %in% levels(x$flow))
})

test_that("records of SIFTR that are out of time order are counted and sorted", {
  lines <- new[c(1, 3, 2)]
  x <- read_siftr(text_file(lines))
  expect_equal(integrity(x)$backwards, 1)
  expect_false(is.unsorted(x$t_ns))
  expect_true(all(x$t_ns >= 0))
})

test_that("malformed lines of a SIFTR log are counted, and the number of the first one is reported", {
  x <- read_siftr(text_file(c(new[1:3], "i,17952,interleaved", new[4], "", new[5:7])))
  expect_equal(unlist(integrity(x)[, .(malformed, first_malformed_line, records)], use.names = FALSE), c(1, 4, 6 - sum(!grepl("^[io],", new[5:7]))))
  expect_false(integrity(x)$whole)
})

test_that("a truncated last line of a SIFTR log is left out", {
  path <- text_file(c(new[1:3], substr(new[4], 1, nchar(new[4]) - 1)), end = "")
  x <- read_siftr(path)
  expect_equal(nrow(x), 2)
  expect_true(integrity(x)$cut)
})

test_that("compression by gzip and Windows line endings do not change the table that is read from a SIFTR log", {
  x <- read_siftr(text_file(new))
  expect_equal(read_siftr(text_file(new, end = "\r\n", sep = "\r\n")), x, ignore_attr = "path")
  packed <- test_path("data", "siftr-14.0-cdg-cut.log.gz")
  expect_equal(read_siftr(packed), x, ignore_attr = "path")
})

test_that("a file that is not a SIFTR log is an error with the file, the line and what is expected", {
  expect_error(read_siftr("nowhere.log"), "no such file", class = "samovar_error_file")
  expect_error(read_siftr(1), "must be the path", class = "samovar_error_argument")
  expect_error(read_siftr(text_file(character(), end = "")), "is empty; expected a log of SIFTR", class = "samovar_error_siftr")
  expect_error(read_siftr(text_file("hello\nworld")), ":1: is not a record of SIFTR", class = "samovar_error_siftr")
  expect_error(read_siftr(text_file(sub("1.3.0", "3.0", new[1], fixed = TRUE))), "1.2.x, 1.3.x or siftr2 2.x", class = "samovar_error_siftr")
  expect_error(read_siftr(text_file(sub("hz=1000", "hz=0", old[1], fixed = TRUE))), "hz=", class = "samovar_error_siftr")
  expect_error(read_siftr(text_file("enable_time_secs=1\tenable_time_usecs=2\tsiftrver=2.5\trec_fmt=binary")), "text records", class = "samovar_error_siftr")
  expect_error(read_siftr(text_file(rep(new[1], 300))), "more than 256", class = "samovar_error_siftr")
  expect_error(read_siftr(text_file("\xfd7zXZ")), "expected a plain, gzip- or zstd-compressed\\s+file", class = "samovar_error_siftr")
})

test_that("the causes of cwnd reductions in a real log follow from the flags and ssthresh", {
  k <- siftr_collapses(read_siftr(whole_siftr()))
  expect_equal(k$cause, rep("recovery", 13))
  expect_equal(k$t_ns[1:2], c(721525000, 946905000))
  expect_equal(k$until_ns[1:2], c(876273000, 1026757000))
  cdg <- siftr_collapses(read_siftr(text_file(new)))
  expect_equal(cdg$cause, c("timeout", rep("recovery", 7)))
  expect_equal(as.list(cdg[1, .(cwnd_before_bytes, cwnd_bytes, ssthresh_before_bytes, ssthresh_bytes)]),
               list(cwnd_before_bytes = 1357792, cwnd_bytes = 1448, ssthresh_before_bytes = 985928, ssthresh_bytes = 677664))
  expect_equal(siftr_collapses(read_siftr(text_file(old)))[, .N, by = cause]$cause, c("recovery", "timeout"))
})

# No log of a real lack of buffers was available: these are records of a real connection, changed in the way tcp_output() would.
test_that("a fall of cwnd to one segment with unchanged ssthresh and flags is a local lack of buffers, until cwnd grows", {
  steady <- grep("^o,", new, value = TRUE)[10]
  at <- \(t, cwnd, ssthresh, rto = 300123, flags = 996) {
    f <- strsplit(steady, ",")[[1]]
    values <- format(c(ssthresh, cwnd, flags, rto), scientific = FALSE, trim = TRUE)
    paste(replace(f, c(2, 7, 8, 18, 19), c(sprintf("1795269990.%06d", t), values)), collapse = ",")
  }
  cause <- \(...) siftr_collapses(read_siftr(text_file(c(new[1], ...))))
  k <- cause(at(1, 90000, 44888), at(2, 1448, 44888), at(3, 1448, 44888), at(4, 2896, 44888))
  expect_equal(k$cause, "enobufs")
  expect_equal(c(k$t_ns, k$until_ns), c(2000, 4000))
  expect_equal(cause(at(1, 90000, 44888), at(2, 1448, 30000))$cause, "timeout")
  expect_equal(cause(at(1, 90000, 44888), at(2, 1448, 30000, flags = 0x20000000))$cause, "recovery")
  expect_equal(cause(at(1, 2896, 2896), at(2, 1448, 2896, rto = 600300))$cause, "timeout")
  expect_equal(cause(at(1, 2896, 2896), at(2, 1448, 2896))$cause, "enobufs")
  expect_equal(nrow(cause(at(1, 90000, 44888), at(2, 45000, 44888))), 0)
})

test_that("reading a damaged log returns a table or raises a samovar error", {
  set.seed(20261121)
  sources <- list(charToRaw(paste0(paste(old[c(1:6, length(old))], collapse = "\n"), "\n")),
                  charToRaw(paste0(paste(new[c(1:6, length(new))], collapse = "\n"), "\n")))
  path <- tempfile()
  ends <- vapply(1:150, \(i) {
    writeBin(damaged(sources[[1 + i %% 2]]), path)
    tryCatch({
      x <- read_siftr(path)
      siftr_collapses(x)
      if (nrow(x) <= 12) "table" else "too many rows"
    }, samovar_error_siftr = \(e) "refused", error = \(e) conditionMessage(e))
  }, "")
  expect_setequal(ends, c("table", "refused"))
})
