# Read a campaign's folder: its plan, the manifests of its trials, and the reasons why trials are left out.

#' Read a campaign: its plan and the trials to analyse
#'
#' Only trials of the plan are read; results of earlier plans stay in the folder. A trial is left out, with the reason, if it has not been run, is
#' incomplete, lacks a file that its manifest lists, failed, or was judged invalid. Suspect trials are kept.
#'
#' @param folder A campaign folder, with `plan.json` and `trials/`.
#' @return A list: `folder`, `plan`, `factors` (names), `trials` (data.table: `id`, `part`, one text column per factor,
#'   `replicate`, `block`, `verdict`, `overhead_s`), `manifests` (by id, without `checks`), `phases` (data.table: `id`, `phase`, `seconds`),
#'   `left_out` (data.table: `id`, `reason`), `index` (known states of the campaign's files), `seen` (their present states), `parsed` (all
#'   manifests).
#' @examples
#' campaign <- read_campaign(samovar_example("campaign"))
#' campaign$trials
#' campaign$left_out
#' @export
read_campaign <- function(folder) {
  plan <- read_plan(folder)
  planned <- vapply(plan$trials, \(t) t$id, "")
  index <- read_index(folder)
  seen <- read_manifests(folder, planned, index)
  read <- seen$manifests
  reasons <- vapply(read, \(m) m[["reason"]] %||% NA_character_, "")
  manifests <- read[is.na(reasons)]
  if (length(manifests) == 0) abort_campaign(folder, no_trial_message(reasons))
  factors <- unique(unlist(lapply(plan$parts, \(p) names(p$factors))))
  structure(list(
    folder = folder, plan = plan, factors = factors,
    trials = rbindlist(Map(trial_row, plan$trials[match(names(manifests), planned)], manifests, list(factors))),
    manifests = manifests,
    phases = phase_rows(manifests),
    left_out = data.table(id = planned, reason = unname(reasons))[!is.na(reason)],
    index = index, seen = seen$states, parsed = seen$parsed
  ), class = "samovar_campaign")
}

`%||%` <- function(a, b) if (is.null(a)) b else a

read_plan <- function(folder) {
  if (!dir.exists(folder)) abort_campaign(folder, "no such folder")
  plan <- read_json(file.path(folder, "plan.json"), folder)
  if (!identical(as.integer(plan$schema), 2L)) {
    abort_campaign(folder, paste0("plan.json has schema ", plan$schema %||% "none", ", but this release reads schema 2"))
  }
  if (length(plan$trials) == 0) abort_campaign(folder, "plan.json has no trial")
  plan$trials <- tryCatch(plan_trials(plan), error = \(e) abort_campaign(folder, "the trials of plan.json cannot be read"))
  plan
}

# Trials as lists of id, part, treatment, replicate, block; the file has indexes into tables of treatments.
plan_trials <- function(plan) {
  ends <- cumsum(vapply(plan$treatments, \(g) as.integer(g$number), 1L))
  lapply(plan$trials, \(row) {
    place <- findInterval(row[[2]], ends) + 1L
    group <- plan$treatments[[place]]
    number <- row[[2]] - c(0L, ends)[place] + 1L
    treatment <- lapply(stats::setNames(nm = names(group$factors)),
                        \(f) group$factors[[f]][[group$levels[[f]][[number]] + 1L]])
    list(id = row[[1]], part = group$part, treatment = treatment, replicate = row[[3]], block = row[[4]])
  })
}

read_json <- function(path, folder) {
  if (!file.exists(path)) abort_campaign(folder, paste("it has no", basename(path)))
  tryCatch(
    jsonlite::fromJSON(path, simplifyVector = FALSE),
    error = \(e) abort_campaign(folder, paste(basename(path), "is truncated or not JSON"))
  )
}

# Return a list: `manifests` (by id, the manifest, or list(reason = ) if it cannot be used), `states` of the
# manifests and of the files that they list.
read_manifests <- function(folder, ids, index) {
  states <- file_states(folder, manifest_path(ids))
  known <- !is.na(known_sums(states, index)) & ids %in% names(index$manifests)
  manifests <- stats::setNames(vector("list", length(ids)), ids)
  manifests[known] <- index$manifests[ids[known]]
  manifests[!known] <- unlist(lapply(in_groups_of(ids[!known], stack_trials), \(some) {
    # After parsing, each manifest has its own copy of the resolved values, which takes two thirds of its memory.
    joined_manifests(divided_manifests(lapply(some, \(id) read_manifest(folder, id))))
  }), recursive = FALSE)
  parsed <- Filter(\(m) is.null(m[["reason"]]), manifests)
  if (!all(known)) parsed <- joined_manifests(divided_manifests(parsed))
  files <- file_states(folder, as.character(unlist(lapply(parsed, trial_paths))))
  archived <- file.exists(file.path(folder, "traces.tar.zst"))
  manifests[names(parsed)] <- fit_manifests(parsed, files$size, archived)
  list(manifests = manifests, states = rbind(states, files), parsed = parsed)
}

