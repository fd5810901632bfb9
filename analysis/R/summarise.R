# Summarise metrics over the trials of a treatment: medians with intervals, linearity of RTT over rwnd.

#' Median of replicates with its interval
#'
#' The interval does not depend on the distribution: its ends are the order statistics r and n + 1 - r, where r is the largest rank with P(r <= Binomial(n, 1/2)
#' <= n - r) >= 0.95. The confidence is that probability, which is exact for every continuous distribution; if values are tied, the confidence is at least as
#' high. With fewer than six values, no rank reaches 0.95: for three, four and five values the interval is the whole range, with a confidence of 75, 87.5 and
#' 93.75 %. Fewer than three values give no interval. The mean is given without an interval, because for skewed values no interval contains the mean as often as
#' its confidence states.
#'
#' @param values Numbers, one per trial; NA is left out.
#' @return A list: `median`, `mean`, `lo`, `hi` (NA below three values), `n`, `confidence` (that of the interval).
#' @source Conover, Practical Nonparametric Statistics, section 3.2; David and Nagaraja, Order Statistics, section 7.1.
#' @examples
#' median_interval(c(9, 10, 11, 10.5, 12))
#' @export
median_interval <- function(values) {
  x <- as.double(values[!is.na(values)])
  x <- x[order(x)]
  n <- length(x)
  middle <- if (n == 0) NA_real_ else (x[(n + 1L) %/% 2L] + x[n %/% 2L + 1L]) / 2
  result <- list(median = middle, mean = mean(x), lo = NA_real_, hi = NA_real_, n = n, confidence = NA_real_)
  if (n < fewest_values) return(result)
  rank <- interval_rank(n)
  result$lo <- x[rank]
  result$hi <- x[n + 1L - rank]
  result$confidence <- interval_confidence(n)
  result
}

# The range of two values contains the median with a probability of only 50 %.
fewest_values <- 3L

interval_rank <- function(n) pmax(1L, as.integer(stats::qbinom(0.025, n, 0.5)))

interval_confidence <- function(n) 1 - 2 * stats::pbinom(interval_rank(n) - 1L, n, 0.5)

# Return the same quantiles as stats::quantile() of type 7, which would take more time than the rest of a summary.
quantiles_of <- function(x, share) {
  x <- sort(x)
  at <- 1 + (length(x) - 1) * share
  below <- floor(at)
  x[below] + (at - below) * (x[pmin(below + 1, length(x))] - x[below])
}

#' Summary of a campaign's metrics: one row per part, treatment and metric
#'
#' The flows of a trial are combined first (their median), so that a replicate counts once. Windows or packets of trials are never pooled.
#'
#' @param metrics Table of trial metrics: `trial`, `part`, factor columns, `replicate`, `flow`, `metric`, `unit`, `value`, and `verdict` of the trial
#'   if known.
#' @param factors Names of the factor columns.
#' @return A data.table: `part`, factors, `metric`, `unit`, `median`, `mean`, `lo`, `hi`, `n`, `confidence` (of the interval from `lo` to `hi`, see
#'   [median_interval()]), `valid`, `suspect` (trials by verdict), `min`, `p25`, `p75`, `p90`, `max`.
#' @examples
#' campaign <- read_campaign(samovar_example("campaign"))
#' metrics <- data.table::rbindlist(lapply(campaign$manifests, \(manifest) {
#'   cbind(trial = manifest$id, measure_trial(campaign$folder, manifest)$metrics)
#' }))
#' metrics <- campaign$trials[, !"verdict"][metrics, on = c(id = "trial")]
#' data.table::setnames(metrics, "id", "trial")
#' summarise_metrics(metrics, campaign$factors)[metric == "rtt_median_ms", .(rwnd, median, n)]
#' @export
summarise_metrics <- function(metrics, factors) {
  if (!"verdict" %in% names(metrics)) metrics <- copy(metrics)[, verdict := NA_character_]
  # data.table computes median(), but not stats::median(), for all groups at once.
  per_trial <- metrics[, .(value = median(value), verdict = verdict[1]), by = c("part", factors, "trial", "metric", "unit")]
  per_trial[, c(median_interval(value), verdict_counts(verdict), spread_of(value)), by = c("part", factors, "metric", "unit")][]
}

