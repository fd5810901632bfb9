# Caches of an analysis: used if nothing has changed, otherwise computed again.

# Return the ids of trials that `code` measures; cached trials are not measured.
count_measured <- function(code) {
  measured <- character()
  real <- measure_trial
  with_replaced(code, measure_trial = \(folder, manifest) {
    measured <<- c(measured, manifest$id)
    real(folder, manifest)
  })
  measured
}

measured_by_analysis <- function(folder, ...) count_measured(quietly(analyse_campaign(folder, cores = 1L, ...)))

# A campaign whose files are old enough for the index to store their sizes and times. All copies are made at the beginning, so that
# the copies that later tests use are old enough.
unused <- new.env()
unused$campaigns <- replicate(11, small_campaign())
settled_campaign <- function() {
  folder <- unused$campaigns[1]
  unused$campaigns <- unused$campaigns[-1]
  changed <- max(file.info(list.files(folder, recursive = TRUE, full.names = TRUE))$ctime)
  until <- Sys.time() + 30
  while (difftime(Sys.time(), changed, units = "secs") <= settled_s && Sys.time() < until) Sys.sleep(0.1)
  folder
}

outputs <- function(folder) {
  made <- list.files(file.path(folder, c("bundle", "tables")), "[.](pdf|csv|json)$", recursive = TRUE, full.names = TRUE)
  stats::setNames(tools::md5sum(made), made)
}

test_that("the hash of the code is the same in every process", {
  paths <- paste(sprintf("'%s'", .libPaths()), collapse = ", ")
  code <- shQuote(sprintf(".libPaths(c(%s)); cat(samovar::code_version())", paths))
  digests <- replicate(2, system2(file.path(R.home("bin"), "Rscript"), c("-e", code), stdout = TRUE))
  expect_equal(digests[1], digests[2])
  expect_match(digests[1], "^[0-9a-f]{64}$")
})

test_that("the hash of the code covers all functions that measure, directly or not, and none that draw", {
  reached <- reached_from("measure_trial", asNamespace("samovar"))
  expect_true(all(c("measure_trial", "measure_flow", "read_pcap", "packet_pair_rtt", "%||%") %in% reached))
  expect_true(all(c("samples_of_tcp_info", "samples_of_siftr", "read_tcp_probe") %in% reached)) # called through the list sender_sources
  expect_equal(grep("^(figure|table|plot|theme|draw)_", reached, value = TRUE), character())
  before <- code_version()
  with_replaced(expect_false(identical(code_version(), before)), thin_series = \(...) NULL)
  with_replaced(expect_equal(code_version(), before), theme_samovar = \(...) NULL)
  project <- tempfile("analysis-")
  dir.create(project)
  writeLines("quantities: {tcp-state: {sources: [siftr, tcp-probe, tcp-info]}}", file.path(project, "outputs.yaml"))
  series <- series_version()
  on.exit(use_project(NULL))
  use_project(project)
  expect_false(identical(code_version(), before))
  expect_false(identical(series_version(), series))
})

test_that("a second analysis measures and draws nothing and leaves the same files", {
  folder <- settled_campaign()
  expect_length(measured_by_analysis(folder), 6)
  before <- outputs(folder)
  expect_gte(length(before), 20)
  again <- with_replaced(measured_by_analysis(folder, value = FALSE), one_figure = \(...) stop("drawn"), one_table = \(...) stop("made"),
                                          verified_files = \(...) stop("read"), make_stacks = \(...) stop("stacked"))
  expect_length(again, 0)
  expect_equal(outputs(folder), before)
})

test_that("an analysis with two processes writes the same files as one with a single process", {
  one <- small_campaign()
  two <- small_campaign()
  quietly(analyse_campaign(one, cores = 1L))
  quietly(analyse_campaign(two, cores = 2L))
  expect_equal(unname(outputs(two)), unname(outputs(one)))
  expect_gt(length(outputs(one)), 5)
})

test_that("results read from the cache are equal to the measured ones", {
  folder <- small_campaign()
  quietly(first <- analyse_campaign(folder, cores = 1L))
  quietly(second <- analyse_campaign(folder, cores = 1L))
  for (name in c(derived_tables, "summary", "left_out")) expect_equal(second[[name]], first[[name]], info = name)
})

test_that("tables are stored in stacks of trials, and rows of a trial are read from its stack only", {
  folder <- settled_campaign()
  with_replaced(stack_trials = 2L, code = {
    campaign <- read_campaign(folder)
    quietly(results <- gather(campaign, measure_all(campaign, 1L)))
    series <- results$series
    expect_length(list.files(file.path(cache_folder(folder), "stacks"), "^series-"), 3)
    id <- names(campaign$manifests)[4]
    read <- character()
    from_file <- store_read
    rows <- with_replaced(rows_of(results, "series", id, c("queue", "cwnd")), store_read = \(path, ...) {
      read <<- c(read, path)
      from_file(path, ...)
    })
    expect_length(read, 1)
    expect_setequal(rows$quantity, c("queue", "cwnd"))
    expect_equal(rows, series[trial == id & quantity %in% c("queue", "cwnd"), names(rows), with = FALSE])
  })
})

