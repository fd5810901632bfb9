# Rscript compare.R REQUEST [PROJECT]: compare two campaigns. REQUEST is a JSON file with the arguments `a`, `b`, `to` and `by` of compare_campaigns().
# PROJECT is as in analyse.R. For the exit status see report_failure().
arguments <- commandArgs(trailingOnly = TRUE)
samovar:::report_failure({
  request <- jsonlite::read_json(arguments[1])
  samovar::compare_campaigns(request$a, request$b, request$to, by = unlist(request$by), project = if (length(arguments) == 2) arguments[2])
})
