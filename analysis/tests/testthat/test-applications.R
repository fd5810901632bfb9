# Applications, measured from the logs of their generators: two recorded trials, and values that recommendations and papers print.

recorded <- function(...) file.path(testthat::test_path("..", "traces", "applications"), ...)
log_of <- function(trial, name) Sys.glob(recorded("trials", paste0(trial, "-r1-*"), "logs", paste0(name, ".out.gz")))
requests <- function(...) {
  x <- data.table::data.table(bytes = 1000, seconds = 0.1, late_s = 0, first_byte_s = 0.01, play_s = NA_real_, ...)
  data.table::setattr(x[, received_bytes := if ("finished" %in% names(x)) bytes * finished else bytes][, finished := received_bytes >= bytes], "epoch_s", 100)[]
}
messages <- function(number, sent_ms, delay_ms) {
  x <- data.table::data.table(t_ns = (sent_ms + delay_ms) * 1e6, sent_ns = sent_ms * 1e6, number = number, bytes = 172)
  data.table::setattr(x, "epoch_s", 100)[]
}

# --- Readers

test_that("a log of requests has its times, sizes and numbers", {
  x <- read_requests(log_of("pfifo", "web-client"))
  text <- strsplit(readLines(log_of("pfifo", "web-client"))[-1], ",")
  expect_equal(nrow(x), length(text))
  expect_equal(sprintf("%.0f%09.0f", attr(x, "epoch_s") + x$t_ns %/% 1e9, x$t_ns %% 1e9), vapply(text, `[`, "", 1))
  expect_equal(x$seconds, as.numeric(vapply(text, `[`, "", 3)))
  expect_equal(x[, .N, by = number][1:5]$N, rep(3L, 5))
  expect_equal(x$finished, c(rep(TRUE, nrow(x) - 1), FALSE))
})

test_that("each request in a log without numbers gets a number and counts as finished", {
  path <- tempfile()
  writeLines(c("t_ns,bytes,seconds,late_s", "1795448160000000001,500,0.25,0", "1795448161500000002,600,0.5,0.125", "17954481"), path)
  x <- read_requests(path)
  expect_equal(x[, .(t_ns, bytes, seconds, late_s, number, received_bytes, finished)], data.table::data.table(
    t_ns = c(1, 1.5e9 + 2), bytes = c(500, 600), seconds = c(0.25, 0.5), late_s = c(0, 0.125), number = c(0, 1), received_bytes = c(500, 600), finished = TRUE
  ), ignore_attr = TRUE)
  expect_true(all(is.na(x$play_s)) && all(is.na(x$first_byte_s)))
})

test_that("a log of packets has both times of each packet exactly", {
  x <- read_messages(log_of("fq-codel", "call-server"))
  first <- strsplit(readLines(log_of("fq-codel", "call-server"))[2], ",")[[1]]
  exact <- \(ns) sprintf("%.0f%09.0f", attr(x, "epoch_s") + ns %/% 1e9, ns %% 1e9)
  expect_equal(c(exact(x$sent_ns[1]), exact(x$t_ns[1])), first[2:3])
  expect_equal(unique(x$bytes), 172)
})

test_that("damaged rows of a log are left out", {
  path <- tempfile()
  writeLines(c("number,t_sent_ns,t_ns,bytes", "0,1795448160000000001,1795448160010000001,172", "x1,1795448160020000001,1795448160030000001,172", "2,17,1795448160050000001,172"), path)
  expect_equal(read_messages(path)$number, 0)
})

test_that("a file that is not a log of requests or packets is an error that names a missing column", {
  path <- tempfile()
  writeLines("a,b\n1,2", path)
  expect_error(read_requests(path), "no column t_ns", class = "samovar_error_trace")
  expect_error(read_messages(path), "no column t_ns", class = "samovar_error_trace")
})

# --- Pages, videos, queries

test_that("the time of a page is from its first request to the last byte of its last object", {
  x <- requests(number = c(0, 0, 1, 1), t_ns = c(0, 0.5, 2, 2.5) * 1e9, finished = c(TRUE, TRUE, TRUE, FALSE))
  expect_equal(page_times(x)[, .(number, objects, page_s)], data.table::data.table(number = 0:1, objects = 2L, page_s = c(0.6, NA)), ignore_attr = TRUE)
})

