#' How far apart two hosts' clocks are, from beacons that both heard
#'
#' A multicast packet reaches all hosts of a network at nearly the same instant, so the difference of its two time stamps
#' is the difference of the clocks (equation 1 of the report):
#'
#' \deqn{T_{offset} = T_{beacon,ref} - T_{beacon,mon}}
#'
#' A clock is off by an offset and runs off at a rate: over the beacons at times t, `offset(t) = a + b t`. Both are fitted by
#' Theil and Sen (b is the median of all slopes between two beacons, a the median of what is left), so that beacons
#' that were held up at one host do not pull the line. A clock that was stepped or was given another rate in between has
#' one line for each piece: where what is left of a running median of five shows more than `limit_us`, the series is cut
#' where two lines fit best, and each part looked at again. Beacons are taken in the order in which the host heard them whose clock was not set
#' back. A piece of two beacons has no line.
#'
#' The difference in delivery to the two hosts cannot be told from an offset. It has opposite signs in the two
#' directions of a path, so that forward and backward delay together are free of it (see [delay_consistency()]).
#'
#' @param ref,mon Beacons as two hosts heard them: tables of [read_beacons()], or of [beacons_of_capture()].
#' @param limit_us What a line may leave over, microseconds, before the series is cut. Six times the spread of
#'   single beacons where that is more.
#' @return A data.table, one row per piece in time order: `from_s`, `to_s` (Unix seconds on `mon`'s clock, of the first and
#'   last beacon), `epoch_s` and `at_ns` (the moment that the line is anchored to, on `mon`'s clock), `offset_ns` (to be added to
#'   `mon`'s clock there), `drift_ppm` (by which the offset grows), `error_ns` (95 % of the beacons are no farther from the line; the three are NA of a piece without a line), `beacons`,
#'   `cause` of the piece's beginning ("start", "step", "rate"). Attributes `unmatched` and `ambiguous`: beacons heard by one host, and
#'   those whose key occurred twice.
#' @source CAIA-TR-130121A, equation 1; H. Theil 1950, P. K. Sen 1968.
#' @examples
#' heard <- function(late_s) data.table::setattr(
#'   data.table::data.table(t_ns = (0:99 + late_s) * 1e9, direction = "in", src = "10.0.0.1", id = 1, sequence = 1:100),
#'   "epoch_s", 1.7e9)
#' clock_offset(heard(0), heard(0.25))[, .(offset_ns, drift_ppm)]
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

abort_beacons <- function(heard) {
  cli::cli_abort("{heard} beacon{?s} {?was/were} heard by both hosts; {least_beacons} or more without a step among them would have been accepted.",
                 class = "samovar_error_beacons", call = NULL)
}

least_beacons <- 3L
shortest_piece <- 2L

#' Multicast packets of a capture as beacons
#'
#' Any packet to a group serves, whoever sends it: routers' hellos, discovery, pings. A packet is known again by what routers leave
#' alone of it, and where that occurs again by how often it had been seen.
#' @param capture A table of [read_pcap()], of the network that both hosts are on.
#' @return A data.table `t_ns`, `direction`, `src`, `id`, `sequence` as of [read_beacons()], with attribute `epoch_s`.
#' @source CAIA-TR-130121A, section III-D.
#' @export
beacons_of_capture <- function(capture) {
  check_capture(capture)
  groups <- grep("^(22[4-9]|23[0-9])\\.|^ff", levels(capture$dst), ignore.case = TRUE, value = TRUE)
  heard <- capture[as.character(dst) %in% groups & !is.na(t_ns)]
  found <- heard[, .(t_ns, direction = "in", src = as.character(src), id, sequence = rowidv(id))]
  setattr(found, "epoch_s", attr(capture, "epoch_s"))
  found[]
}

