# Rscript analyse.R FOLDER [PROJECT] [--part=FILE] [--cores=N]: analyse one campaign. PROJECT is a folder that adds metrics, figures and tables. FILE is a
# JSON file with the keys `picked`, `options` and `trials`; only its `trials` are analysed. For the exit status see report_failure().
arguments <- commandArgs(trailingOnly = TRUE)
part <- sub("^--part=", "", grep("^--part=", arguments, value = TRUE))
cores <- sub("^--cores=", "", grep("^--cores=", arguments, value = TRUE))
arguments <- grep("^--(part|cores)=", arguments, value = TRUE, invert = TRUE)
if (length(cores) == 1) options(samovar.cores = as.integer(cores))
if (!length(arguments) %in% 1:2) {
  message("analyse.R: expected a campaign folder and perhaps a project's analysis folder, not ", length(arguments), " arguments")
  quit(status = 2)
}
samovar:::report_failure(
  samovar::analyse_campaign(arguments[1], value = FALSE, project = if (length(arguments) == 2) arguments[2],
                            part = if (length(part) == 1) jsonlite::read_json(part))
)
