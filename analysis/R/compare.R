# Compare two campaigns, or two parts of one: trials matched by the levels of factors, and figures with both.

#' Compare two campaigns, or two parts of a campaign
#'
#' Trials are matched by the levels of the factors that both campaigns have. A pair is a trial of A and a trial of B with the same levels and the same
#' replicate. The change of a metric in a treatment is the median of the changes in the treatment's pairs, as difference and as ratio, each with the
#' interval of [paired_changes()]. Trials without measurements in the cache are measured first. The folder `to` gets files like those that
#' [analyse_campaign()] writes to a bundle: `data/changes.csv`, `comparison.json`, and the figures of A's plan, which show both campaigns as levels A and B
#' of the factor `campaign`. Progress is printed as one JSON object per line.
#'
#' @param a,b Lists of `folder` (a campaign folder) and `part` (as in [analyse_campaign()], or NULL).
#' @param to Folder to write to.
#' @param by Factors that distinguish treatments (`part` is also allowed); by default all factors with a level that both campaigns have. Trials that
#'   differ only in the remaining factors make further pairs of the same treatment.
#' @inheritParams analyse_campaign
#' @return The changes, invisibly: a data.table with a row for each metric and each treatment that A or B has, as in `changes.csv`.
#' @examples
#' # A copy, because results are written to the campaign's folder.
#' invisible(file.copy(samovar_example("campaign"), tempdir(), recursive = TRUE))
#' folder <- file.path(tempdir(), "campaign")
#' # A campaign does not differ from itself.
#' to <- tempfile()
#' changes <- compare_campaigns(list(folder = folder), list(folder = folder), to, by = "rwnd", cores = 1)
#' changes[metric == "rtt_median_ms"]
#' @export
compare_campaigns <- function(a, b, to, by = NULL, cores = getOption("samovar.cores", 2L), project = NULL) {
  use_project(project)
  campaigns <- lapply(list(A = a, B = b), \(side) keep_part(read_campaign(side$folder), side$part))
  matched <- matched_factors(campaigns, by)
  both <- side_by_side(lapply(campaigns, \(campaign) gather(campaign, measure_all(campaign, cores))))
  same <- identical(normalizePath(a$folder), normalizePath(b$folder))
  # Within one campaign, `run` is the position of the trial in the order of the run. Trials of two campaigns are paired by replicate instead.
  both$metrics[, run := if (same) positions_of(campaigns$A, sub("^[AB]:", "", trial)) else replicate]
  changes <- changes_between(both$metrics, matched)
  if (all(changes$n == 0)) abort_comparison(nothing_matched(both$metrics))
  write_csv(changes, file.path(to, "data", "changes.csv"))
  both$campaign$trials <- in_both(both$campaign$trials, matched$treatments)
  drawn <- make_all(named_entries(overlaid(campaigns$A$plan$figures), "figure"), cores, \(one) drawn_or_reason(both, one$options, to, one$name))
  left <- both$left_out
  own <- unique(both$metrics, by = "trial")[, !"campaign"][, trial := sub("^[AB]:", "", trial)]
  write_json(c(list(
    matched = lapply(matched, I), pairing = if (same) pairing_words(campaigns$A, pair_up(own, matched)) else separate_words, changes = changes,
    left_out = lapply(seq_len(nrow(left)), \(i) as.list(left[i])),
    figures = Filter(\(d) is.null(d[["reason"]]), drawn), unmade = Filter(\(d) !is.null(d[["reason"]]), drawn)
  ), analysis_versions()), file.path(to, "comparison.json"))
  invisible(changes)
}

