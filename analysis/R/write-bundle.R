# Files of bundle/ and tables/: written beside, then renamed, so that a reader never meets half a file.

write_whole <- function(path, write) {
  dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
  beside <- paste0(path, ".part")
  write(beside)
  if (!file.rename(beside, path)) cli::cli_abort("{.path {path}} cannot be written.", class = "samovar_error_write", call = NULL)
  invisible(path)
}

write_csv <- function(x, path) write_whole(path, \(to) data.table::fwrite(x, to, na = "NA", eol = "\n"))

write_json <- function(x, path) {
  text <- jsonlite::toJSON(x, auto_unbox = TRUE, pretty = TRUE, digits = NA, null = "null", na = "null")
  write_whole(path, \(to) writeLines(text, to, useBytes = TRUE))
}

#' Write a figure as a vector PDF, the same bytes for the same data
#'
#' Fonts are embedded: a document that holds the figure then looks the same everywhere.
#'
#' @param plot A ggplot.
#' @param path Where to.
#' @param width_in,height_in Size, inches.
#' @param date Moment to write into the file in place of now: the data's, as POSIXct.
#' @return `path`, invisibly.
#' @export
write_figure <- function(plot, path, width_in, height_in, date) {
  write_whole(path, \(to) {
    in_utc({
      grDevices::cairo_pdf(to, width = width_in, height = height_in, family = "DejaVu Sans")
      tryCatch(print(plot), finally = grDevices::dev.off())
    })
    set_pdf_date(to, date)
  })
}

# The device writes local time with its distance from UTC.
in_utc <- function(code) {
  zone <- Sys.getenv("TZ", unset = NA)
  on.exit(if (is.na(zone)) Sys.unsetenv("TZ") else Sys.setenv(TZ = zone))
  Sys.setenv(TZ = "UTC")
  code
}

# The device writes the clock into the file: fourteen digits, replaced in place so that the file's offsets hold.
set_pdf_date <- function(path, date) {
  bytes <- readBin(path, "raw", file.size(path))
  stamp <- charToRaw(format(date, "%Y%m%d%H%M%S", tz = "UTC"))
  key <- "/CreationDate (D:"
  at <- grepRaw(key, bytes, fixed = TRUE)
  if (length(at) == 1) bytes[at + nchar(key) + seq_along(stamp) - 1L] <- stamp
  writeBin(bytes, path)
}

draw_figures <- function(results, entries, bundle, keeper) {
  drawn <- keeper$made("figure", entries, "bundle", \(options) one_figure(results, options, bundle))
  write_json(unname(Filter(\(d) is.null(d[["reason"]]), drawn)), file.path(bundle, "figures.json"))
  Filter(\(d) !is.null(d[["reason"]]), drawn)
}

one_figure <- function(results, options, bundle) {
  name <- entry_name(options, "figure")
  made <- or_reason(make_output(results, options))
  if (!is.null(made[["reason"]])) return(list(name = name, reason = made[["reason"]]))
  file <- file.path("figures", paste0(name, ".pdf"))
  data <- file.path("data", paste0(name, ".csv"))
  write_figure(made$plot, file.path(bundle, file), made$width_in, made$height_in, results$date)
  write_csv(made$data, file.path(bundle, data))
  list(name = name, file = file, title = made$title, caption = made$caption, width_in = made$width_in,
       height_in = made$height_in, data = data, trials = I(as.character(made$trials)))
}

draw_tables <- function(results, entries, bundle, keeper) {
  drawn <- keeper$made("table", entries, "bundle", \(options) one_table(results, options, bundle))
  write_json(unname(Filter(\(d) is.null(d[["reason"]]), drawn)), file.path(bundle, "tables.json"))
  Filter(\(d) !is.null(d[["reason"]]), drawn)
}

one_table <- function(results, options, bundle) {
  name <- entry_name(options, "table")
  made <- or_reason(make_output(results, options))
  if (!is.null(made[["reason"]])) return(list(name = name, reason = made[["reason"]]))
  data <- file.path("data", paste0(name, ".csv"))
  write_csv(made$data, file.path(bundle, data))
  list(name = name, title = made$title, caption = made$caption, columns = made$columns,
       rows = lapply(made$rows, \(r) I(as.character(r))), data = data,
       trials = if (length(made$trials) > 0) I(as.character(made$trials)))
}

# A campaign without data for a figure is no error: the figure is left out and the reason kept.
or_reason <- function(expression) {
  tryCatch(expression, samovar_no_data = \(e) list(reason = conditionMessage(e)))
}
