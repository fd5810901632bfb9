# Estimate offset and drift between two hosts' clocks from beacons, convert times, and compute one-way delays.

#' Offset and drift between two hosts' clocks, from beacons that both received
#'
#' A multicast packet reaches all hosts of a network at nearly the same instant, so the difference of its two time stamps
#' is the difference of the clocks (equation 1 of the report):
#'
#' \deqn{T_{offset} = T_{beacon,ref} - T_{beacon,mon}}
#'
#' Clocks differ by an offset and a drift: over the beacons at times t, `offset(t) = a + b t`. a and b are Theil-Sen estimates (b is the median of all
#' slopes between two beacons, a the median of the residuals), so that beacons delayed at one host do not bend the line. If a clock was stepped or changed
#' its rate, the series is cut into pieces, and a line is fitted to each. If a running median of five
#' residuals exceeds `limit_us`, the series is cut at the place where two lines fit best, and each piece is
#' examined again. If the clock of one host was set back, beacons are taken in the order in which the other
#' host received them. No line is fitted to a piece of only two beacons.
#'
#' A difference in delivery to the two hosts cannot be distinguished from an offset. Such a difference in delivery has opposite signs in the two directions of a
#' path, so it cancels in the sum of forward and backward delay (see [delay_consistency()]).
#'
#' @param ref,mon The beacons that each of two hosts received: tables from [read_beacons()] or [beacons_of_capture()].
#' @param limit_us Residual in microseconds above which the series is cut; if six times the spread of single beacons is larger, that value is the limit.
#' @return A data.table, one row per piece in time order: `from_s`, `to_s` (Unix seconds on `mon`'s clock, of the first and last beacon), `epoch_s`
#'   and `at_ns` (the anchor of the line, on `mon`'s clock), `offset_ns` (to add to `mon`'s clock at that time), `drift_ppm` (growth of the offset),
#'   `error_ns` (distance from the line within which 95 % of the beacons are), `beacons` (their number), `cause` (why the piece begins: "start", "step",
#'   "rate"). Offset, drift and error are NA for a piece without a line. Attributes: `unmatched` (number of beacons that only one host received),
#'   `ambiguous` (number of beacons whose key occurred twice).
#' @source CAIA-TR-130121A, equation 1; H. Theil 1950, P. K. Sen 1968.
#' @examples
#' received <- function(late_s) data.table::setattr(
#'   data.table::data.table(t_ns = (0:99 + late_s) * 1e9, direction = "in", src = "10.0.0.1", id = 1, sequence = 1:100),
#'   "epoch_s", 1.7e9)
#' clock_offset(received(0), received(0.25))[, .(offset_ns, drift_ppm)]
#' @export
clock_offset <- function(ref, mon, limit_us = 100) {
  pairs <- beacon_pairs(ref, mon)
  if (nrow(pairs) < least_beacons) abort_beacons(nrow(pairs))
  spread_ns <- stats::mad(diff(pairs$offset_ns)) / sqrt(2)
  limit_ns <- max(limit_us * 1e3, 6 * spread_ns)
  bounds <- cut_points(pairs$t_ns, pairs$offset_ns, limit_ns)
  starts <- c(1L, bounds)
  ends <- c(bounds - 1L, nrow(pairs))
  pieces <- rbindlist(Map(\(i, j) line_of_piece(pairs[i:j]), starts, ends))
  if (all(is.na(pieces$offset_ns))) abort_beacons(nrow(pairs))
  pieces[, cause := causes_of(pieces, limit_ns)]
  set(pieces, NULL, "epoch_s", attr(pairs, "epoch_s"))
  pieces[, c("from_s", "to_s") := lapply(.SD, \(t) t / 1e9 + epoch_s), .SDcols = c("from_ns", "to_ns")]
  setcolorder(pieces, c("from_s", "to_s", "epoch_s", "at_ns"))
  for (name in c("unmatched", "ambiguous")) setattr(pieces, name, attr(pairs, name))
  pieces[]
}