#' The factors by which trials of two campaigns are matched
#' @param campaigns A list with the elements `A` and `B`, each a campaign from [read_campaign()].
#' @param by Factors that distinguish the treatments, or NULL.
#' @return A list: `treatments` (factors whose levels define a treatment) and `pairs` (the other factors with common levels; the two trials of a pair have
#'   the same level of each of them).
#' @noRd
matched_factors <- function(campaigns, by = NULL) {
  known <- lapply(campaigns, \(campaign) c("part", campaign$factors))
  shared <- intersect(known$A, known$B)
  levels <- \(side, name) setdiff(unique(campaigns[[side]]$trials[[name]]), NA)
  listed <- \(names) if (length(names) > 0) paste(names, collapse = ", ") else "none"
  words <- \(name) paste0("A has ", listed(levels("A", name)), "; B has ", listed(levels("B", name)))
  for (name in setdiff(by, shared)) abort_choice("Not a factor of both campaigns:", name, shared)
  common <- Filter(\(name) length(intersect(levels("A", name), levels("B", name))) > 0, shared)
  for (name in setdiff(by, common)) abort_comparison(paste0(name, " has no level in common (", words(name), "); --by accepts ", listed(common)))
  for (name in if (is.null(by)) setdiff(union(known$A, known$B), common)) {
    if (max(length(levels("A", name)), length(levels("B", name))) > 1) {
      abort_comparison(paste0(
        name, " has no level in common (", words(name), "); pick one level of each with --only-a and --only-b",
        if (length(common) > 0) paste(", or match by", listed(common), "with --by")
      ))
    }
  }
  list(treatments = by %||% common, pairs = setdiff(common, by %||% common))
}

#' Changes of all metrics from campaign A to campaign B
#' @param metrics Rows of metrics.csv of both campaigns, with the columns `campaign` (A or B) and `run` (position of the trial in the order in which trials
#'   were run).
#' @param matched Result of [matched_factors()].
#' @return A data.table, a row for each metric and each treatment that A or B has: `metric`, `unit`, a column per factor of the treatments,
#'   `treatment` (its levels as text), `a`, `b` (medians over the pairs), `difference`, `difference_lo`, `difference_hi`, `ratio`, `ratio_lo`,
#'   `ratio_hi` (NA unless all values of A are positive), `n` (pairs; 0 for a treatment that A or B lacks), `confidence`, `distinct` (TRUE if the
#'   interval does not contain the value that means no change).
#' @noRd
changes_between <- function(metrics, matched) {
  by <- matched$treatments
  # The flows of a trial are combined first, then the trials of a pair.
  per_trial <- metrics[!is.na(value), .(value = stats::median(value)), by = c("campaign", by, matched$pairs, "replicate", "metric", "unit", "trial", "run")]
  values <- per_trial[, .(value = stats::median(value), run = max(run)), by = c("campaign", by, matched$pairs, "replicate", "metric", "unit")]
  known <- unique(values$metric)
  if (length(Reduce(intersect, split(values$metric, values$campaign))) == 0) {
    measured <- vapply(split(values$metric, values$campaign), \(m) paste(unique(m), collapse = ", "), "")
    abort_comparison(paste("no metric is measured in both:", paste(names(measured), "has", measured, collapse = "; ")))
  }
  pair_up(values, matched, "metric")
  setnames(values, "campaign", "level")
  treatments <- unique(values[, c("curve", "metric", "unit", by), with = FALSE], by = "curve")
  shown <- Filter(\(name) name != "part" || uniqueN(values$part) > 1, by)
  treatments[, treatment := level_words(.SD), .SDcols = shown]
  as_difference <- paired_changes(values, "A")[, .(curve, a = from, b = to, difference = change, difference_lo = lo, difference_hi = hi, n, confidence, distinct)]
  as_ratio <- paired_changes(values, "A", "ratio")[, .(curve, ratio = change, ratio_lo = lo, ratio_hi = hi)]
  changes <- as_ratio[as_difference[treatments, on = "curve"], on = "curve"]
  changes[is.na(n), `:=`(n = 0L, distinct = FALSE)]
  order <- c("metric", "unit", by, "treatment", "a", "b", "difference", "difference_lo", "difference_hi", "ratio", "ratio_lo", "ratio_hi", "n", "confidence", "distinct")
  changes[order(match(metric, known), curve), order, with = FALSE]
}

# Return each row's levels as text, such as "cubic, 50KB", or "all" without factors.
level_words <- function(levels) {
  if (length(levels) == 0) return("all")
  apply(as.matrix(levels), 1, \(row) paste(row[!is.na(row)], collapse = ", "))
}

# Return the trials whose levels of the given factors occur in both campaigns.
in_both <- function(trials, factors) {
  if (length(factors) == 0) return(trials)
  copy(trials)[, sides := uniqueN(campaign), by = factors][sides == 2][, sides := NULL][]
}

separate_words <- "Trials are paired by replicate: the campaigns ran at different times, so that drift between them is part of the change"

