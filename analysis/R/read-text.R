# What the readers of text logs share.

check_files <- function(path, wanted) {
  if (!is.character(path) || length(path) == 0 || anyNA(path)) {
    cli::cli_abort("{.arg path}: no file name; the path of {wanted} would have been accepted", class = "samovar_error_argument",
                   call = NULL)
  }
  absent <- path[!file.exists(path)]
  if (length(absent) > 0) {
    cli::cli_abort("{absent[1]}: no such file; {wanted} would have been accepted", class = "samovar_error_file", call = NULL)
  }
  invisible(path)
}

#' Lines of one log, plain or gzip, in ASCII
#'
#' Bytes that no log of ours holds (zeros, those beyond ASCII, which only names and translated words have) become question marks.
#' @return A list: `text`, `cut` (whether the last line has no end).
#' @noRd
text_lines <- function(path, wanted) {
  if (length(path) != 1) abort_log(path[1], NULL, "more than one file", wanted)
  check_files(path, wanted)
  bytes <- whole_bytes(path)
  if (length(bytes) == 0) abort_log(path, NULL, "empty or not readable", wanted)
  text <- strsplit(rawToChar(ascii_only(bytes)), "\r?\n", perl = TRUE)[[1]]
  list(text = text, cut = bytes[length(bytes)] != 10)
}

abort_log <- function(path, line, what, wanted) {
  where <- if (is.null(line)) path else paste0(path, ":", line)
  cli::cli_abort("{where}: {what}; {wanted} would have been accepted", class = "samovar_error_log", call = NULL)
}

# The parts of each line that a pattern finds, a column each; lines without are left out. `line` is where it was.
match_lines <- function(text, pattern, names) {
  found <- regmatches(text, regexec(pattern, text, perl = TRUE))
  at <- which(lengths(found) > 0)
  parts <- matrix(as.character(unlist(found[at])), ncol = length(names) + 1L, byrow = TRUE)
  x <- as.data.table(parts[, -1, drop = FALSE])
  setnames(x, names)
  x[, line := at][]
}

# A number as programs write it, of any language: decimal comma or point. What is no number is NA.
as_number <- function(text) {
  plain <- grepl("^ *-?[0-9]{1,18}([.,][0-9]*)?([eE][-+]?[0-9]{1,2})? *$", text)
  value <- rep(NA_real_, length(text))
  value[plain] <- as.numeric(sub(",", ".", text[plain], fixed = TRUE))
  value
}

decimal_number <- "([0-9]+(?:[.,][0-9]+)?)"

binary_units <- c(1, K = 2^10, M = 2^20, G = 2^30, T = 2^40)
metric_prefixes <- c(1, K = 1e3, k = 1e3, M = 1e6, G = 1e9, T = 1e12)

unit_of <- function(letter, units) unname(units[match(letter, names(units))])

# A log whose first line tells what it is otherwise.
first_line <- function(text) {
  at <- which(nzchar(trimws(text)))
  if (length(at) > 0) at[1] else 1L
}
