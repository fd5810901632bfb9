# What was seen of a campaign's files: while a file's state is the same, so is what it holds, as git takes it (git-scm.com/docs/racy-git).

index_path <- function(folder) file.path(cache_folder(folder), "index")

# `files`: a row per file, `path` (below the campaign's folder), `size`, `changed` and `written` (s since 1970), `sha256`.
# `manifests`: by id, as parsed.
read_index <- function(folder) {
  found <- store_read(index_path(folder))
  if (identical(found$schema, index_schema)) found else list(files = no_files, manifests = list())
}

write_index <- function(folder, files, manifests) {
  store_write(list(schema = index_schema, files = files, manifests = manifests), index_path(folder))
}

index_schema <- 1L

no_files <- data.table(path = character(), size = double(), changed = double(), written = double(), sha256 = character())

#' State of files by which a change is noticed
#'
#' The time of the last change of a file's inode cannot be set by programs, as that of its content can: utimensat(2).
#' @return A data.table: `path`, `size` (NA where there is no such file), `changed`, `written`.
#' @noRd
file_states <- function(folder, paths) {
  seen <- file.info(file.path(folder, paths), extra_cols = FALSE)
  data.table(path = paths, size = seen$size, changed = as.double(seen$ctime), written = as.double(seen$mtime))
}

# Checksums known of files in these states; NA for those that have to be read.
known_sums <- function(states, index) {
  known <- index$files[states, on = c("path", "size", "changed", "written")]
  known$sha256
}

# A file that changed just before it was looked at may change again within the same tick of the clock that stamps it.
settled_s <- 2

settled <- function(states) states[looked_s - pmax(changed, written) > settled_s][, looked_s := NULL]

#' The files of a trial, its manifest first, with the checksums that they have
#'
#' @param folder The campaign's folder.
#' @param manifest The trial's manifest.
#' @param index What [read_index()] gives.
#' @return States with `sha256`. Aborts where a file is not what the manifest says.
#' @noRd
verified_files <- function(folder, manifest, index) {
  states <- file_states(folder, c(manifest_path(manifest$id), trial_paths(manifest)))
  sums <- known_sums(states, index)
  unknown <- is.na(sums)
  sums[unknown] <- sha256_files(file.path(folder, states$path[unknown]))
  told <- c(NA_character_, vapply(manifest$files, \(f) f$sha256 %||% NA_character_, ""))
  wrong <- which(is.na(sums) | (!is.na(told) & told != sums))
  if (length(wrong) > 0) {
    abort_campaign(folder, paste(states$path[wrong[1]], "is not what its manifest says, as `fab verify` does"))
  }
  states[, sha256 := sums][]
}

manifest_path <- function(id) sprintf("trials/%s/manifest.json", id)

trial_paths <- function(manifest) sprintf("trials/%s/%s", manifest$id, vapply(manifest$files, \(f) f$path, ""))

#' Keys of the trials of which nothing has changed since they were measured
#'
#' @param campaign A campaign of [read_campaign()].
#' @param version Of [code_version()].
#' @return Keys by id, of those that are in the cache.
#' @noRd
known_keys <- function(campaign, version) {
  sums <- stats::setNames(known_sums(campaign$seen, campaign$index), campaign$seen$path)
  keys <- vapply(campaign$manifests, \(m) cache_key(version, sums[c(manifest_path(m$id), trial_paths(m))]), "")
  keys <- keys[!is.na(keys)]
  keys[file.exists(entry_path(campaign$folder, keys))]
}

#' Keep what is known of a campaign's files for the next analysis
#'
#' @param campaign A campaign of [read_campaign()].
#' @param found States of files that were read just now, a table per trial.
#' @noRd
remember <- function(campaign, found) {
  held <- campaign$seen[, sha256 := known_sums(campaign$seen, campaign$index)][!is.na(sha256)]
  found <- Filter(\(one) !is.null(one), found)
  new <- if (length(found) > 0) settled(rbindlist(found))
  files <- unique(rbind(new, held), by = "path")
  if (fsetequal(files, campaign$index$files)) return(invisible())
  write_index(campaign$folder, files, campaign$parsed)
}
