# Summarise metrics over the trials of a treatment: medians with intervals, bootstrap, linearity of RTT over rwnd.

#' Median of replicates with its 95 % interval
#'
#' The interval does not depend on the distribution: its ends are the order statistics r and n + 1 - r, where r is the largest rank with P(r <=
#' Binomial(n, 1/2) <= n - r) >= 0.95. Such an interval needs six values. For three, four and five values the interval is the whole range, which
#' contains the median with a probability of 75, 87.5 and 93.75 %. Below three values there is no interval.
#'
#' @param values Numbers, one per trial; NA is left out.
#' @return A list: `median`, `mean`, `lo`, `hi` (NA below three values), `n`, `confidence` (that of the interval).
#' @source Conover, Practical Nonparametric Statistics, section 3.2.
#' @export
median_interval <- function(values) {
  x <- sort(as.double(values))
  n <- length(x)
  middle <- if (n == 0) NA_real_ else stats::median(x)
  result <- list(median = middle, mean = mean(x), lo = NA_real_, hi = NA_real_, n = n, confidence = NA_real_)
  if (n < 3) return(result)
  rank <- interval_rank(n)
  result$lo <- x[rank]
  result$hi <- x[n + 1L - rank]
  result$confidence <- 1 - 2 * stats::pbinom(rank - 1L, n, 0.5)
  result
}

interval_rank <- function(n) max(1L, as.integer(stats::qbinom(0.025, n, 0.5)))

#' Bootstrap interval of a statistic over replicates
#'
#' The values, one per trial, are resampled with replacement. The interval is between the 2.5 % and the 97.5 % quantile of the statistic over the
#' resamples (for `confidence` 0.95):
#'
#' \deqn{[\hat\theta^*_{(\alpha / 2)}, \hat\theta^*_{(1 - \alpha / 2)}]}
#'
#' The seed is part of the result: the same values and seed always give the same interval, and R's own random number stream is not advanced. Whole
#' trials are resampled, because the windows or packets of one trial depend on each other.
#'
#' @param values Numbers, one per trial; NA is left out.
#' @param statistic A function of such values.
#' @param seed Whole number.
#' @param resamples Number of resamples.
#' @param confidence Confidence of the interval.
#' @return A list `estimate`, `lo`, `hi` (NA below three values), `n`, `seed`, `resamples`.
#' @source B. Efron and R. Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3.
#' @examples
#' bootstrap_interval(c(9, 10, 11, 10, 12), seed = 7)
#' @export
bootstrap_interval <- function(values, statistic = stats::median, seed = 1L, resamples = 2000L, confidence = 0.95) {
  x <- as.double(values[!is.na(values)])
  n <- length(x)
  result <- list(estimate = if (n > 0) statistic(x) else NA_real_, lo = NA_real_, hi = NA_real_, n = n, seed = as.integer(seed), resamples = as.integer(resamples))
  if (n < 3) return(result)
  draws <- matrix(x[drawn_rows(n, seed, resamples)], n)
  drawn <- if (identical(statistic, mean)) colMeans(draws) else apply(draws, 2, statistic)
  result[c("lo", "hi")] <- as.list(quantiles_of(drawn, c(1 - confidence, 1 + confidence) / 2))
  result
}

# Treatments of a campaign have few different numbers of trials, and thousands of metrics: the resampled rows are cached.
drawn_before <- new.env()
drawn_rows <- function(n, seed, resamples) {
  key <- paste(n, seed, resamples)
  if (is.null(drawn_before[[key]])) drawn_before[[key]] <- with_seed(seed, sample.int(n, n * resamples, replace = TRUE))
  drawn_before[[key]]
}

# As stats::quantile() of type 7, which would take more time than the rest of a summary.
quantiles_of <- function(x, share) {
  x <- sort(x)
  at <- 1 + (length(x) - 1) * share
  below <- floor(at)
  x[below] + (at - below) * (x[pmin(below + 1, length(x))] - x[below])
}

