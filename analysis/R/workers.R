#' Work through items in processes, each of which takes the next item when it has done one
#'
#' Processes that live as long as the work do not pay for a fork, and for copying what they touch, at each item. An item is
#' claimed by making a folder, which only one process can; what came of it is a file, renamed into place. An item whose process
#' ended before that is lost, and the others go on.
#'
#' @param items A list.
#' @param cores Processes at a time; with one, all is done in this process.
#' @param work Function of an item.
#' @param tell Called with the item's number and what came of it, NULL where its process ended, in the order in which they are done.
#' @noRd
share_out <- function(items, cores, work, tell) {
  cores <- min(cores, length(items))
  if (cores <= 1) {
    for (i in seq_along(items)) tell(i, work(items[[i]]))
    return(invisible())
  }
  folder <- tempfile("shared-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  told <- integer()
  while (length(told) < length(items)) {
    told <- one_round(items, cores, work, tell, folder, told)
    claimed <- numbered(folder, "claim")
    for (i in setdiff(claimed, told)) tell(i, NULL)
    told <- union(told, claimed)
  }
}

# From the start of processes until all have ended.
one_round <- function(items, cores, work, tell, folder, told) {
  master <- Sys.getpid()
  jobs <- lapply(seq_len(cores), \(i) parallel::mcparallel(take_turns(items, work, folder, master), mc.set.seed = FALSE, silent = TRUE))
  names(jobs) <- vapply(jobs, \(j) as.character(j$pid), "")
  on.exit(for (pid in as.integer(names(jobs))) tools::pskill(pid))
  collect <- \() {
    done <- numbered(folder, "done")
    for (i in setdiff(done, told)) tell(i, readRDS(file.path(folder, paste0("done-", i))))
    told <<- union(told, done)
  }
  while (length(jobs) > 0) {
    # A process says something once, as it ends; NULL, and a warning that the lost item is told by, when it was ended.
    said <- suppressWarnings(parallel::mccollect(jobs, wait = FALSE, timeout = 0.05))
    collect()
    jobs <- jobs[!names(jobs) %in% names(said) & vapply(jobs, \(j) tools::pskill(j$pid, 0L), TRUE)]
  }
  collect()
  told
}

take_turns <- function(items, work, folder, master) {
  for (i in seq_along(items)) {
    if (!tools::pskill(master, 0L)) break # whom the work was for has been killed
    if (!dir.create(file.path(folder, paste0("claim-", i)), showWarnings = FALSE)) next
    beside <- file.path(folder, paste0("part-", i))
    saveRDS(work(items[[i]]), beside, compress = FALSE)
    file.rename(beside, file.path(folder, paste0("done-", i)))
  }
  TRUE
}

numbered <- function(folder, word) {
  found <- list.files(folder, paste0("^", word, "-[0-9]+$"))
  sort(as.integer(sub(".*-", "", found)))
}

# As many threads in each of several processes as there are processors for it.
with_threads <- function(threads, code) {
  threads <- max(1L, as.integer(threads))
  before <- options(samovar.threads = threads)
  tables <- setDTthreads(threads)
  on.exit({
    options(before)
    setDTthreads(tables)
  })
  code
}
