# Cache the results of an analysis below tables/cache: measurements of trials, tables over all trials, checksums of files.

# SHA-256 of texts and files is computed by OpenSSL, because it uses the processor's SHA instructions.

sha256_texts <- function(texts) as.character(openssl::sha256(texts))

# Return the files' SHA-256; NA for a file that cannot be read.
sha256_files <- function(paths) vapply(paths, \(p) tryCatch(sha256_file(p), error = \(e) NA_character_, warning = \(w) NA_character_), "", USE.NAMES = FALSE)

# Small files are read as a whole, which takes half as long as reading from a connection. A capture need not
# fit into memory.
sha256_file <- function(path) {
  size <- file.size(path)
  if (!is.na(size) && size < 1e6) return(as.character(openssl::sha256(readBin(path, "raw", size))))
  # Opened in binary mode: file() without a mode would decompress the file and give the checksum of the decompressed content.
  source <- file(path, "rb")
  on.exit(close(source))
  as.character(openssl::sha256(source))
}

# Values are stored on disk such that an incomplete file is ignored: a file is a zstd frame with a checksum of its content, and is renamed into place.

store_write <- function(x, path) {
  bytes <- packed_bytes(serialize(x, NULL, xdr = FALSE, version = 3))
  dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
  # Two simultaneous analyses of one campaign each write their own file.
  partial <- paste0(path, ".part-", Sys.getpid())
  writeBin(bytes, partial)
  if (!file.rename(partial, path)) cli::cli_abort("{.path {path}} cannot be written.", class = "samovar_error_write", call = NULL)
  invisible(path)
}

#' Read what [store_write()] wrote
#'
#' @param path The file.
#' @param warn Function that is called with the path if the file is damaged.
#' @return The value; NULL if the file is missing or damaged.
#' @noRd
store_read <- function(path, warn = warn_damaged) {
  if (!file.exists(path)) return(NULL)
  tryCatch(unserialize(unpacked_bytes(readBin(path, "raw", file.size(path)))), error = \(e) {
    warn(path)
    NULL
  })
}

warn_damaged <- function(path) {
  emit_event("warning", text = paste0(path, ": damaged; it will be computed again from the trials"))
}

emit_event <- function(name, ...) {
  cat(jsonlite::toJSON(list(event = name, ...), auto_unbox = TRUE), "\n", sep = "")
  flush(stdout())
}

#' Remove stored values that are no longer used
#'
#' Values of earlier code, or of trials no longer in the plan, are kept for users who return to an earlier version of an experiment, as long as these
#' values take no more space than the values in use. Partial files of an interrupted analysis are removed after a day.
#'
#' @param folder Folder of stored values.
#' @param used Paths that this analysis used.
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

# Measurements of trials, cached under a hash of their inputs: docs/decisions/0018-derived-tables.md.

derived_tables <- c("metrics", "cycles", "rtt", "series", "jitter", "sender", "samples", "pauses", "closeup", "notes")

cache_folder <- function(folder) file.path(folder, "tables", "cache")

#' Return the measurements of a trial from the cache, or else measure the trial
#'
#' The key is a hash of the code that measures, the trial's manifest and its files. Decoded packets are not cached: reading them back costs as much as
#' decoding the capture.
#'
#' @param folder The campaign's folder.
#' @param manifest The trial's manifest.
#' @param key Cache key, see [cache_key()].
#' @return The same list as [measure_trial()].
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

# `sums` are the checksums of the trial's manifest and files, in the manifest's order, with NA for a missing file; the key is then NA too.
cache_key <- function(version, sums) if (anyNA(sums)) NA_character_ else sha256_texts(paste(c(version, sums), collapse = " "))

#' Return a hash of the code that measures trials
#'
#' It covers all functions that [measure_trial()] calls, directly or not, the compiled code, and the versions of R and data.table. A new or changed
#' figure does not change the hash.
#' @return One string.
#' @examples
#' code_version()
#' @export
code_version <- function() {
  logged <- Filter(\(s) identical(s$scope, "application"), outputs_of("series"))
  declared <- vapply(c(outputs_of("metric"), logged), \(m) paste(m$unit, m$scope, m[["function"]]), "")
  # A project's R files may mix measuring and drawing, so all of them are hashed.
  own <- if (length(manifest$own_metrics) > 0) sha256_files(manifest$files)
  hash_of_code(c("measure_trial", unlist(lapply(c("flow", "application", "trial"), metric_functions))), c(names(declared), declared, own))
}

