# Read the manifests of metrics, figures and tables: inst/outputs.yaml, which Python reads too, and a project's outputs.yaml.

manifest <- new.env()

#' Names of the metrics, figures or tables of the analysis
#'
#' The names come from the manifest of the package, `outputs.yaml`, and from the manifest of the analysed project.
#'
#' @param kind "metric", "figure" or "table".
#' @return Names, in the order of the manifest.
#' @examples
#' known_names("table")
#' head(known_names("metric"))
#' @export
known_names <- function(kind = c("figure", "table", "metric")) names(outputs_of(match.arg(kind)))

outputs_of <- function(kind) {
  if (is.null(manifest$outputs)) manifest$outputs <- package_outputs()
  manifest$outputs[[switch(kind, quantity = "quantities", series = "series", paste0(kind, "s"))]]
}

# Return the loggers that record a quantity, the best first. If `name` is the name of a logger, return only this name.
sources_of <- function(name) outputs_of("quantity")[[name]]$sources %||% name

package_outputs <- function() yaml::read_yaml(package_manifest())

package_manifest <- function() system.file("outputs.yaml", package = "samovar")

#' Add the metrics, figures and tables of a project
#'
#' An entry overrides the package's entry with the same name. A folder without `outputs.yaml` adds nothing. The folder's R files are evaluated in a
#' separate environment that sees all functions of the package, exported or not.
#'
#' @param folder The folder `analysis/` of a project, or NULL.
#' @noRd
use_project <- function(folder) {
  manifest$outputs <- package_outputs()
  manifest$code <- manifest$own_metrics <- NULL
  manifest$files <- character()
  path <- file.path(folder %||% "", "outputs.yaml")
  if (is.null(folder) || !file.exists(path)) return(invisible())
  own <- yaml::read_yaml(path)
  for (kind in names(manifest$outputs)) {
    manifest$outputs[[kind]][names(own[[kind]])] <- own[[kind]]
  }
  manifest$own_metrics <- names(own$metrics)
  scripts <- sort(list.files(folder, "[.][Rr]$", full.names = TRUE))
  manifest$code <- new.env(parent = topenv())
  for (script in scripts) sys.source(script, manifest$code)
  manifest$files <- c(path, scripts)
}

# Return the function with this name from the project or, if the project has none, from the package.
function_named <- function(name) {
  found <- get0(name, envir = manifest$code %||% topenv(), mode = "function")
  if (is.null(found)) cli::cli_abort("outputs.yaml names the function {.fn {name}}, which is missing; define it in an R file beside outputs.yaml.", class = "samovar_error_name", call = NULL)
  found
}

# --- Metrics

# Rows of metrics.csv; the manifest has the unit of each metric.
metric_rows <- function(flow, values) {
  data.table(flow = flow, metric = names(values), unit = metric_unit(names(values)), value = unname(vapply(values, as.double, 0)))
}

metric_unit <- function(names) {
  known <- outputs_of("metric")
  for (name in setdiff(names, names(known))) abort_choice("Unknown metric", name, names(known))
  vapply(known[names], \(m) m$unit, "", USE.NAMES = FALSE)
}

# Names of the functions that measure a flow, an application, a trial or a campaign, in the order of the manifest.
metric_functions <- function(scope) {
  ours <- Filter(\(m) identical(m$scope %||% "flow", scope), outputs_of("metric"))
  unique(vapply(ours, \(m) m[["function"]], "", USE.NAMES = FALSE))
}

#' Metrics of a flow, application or trial, from all functions of its scope
#' @param scope "flow", "application" or "trial".
#' @param subject Everything known about the flow, application or trial: the argument of each function.
#' @return A named list of numbers.
#' @noRd
measured_metrics <- function(scope, subject) {
  values <- lapply(metric_functions(scope), \(name) {
    found <- function_named(name)(subject)
    if (is.null(found) || is.list(found)) return(found)
    stats::setNames(list(found), names(Filter(\(m) m[["function"]] == name, outputs_of("metric"))))
  })
  do.call(c, values)
}

# --- Figures and tables

