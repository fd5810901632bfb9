# Draw the distribution of a metric, or of the values of a time series.

figure_distribution <- function(results, trials, show, kind = "cdf", of = NULL, overlay = NULL, facet = NULL, from = NULL, to = NULL, window = NULL,
                                axis = NULL) {
  distribution_of(results, trials, \(ids) values_to_show(results, ids, show, of, from, to, window), kind, of, overlay, facet, identical(axis, "log"))
}

#' @param find Function that takes ids of trials and returns their values, see [values_to_show()].
#' @param pooled Factors whose levels share a curve.
#' @noRd
distribution_of <- function(results, trials, find, kind = "cdf", of = NULL, overlay = NULL, facet = NULL, log = FALSE, pooled = NULL) {
  campaign <- results$campaign
  groups <- groups_of(campaign, trials, overlay, facet, pooled)
  found <- find(groups$trials$id)
  columns <- c("curve", groups$panels)
  data <- cbind(in_groups(found$values$trial, groups), found$values)
  setorderv(data, c(columns, "value"))
  cumulative <- kind %in% c("cdf", "ccdf")
  log_left_out <- if (log) log_words(data$value, if (found$single) "values" else "samples", if (cumulative) ", which count in the shares")
  if (log && !cumulative) data <- data[value > 0]
  if (cumulative) {
    if (found$single) data[, share := seq_len(.N) / .N, by = columns] else data <- data[, pooled_cdf(value), by = columns]
  }
  if (kind == "ccdf") data[, share := 1 - share]
  data[, curve := droplevels(curve)]
  list(
    plot = plot_distribution(data, kind, found$title, groups$legend, groups$panels, log, if (found$buffer) set_buffer(campaign, groups$trials$id)),
    data = cbind(data[, columns, with = FALSE], quantity = found$quantity, unit = found$unit, data[, setdiff(names(data), columns), with = FALSE]),
    trials = unique(as.character(found$values$trial)), width_in = 6.3, height_in = panels_height_in(groups, 2.4),
    title = paste("Distribution of", in_sentence(sub(" [(].*", "", found$title))),
    layout = c(list(kind = c(cdf = "step", ccdf = "step", box = "boxes", violin = "violins", histogram = "histogram")[[kind]]),
               if (cumulative) list(x = "value", y = "share") else if (kind == "histogram") list(x = "value") else list(x = "curve", y = "value"),
               list(curve = "curve", facets = I(groups$panels))),
    sources = found$sources,
    caption = sentences(
      paste0(kind_words[[kind]], " of ", in_sentence(found$title), ": ", count_words(uniqueN(found$values$trial), "trial"), ", ", found$words),
      capital(found$what), log_left_out, groups$left_out, flow_words(of), fixed_words(campaign, trials, groups$factors), path_words(campaign, trials)
    )
  )
}

# Quantiles of all values: each flow has the same number of quantiles, so pooling them gives each flow the same weight.
pooled_cdf <- function(values) {
  share <- seq(0, 1, by = 0.002)
  list(value = stats::quantile(values, share, names = FALSE, type = 1), share = share)
}

kind_words <- c(cdf = "Cumulative distribution", ccdf = "Complementary cumulative distribution, that is, the share of greater values",
                box = "Median, quartiles and range within 1.5 times the interquartile range", violin = "Density, with the median as a line",
                histogram = "Histogram")