abort_beacons <- function(common) {
  cli::cli_abort("Only {common} beacon{?s} {?was/were} received by both hosts; at least {least_beacons} without a step among them are needed.",
                 class = "samovar_error_beacons", call = NULL)
}

least_beacons <- 3L
shortest_piece <- 2L

#' Multicast packets of a capture as beacons
#'
#' Any multicast packet can serve as a beacon, whoever sends it: a router's hello packet, service discovery, a ping. Packets are identified by the fields
#' that routers do not change; packets with equal fields are numbered in the order of arrival.
#' @param capture A capture of the network that both hosts are on, from [read_pcap()].
#' @return A data.table with `t_ns`, `direction`, `src`, `id`, `sequence`, as [read_beacons()] returns it, with attribute `epoch_s`.
#' @source CAIA-TR-130121A, section III-D.
#' @examples
#' beacons_of_capture(read_pcap(samovar_example("beacons-sender.pcap.gz")))
#' @export
beacons_of_capture <- function(capture) {
  check_capture(capture)
  groups <- grep("^(22[4-9]|23[0-9])\\.|^ff", levels(capture$dst), ignore.case = TRUE, value = TRUE)
  received <- capture[as.character(dst) %in% groups & !is.na(t_ns)]
  found <- received[, .(t_ns, direction = "in", src = as.character(src), id, sequence = rowidv(id))]
  setattr(found, "epoch_s", attr(capture, "epoch_s"))
  plain_table(found)
}

# One row per beacon: `t_ns` on mon's clock since `epoch_s`, `offset_ns` = ref - mon. A host stamps its own beacons before they leave it, so these are used
# only if no other host sent beacons.
beacon_pairs <- function(ref, mon) {
  keys <- c("src", "id", "sequence")
  sides <- list(ref = ref, mon = mon)
  for (side in names(sides)) check_beacons(sides[[side]], side)
  received <- lapply(sides, \(x) x[!is.na(t_ns)])
  if (any(vapply(received, \(x) any(x$direction == "in"), TRUE)) && both_received(received, keys)) received <- lapply(received, \(x) x[direction == "in"])
  once <- lapply(received, \(x) x[, if (.N == 1L) .(t_ns), by = keys])
  joined <- once$mon[once$ref, on = keys, nomatch = NULL]
  apart_s <- attr(ref, "epoch_s") - attr(mon, "epoch_s")
  pairs <- joined[, .(t_ns, offset_ns = i.t_ns - t_ns + apart_s * 1e9)]
  pairs <- in_order_received(pairs)
  setattr(pairs, "epoch_s", attr(mon, "epoch_s"))
  setattr(pairs, "unmatched", nrow(once$ref) + nrow(once$mon) - 2L * nrow(pairs))
  setattr(pairs, "ambiguous", sum(lengths(lapply(received, \(x) x$t_ns))) - nrow(once$ref) - nrow(once$mon))
  pairs
}

# Order the beacons by the clock that was not set back. In the order of the other clock, beacons from before and after the step would alternate, and so
# would the offset.
in_order_received <- function(pairs) {
  way <- \(rows) sum(abs(diff(pairs$offset_ns[rows])))
  by_mon <- order(pairs$t_ns)
  by_ref <- order(pairs$t_ns + pairs$offset_ns)
  pairs[if (way(by_ref) < way(by_mon)) by_ref else by_mon]
}

both_received <- function(received, keys) {
  incoming <- lapply(received, \(x) x[direction == "in", keys, with = FALSE])
  nrow(merge(incoming$ref, incoming$mon, by = keys, allow.cartesian = TRUE)) >= least_beacons
}

check_beacons <- function(x, arg) {
  if (is.data.table(x) && all(c("t_ns", "direction", "src", "id", "sequence") %in% names(x)) && !is.null(attr(x, "epoch_s"))) return(invisible(x))
  cli::cli_abort("{.arg {arg}}: not a table of beacons; {.fn read_beacons} and {.fn beacons_of_capture} return one",
                 class = "samovar_error_argument", call = NULL)
}

