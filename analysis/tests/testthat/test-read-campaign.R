with_verdict <- function(manifest, verdict, reason) {
  manifest$verdict <- verdict
  manifest$reasons <- list(reason)
  manifest
}

test_that("read_campaign() returns levels of factors as text, and trials in the order of the plan", {
  campaign <- read_campaign(small_campaign())
  expect_equal(campaign$factors, c("cc", "rwnd", "mtu"))
  expect_equal(nrow(campaign$trials), 6)
  expect_equal(campaign$trials$mtu[1:2], c("600", "1500"))
  expect_equal(nrow(campaign$left_out), 0)
})

test_that("invalid, missing, partly written and truncated trials are left out, each with its reason", {
  folder <- small_campaign()
  invalid <- trial_named(folder, "window-newreno-15KB")
  edit_json(file.path(invalid, "manifest.json"), \(m) with_verdict(m, "invalid", "12 capture drops"))
  missing <- trial_named(folder, "window-newreno-21KB")
  unlink(missing, recursive = TRUE)
  half <- trial_named(folder, "window-cubic")
  unlink(file.path(half, "manifest.json"))
  short <- trial_named(folder, "buffer-newreno-9999KB-600")
  trace <- file.path(short, "traces", "src-tcp-info.csv.gz")
  writeBin(readBin(trace, "raw", 1000), trace)

  left <- read_campaign(folder)$left_out
  reason <- \(path) left$reason[left$id == basename(path)]
  expect_equal(reason(invalid), "invalid: 12 capture drops")
  expect_equal(reason(missing), "not run")
  expect_match(reason(half), "half written: no manifest.json")
  expect_match(reason(short), "has 1000 bytes, not")
  expect_equal(nrow(left), 4)
})

test_that("a result that is no longer in the plan is not read, and nothing is reported as missing", {
  folder <- small_campaign()
  edit_json(file.path(folder, "plan.json"), \(plan) {
    plan$trials <- plan$trials[-3]
    plan
  })
  campaign <- read_campaign(folder)
  expect_equal(nrow(campaign$trials), 5)
  expect_length(campaign$manifests, 5)
  expect_equal(nrow(campaign$left_out), 0)
})

test_that("a suspect trial is analysed and not left out", {
  folder <- small_campaign()
  path <- file.path(trial_named(folder, "window-cubic"), "manifest.json")
  edit_json(path, \(m) with_verdict(m, "suspect", "clock off by 3 ms"))
  expect_equal(nrow(read_campaign(folder)$trials), 6)
})

test_that("a missing folder, a truncated plan.json and a missing plan.json are errors", {
  folder <- small_campaign()
  expect_error(read_campaign(file.path(folder, "nowhere")), "no such folder", class = "samovar_error_campaign")
  plan <- file.path(folder, "plan.json")
  writeLines(substr(paste(readLines(plan, warn = FALSE), collapse = "\n"), 1, 500), plan)
  expect_error(read_campaign(folder), "plan.json is truncated", class = "samovar_error_campaign")
  unlink(plan)
  expect_error(read_campaign(folder), "no plan.json", class = "samovar_error_campaign")
})

test_that("a campaign without a complete trial is an error with the reason for each trial", {
  folder <- small_campaign()
  unlink(list.files(file.path(folder, "trials"), "manifest.json", recursive = TRUE, full.names = TRUE))
  expect_error(read_campaign(folder), "none of its 6 planned trials.*no manifest.json \\(6\\)", class = "samovar_error_campaign")
})

test_that("trials whose traces are archived are left out with the command that restores them", {
  folder <- small_campaign()
  ids <- names(read_campaign(folder)$manifests)
  unlink(file.path(folder, "trials", ids[1], "traces"), recursive = TRUE)
  expect_match(read_campaign(folder)$left_out[id == ids[1]]$reason, "is missing$")
  file.create(file.path(folder, "traces.tar.zst"))
  expect_match(read_campaign(folder)$left_out[id == ids[1]]$reason, "its traces are archived; `fab archive --restore` restores them", fixed = TRUE)
})
