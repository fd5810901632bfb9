every_s <- seq(0, 59, by = 1)
ahead <- \(t_s) t_s * (1 + 40e-6) + 0.25

test_that("the offset and drift of a clock that is 250 ms ahead and 40 ppm fast are estimated from beacons", {
  set.seed(1)
  found <- clock_offset(heard_beacons(every_s, late_us = abs(rnorm(60, 3, 1))), heard_beacons(every_s, ahead, abs(rnorm(60, 3, 1))))
  expect_equal(nrow(found), 1)
  expect_equal(found$drift_ppm, -40, tolerance = 0.01)
  expect_lt(abs(found$offset_ns + (29.5 * 40e-6 + 0.25) * 1e9), 1000)
  expect_lt(found$error_ns, 5000)
})

test_that("beacon logs that count times from different seconds give the same offset", {
  found <- clock_offset(heard_beacons(every_s), heard_beacons(every_s, ahead))
  later <- clock_offset(heard_beacons(every_s), heard_beacons(every_s, \(t_s) ahead(t_s) - 100, epoch_s = 1700000100))
  same <- c("from_s", "to_s", "offset_ns", "drift_ppm", "beacons")
  expect_equal(later[, same, with = FALSE], found[, same, with = FALSE], tolerance = 1e-9)
  expect_equal(later$epoch_s + later$at_ns / 1e9, found$epoch_s + found$at_ns / 1e9, tolerance = 1e-12)
})

test_that("beacons that a busy host delayed by milliseconds do not change the estimated line", {
  set.seed(2)
  late_us <- replace(abs(rnorm(60, 3, 1)), c(5, 20, 21, 44, 60), c(900, 4000, 2500, 8000, 300))
  found <- clock_offset(heard_beacons(every_s), heard_beacons(every_s, ahead, late_us))
  expect_equal(nrow(found), 1)
  expect_lt(abs(found$drift_ppm + 40), 0.1)
  expect_lt(abs(found$offset_ns + (29.5 * 40e-6 + 0.25) * 1e9), 5000)
})

test_that("a clock step gives a line before it and a line after it, and NA for times in between", {
  stepped <- \(t_s) ahead(t_s) + ifelse(t_s > 30.4, 0.005, 0)
  found <- clock_offset(heard_beacons(every_s), heard_beacons(every_s, stepped))
  expect_equal(found$cause, c("start", "step"))
  expect_equal(found$beacons, c(31L, 29L))
  packets <- heard_beacons(c(10, 30.2, 30.9, 50), stepped)
  moved <- on_clock(packets, found)$t_ns
  expect_equal(moved[c(1, 4)], c(10, 50) * 1e9, tolerance = 1e-9)
  expect_true(all(is.na(moved[2:3])))
})

test_that("a small step of a clock that drifts is a step, not a change of rate", {
  stepped <- \(t_s) ahead(t_s) + ifelse(t_s > 30.4, 0.0003, 0)
  expect_equal(clock_offset(heard_beacons(every_s), heard_beacons(every_s, stepped))$cause, c("start", "step"))
})

test_that("times that a clock shows twice because it was set back are NA, all others are converted", {
  t_s <- seq(0, 60, by = 0.1)
  for (back_s in c(0.03, 0.3, 3)) {
    stepped <- \(t_s) ahead(t_s) - ifelse(t_s > 30.43, back_s, 0)
    found <- clock_offset(heard_beacons(t_s), heard_beacons(t_s, stepped))
    expect_equal(found$cause, c("start", "step"))
    expect_equal(found$beacons, c(305L, 296L))
    expect_lt(max(found$error_ns), 1000)
    at_s <- seq(0.013, 59, by = 0.01)
    moved_s <- on_clock(heard_beacons(at_s, stepped), found)$t_ns / 1e9
    expect_lt(max(abs(moved_s - at_s), na.rm = TRUE), 1e-6)
    # NA are the times that the clock showed twice, and up to a tenth of a second before the step and after it.
    unknown <- at_s[is.na(moved_s)]
    expect_true(all(at_s[at_s > 30.44 - back_s & at_s < 30.42 + back_s] %in% unknown))
    expect_gt(min(unknown), 30.4 - back_s - 0.11)
    expect_lt(max(unknown), 30.5 + back_s + 0.11)
  }
})

