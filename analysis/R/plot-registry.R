#' Figures and tables by the name an experiment gives them
#'
#' A figure named `buffer-cdf` is the function `figure_buffer_cdf(results, options)`, a table `cc-comparison` is
#' `table_cc_comparison(results, options)`: a new one is a new file with such a function.
#'
#' @param kind "figure" or "table".
#' @return Names, sorted.
#' @export
known_names <- function(kind = c("figure", "table")) {
  prefix <- paste0(match.arg(kind), "_")
  found <- ls(parent.env(environment()), pattern = paste0("^", prefix))
  gsub("_", "-", sub(prefix, "", found, fixed = TRUE))
}

#' @rdname known_names
#' @param name Name of a figure or table.
#' @export
drawer_of <- function(name, kind = c("figure", "table")) {
  kind <- match.arg(kind)
  known <- known_names(kind)
  if (!name %in% known) abort_choice(paste("Unknown", kind), name, known)
  get(paste0(kind, "_", gsub("-", "_", name)), envir = parent.env(environment()))
}

# The options that a figure or table reads itself: options$method makes `method` one.
own_options <- function(drawer) {
  text <- deparse(body(drawer))
  read <- regmatches(text, gregexpr("\\boptions\\$\\w+", text))
  unique(sub("options$", "", unlist(read), fixed = TRUE))
}

nearest_name <- function(name, known) known[which.min(utils::adist(name, known, ignore.case = TRUE))]

abort_choice <- function(what, name, known) {
  near <- nearest_name(name, known)
  cli::cli_abort("{what} {.val {name}}; did you mean {.val {near}}? Known: {.val {known}}.",
                 class = "samovar_error_name", call = NULL)
}

# An entry of `figures:` or `tables:` is a name, or a name with options; values come as lists from JSON.
as_entry <- function(entry, kind) {
  options <- if (is.character(entry)) stats::setNames(list(entry[1]), kind) else entry
  if (is.null(options[[kind]])) {
    cli::cli_abort("An entry of {kind}s names its {kind}, as in {.code {kind}: {known_names(kind)[1]}}.",
                   class = "samovar_error_name", call = NULL)
  }
  options
}

# "buffer-cdf" with method 1 and part buffer is "buffer-cdf-1-buffer": one file per set of options.
entry_name <- function(options, kind) {
  said <- options[setdiff(names(options), c(kind, "title", "published"))]
  text <- c(options[[kind]], vapply(said, \(v) paste(unlist(v), collapse = "-"), ""))
  gsub("[^A-Za-z0-9.]+", "-", paste(text, collapse = "-"))
}

#' The trials that a figure's options choose
#'
#' Options: `part`, `trial`, and any factor with one level or a list of levels.
#' @param results Results of a campaign, see [analyse_campaign()].
#' @param options A named list.
#' @param extra Names of options that the figure itself understands.
#' @return The rows of `results$campaign$trials`.
#' @noRd
select_trials <- function(results, options, extra = character()) {
  campaign <- results$campaign
  trials <- campaign$trials
  columns <- c(part = "part", trial = "id", stats::setNames(nm = campaign$factors))
  known <- c(names(columns), extra, "title")
  for (name in setdiff(names(options), c("figure", "table"))) {
    if (!name %in% known) abort_choice("Unknown option", name, known)
    if (!name %in% names(columns)) next
    trials <- keep_levels(trials, columns[[name]], unlist(options[[name]]), known_levels(campaign, name))
  }
  if (nrow(trials) == 0) abort_nothing("no trial fits the options")
  trials
}

keep_levels <- function(trials, column, wanted, known) {
  wanted <- as.character(wanted)
  for (level in setdiff(wanted, known)) abort_choice(paste("Unknown", column), level, known)
  trials[trials[[column]] %in% wanted]
}

# The rows of the flows that are named; all where none is. "voip" is voip and voip-1, voip-2: a flow with a count is several.
of_flows <- function(rows, flows) {
  wanted <- unlist(flows)
  if (is.null(wanted)) return(rows)
  rows[flow %in% wanted | flow_label(flow) %in% wanted]
}

known_levels <- function(campaign, name) {
  switch(name,
    part = vapply(campaign$plan$parts, \(p) p$name, ""),
    trial = vapply(campaign$plan$trials, \(t) t$id, ""),
    factor_levels(campaign, name)
  )
}

# Levels in the order of the plan, over all its parts.
factor_levels <- function(campaign, name) {
  unique(as.character(unlist(lapply(campaign$plan$parts, \(p) p$factors[[name]]))))
}

# Not an error of the user: a figure for which this campaign holds no data.
abort_nothing <- function(what) {
  cli::cli_abort("{what}", class = "samovar_no_data", call = NULL)
}

factor_titles <- c(cc = "Congestion control", rwnd = "Receive window", mtu = "MTU (bytes)", txd = "Transmit descriptors",
                   path.rate = "Rate", path.rtt = "Idle RTT", path.buffer = "Buffer", path.loss = "Loss",
                   path.aqm = "Queue discipline", part = "Part")

factor_title <- function(names) {
  titles <- factor_titles[names]
  paste(ifelse(is.na(titles), names, titles), collapse = ", ")
}

#' What sets the curves of a figure apart: the factors that vary among the trials
#' @return A list: `labels` (per trial, factor in the order of the plan), `title` (of the legend), `factors`.
#' @noRd
curves_of <- function(campaign, trials, but = character()) {
  candidates <- setdiff(c("part", campaign$factors), but)
  vary <- candidates[vapply(candidates, \(f) uniqueN(trials[[f]]) > 1, TRUE)]
  if (length(vary) == 0) vary <- intersect(c("cc", candidates), candidates)[1]
  ordered <- lapply(vary, \(f) factor(trials[[f]], levels = intersect(known_levels(campaign, f), trials[[f]])))
  labels <- droplevels(interaction(ordered, sep = ", ", lex.order = TRUE))
  list(labels = labels, title = factor_title(vary), factors = vary)
}