test_that("a video starts with its first chunk, and stalls until the next chunk when all chunks have been played", {
  # Chunks of 2 s arrive 1, 2, 6 and 7 s after the first request. The first two play from 1 to 5 s, so the video stalls from 5 to 6 s.
  x <- requests(number = 0:3, t_ns = c(0, 1, 5, 6) * 1e9)[, `:=`(seconds = 1, play_s = 2, bytes = c(1e5, 2e5, 2e5, 1e5))]
  video <- play_video(x)
  expect_equal(attr(video, "startup_s"), 1)
  expect_equal(video$stall_s, c(0, 0, 1, 0))
  expect_equal(video$ahead_s, c(2, 3, 2, 3))
  expect_equal(c(attr(video, "rebuffering_s"), attr(video, "stalls")), c(1, 1))
  expect_equal(video$bitrate_bps, c(4e5, 8e5, 8e5, 4e5))
})

test_that("the bit rate of a video is the mean over its playing time, and a change by a factor of two is a switch", {
  # The third chunk has a byte more than the second, as rounding may cause; the last chunk lasts 1 s.
  x <- requests(number = 0:3, t_ns = 0:3 * 1e9)[, `:=`(seconds = 0.5, play_s = c(2, 2, 2, 1), bytes = c(1e5, 2e5, 2e5 + 1, 5e4))]
  found <- video_metrics(list(flow = list(generator = "dash"), logs = list(x)))
  expect_equal(found[c("startup_s", "rebuffering_s", "stalls", "bitrate_switches", "video_arrived_s")],
               list(startup_s = 0.5, rebuffering_s = 0, stalls = 0, bitrate_switches = 2L, video_arrived_s = 7))
  expect_equal(found$bitrate_bps, 8 * (5.5e5 + 1) / 7)
  expect_equal(video_metrics(list(flow = list(generator = "dash"), logs = list(x[, finished := FALSE]))), list(video_arrived_s = 0))
})

test_that("an unfinished last chunk stalls a video until the end of the flow", {
  x <- requests(number = 0:1, t_ns = c(0, 2) * 1e9, finished = c(TRUE, FALSE))[, `:=`(seconds = c(1, 5), play_s = 2)]
  video <- play_video(x)
  expect_equal(nrow(video), 1)
  expect_equal(c(attr(video, "rebuffering_s"), attr(video, "stalls")), c(4, 1)) # plays from 1 to 3 s, stalls until 7 s
  expect_true(is.na(attr(play_video(x[2]), "startup_s")))
})

test_that("the time of a query is from the time at which it was due to its slowest answer", {
  fast <- requests(number = 0:2, t_ns = c(0, 1, 2) * 1e9)
  slow <- requests(number = 0:2, t_ns = c(0, 1.3, 2) * 1e9, finished = c(TRUE, TRUE, FALSE))[, `:=`(seconds = c(0.2, 0.4, 1), late_s = c(0, 0.3, 0))]
  expect_equal(query_completion(list(fast, slow))$query_s, c(0.2, 0.7, NA))
  expect_equal(query_completion(list(fast, slow[-1]))$query_s, c(NA, 0.7, NA))
})

# --- Packets

test_that("lost packets are the numbers missing below the highest number, and packets that are passed as late count as lost", {
  x <- messages(c(0, 1, 5, 4, 7, 7), sent_ms = 20 * c(0, 1, 5, 4, 7, 7), delay_ms = 10)
  expect_equal(message_loss(x), list(expected_packets = 8, lost_packets = 3, loss_share = 3 / 8, burst_ratio = 1))
  expect_equal(message_loss(x, late = c(4, 5))$lost_packets, 5)
  expect_equal(message_loss(x, late = 4:5)$burst_ratio, 5 * (1 - 5 / 8))
  expect_true(is.na(message_loss(x[0])$loss_share))
})

test_that("independent losses have a burst ratio of 1", {
  set.seed(7)
  arrived <- which(stats::runif(2e5) > 0.1) - 1
  expect_equal(message_loss(messages(arrived, arrived, 10))$burst_ratio, 1, tolerance = 0.02)
})

test_that("delays do not depend on the clocks of the two hosts", {
  there <- messages(0:2, c(0, 20, 40), c(12, 15, 30))
  back <- messages(0:2, c(5, 25, 45), c(8, 9, 8))
  near <- message_delays(there, back)
  expect_equal(near, list(there = c(10, 13, 28), back = c(10, 11, 10)))
  # Both tables as recorded if the clock of the host that receives `there` were five seconds ahead.
  ahead <- message_delays(data.table::copy(there)[, t_ns := t_ns + 5e9], data.table::copy(back)[, sent_ns := sent_ns + 5e9])
  expect_equal(ahead, near)
})

