# Run work in parallel worker processes, and set the number of threads of each.

#' Process items in parallel worker processes
#'
#' A worker that has finished an item takes the next one. The costs of a fork, and of copying pages, therefore arise once for each worker, not for each item.
#' A worker claims an item by creating a directory, which only one process can do; its result is a file, renamed into place. If a worker is killed,
#' its item is lost and the others continue.
#'
#' @param items A list.
#' @param cores Number of workers; with one, this process does all the work.
#' @param work A function that is called with each item.
#' @param report A function that is called in the order of completion with an item's number and its result, which is NULL if the worker was killed.
#' @noRd
share_out <- function(items, cores, work, report) {
  cores <- min(cores, length(items))
  if (cores <= 1) {
    for (i in seq_along(items)) report(i, work(items[[i]]))
    return(invisible())
  }
  folder <- tempfile("shared-")
  dir.create(file.path(folder, "claims"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  reported <- integer()
  while (length(reported) < length(items)) {
    reported <- one_round(items, cores, work, report, folder, reported)
    claimed <- numbered(file.path(folder, "claims"), "claim")
    for (i in setdiff(claimed, reported)) report(i, NULL)
    reported <- union(reported, claimed)
  }
}

# Start workers and wait until all have ended.
one_round <- function(items, cores, work, report, folder, reported) {
  master <- Sys.getpid()
  jobs <- lapply(seq_len(cores), \(i) parallel::mcparallel(take_turns(items, work, folder, master), mc.set.seed = FALSE, silent = TRUE))
  names(jobs) <- vapply(jobs, \(j) as.character(j$pid), "")
  on.exit(for (pid in as.integer(names(jobs))) tools::pskill(pid))
  collect <- \() {
    done <- numbered(folder, "done")
    for (i in done) {
      path <- file.path(folder, paste0("done-", i))
      one <- readRDS(path)
      file.remove(path) # the folder is listed many times a second, and would hold a file for each item
      report(i, one)
    }
    reported <<- c(reported, done)
  }
  while (length(jobs) > 0) {
    # A worker returns a value once, as it ends: NULL, with a warning, if it was killed. Lost items are found by their missing results.
    ended <- suppressWarnings(parallel::mccollect(jobs, wait = FALSE, timeout = 0.05))
    collect()
    jobs <- jobs[!names(jobs) %in% names(ended) & vapply(jobs, \(j) tools::pskill(j$pid, 0L), TRUE)]
  }
  collect()
  reported
}

take_turns <- function(items, work, folder, master) {
  for (i in seq_along(items)) {
    if (!tools::pskill(master, 0L)) break # the parent process has been killed
    if (!dir.create(file.path(folder, "claims", paste0("claim-", i)), showWarnings = FALSE)) next
    partial <- file.path(folder, paste0("part-", i))
    saveRDS(work(items[[i]]), partial, compress = FALSE)
    file.rename(partial, file.path(folder, paste0("done-", i)))
  }
  TRUE
}

numbered <- function(folder, word) {
  found <- list.files(folder, paste0("^", word, "-[0-9]+$"))
  sort(as.integer(sub(".*-", "", found)))
}

# Divide the threads of a process among several processes.
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