# Fit a line by the slopes of all pairs or, if there are many, of up to half a million pairs that are far apart in time, which determine the slope best.
theil_sen <- function(x, y) {
  n <- length(x)
  lag <- seq_len(n - 1L)
  if (n > 1000L) lag <- lag[lag >= n / 2][seq(1, sum(lag >= n / 2), length.out = 500)]
  slopes <- unlist(lapply(lag, \(k) (y[(k + 1L):n] - y[seq_len(n - k)]) / (x[(k + 1L):n] - x[seq_len(n - k)])))
  slope <- stats::median(slopes[is.finite(slopes)])
  c(a = stats::median(y - slope * x), b = slope)
}

line_of_piece <- function(piece) {
  at_ns <- mean(range(piece$t_ns))
  line <- if (nrow(piece) < least_beacons) c(a = NA_real_, b = NA_real_) else theil_sen(piece$t_ns - at_ns, piece$offset_ns)
  left_ns <- abs(piece$offset_ns - line[["a"]] - line[["b"]] * (piece$t_ns - at_ns))
  data.table(at_ns, offset_ns = line[["a"]], drift_ppm = line[["b"]] * 1e6, error_ns = stats::quantile(left_ns, 0.95, names = FALSE, type = 8, na.rm = TRUE),
             beacons = nrow(piece), from_ns = piece$t_ns[1], to_ns = piece$t_ns[nrow(piece)])
}

# Rows at which a new piece begins.
cut_points <- function(x, y, limit_ns, first = 1L) {
  n <- length(x)
  if (n < 2L * shortest_piece) return(integer())
  line <- theil_sen(x - x[1], y)
  smooth <- runmed_short(y - line[["a"]] - line[["b"]] * (x - x[1]))
  if (max(abs(smooth)) <= limit_ns) return(integer())
  at <- best_cut(x - x[1], smooth)
  c(cut_points(x[seq_len(at - 1L)], y[seq_len(at - 1L)], limit_ns, first), first + at - 1L,
    cut_points(x[at:n], y[at:n], limit_ns, first + at - 1L))
}

# A running median keeps edges and removes single late beacons. The window of the median has five
# beacons, or three if there are at most five.
runmed_short <- function(y) as.double(stats::runmed(y, if (length(y) > 5L) 5L else 3L, endrule = "median"))

# Divide the series into two straight lines with the least sum of squares, and return the row at which the second line begins.
best_cut <- function(x, y) {
  n <- length(x)
  at <- seq(shortest_piece, n - shortest_piece)
  left <- squares_left(x, y)[at]
  right <- rev(squares_left(rev(x), rev(y)))[at + 1L]
  at[which.min(left + right)] + 1L
}

# For every k, return the residual sum of squares of the line fitted to the first k points, computed from running sums.
squares_left <- function(x, y) {
  k <- seq_along(x)
  sxx <- cumsum(x^2) - cumsum(x)^2 / k
  sxy <- cumsum(x * y) - cumsum(x) * cumsum(y) / k
  syy <- cumsum(y^2) - cumsum(y)^2 / k
  pmax(syy - fifelse(sxx > 0, sxy^2 / sxx, 0), 0)
}

# What happened between two pieces: their lines do not meet (a step), or meet with different slopes (a change of rate).
causes_of <- function(pieces, limit_ns) {
  if (nrow(pieces) == 1L) return("start")
  later <- pieces[-1]
  earlier <- pieces[-nrow(pieces)]
  edge <- (earlier$to_ns + later$from_ns) / 2
  jump <- later$offset_ns + later$drift_ppm / 1e6 * (edge - later$at_ns) - earlier$offset_ns - earlier$drift_ppm / 1e6 * (edge - earlier$at_ns)
  # The time of a rate change is known only to within one or two beacons; a jump that this uncertainty causes is not a step.
  bend <- abs(later$drift_ppm - earlier$drift_ppm) / 1e6 * 3 * (later$from_ns - earlier$to_ns)
  c("start", fifelse(abs(jump) > limit_ns + bend, "step", "rate", na = "step"))
}