# One row per beacon: `t_ns` on mon's clock since `epoch_s`, `offset_ns` = ref less mon. A host's own beacon is stamped before it
# leaves, so it serves only where there is no other.
beacon_pairs <- function(ref, mon) {
  keys <- c("src", "id", "sequence")
  sides <- list(ref = ref, mon = mon)
  for (side in names(sides)) check_beacons(sides[[side]], side)
  heard <- lapply(sides, \(x) x[!is.na(t_ns)])
  if (any(vapply(heard, \(x) any(x$direction == "in"), TRUE)) && both_heard(heard, keys)) heard <- lapply(heard, \(x) x[direction == "in"])
  once <- lapply(heard, \(x) x[, if (.N == 1L) .(t_ns), by = keys])
  joined <- once$mon[once$ref, on = keys, nomatch = NULL]
  apart_s <- attr(ref, "epoch_s") - attr(mon, "epoch_s")
  pairs <- joined[, .(t_ns, offset_ns = i.t_ns - t_ns + apart_s * 1e9)]
  pairs <- in_order_heard(pairs)
  setattr(pairs, "epoch_s", attr(mon, "epoch_s"))
  setattr(pairs, "unmatched", nrow(once$ref) + nrow(once$mon) - 2L * nrow(pairs))
  setattr(pairs, "ambiguous", sum(lengths(lapply(heard, \(x) x$t_ns))) - nrow(once$ref) - nrow(once$mon))
  pairs
}

# In the order of a clock that was set back, beacons of before and after alternate, and the offset with them: the other clock's order serves.
in_order_heard <- function(pairs) {
  way <- \(rows) sum(abs(diff(pairs$offset_ns[rows])))
  by_mon <- order(pairs$t_ns)
  by_ref <- order(pairs$t_ns + pairs$offset_ns)
  pairs[if (way(by_ref) < way(by_mon)) by_ref else by_mon]
}

both_heard <- function(heard, keys) {
  incoming <- lapply(heard, \(x) x[direction == "in", keys, with = FALSE])
  nrow(merge(incoming$ref, incoming$mon, by = keys, allow.cartesian = TRUE)) >= least_beacons
}

check_beacons <- function(x, arg) {
  if (is.data.table(x) && all(c("t_ns", "direction", "src", "id", "sequence") %in% names(x)) && !is.null(attr(x, "epoch_s"))) return(invisible(x))
  cli::cli_abort("{.arg {arg}}: no beacons; a table of {.fn read_beacons} or {.fn beacons_of_capture} would have been accepted",
                 class = "samovar_error_argument", call = NULL)
}

# Slopes of all pairs, or of the half million that lie farthest apart in time: those tell the slope best.
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

# Rows at which another piece begins.
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

# A median keeps an edge where it is and takes single beacons off that were late. Of five beacons or fewer it takes one.
runmed_short <- function(y) as.double(stats::runmed(y, if (length(y) > 5L) 5L else 3L, endrule = "median"))

# The row that begins the second of the two straight lines which leave least squares over.
best_cut <- function(x, y) {
  n <- length(x)
  at <- seq(shortest_piece, n - shortest_piece)
  left <- squares_left(x, y)[at]
  right <- rev(squares_left(rev(x), rev(y)))[at + 1L]
  at[which.min(left + right)] + 1L
}

# Of the line through the first k points, for every k, from running sums.
squares_left <- function(x, y) {
  k <- seq_along(x)
  sxx <- cumsum(x^2) - cumsum(x)^2 / k
  sxy <- cumsum(x * y) - cumsum(x) * cumsum(y) / k
  syy <- cumsum(y^2) - cumsum(y)^2 / k
  pmax(syy - fifelse(sxx > 0, sxy^2 / sxx, 0), 0)
}

# What happened between two pieces: their lines do not meet (a step), or meet at another slope (a rate).
causes_of <- function(pieces, limit_ns) {
  if (nrow(pieces) == 1L) return("start")
  later <- pieces[-1]
  earlier <- pieces[-nrow(pieces)]
  edge <- (earlier$to_ns + later$from_ns) / 2
  jump <- later$offset_ns + later$drift_ppm / 1e6 * (edge - later$at_ns) - earlier$offset_ns - earlier$drift_ppm / 1e6 * (edge - earlier$at_ns)
  # Which beacon a bend lies at is known to a beacon or two: that much of the change of rate is no jump.
  bend <- abs(later$drift_ppm - earlier$drift_ppm) / 1e6 * 3 * (later$from_ns - earlier$to_ns)
  c("start", fifelse(abs(jump) > limit_ns + bend, "step", "rate", na = "step"))
}
