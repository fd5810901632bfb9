# Rscript unmeasured.R FOLDER [PROJECT] [--part=FILE]: print the trials of a campaign that are not measured yet, as a line of JSON. PROJECT and FILE are as
# in analyse.R. For the exit status see report_failure().
arguments <- commandArgs(trailingOnly = TRUE)
part <- sub("^--part=", "", grep("^--part=", arguments, value = TRUE))
arguments <- grep("^--part=", arguments, value = TRUE, invert = TRUE)
samovar:::report_failure(
  samovar:::list_unmeasured(arguments[1], project = if (length(arguments) == 2) arguments[2], part = if (length(part) == 1) jsonlite::read_json(part))
)