#' Convert a capture's times to another host's clock
#'
#' \deqn{t' = t + a + b (t - t_a)}
#'
#' where a, b and t_a are the offset, drift and anchor of the piece that contains `t`. The exact time of a step between two pieces is unknown, so times in
#' between are NA, as are times that a clock showed twice because it was set back. After a rate change the lines meet, and the nearer line is used.
#'
#' @param x A table with `t_ns` and attribute `epoch_s`.
#' @param offset A table from [clock_offset()], with `x`'s host as `mon`.
#' @return A copy of `x` with `t_ns` on the other clock (ns since the same `epoch_s`).
#' @source CAIA-TR-130121A, section III-D.
#' @examples
#' ref <- read_pcap(samovar_example("beacons-sender.pcap.gz"))
#' mon <- read_pcap(samovar_example("beacons-receiver.pcap.gz")) # its clock is 0.25 s ahead
#' offset <- clock_offset(beacons_of_capture(ref), beacons_of_capture(mon))
#' mon$t_ns[1:3]
#' on_clock(mon, offset)$t_ns[1:3]
#' @export
on_clock <- function(x, offset) {
  moved <- copy(x)
  set(moved, NULL, "t_ns", moved_times(x, offset)$t_ns)
  setattr(moved, "epoch_s", attr(x, "epoch_s"))
  moved[]
}

# `t_ns` on the other clock and the `error_ns` of each time, or a single error for all times.
moved_times <- function(x, offset) {
  at <- x$t_ns + (attr(x, "epoch_s") - offset$epoch_s[1]) * 1e9
  # If `offset` has one row, the usual case, no lookup per packet is needed: R recycles the values of
  # this row.
  line <- if (nrow(offset) == 1L) offset else offset[pmax(findInterval(at, piece_edges(offset)), 1L)]
  t_ns <- x$t_ns + line$offset_ns + line$drift_ppm / 1e6 * (at - line$at_ns)
  if (any(offset$cause == "step")) t_ns[in_step(at, offset)] <- NA_real_
  list(t_ns = t_ns, error_ns = line$error_ns)
}

# The time from which each piece is used: midway between the previous piece and this one. The first piece is used from the beginning.
piece_edges <- function(offset) {
  n <- nrow(offset)
  ends_ns <- seconds_to_ns(offset$to_s, offset)
  starts_ns <- seconds_to_ns(offset$from_s, offset)
  # If a clock was set back by more than the length of a piece, all times in between are NA.
  c(-Inf, if (n > 1L) cummax((ends_ns[-n] + starts_ns[-1]) / 2))
}

seconds_to_ns <- function(at_s, offset) (at_s - offset$epoch_s) * 1e9

# Ambiguous times: up to `gap_ns` after the last beacon before the step, and up to `gap_ns` before the first beacon after the step.
in_step <- function(at, offset) {
  steps <- steps_of(offset)
  apart_ns <- max((offset$to_s - offset$from_s) / (offset$beacons - 1)) * 1e9
  # Find out which of the two clocks was stepped: the clock that was not stepped shows the usual interval
  # between beacons.
  own <- !is.na(steps$ref_ns) & steps$ref_ns > 0 & abs(steps$ref_ns - apart_ns) < abs(steps$mon_ns - apart_ns)
  gap_ns <- fifelse(own, steps$ref_ns, steps$mon_ns)
  from <- pmin(steps$last_ns, steps$first_ns - gap_ns)
  to <- pmax(steps$first_ns, steps$last_ns + gap_ns)
  Reduce(`|`, Map(\(i, j) at > i & at < j, from, to), logical(length(at)))
}

# For each step, the last beacon before and the first beacon after, and the time between these two on each clock.
steps_of <- function(offset) {
  first_ns <- seconds_to_ns(offset$from_s, offset)
  last_ns <- seconds_to_ns(offset$to_s, offset)
  at_ref <- \(t_ns) t_ns + offset$offset_ns + offset$drift_ppm / 1e6 * (t_ns - offset$at_ns)
  before <- \(t_ns) t_ns[which(offset$cause == "step") - 1L]
  after <- \(t_ns) t_ns[offset$cause == "step"]
  data.table(last_ns = before(last_ns), first_ns = after(first_ns), mon_ns = after(first_ns) - before(last_ns),
             ref_ns = after(at_ref(first_ns)) - before(at_ref(last_ns)))
}

