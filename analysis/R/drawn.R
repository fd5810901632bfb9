# Files that were made from the results, with what they were made of: one that would come out the same is not made again.

drawn_path <- function(folder) file.path(cache_folder(folder), "drawn")

#' Digest of all that a campaign's figures and tables are drawn from, and of what draws them
#' @noRd
drawing_digest <- function(results) {
  campaign <- results$campaign
  code <- c(system.file(c("R/samovar.rdb", "libs/samovar.so", "outputs.yaml"), package = "samovar"), manifest$files)
  versions <- vapply(c("ggplot2", "data.table"), \(p) as.character(utils::packageVersion(p)), "")
  sha256_texts(paste(c(
    stack_digest(results$keys), sha256_files(c(file.path(campaign$folder, "plan.json"), code)), versions, R.version.string,
    results$left_out$id, results$left_out$reason, format(results$date, "%s")
  ), collapse = "\n"))
}

draw_all <- function(results, figures, tables, cores) {
  folder <- results$campaign$folder
  bundle <- file.path(folder, "bundle")
  keeper <- output_keeper(folder, drawing_digest(results), cores)
  keeper$made("table of trials", list("metrics", "summary", "flows"), "tables", \(name) in_folder(folder, paste0(name, ".csv"), results[[name]]))
  undrawn <- c(draw_figures(results, figures, bundle, keeper), draw_tables(results, tables, bundle, keeper))
  keeper$keep()
  undrawn
}

in_folder <- function(folder, name, table) {
  write_csv(table, file.path(folder, "tables", name))
  list(data = name)
}

#' What makes outputs unless they are there as they would be made
#'
#' @param folder The campaign's folder.
#' @param digest Of [drawing_digest()].
#' @param cores Outputs made at a time.
#' @return A list of functions: `made(kind, entries, base, make)` gives what `make` does or did for each entry, lists in which `file` and
#'   `data` are files below `base`; `keep()` writes down what was made.
#' @noRd
output_keeper <- function(folder, digest, cores) {
  before <- store_read(drawn_path(folder))
  now <- list()
  sums <- \(base, one) sha256_files(file.path(folder, base, as.character(unlist(one[c("file", "data")]))))
  list(
    made = \(kind, entries, base, make) {
      texts <- vapply(entries, jsonlite::toJSON, "", auto_unbox = TRUE, digits = NA, null = "null")
      keys <- vapply(texts, \(text) sha256_texts(paste(digest, kind, text)), "", USE.NAMES = FALSE)
      kept <- lapply(keys, \(key) before[[key]])
      missing <- !vapply(kept, \(one) !is.null(one) && identical(one$sums, sums(base, one$made)), TRUE)
      kept[missing] <- make_all(entries[missing], cores, \(entry) {
        made <- make(entry)
        list(made = made, sums = sums(base, made))
      })
      now[keys] <<- kept
      lapply(kept, `[[`, "made")
    },
    keep = \() if (!identical(before, now)) store_write(now, drawn_path(folder))
  )
}

# An error is that of who asked, whatever process it was met in. What a process was ended for, as where memory is short, is made alone.
make_all <- function(entries, cores, make) {
  made <- vector("list", length(entries))
  if (length(entries) > 1) loadNamespace("ggplot2") # once, not in each process
  share_out(entries, cores, \(entry) tryCatch(make(entry), error = identity), \(i, one) {
    if (is.null(one)) one <- make(entries[[i]])
    if (inherits(one, "error")) stop(one)
    made[[i]] <<- one
  })
  made
}

used_paths <- function(folder, keys) {
  c(index_path(folder), drawn_path(folder), entry_path(folder, keys), stack_path(folder, derived_tables, stack_digest(keys)))
}
