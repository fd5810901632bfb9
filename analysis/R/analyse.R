# Analyse a campaign: measure its trials, draw figures and tables, and write the results.

#' Analyse a campaign: measure its trials, draw its figures, write its bundle
#'
#' Trials are measured once: if files and code are unchanged, measurements are read from a cache, and figures and tables with unchanged inputs are not
#' drawn again. Writes `tables/metrics.csv`, `summary.csv` and `flows.csv`, and in `bundle/` the figures, the tidy data of each figure,
#' `figures.json`, `tables.json` and `analysis.json`. Progress is printed as one JSON object per line.
#'
#' @param folder A campaign folder.
#' @param figures Figures to draw, each a name or an entry with options; NULL for the figures of the campaign's plan.
#' @param cores Number of processes that measure trials or draw figures in parallel. Each process needs memory for the tables of a trial's captures.
#' @param value Whether to read and return the results.
#' @param part Selection of trials to analyse, or NULL for all trials: a list of `picked` (text that says how they were picked), `options` (of the command)
#'   and `trials` (ids). The selection is written to `analysis.json`; measurements of the other trials stay in the cache.
#' @param project Folder `analysis/` of a project, whose `outputs.yaml` and R files add metrics, figures and tables; or NULL.
#' @return The results, invisibly: `campaign`, `metrics`, `summary`, `flows`, `cycles`, `rtt`, `series`, `jitter`, `sender`, `samples`, `pauses`, `closeup`, `notes`, `left_out`.
#' @examples
#' # A copy, because results are written to the campaign's folder.
#' invisible(file.copy(samovar_example("campaign"), tempdir(), recursive = TRUE))
#' folder <- file.path(tempdir(), "campaign")
#' results <- analyse_campaign(folder, figures = list(), cores = 1)
#' results$summary[metric == "rtt_median_ms", .(rwnd, median)]
#' @export
analyse_campaign <- function(folder, figures = NULL, cores = getOption("samovar.cores", 2L), value = TRUE, project = NULL,
                             part = NULL) {
  use_project(project)
  campaign <- keep_part(read_campaign(folder), part)
  entries <- lapply(as.list(figures %||% campaign$plan$figures), as_entry, kind = "figure")
  tables <- lapply(as.list(campaign$plan$tables), as_entry, kind = "table")
  check_entries(campaign, c(entries, tables))
  results <- gather(campaign, measure_all(campaign, cores))
  for (line in note_lines(results$notes)) emit_event("warning", text = line)
  unlink(file.path(folder, "bundle", "analysis.json")) # until it is written again, the report refuses the mixture of old and new files
  undrawn <- draw_all(results, entries, tables, cores)
  if (is.null(part)) store_prune(cache_folder(folder), used_paths(folder, results$keys))
  write_analysis(results, undrawn, file.path(folder, "bundle"))
  invisible(if (value) as.list(results))
}

# Return the campaign with only the selected trials. Its plan stays whole, so that figures can name any trial or level.
keep_part <- function(campaign, part) {
  if (is.null(part)) return(campaign)
  ids <- as.character(unlist(part$trials))
  campaign$part <- replace(part, "trials", list(I(ids)))
  campaign$manifests <- campaign$manifests[names(campaign$manifests) %in% ids]
  for (name in c("trials", "phases", "left_out")) campaign[[name]] <- campaign[[name]][id %in% ids]
  if (length(campaign$manifests) == 0) abort_campaign(campaign$folder, no_trial_message(campaign$left_out$reason))
  campaign
}

# Names and options are checked before hours of captures are measured.
check_entries <- function(campaign, entries) {
  for (entry in entries) {
    or_reason(select_trials(list(campaign = campaign), entry))
    or_reason(option_values(entry))
  }
}

#' Measure the trials of a campaign that are not in the cache
#'
#' @return A list: `keys` (by id, the cache key of each measured trial) and `reasons` (by id, why a trial could not be measured).
#' @noRd
measure_all <- function(campaign, cores) {
  version <- code_version()
  known <- known_keys(campaign, version)
  missing <- setdiff(names(campaign$manifests), names(known))
  of <- length(campaign$manifests)
  if (length(known) > 0) emit_progress(names(known)[length(known)], length(known), of)
  found <- measure_missing(campaign, missing, version, cores, \(id, done, one) emit_progress(id, length(known) + done, of, one[["reason"]]))
  reasons <- unlist(lapply(found, `[[`, "reason"))
  keys <- c(known, unlist(lapply(found, `[[`, "key")))
  remember(campaign, states_of(found))
  list(keys = keys[intersect(names(campaign$manifests), names(keys))], reasons = reasons)
}

