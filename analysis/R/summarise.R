#' Median of replicates with its 95 % interval
#'
#' The interval is distribution-free: order statistics r and n + 1 - r, r the largest rank with
#' P(r <= Binomial(n, 1/2) <= n - r) >= 0.95. Such an interval exists from six values on; for three to five the whole range is
#' given, which holds the median with 75, 87.5 and 93.75 %. Below three there is none.
#'
#' @param values Numbers, one per trial; NA is left out.
#' @return A list: `median`, `mean`, `lo`, `hi` (NA below three values), `n`, `confidence` (share that the interval reaches).
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
#' The values, one per trial, are drawn again with replacement as many times as there are resamples, each time as many as
#' there are; the interval lies between the 2.5 % and the 97.5 % quantile of the statistic over them (for `confidence` 0.95):
#'
#' \deqn{[\hat\theta^*_{(\alpha / 2)}, \hat\theta^*_{(1 - \alpha / 2)}]}
#'
#' The seed is a part of the result: the same values and seed give the same interval, whatever was drawn before, and R's own stream of random
#' numbers stays where it was. Trials are drawn, never windows or packets of them: those depend on each other.
#'
#' @param values Numbers, one per trial; NA is left out.
#' @param statistic A function of such values.
#' @param seed Whole number.
#' @param resamples How often to draw.
#' @param confidence Share that the interval is to hold.
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

# A campaign's treatments have a few different numbers of trials, and thousands of metrics: which rows are drawn is kept.
drawn_before <- new.env()
drawn_rows <- function(n, seed, resamples) {
  key <- paste(n, seed, resamples)
  if (is.null(drawn_before[[key]])) drawn_before[[key]] <- with_seed(seed, sample.int(n, n * resamples, replace = TRUE))
  drawn_before[[key]]
}

# As stats::quantile() of type 7, which costs more than the rest of a summary.
quantiles_of <- function(x, share) {
  x <- sort(x)
  at <- 1 + (length(x) - 1) * share
  below <- floor(at)
  x[below] + (at - below) * (x[pmin(below + 1, length(x))] - x[below])
}

# Draws by a generator that is named, then puts R's own back where it was.
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
#' Flows of a trial are taken together first (their median), so that a replicate counts once. Windows or packets of trials are never pooled.
#'
#' @param metrics Table of trial metrics: `trial`, `part`, factor columns, `replicate`, `flow`, `metric`, `unit`, `value`, and `verdict` of the trial
#'   where it is known.
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
#' A counted flow has a row for each of its flows and, by its label, one for all of them, of which those of a trial are taken together first (their median).
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

# "voip-2" is one of the flows called voip.
flow_label <- function(flow) sub("[-.][0-9]+$", "", flow)

verdict_counts <- function(verdict) list(valid = sum(verdict %in% "valid"), suspect = sum(verdict %in% "suspect"))

spread_of <- function(value) {
  at <- as.list(quantiles_of(value, c(0, 0.25, 0.75, 0.9, 1)))
  drawn <- bootstrap_interval(value, mean, summary_seed, 1000L)
  c(stats::setNames(at, c("min", "p25", "p75", "p90", "max")), list(mean_lo = drawn$lo, mean_hi = drawn$hi, seed = drawn$seed))
}