#' One-way delays of packets that were captured at both ends
#'
#' \deqn{OWD = t_{arrival} - t_{departure}}
#'
#' with both times on `ref`'s clock (equation 1 of the report converts `mon`'s times). `error_ms` is the uncertainty of the clocks, that is, the distance
#' from the fitted line within which 95 % of the beacons are. A difference in the beacons' delivery to the two hosts, a constant of a few microseconds on a
#' switch, adds to the error.
#'
#' @inheritParams packet_pair_rtt
#' @param offset Offset of the clocks, a table from [clock_offset()] for the same two hosts.
#' @return A data.table in order of departure: `t_ns` (departure on `ref`'s clock, ns since its `epoch_s`), `direction` ("forward",
#'   "back"), `delay_ms` (NA during a step of a clock), `error_ms`, `ip_bytes`, `ref_row`, `mon_row` (rows of the captures); attribute `epoch_s`.
#' @source CAIA-TR-130121A, sections III-D and V-C.
#' @examples
#' ref <- read_pcap(samovar_example("beacons-sender.pcap.gz"))
#' mon <- read_pcap(samovar_example("beacons-receiver.pcap.gz")) # its clock is 0.25 s ahead
#' offset <- clock_offset(beacons_of_capture(ref), beacons_of_capture(mon))
#' delays <- one_way_delay(ref, mon, data_flows(ref)$flow[1], offset)
#' delays[, .(packets = .N, median_ms = median(delay_ms)), by = direction]
#' @export
one_way_delay <- function(ref, mon, flow, offset, back = reverse_flow(flow)) {
  check_capture(ref, "ref")
  check_capture(mon, "mon")
  flow <- check_flow(ref, flow)
  moved <- moved_times(mon, offset)
  mon_ns <- moved$t_ns + (attr(mon, "epoch_s") - attr(ref, "epoch_s")) * 1e9
  x <- setDT(matched_delays(ref, mon, flow, back, mon_ns))
  error_ms <- moved$error_ns / 1e6
  set(x, NULL, "error_ms", if (length(error_ms) == 1L) rep(error_ms, nrow(x)) else error_ms[x$mon_row])
  set(x, NULL, "ip_bytes", ref$ip_bytes[x$ref_row])
  setcolorder(x, c("t_ns", "direction", "delay_ms", "error_ms", "ip_bytes"))
  setattr(x, "epoch_s", attr(ref, "epoch_s"))
  as_series(x, "delay_ms", "One-way delay (ms)")
}

#' Check that one-way delays add up to the round-trip time
#'
#' The RTT of a packet pair needs no common clock, so it is an independent check of the clocks: for an outgoing packet O and a returning packet I,
#'
#' \deqn{OWD_{forward}(O) + OWD_{back}(I) - RTT = 0}
#'
#' A wrong offset cancels in the sum; a wrong rate, or an undetected step, does not. Negative delays indicate a wrong offset. The RTT itself has an error: the
#' time that `mon`'s clock gains or loses between the arrival of O and the departure of I. The tolerance is this error at a drift of 100 ppm, the accuracy of
#' quartz clocks, plus twice the error of the offset.
#'
#' @inheritParams one_way_delay
#' @return A one-row data.table: `pairs`, `median_us`, `max_us` (both of the absolute difference), `allowed_us` (tolerance for the pair with the longest
#'   time between the arrival of O and the departure of I), `negative_share` (share of the delays that are negative), `consistent`.
#' @source CAIA-TR-060707A, section III; quartz clocks: D. L. Mills, Computer Network Time Synchronization, 2011.
#' @examples
#' ref <- read_pcap(samovar_example("beacons-sender.pcap.gz"))
#' mon <- read_pcap(samovar_example("beacons-receiver.pcap.gz")) # its clock is 0.25 s ahead
#' offset <- clock_offset(beacons_of_capture(ref), beacons_of_capture(mon))
#' delay_consistency(ref, mon, data_flows(ref)$flow[1], offset)
#' @export
delay_consistency <- function(ref, mon, flow, offset, back = reverse_flow(flow)) {
  delays <- one_way_delay(ref, mon, flow, offset, back)
  rtt <- packet_pair_rtt(ref, mon, flow, back)
  found <- delays_of_pairs(delays, rtt, ref, mon)
  apart_us <- abs(found$forward_ms + found$back_ms - found$rtt_ms) * 1e3
  allowed_us <- 2 * max(offset$error_ns, na.rm = TRUE) / 1e3 + 0.002 + quartz_ppm * found$stay_ms / 1e3
  data.table(pairs = sum(!is.na(apart_us)), median_us = stats::median(apart_us, na.rm = TRUE), max_us = max(c(apart_us, 0), na.rm = TRUE), allowed_us = max(c(allowed_us, 0)),
             negative_share = mean(delays$delay_ms < 0, na.rm = TRUE), consistent = all(apart_us <= allowed_us, na.rm = TRUE))
}

