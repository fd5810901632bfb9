# Recorded files that are installed with the package, for examples.

#' Recorded files for examples
#'
#' Captures, logs and a small campaign that are installed with the package, all of them recorded from real traffic; `data-raw/make-extdata.sh` in the
#' sources made them.
#'
#' @param name Name of a file or of the folder `campaign`; NULL lists the names.
#' @return The path, or the names.
#' @examples
#' samovar_example()
#' samovar_example("ping.txt")
#' @export
samovar_example <- function(name = NULL) {
  folder <- system.file("extdata", package = "samovar", mustWork = TRUE)
  known <- list.files(folder)
  if (is.null(name)) return(known)
  if (is.character(name) && length(name) == 1 && name %in% known) return(file.path(folder, name))
  cli::cli_abort("{.arg name}: {.val {name}} is not an example; expected one of {.val {known}}", class = "samovar_error_argument", call = NULL)
}