# Draw with a fixed generator, then restore R's own state.
with_seed <- function(seed, code) {
  here <- globalenv()
  before <- here[[".Random.seed"]]
  on.exit(if (is.null(before)) rm(".Random.seed", envir = here) else assign(".Random.seed", before, envir = here))
  set.seed(seed, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
  code
}

summary_seed <- 20130121L

#' Summary of a campaign's metrics: one row per part, treatment and metric
#'
#' The flows of a trial are combined first (their median), so that a replicate counts once. Windows or packets of trials are never pooled.
#'
#' @param metrics Table of trial metrics: `trial`, `part`, factor columns, `replicate`, `flow`, `metric`, `unit`, `value`, and `verdict` of the trial
#'   if known.
#' @param factors Names of the factor columns.
#' @return A data.table: `part`, factors, `metric`, `unit`, `median`, `mean`, `lo`, `hi` (95 % of the median by order statistics), `n`, `valid`, `suspect` (trials
#'   by verdict), `min`, `p25`, `p75`, `p90`, `max`, `mean_lo`, `mean_hi` (95 % of the mean by bootstrap), `seed` (of the bootstrap).
#' @export
summarise_metrics <- function(metrics, factors) {
  verdicts <- if ("verdict" %in% names(metrics)) metrics$verdict else rep(NA_character_, nrow(metrics))
  per_trial <- copy(metrics)[, verdict := verdicts][, .(value = stats::median(value), verdict = verdict[1]), by = c("part", factors, "trial", "metric", "unit")]
  per_trial[, c(median_interval(value)[c("median", "mean", "lo", "hi", "n")], verdict_counts(verdict), spread_of(value)), by = c("part", factors, "metric", "unit")][]
}

#' Summary of the metrics of each flow: one row per part, treatment, flow and metric
#'
#' A flow with a `count` has a row for each of its flows. Another row, under its label, is for all of them; their value in a trial is their median.
#'
#' @inheritParams summarise_metrics
#' @return A data.table: `part`, factors, `flow`, `metric`, `unit`, `median`, `mean`, `lo`, `hi` (of the median by order statistics), `n`.
#' @source As [summarise_metrics()].
#' @export
summarise_flows <- function(metrics, factors) {
  alone <- metrics[flow != ""]
  counted <- copy(alone[flow_label(flow) != flow])[, flow := flow_label(flow)]
  by <- c("part", factors, "flow", "metric", "unit")
  per_trial <- rbind(alone, counted)[, .(value = stats::median(value)), by = c(by, "trial")]
  per_trial[, median_interval(value)[c("median", "mean", "lo", "hi", "n")], by = by]
}

# "voip-2" belongs to the counted flow "voip".
flow_label <- function(flow) sub("[-.][0-9]+$", "", flow)

verdict_counts <- function(verdict) list(valid = sum(verdict %in% "valid"), suspect = sum(verdict %in% "suspect"))

spread_of <- function(value) {
  at <- as.list(quantiles_of(value, c(0, 0.25, 0.75, 0.9, 1)))
  drawn <- bootstrap_interval(value, mean, summary_seed, 1000L)
  c(stats::setNames(at, c("min", "p25", "p75", "p90", "max")), list(mean_lo = drawn$lo, mean_hi = drawn$hi, seed = drawn$seed))
}

#' Linearity of RTT over the receive window while the buffer does not fill
#'
#' While cwnd exceeds the receive window, `RTT = window / rate`: every byte beyond the idle path's bandwidth-delay product waits in
#' the queue. Per part and congestion control, a line is fitted to the trials' median RTTs for windows between that product and product + buffer:
#' its R^2, and its slope relative to theory, 8 / rate. Window and rate are of payload bytes (the advertised window counts payload); the rate is the
#' trials' median goodput.
#'
#' @param campaign A campaign of [read_campaign()].
#' @param metrics Table of trial metrics.
#' @return Rows like those of [summarise_metrics()], metrics `rtt_rwnd_linearity_r2` and `rtt_rwnd_slope_ratio`, with an empty level of rwnd; `n` is
#'   the number of windows. No rows if fewer than three windows leave the buffer unfilled; NULL if no trial has a single flow.
#' @export
rwnd_linearity <- function(campaign, metrics) {
  if (!all(c("rwnd", "cc") %in% campaign$factors)) return(NULL)
  wide <- dcast(metrics[metric %in% c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes")],
                trial + flow ~ metric, value.var = "value")
  if (!all(c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes") %in% names(wide))) return(NULL)
  # Flows that share the queue share its delay: the line holds for single flows only.
  alone <- wide[, if (.N == 1L) .SD, by = trial][campaign$trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(alone) == 0) return(NULL)
  limits <- rbindlist(lapply(campaign$manifests[alone$trial], window_limits))
  unfilled <- stats::na.omit(cbind(alone, limits), cols = c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes", "most_bytes"))
  unfilled <- unfilled[rwnd_max_bytes <= most_bytes & rwnd_max_bytes >= least_bytes]
  constant <- setdiff(campaign$factors, "rwnd")
  unfilled[, window_line(.SD), by = c("part", constant)][, rwnd := ""][]
}

# Payload bytes in flight at which packets begin to queue, and at which the queue is full.
window_limits <- function(manifest) {
  path <- path_down(manifest)
  mtu <- manifest$resolved$mtu_bytes
  payload <- (mtu - tcp_header_bytes) / mtu
  idle_bytes <- (path$rate_bps %||% NA) / 8 * (path$rtt_s %||% 0)
  buffer_bytes <- path$buffer_bytes %||% ((path$buffer_packets %||% NA) * mtu)
  list(least_bytes = as.double(idle_bytes * payload), most_bytes = as.double((idle_bytes + buffer_bytes) * payload))
}

# IPv4 and TCP headers with the timestamps option, which both systems send (RFC 7323).
tcp_header_bytes <- 52

window_line <- function(x) {
  if (uniqueN(x$rwnd) < 3) return(NULL)
  line <- stats::lm(rtt_median_ms ~ rwnd_max_bytes, data = x)
  theory_ms_per_byte <- 8e3 / stats::median(x$goodput_bps)
  explained <- stats::cor(x$rtt_median_ms, x$rwnd_max_bytes)^2
  found <- c(rtt_rwnd_linearity_r2 = explained, rtt_rwnd_slope_ratio = unname(stats::coef(line)[2] / theory_ms_per_byte))
  data.table(metric = names(found), unit = metric_unit(names(found)), median = unname(found), mean = unname(found),
             lo = NA_real_, hi = NA_real_, n = uniqueN(x$rwnd))
}
