# Compute how much of a metric's variance the factors explain.

#' Share of a metric's variance that each factor and interaction explains
#'
#' Sums of squares are of type II: the sum of a term is what it explains beyond all terms that do not contain it. In a balanced design, sums of squares of all
#' types are equal and add up to the total. The terms include the interaction of all factors, so that the residual is only the noise of replicates within their
#' blocks.
#'
#' \deqn{\eta^2 = SS / SS_{total}, \quad \eta^2_G = SS / (SS + SS_{block} + SS_{residual}), \quad \omega^2 = (SS - df \cdot MS_{residual}) / (SS_{total} + MS_{residual})}
#'
#' Blocks are a stratum: their sum of squares is separate from the residual. A term that is constant within each block (a level that needs a reboot) is
#' not adjusted for blocks. Such a term has no \eqn{\omega^2}, because its noise is the difference between two boots, which the residual does not contain.
#'
#' @param values A data.table, one row per trial: `value`, `block` (number of its block) and a column per factor.
#' @param factors Names of the factor columns.
#' @param highest Interactions of more factors than this are combined into one term.
#' @return A data.table, a row per term, then `block` (if there are several), `residual` and `total`: `term` (names of factors joined by ":"), `df`,
#'   `sum_sq`, `share` (\eqn{\eta^2}), `generalised` (\eqn{\eta^2_G}) and `omega_sq` (\eqn{\omega^2}; negative where a term explains less than noise
#'   would). A term that these trials cannot distinguish from others has `df` 0 and no shares. NULL if all values are equal or no factor has two levels or more.
#' @source Langsrud, ANOVA for unbalanced data: use type II instead of type III sums of squares, 2003; Olejnik and Algina, Generalized eta and omega
#'   squared statistics, 2003.
#' @examples
#' trials <- data.table::CJ(cc = c("cubic", "cdg"), rwnd = c("50KB", "200KB"), block = 1:3)
#' trials[, value := c(10, 11, 10, 20, 22, 21, 12, 12, 13, 40, 41, 42)]
#' variance_explained(trials, c("cc", "rwnd"))
#' @export
variance_explained <- function(values, factors, highest = 3L) {
  codes <- distinct_factors(values, factors)
  if (length(codes) == 0 || uniqueN(values$value) == 1) return(NULL)
  value <- values$value - mean(values$value)
  block <- factor(values$block)
  terms <- terms_of(names(codes), highest)
  blocked <- nlevels(block) > 1
  # The term for blocks contains each factor that is constant within blocks, as an interaction contains its factors.
  constant <- names(codes)[vapply(codes, \(code) all(tapply(code, block, \(x) uniqueN(x) == 1)), TRUE)]
  if (blocked) terms <- c(terms, list(block = c(constant, "block")))
  columns <- c(codes, list(block = block))
  explained <- vapply(seq_along(terms), \(i) {
    others <- Filter(\(term) !all(terms[[i]] %in% term), terms)
    without <- remainder(value, columns, others)
    with <- remainder(value, columns, c(others, terms[i]))
    c(df = with[["rank"]] - without[["rank"]], sum_sq = without[["sum_sq"]] - with[["sum_sq"]])
  }, c(df = 0, sum_sq = 0))
  rest <- remainder(value, columns, terms)
  noise <- list(df = length(value) - rest[["rank"]], sum_sq = if (rest[["rank"]] < length(value)) rest[["sum_sq"]] else 0)
  found <- data.table(term = names(terms), df = as.integer(explained["df", ]), sum_sq = explained["sum_sq", ])
  found <- rbind(found, data.table(term = "residual", df = as.integer(noise$df), sum_sq = noise$sum_sq))
  found <- effect_sizes(found, total = sum(value^2))
  between <- names(terms)[vapply(terms, \(term) all(term %in% constant), TRUE)]
  if (blocked) found[term %in% between, omega_sq := NA_real_]
  rbind(found, data.table(term = "total", df = length(value) - 1L, sum_sq = sum(value^2), share = 1), fill = TRUE)
}

effect_sizes <- function(found, total) {
  noise <- found[term == "residual"]
  mean_sq <- if (noise$df > 0) noise$sum_sq / noise$df else NA_real_
  beside <- if (noise$df > 0) found[term %in% c("block", "residual"), sum(sum_sq)] else NA_real_
  found[, share := sum_sq / total]
  found[!term %in% c("block", "residual"), `:=`(generalised = sum_sq / (sum_sq + beside), omega_sq = (sum_sq - df * mean_sq) / (total + mean_sq))]
  found[df == 0, c("sum_sq", "share", "generalised", "omega_sq") := NA_real_][]
}

# Codes of the factors that vary. Factors whose levels always change together are combined into one, named "rate = buffer".
distinct_factors <- function(values, factors) {
  codes <- lapply(stats::setNames(nm = factors), \(f) factor(match(values[[f]], unique(values[[f]]))))
  codes <- codes[vapply(codes, nlevels, 1L) > 1]
  same <- match(codes, unique(codes))
  found <- codes[!duplicated(same)]
  stats::setNames(found, vapply(unique(same), \(k) paste(names(codes)[same == k], collapse = " = "), ""))
}

# Return all sets of up to `highest` factors, with names. If there are more factors, the set of all factors
# stands for all larger sets.
terms_of <- function(factors, highest) {
  sets <- unlist(lapply(seq_len(min(highest, length(factors))), \(k) utils::combn(factors, k, simplify = FALSE)), recursive = FALSE)
  names(sets) <- vapply(sets, paste, "", collapse = ":")
  if (length(factors) > highest) sets <- c(sets, list(higher = factors))
  sets
}

# Return the residuals of the values after a least-squares fit of the cells of some terms. A term that is a margin of a larger term is left
# out, because the larger term's cells determine its cells.
#
# The term with the most cells gets no indicators: with a column for each block or treatment, their memory
# would grow with the square of the number of trials. Instead, the means of its cells are subtracted from the
# values and from the indicators of the other terms. The result is the same (Frisch and Waugh, Partial time
# regressions, 1933).
remainder <- function(value, columns, terms) {
  margin <- vapply(terms, \(term) any(vapply(terms, \(larger) length(larger) > length(term) && all(term %in% larger), TRUE)), TRUE)
  cells <- lapply(terms[!margin], \(term) as.integer(interaction(columns[intersect(names(columns), term)], drop = TRUE)))
  cells <- c(cells, if (length(cells) == 0) list(rep(1L, length(value))))
  largest <- which.max(vapply(cells, max, 1L))
  group <- cells[[largest]]
  in_group <- tabulate(group)
  less_means <- \(x) x - (rowsum(x, group) / in_group)[group, , drop = FALSE]
  indicators <- lapply(cells[-largest], \(cell) outer(cell, seq_len(max(cell)), "==") + 0)
  within <- less_means(do.call(cbind, c(indicators, list(matrix(0, length(value), 0)))))
  # If the groups determine an indicator, its column contains only rounding errors. It is set to 0, because
  # these errors would count towards the rank.
  within[, colSums(within^2) < 1e-14 * length(value)] <- 0
  fitted <- stats::.lm.fit(within, less_means(matrix(value)))
  c(rank = length(in_group) + fitted$rank, sum_sq = sum(fitted$residuals^2))
}

# Explain the variance of each metric within each part. `per_trial` has a row per trial and metric.
variance_by_part <- function(campaign, per_trial) {
  found <- copy(per_trial)[, block := blocks_of(campaign, trial)]
  found[, variance_explained(.SD, Filter(\(f) !anyNA(.SD[[f]]), campaign$factors)), by = .(part, metric, unit)]
}