#' Distribution of values
#' @param data A table with `curve` (factor), `value`, and for kinds "cdf" and "ccdf" `share`; further columns for panels.
#' @param kind "cdf", "ccdf", "box", "violin" or "histogram".
#' @param x_title Title of the axis of values.
#' @param title Title of the legend.
#' @param panels Names of up to two columns; there is one panel for each value, or each combination of two values.
#' @param log_axis TRUE for a logarithmic axis of values.
#' @param buffer_packets For estimates of a buffer, its configured size, which the figure marks, or NA if that is not known; for other values, NULL.
#' @return A ggplot.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' rtt_ms <- sort(packet_pair_rtt(sender, receiver, data_flows(sender)$flow[1])$rtt_ms)
#' data <- data.table::data.table(curve = factor("newreno"), value = rtt_ms, share = seq_along(rtt_ms) / length(rtt_ms))
#' plot_distribution(data, "cdf", "RTT (ms)")
#' plot_distribution(data, "violin", "RTT (ms)")
#' @export
plot_distribution <- function(data, kind, x_title, title = "Congestion control", panels = character(), log_axis = FALSE, buffer_packets = NULL) {
  curves <- levels(data$curve)
  flat <- kind %in% c("box", "violin")
  scale <- if (flat) ggplot2::scale_y_continuous else ggplot2::scale_x_continuous
  log_scale <- if (flat) ggplot2::scale_y_log10 else ggplot2::scale_x_log10
  axis <- if (log_axis) {
    log_scale(paste0(x_title, ", log scale"), labels = format_plain)
  } else {
    limits <- if (kind == "histogram") NULL else if (!is.null(buffer_packets)) buffer_limits(data$value, buffer_packets) else if (min(data$value) >= 0) c(0, NA)
    scale(x_title, limits = limits, expand = ggplot2::expansion(c(0, 0.03)))
  }
  # A curve starts at the share of the smallest value; the step from 0 to this share is drawn too.
  if (kind %in% c("cdf", "ccdf")) {
    starts <- data[, .(value = min(value), share = if (kind == "cdf") 0 else 1), by = c("curve", panels)]
    data <- rbind(starts, data[, names(starts), with = FALSE])
  }
  base <- if (flat) ggplot2::aes(curve, value, colour = curve, fill = curve) else if (kind == "histogram") {
    ggplot2::aes(value, fill = curve, colour = curve)
  } else ggplot2::aes(value, share, colour = curve, linetype = curve)
  shapes <- switch(kind,
    box = ggplot2::geom_boxplot(alpha = 0.25, linewidth = 0.4, outlier.size = 0.7, width = 0.6),
    violin = list(
      ggplot2::geom_violin(alpha = 0.25, linewidth = 0.4, scale = "width"),
      ggplot2::stat_summary(fun = stats::median, geom = "crossbar", width = 0.5, linewidth = 0.3)
    ),
    histogram = ggplot2::geom_histogram(ggplot2::aes(y = ggplot2::after_stat(density * width)), bins = 40, alpha = 0.35, linewidth = 0.2,
                                        position = "identity"),
    ggplot2::geom_step(stat = StatThin, linewidth = 0.6)
  )
  other <- switch(kind, box = , violin = word_axis(title, curves, panels_across(data, panels)),
                  histogram = ggplot2::scale_y_continuous("Share of the samples", labels = label_axis, expand = ggplot2::expansion(c(0, 0.05))),
                  cdf_axis(if (kind == "ccdf") "Share of greater values" else "Cumulative share"))
  ggplot2::ggplot(data, base) + shapes + mark_buffer(buffer_packets, flat, data$value) +
    scale_levels(curves, title, if (kind %in% c("cdf", "ccdf")) c("colour", "linetype") else c("colour", "fill")) +
    axis + other + panel_facets(panels, data) + theme_samovar() +
    ggplot2::theme(legend.position = if (flat || length(curves) == 1) "none" else "top")
}

cdf_axis <- function(title) ggplot2::scale_y_continuous(title, limits = c(0, 1), breaks = seq(0, 1, 0.25), expand = c(0.01, 0.01))

# The label stands on the side of the line that has more room.
mark_buffer <- function(packets, flat, values) {
  if (!is.finite(packets %||% NA)) return(NULL)
  label <- paste0(" configured: ", format_plain(packets), " ")
  hjust <- if (!flat && packets > mean(buffer_limits(values, packets))) 1 else 0
  line <- if (flat) ggplot2::geom_hline(yintercept = packets, colour = "grey40", linewidth = 0.4, linetype = "dotted") else
    ggplot2::geom_vline(xintercept = packets, colour = "grey40", linewidth = 0.4, linetype = "dotted")
  at <- if (flat) list(x = -Inf, y = packets, vjust = -0.3) else list(x = packets, y = 0, vjust = -0.3)
  list(line, do.call(ggplot2::annotate, c(list("text", label = label, hjust = hjust, size = 2.8, colour = "grey30"), at)))
}

# The axis extends by at least 4 % of the buffer to each side, so that a spread of half a packet does not look wide.
buffer_limits <- function(packets, configured) {
  middle <- if (is.na(configured)) stats::median(packets) else configured
  range(packets, middle * c(0.96, 1.04))
}

# --- What figures of values show

