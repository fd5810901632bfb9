# Files that were made from the results, with what they were made of: one that would come out the same is not made again.

drawn_path <- function(folder) file.path(cache_folder(folder), "drawn")

#' Digest of all that a campaign's figures and tables are drawn from, and of what draws them
#' @noRd
drawing_digest <- function(results) {
  campaign <- results$campaign
  code <- system.file(c("R/samovar.rdb", "libs/samovar.so"), package = "samovar")
  versions <- vapply(c("ggplot2", "data.table"), \(p) as.character(utils::packageVersion(p)), "")
  sha256_texts(paste(c(
    stack_digest(results$keys), sha256_files(c(file.path(campaign$folder, "plan.json"), code)), versions, R.version.string,
    results$left_out$id, results$left_out$reason, format(results$date, "%s")
  ), collapse = "\n"))
}

draw_all <- function(results, figures, tables) {
  folder <- results$campaign$folder
  bundle <- file.path(folder, "bundle")
  keeper <- output_keeper(folder, drawing_digest(results))
  keeper$made("metrics", NULL, "tables", \() list(data = in_folder(folder, "metrics.csv", results$metrics)))
  keeper$made("summary", NULL, "tables", \() list(data = in_folder(folder, "summary.csv", results$summary)))
  undrawn <- c(draw_figures(results, figures, bundle, keeper), draw_tables(results, tables, bundle, keeper))
  keeper$keep()
  undrawn
}

in_folder <- function(folder, name, table) {
  write_csv(table, file.path(folder, "tables", name))
  name
}

#' What makes outputs unless they are there as they would be made
#'
#' @param folder The campaign's folder.
#' @param digest Of [drawing_digest()].
#' @return A list of functions: `made(kind, options, base, make)` gives what `make` does or did, a list in which `file` and `data` are
#'   files below `base`; `keep()` writes down what was made.
#' @noRd
output_keeper <- function(folder, digest) {
  before <- store_read(drawn_path(folder))
  now <- list()
  sums <- \(base, one) sha256_files(file.path(folder, base, as.character(unlist(one[c("file", "data")]))))
  list(
    made = \(kind, options, base, make) {
      key <- sha256_texts(paste(digest, kind, jsonlite::toJSON(options, auto_unbox = TRUE, digits = NA, null = "null")))
      kept <- before[[key]]
      if (is.null(kept) || !identical(kept$sums, sums(base, kept$made))) {
        made <- make()
        kept <- list(made = made, sums = sums(base, made))
      }
      now[[key]] <<- kept
      kept$made
    },
    keep = \() if (!identical(before, now)) store_write(now, drawn_path(folder))
  )
}

used_paths <- function(folder, keys) {
  c(index_path(folder), drawn_path(folder), entry_path(folder, keys), stack_path(folder, derived_tables, stack_digest(keys)))
}