# Return a parsed manifest without the evidence of its verdict, which is the largest part of a manifest, or list(reason = ).
read_manifest <- function(folder, id) {
  at <- file.path(folder, "trials", id)
  if (!dir.exists(at)) {
    running <- dir.exists(file.path(folder, "in-progress", id))
    return(list(reason = if (running) "half written: it is in in-progress/" else "not run"))
  }
  path <- file.path(at, "manifest.json")
  if (!file.exists(path)) return(list(reason = "half written: no manifest.json"))
  tryCatch({
    manifest <- jsonlite::fromJSON(path, simplifyVector = FALSE)
    manifest[setdiff(names(manifest), "checks")]
  }, error = \(e) list(reason = "half written: manifest.json is not JSON"))
}

# `sizes` are the sizes of all listed files, in order; NA for missing files.
fit_manifests <- function(manifests, sizes, archived) {
  ends <- cumsum(vapply(manifests, \(m) length(m$files), 1L))
  Map(\(m, end) {
    reason <- reason_to_leave_out(m, sizes[seq_along(m$files) + end - length(m$files)], archived)
    if (is.null(reason)) m else list(reason = reason)
  }, manifests, ends)
}

reason_to_leave_out <- function(manifest, sizes, archived) {
  why <- paste(unlist(manifest$reasons), collapse = "; ")
  with_reasons <- \(word) if (nzchar(why)) paste0(word, ": ", why) else word
  if (!identical(manifest$outcome, "completed")) return(with_reasons(paste("outcome", manifest$outcome %||% "missing")))
  if (identical(manifest$verdict, "invalid")) return(with_reasons("invalid"))
  for (i in seq_along(manifest$files)) {
    f <- manifest$files[[i]]
    if (is.na(sizes[i]) && archived) return("its traces are archived; `fab archive --restore` restores them")
    if (is.na(sizes[i])) return(paste0(f$path, " is missing"))
    if (!is.null(f$bytes) && sizes[i] != f$bytes) return(paste0(f$path, " has ", sizes[i], " bytes, not ", f$bytes, " as in its manifest"))
  }
  NULL
}

# The design of a trial comes from the plan, which may have been edited since the trial ran; its outcome comes from the manifest.
trial_row <- function(trial, manifest, factors) {
  c(trial[c("id", "part")], factor_row(trial$treatment, factors), trial["replicate"],
    list(block = as.integer(manifest$block %||% NA), verdict = manifest$verdict,
         overhead_s = as.double(manifest$overhead_s %||% NA)))
}

factor_row <- function(treatment, factors) lapply(stats::setNames(nm = factors), \(f) treatment[[f]] %||% NA_character_)

# Make one table for all trials. A table per trial would take 17 kB each, most of it space reserved for further columns.
phase_rows <- function(manifests) {
  each <- lapply(unname(manifests), `[[`, "phases")
  phases <- unlist(each, recursive = FALSE)
  data.table(
    id = rep(vapply(manifests, \(m) m$id, "", USE.NAMES = FALSE), lengths(each)),
    phase = vapply(phases, \(p) p$phase, ""), seconds = vapply(phases, \(p) as.double(p$seconds), 0)
  )
}

no_trial_message <- function(reasons) paste0("none of its ", length(reasons), " planned trials can be analysed: ", reason_counts(reasons))

# The most frequent reasons, each with the number of its trials.
reason_counts <- function(reasons) {
  counts <- sort(table(reasons), decreasing = TRUE)
  paste(utils::head(paste0(names(counts), " (", counts, ")"), 3), collapse = ", ")
}

abort_campaign <- function(folder, what) {
  cli::cli_abort("Campaign {.path {folder}}: {what}; a campaign has plan.json and trials/<id>/manifest.json with its traces.",
                 class = "samovar_error_campaign", call = NULL)
}
