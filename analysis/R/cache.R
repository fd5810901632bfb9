#' Measures of a trial, kept by what they were made from
#'
#' The key is a digest of the trial's manifest without what does not bear on measures, of the sha256 of its traces and of the code
#' that measures. Decoded packets are not kept: reading the capture again costs as much.
#'
#' @param folder The campaign's folder.
#' @param manifest The trial's manifest.
#' @param version Digest of the code, of [code_version()].
#' @return What [measure_trial()] gives.
#' @noRd
cached_measures <- function(folder, manifest, version) {
  path <- file.path(folder, "tables", "cache", paste0(cache_key(manifest, version), ".rds"))
  kept <- if (file.exists(path)) tryCatch(readRDS(path), error = \(e) NULL)
  if (!is.null(kept)) return(kept)
  found <- measure_trial(folder, manifest)
  write_whole(path, \(to) saveRDS(found, to, compress = "gzip"))
  found
}

cache_key <- function(manifest, version) {
  digests <- vapply(manifest$files, \(f) paste(f$path, f$sha256 %||% f$bytes), "")
  used <- manifest[c("id", "resolved", "t_start_s", "overhead_s")]
  text_digest(c(version, digests, as.character(jsonlite::toJSON(used, auto_unbox = TRUE, digits = NA))))
}

#' Digest of the code that measures: another version of it makes another cache key
#'
#' Functions that only draw are left out, so that work on a figure keeps the measures.
#' @return One string.
#' @export
code_version <- function() {
  space <- parent.env(environment())
  names <- grep("^(figure|table|plot|draw|theme|scale|label|one|write)_|_words$", ls(space), value = TRUE, invert = TRUE)
  bodies <- unlist(lapply(names, \(n) deparse(get(n, envir = space), control = "digits17")))
  libraries <- vapply(getLoadedDLLs(), \(d) unclass(d)$path, "")
  compiled <- libraries[names(libraries) == "samovar"]
  text_digest(c(as.character(utils::packageVersion("samovar")), names, bodies, unname(tools::md5sum(compiled))))
}

# tools::md5sum digests files only.
text_digest <- function(text) {
  path <- tempfile()
  on.exit(unlink(path))
  writeLines(text, path, useBytes = TRUE)
  unname(tools::md5sum(path))
}
