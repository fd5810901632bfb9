# Real logs: a complete one of FreeBSD 14.0, and excerpts of a 13.2 log and of another 14.0 log, each with the footer of its complete log.
siftr_lines <- function(name) lines_of(gzfile(test_path("data", name)))

lines_of <- function(connection) {
  on.exit(close(connection))
  readLines(connection)
}

whole_siftr <- function() {
  from <- file.path(traces_folder(), "freebsd", "siftr-14.0.log.xz")
  skip_if_not(file.exists(from), "the repository's traces are not beside the package")
  text_file(lines_of(xzfile(from)))
}

text_file <- function(lines, end = "\n", sep = "\n") {
  path <- tempfile(fileext = ".log")
  writeBin(charToRaw(paste0(paste(lines, collapse = sep), end)), path)
  path
}

# Return the lines of a SIFTR log with `change` applied to the fields of each record; the header and footer stay.
as_layout <- function(lines, change) {
  record <- grepl("^[io],", lines)
  lines[record] <- vapply(strsplit(lines[record], ","), \(f) paste(change(f), collapse = ","), "")
  lines
}
