# Write the titles and captions of figures and tables, and the texts in cells of tables.

# --- Curves, factors, metrics, units

factor_titles <- c(cc = "Congestion control", rwnd = "Receive window", mtu = "MTU (bytes)", txd = "Transmit descriptors",
                   path.rate = "Rate", path.rtt = "Idle RTT", path.buffer = "Buffer", path.loss = "Loss",
                   path.aqm = "Queue discipline", part = "Part", campaign = "Campaign")

factor_title <- function(names) {
  titles <- factor_titles[names]
  paste(ifelse(is.na(titles), names, titles), collapse = ", ")
}

#' Return the curves of a figure: one per combination of levels of the factors that vary among its trials
#' @param but Factors to ignore.
#' @param at_least Factors that distinguish curves even if they do not vary.
#' @return A list: `labels` (a factor with the curve of each trial, its levels in the order of [factor_levels()]), `title` (of the legend), `factors` (those
#'   that vary).
#' @noRd
curves_of <- function(campaign, trials, but = character(), at_least = NULL) {
  candidates <- setdiff(c("part", campaign$factors), but)
  vary <- candidates[vapply(candidates, \(f) uniqueN(trials[[f]]) > 1, TRUE)]
  vary <- union(vary, at_least)
  if (length(vary) == 0) vary <- utils::head(intersect(c("cc", candidates), candidates), 1)
  if (length(vary) == 0) return(list(labels = factor(rep("all", nrow(trials))), title = "", factors = character()))
  ordered <- lapply(vary, \(f) level_factor(campaign, f, trials[[f]]))
  labels <- droplevels(interaction(ordered, sep = ", ", lex.order = TRUE))
  list(labels = labels, title = factor_title(vary), factors = vary)
}

# Trials of a part without the factor have a dash as their level, which is the last in the order.
level_factor <- function(campaign, name, labels) {
  words <- fifelse(is.na(labels), "\u2013", as.character(labels))
  factor(words, levels = intersect(c(known_levels(campaign, name), "\u2013"), words))
}

# The title of the metric "rtt_median_ms" in ms is "RTT median (ms)".
metric_title <- function(metric, unit) {
  words <- gsub("_", " ", sub("_(ms|bps|share|packets|bytes|s|us|ppm)$", "", metric))
  words <- sub("^(rtt|owd)", "\\U\\1", words, perl = TRUE)
  paste0(capital(words), if (nzchar(unit)) paste0(" (", unit, ")"))
}

# The unit in which a metric is shown, and the factor to convert to it.
display_unit <- function(unit) {
  switch(unit, "bit/s" = list(scale = 1e-6, unit = "Mbit/s"), share = list(scale = 100, unit = "%"), list(scale = 1, unit = unit))
}

# --- Captions

sentences <- function(...) {
  parts <- trimws(c(...))
  parts <- parts[nzchar(parts)]
  paste(ifelse(grepl("[.]$", parts), parts, paste0(parts, ".")), collapse = " ")
}

capital <- function(text) paste0(toupper(substring(text, 1, 1)), substring(text, 2))

# The title of an axis within a sentence: "throughput (Mbit/s)", but "RTT (ms)" and "CPU busy (%)".
in_sentence <- function(title) sub("^([A-Z])(?=[a-z])", "\\L\\1", title, perl = TRUE)

count_words <- function(n, one) paste0(n, " ", one, if (n != 1) "s")

# The values that a logarithmic axis cannot show; NULL if all are positive. Samples are stated as a share, because they may stand for more samples.
log_words <- function(values, what, more = NULL) {
  hidden <- sum(values <= 0)
  if (hidden == 0) return(NULL)
  if (hidden == length(values)) abort_nothing(paste("a logarithmic axis shows only positive values, and all", what, "are zero or negative"))
  amount <- if (what == "samples") paste(percent_words(hidden / length(values)), "of the samples") else paste(hidden, "of", length(values), what)
  paste0("Not on the logarithmic axis, because they are zero or negative: ", amount, more)
}

# For 5 trials per point: "Bars: 93.75 % interval of the median (order statistics)."
interval_words <- function(n) {
  n <- sort(unique(n))
  enough <- n[n >= fewest_values]
  confidence <- percent_words(interval_confidence(enough))
  stated <- if (length(enough) == 1) {
    paste("Bars:", confidence, "interval of the median (order statistics)")
  } else if (length(enough) %in% 2:4) {
    paste0("Bars: interval of the median (order statistics), ", paste(confidence, "for", enough, "trials", collapse = ", "))
  } else if (length(enough) > 4) {
    span <- percent_words(range(interval_confidence(enough)))
    paste("Bars: interval of the median (order statistics) whose confidence depends on the number of trials:", paste(span, collapse = " to "))
  }
  sentences(stated, if (n[1] < fewest_values) paste("No interval: fewer than", fewest_values, "trials"))
}

percent_words <- function(share) paste(format_plain(signif(100 * share, 4)), "%")

