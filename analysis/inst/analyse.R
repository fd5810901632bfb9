# Rscript analyse.R FOLDER: analyse one campaign; a failure is one message on standard error and exit status 1.
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 1) {
  message("analyse.R: one campaign folder is expected, ", length(arguments), " arguments were given")
  quit(status = 2)
}
tryCatch(
  samovar::analyse_campaign(arguments, value = FALSE),
  error = \(e) {
    message(cli::ansi_strip(conditionMessage(e)))
    quit(status = 1)
  }
)
