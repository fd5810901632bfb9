# Compressed files, reading in parts, and memory limits.

test_that("a zstd stream gives the same table as a plain file, and a truncated stream gives the packets before its end", {
  plain <- plain_copy(committed_pair()$sender)
  whole <- read_pcap(plain, "all")
  packed <- zstd_copy(plain)
  expect_equal(read_pcap(packed, "all"), whole, ignore_attr = "path")
  bytes <- readBin(packed, "raw", file.size(packed))
  for (share in c(0.6, 0.8, 0.99)) {
    x <- read_incomplete(write_bytes(bytes[seq_len(floor(length(bytes) * share))]), "all")
    expect_true(attr(x, "truncated"))
    expect_match(attr(x, "truncated_note"), "zstd stream ends before its end mark \\(byte [0-9]+\\)")
    expect_equal(x$id, whole$id[seq_len(nrow(x))])
  }
  expect_gt(nrow(x), 0)
  bytes[floor(length(bytes) * 0.9) + 0:20] <- as.raw(0xa5)
  expect_match(attr(read_incomplete(write_bytes(bytes)), "truncated_note"), "zstd stream is damaged")
})

test_that("consecutive zstd frames and gzip members are one stream", {
  bytes <- capture_bytes(list(ethernet(ipv4(udp(), 17)), ethernet(ipv4(udp(), 17))))
  halves <- list(bytes[1:50], bytes[-(1:50)])
  packed <- lapply(halves, \(half) {
    file <- zstd_copy(write_bytes(half))
    readBin(file, "raw", file.size(file))
  })
  skipped <- c(as.raw(c(0x50, 0x2a, 0x4d, 0x18)), rev(big(3, 4)), raw(3))
  expect_equal(nrow(read_pcap(write_bytes(c(packed[[1]], skipped, packed[[2]])))), 2L)
  expect_equal(nrow(read_pcap(write_bytes(c(skipped, unlist(packed))))), 2L)
  members <- unlist(lapply(halves, \(half) {
    file <- write_bytes(half, compressed = TRUE)
    readBin(file, "raw", file.size(file))
  }))
  expect_equal(nrow(read_pcap(write_bytes(members))), 2L)
})

test_that("a zstd frame that asks for an unreasonable amount of memory is an error", {
  file <- write_bytes(capture_bytes(list(ethernet(ipv4(udp(payload = raw(1000)), 17)))))
  need_tool("zstd")
  packed <- tempfile(fileext = ".zst")
  stopifnot(system(paste("zstd -q --ultra --long=30 <", shQuote(file), ">", shQuote(packed))) == 0L)
  expect_error(read_pcap(packed), "cannot be read: the zstd stream is damaged .*memory")
})

test_that("the rows of all parts of a capture are the rows of the whole capture", {
  for (path in c(committed_pair()$sender, plain_copy(committed_pair()$sender))) {
    whole <- read_pcap(path)
    parts <- read_pcap_parts(path, \(part) part, packets = 997)
    expect_equal(vapply(parts, nrow, 1L), c(rep(997L, nrow(whole) %/% 997), nrow(whole) %% 997))
    rows <- \(name) unlist(lapply(parts, \(part) as.character(part[[name]])))
    for (name in c("t_ns", "flow", "src", "id")) expect_equal(rows(name), as.character(whole[[name]]))
    expect_true(all(vapply(parts, \(part) as.integer(part$flow[997]) == as.integer(whole$flow[match(part$t_ns[997], whole$t_ns)]),
                           NA), na.rm = TRUE))
    expect_s3_class(throughput_windows(parts[[2]], 0.1), "data.table")
  }
  expect_equal(read_pcap_parts(write_capture(list()), nrow), list())
})

test_that("a capture that is read in parts does not stay in memory", {
  # 64 MB in packets that leave no page of the file unread.
  path <- write_capture(rep(list(ethernet(ipv4(udp(payload = raw(16000)), 17))), 4000))
  file_mb <- function() as.numeric(gsub("\\D", "", grep("^RssFile", readLines("/proc/self/status"), value = TRUE))) / 1024
  before_mb <- file_mb()
  mb <- unlist(read_pcap_parts(path, \(part) file_mb() - before_mb, packets = 250))
  expect_length(mb, 16)
  expect_lt(max(mb), 16)
})

test_that("read_pcap() returns only the requested columns", {
  path <- write_capture(list(ethernet(ipv4(udp(), 17))))
  expect_named(read_pcap(path, c("t_ns", "ttl")), c("t_ns", "ttl"))
  usual <- names(read_pcap(path))
  expect_named(read_pcap(path, c("usual", "ttl")), c(usual, "ttl"))
  expect_setequal(names(read_pcap(path, "all")), samovar:::capture_columns()$name)
  expect_error(read_pcap(path, "colour"), "\"colour\".*expected", class = "samovar_error_argument")
  expect_error(read_pcap(path, mtu_bytes = 0), "mtu_bytes", class = "samovar_error_argument")
})

test_that("the help page of read_pcap() names every column and every attribute", {
  manual <- paste(utils::capture.output(tools::Rd2txt(
    utils:::.getHelpFile(utils::help("read_pcap", package = "samovar")), options = list(underline_titles = FALSE)
  )), collapse = " ")
  x <- read_pcap(write_capture(list()), "all")
  for (name in c(names(x), setdiff(names(attributes(x)), c("names", "row.names", "class", ".internal.selfref")))) {
    expect_match(manual, name, fixed = TRUE)
  }
})