# Hash some functions, everything that they call, the compiled code, the loggers of each quantity and further texts. Functions of a project are not included.
hash_of_code <- function(functions, texts) {
  space <- topenv()
  used <- reached_from(intersect(functions, ls(space)), space)
  bodies <- unlist(lapply(mget(used, envir = space), \(x) deparse(if (is.data.table(x)) as.list(x) else x, control = "digits17")))
  libraries <- vapply(getLoadedDLLs(), \(d) unclass(d)$path, "")
  versions <- c(as.character(getRversion()), as.character(utils::packageVersion("data.table")))
  libraries <- sha256_files(libraries[names(libraries) == "samovar"])
  sources <- unlist(lapply(outputs_of("quantity"), `[[`, "sources"))
  sha256_texts(paste(c(versions, used, bodies, names(sources), sources, texts, libraries), collapse = "\n"))
}

# Names of the functions and constants of the package that a function refers to, directly or not. Compiled code is excluded, because it contains
# addresses. Only names that the function refers to are evaluated, because evaluating a
# ggproto object loads ggplot2 (0.7 s).
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

# Return the names that functions use, including functions in a list, such as the reader of each logger.
words_of <- function(objects) {
  functions <- unlist(lapply(objects, \(one) if (is.list(one)) Filter(is.function, one) else if (is.function(one)) one))
  text <- unlist(lapply(functions, deparse))
  unique(unlist(regmatches(text, gregexpr("%[^%]+%|[A-Za-z.][A-Za-z0-9._]*", text, perl = TRUE))))
}

# The index has the known states of a campaign's files. As in git, a file whose state is unchanged is taken to have unchanged content
# (git-scm.com/docs/racy-git).

index_path <- function(folder, part = NULL) file.path(cache_folder(folder), paste(c("index", part), collapse = "-"))

# `files` has a row per file: `path` (below the campaign's folder), `size`, `changed` and `written` (s since 1970), `sha256`. The table is keyed by path:
# without a key, each search for the files of one trial would sort the files of all trials.
# `manifests` holds the parsed manifests by trial id. `parts` are the paths of the indexes that measure_part() has written; if two indexes have the same
# file or manifest, the newer index counts.
read_index <- function(folder) {
  paths <- list.files(cache_folder(folder), "^index(-[0-9a-f]+)?$", full.names = TRUE)
  paths <- paths[order(file.mtime(paths), decreasing = TRUE)]
  found <- Filter(\(one) identical(one$schema, index_schema), lapply(paths, store_read))
  files <- rbindlist(c(list(no_files), lapply(found, `[[`, "files")))
  list(files = setkey(unique(files, by = "path"), path), manifests = do.call(c, lapply(found, \(one) joined_manifests(one$manifests))), parts = setdiff(paths, index_path(folder)))
}

write_index <- function(folder, files, manifests, part = NULL) {
  store_write(list(schema = index_schema, files = files, manifests = divided_manifests(manifests)), index_path(folder, part))
}

index_schema <- 2L

# The trials of a treatment have equal resolved values, which take half of a manifest. These values are stored once, and the trials share one copy in
# memory as long as no code changes it.
divided_manifests <- function(manifests) {
  resolved <- lapply(manifests, `[[`, "resolved")
  distinct <- unique(resolved)
  list(resolved = distinct, manifests = Map(\(m, i) replace(m, "resolved", i), manifests, match(resolved, distinct)))
}

joined_manifests <- function(divided) lapply(divided$manifests, \(m) replace(m, "resolved", divided$resolved[m$resolved]))

no_files <- data.table(path = character(), size = double(), changed = double(), written = double(), sha256 = character())

