# Rscript compare.R REQUEST [PROJECT]: compare two campaigns. REQUEST is a JSON file with the arguments `a`, `b`, `to` and `by` of compare_campaigns().
# PROJECT is as in analyse.R. A failure is reported by one message on standard error and exit status 1.
arguments <- commandArgs(trailingOnly = TRUE)
tryCatch(
  {
    request <- jsonlite::read_json(arguments[1])
    samovar::compare_campaigns(request$a, request$b, request$to, by = unlist(request$by), project = if (length(arguments) == 2) arguments[2])
  },
  error = \(e) {
    message(cli::ansi_strip(conditionMessage(e)))
    quit(status = 1)
  }
)