test_that("a step of the other clock makes only the times between two beacons NA", {
  t_s <- seq(0, 60, by = 0.1)
  for (step_s in c(-3, 3)) {
    found <- clock_offset(heard_beacons(t_s, \(t_s) t_s + ifelse(t_s > 30.43, step_s, 0)), heard_beacons(t_s))
    expect_equal(found$cause, c("start", "step"))
    at_s <- seq(0.013, 59, by = 0.01)
    expect_equal(range(at_s[is.na(on_clock(heard_beacons(at_s), found)$t_ns)]), c(30.403, 30.493))
  }
})

test_that("a clock that was stepped and stepped back has three lines, though the beacons' times overlap", {
  t_s <- seq(0, 60, by = 0.5)
  found <- clock_offset(heard_beacons(t_s), heard_beacons(t_s, \(t_s) t_s + ifelse(t_s > 20.2 & t_s < 25.2, 1, 0)))
  expect_equal(found$offset_ns, c(0, -1e9, 0))
  expect_equal(found$beacons, c(41L, 10L, 70L))
})

test_that("with only two beacons before or after a clock step, the times on this side of the step are NA, and all others are not affected", {
  for (step_at_s in c(0.7, 59.2)) {
    stepped <- \(t_s) ahead(t_s) + ifelse(t_s > step_at_s, 1, 0)
    t_s <- seq(0, 60, by = 0.5)
    found <- clock_offset(heard_beacons(t_s), heard_beacons(t_s, stepped))
    alone <- which(found$beacons == 2)
    expect_length(alone, 1)
    expect_true(is.na(found$offset_ns[alone]) && is.na(found$error_ns[alone]))
    expect_equal(found$drift_ppm[-alone], -40, tolerance = 1e-3)
    beyond <- if (step_at_s < 1) c(0.1, 0.6) else c(59.3, 60)
    expect_true(all(is.na(on_clock(heard_beacons(beyond, stepped), found)$t_ns)))
    expect_equal(on_clock(heard_beacons(30, stepped), found)$t_ns, 30e9, tolerance = 1e-9)
  }
})

test_that("a clock whose rate changes has two lines that meet, and no time is NA", {
  slewed <- \(t_s) t_s + ifelse(t_s > 30, (t_s - 30) * 500e-6, 0)
  found <- clock_offset(heard_beacons(every_s), heard_beacons(every_s, slewed))
  expect_equal(found$cause, c("start", "rate"))
  expect_equal(found$drift_ppm, c(0, -500), tolerance = 0.01)
  moved <- on_clock(heard_beacons(c(10, 30.5, 50), slewed), found)
  expect_lt(max(abs(moved$t_ns - c(10, 30.5, 50) * 1e9)), 1000e3)
  expect_false(anyNA(moved$t_ns))
})

test_that("beacons that one host did not receive, and beacons with a duplicate number, are counted but not used", {
  ref <- heard_beacons(every_s)
  mon <- rbind(heard_beacons(every_s, ahead)[-c(3, 4)], heard_beacons(99, ahead)[, sequence := 10L])
  data.table::setattr(mon, "epoch_s", 1700000000)
  found <- clock_offset(ref, mon)
  expect_equal(found$beacons, 57L)
  expect_equal(attr(found, "unmatched"), 3)
  expect_equal(found$drift_ppm, -40, tolerance = 1e-3)
})

