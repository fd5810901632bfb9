# Rscript measure.R FOLDER [PROJECT] --part=FILE: measure some trials of a campaign, for an analysis on another computer. PROJECT is as in analyse.R. FILE has
# the keys `trials` (ids), `code` and `versions`, the last two as unmeasured.R printed them. report_failure() explains the exit status.
arguments <- commandArgs(trailingOnly = TRUE)
part <- sub("^--part=", "", grep("^--part=", arguments, value = TRUE))
arguments <- grep("^--part=", arguments, value = TRUE, invert = TRUE)
samovar:::report_failure(
  samovar:::measure_part(arguments[1], jsonlite::read_json(part), project = if (length(arguments) == 2) arguments[2])
)
