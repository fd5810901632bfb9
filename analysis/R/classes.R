# Classes of the tables and lists that users hold: how they are printed, summarised, drawn, joined by rows and merged.

# A series is a table over time of one quantity; its attribute `quantity` has the `column`, the `title` with the unit, and the `form` in which it is
# drawn. A table that data.table computes from a series keeps the class, but not the attributes; it is then treated as a plain table.
as_series <- function(x, column, title, form = "points") {
  setattr(x, "class", c("samovar_series", "data.table", "data.frame"))
  setattr(x, "quantity", list(column = column, title = title, form = form))
  x[]
}

is_series <- function(x) {
  column <- attr(x, "quantity")$column
  !is.null(column) && column %in% names(x) && !is.null(attr(x, "epoch_s")) && any(c("t_ns", "t_s") %in% names(x))
}

plain_table <- function(x) {
  x <- copy(x)
  setattr(x, "class", c("data.table", "data.frame"))[]
}

# Return the times of the rows, in seconds since `epoch_s`. The `t_s` of a window counts from the capture's earliest packet.
times_s <- function(x) if ("t_ns" %in% names(x)) x$t_ns / 1e9 else x$t_s + (attr(x, "origin_ns") %||% 0) / 1e9

span_words <- function(x) {
  at_s <- suppressWarnings(range(times_s(x), na.rm = TRUE))
  if (!all(is.finite(at_s))) return("")
  first <- format(as.POSIXct(attr(x, "epoch_s") + at_s[1], origin = "1970-01-01", tz = "UTC"), "%Y-%m-%d %H:%M:%S UTC")
  paste0(" in ", format(signif(diff(at_s), 4)), " s from ", first)
}

#' Series and campaigns: print, summary, autoplot, rbind and merge
#'
#' Tables of one quantity over time, such as [packet_pair_rtt()] and [throughput_windows()] return, are data.tables of class `samovar_series`. All functions
#' of data.table work on them. [read_campaign()] returns a list of class `samovar_campaign`.
#'
#' - `print()` shows the time span, and how many packets of the captures were matched, above the rows of a series. Unlike a data.table, a series is also
#'   printed at the prompt after `:=`.
#' - `summary()` of a series has the quantiles of its quantity, by flow or direction; `summary()` of a campaign counts the trials of each treatment.
#' - `ggplot2::autoplot()` draws a series over time, or the levels of a campaign's factors by trial.
#' - `rbind()` converts times to one `epoch_s` (and windows to one origin) before it joins rows, adds up counts such as `matched`, and keeps the attributes
#'   that are equal in all tables. A message of class `samovar_message_lost` names the attributes that are not kept.
#' - `merge()` converts the times of `y` to the `epoch_s` of `x`, keeps the attributes of `x`, and keeps the order of the rows of `x` unless `sort` is
#'   TRUE.
#'
#' Captures are plain data.tables. A selection of rows keeps the capture's attributes; `rbind()` of captures loses them, and measure functions reject the
#' result.
#'
#' @param x,object A series or campaign.
#' @param y A table.
#' @param ... For `rbind()`, the series to join. Otherwise, further arguments of data.table's method.
#' @param use.names,fill,idcol As for [data.table::rbindlist()].
#' @param sort TRUE to sort by the columns of `by`, as data.table does.
#' @return `print()` returns `x`, `summary()` a data.table, `autoplot()` a ggplot, `rbind()` and `merge()` a series.
#' @name samovar_classes
#' @aliases samovar_series samovar_campaign
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' rtt <- packet_pair_rtt(sender, receiver, data_flows(sender)$flow[1])
#' rtt
#' summary(rtt)
#' ggplot2::autoplot(rtt)
#'
#' # The RTTs of two trials, on one time axis.
#' window <- lapply(c("window-sender.pcap.gz", "window-receiver.pcap.gz"), \(name) read_pcap(samovar_example(name)))
#' rbind(rtt, packet_pair_rtt(window[[1]], window[[2]], data_flows(window[[1]])$flow[1]))
#'
#' campaign <- read_campaign(samovar_example("campaign"))
#' campaign
#' summary(campaign)
#' ggplot2::autoplot(campaign)
NULL

#' @rdname samovar_classes
#' @exportS3Method
print.samovar_series <- function(x, ...) {
  if (is_series(x)) writeLines(paste("#", series_words(x)))
  NextMethod()
}

series_words <- function(x) {
  counts <- vapply(intersect(c("matched", "unmatched", "ambiguous"), names(attributes(x))), \(name) as.double(attr(x, name)), 0)
  c(paste0(attr(x, "quantity")$title, ": ", nrow(x), if (nrow(x) == 1) " row" else " rows", span_words(x)),
    if (length(counts) > 0) paste("packets of both captures:", paste(counts, names(counts), collapse = ", ")))
}

#' @rdname samovar_classes
#' @exportS3Method
print.samovar_campaign <- function(x, ...) {
  left <- nrow(x$left_out)
  levels <- vapply(x$factors, \(name) paste(factor_levels(x, name), collapse = ", "), "")
  writeLines(c(
    paste0("Campaign ", basename(x$folder), if (is_text(x$plan$title)) paste0(": ", x$plan$title)),
    paste0(nrow(x$trials), " of ", length(x$plan$trials), " planned trials", if (left > 0) paste0("; left out: ", reason_counts(x$left_out$reason))),
    if (length(levels) > 0) paste0("  ", format(names(levels)), "  ", levels)
  ))
  invisible(x)
}

