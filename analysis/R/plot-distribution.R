# Draw the distribution of any metric or quantity over time.

figure_distribution <- function(results, trials, show, kind = "cdf", of = NULL, overlay = NULL, facet = NULL, from = NULL, to = NULL, window = NULL,
                                axis = NULL) {
  campaign <- results$campaign
  groups <- groups_of(campaign, trials, overlay, facet)
  found <- values_to_show(results, groups$trials$id, show, of, from, to, window)
  values <- cbind(in_groups(found$values$trial, groups), found$values)
  data <- switch(kind, cdf = , ccdf = values[, pooled_cdf(value, "value"), by = c("curve", groups$panels)], values)
  if (kind == "ccdf") data[, share := 1 - share]
  log <- identical(axis, "log")
  list(
    plot = plot_distribution(data, kind, found$title, groups$legend, groups$panels, log),
    data = data[, c("curve", groups$panels, setdiff(names(data), c("curve", groups$panels))), with = FALSE],
    trials = unique(as.character(found$values$trial)), width_in = 6.3, height_in = panels_height_in(groups, 2.6), title = paste("Distribution of", found$title),
    layout = c(list(kind = c(cdf = "step", ccdf = "step", box = "boxes", violin = "violins", histogram = "histogram")[[kind]]),
               if (kind %in% c("cdf", "ccdf")) list(x = "value", y = "share") else if (kind == "histogram") list(x = "value") else list(x = "curve", y = "value"),
               list(x_title = found$title, curve = "curve", facets = I(groups$panels)), if (log) list(log = I("value"))),
    sources = found$sources,
    caption = sentences(
      paste0(kind_words[[kind]], " of ", found$title, ": ", count_words(uniqueN(found$values$trial), "trial"), ", ", found$words), groups$left_out, flow_words(of),
      fixed_words(campaign, trials, groups$factors), path_words(campaign, trials)
    )
  )
}

kind_words <- c(cdf = "Cumulative distribution", ccdf = "Complementary cumulative distribution, that is, the share of greater values",
                box = "Median, quartiles and range within 1.5 times the distance of the quartiles", violin = "Density, with the median as a line",
                histogram = "Histogram")

#' Distribution of values
#' @param data A table `curve` (factor), `value`, and for kinds "cdf" and "ccdf" `share`; further columns for panels.
#' @param kind "cdf", "ccdf", "box", "violin" or "histogram".
#' @param x_title Title of the axis of values.
#' @param title Title of the legend.
#' @param panels Names of up to two columns whose values have panels of their own.
#' @param log_axis TRUE for a logarithmic axis of values.
#' @return A ggplot.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' rtt_ms <- sort(packet_pair_rtt(sender, receiver, data_flows(sender)$flow[1])$rtt_ms)
#' data <- data.table::data.table(curve = factor("newreno"), value = rtt_ms, share = seq_along(rtt_ms) / length(rtt_ms))
#' plot_distribution(data, "cdf", "RTT (ms)")
#' plot_distribution(data, "violin", "RTT (ms)")
#' @export
plot_distribution <- function(data, kind, x_title, title = "Congestion control", panels = character(), log_axis = FALSE) {
  curves <- levels(data$curve)
  flat <- kind %in% c("box", "violin")
  scale <- if (flat) ggplot2::scale_y_continuous else ggplot2::scale_x_continuous
  log_scale <- if (flat) ggplot2::scale_y_log10 else ggplot2::scale_x_log10
  axis <- if (log_axis) {
    log_scale(paste0(x_title, ", log scale"), labels = format_plain)
  } else {
    scale(x_title, limits = if (kind != "histogram" && min(data$value) >= 0) c(0, NA), expand = ggplot2::expansion(c(0, 0.03)))
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
    histogram = ggplot2::geom_histogram(ggplot2::aes(y = ggplot2::after_stat(count / sum(count))), bins = 40, alpha = 0.35, linewidth = 0.2,
                                        position = "identity"),
    ggplot2::geom_step(stat = StatThin, linewidth = 0.6)
  )
  other <- switch(kind, box = , violin = ggplot2::scale_x_discrete(title, labels = \(words) gsub(", ", "\n", words, fixed = TRUE)),
                  histogram = ggplot2::scale_y_continuous("Share of the samples", labels = format_plain, expand = ggplot2::expansion(c(0, 0.05))),
                  cdf_axis(if (kind == "ccdf") "Share of greater values" else "Cumulative share"))
  ggplot2::ggplot(data, base) + shapes +
    scale_levels(curves, title, if (kind %in% c("cdf", "ccdf")) c("colour", "linetype") else c("colour", "fill")) +
    axis + other + panel_facets(panels) + theme_samovar() +
    ggplot2::theme(legend.position = if (flat || !nzchar(title)) "none" else "top")
}

