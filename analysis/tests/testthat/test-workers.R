share_and_collect <- function(items, cores, work) {
  reported <- list()
  share_out(items, cores, work, \(i, found) reported[[as.character(i)]] <<- found %||% "lost")
  reported[order(as.integer(names(reported)))]
}

test_that("every item is processed once and reported once, in one process or several", {
  for (cores in 1:3) {
    found <- share_and_collect(as.list(1:20), cores, \(i) c(i, Sys.getpid()))
    expect_equal(vapply(found, \(f) f[1], 1), stats::setNames(as.double(1:20), 1:20))
    processes <- unique(vapply(found, \(f) f[2], 1))
    if (cores == 1) expect_equal(processes, Sys.getpid()) else expect_false(Sys.getpid() %in% processes)
    expect_lte(length(processes), cores)
  }
})

test_that("an item whose process is killed is reported as lost, and all others are processed", {
  found <- share_and_collect(as.list(1:9), 2, \(i) if (i %in% c(2, 5, 6)) tools::pskill(Sys.getpid(), tools::SIGKILL) else i)
  expect_equal(names(found)[vapply(found, identical, TRUE, "lost")], c("2", "5", "6"))
  expect_length(found, 9)
})

test_that("each of several processes gets its share of the threads, and the session's own number is restored", {
  before <- options(samovar.threads = 5L)
  on.exit(options(before))
  expect_equal(with_threads(1, c(getOption("samovar.threads"), data.table::getDTthreads())), c(1L, 1L))
  expect_equal(getOption("samovar.threads"), 5L)
})

test_that("the results of several processes are in the order of the items, in whichever order they finish", {
  expect_equal(make_all(as.list(1:9), 3, \(i) { Sys.sleep((i %% 3) / 50); i^2 }), as.list((1:9)^2))
})

test_that("an error in any process is raised in the calling process", {
  fails <- \(i) if (i == 3) cli::cli_abort("entry {i} is wrong", class = "samovar_error_entry") else i
  for (cores in 1:2) expect_error(make_all(as.list(1:4), cores, fails), "entry 3 is wrong", class = "samovar_error_entry")
})

test_that("an item whose process was killed is made by the calling process", {
  calling_process <- Sys.getpid()
  made <- make_all(as.list(1:4), 2, \(i) if (i == 2 && Sys.getpid() != calling_process) tools::pskill(Sys.getpid(), tools::SIGKILL) else list(i, Sys.getpid()))
  expect_equal(lapply(made, `[[`, 1), as.list(1:4))
  expect_equal(made[[2]][[2]], calling_process)
})
