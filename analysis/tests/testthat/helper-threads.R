# Run code with a number of threads for reading and matching.
run_with_threads <- function(n, code) {
  before <- options(samovar.threads = n)
  on.exit(options(before))
  force(code)
}
