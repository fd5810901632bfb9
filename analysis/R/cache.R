# Measures of trials, kept by what they were made from: docs/decisions/0018-derived-tables.md.

derived_tables <- c("metrics", "cycles", "rtt", "series", "jitter", "pauses", "closeup")

cache_folder <- function(folder) file.path(folder, "tables", "cache")

#' Measures of a trial, from the cache or made now
#'
#' The key is a digest of the code that measures, of the trial's manifest and of its files. Decoded packets are not kept: reading the capture again costs as much.
#'
#' @param folder The campaign's folder.
#' @param manifest The trial's manifest.
#' @param key Of [cache_key()].
#' @return What [measure_trial()] gives.
#' @noRd
cached_measures <- function(folder, manifest, key) {
  path <- entry_path(folder, key)
  kept <- store_read(path)
  if (identical(kept$id, manifest$id)) return(kept)
  found <- measure_trial(folder, manifest)
  store_write(found, path)
  found
}

entry_path <- function(folder, key) file.path(cache_folder(folder), "trials", key)

# `sums`: checksums of the trial's manifest and files, in the manifest's order; without one of them there is no key.
cache_key <- function(version, sums) if (anyNA(sums)) NA_character_ else sha256_texts(paste(c(version, sums), collapse = " "))

#' Digest of the code that measures: another version of it makes another cache key
#'
#' It covers what [measure_trial()] calls, directly or not, all that was compiled, and the versions of R and data.table.
#' A new figure, or a change of one, keeps the measures.
#' @return One string.
#' @export
code_version <- function() {
  space <- parent.env(environment())
  used <- reached_from(c("measure_trial", intersect(unlist(lapply(c("flow", "trial"), metric_functions)), ls(space))), space)
  bodies <- unlist(lapply(mget(used, envir = space), \(x) deparse(if (is.data.table(x)) as.list(x) else x, control = "digits17")))
  libraries <- vapply(getLoadedDLLs(), \(d) unclass(d)$path, "")
  versions <- c(as.character(getRversion()), as.character(utils::packageVersion("data.table")))
  declared <- vapply(outputs_of("metric"), \(m) paste(m$unit, m$scope, m[["function"]]), "")
  # The code of a project is not divided into what measures and what draws.
  own <- if (!identical(names(declared), names(package_outputs()$metrics))) sha256_files(manifest$files)
  libraries <- sha256_files(libraries[names(libraries) == "samovar"])
  sha256_texts(paste(c(versions, used, bodies, names(declared), declared, own, libraries), collapse = "\n"))
}

# Names in a package that a function of it names in any way, and what those name. Compiled code has names of its own, which
# point into memory. Only what is reached is looked at: to look at a ggproto takes ggplot2, 0.7 s.
reached_from <- function(name, space) {
  own <- ls(space, all.names = TRUE)
  found <- character()
  ahead <- name
  while (length(ahead) > 0) {
    found <- c(found, ahead)
    named <- setdiff(intersect(words_of(mget(ahead, envir = space)), own), found)
    ahead <- Filter(\(n) !inherits(get(n, envir = space), "NativeSymbolInfo"), named)
  }
  sort(found, method = "radix")
}

words_of <- function(objects) {
  text <- unlist(lapply(Filter(is.function, objects), deparse))
  unique(unlist(regmatches(text, gregexpr("%[^%]+%|[A-Za-z.][A-Za-z0-9._]*", text, perl = TRUE))))
}
