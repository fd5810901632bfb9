# Values on disk that are believed only whole: a zstd frame with a checksum of what it holds, renamed into place.

store_write <- function(x, path) {
  bytes <- packed_bytes(serialize(x, NULL, xdr = FALSE, version = 3))
  dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
  # Two analyses of a campaign at a time each write a file of their own.
  beside <- paste0(path, ".part-", Sys.getpid())
  writeBin(bytes, beside)
  if (!file.rename(beside, path)) cli::cli_abort("{.path {path}} cannot be written.", class = "samovar_error_write", call = NULL)
  invisible(path)
}

#' What [store_write()] wrote, or NULL
#'
#' @param path The file.
#' @param say Called with the path of a file that is there and is not what was written.
#' @return The value; NULL where there is no such file, and where it is damaged.
#' @noRd
store_read <- function(path, say = say_damaged) {
  if (!file.exists(path)) return(NULL)
  tryCatch(unserialize(unpacked_bytes(readBin(path, "raw", file.size(path)))), error = \(e) {
    say(path)
    NULL
  })
}

say_damaged <- function(path) {
  say_event("warning", text = paste0(path, ": not as it was written; made again from the trials"))
}

say_event <- function(name, ...) {
  cat(jsonlite::toJSON(list(event = name, ...), auto_unbox = TRUE), "\n", sep = "")
  flush(stdout())
}

#' Remove what no analysis asks for any more
#'
#' Files of earlier code or of trials that the plan no longer has stay while they take no more than what is in use: who goes
#' back to an earlier version of an experiment finds them. Halves that an analysis left that was cut off go after a day.
#'
#' @param folder Folder of stored values.
#' @param used Paths that this analysis has used.
#' @noRd
store_prune <- function(folder, used) {
  there <- list.files(folder, recursive = TRUE, full.names = TRUE)
  state <- file.info(there, extra_cols = FALSE)
  halves <- grepl("[.]part-[0-9]+$", there)
  spare <- there[!halves & !normalizePath(there) %in% normalizePath(used, mustWork = FALSE)]
  newest <- spare[order(state[spare, "mtime"], decreasing = TRUE)]
  allowed <- sum(state[setdiff(there, c(spare, there[halves])), "size"])
  unlink(newest[cumsum(state[newest, "size"]) > allowed])
  unlink(there[halves & difftime(Sys.time(), state$mtime, units = "days") > 1])
}
