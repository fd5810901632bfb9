#' Tables over all trials, one column of them telling the trial
#'
#' Stacked once and kept as one file per table, so that who wants one reads one; text is kept as numbers into its words, which is
#' read faster.
#'
#' @param campaign A campaign of [read_campaign()].
#' @param keys Of the cache, by id of the trials that were measured.
#' @return A function of a table's name that gives it.
#' @noRd
stacks_of <- function(campaign, keys) {
  digest <- stack_digest(keys)
  made <- NULL
  \(name) {
    found <- made[[name]] %||% store_read(stack_path(campaign$folder, name, digest))
    if (is.null(found)) {
      made <<- make_stacks(campaign, keys)
      for (n in derived_tables) store_write(made[[n]], stack_path(campaign$folder, n, digest))
      found <- made[[name]]
    }
    with_identity(unfolded(found), campaign)
  }
}

stack_digest <- function(keys) sha256_texts(paste(names(keys), keys, collapse = "\n"))

stack_path <- function(folder, name, digest) file.path(cache_folder(folder), "stacks", paste0(name, "-", digest))

make_stacks <- function(campaign, keys) {
  measured <- lapply(stats::setNames(nm = names(keys)), \(id) cached_measures(campaign$folder, campaign$manifests[[id]], keys[[id]]))
  lapply(stats::setNames(nm = derived_tables), \(name) {
    folded(rbindlist(lapply(measured, `[[`, name), idcol = "trial", use.names = TRUE, fill = TRUE))
  })
}

folded <- function(x) {
  for (column in names(x)[vapply(x, is.character, TRUE)]) {
    words <- unique(x[[column]])
    set(x, j = column, value = structure(match(x[[column]], words), words = words))
  }
  x
}

unfolded <- function(x) {
  x <- as.data.table(x)
  for (column in names(x)) {
    words <- attr(x[[column]], "words")
    if (!is.null(words)) set(x, j = column, value = words[as.integer(x[[column]])])
  }
  x
}

with_identity <- function(rows, campaign) {
  if (nrow(rows) == 0) return(rows)
  columns <- c("part", campaign$factors, "replicate", "verdict")
  identity <- campaign$trials[match(rows$trial, campaign$trials$id), columns, with = FALSE]
  cbind(rows[, "trial"], identity, rows[, setdiff(names(rows), "trial"), with = FALSE])
}
