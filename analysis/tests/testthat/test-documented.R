# The checks of help pages by R CMD check, and more, in seconds; `make r-check` runs R CMD check itself.
repository <- function(...) file.path(traces_folder(), "..", "..", ...)

exported <- function() {
  lines <- readLines(repository("analysis", "NAMESPACE"))
  sub("^export\\((.*)\\)$", "\\1", grep("^export\\(", lines, value = TRUE))
}

named_in <- function(page) unique(unlist(regmatches(page, gregexpr("`[a-z0-9_]+\\(\\)`", page)))) |> gsub(pattern = "[`()]", replacement = "")

test_that("every exported function has a help page that documents every argument, and its usage matches the code", {
  folder <- repository("analysis")
  expect_length(unlist(tools::undoc(dir = folder)), 0)
  expect_length(unlist(tools::codoc(dir = folder)), 0)
  expect_length(unlist(tools::checkDocFiles(dir = folder)), 0)
  expect_length(unlist(tools::checkDocStyle(dir = folder)), 0)
})

test_that("every help page of an exported function has examples", {
  pages <- setdiff(list.files(repository("analysis", "man"), "[.]Rd$", full.names = TRUE), repository("analysis", "man", "samovar-package.Rd"))
  without <- Filter(\(page) !any(grepl("^\\\\examples", readLines(page))), pages)
  expect_equal(basename(without), character())
  expect_error(samovar_example("no.txt"), "is not an example", class = "samovar_error_argument")
})

test_that("the examples of every help page run, and their plots can be drawn", {
  pages <- tools::Rd_db(dir = repository("analysis"))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  ran <- Filter(\(name) {
    code <- tempfile(fileext = ".R")
    tools::Rd2ex(pages[[name]], code) # writes no file for a page without examples
    if (!file.exists(code)) return(FALSE)
    run <- \() utils::capture.output(source(code, local = new.env(parent = globalenv()), print.eval = TRUE))
    tryCatch(run(), error = \(e) fail(paste0(name, ": ", conditionMessage(e))))
    TRUE
  }, names(pages))
  expect_setequal(setdiff(names(pages), ran), "samovar-package.Rd")
})

test_that("the vignette is installed", {
  expect_equal(unname(utils::vignette(package = "samovar")$results[, "Item"]), "captures")
  found <- utils::vignette("captures", package = "samovar")
  expect_true(file.exists(file.path(found$Dir, "doc", found$PDF)))
})

test_that("R source files are ASCII", {
  files <- list.files(repository("analysis", "R"), full.names = TRUE)
  expect_equal(Filter(\(f) any(grepl("[^ -~\t]", readLines(f))), files), character())
})

test_that("the reference page of readers lists every reader, that of measures every measure, and both list nothing else", {
  readers <- readLines(repository("docs", "reference", "readers.md"))
  measures <- readLines(repository("docs", "reference", "measures.md"))
  expect_setequal(grep("^read_", named_in(readers), value = TRUE), grep("^read_", exported(), value = TRUE))
  # Exported functions that neither read, measure nor draw: names of figures, tables for other programs, and caches.
  other <- c("analyse_campaign", "compare_campaigns", "export_tables", "code_version", "known_names", "samovar_example", "write_figure", "theme_samovar", "geom_many_points")
  rest <- grep("^(read|plot)_", setdiff(exported(), other), invert = TRUE, value = TRUE)
  expect_equal(setdiff(rest, named_in(c(measures, readers))), character())
  expect_equal(setdiff(other, exported()), character())
})

test_that("the reference page has each reader in the list of readers of traces, or in a row with its input and the source of the format", {
  readers <- readLines(repository("docs", "reference", "readers.md"))
  rows <- grep("^\\| `read_[a-z0-9_]+\\(\\)`", readers, value = TRUE)
  cells <- lapply(strsplit(rows, " | ", fixed = TRUE), trimws)
  traces <- paste(readers[grep("^Readers of \\[traces\\]", readers):grep("The others:$", readers)], collapse = " ")
  expect_setequal(c(named_in(traces), named_in(sub("^([^|]*[|][^|]*)[|].*", "\\1", rows))), grep("^read_", exported(), value = TRUE))
  expect_true(all(lengths(cells) == 3))
  expect_true(all(nzchar(gsub("[| ]", "", unlist(cells)))))
})

test_that("no two files of the package define the same function", {
  names <- unlist(lapply(list.files(repository("analysis", "R"), "[.]R$", full.names = TRUE), \(file) {
    assigned <- Filter(\(one) is.call(one) && identical(one[[1]], as.name("<-")) && is.name(one[[2]]), as.list(parse(file)))
    vapply(assigned, \(one) as.character(one[[2]]), "")
  }))
  expect_equal(names[duplicated(names)], character())
})