test_that("two beacons are too few to estimate the offset of a clock", {
  expect_error(clock_offset(heard_beacons(1:2), heard_beacons(1:2)), "2 beacons were received by both", class = "samovar_error_beacons")
  stepped <- \(t_s) t_s + ifelse(t_s > 2.5, 3, 0)
  expect_error(clock_offset(heard_beacons(1:4), heard_beacons(1:4, stepped)), "without a step among them", class = "samovar_error_beacons")
  expect_error(clock_offset(data.table::data.table(t_ns = 1), heard_beacons(1:9)), class = "samovar_error_argument")
})

test_that("any multicast packet in both captures is a beacon, other packets are not", {
  hello <- \(id) ethernet(ipv4(udp(1985, 1985), 17, src = "10.0.0.9", dst = "224.0.0.102", id = id))
  other <- ethernet(ipv4(udp(9, 10), 17))
  frames <- c(lapply(1:20, hello), list(hello(3)), list(other))
  ref <- read_pcap(write_capture(frames, t_ns = seq_along(frames) * 1e9))
  mon <- read_pcap(write_capture(frames, t_ns = seq_along(frames) * 1e9 * (1 + 40e-6) + 0.25e9))
  expect_equal(nrow(beacons_of_capture(ref)), 21)
  found <- clock_offset(beacons_of_capture(ref), beacons_of_capture(mon))
  expect_equal(found$beacons, 21L)
  expect_equal(found$drift_ppm, -40, tolerance = 1e-3)
})

# A pair of real captures with one clock, and the receiver's capture as another clock would have recorded it.
moved_pair <- function() {
  pair <- committed_pair()
  ref <- read_pcap(pair$sender)
  mon <- read_pcap(pair$receiver)
  span_s <- seq(-1, max(ref$t_ns) / 1e9 + 1, by = 0.1)
  epoch_s <- attr(mon, "epoch_s")
  moved <- \(t_s) t_s * (1 + 40e-6) + 0.25
  list(ref = ref, mon = mon, skewed = move_clock(mon, 0.25e9, 40), flow = data_flows(ref)$flow[1],
       true = clock_offset(heard_beacons(span_s, epoch_s = attr(ref, "epoch_s")), heard_beacons(span_s + attr(ref, "epoch_s") - epoch_s, epoch_s = epoch_s)),
       offset = clock_offset(heard_beacons(span_s, epoch_s = attr(ref, "epoch_s")),
                             heard_beacons(span_s + attr(ref, "epoch_s") - epoch_s, moved, epoch_s = epoch_s)))
}

test_that("one-way delays with skewed clocks are equal to those with one clock, to a microsecond", {
  x <- moved_pair()
  expected <- one_way_delay(x$ref, x$mon, x$flow, x$true)
  found <- one_way_delay(x$ref, x$skewed, x$flow, x$offset)
  expect_gt(nrow(found), 1000)
  expect_equal(found$delay_ms[order(found$direction, found$ref_row)], expected$delay_ms[order(expected$direction, expected$ref_row)], tolerance = 1e-3 / 10)
  expect_true(all(expected$delay_ms > 0))
})

test_that("forward and backward delay add up to the round-trip time, unless the estimated drift is wrong", {
  x <- moved_pair()
  found <- delay_consistency(x$ref, x$skewed, x$flow, x$offset)
  expect_gt(found$pairs, 300)
  expect_true(found$consistent)
  # A packet stays at the receiver for at most 45 ms, in which its clock gains 40 ppm: the RTT includes this gain.
  expect_lt(found$max_us, 40e-6 * 45e3 + 0.1)
  wrong <- data.table::copy(x$offset)[, drift_ppm := drift_ppm + 20000]
  expect_false(delay_consistency(x$ref, x$skewed, x$flow, wrong)$consistent)
  # An offset that is wrong by 5 ms cancels in the sum but causes negative delays.
  shifted <- data.table::copy(x$offset)[, offset_ns := offset_ns + 5e6]
  found <- delay_consistency(x$ref, x$skewed, x$flow, shifted)
  expect_true(found$consistent)
  expect_gt(found$negative_share, 0.1)
})
