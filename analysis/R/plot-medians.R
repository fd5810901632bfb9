# Draw medians over trials against the levels of a factor, as bars or as points joined by lines.

figure_bars <- function(results, trials, show, by, kind = "bars", of = NULL, overlay = NULL, facet = NULL, axis = NULL) {
  medians_of(results, trials, show, by, kind, of, overlay, facet, identical(axis, "log"))
}

#' @param as_shown Function that converts the result of [metric_per_trial()] to what is shown.
#' @noRd
medians_of <- function(results, trials, show, by, kind = "points", of = NULL, overlay = NULL, facet = NULL, log = FALSE, as_shown = identity) {
  campaign <- results$campaign
  groups <- groups_of(campaign, trials, overlay, facet, by)
  found <- as_shown(metric_per_trial(results, groups$trials$id, show, of))
  data <- medians_by(campaign, groups, found$values, c(level = by))
  points <- kind == "points" || log # a bar needs an axis that starts at 0
  plot <- if (points) {
    x <- level_axis(data$level, factor_title(by))
    data <- cbind(data[, c("curve", groups$panels), with = FALSE], label = as.character(data$level), level = x$at, data[, !c("curve", groups$panels, "level"), with = FALSE])
    theory <- if (show == "rtt_median_ms" && by == "rwnd" && x$sizes) rwnd_theory(campaign, trials, range(data$level))
    y_from <- if (!is.null(theory) || log) 0 else y_start(data)
    log_left_out <- if (log) log_words(data$median, "medians")
    plot_by_factor(data, x$title, found$title, groups$legend, log, groups$panels, x$sizes, y_from, theory)
  } else {
    plot_bars(data, factor_title(by), found$title, groups$legend, groups$panels)
  }
  more <- if (points) c(if (!is.null(theory)) "Grey line: theory, RTT = window / rate once the window fills the path, up to a full buffer",
                        if (y_from %in% 0) NULL else "The y axis does not start at zero", log_left_out)
  list(
    plot = plot, data = data, trials = as.character(found$values$trial), width_in = 6.3, height_in = panels_height_in(groups, 2.6),
    title = paste(found$title, "by", factor_title(by)),
    layout = list(kind = if (points) "points" else "bars", x = "level", y = "median", low = "lo", high = "hi", curve = "curve", facets = I(groups$panels)),
    caption = summary_caption(campaign, trials, groups, found, data, of, more = more)
  )
}

summary_caption <- function(campaign, trials, groups, found, data, of, interval = interval_words, more = NULL) {
  sentences(
    paste0(found$title, ", ", replicate_words(data$n), " (", count_words(nrow(found$values), "trial"), ")"), capital(found$what),
    interval(data$n), more, groups$left_out,
    flow_words(of), fixed_words(campaign, trials, groups$factors), path_words(campaign, trials)
  )
}

# Medians with intervals by curve, panel and the factors on the axes: `axes` names the columns.
medians_by <- function(campaign, groups, values, axes) {
  rows <- cbind(in_groups(values$trial, groups), value = values$value)
  at <- match(values$trial, groups$trials$id)
  for (column in names(axes)) {
    name <- axes[[column]]
    set(rows, NULL, column, level_factor(campaign, name, groups$trials[[name]][at]))
  }
  columns <- c("curve", groups$panels, names(axes))
  rows[, median_interval(value), by = columns][do.call(order, mget(columns))]
}

# Positions of levels on an axis: sizes are in bytes, rates in Mbit/s, and numbers unchanged; other levels are words.
level_axis <- function(levels, title) {
  texts <- as.character(levels)
  bytes <- parse_quantity(texts, "size")
  if (isTRUE(all(bytes > 0))) return(list(at = bytes, title = title, sizes = TRUE))
  rates <- 1e-6 * parse_quantity(texts, "rate")
  if (!anyNA(rates)) return(list(at = rates, title = paste(title, "(Mbit/s)"), sizes = FALSE))
  numbers <- parse_quantity(texts, "number")
  list(at = if (anyNA(numbers)) levels else numbers, title = title, sizes = FALSE)
}

# If all curves are near the top, the axis starts above 0, but at most at 80 % of the top, so that noise does not look like an effect. The result is NA for
# negative values.
y_start <- function(data) {
  top <- max(data$median, data$hi, na.rm = TRUE)
  bottom <- min(data$median, data$lo, na.rm = TRUE)
  if (bottom < 0) NA else if (bottom < 0.6 * top) 0 else pretty(min(bottom, 0.8 * top), 2)[1]
}

