# Write figures, tables and data of an analysis into bundle/ and tables/.

# Files are written under another name, then renamed, so that no reader sees a partial file.

write_whole <- function(path, write) {
  dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
  partial <- paste0(path, ".part")
  write(partial)
  if (!file.rename(partial, path)) cli::cli_abort("{.path {path}} cannot be written.", class = "samovar_error_write", call = NULL)
  invisible(path)
}

write_csv <- function(x, path) write_whole(path, \(to) data.table::fwrite(x, to, na = "NA", eol = "\n"))

write_json <- function(x, path) {
  text <- jsonlite::toJSON(x, auto_unbox = TRUE, pretty = TRUE, digits = NA, null = "null", na = "null")
  write_whole(path, \(to) writeLines(text, to, useBytes = TRUE))
}

#' Write a figure as a vector PDF; the same data give the same bytes
#'
#' Fonts are embedded, so that a document with the figure looks the same everywhere.
#'
#' @param plot A ggplot.
#' @param path File to write.
#' @param width_in,height_in Size, inches.
#' @param date Creation date to write into the file, as POSIXct: the date of the data.
#' @return `path`, invisibly.
#' @examples
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' windows <- throughput_windows(receiver, width_s = 0.25, by = NULL)
#' plot <- plot_samples(windows[, .(t_s, value = throughput_bps / 1e6)], "Throughput (Mbit/s)", "step")
#' path <- tempfile(fileext = ".pdf")
#' write_figure(plot, path, width_in = 6.3, height_in = 3, date = as.POSIXct(attr(receiver, "epoch_s"), origin = "1970-01-01"))
#' file.size(path)
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

# The device writes local time with its offset from UTC.
in_utc <- function(code) {
  zone <- Sys.getenv("TZ", unset = NA)
  on.exit(if (is.na(zone)) Sys.unsetenv("TZ") else Sys.setenv(TZ = zone))
  Sys.setenv(TZ = "UTC")
  code
}

# The device writes the current time into the file: fourteen digits, replaced in place so that the file's offsets stay valid.
set_pdf_date <- function(path, date) {
  bytes <- readBin(path, "raw", file.size(path))
  stamp <- charToRaw(format(date, "%Y%m%d%H%M%S", tz = "UTC"))
  key <- "/CreationDate (D:"
  at <- grepRaw(key, bytes, fixed = TRUE)
  if (length(at) == 1) bytes[at + nchar(key) + seq_along(stamp) - 1L] <- stamp
  writeBin(bytes, path)
}

draw_figures <- function(results, entries, bundle, keeper) {
  drawn <- keeper$made("figure", named_entries(entries, "figure"), "bundle", \(one) one_figure(results, one$options, bundle, one$name))
  write_json(unname(Filter(\(d) is.null(d[["reason"]]), drawn)), file.path(bundle, "figures.json"))
  Filter(\(d) !is.null(d[["reason"]]), drawn)
}

named_entries <- function(entries, kind) Map(\(options, name) list(options = options, name = name), entries, entry_names(entries, kind), USE.NAMES = FALSE)

one_figure <- function(results, options, bundle, name) {
  made <- or_reason(make_output(results, options))
  if (!is.null(made[["reason"]])) return(list(name = name, reason = made[["reason"]]))
  file <- file.path("figures", paste0(name, ".pdf"))
  data <- file.path("data", paste0(name, ".csv"))
  write_figure(made$plot, file.path(bundle, file), made$width_in, made$height_in, results$date)
  write_csv(ordered_rows(as.data.table(made$data), made$layout), file.path(bundle, data))
  list(name = name, file = file, title = made$title, caption = made$caption, width_in = made$width_in,
       height_in = made$height_in, data = data, axes = axes_of_plot(made$plot), layout = made$layout, trials = I(as.character(made$trials)))
}

# Rows in the order in which the page shows them: by the figure's panels and curves. Texts are in
# the order in which they first occur.
ordered_rows <- function(data, layout) {
  keys <- intersect(c(layout$facets, layout$curve), names(data))
  places <- lapply(keys, \(key) if (is.factor(data[[key]])) as.integer(data[[key]]) else match(data[[key]], unique(data[[key]])))
  if (length(keys) > 0) data[do.call(order, places)] else data
}

# Titles of the axes, and whether they are logarithmic: the report's page needs both to draw the data.
axes_of_plot <- function(plot) {
  lapply(c(x = "x", y = "y"), \(axis) {
    scale <- plot$scales$get_scales(axis)
    title <- if (is.character(scale$name)) scale$name else plot$labels[[axis]]
    list(title = sub(" [(]log scale[)]|, log scale", "", title %||% ""), log = identical(scale$trans$name, "log-10"))
  })
}

