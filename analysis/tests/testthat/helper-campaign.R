# A campaign of six short trials, made by tests/traces/make_campaign.py from tests/traces/campaign-small.json.
small_campaign <- function() {
  from <- testthat::test_path("..", "traces", "campaign-small")
  testthat::skip_if_not(dir.exists(from), "the campaign's traces are not beside the tests")
  folder <- tempfile("campaign-")
  dir.create(folder)
  file.copy(list.files(from, full.names = TRUE), folder, recursive = TRUE)
  folder
}

trial_named <- function(folder, pattern) list.files(file.path(folder, "trials"), pattern, full.names = TRUE)[1]

edit_json <- function(path, change) {
  x <- change(jsonlite::fromJSON(path, simplifyVector = FALSE))
  writeLines(jsonlite::toJSON(x, auto_unbox = TRUE, digits = NA, null = "null"), path)
}

quietly <- function(code) invisible(utils::capture.output(code))