# --- What figures of values show

#' Values of a metric (one per trial), samples of a quantity over time (quantiles of each flow's samples, so that each flow has the same weight), or
#' its means over windows
#' @return A list: `values` (`trial`, `value`), `title` (of the axis), `words` (for the caption), `sources` (or NULL).
#' @noRd
values_to_show <- function(results, ids, show, of = NULL, from = NULL, to = NULL, window = NULL) {
  if (show %in% known_names("metric")) {
    if (!is.null(c(from, to, window))) abort_nothing(paste("`from`, `to` and `window` are for quantities over time, but", show, "is a metric of the whole trial"))
    found <- metric_per_trial(results, ids, show, of)
    return(list(values = found$values[, .(trial, value)], title = found$title, words = "one value each",
                sources = source_words(results$campaign, found$values$trial, show)))
  }
  if (!is.null(window)) return(means_to_show(results, ids, show, of, from, to, window))
  samples <- of_series(quantiles_over_time(results, ids, show, from, to)[, quantity := show], of)
  if (nrow(samples) == 0) abort_nothing(unrecorded_words(show))
  span <- if (is.null(from) && is.null(to)) "all samples" else paste0("samples from ", format_plain(from %||% 0), " s", if (!is.null(to)) paste0(" to ", format_plain(to), " s"))
  list(values = samples[, .(trial, value)], title = one_line(series_title(show)),
       words = paste0(span, ", each flow of a trial with the same weight"), sources = series_source_words(results$campaign, samples, show))
}

means_to_show <- function(results, ids, show, of, from, to, window) {
  if (outputs_of("series")[[show]]$unit != "Mbit/s") abort_nothing(paste("`window` is for rates, and", show, "is not a rate"))
  rates <- of_series(rows_over_time(results, ids, show, from, to), of)
  means <- wider_windows(rates, window)
  if (nrow(means) == 0) abort_nothing(paste("no trial has", show, "for", format_plain(window), "s"))
  list(values = means[, .(trial, value = mbps)], title = one_line(series_title(show)), sources = series_source_words(results$campaign, rates, show),
       words = paste0("means over windows of ", format_plain(window), " s of each flow, ", count_words(nrow(means), "window")))
}

# Quantiles per trial and flow: those that every analysis measures, or those measured for this figure.
quantiles_over_time <- function(results, ids, show, from = NULL, to = NULL) {
  stored <- if (is.null(from) && is.null(to)) switch(show,
    rtt = results$rtt[trial %in% ids, .(trial, flow, share, value = rtt_ms)],
    jitter = if (nrow(results$jitter) > 0) results$jitter[trial %in% ids, .(trial, flow, share, value = jitter_ms)],
    if (nrow(results$samples) > 0) results$samples[trial %in% ids & quantity == show, .(trial, flow, share, value)]
  )
  missing <- setdiff(ids, stored$trial)
  measured <- series_of_trials(results, lapply(missing, \(id) list(id = id, names = show, from_s = from %||% -Inf, to_s = to %||% Inf)))$quantiles
  rbind(no_samples, stored, if (nrow(measured) > 0) measured[, !"quantity"])
}

no_samples <- data.table(trial = character(), flow = character(), share = double(), value = double())

