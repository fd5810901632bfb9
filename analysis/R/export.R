# Write the tables that samovar export converts to other formats: a CSV file per table, and the types of its columns.

#' Write tables of measures for other programs
#'
#' Trials are measured first if the cache lacks them. Writes a CSV per table that has rows, and `columns.json` with the type of each column. A table with times
#' `t_s` since the start of a trial's traffic also gets `t_ns`: the same times in nanoseconds since 1970 UTC. Progress is printed as one JSON
#' object per line.
#'
#' @param folder A campaign folder.
#' @param to Existing folder to write to.
#' @param tables Names of tables: `summary`, `flows`, `variance`, or a table that [measure_trial()] returns.
#' @inheritParams analyse_campaign
#' @return The names of the tables that were written, invisibly.
#' @examples
#' # A copy, because results are written to the campaign's folder.
#' invisible(file.copy(samovar_example("campaign"), tempdir(), recursive = TRUE))
#' folder <- file.path(tempdir(), "campaign")
#' export_tables(folder, tempdir(), "summary", cores = 1)
#' head(data.table::fread(file.path(tempdir(), "summary.csv")), 3)
#' @export
export_tables <- function(folder, to, tables, part = NULL, cores = getOption("samovar.cores", 2L), project = NULL) {
  use_project(project)
  campaign <- keep_part(read_campaign(folder), part)
  results <- gather(campaign, measure_all(campaign, cores))
  left <- results$left_out
  if (nrow(left) > 0) emit_event("warning", text = sprintf("%d of %d trials are not exported: %s", nrow(left), nrow(left) + nrow(results$campaign$trials), reason_counts(left$reason)))
  start_s <- vapply(campaign$manifests, \(m) as.double(m$t_start_s), 0)
  written <- list()
  for (name in tables) {
    rows <- results[[name]]
    if (nrow(rows) > 0) {
      if ("t_s" %in% names(rows)) rows <- cbind(rows, t_ns = epoch_ns(rows$t_s, start_s[rows$trial]))
      write_csv(rows, file.path(to, paste0(name, ".csv")))
      written[[name]] <- as.list(vapply(rows, \(column) if (inherits(column, "epoch_ns")) "time" else class(column)[1L], ""))
    }
    emit_event("exported", file = name, done = match(name, tables), of = length(tables))
  }
  write_json(written, file.path(to, "columns.json"))
  invisible(names(written))
}

# The times are text, because a double holds nanoseconds since 1970 only to the nearest 256 ns.
epoch_ns <- function(t_s, start_s) {
  second <- floor(start_s)
  ns <- round((start_s - second + t_s) * 1e9)
  structure(sprintf("%.0f%09.0f", second + ns %/% 1e9, ns %% 1e9), class = "epoch_ns")
}