measure_missing <- function(campaign, ids, version, cores, report) {
  found <- stats::setNames(vector("list", length(ids)), ids)
  done <- 0L
  workers <- max(1L, min(cores, length(ids)))
  with_threads(cores %/% workers, share_out(
    campaign$manifests[ids], workers, \(manifest) measure_or_reason(campaign, manifest, version),
    \(i, one) {
      found[[i]] <<- one %||% list(reason = "cannot be measured: its worker process was killed, perhaps for lack of memory")
      done <<- done + 1L
      report(ids[i], done, found[[i]])
    }
  ))
  found
}

measure_or_reason <- function(campaign, manifest, version) {
  tryCatch({
    read_s <- as.double(Sys.time())
    states <- verified_files(campaign$folder, manifest, campaign$index)
    key <- cache_key(version, states$sha256)
    cached_measures(campaign$folder, manifest, key)
    list(key = key, states = states[, read_s := read_s][])
  }, error = \(e) list(reason = paste("cannot be measured:", message_line(e))))
}

# Return the states of the files of each trial that could be measured, one table per trial.
states_of <- function(found) Filter(Negate(is.null), lapply(found, `[[`, "states"))

emit_progress <- function(id, done, of, reason = NULL) {
  event <- list("analysed", trial = id, done = done, of = of)
  do.call(emit_event, if (is.null(reason)) event else c(event, reason = reason))
}

# Return results whose tables are read on demand, because an analysis that draws nothing new needs none of them. `stack` is the function that stacks_of()
# returns.
gather <- function(campaign, measured) {
  reasons <- measured$reasons
  if (length(measured$keys) == 0) abort_campaign(campaign$folder, paste("no trial can be measured; the first", reasons[[1]]))
  failures <- data.table(id = as.character(names(reasons)), reason = as.character(reasons))
  campaign$trials <- campaign$trials[id %in% names(measured$keys)]
  date <- max(vapply(campaign$manifests[names(measured$keys)], \(m) as.double(m$t_end_s %||% m$t_start_s), 0))
  results <- list2env(list(
    campaign = campaign[setdiff(names(campaign), c("index", "seen"))], left_out = rbind(campaign$left_out, failures),
    planned = length(campaign$part$trials %||% campaign$plan$trials), date = as.POSIXct(date, origin = "1970-01-01", tz = "UTC"), keys = measured$keys
  ))
  results$stack <- stacks_of(campaign, measured$keys)
  lapply(derived_tables, \(name) delayedAssign(name, with_identity(results$stack(name), campaign), assign.env = results))
  delayedAssign("summary", summary_of(campaign, results$metrics), assign.env = results)
  delayedAssign("flows", summarise_flows(results$metrics, campaign$factors), assign.env = results)
  delayedAssign("variance", variance_of(campaign, results$metrics), assign.env = results)
  results
}

# Summarise the metrics of each treatment. Functions with the scope "campaign" add metrics that they derive from all trials.
summary_of <- function(campaign, metrics) {
  derived <- lapply(metric_functions("campaign"), \(name) function_named(name)(campaign, metrics))
  rbindlist(c(list(summarise_metrics(metrics, campaign$factors)), derived), fill = TRUE, use.names = TRUE)
}

note_lines <- function(notes) if (nrow(notes) == 0) character() else sprintf("%s: %s", notes$trial, notes$note)

# Analyse the variance of every metric. As in the summary, each trial has one value, the median over its flows.
variance_of <- function(campaign, metrics) {
  by <- c("trial", "part", campaign$factors, "metric", "unit")
  variance_by_part(campaign, metrics[, .(value = stats::median(value)), by = by])
}

write_analysis <- function(results, undrawn, bundle) {
  left <- results$left_out
  part <- results$campaign$part
  write_json(c(analysis_versions(), list(
    inputs_sha256 = inputs_sha256(results$campaign),
    trials_used = I(results$campaign$trials$id),
    trials_left_out = lapply(seq_len(nrow(left)), \(i) list(id = left$id[i], reason = left$reason[i])),
    figures_left_out = unname(undrawn),
    notes = I(note_lines(results$notes))
  ), if (!is.null(part)) list(part = part)), file.path(bundle, "analysis.json"))
}

# Hash the plan and the manifests of the analysed trials. The report compares this hash, to detect that the plan or a manifest has changed since the analysis.
inputs_sha256 <- function(campaign) {
  ids <- as.character(campaign$part$trials %||% vapply(campaign$plan$trials, \(t) t$id, ""))
  files <- file.path(campaign$folder, c("plan.json", manifest_path(ids)))
  sha256_texts(paste(sha256_files(files[file.exists(files)]), collapse = "\n"))
}

analysis_versions <- function() {
  packages <- c("samovar", "data.table", "ggplot2", "Rcpp", "jsonlite")
  list(r_version = as.character(getRversion()), packages = lapply(stats::setNames(nm = packages), \(p) as.character(utils::packageVersion(p))))
}
