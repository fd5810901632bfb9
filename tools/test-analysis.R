# Run the tests of the installed R package; fail if a test fails, or if there is none.
testthat::test_dir(
  "analysis/tests/testthat",
  package = "samovar", load_package = "installed",
  reporter = "summary", stop_on_failure = TRUE
)