test_that("the tables and figures of a campaign do not depend on how its trials are stacked", {
  folders <- replicate(2, small_campaign())
  quietly(analyse_campaign(folders[1], cores = 1L))
  with_replaced(quietly(analyse_campaign(folders[2], cores = 1L)), stack_trials = 1L)
  expect_equal(unname(outputs(folders[2])), unname(outputs(folders[1])))
})

test_that("after a change of one trial, only the stack with this trial is written again", {
  folder <- settled_campaign()
  stacks <- \() list.files(file.path(cache_folder(folder), "stacks"), "^metrics-")
  with_replaced(stack_trials = 2L, code = {
    measured_by_analysis(folder, figures = list())
    before <- stacks()
    edit_json(file.path(trial_named(folder, "window-cubic"), "manifest.json"), \(m) replace(m, "overhead_s", 7))
    measured_by_analysis(folder, figures = list())
    expect_length(setdiff(stacks(), before), 1)
  })
})

test_that("manifests in the index are equal to those in the files, and resolved values of equal treatments are stored once", {
  folder <- settled_campaign()
  manifests <- read_campaign(folder)$manifests
  measured_by_analysis(folder, figures = list())
  expect_equal(read_index(folder)$manifests[names(manifests)], manifests)
  expect_equal(with_replaced(read_campaign(folder)$manifests, read_manifest = \(...) stop("read")), manifests)
  replicates <- rep(manifests[1:2], 3)
  divided <- divided_manifests(replicates)
  expect_length(divided$resolved, 2)
  expect_equal(joined_manifests(divided), replicates)
})

test_that("the index is sorted by path, and has the checksum of a file only while the file's size and times are unchanged", {
  folder <- file.path(tempdir(), "indexed")
  states <- data.table::data.table(path = c("b", "a", "c"), size = 1:3 + 0, changed = 5, written = 4)
  write_index(folder, data.table::copy(states)[, sha256 := toupper(path)], list())
  index <- read_index(folder)
  expect_equal(data.table::key(index$files), "path")
  expect_equal(known_sums(states, index), c("B", "A", "C"))
  expect_equal(known_sums(data.table::copy(states)[1, size := 9][2, changed := 6][3, written := NA], index), rep(NA_character_, 3))
  expect_equal(known_sums(states[0], index), character())
  expect_equal(known_sums(data.table::copy(states)[, path := "d"], index), rep(NA_character_, 3))
})

test_that("adding a figure does not measure any trial again", {
  folder <- settled_campaign()
  measured_by_analysis(folder, figures = list())
  expect_length(measured_by_analysis(folder, figures = "rtt-cdf"), 0)
  expect_true(file.exists(file.path(folder, "bundle", "figures", "rtt-cdf.pdf")))
})

test_that("only a trial that changed is measured again", {
  folder <- settled_campaign()
  measured_by_analysis(folder, figures = list())
  trial <- trial_named(folder, "window-cubic")
  edit_json(file.path(trial, "manifest.json"), \(m) {
    m$overhead_s <- 7
    m
  })
  expect_equal(measured_by_analysis(folder, figures = list()), basename(trial))
  metrics <- data.table::fread(file.path(folder, "tables", "metrics.csv"))
  expect_equal(metrics$value[metrics$metric == "overhead_s" & metrics$trial == basename(trial)], 7)
})

test_that("a file that differs from its manifest is never served from the cache, even with unchanged size and modification time", {
  folder <- settled_campaign()
  measured_by_analysis(folder, figures = list())
  trial <- trial_named(folder, "window-cubic")
  capture <- file.path(trial, "traces", "src-eth1.pcap.gz")
  written <- file.mtime(capture)
  bytes <- readBin(capture, "raw", file.size(capture))
  bytes[1000] <- xor(bytes[1000], as.raw(1))
  writeBin(bytes, capture)
  Sys.setFileTime(capture, written)
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L))
  expect_equal(results$left_out$id, basename(trial))
  expect_match(results$left_out$reason, "src-eth1.pcap.gz differs from its manifest")
})