#' Draw a figure or make a table
#'
#' A figure named `buffer-cdf` is drawn by the function `figure_buffer_cdf(results, trials, ...)`, a table named `cc-comparison` is made by
#' `table_cc_comparison(results, trials, ...)`. Further arguments are the options in the manifest.
#'
#' @param results Results of a campaign, see [analyse_campaign()].
#' @param entry Entry of the experiment: a list with `figure` or `table`, and options.
#' @return The function's result: a list with `data`, `trials`, `title`, `caption`; also `plot`, `width_in` and `height_in` for a figure, or `columns`
#'   and `rows` for a table.
#' @noRd
make_output <- function(results, entry) {
  kind <- intersect(c("figure", "table"), names(entry))
  make <- function_named(paste0(kind, "_", gsub("-", "_", entry[[kind]])))
  made <- do.call(make, c(list(results, select_trials(results, entry)), option_values(entry)))
  if (!is.null(entry$title)) made$title <- entry$title
  made$caption <- sentences(made$caption, made$sources %||% source_words(results$campaign, made$trials, metrics_of(entry)))
  made
}

# The metrics that a figure or table shows, according to the manifest or the entry's options.
metrics_of <- function(entry) {
  output <- output_of(entry)
  named <- Filter(\(o) identical(o$type, "metric"), output$options)
  unique(c(unlist(output$shows), unlist(entry[names(named)])))
}

output_of <- function(entry) {
  kind <- intersect(c("figure", "table"), names(entry))
  known <- outputs_of(kind)
  if (!entry[[kind]] %in% names(known)) abort_choice(paste("Unknown", kind), entry[[kind]], names(known))
  known[[entry[[kind]]]]
}

# An entry of `figures:` or `tables:` is a name, or a name with options. If the entry was read from JSON,
# the values of its options are lists.
as_entry <- function(entry, kind) {
  options <- if (is.character(entry)) stats::setNames(list(entry[1]), kind) else entry
  if (is.null(options[[kind]])) {
    cli::cli_abort("An entry of {kind}s must name its {kind}, as in {.code {kind}: {known_names(kind)[1]}}.",
                   class = "samovar_error_name", call = NULL)
  }
  options
}

# The name of "buffer-cdf" with `method` 1 and `part` buffer is "buffer-cdf-1-buffer".
entry_name <- function(options, kind) {
  chosen <- options[setdiff(names(options), c(kind, "title", "published"))]
  text <- c(options[[kind]], vapply(chosen, \(v) paste(unlist(v), collapse = "-"), ""))
  gsub("[^A-Za-z0-9.]+", "-", paste(text, collapse = "-"))
}

# Names of all figures or tables of a plan. If several have the same name, such as bars with `overlay: cc` and with `facet: cc`, the later ones end in -2,
# -3 and so on. output_names() in samovar/report/document.py makes the same names.
entry_names <- function(entries, kind) {
  names <- character()
  for (entry in entries) {
    plain <- entry_name(entry, kind)
    candidates <- c(plain, paste0(plain, "-", seq_len(length(names) + 1L) + 1L))
    names <- c(names, setdiff(candidates, names)[1])
  }
  names
}

# Return the options that an entry sets for a figure or table, as arguments for the function that makes it.
option_values <- function(entry) {
  options <- output_of(entry)$options
  for (name in names(options)) {
    if (isTRUE(options[[name]]$required) && is.null(entry[[name]])) abort_nothing(paste0("the option `", name, "` is missing"))
  }
  given <- stats::setNames(nm = intersect(names(options), names(entry)))
  lapply(given, \(name) option_value(name, entry[[name]], options[[name]]))
}

option_value <- function(name, value, option) {
  type <- option$type %||% "text"
  if (type == "published") return(value)
  value <- unlist(value)
  if (type %in% c("seconds", "moment")) return(seconds_option(name, value, type == "moment"))
  measures <- if (type == "measure") c(names(outputs_of("metric")), names(outputs_of("series")))
  for (one in setdiff(value, measures %||% value)) abort_choice("Unknown metric or series", one, measures)
  if (type == "series") for (one in setdiff(value, names(outputs_of("series")))) abort_choice("Unknown series", one, names(outputs_of("series")))
  for (one in setdiff(value, option$values %||% value)) abort_choice(paste("Unknown", name), one, option$values)
  value
}