quartz_ppm <- 100

# Return, for each RTT, the one-way delays of the two packets of its packet pair. The outgoing packet is found
# by its arrival time, and the returning packet by its return time, computed from `t_ns`, which is midway
# between sending and return.
delays_of_pairs <- function(delays, rtt, ref, mon) {
  forward <- delays[direction == "forward", .(arrival_ns = mon$t_ns[mon_row], sent_ns = ref$t_ns[ref_row], forward_ms = delay_ms)]
  pairs <- forward[rtt, .(arrival_ns, rtt_ms = i.rtt_ms, forward_ms, returned_ns = 2 * i.t_ns - sent_ns), on = "arrival_ns", mult = "first", nomatch = NULL]
  back <- delays[direction == "back", .(returned_ns = ref$t_ns[ref_row], left_ns = mon$t_ns[mon_row], back_ms = delay_ms)]
  back[pairs, .(rtt_ms, forward_ms, back_ms, stay_ms = (left_ns - i.arrival_ns) / 1e6), on = "returned_ns", mult = "first", nomatch = NULL]
}

# The offset between the clocks of two hosts of the trial; NULL if beacons were not recorded or too few beacons reached both hosts.
clock_between <- function(traces, ref, mon) {
  paths <- lapply(c(ref, mon), \(host) traces$path("beacons", host))
  if (any(lengths(paths) == 0)) return(NULL)
  tryCatch(clock_offset(read_beacons(paths[[1]][1]), read_beacons(paths[[2]][1])),
           samovar_error_beacons = \(e) NULL, samovar_error_trace = \(e) NULL)
}

# Without beacons the clocks are assumed equal: differences of delays are then valid, but delays are not.
assumed_offset <- function(capture) {
  data.table(from_s = attr(capture, "epoch_s"), to_s = attr(capture, "epoch_s"), epoch_s = attr(capture, "epoch_s"), at_ns = 0, offset_ns = 0,
             drift_ppm = 0, error_ns = NA_real_, beacons = 0L, cause = "start")
}

clock_metrics <- function(x) {
  ref <- x$near
  mon <- x$far
  name <- x$name
  offset <- x$clock
  if (is.null(offset) || is.null(ref) || is.null(mon)) return(list())
  longest <- which.max(offset$to_s - offset$from_s)
  delays <- one_way_delay(ref, mon, name, offset)
  metrics <- list(clock_offset_ms = offset$offset_ns[longest] / 1e6, clock_drift_ppm = offset$drift_ppm[longest], clock_error_us = max(offset$error_ns, na.rm = TRUE) / 1e3)
  forward <- delays[direction == "forward" & !is.na(delay_ms)]$delay_ms
  if (length(forward) == 0) return(metrics)
  c(metrics, list(owd_median_ms = stats::median(forward), owd_min_ms = min(forward), owd_rtt_gap_us = delay_consistency(ref, mon, name, offset)$max_us))
}