# Add the columns `curve` (a number for each treatment, and each level of `more`) and `pair` (a number for each pair).
pair_up <- function(rows, matched, more = NULL) {
  rows[, curve := .GRP, by = c(more, matched$treatments)]
  rows[, pair := .GRP, by = c(matched$pairs, "replicate")]
}

nothing_matched <- function(metrics) {
  sides <- split(metrics$trial, metrics$campaign)
  paste0("no trial of A (", uniqueN(sides$A), " trials) has the same levels and replicate as a trial of B (", uniqueN(sides$B), " trials); name fewer factors with --by")
}

abort_comparison <- function(what) cli::cli_abort("{what}.", class = "samovar_error_comparison", call = NULL)

# --- Figures of both campaigns

#' Combine the results of both campaigns, with the factor `campaign`
#' @param sides A list with the elements `A` and `B`, each the results of a campaign, see [gather()].
#' @return Results like those of [gather()]; the ids of trials begin with "A:" or "B:".
#' @noRd
side_by_side <- function(sides) {
  campaigns <- Map(\(results, side) labelled_campaign(results$campaign, side), sides, names(sides))
  collect <- \(name) rbindlist(lapply(campaigns, `[[`, name), use.names = TRUE, fill = TRUE)
  flat <- \(name) unlist(lapply(unname(campaigns), `[[`, name), recursive = FALSE)
  both <- list2env(list(
    campaign = list(
      plan = list(parts = unlist(lapply(unname(campaigns), \(c) c$plan$parts), recursive = FALSE), trials = unlist(lapply(unname(campaigns), \(c) c$plan$trials), recursive = FALSE)),
      factors = c(unique(unlist(lapply(sides, \(results) results$campaign$factors))), "campaign"),
      trials = collect("trials"), phases = collect("phases"), manifests = flat("manifests")
    ),
    sides = sides, left_out = rbindlist(lapply(sides, `[[`, "left_out"), idcol = "campaign"),
    date = max(sides$A$date, sides$B$date)
  ))
  lapply(derived_tables, \(name) delayedAssign(name, both_tables(sides, name), assign.env = both))
  both
}

# Return the campaign's folder and the manifest of a trial. The results may be those of one campaign or of two.
source_of_trial <- function(results, id) {
  if (is.null(results$sides)) return(list(folder = results$campaign$folder, manifest = results$campaign$manifests[[id]]))
  source_of_trial(results$sides[[substr(id, 1, 1)]], substring(id, 3))
}

both_tables <- function(sides, name) {
  rbindlist(Map(\(results, side) labelled_rows(results[[name]], "trial", side), sides, names(sides)), use.names = TRUE, fill = TRUE)
}

labelled_rows <- function(rows, column, side) {
  if (nrow(rows) == 0) return(rows)
  set(copy(rows), j = c(column, "campaign"), value = list(paste0(side, ":", rows[[column]]), side))
}

labelled_campaign <- function(campaign, side) {
  campaign$trials <- labelled_rows(campaign$trials, "id", side)
  campaign$phases <- labelled_rows(campaign$phases, "id", side)
  names(campaign$manifests) <- paste0(side, ":", names(campaign$manifests))
  campaign$plan$parts <- lapply(campaign$plan$parts, \(part) {
    part$factors$campaign <- list(side)
    part
  })
  campaign$plan$trials <- lapply(campaign$plan$trials, \(trial) {
    trial$id <- paste0(side, ":", trial$id)
    trial$treatment$campaign <- side
    trial
  })
  campaign
}

# Return the figures of a plan that can show two campaigns. Left out are figures of single trials, because the
# other campaign lacks the ids of these trials, and figures of the plan itself.
overlaid <- function(figures) {
  entries <- lapply(as.list(figures), as_entry, kind = "figure")
  Filter(\(entry) is.null(entry$trial) && !identical(output_of(entry)$trials, "planned"), entries)
}

# A figure is left out of the comparison if one campaign lacks the data for it, or if it would have too many curves.
drawn_or_reason <- function(results, entry, to, name) {
  left_out <- \(reason) list(name = name, reason = reason)
  drawn <- tryCatch(one_figure(results, entry, to, name), samovar_error_name = identity, samovar_error_figure = identity)
  if (inherits(drawn, "error")) return(left_out(message_line(drawn)))
  sides <- unique(substr(drawn$trials, 1, 1))
  if (length(sides) == 1) left_out(paste("only", sides, "has data for it")) else drawn
}