test_that("a damaged or truncated cache entry is reported, and its trial is measured and stored again", {
  folder <- settled_campaign()
  measured_by_analysis(folder, figures = list())
  entries <- list.files(file.path(cache_folder(folder), "trials"), full.names = TRUE)
  bytes <- readBin(entries[1], "raw", file.size(entries[1]))
  writeBin(utils::head(bytes, length(bytes) %/% 2), entries[1])
  other <- readBin(entries[2], "raw", file.size(entries[2]))
  other[length(other) %/% 2] <- xor(other[length(other) %/% 2], as.raw(16))
  writeBin(other, entries[2])
  unlink(file.path(cache_folder(folder), "stacks"), recursive = TRUE)
  before <- outputs(folder)
  unlink(file.path(folder, "tables", "metrics.csv"))
  lines <- character()
  expect_length(count_measured(lines <- utils::capture.output(analyse_campaign(folder, figures = list(), cores = 1L))), 2)
  warned <- Filter(\(s) s$event == "warning", lapply(lines, jsonlite::fromJSON))
  expect_setequal(sub(":.*", "", vapply(warned, \(s) s$text, "")), entries[1:2])
  expect_equal(outputs(folder), before)
})

test_that("a stored value is damaged if any byte is changed or cut off", {
  path <- tempfile()
  store_write(list(id = "a", x = as.double(1:50)), path)
  whole <- readBin(path, "raw", file.size(path))
  damaged <- 0
  for (at in seq_along(whole)) {
    for (bad in list(replace(whole, at, xor(whole[at], as.raw(8))), utils::head(whole, at - 1))) {
      writeBin(bad, path)
      read <- store_read(path, warn = \(path) damaged <<- damaged + 1)
      if (!is.null(read)) expect_equal(read$x, as.double(1:50))
    }
  }
  expect_gte(damaged, 2 * length(whole) - 2)
})

test_that("a damaged index, and a damaged table of all trials, is built again", {
  folder <- settled_campaign()
  quietly(first <- analyse_campaign(folder, figures = list(), cores = 1L))
  for (path in c(index_path(folder), drawn_path(folder), list.files(file.path(cache_folder(folder), "stacks"), full.names = TRUE))) {
    writeBin(as.raw(1:40), path)
  }
  quietly(second <- analyse_campaign(folder, figures = list(), cores = 1L))
  for (name in c(derived_tables, "summary", "left_out")) expect_equal(second[[name]], first[[name]], info = name)
})

test_that("after all trials were measured in separate parts, the analysis measures nothing and has the same results", {
  folder <- settled_campaign()
  measured <- count_measured({
    listed <- jsonlite::fromJSON(capture.output(list_unmeasured(folder)))
    for (id in listed$trials) {
      # Other parts have not written their index yet: hide the index files.
      others <- list.files(cache_folder(folder), "^index", full.names = TRUE)
      hidden <- file.path(tempdir(), basename(others))
      file.rename(others, hidden)
      quietly(measure_part(folder, c(list(trials = list(id)), listed[c("code", "versions")]), cores = 1L))
      file.rename(hidden, others)
    }
    left <- jsonlite::fromJSON(capture.output(list_unmeasured(folder)))
  })
  expect_equal(measured, listed$trials)
  expect_setequal(listed$trials, names(read_campaign(folder)$manifests))
  expect_false(is.unsorted(-listed$bytes))
  expect_length(left$trials, 0)
  expect_length(measured_by_analysis(folder), 0)
  expect_equal(list.files(cache_folder(folder), "^index"), "index")
  together <- settled_campaign()
  expect_length(measured_by_analysis(together), length(listed$trials))
  expect_equal(unname(outputs(folder)), unname(outputs(together)))
})

test_that("a computer with other versions of R, data.table or samovar refuses to measure", {
  folder <- small_campaign()
  part <- list(trials = list("any"), code = "other", versions = "R 3.0.0, data.table 1.0, samovar 0.1.0")
  expect_error(measure_part(folder, part), "has R [0-9.]+, data.table [0-9.]+, samovar .* has R 3.0.0, data.table 1.0, samovar 0.1.0; install", class = "samovar_error_versions")
  expect_false(dir.exists(cache_folder(folder)))
})

test_that("unused entries are kept up to the size of the used ones, newest first, and partial files are removed after a day", {
  folder <- tempfile("cache-")
  dir.create(folder)
  made <- file.path(folder, c("used", "newer", "older", "old.part-1", "new.part-2"))
  for (path in made) writeBin(raw(1000), path)
  Sys.setFileTime(made[3:4], Sys.time() - c(3600, 2 * 86400))
  store_prune(folder, made[1])
  expect_setequal(list.files(folder), c("used", "newer", "new.part-2"))
})

test_that("checksums are the SHA-256 of texts and of files as stored, without decompression", {
  expect_equal(sha256_texts(c("", "abc", strrep("a", 1e6))), c(
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
  ))
  need_tool("sha256sum")
  large <- tempfile()
  packed <- gzfile(large, "wb", compression = 0)
  writeBin(rep(as.raw(0:255), 8192), packed)
  close(packed)
  paths <- c(file.path(small_campaign(), "plan.json"), large)
  expected <- sub(" .*", "", system2("sha256sum", shQuote(paths), stdout = TRUE))
  expect_equal(sha256_files(c(paths, "/nowhere", tempdir())), c(expected, NA, NA))
})
