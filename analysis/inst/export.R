# Rscript export.R FOLDER TO TABLES [PROJECT] [--part=FILE]: write tables of a campaign to the folder TO. TABLES are names separated by commas. PROJECT and
# FILE are as in analyse.R. For the exit status see report_failure().
arguments <- commandArgs(trailingOnly = TRUE)
part <- sub("^--part=", "", grep("^--part=", arguments, value = TRUE))
arguments <- grep("^--part=", arguments, value = TRUE, invert = TRUE)
samovar:::report_failure(
  samovar::export_tables(arguments[1], arguments[2], strsplit(arguments[3], ",")[[1]], project = if (length(arguments) == 4) arguments[4],
                         part = if (length(part) == 1) jsonlite::read_json(part))
)
