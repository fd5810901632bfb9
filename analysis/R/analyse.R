#' Analyse a campaign: measure its trials, draw its figures, write its bundle
#'
#' Each trial is measured once; what was measured before from the same traces by the same code is read back. Writes
#' `tables/metrics.csv`, `tables/summary.csv` and in `bundle/` the figures, the tidy data behind each, and `figures.json`,
#' `tables.json`, `analysis.json`. Progress is one JSON object per line on standard output.
#'
#' @param folder A campaign folder.
#' @param figures Figures to draw, names or entries with options; those of the campaign's plan when NULL.
#' @param cores Trials measured at a time.
#' @return The results, invisibly: `campaign`, `metrics`, `summary`, `cycles`, `rtt`, `series`, `jitter`, `pauses`, `closeup`, `left_out`.
#' @export
analyse_campaign <- function(folder, figures = NULL, cores = 2L) {
  began <- proc.time()[["elapsed"]]
  campaign <- read_campaign(folder)
  entries <- lapply(as.list(figures %||% campaign$plan$figures), as_entry, kind = "figure")
  tables <- lapply(as.list(campaign$plan$tables), as_entry, kind = "table")
  check_entries(campaign, entries, tables)
  results <- gather(campaign, measure_all(campaign, cores))
  write_csv(results$metrics, file.path(folder, "tables", "metrics.csv"))
  write_csv(results$summary, file.path(folder, "tables", "summary.csv"))
  bundle <- file.path(folder, "bundle")
  undrawn <- c(draw_figures(results, entries, bundle), draw_tables(results, tables, bundle))
  write_analysis(results, undrawn, bundle, proc.time()[["elapsed"]] - began)
  invisible(results)
}

# Names and options are looked at before hours of captures are.
check_entries <- function(campaign, figures, tables) {
  empty <- list(campaign = campaign)
  for (e in figures) drawer_of(e$figure, "figure")
  for (e in tables) drawer_of(e$table, "table")
  for (e in c(figures, tables)) {
    or_reason(select_trials(empty, e, extra = c("method", "axis", "published", "metric", "rows", "columns", "seconds")))
  }
}

measure_all <- function(campaign, cores) {
  threads <- setDTthreads(1)
  on.exit(setDTthreads(threads))
  version <- code_version()
  manifests <- campaign$manifests
  measured <- list()
  for (ids in split(names(manifests), (seq_along(manifests) - 1L) %/% (2L * cores))) {
    found <- parallel::mclapply(ids, \(id) measure_or_reason(campaign$folder, manifests[[id]], version),
                                mc.cores = cores, mc.preschedule = FALSE)
    measured[ids] <- Map(\(m, id) if (is.list(m)) m else lost_worker(id, m), found, ids)
    for (id in ids) say_progress(id, match(id, names(manifests)), length(manifests), measured[[id]][["reason"]])
  }
  measured
}

measure_or_reason <- function(folder, manifest, version) {
  tryCatch(cached_measures(folder, manifest, version),
           error = \(e) list(id = manifest$id, reason = paste("cannot be measured:", conditionMessage(e))))
}

lost_worker <- function(id, said) {
  list(id = id, reason = paste("cannot be measured: its process ended,", trimws(paste(as.character(said), collapse = " "))))
}

say_progress <- function(id, done, of, reason = NULL) {
  line <- list(event = "analysed", trial = id, done = done, of = of)
  if (!is.null(reason)) line$reason <- cli::ansi_strip(reason)
  cat(jsonlite::toJSON(line, auto_unbox = TRUE), "\n", sep = "")
  flush(stdout())
}

gather <- function(campaign, measured) {
  failed <- Filter(\(m) !is.null(m[["reason"]]), measured)
  good <- Filter(\(m) is.null(m[["reason"]]), measured)
  if (length(good) == 0) abort_campaign(campaign$folder, paste("no trial can be measured; the first", failed[[1]][["reason"]]))
  failures <- data.table(id = names(failed), reason = vapply(failed, \(m) cli::ansi_strip(m[["reason"]]), ""))
  campaign$trials <- campaign$trials[id %in% names(good)]
  identity <- campaign$trials[, c("id", "part", campaign$factors, "replicate", "verdict"), with = FALSE]
  setnames(identity, "id", "trial")
  stack <- \(name) {
    rows <- rbindlist(lapply(good, \(m) m[[name]]), idcol = "trial", use.names = TRUE, fill = TRUE)
    if (nrow(rows) == 0) rows else identity[rows, on = "trial"]
  }
  metrics <- stack("metrics")
  summary <- rbind(summarise_metrics(metrics, campaign$factors), rwnd_linearity(campaign, metrics), fill = TRUE)
  date <- max(vapply(campaign$manifests[names(good)], \(m) as.double(m$t_end_s %||% m$t_start_s), 0))
  list(campaign = campaign, metrics = metrics, summary = summary, cycles = stack("cycles"), rtt = stack("rtt"),
       series = stack("series"), jitter = stack("jitter"),
       pauses = stack("pauses"), closeup = stack("closeup"), left_out = rbind(campaign$left_out, failures), planned = length(campaign$plan$trials),
       date = as.POSIXct(date, origin = "1970-01-01", tz = "UTC"))
}

write_analysis <- function(results, undrawn, bundle, seconds) {
  packages <- c("samovar", "data.table", "ggplot2", "Rcpp", "jsonlite")
  left <- results$left_out
  write_json(list(
    r_version = as.character(getRversion()),
    packages = lapply(stats::setNames(nm = packages), \(p) as.character(utils::packageVersion(p))),
    trials_used = I(results$campaign$trials$id),
    trials_left_out = lapply(seq_len(nrow(left)), \(i) list(id = left$id[i], reason = left$reason[i])),
    figures_left_out = unname(undrawn), seconds = round(seconds, 1)
  ), file.path(bundle, "analysis.json"))
}
