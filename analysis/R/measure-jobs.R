# Measure a campaign in parts, which several computers measure at the same time in one shared folder.

# Print an event that lists the trials that are not in the cache, the largest first, each with its compressed size. The event also has the values that
# measure_part() compares.
list_unmeasured <- function(folder, project = NULL, part = NULL) {
  use_project(project)
  campaign <- keep_part(read_campaign(folder), part)
  version <- code_version()
  manifests <- campaign$manifests[setdiff(names(campaign$manifests), names(known_keys(campaign, version)))]
  bytes <- vapply(manifests, \(m) sum(vapply(m$files, \(f) as.double(f$bytes %||% 0), 0)), 0)
  largest <- order(bytes, decreasing = TRUE)
  emit_event("unmeasured", trials = I(names(manifests)[largest]), bytes = I(unname(bytes)[largest]), code = version, versions = version_words())
}

#' Measure some trials of a campaign for a later analysis on this or another computer
#'
#' The measures go to the cache. The states of the files that were read go to a separate index, so that parts that are measured at the same time do not
#' overwrite each other's states. The next analysis merges the indexes.
#'
#' @inheritParams analyse_campaign
#' @param part A list of `trials` (ids), `code` and `versions`. [list_unmeasured()] printed the last two; both must equal those of this computer.
#' @noRd
measure_part <- function(folder, part, project = NULL, cores = getOption("samovar.cores", 2L)) {
  use_project(project)
  version <- code_version()
  if (!identical(version, part$code)) {
    cli::cli_abort("{Sys.info()[['nodename']]} has {version_words()}, and the computer where the command was started has {part$versions}; install the same versions and the same code on both, because measurements by other versions or other code are not used.",
                   class = "samovar_error_versions", call = NULL)
  }
  campaign <- keep_part(read_campaign(folder), part)
  ids <- names(campaign$manifests)
  found <- measure_missing(campaign, ids, version, cores, \(id, done, one) emit_progress(id, done, length(ids), one[["reason"]]))
  states <- settled(states_of(found))
  write_index(folder, states %||% no_files, campaign$parsed[ids], sha256_texts(paste(ids, collapse = " ")))
}

version_words <- function() {
  packages <- c("data.table", "samovar")
  paste(c(paste("R", getRversion()), paste(packages, vapply(packages, \(p) as.character(utils::packageVersion(p)), ""))), collapse = ", ")
}