#' Medians with intervals as bars
#' @param data A table with `level` (factor), `curve` (factor), `median`, `lo`, `hi`; further columns for panels.
#' @param x_title,y_title Titles of the axes.
#' @param title Title of the legend.
#' @param panels Names of up to two columns; there is one panel for each value, or each combination of two values.
#' @return A ggplot.
#' @examples
#' level <- factor(c("9KB", "15KB"), levels = c("9KB", "15KB"))
#' data <- data.table::data.table(level, curve = factor("newreno"), median = c(4.6, 7.5), lo = c(4.5, 7.3), hi = c(4.7, 7.6))
#' plot_bars(data, "Receive window", "Throughput (Mbit/s)")
#' @export
plot_bars <- function(data, x_title, y_title, title = "Congestion control", panels = character()) {
  curves <- levels(data$curve)
  beside <- ggplot2::position_dodge(width = 0.8)
  y <- ggplot2::scale_y_continuous(y_title, expand = ggplot2::expansion(c(if (min(data$median, na.rm = TRUE) < 0) 0.05 else 0, 0.06)))
  ggplot2::ggplot(data, ggplot2::aes(level, median, colour = curve, fill = curve)) +
    ggplot2::geom_col(position = beside, width = 0.7, alpha = 0.45, linewidth = 0.3) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = lo, ymax = hi), linewidth = 0.7, position = beside, na.rm = TRUE, show.legend = FALSE) +
    scale_levels(curves, title, c("colour", "fill")) + word_axis(x_title, levels(droplevels(data$level)), panels_across(data, panels)) + y + panel_facets(panels, data) + theme_samovar() +
    ggplot2::theme(legend.position = if (length(curves) > 1) "top" else "none")
}

#' Medians with intervals as points joined by lines
#' @param data A table with `level` (number, or a factor where levels are words), `curve` (factor), `median`, `lo`, `hi`; further columns for panels.
#' @param x_title,y_title Titles of the axes.
#' @param title Title of the legend.
#' @param log_axis TRUE for a logarithmic y axis.
#' @param panels Names of up to two columns; there is one panel for each value, or each combination of two values.
#' @param sizes TRUE if levels are sizes in bytes, which get a logarithmic axis.
#' @param y_from Value at which the y axis starts; NA for the smallest value of the data.
#' @param theory A table with `level`, `value`: a theoretical line, or NULL.
#' @return A ggplot.
#' @examples
#' data <- data.table::data.table(level = c(9, 15, 21), curve = factor("newreno"), median = c(40, 65, 89), lo = c(39, 64, 88), hi = c(41, 66, 90))
#' plot_by_factor(data, "Receive window (KB)", "RTT (ms)")
#' @export
plot_by_factor <- function(data, x_title, y_title, title = "Congestion control", log_axis = FALSE, panels = character(), sizes = FALSE, y_from = 0, theory = NULL) {
  curves <- levels(data$curve)
  places <- if (is.numeric(data$level)) data$level else as.integer(data$level)
  span <- diff(range(if (sizes) log10(places) else places))
  beside <- if (length(curves) > 1 && span > 0) ggplot2::position_dodge(width = 0.005 * length(curves) * span) else "identity"
  if (log_axis) data <- copy(data)[median <= 0, median := NA_real_][lo <= 0, lo := 0] # an interval from 0 begins at the lower edge
  y <- if (log_axis) {
    ggplot2::scale_y_log10(paste0(y_title, ", log scale"), labels = format_plain)
  } else {
    ggplot2::scale_y_continuous(y_title, limits = c(y_from, NA), expand = ggplot2::expansion(c(if (is.na(y_from)) 0.06 else 0, 0.06)))
  }
  x <- if (sizes) {
    size_axis(x_title, unique(data$level))
  } else if (is.numeric(data$level)) {
    ggplot2::scale_x_continuous(x_title, labels = label_axis, expand = ggplot2::expansion(0.03))
  } else {
    word_axis(x_title, levels(droplevels(data$level)), panels_across(data, panels))
  }
  ggplot2::ggplot(data, ggplot2::aes(level, median, colour = curve, linetype = curve, shape = curve, group = curve)) +
    (if (!is.null(theory)) ggplot2::geom_line(ggplot2::aes(level, value), theory, inherit.aes = FALSE, colour = "grey60", linewidth = 1.6, alpha = 0.5)) +
    ggplot2::geom_line(linewidth = 0.5, position = beside, na.rm = TRUE) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = lo, ymax = hi), linewidth = 0.7, linetype = "solid", na.rm = TRUE, position = beside, show.legend = FALSE) +
    ggplot2::geom_point(size = 1.8, position = beside, na.rm = TRUE) +
    scale_levels(curves, title) + x + y + panel_facets(panels, data) + theme_samovar() +
    ggplot2::theme(legend.position = if (length(curves) > 1) "top" else "none")
}