#' @rdname samovar_classes
#' @exportS3Method
summary.samovar_series <- function(object, ...) {
  if (!is_series(object)) return(NextMethod())
  quantity <- attr(object, "quantity")
  by <- intersect(c("flow", "direction"), names(object))
  values <- cbind(plain_table(object)[, by, with = FALSE], value = as.double(object[[quantity$column]]))
  quantiles <- \(value) {
    known <- value[!is.na(value)]
    at <- stats::quantile(known, c(0, 0.05, 0.5, 0.95, 1), names = FALSE)
    list(n = length(known), min = at[1], p5 = at[2], median = at[3], mean = mean(known), p95 = at[4], max = at[5])
  }
  data.table(quantity = quantity$title, values[, quantiles(value), by = by])
}

#' @rdname samovar_classes
#' @exportS3Method
summary.samovar_campaign <- function(object, ...) {
  planned <- planned_trials(object)
  planned[, verdict := object$trials$verdict[match(id, object$trials$id)]]
  planned[, .(planned = .N, valid = sum(verdict %in% "valid"), suspect = sum(verdict %in% "suspect"), left_out = sum(is.na(verdict))), by = c("part", object$factors)]
}

#' @rdname samovar_classes
#' @exportS3Method ggplot2::autoplot
autoplot.samovar_series <- function(object, ...) {
  if (!is_series(object)) return(NextMethod())
  quantity <- attr(object, "quantity")
  parts <- intersect(c("flow", "direction"), names(object))
  drawn <- data.table(t_s = times_s(object), value = as.double(object[[quantity$column]]))
  if (length(parts) > 0) drawn[, flow := object[[parts[1]]]]
  plot_samples(drawn, quantity$title, quantity$form, if (identical(parts[1], "direction")) "Direction" else "Flow")
}

#' @rdname samovar_classes
#' @exportS3Method ggplot2::autoplot
autoplot.samovar_campaign <- function(object, ...) figure_design(list(campaign = object), planned_trials(object))$plot

# --- Rows of several tables, and merging

#' @rdname samovar_classes
#' @exportS3Method
rbind.samovar_series <- function(..., use.names = TRUE, fill = FALSE, idcol = NULL) rbind_timed(list(...), use.names, fill, idcol)

# For each column of times, the attribute that holds its epoch: the second from which its times are counted.
epoch_attributes <- c(t_ns = "epoch_s", sent_ns = "epoch_s", arrival_ns = "arrival_epoch_s")
counted_attributes <- c("matched", "unmatched", "ambiguous", "floored")

rbind_timed <- function(tables, use.names, fill, idcol) {
  tables <- Filter(Negate(is.null), tables)
  bind <- \(tables) rbindlist(lapply(tables, plain_table), use.names = use.names, fill = fill, idcol = idcol)
  whole <- vapply(tables, is_series, TRUE)
  if (!all(whole)) {
    if (any(whole)) lost_message("rbind()", "epoch_s", "one of the tables is not a series")
    return(bind(tables))
  }
  tables <- on_one_epoch(tables)
  bound <- bind(tables)
  setattr(bound, "class", class(tables[[1]]))
  kept <- setdiff(unique(unlist(lapply(tables, \(x) names(attributes(x))))), c("names", "row.names", "class", ".internal.selfref", "sorted", "index"))
  lost <- character()
  for (name in kept) {
    values <- lapply(tables, attr, name)
    if (name %in% counted_attributes) values <- list(Reduce(`+`, values))
    if (name == "matching") values <- list(rbindlist(values))
    same <- all(vapply(values[-1], \(value) isTRUE(all.equal(value, values[[1]])), TRUE))
    if (same) setattr(bound, name, values[[1]]) else lost <- c(lost, name)
  }
  if (length(lost) > 0) lost_message("rbind()", lost, "the tables have different values")
  bound[]
}

# Return copies of the tables in which times count from the earliest epoch of all tables, and windows from the
# earliest origin.
on_one_epoch <- function(tables) {
  tables <- lapply(tables, copy)
  for (name in unique(epoch_attributes)) {
    epochs <- lapply(tables, attr, name)
    if (any(vapply(epochs, is.null, TRUE))) next
    for (x in tables) shift_columns(x, names(epoch_attributes)[epoch_attributes == name], name, min(unlist(epochs)))
  }
  origins_ns <- lapply(tables, attr, "origin_ns")
  if (!any(vapply(origins_ns, is.null, TRUE))) for (x in tables) {
    if ("t_s" %in% names(x)) set(x, NULL, "t_s", x$t_s + (attr(x, "origin_ns") - min(unlist(origins_ns))) / 1e9)
    setattr(x, "origin_ns", min(unlist(origins_ns)))
  }
  tables
}

# Shift columns of times in place, so that they count from the second `to_s`.
shift_columns <- function(x, columns, name, to_s) {
  by_ns <- (attr(x, name) - to_s) * 1e9
  if (by_ns != 0) {
    for (column in intersect(columns, names(x))) set(x, NULL, column, x[[column]] + by_ns)
    if (name == "epoch_s" && !is.null(attr(x, "origin_ns"))) setattr(x, "origin_ns", attr(x, "origin_ns") + by_ns)
  }
  setattr(x, name, to_s)
}

lost_message <- function(what, names, why) {
  cli::cli_inform("{what} does not keep {.val {names}}: {why}", class = "samovar_message_lost")
}

#' @rdname samovar_classes
#' @exportS3Method
merge.samovar_series <- function(x, y, ..., sort = FALSE) merge_timed(x, y, ..., sort = sort)

merge_timed <- function(x, y, ..., sort) {
  y <- plain_table(as.data.table(y))
  for (name in unique(epoch_attributes)) {
    if (!is.null(attr(x, name)) && !is.null(attr(y, name))) shift_columns(y, names(epoch_attributes)[epoch_attributes == name], name, attr(x, name))
  }
  merged <- merge(plain_table(x), y, ..., sort = sort)
  with_attributes(setattr(merged, "class", class(x)), x)[]
}