# --- The E-model

test_that("the E-model's defaults give the rating that G.107 states", {
  expect_equal(round(e_model()$r, 1), 93.2) # clause 7.7
})

test_that("mean opinion scores are equal to those of a table in G.107", {
  # Table B.1: lower limits of the categories of quality.
  expect_lt(max(abs(e_model_mos(c(90, 80, 70, 60, 50)) - c(4.34, 4.03, 3.60, 3.10, 2.58))), 0.0065)
  expect_equal(e_model_mos(c(-5, 0, 100, 120)), c(1, 1, 4.5, 4.5))
})

test_that("G.107's inverse of the mean opinion score gives back the rating", {
  # Appendix I, for 6.5 <= R <= 100.
  r <- seq(7, 99, by = 4)
  mos <- e_model_mos(r)
  h <- atan2(15 * sqrt(-903522 + 1113960 * mos - 202500 * mos^2), 18566 - 6750 * mos) / 3
  expect_equal(20 / 3 * (8 - sqrt(226) * cos(h + pi / 3)), r, tolerance = 1e-3)
})

test_that("the impairment by delay is within 1 of a published fit", {
  # R. G. Cole, J. H. Rosenbluth, Voice over IP performance monitoring, ACM CCR 31(2), 2001: 0.024 d + 0.11 (d - 177.3) H(d - 177.3).
  d <- seq(0, 300, by = 10)
  expect_lt(max(abs(e_model(ta_ms = d)$id - (0.024 * d + 0.11 * pmax(d - 177.3, 0)))), 1)
})

test_that("the impairment by loss is within 1.2 of a published fit for G.711 with concealment", {
  # The same paper: 30 ln(1 + 15 e) for independent losses.
  e <- seq(0, 0.15, by = 0.01)
  expect_lt(max(abs(e_model(loss_share = e, bpl = 25.1)$ie_eff - 30 * log(1 + 15 * e))), 1.2)
})

test_that("bursts of losses and a codec without concealment lower the rating", {
  r <- \(...) e_model(loss_share = 0.02, ...)$r
  expect_lt(r(bpl = 4.3), r(bpl = 25.1) - 15)
  expect_lt(r(bpl = 4.3, burst_ratio = 2), r(bpl = 4.3))
})

test_that("a call is played with the delay that gives the best rating", {
  delay_ms <- c(rep(30, 990), rep(400, 10))[(7 * 0:999) %% 1000 + 1]
  x <- messages(0:999, 20 * 0:999, delay_ms)
  call <- call_quality(x, delay_ms)
  expect_equal(call$playout_ms, 30)
  late <- message_loss(x, which(delay_ms > 30) - 1)
  expect_equal(call$e_model_r, e_model(50, 0.01, late$burst_ratio, bpl = 25.1)$r)
  expect_equal(call$mos, e_model_mos(call$e_model_r))
  expect_gt(call$e_model_r, e_model(420, bpl = 25.1)$r)
})

test_that("the flow of a call is the direction from its sender, even if more data arrives in the other one", {
  call <- list(generator = "voip", port = 5002, from_address = "10.0.0.1", to_address = "10.0.0.2")
  there <- ethernet(ipv4(udp(4000, 5002, raw(172)), 17))
  back <- ethernet(ipv4(udp(5002, 4000, raw(172)), 17, src = "10.0.0.2", dst = "10.0.0.1"))
  capture <- \(n) read_pcap(write_capture(c(rep(list(there), n), rep(list(back), 40))))
  expect_equal(flow_in_capture(call, capture(30)), "10.0.0.1:4000 > 10.0.0.2:5002")
  expect_equal(flow_in_capture(call, capture(1)), "10.0.0.2:5002 > 10.0.0.1:4000") # a single packet there is a request, whose answer is the flow
})

# --- Recorded trials

measured <- local({
  found <- NULL
  \() {
    if (is.null(found)) {
      campaign <- read_campaign(recorded())
      found <<- lapply(campaign$manifests, \(m) measure_trial(recorded(), m))
    }
    found
  }
})
value_of <- function(trial, label, name) {
  x <- measured()[[grep(paste0("^", trial), names(measured()))]]$metrics
  x[flow == label & metric == name]$value
}