#' Values of a metric (one per trial), samples of a quantity over time, or its means over windows
#'
#' Quantities of which a trial has few values, such as one per cwnd cycle, are shown value by value. For quantities with many values, quantiles of each flow's
#' samples are shown, so that each flow has the same weight.
#' @return A list: `values` (`trial`, `value`), `single` (TRUE if each value was measured, FALSE if it is a quantile), `quantity`, `unit`, `title` (of the axis),
#'   `what` and `words` (for the caption), `buffer` (whether the values estimate a buffer), `sources` (or NULL).
#' @noRd
values_to_show <- function(results, ids, show, of = NULL, from = NULL, to = NULL, window = NULL) {
  if (show %in% known_names("metric")) {
    if (!is.null(c(from, to, window))) abort_nothing(paste("`from`, `to` and `window` are for quantities over time, but", show, "is a metric of the whole trial"))
    found <- metric_per_trial(results, ids, show, of)
    return(c(found, list(single = TRUE, quantity = show, words = "one value each", buffer = is_buffer(show, found$unit),
                         sources = source_words(results$campaign, found$values$trial, show))))
  }
  if (!is.null(window)) return(means_to_show(results, ids, show, of, from, to, window))
  entry <- outputs_of("series")[[show]]
  samples <- single_values(results, ids, show, from %||% -Inf, to %||% Inf)
  single <- !is.null(samples)
  if (!single) samples <- quantiles_over_time(results, ids, show, from, to)
  samples <- of_series(samples[, quantity := show], of)
  if (nrow(samples) == 0) abort_nothing(if (single) paste("no trial has a", entry$what) else unrecorded_words(show))
  span <- if (is.null(from) && is.null(to)) "all samples" else paste0("samples from ", format_plain(from %||% 0), " s", if (!is.null(to)) paste0(" to ", format_plain(to), " s"))
  weight <- if (single) count_words(nrow(samples), "value") else "each flow of a trial with the same weight"
  list(values = samples[, .(trial, value)], single = single, quantity = show, unit = entry$unit, title = one_line(series_title(show)), what = entry$what,
       words = paste0(span, ", ", weight), buffer = is_buffer(show, entry$unit), sources = series_source_words(results$campaign, samples, show))
}

means_to_show <- function(results, ids, show, of, from, to, window) {
  if (outputs_of("series")[[show]]$unit != "Mbit/s") abort_nothing(paste("`window` is for rates, but", show, "is not a rate"))
  rates <- of_series(rows_over_time(results, ids, show, from, to), of)
  means <- wider_windows(rates, window)
  if (nrow(means) == 0) abort_nothing(paste("no trial has", show, "for", format_plain(window), "s"))
  list(values = means[, .(trial, value = mbps)], single = TRUE, quantity = show, unit = "Mbit/s", title = one_line(series_title(show)),
       what = outputs_of("series")[[show]]$what, sources = series_source_words(results$campaign, rates, show), buffer = FALSE,
       words = paste0("means over windows of ", paste(format_plain(sort(unique(means$width_s))), collapse = " and "), " s of each flow, ",
                      count_words(nrow(means), "window")))
}

is_buffer <- function(name, unit) startsWith(name, "buffer") && unit == "packets"

# Return the rows `trial`, `flow`, `t_s`, `value` in the span of time, for a quantity whose individual values are always stored; NULL for other quantities.
single_values <- function(results, ids, show, from_s, to_s) {
  measure <- outputs_of("series")[[show]][["function"]]
  kept <- switch(measure, series_of_cycles = results$cycles, series_of_pauses = results$pauses)
  if (is.null(kept)) return(NULL)
  rows <- no_values
  if (nrow(kept) > 0) rows <- kept[trial %in% ids, function_named(measure)(list(cycles = .SD, device = list(pauses = .SD)))[[show]], by = .(trial, flow)]
  if (nrow(rows) > 0) rows[!is.na(value) & t_s >= from_s & t_s <= to_s] else copy(no_values)
}

no_values <- data.table(trial = character(), flow = character(), t_s = double(), value = double())

