#' A capture's times on another host's clock
#'
#' \deqn{t' = t + a + b (t - t_a)}
#'
#' by the line of the piece that `t` falls into. Between two pieces the clock was stepped at a moment that nobody saw: times
#' there are NA after a step, as are those that a clock which was set back showed twice; after a change of rate the lines meet, and
#' the nearer one serves.
#'
#' @param x A table with `t_ns` and attribute `epoch_s`.
#' @param offset A table of [clock_offset()], with `x`'s host as `mon`.
#' @return `x`, copied, `t_ns` on the other clock (ns since the same `epoch_s`).
#' @source CAIA-TR-130121A, section III-D.
#' @export
on_clock <- function(x, offset) {
  moved <- copy(x)
  set(moved, NULL, "t_ns", moved_times(x, offset)$t_ns)
  setattr(moved, "epoch_s", attr(x, "epoch_s"))
  moved[]
}

# `t_ns` on the other clock and `error_ns` of each, or the one of all.
moved_times <- function(x, offset) {
  at <- x$t_ns + (attr(x, "epoch_s") - offset$epoch_s[1]) * 1e9
  # One line, the usual case, needs no look-up for each packet: its values are recycled.
  line <- if (nrow(offset) == 1L) offset else offset[pmax(findInterval(at, piece_edges(offset)), 1L)]
  t_ns <- x$t_ns + line$offset_ns + line$drift_ppm / 1e6 * (at - line$at_ns)
  if (any(offset$cause == "step")) t_ns[in_step(at, offset)] <- NA_real_
  list(t_ns = t_ns, error_ns = line$error_ns)
}

# Moments from which each piece serves: midway between the pieces, the first from the beginning.
piece_edges <- function(offset) {
  n <- nrow(offset)
  ends_ns <- seconds_to_ns(offset$to_s, offset)
  starts_ns <- seconds_to_ns(offset$from_s, offset)
  # Where a clock was set back by more than a piece is long, all that lies between is NA.
  c(-Inf, if (n > 1L) cummax((ends_ns[-n] + starts_ns[-1]) / 2))
}

seconds_to_ns <- function(at_s, offset) (at_s - offset$epoch_s) * 1e9

# The clock showed up to `gap_ns` more than at the last beacon before the step, and from as much less than at the first after it.
in_step <- function(at, offset) {
  steps <- steps_of(offset)
  apart_ns <- max((offset$to_s - offset$from_s) / (offset$beacons - 1)) * 1e9
  # Which of the two clocks was stepped? The one that went on shows what passes between beacons elsewhere.
  own <- !is.na(steps$ref_ns) & steps$ref_ns > 0 & abs(steps$ref_ns - apart_ns) < abs(steps$mon_ns - apart_ns)
  gap_ns <- fifelse(own, steps$ref_ns, steps$mon_ns)
  from <- pmin(steps$last_ns, steps$first_ns - gap_ns)
  to <- pmax(steps$first_ns, steps$last_ns + gap_ns)
  Reduce(`|`, Map(\(i, j) at > i & at < j, from, to), logical(length(at)))
}

# Per step the last beacon before it and the first after it, and what passed between them by either clock.
steps_of <- function(offset) {
  first_ns <- seconds_to_ns(offset$from_s, offset)
  last_ns <- seconds_to_ns(offset$to_s, offset)
  at_ref <- \(t_ns) t_ns + offset$offset_ns + offset$drift_ppm / 1e6 * (t_ns - offset$at_ns)
  before <- \(t_ns) t_ns[which(offset$cause == "step") - 1L]
  after <- \(t_ns) t_ns[offset$cause == "step"]
  data.table(last_ns = before(last_ns), first_ns = after(first_ns), mon_ns = after(first_ns) - before(last_ns),
             ref_ns = after(at_ref(first_ns)) - before(at_ref(last_ns)))
}

#' One-way delays of the packets that were seen at both ends
#'
#' \deqn{OWD = t_{arrival} - t_{departure}}
#'
#' with both times on `ref`'s clock (equation 1 of the report applied to `mon`). `error_ms` is what the beacons leave
#' open: 95 % of them are no farther from the clock's line; the difference of their delivery to the two hosts, a
#' constant of a few microseconds on a switch, comes on top.
#'
#' @inheritParams packet_pair_rtt
#' @param offset The clocks' difference, a table of [clock_offset()] of the same two hosts.
#' @return A data.table in order of departure: `t_ns` (departure on `ref`'s clock, ns since its `epoch_s`), `direction` ("forward",
#'   "back"), `delay_ms` (NA while a clock was stepped), `error_ms`, `ip_bytes`, `ref_row`, `mon_row` (rows of the captures); attribute `epoch_s`.
#' @source CAIA-TR-130121A, sections III-D and V-C.
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
  x[]
}

#' Do one-way delays add up to the round-trip time?
#'
#' A packet pair's RTT needs no common clock, so it is a witness of the clocks: for O out and I back,
#'
#' \deqn{OWD_{forward}(O) + OWD_{back}(I) - RTT = 0}
#'
#' An offset that is wrong cancels in the sum; a rate that is wrong, or a step that was not seen, does not. Negative delays
#' tell of a wrong offset. The RTT itself is off by what `mon`'s clock gains while a packet stays there: that much, at the 100 ppm
#' within which quartz clocks run, is allowed, and twice the error of the offset.
#'
#' @inheritParams one_way_delay
#' @return A one-row data.table: `pairs`, `median_us`, `max_us` (of the difference, its absolute value), `allowed_us` (of the pair with the longest
#'   stay), `negative_share` (of the delays), `consistent`.
#' @source CAIA-TR-060707A, section III; quartz clocks: D. L. Mills, Computer Network Time Synchronization, 2011.
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

# The delays of the two packets that each RTT was made of: O by its arrival, I by where t_ns lies midway.
delays_of_pairs <- function(delays, rtt, ref, mon) {
  forward <- delays[direction == "forward", .(arrival_ns = mon$t_ns[mon_row], sent_ns = ref$t_ns[ref_row], forward_ms = delay_ms)]
  pairs <- forward[rtt, .(arrival_ns, rtt_ms = i.rtt_ms, forward_ms, returned_ns = 2 * i.t_ns - sent_ns), on = "arrival_ns", mult = "first", nomatch = NULL]
  back <- delays[direction == "back", .(returned_ns = ref$t_ns[ref_row], left_ns = mon$t_ns[mon_row], back_ms = delay_ms)]
  back[pairs, .(rtt_ms, forward_ms, back_ms, stay_ms = (left_ns - i.arrival_ns) / 1e6), on = "returned_ns", mult = "first", nomatch = NULL]
}
