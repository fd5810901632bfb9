# The reference page of measures must list the exported functions of the files measure-*, summarise* and trial-metrics, and agree with their help.
package_folder <- function() {
  folder <- file.path(traces_folder(), "..", "..")
  file.path(folder, c(page = "docs/reference/measures.md", sources = "analysis/R", help = "analysis/man"))
}

exported_measures <- function(sources) {
  files <- list.files(sources, "^(measure|summarise|trial-metrics).*[.]R$", full.names = TRUE)
  lines <- unlist(lapply(files, readLines))
  at <- grep("^#' @export", lines)
  sub(" <-.*", "", lines[at + 1])
}

test_that("the reference page lists every exported measure and nothing else", {
  at <- package_folder()
  page <- readLines(at[1])
  listed <- unique(unlist(regmatches(page, gregexpr("^### `([a-z0-9_]+)\\(\\)`", page))))
  expect_setequal(gsub("^### `|\\(\\)`", "", listed), exported_measures(at[2]))
})

test_that("the reference page's section of each measure states an equation or a rule, units and a source", {
  page <- paste(readLines(package_folder()[1]), collapse = "\n")
  for (section in strsplit(page, "\n### ", fixed = TRUE)[[1]][-1]) {
    name <- sub("\\(\\).*", "", section)
    expect_match(section, "\n    \\S", info = name)
    expect_match(section, "\nUnits?: ", info = name)
    expect_match(section, "\nSource: ", info = name)
  }
})

test_that("each measure has one help page, which states the return value", {
  at <- package_folder()
  for (name in exported_measures(at[2])) {
    files <- list.files(at[3], full.names = TRUE)
    help <- Filter(\(f) any(grepl(paste0("\\alias{", name, "}"), readLines(f), fixed = TRUE)), files)
    expect_length(help, 1)
    expect_match(paste(readLines(help), collapse = "\n"), "\\value", fixed = TRUE, info = name)
  }
})