draw_tables <- function(results, entries, bundle, keeper) {
  drawn <- keeper$made("table", named_entries(entries, "table"), "bundle", \(one) one_table(results, one$options, bundle, one$name))
  write_json(unname(Filter(\(d) is.null(d[["reason"]]), drawn)), file.path(bundle, "tables.json"))
  Filter(\(d) !is.null(d[["reason"]]), drawn)
}

one_table <- function(results, options, bundle, name) {
  made <- or_reason(make_output(results, options))
  if (!is.null(made[["reason"]])) return(list(name = name, reason = made[["reason"]]))
  data <- file.path("data", paste0(name, ".csv"))
  write_csv(made$data, file.path(bundle, data))
  list(name = name, title = made$title, caption = made$caption, columns = made$columns,
       rows = lapply(made$rows, \(r) I(as.character(r))), data = data,
       trials = if (length(made$trials) > 0) I(as.character(made$trials)))
}

# A campaign without data for a figure is not an error: the figure is left out, with the reason.
or_reason <- function(expression) {
  tryCatch(expression, samovar_no_data = \(e) list(reason = conditionMessage(e)))
}

# Outputs made from the results, with a hash of their inputs: an output with unchanged inputs is not made again.

drawn_path <- function(folder) file.path(cache_folder(folder), "drawn")

#' Return a hash of all inputs of a campaign's figures and tables, including the code that draws them
#' @noRd
drawing_digest <- function(results) {
  campaign <- results$campaign
  code <- c(system.file(c("R/samovar.rdb", "libs/samovar.so", "outputs.yaml"), package = "samovar"), manifest$files)
  versions <- vapply(c("ggplot2", "data.table"), \(p) as.character(utils::packageVersion(p)), "")
  sha256_texts(paste(c(
    stack_digest(results$keys), sha256_files(c(file.path(campaign$folder, "plan.json"), code)), versions, R.version.string,
    results$left_out$id, results$left_out$reason, format(results$date, "%s")
  ), collapse = "\n"))
}

draw_all <- function(results, figures, tables, cores) {
  folder <- results$campaign$folder
  bundle <- file.path(folder, "bundle")
  keeper <- output_keeper(folder, drawing_digest(results), cores)
  keeper$made("table of trials", list("metrics", "summary", "flows"), "tables", \(name) in_folder(folder, paste0(name, ".csv"), results[[name]]))
  undrawn <- c(draw_figures(results, figures, bundle, keeper), draw_tables(results, tables, bundle, keeper))
  keeper$keep()
  undrawn
}

in_folder <- function(folder, name, table) {
  write_csv(table, file.path(folder, "tables", name))
  list(data = name)
}

#' Make outputs unless they exist and are up to date
#'
#' @param folder The campaign's folder.
#' @param digest Result of [drawing_digest()].
#' @param cores Number of outputs made in parallel.
#' @return A list of functions: `made(kind, entries, base, make)` returns the result of `make` for each entry, newly made or read from the store; the elements
#'   `file` and `data` of a result are files below `base`. `keep()` stores the list of outputs.
#' @noRd
output_keeper <- function(folder, digest, cores) {
  before <- store_read(drawn_path(folder))
  now <- list()
  sums <- \(base, one) sha256_files(file.path(folder, base, as.character(unlist(one[c("file", "data")]))))
  list(
    made = \(kind, entries, base, make) {
      texts <- vapply(entries, jsonlite::toJSON, "", auto_unbox = TRUE, digits = NA, null = "null")
      keys <- vapply(texts, \(text) sha256_texts(paste(digest, kind, text)), "", USE.NAMES = FALSE)
      kept <- lapply(keys, \(key) before[[key]])
      missing <- !vapply(kept, \(one) !is.null(one) && identical(one$sums, sums(base, one$made)), TRUE)
      kept[missing] <- make_all(entries[missing], cores, \(entry) {
        made <- make(entry)
        list(made = made, sums = sums(base, made))
      })
      now[keys] <<- kept
      lapply(kept, `[[`, "made")
    },
    keep = \() if (!identical(before, now)) store_write(now, drawn_path(folder))
  )
}

# An error in a worker process is raised here. An output whose process was killed, for example because memory was short, is made again, alone.
make_all <- function(entries, cores, make) {
  made <- vector("list", length(entries))
  if (length(entries) > 1) loadNamespace("ggplot2") # once, not in each process
  share_out(entries, cores, \(entry) tryCatch(make(entry), error = identity), \(i, one) {
    if (is.null(one)) one <- make(entries[[i]])
    if (inherits(one, "error")) stop(one)
    made[[i]] <<- one
  })
  made
}

used_paths <- function(folder, keys) {
  stacks <- outer(derived_tables, stack_digests(keys), \(name, digest) stack_path(folder, name, digest))
  c(index_path(folder), drawn_path(folder), entry_path(folder, keys), stacks)
}
