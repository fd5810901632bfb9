# Tables for other programs; tests/unit/export/ reads the files back with other programs.

test_that("times since 1970 are whole nanoseconds, even if a sum passes a full second or a time is before the start of traffic", {
  expect_equal(c(unclass(epoch_ns(c(0, 0.25, 0.5, -0.5, 1e-9), 1795275289.5))), paste0("1795275", c("289500000000", "289750000000", "290000000000", "289000000000", "289500000001")))
})

test_that("columns.json has the type of each column, and a table without rows has no file", {
  folder <- small_campaign()
  to <- tempfile("export-")
  dir.create(to)
  quietly(written <- export_tables(folder, to, c("cycles", "pauses"), part = list(trials = basename(trial_named(folder, "buffer-newreno-9999KB-600")))))
  expect_equal(written, "cycles")
  expect_setequal(list.files(to), c("cycles.csv", "columns.json"))
  types <- jsonlite::fromJSON(file.path(to, "columns.json"))$cycles
  expect_equal(types[c("trial", "replicate", "counts", "start_s")], list(trial = "character", replicate = "integer", counts = "logical", start_s = "numeric"))
  expect_equal(unique(fread(file.path(to, "cycles.csv"))$trial), basename(trial_named(folder, "buffer-newreno-9999KB-600")))
})
