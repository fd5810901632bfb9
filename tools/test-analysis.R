# Run the tests of the installed R package; exit non-zero when one fails or the folder is empty.
testthat::test_dir(
  "analysis/tests/testthat",
  package = "samovar", load_package = "installed",
  reporter = "summary", stop_on_failure = TRUE
)