#' Return the state of files, by which later changes of the files are detected
#'
#' Programs can set the modification time of a file, but not the change time of its inode (utimensat(2)).
#' @return A data.table: `path`, `size` (NA if the file does not exist), `changed`, `written`.
#' @noRd
file_states <- function(folder, paths) {
  seen <- file.info(file.path(folder, paths), extra_cols = FALSE)
  data.table(path = paths, size = seen$size, changed = as.double(seen$ctime), written = as.double(seen$mtime))
}

# Return the known checksum of each file whose state is unchanged, and NA for files that must be read.
known_sums <- function(states, index) {
  known <- index$files[states, on = "path"]
  known[, fifelse(size == i.size & changed == i.changed & written == i.written, sha256, NA_character_)]
}

# A file that changed just before its state was read may change again within the same tick of the filesystem's clock.
settled_s <- 2

settled <- function(found) if (length(found) > 0) rbindlist(found)[read_s - pmax(changed, written) > settled_s][, read_s := NULL]

#' Return the files of a trial, its manifest first, with their checksums
#'
#' @param folder The campaign's folder.
#' @param manifest The trial's manifest.
#' @param index Result of [read_index()].
#' @return The table from [file_states()] with the column `sha256`. The function aborts if a file differs from the manifest.
#' @noRd
verified_files <- function(folder, manifest, index) {
  states <- file_states(folder, c(manifest_path(manifest$id), trial_paths(manifest)))
  sums <- known_sums(states, index)
  unknown <- is.na(sums)
  sums[unknown] <- sha256_files(file.path(folder, states$path[unknown]))
  recorded <- c(NA_character_, vapply(manifest$files, \(f) f$sha256 %||% NA_character_, ""))
  wrong <- which(is.na(sums) | (!is.na(recorded) & recorded != sums))
  if (length(wrong) > 0) {
    abort_campaign(folder, paste(states$path[wrong[1]], "differs from its manifest; `fab verify` lists all differences"))
  }
  states[, sha256 := sums][]
}

manifest_path <- function(id) sprintf("trials/%s/manifest.json", id)

trial_paths <- function(manifest) sprintf("trials/%s/%s", manifest$id, vapply(manifest$files, \(f) f$path, ""))

#' Return the cache keys of trials that have not changed since they were measured
#'
#' @param campaign A campaign from [read_campaign()].
#' @param version Result of [code_version()].
#' @return Cache keys, named by trial id, of the trials that are in the cache.
#' @noRd
known_keys <- function(campaign, version) {
  paths <- lapply(campaign$manifests, \(m) c(manifest_path(m$id), trial_paths(m)))
  # Search once for all trials, because each search by name first sorts all names.
  sums <- known_sums(campaign$seen, campaign$index)[match(unlist(paths), campaign$seen$path)]
  keys <- vapply(split(sums, rep(seq_along(paths), lengths(paths))), \(of_trial) cache_key(version, of_trial), "")
  keys <- stats::setNames(keys, names(paths))
  keys <- keys[!is.na(keys)]
  keys[file.exists(entry_path(campaign$folder, keys))]
}

#' Store the states of a campaign's files for the next analysis
#'
#' @param campaign A campaign from [read_campaign()].
#' @param found States of the files that were read just now, a table per trial.
#' @noRd
remember <- function(campaign, found) {
  held <- campaign$seen[, sha256 := known_sums(campaign$seen, campaign$index)][!is.na(sha256)]
  files <- unique(rbind(settled(found), held), by = "path")
  if (fsetequal(files, campaign$index$files) && length(campaign$index$parts) == 0) return(invisible())
  write_index(campaign$folder, files, campaign$parsed)
  unlink(campaign$index$parts)
}