# Labels of sizes that are close together alternate between two rows, so that no label is omitted unless there are many.
size_axis <- function(title, bytes) {
  gaps <- diff(sort(log10(bytes)))
  tight <- length(gaps) > 0 && min(gaps) < 0.09 * sum(gaps)
  ggplot2::scale_x_log10(paste(title, "(log scale)"), breaks = sort(bytes), labels = label_bytes,
                         guide = ggplot2::guide_axis(n.dodge = if (tight) 2 else 1, check.overlap = length(bytes) > 12))
}

# RTT of a flow that keeps its whole window in flight; NULL when the trials' paths differ.
rwnd_theory <- function(campaign, trials, range_bytes) {
  paths <- unique(lapply(campaign$manifests[trials$id],
                         \(m) c(path_down(m)[c("rate_bps", "rtt_s", "buffer_packets")], mtu = mtu_of(m))))
  if (length(paths) != 1 || anyNA(match(c("rate_bps", "rtt_s", "buffer_packets"), names(unlist(paths[[1]]))))) return(NULL)
  p <- paths[[1]]
  rwnd_bytes <- exp(seq(log(range_bytes[1]), log(range_bytes[2]), length.out = 200))
  wire_bytes <- rwnd_bytes * p$mtu / (p$mtu - tcp_header_bytes)
  idle_ms <- 1e3 * p$rtt_s
  full_ms <- idle_ms + 8e3 * p$buffer_packets * p$mtu / p$rate_bps
  data.table(level = rwnd_bytes, value = pmin(full_ms, pmax(idle_ms, 8e3 * wire_bytes / p$rate_bps)))
}

# --- Short names

figure_metric_by_factor <- function(results, trials, factor, metric, flow = NULL, axis = NULL) {
  medians_of(results, trials, metric, factor, of = flow, log = identical(axis, "log"))
}

figure_throughput_by_rwnd <- function(results, trials) by_rwnd(results, trials, "throughput_bps", "Median throughput against receive window")

figure_rtt_by_rwnd <- function(results, trials) by_rwnd(results, trials, "rtt_median_ms", "Median RTT against receive window")

# cwnd is converted to bytes of payload, which the receive window also counts.
figure_cwnd_by_rwnd <- function(results, trials) {
  mtu_bytes <- unique(vapply(results$campaign$manifests[trials$id], mtu_of, 0))
  if (length(mtu_bytes) != 1) abort_nothing("the trials have different MTUs, so that cwnd in packets cannot be converted to bytes")
  by_rwnd(results, trials, "cwnd_median_packets", "Median cwnd against receive window", \(found) {
    found$values[, value := value * (mtu_bytes - tcp_header_bytes) / 1e3]
    replace(found, "title", metric_title("cwnd_median_packets", "KB"))
  })
}

# Draw one of the figures above, whose CSV has the window in the columns `rwnd` and `rwnd_bytes`. Parts without receive windows are left out.
by_rwnd <- function(results, trials, metric_name, title, as_shown = identity) {
  if (!"rwnd" %in% results$campaign$factors) abort_nothing("the experiment has no factor rwnd")
  made <- medians_of(results, trials[!is.na(rwnd)], metric_name, "rwnd", as_shown = as_shown)
  made$data <- setnames(copy(made$data), c("label", "level"), c("rwnd", "rwnd_bytes"))
  made$layout$x <- "rwnd_bytes"
  replace(made, "title", title)
}

# --- Metrics of trials

check_factor <- function(campaign, name, what = "factor") {
  if (!name %in% campaign$factors) abort_choice(paste("Unknown", what), name, campaign$factors)
}

# Rows of metrics.csv for some metrics of the selected trials and flows.
values_of_metrics <- function(results, trials, metrics, flow = NULL) {
  values <- of_flows(results$metrics[metric %in% metrics], flow)[trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(values) == 0) abort_nothing(paste("no trial has", paste(metrics, collapse = ", ")))
  values
}