# Convert a text to seconds: "6s" or "6" to 6, and "all" to Inf. Only a moment can be 0.
seconds_option <- function(name, text, moment = FALSE) {
  if (identical(text, "all")) return(Inf)
  value <- suppressWarnings(as.double(sub("s$", "", text)))
  if (isTRUE(value > 0 || (moment && value == 0))) return(value)
  cli::cli_abort("Option {name}: {.val {text}} is not a number of seconds such as {.val 5s}.", class = "samovar_error_figure", call = NULL)
}

#' The trials that the options of a figure or table select
#'
#' Such options are `part`, `trial`, and any factor with one level or a list of levels.
#' @param results Results of a campaign, see [analyse_campaign()].
#' @param entry Entry of the experiment.
#' @return Rows of `results$campaign$trials`, or of the table of all planned trials if the manifest has `trials: planned` for this output.
#'   Attribute `selected_by` names the options.
#' @noRd
select_trials <- function(results, entry) {
  campaign <- results$campaign
  output <- output_of(entry)
  trials <- if (identical(output$trials, "planned")) planned_trials(campaign) else campaign$trials
  columns <- c(part = "part", trial = "id", stats::setNames(nm = campaign$factors))
  known <- c(names(columns), names(output$options), "title")
  options <- setdiff(names(entry), c("figure", "table"))
  for (name in options) {
    if (!name %in% known) abort_choice("Unknown option", name, known)
    if (!name %in% names(columns)) next
    trials <- keep_levels(trials, columns[[name]], unlist(entry[[name]]), known_levels(campaign, name))
  }
  if (nrow(trials) == 0) abort_nothing("no trial matches the options")
  setattr(copy(trials), "selected_by", intersect(options, names(columns)))
}

keep_levels <- function(trials, column, wanted, known) {
  wanted <- as.character(wanted)
  for (level in setdiff(wanted, known)) abort_choice(paste("Unknown", column), level, known)
  trials[trials[[column]] %in% wanted]
}

known_levels <- function(campaign, name) {
  switch(name,
    part = vapply(campaign$plan$parts, \(p) p$name, ""),
    trial = vapply(campaign$plan$trials, \(t) t$id, ""),
    factor_levels(campaign, name)
  )
}

# Levels in the order that all figures and tables use: by value if they are quantities, else as in the experiment file.
factor_levels <- function(campaign, name) in_order_of_value(planned_levels(campaign, name))

# Levels in the order of the experiment file, over all its parts.
planned_levels <- function(campaign, name) unique(as.character(unlist(lapply(campaign$plan$parts, \(p) p$factors[[name]]))))

# Trials with the largest receive window, unless options select windows or trials.
at_largest_rwnd <- function(campaign, trials) {
  if (!"rwnd" %in% campaign$factors || any(c("rwnd", "trial") %in% attr(trials, "selected_by"))) return(trials)
  bytes <- parse_quantity(trials$rwnd, "size")
  if (all(is.na(bytes))) return(trials)
  trials[bytes %in% max(bytes, na.rm = TRUE)]
}

# The rows of the named flows, or all rows if none is named. "voip" names voip, and also voip-1, voip-2, ... if the flow has a count.
of_flows <- function(rows, flows) {
  if (is.null(flows)) return(rows)
  rows[flow %in% flows | flow_label(flow) %in% flows]
}

# --- Errors

abort_choice <- function(what, name, known) {
  near <- known[which.min(utils::adist(name, known, ignore.case = TRUE))]
  cli::cli_abort("{what} {.val {name}}; did you mean {.val {near}}? Known: {.val {known}}.",
                 class = "samovar_error_name", call = NULL)
}

# The message of an error or warning on one line. cli breaks messages at the width of a terminal, also if R has none.
message_line <- function(condition) gsub("\n", " ", cli::ansi_strip(conditionMessage(condition)), fixed = TRUE)

# Run a script of inst/. A failure is reported by one message on standard error. The exit status is 3 if the message is about the user's input, which
# samovar's own errors are, and 1 if R failed.
report_failure <- function(code) {
  tryCatch(code, error = \(e) {
    message(message_line(e))
    quit(status = if (any(startsWith(class(e), "samovar_error"))) 3 else 1)
  })
}

# This is not a user's error: the campaign has no data for a figure. The report shows the reason in the figure's place.
abort_nothing <- function(what) stop(errorCondition(what, class = "samovar_no_data", call = NULL))