bracket_words <- function(n) sub("^Bars:", "Brackets:", interval_words(n))

replicate_words <- function(n) {
  if (min(n) == max(n)) return(paste("median of", count_words(n[1], "trial"), "per point"))
  paste0("median of ", min(n), " to ", max(n), " trials per point")
}

flow_words <- function(flows) {
  if (is.null(flows)) return("")
  paste(if (length(flows) == 1) "Flow" else "Flows", paste(flows, collapse = ", "))
}

# "rwnd 9999KB, mtu 1500": the factors whose level is the same in all trials.
fixed_words <- function(campaign, trials, but = character()) {
  fixed <- setdiff(campaign$factors, but)
  fixed <- fixed[vapply(fixed, \(f) uniqueN(trials[[f]]) == 1 && !is.na(trials[[f]][1]), TRUE)]
  paste(vapply(fixed, \(f) paste(f, trials[[f]][1]), ""), collapse = ", ")
}

# The downstream configuration of the bottleneck, and the delay added in both directions together.
path_down <- function(manifest) c(manifest$resolved$path$down, manifest$resolved$path["rtt_s"])

# The direction whose queue the trial recorded; downstream if the trial did not record a queue.
path_queued <- function(manifest) {
  path <- manifest$resolved$path
  if (is_queued_upstream(manifest)) c(path$up, path["rtt_s"]) else path_down(manifest)
}

is_queued_upstream <- function(manifest) {
  at <- unlist(lapply(manifest$resolved$loggers, \(l) if (identical(l$logger, "queue")) l$interface))
  length(at) > 0 && at[1] %in% manifest$resolved$path$up$interface
}

# "40 Mbit/s, buffer 546 packets, added delay 2 ms"; empty if the trials' paths differ.
path_words <- function(campaign, trials) {
  paths <- unique(lapply(campaign$manifests[trials$id], \(m) path_queued(m)[c("rate_bps", "rtt_s", "buffer_packets", "buffer_bytes")]))
  if (length(paths) != 1) return("")
  p <- paths[[1]]
  words <- c(
    if (!is.null(p$rate_bps)) paste(format_plain(p$rate_bps / 1e6), "Mbit/s"),
    if (!is.null(p$buffer_packets)) paste("buffer", format_plain(p$buffer_packets), "packets"),
    if (!is.null(p$buffer_bytes)) paste("buffer", label_bytes(p$buffer_bytes)),
    if (!is.null(p$rtt_s)) paste("added delay", format_plain(p$rtt_s * 1e3), "ms")
  )
  paste(words, collapse = ", ")
}

# Return which loggers recorded the data of some metrics, as text such as "TCP state recorded by siftr". Data that
# only one logger can record are left out.
source_words <- function(campaign, ids, metrics) {
  needs <- unique(unlist(lapply(outputs_of("metric")[metrics], \(m) m$needs)))
  named <- Filter(\(q) !is.null(q$caption), outputs_of("quantity")[needs])
  words <- vapply(named, \(q) {
    used <- intersect(q$sources, unlist(lapply(campaign$manifests[ids], loggers_of_senders, q$sources)))
    if (length(used) > 0) paste(q$caption, "recorded by", paste(used, collapse = " and ")) else ""
  }, "")
  paste(words[nzchar(words)], collapse = ". ")
}

# For each sender of a trial, the first of `sources` that recorded it.
loggers_of_senders <- function(manifest, sources) {
  hosts <- unique(vapply(manifest$resolved$flows, \(f) f$from, ""))
  vapply(hosts, \(host) intersect(sources, unlist(lapply(manifest$files, \(f) if (identical(f$host, host)) f$logger)))[1], "")
}

# The configured buffer of the trials in packets; NA if they differ, or if the buffer is in bytes or not configured.
set_buffer <- function(campaign, ids) {
  set <- unique(unlist(lapply(campaign$manifests[ids], \(m) path_queued(m)$buffer_packets %||% NA_real_)))
  if (length(set) == 1) as.double(set) else NA_real_
}

# --- Cells and columns of tables

# The number of trials from which a row was computed, and how many of them are suspect, if any: "6", or "6 (1 suspect)".
trial_count <- function(values, l) {
  trials <- unique(values[level == l], by = "trial")
  suspect <- sum(trials$verdict %in% "suspect")
  if (suspect == 0) as.character(nrow(trials)) else paste0(nrow(trials), " (", suspect, " suspect)")
}

headed <- function(names, align) {
  Map(\(name, align) list(name = name, align = align), unname(names), align) |> unname()
}

# "546 [545, 547]"; fewer than three trials have no interval.
interval_text <- function(row, digits = 4) {
  if (nrow(row) == 0 || is.na(row$median)) return("-")
  number <- \(v) format(signif(v, digits), trim = TRUE, scientific = FALSE)
  if (is.na(row$lo)) return(number(row$median))
  paste0(number(row$median), " [", number(row$lo), ", ", number(row$hi), "]")
}

published_words <- function(published) if (length(published) > 0) "Published values were not measured here"