# Quantiles per trial and flow: those that every analysis measures, or those measured for this figure.
quantiles_over_time <- function(results, ids, show, from = NULL, to = NULL) {
  stored <- if (is.null(from) && is.null(to)) switch(show,
    rtt = rows_of(results, "rtt", ids),
    jitter = rows_of(results, "jitter", ids),
    rows_of(results, "samples", ids, show)
  )
  if (is.null(stored) || nrow(stored) == 0) stored <- copy(no_samples)
  # Columns are renamed in place, because 501 quantiles of each of 100,000 flows take 1.6 GB.
  setnames(stored, c("rtt_ms", "jitter_ms"), c("value", "value"), skip_absent = TRUE)
  for (column in setdiff(names(stored), names(no_samples))) set(stored, j = column, value = NULL)
  missing <- setdiff(ids, stored$trial)
  measured <- series_of_trials(results, lapply(missing, \(id) list(id = id, names = show, from_s = from %||% -Inf, to_s = to %||% Inf)))$quantiles
  if (nrow(measured) > 0) rbind(stored, measured[, names(stored), with = FALSE]) else stored
}

no_samples <- data.table(trial = character(), flow = character(), share = double(), value = double())

# One value of a metric per trial, the median of its flows, in the unit in which it is shown.
metric_per_trial <- function(results, ids, metric_name, of = NULL) {
  flows <- if (!(outputs_of("metric")[[metric_name]]$scope %||% "flow") %in% c("trial", "campaign")) of
  rows <- of_flows(results$metrics[metric == metric_name & trial %in% ids], flows)
  if (nrow(rows) == 0) abort_nothing(paste("no trial has", metric_name))
  shown <- display_unit(rows$unit[1])
  list(values = rows[, .(value = stats::median(value) * shown$scale), by = trial], title = metric_title(metric_name, shown$unit), unit = shown$unit,
       what = outputs_of("metric")[[metric_name]]$what)
}

# --- Curves and panels

#' Group trials into curves and panels by the levels of factors
#'
#' Each remaining factor that varies distinguishes curves, or panels if `rest_to` is "panels". If no factor remains, the curve is named after a factor that
#' does not vary.
#' @param overlay,facet Names of factors, or NULL; `facet` has at most two.
#' @param axis Factors on axes or of no interest, which distinguish neither curves nor panels.
#' @return A list: `trials`, `curve` (factor: the curve of each trial), `levels` (a table with each trial's levels of the facets), `panels` (the columns of
#'   `levels`), `legend` (title), `factors` (of curves and panels), `left_out` (sentences or NULL).
#' @noRd
groups_of <- function(campaign, trials, overlay = NULL, facet = NULL, axis = NULL, rest_to = c("curves", "panels")) {
  for (name in c(overlay, facet, axis)) check_factor(campaign, name)
  vary <- curves_of(campaign, trials)$factors
  rest <- setdiff(vary[vapply(vary, \(f) uniqueN(trials[[f]]) > 1, TRUE)], c(overlay, facet, axis))
  if (match.arg(rest_to) == "panels" && length(rest) > 0) {
    facet <- c(facet, rest)
    rest <- NULL
  }
  curves <- curves_of(campaign, trials, but = setdiff(c(axis, facet), overlay), at_least = c(overlay, rest))
  names(facet) <- facet
  levels <- as.data.table(lapply(facet, \(f) level_factor(campaign, f, trials[[f]])))
  if (ncol(levels) > 2) levels <- data.table(panel = droplevels(interaction(levels, sep = ", ", lex.order = TRUE)))
  most <- most_curves(levels(curves$labels))
  kept <- curves$labels %in% utils::head(levels(curves$labels), most)
  every <- nlevels(curves$labels)
  at <- which(kept)
  list(
    trials = trials[at], curve = droplevels(curves$labels[at]), levels = levels[at], panels = names(levels) %||% character(), legend = curves$title,
    factors = c(overlay, rest, facet),
    left_out = if (every > most) {
      paste(most, "of", every, "curves are shown, because more colours are hard to distinguish; choose with the levels of a factor, or use `facet`")
    }
  )
}

# Return a table with a row for each trial in `ids`: column `curve`, and the columns that define the panels.
in_groups <- function(ids, groups) {
  at <- match(ids, groups$trials$id)
  cbind(data.table(curve = groups$curve[at]), groups$levels[at])
}

