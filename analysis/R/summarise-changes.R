# Changes of a metric between the levels of a factor, paired by block.

#' Changes of a metric from one level of a factor to the others, paired
#'
#' In a blocked design the trials of a block follow one another, so drift of the path affects them equally and cancels in their differences. A pair consists of
#' trials of one block that differ only in their level of the factor. The change is the median over the pairs, with the interval of [median_interval()]. The
#' interval's confidence is exact for any distributions of the two levels, because the pairs are independent of each other.
#'
#' The pairs are not independent if all trials of one level were run before those of the other, as for a level that needs a reboot: drift, or the difference
#' between two boots, is then part of every pair. A change between such levels has no interval.
#'
#' @param values A data.table, one row per trial: `curve` (what the trials of a pair have in common besides the block), `level` (text), `pair` (number of
#'   the block), `run` (position of the trial in the order in which trials were run), `value`.
#' @param against The level with which the others are compared: changes are from this level to another.
#' @param as "difference" (in the unit of the values) or "ratio" (NA where the values of `against` are not all positive).
#' @return A data.table, one row per curve and other level: `curve`, `level`, `from`, `to` (medians of both levels over the pairs), `change` (median
#'   over the pairs), `lo`, `hi`, `n` (pairs), `confidence`, `distinct` (TRUE if the interval does not contain the value that means no change).
#' @source Hahn and Meeker, Statistical Intervals, section 5.2 (order statistics), of the differences or ratios of pairs.
#' @examples
#' trials <- data.table::CJ(pair = 1:6, level = c("cubic", "cdg"), curve = "all")
#' trials[, run := seq_len(.N)][, value := pair + ifelse(level == "cdg", 3, 0) + c(0.1, 0.2, 0.3)]
#' paired_changes(trials, against = "cubic")
#' @export
paired_changes <- function(values, against, as = c("difference", "ratio")) {
  ratio <- match.arg(as) == "ratio"
  none <- if (ratio) 1 else 0
  base <- values[level == against, .(curve, pair, from = value, from_run = run)]
  pairs <- values[level != against][base, on = c("curve", "pair"), nomatch = NULL]
  pairs[, {
    found <- median_interval(if (!ratio) value - from else if (all(from > 0)) value / from)
    apart <- .N > 0 && (max(run) < min(from_run) || max(from_run) < min(run))
    if (apart) found[c("lo", "hi", "confidence")] <- NA_real_
    list(from = stats::median(from), to = stats::median(value), change = found$median, lo = found$lo, hi = found$hi, n = .N, confidence = found$confidence,
         distinct = !is.na(found$lo) && (found$lo > none || found$hi < none))
  }, by = .(curve, level)]
}

#' Number the blocks of trials in the order in which they were run
#'
#' A block is a sequence of successive trials of the plan that have the same block number. Several blocks may
#' have the same number: if levels need a reboot, all blocks of one level are run before those of the next
#' level, and the blocks of each level are numbered from 1 (docs/decisions/0014-whole-plots.md).
#' @param ids Ids of trials.
#' @return A number per trial; the same for all trials of a part without blocks.
#' @noRd
blocks_of <- function(campaign, ids) {
  planned <- campaign$plan$trials
  run <- rleid(vapply(planned, \(t) t$part, ""), vapply(planned, \(t) as.integer(t$block), 1L))
  run[positions_of(campaign, ids)]
}

# Positions of trials in the order of the plan.
positions_of <- function(campaign, ids) match(ids, vapply(campaign$plan$trials, \(t) t$id, ""))
