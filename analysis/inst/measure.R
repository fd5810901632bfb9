# Rscript measure.R FOLDER [PROJECT] --part=FILE: measure some trials of a campaign, for an analysis on another computer. PROJECT is as in analyse.R. FILE has
# the keys `trials` (ids), `code` and `versions`, the last two as unmeasured.R printed them. A failure is reported by one message on standard error and
# exit status 1.
arguments <- commandArgs(trailingOnly = TRUE)
part <- sub("^--part=", "", grep("^--part=", arguments, value = TRUE))
arguments <- grep("^--part=", arguments, value = TRUE, invert = TRUE)
tryCatch(
  samovar:::measure_part(arguments[1], jsonlite::read_json(part), project = if (length(arguments) == 2) arguments[2]),
  error = \(e) {
    message(cli::ansi_strip(conditionMessage(e)))
    quit(status = 1)
  }
)
