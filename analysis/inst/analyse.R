# Rscript analyse.R FOLDER [PROJECT]: analyse one campaign, with the metrics, figures and tables of the folder PROJECT as well. A failure
# is one message on standard error and exit status 1.
arguments <- commandArgs(trailingOnly = TRUE)
if (!length(arguments) %in% 1:2) {
  message("analyse.R: expected a campaign folder and perhaps a project's analysis folder, not ", length(arguments), " arguments")
  quit(status = 2)
}
tryCatch(
  samovar::analyse_campaign(arguments[1], value = FALSE, project = if (length(arguments) == 2) arguments[2]),
  error = \(e) {
    message(cli::ansi_strip(conditionMessage(e)))
    quit(status = 1)
  }
)