#' Summary of the metrics of each flow: one row per part, treatment, flow and metric
#'
#' If an entry in `traffic` has a `count`, each of its flows (voip-1, voip-2) has rows, and so has the entry's label (voip). A trial's value for the label is
#' the median over the entry's flows.
#'
#' @inheritParams summarise_metrics
#' @return A data.table: `part`, factors, `flow`, `metric`, `unit`, `median`, `mean`, `lo`, `hi`, `n`, `confidence`.
#' @source As [summarise_metrics()].
#' @examples
#' campaign <- read_campaign(samovar_example("campaign"))
#' metrics <- data.table::rbindlist(lapply(campaign$manifests, \(manifest) {
#'   cbind(trial = manifest$id, measure_trial(campaign$folder, manifest)$metrics)
#' }))
#' metrics <- campaign$trials[, !"verdict"][metrics, on = c(id = "trial")]
#' data.table::setnames(metrics, "id", "trial")
#' summarise_flows(metrics, campaign$factors)[metric == "rtt_median_ms", .(rwnd, flow, median, n)]
#' @export
summarise_flows <- function(metrics, factors) {
  by <- c("part", factors, "flow", "metric", "unit")
  columns <- c(by, "trial", "value")
  alone <- metrics[flow != "", columns, with = FALSE]
  single <- unique(alone$flow)
  single <- single[flow_label(single) != single]
  counted <- alone[flow %in% single][, flow := flow_label(flow)]
  per_trial <- rbind(alone, counted)[, .(value = median(value)), by = c(by, "trial")]
  per_trial[, median_interval(value), by = by]
}

# "voip-2" belongs to the counted flow "voip".
flow_label <- function(flow) sub("[-.][0-9]+$", "", flow)

verdict_counts <- function(verdict) list(valid = sum(verdict %in% "valid"), suspect = sum(verdict %in% "suspect"))

spread_of <- function(value) {
  stats::setNames(as.list(quantiles_of(value, c(0, 0.25, 0.75, 0.9, 1))), c("min", "p25", "p75", "p90", "max"))
}

#' Linearity of RTT over the receive window while the buffer does not fill
#'
#' While cwnd exceeds the receive window, `RTT = window / rate`: every byte beyond the idle path's bandwidth-delay product waits in the queue. Per part and
#' congestion control, a line is fitted to the trials' median RTTs for receive windows from the bandwidth-delay product to that product plus the buffer. The
#' metrics are the line's R^2, and its slope relative to the theoretical slope, 8 / rate. Window and rate
#' count payload bytes only, as the advertised window does. The rate is the trials' median goodput.
#'
#' @param campaign A campaign from [read_campaign()].
#' @param metrics Table of trial metrics.
#' @return Rows like those of [summarise_metrics()] for the metrics `rtt_rwnd_linearity_r2` and `rtt_rwnd_slope_ratio`, with an empty level of `rwnd`; `n`
#'   is the number of windows. The table is empty unless at least three receive windows are too small to fill the buffer. NULL if no trial has exactly
#'   one flow.
#' @examples
#' campaign <- read_campaign(samovar_example("campaign"))
#' metrics <- data.table::rbindlist(lapply(campaign$manifests, \(manifest) {
#'   cbind(trial = manifest$id, measure_trial(campaign$folder, manifest)$metrics)
#' }))
#' metrics <- campaign$trials[, !"verdict"][metrics, on = c(id = "trial")]
#' data.table::setnames(metrics, "id", "trial")
#' rwnd_linearity(campaign, metrics[, .(trial, flow, metric, unit, value)])
#' @export
rwnd_linearity <- function(campaign, metrics) {
  if (!all(c("rwnd", "cc") %in% campaign$factors)) return(NULL)
  wide <- dcast(metrics[metric %in% c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes")],
                trial + flow ~ metric, value.var = "value")
  if (!all(c("rtt_median_ms", "goodput_bps", "rwnd_max_bytes") %in% names(wide))) return(NULL)
  # The linear relation holds only for a flow that is alone in the queue, since flows in one queue share its
  # delay.
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
  mtu <- mtu_of(manifest)
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