test_that("a recorded trial without captures has metrics of each application", {
  for (x in measured()) {
    names_of <- \(label) x$metrics[flow == label]$metric
    expect_true(all(c("page_median_s", "object_p95_s", "first_byte_median_s") %in% names_of("web")))
    expect_true(all(c("startup_s", "rebuffering_s", "bitrate_bps", "bitrate_switches") %in% names_of("video")))
    expect_true(all(c("query_median_s", "query_p99_s", "response_median_s") %in% names_of("query")))
    expect_true(all(c("mos", "e_model_r", "message_loss_share", "back_message_jitter_ms") %in% names_of("call")))
    expect_true("message_delay_p99_ms" %in% names_of("game"))
    expect_false("mos" %in% names_of("game"))
    expect_equal(anyDuplicated(x$metrics[, .(flow, metric)]), 0L)
    expect_equal(nrow(x$notes), 0)
  }
})

test_that("metrics of recorded trials are equal to values computed from the lines of the logs", {
  for (trial in c("pfifo", "fq-codel")) {
    rows <- \(name) utils::read.csv(log_of(trial, name))
    web <- rows("web-client")
    web <- web[web$received_bytes == web$bytes, ]
    expect_equal(value_of(trial, "web", "object_median_s"), median(web$seconds))
    queries <- do.call(cbind, lapply(1:3, \(k) with(rows(sprintf("query-%d-client", k)), c(late_s + seconds, rep(NA, 20))[1:11])))
    expect_equal(value_of(trial, "query", "query_max_s"), max(apply(queries[rowSums(is.na(queries)) == 0, ], 1, max)))
    call <- rows("call-server")
    expect_equal(value_of(trial, "call", "message_loss_share"), 1 - length(unique(call$number)) / (1 + max(call$number)))
    video <- rows("video-client")
    video <- video[video$received_bytes == video$bytes, ]
    expect_equal(value_of(trial, "video", "bitrate_bps"), sum(8 * video$bytes) / sum(video$play_s))
  }
  expect_equal(value_of("pfifo", "call", "message_loss_share") > 0, TRUE)
  expect_lt(value_of("pfifo", "call", "mos"), value_of("fq-codel", "call", "mos"))
})

test_that("samples of recorded trials are a table of quantiles, and their series are in time order", {
  for (x in measured()) {
    wanted <- names(Filter(\(s) identical(s$scope, "application"), outputs_of("series")))
    expect_setequal(unique(x$samples$quantity), wanted)
    expect_true(all(x$samples[, .(ordered = !is.unsorted(value), shares = .N), by = .(flow, quantity)][, ordered & shares == 501]))
    expect_setequal(intersect(unique(x$series$quantity), wanted), wanted)
    expect_true(all(x$series[, !is.unsorted(t_s), by = .(flow, quantity)]$V1))
  }
  web <- measured()[[1]]$samples[flow == "web" & quantity == "object-time"]
  expect_equal(web[share == 0.5]$value, value_of(names(measured())[1], "web", "object_median_s"), tolerance = 0.2)
})

test_that("figures show the samples of applications, of whole trials and of a part of them", {
  folder <- tempfile("applications-")
  dir.create(folder)
  file.copy(list.files(recorded(), full.names = TRUE), folder, recursive = TRUE)
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L))
  figure_of <- \(...) make_output(results, list(...))
  logged <- read_requests(log_of("pfifo", "web-client"))[finished == TRUE]
  of_log <- \(seconds) as.vector(stats::quantile(seconds, seq(0, 1, by = 0.002), type = 1))
  whole <- figure_of(figure = "distribution", show = "object-time", overlay = "path.aqm")
  expect_equal(whole$data[curve == "pfifo"]$value, of_log(logged$seconds))
  expect_match(whole$caption, "Recorded by generator http: object time", fixed = TRUE)
  starts_s <- attr(logged, "epoch_s") + logged$t_ns / 1e9 - read_campaign(folder)$manifests[[grep("^pfifo", names(measured()))]]$t_start_s
  early <- figure_of(figure = "distribution", show = "object-time", overlay = "path.aqm", to = "11s")
  expect_equal(early$data[curve == "pfifo"]$value, of_log(logged$seconds[starts_s <= 11]))
  video <- figure_of(figure = "time-series", show = list("video-rate", "video-ahead"), of = "video", overlay = "path.aqm")
  expect_setequal(video$data$flow, "video")
  expect_error(figure_of(figure = "distribution", show = "object-time", to = "1s"), "nothing recorded object-time", class = "samovar_no_data")
  expect_error(figure_of(figure = "distribution", show = "query-time", of = "web"), "a flow of generator incast", class = "samovar_no_data")
})
