# Rscript measure.R FOLDER [PROJECT] --part=FILE: measure some trials of a campaign, for an analysis on another computer. PROJECT is as in analyse.R. FILE is a
# JSON file with the keys `trials` (ids), and `code` and `versions` as unmeasured.R printed them. For the exit status see report_failure().
arguments <- commandArgs(trailingOnly = TRUE)
part <- sub("^--part=", "", grep("^--part=", arguments, value = TRUE))
arguments <- grep("^--part=", arguments, value = TRUE, invert = TRUE)
samovar:::report_failure(
  samovar:::measure_part(arguments[1], jsonlite::read_json(part), project = if (length(arguments) == 2) arguments[2])
)