# One value of a metric per trial, the median of its flows, in the unit in which it is shown.
metric_per_trial <- function(results, ids, metric_name, of = NULL) {
  flows <- if (!(outputs_of("metric")[[metric_name]]$scope %||% "flow") %in% c("trial", "campaign")) of
  rows <- of_flows(results$metrics[metric == metric_name & trial %in% ids], flows)
  if (nrow(rows) == 0) abort_nothing(paste("no trial has", metric_name))
  shown <- display_unit(rows$unit[1])
  list(values = rows[, .(value = stats::median(value) * shown$scale), by = trial], title = metric_title(metric_name, shown$unit), unit = shown$unit)
}

# --- Curves and panels

#' Group trials into curves and panels by the levels of factors
#'
#' Factors that vary but are not among the arguments distinguish curves, or panels if `rest_to` is "panels".
#' @param overlay,facet Names of factors, or NULL; `facet` has at most two.
#' @param axis Factors on axes: neither curves nor panels.
#' @return A list: `trials`, `curve` (factor, of each trial), `levels` (a table of the facets' levels of each trial), `panels` (its columns), `legend`
#'   (title), `factors` (of curves and panels), `left_out` (sentences or NULL).
#' @noRd
groups_of <- function(campaign, trials, overlay = NULL, facet = NULL, axis = NULL, rest_to = c("curves", "panels")) {
  for (name in c(overlay, facet, axis)) check_factor(campaign, name)
  vary <- curves_of(campaign, trials)$factors
  rest <- setdiff(vary[vapply(vary, \(f) uniqueN(trials[[f]]) > 1, TRUE)], c(overlay, facet, axis))
  if (match.arg(rest_to) == "panels" && length(rest) > 0) {
    facet <- c(facet, rest)
    rest <- NULL
  }
  curves <- curves_of(campaign, trials, but = setdiff(c("part", campaign$factors), c(overlay, rest)), at_least = c(overlay, rest))
  if (length(c(overlay, rest)) == 0) curves <- list(labels = factor(rep("all", nrow(trials))), title = "", factors = NULL)
  names(facet) <- facet
  levels <- as.data.table(lapply(facet, \(f) level_factor(campaign, f, trials[[f]])))
  if (ncol(levels) > 2) levels <- data.table(panel = droplevels(interaction(levels, sep = ", ", lex.order = TRUE)))
  most <- most_curves(levels(curves$labels))
  kept <- curves$labels %in% utils::head(levels(curves$labels), most)
  every <- nlevels(curves$labels)
  at <- which(kept)
  list(
    trials = trials[at], curve = droplevels(curves$labels[at]), levels = levels[at], panels = names(levels) %||% character(), legend = curves$title,
    factors = unique(c(curves$factors, facet)),
    left_out = if (every > most) {
      paste(most, "of", every, "curves are shown, as more colours cannot be told apart; choose with the levels of a factor, or use `facet`")
    }
  )
}

# Columns `curve` and those of the panels, for rows of trials.
in_groups <- function(ids, groups) {
  at <- match(ids, groups$trials$id)
  cbind(data.table(curve = groups$curve[at]), groups$levels[at])
}

# Panels by one or two columns.
panel_facets <- function(panels) {
  if (length(panels) == 0) return(NULL)
  label <- \(name) if (name == "panel") "" else paste0(factor_title(name), " ")
  titled <- stats::setNames(lapply(panels, \(name) ggplot2::as_labeller(\(x) paste0(label(name), x))), panels)
  columns <- lapply(panels, \(name) ggplot2::vars(.data[[!!name]]))
  if (length(panels) == 1) return(ggplot2::facet_wrap(columns[[1]], labeller = do.call(ggplot2::labeller, titled)))
  ggplot2::facet_grid(rows = columns[[1]], cols = columns[[2]], labeller = do.call(ggplot2::labeller, titled))
}

# Height of a figure whose panels are in a grid.
panels_height_in <- function(groups, one_in) {
  rows <- if (length(groups$panels) == 2) uniqueN(groups$levels[[1]]) else if (length(groups$panels) == 1) ceiling(uniqueN(groups$levels[[1]]) / 3) else 1
  min(0.6 + one_in * (if (rows > 1) 0.75 else 1) * rows, 8.5)
}