# Panels by one or two columns.
panel_facets <- function(panels, data) {
  if (length(panels) == 0) return(NULL)
  label <- \(name) if (name == "panel") "" else paste0(factor_title(name), " ")
  across <- panels_across(data, panels)
  titled <- stats::setNames(lapply(panels, \(name) ggplot2::as_labeller(\(x) broken_titles(paste0(label(name), x), across))), panels)
  columns <- lapply(panels, \(name) ggplot2::vars(.data[[!!name]]))
  if (length(panels) == 1) return(ggplot2::facet_wrap(columns[[1]], labeller = do.call(ggplot2::labeller, titled)))
  ggplot2::facet_grid(rows = columns[[1]], cols = columns[[2]], labeller = do.call(ggplot2::labeller, titled))
}

# Number of columns in which panel_facets() arranges the panels.
panels_across <- function(data, panels) {
  switch(length(panels) + 1, 1, ggplot2::wrap_dims(uniqueN(data[[panels[1]]]))[2], uniqueN(data[[panels[2]]]))
}

# Height of a figure whose panels are in a grid.
panels_height_in <- function(groups, one_in) {
  rows <- if (length(groups$panels) == 2) uniqueN(groups$levels[[1]]) else if (length(groups$panels) == 1) ceiling(uniqueN(groups$levels[[1]]) / 3) else 1
  min(0.6 + one_in * (if (rows > 1) 0.75 else 1) * rows + legend_height_in(levels(groups$curve), groups$legend), most_height_in)
}

# --- Short names

# Figures that are older than the figure `distribution` have, in their CSV files, the unit in the name of the
# column of values, such as rtt_ms.
with_column <- function(made, name) {
  made$data <- setnames(made$data[, .(curve, value, share)], "value", name)
  made$layout$x <- name
  made
}

figure_rtt_cdf <- function(results, trials, flow = NULL, axis = NULL) {
  with_column(figure_distribution(results, at_largest_rwnd(results$campaign, trials), "rtt", of = flow, axis = axis), "rtt_ms")
}

figure_jitter_cdf <- function(results, trials, flow = NULL) with_column(figure_distribution(results, trials, "jitter", of = flow), "jitter_ms")

# Samples from times without data in flight are left out.
figure_sender_cdf <- function(results, trials, quantity = "srtt", flow = NULL) {
  name <- quantity
  distribution_of(results, at_largest_rwnd(results$campaign, trials), of = flow, find = \(ids) {
    samples <- of_flows(rows_of(results, "sender", ids, name), flow)
    if (nrow(samples) == 0) abort_nothing(paste("no sender's log has", name))
    list(values = samples[, .(trial, value)], single = FALSE, quantity = name, unit = sender_units[[name]], title = one_line(series_title(name)),
         what = outputs_of("series")[[name]]$what, words = "each flow of a trial with the same weight, samples while data was in flight", buffer = FALSE)
  })
}

figure_throughput_cdf <- function(results, trials, window = 5, flow = NULL) {
  with_column(figure_distribution(results, trials, "throughput", of = flow, window = window), "throughput_mbps")
}

# The mean rate in each complete window, from the narrower windows of a trial's time series. A window consists of whole narrow ones, whose width depends on
# the length of the trial, so that `width_s` of the result is at least `wanted_s`.
wider_windows <- function(rates, wanted_s) {
  narrow <- rates[, .(t_s, mid, span_s = if (.N > 1) round(min(diff(sort(t_s))), 6) else NA_real_), by = .(trial, flow)][!is.na(span_s)]
  narrow[, of := ceiling(wanted_s / span_s - 1e-9)]
  windows <- narrow[, .(mbps = mean(mid), points = .N), by = .(trial, flow, of, width_s = of * span_s, window = floor(t_s / (of * span_s)))]
  windows[points == of, .(trial, flow, width_s, window, mbps)]
}

figure_buffer_cdf <- function(results, trials, method = "1") figure_distribution(results, trials, paste0("buffer-method", method))

# The sending rate and size are not properties of the device: trials that differ only in such factors share a curve.
figure_pause_buffer_cdf <- function(results, trials, method = "1") {
  distribution_of(results, trials, pooled = grep("^traffic[.]", results$campaign$factors, value = TRUE), find = \(ids) {
    replace(values_to_show(results, ids, pause_methods[[method]]), "title", "Estimated buffer (packets)")
  })
}

figure_pause_to_drop <- function(results, trials) figure_distribution(results, trials, "pause-to-drop")