#' Tables over all trials, with a column for the trial
#'
#' A stack holds one of the tables for up to `stack_trials` trials of the campaign. Each stack has its own file, so no more than one stack is in memory at
#' a time, and code that needs one table or a few trials reads no other stacks. Text columns are stored as indexes into their distinct values, which is
#' faster to read and to search.
#'
#' @param campaign A campaign from [read_campaign()].
#' @param keys Cache keys by id of the measured trials.
#' @return A function that takes the name of a table and returns its rows, optionally only the rows of some trials and quantities.
#' @noRd
stacks_of <- function(campaign, keys) {
  groups <- stack_groups(keys)
  digests <- stack_digests(keys)
  \(name, ids = NULL, quantities = NULL) {
    wanted <- if (!is.null(ids)) stack_groups(replace(names(keys), !names(keys) %in% ids, NA))
    rbindlist(lapply(seq_along(groups), \(i) {
      if (length(wanted) > 0 && all(is.na(wanted[[i]]))) return(NULL)
      stack <- store_read(stack_path(campaign$folder, name, digests[i])) %||% make_stacks(campaign, groups[[i]], digests[i])[[name]]
      unfolded(chosen_rows(chosen_rows(setDT(stack), "trial", wanted[[i]]), "quantity", quantities))
    }), use.names = TRUE, fill = TRUE)
  }
}

# Trials per stack: enough for long runs of equal values in text columns, but few enough for the memory of any computer. The tables of one trial take up to a
# few MB.
stack_trials <- 250L

stack_groups <- function(keys) in_groups_of(keys, stack_trials)

in_groups_of <- function(x, size) unname(split(x, (seq_along(x) - 1L) %/% size))

stack_digests <- function(keys) vapply(stack_groups(keys), stack_digest, "")

stack_digest <- function(keys) sha256_texts(paste(names(keys), keys, collapse = "\n"))

stack_path <- function(folder, name, digest) file.path(cache_folder(folder), "stacks", paste0(name, "-", digest))

make_stacks <- function(campaign, keys, digest) {
  measured <- Map(\(manifest, key) cached_measures(campaign$folder, manifest, key), campaign$manifests[names(keys)], keys)
  stacks <- lapply(stats::setNames(nm = derived_tables), \(name) {
    folded(rbindlist(lapply(measured, `[[`, name), idcol = "trial", use.names = TRUE, fill = TRUE))
  })
  for (name in names(stacks)) store_write(stacks[[name]], stack_path(campaign$folder, name, digest))
  stacks
}

# Return the rows of a table from folded() that have one of `words` in `column`; all rows if `words` is NULL.
chosen_rows <- function(x, column, words) {
  if (is.null(words) || nrow(x) == 0) return(x)
  x[as.integer(x[[column]]) %in% match(words, attr(x[[column]], "words"), nomatch = 0L)]
}

#' Return the rows of some trials from a table of measures
#'
#' The columns of the design are left out. Unlike a subset of a whole table, this takes no memory for the other rows.
#' @param results Results of a campaign, or of two, see [side_by_side()].
#' @param name Name of the table, one of `derived_tables`.
#' @param quantities Quantities whose rows are returned; NULL for all.
#' @noRd
rows_of <- function(results, name, ids, quantities = NULL) {
  if (is.null(results$sides)) return(results$stack(name, ids, quantities))
  rbindlist(Map(\(side, label) {
    own <- substring(ids[startsWith(ids, paste0(label, ":"))], 3)
    labelled_rows(rows_of(side, name, own, quantities), "trial", label)
  }, results$sides, names(results$sides)), use.names = TRUE, fill = TRUE)
}

folded <- function(x) {
  for (column in names(x)[vapply(x, is.character, TRUE)]) {
    words <- unique(x[[column]])
    set(x, j = column, value = structure(match(x[[column]], words), words = words))
  }
  x
}

unfolded <- function(x) {
  for (column in names(x)) {
    words <- attr(x[[column]], "words")
    if (!is.null(words)) set(x, j = column, value = words[as.integer(x[[column]])])
  }
  x
}

with_identity <- function(rows, campaign) {
  if (nrow(rows) == 0) return(rows)
  columns <- c("part", campaign$factors, "replicate", "verdict")
  at <- match(rows$trial, campaign$trials$id)
  # Columns are added in place, because the metrics of 100,000 trials take 0.4 GB.
  for (column in columns) set(rows, j = column, value = campaign$trials[[column]][at])
  setcolorder(rows, c("trial", columns))
}
