# What the readers of text logs share.

check_files <- function(path, wanted) {
  if (!is.character(path) || length(path) == 0 || anyNA(path)) {
    cli::cli_abort("{.arg path}: no file name; the path of {wanted} would have been accepted", class = "samovar_error_argument",
                   call = NULL)
  }
  absent <- path[!file.exists(path)]
  if (length(absent) > 0) {
    cli::cli_abort("{.path {absent[1]}}: no such file; {wanted} would have been accepted", class = "samovar_error_file",
                   call = NULL)
  }
  invisible(path)
}
