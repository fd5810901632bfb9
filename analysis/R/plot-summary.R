# Draw medians over two factors as tiles, and two metrics against each other.

# Medians over two factors as coloured tiles.
figure_heatmap <- function(results, trials, show, rows, columns, of = NULL, facet = NULL) {
  campaign <- results$campaign
  groups <- groups_of(campaign, trials, NULL, facet, c(rows, columns), rest_to = "panels")
  found <- metric_per_trial(results, groups$trials$id, show, of)
  data <- medians_by(campaign, groups, found$values, c(row = rows, column = columns))[, curve := NULL]
  tall <- 0.9 + 0.42 * uniqueN(data$row)
  list(
    plot = plot_heatmap(data, factor_title(columns), factor_title(rows), found$title, groups$panels), data = data, trials = as.character(found$values$trial),
    width_in = 6.3, height_in = panels_height_in(groups, tall) + 0.3, title = paste(found$title, "by", factor_title(rows), "and", factor_title(columns)),
    layout = list(kind = "tiles", x = "column", y = "row", value = "median", low = "lo", high = "hi", facets = I(groups$panels)),
    caption = summary_caption(campaign, trials, groups, found, data, of, bracket_words)
  )
}

#' Medians over two factors as coloured tiles
#' @param data A table with `row`, `column` (factors), `median`, `lo`, `hi`; further columns for panels.
#' @param x_title,y_title Titles of the axes.
#' @param title Title of the colour legend.
#' @param panels Names of up to two columns; there is one panel for each value, or each combination of two values.
#' @return A ggplot.
#' @examples
#' data <- data.table::CJ(row = factor(c("cubic", "newreno")), column = factor(c("10", "20")))
#' data[, c("median", "lo", "hi") := list(c(12, 24, 11, 22), c(11, 23, 10, 21), c(13, 25, 12, 24))]
#' plot_heatmap(data, "Buffer (packets)", "Congestion control", "RTT (ms)")
#' @export
plot_heatmap <- function(data, x_title, y_title, title, panels = character()) {
  shown <- copy(data)[, label := format_plain(signif(median, 3))]
  shown[!is.na(lo), label := paste0(label, "\n[", format_plain(signif(lo, 3)), ", ", format_plain(signif(hi, 3)), "]")]
  middle <- mean(range(shown$median, na.rm = TRUE))
  shown[, dark := median > middle & max(median) > min(median)]
  ggplot2::ggplot(shown, ggplot2::aes(column, row, fill = median)) +
    ggplot2::geom_tile(colour = "white", linewidth = 0.5) +
    ggplot2::geom_text(ggplot2::aes(label = label, colour = dark), size = 2.5, lineheight = 0.9, show.legend = FALSE) +
    ggplot2::scale_colour_manual(values = c("FALSE" = "grey15", "TRUE" = "white")) +
    ggplot2::scale_fill_gradient(title, low = "#E8F1F8", high = okabe_ito[1], labels = label_axis, na.value = "white") +
    word_axis(x_title, levels(droplevels(data$column)), panels_across(data, panels), expand = c(0, 0)) +
    ggplot2::scale_y_discrete(y_title, limits = rev, expand = c(0, 0)) +
    panel_facets(panels, data) + theme_samovar() +
    ggplot2::theme(panel.grid.major = ggplot2::element_blank(), legend.position = "right", legend.key.height = ggplot2::unit(14, "pt"),
                   legend.key.width = ggplot2::unit(8, "pt"))
}

# --- Two metrics

# Throughput against delay, whose axis is reversed: better is up and to the right.
figure_tradeoff <- function(results, trials, x = "rtt_median_ms", y = "throughput_bps", of = NULL, overlay = NULL, facet = NULL) {
  made <- two_metrics(results, trials, x, y, of, overlay, facet)
  made$plot <- plot_two_metrics(made$data, made$x_title, made$y_title, made$legend, made$layout$facets, delay = TRUE)
  made$layout[c("reversed", "ellipses")] <- list("x", TRUE)
  made$title <- paste(made$y_title, "against", made$x_title)
  made$caption <- sentences("Better is up and to the right: the axis of delay is reversed", made$caption, ellipse_words(made$data))
  made[c("plot", "data", "trials", "width_in", "height_in", "title", "layout", "caption")]
}

figure_scatter <- function(results, trials, x, y, of = NULL, overlay = NULL, facet = NULL) {
  made <- two_metrics(results, trials, x, y, of, overlay, facet)
  made$plot <- plot_two_metrics(made$data, made$x_title, made$y_title, made$legend, made$layout$facets)
  made$title <- paste(made$y_title, "against", made$x_title)
  made[c("plot", "data", "trials", "width_in", "height_in", "title", "layout", "caption")]
}

two_metrics <- function(results, trials, x, y, of, overlay, facet) {
  campaign <- results$campaign
  groups <- groups_of(campaign, trials, overlay, facet)
  across <- metric_per_trial(results, groups$trials$id, x, of)
  up <- metric_per_trial(results, groups$trials$id, y, of)
  both <- across$values[, .(trial, x = value)][up$values[, .(trial, y = value)], on = "trial", nomatch = NULL]
  if (nrow(both) == 0) abort_nothing(paste("no trial has both", x, "and", y))
  data <- cbind(in_groups(both$trial, groups), both)
  list(
    data = data, trials = as.character(data$trial), width_in = 6.3, height_in = panels_height_in(groups, 3.1), x_title = across$title, y_title = up$title,
    legend = groups$legend,
    layout = list(kind = "points", x = "x", y = "y", curve = "curve", facets = I(groups$panels)),
    caption = sentences(
      paste0("A point for each of ", count_words(nrow(data), "trial")), groups$left_out, flow_words(of), fixed_words(campaign, trials, groups$factors),
      path_words(campaign, trials)
    )
  )
}

ellipse_words <- function(data) {
  n <- sort(unique(data[, .N, by = setdiff(names(data), c("trial", "x", "y"))]$N))
  enough <- n[n >= fewest_values]
  share <- paste(round(100 * ellipse_share(enough)), "%")
  sentences(
    if (length(enough) > 0) {
      c(paste("Ellipse: one standard deviation around the mean, from the covariance of", range_words(enough), "trials"),
        paste("Another trial lies inside with a probability of", if (length(enough) > 1) paste(share[1], "to", share[length(share)]) else share,
              "if both metrics are normally distributed"))
    },
    if (n[1] < fewest_values) paste("No ellipse: fewer than", fewest_values, "trials")
  )
}

range_words <- function(n) if (n[1] == n[length(n)]) n[1] else paste(n[1], "to", n[length(n)])

# Probability that one more bivariate normal point is within Mahalanobis distance 1 of the mean of n points, computed with the covariance of these points
# (Hotelling's T-squared distribution): 15 % for 3 points, 39 % for many.
ellipse_share <- function(n) stats::pf(n * (n - 2) / (2 * (n^2 - 1)), 2, n - 2)

#' Two metrics against each other
#' @param data A table with `x`, `y`, `curve` (factor), one row per trial; further columns for panels.
#' @param x_title,y_title Titles of the axes.
#' @param title Title of the legend.
#' @param panels Names of up to two columns; there is one panel for each value, or each combination of two values.
#' @param delay TRUE if x is a delay: its axis is reversed, and each curve with at least three points has an ellipse of one standard deviation.
#' @return A ggplot.
#' @examples
#' data <- data.table::data.table(x = c(21, 22, 23, 31, 34, 33), y = c(8.8, 9.1, 8.9, 9.4, 9.6, 9.7), curve = factor(rep(c("vegas", "cubic"), each = 3)))
#' plot_two_metrics(data, "RTT (ms)", "Throughput (Mbit/s)", delay = TRUE)
#' @export
plot_two_metrics <- function(data, x_title, y_title, title = "Congestion control", panels = character(), delay = FALSE) {
  curves <- levels(data$curve)
  rings <- if (delay) data[, if (.N >= fewest_values) ellipse_of(x, y), by = c("curve", panels)]
  means <- if (delay) data[, .(x = mean(x), y = mean(y)), by = c("curve", panels)]
  ggplot2::ggplot(data, ggplot2::aes(x, y, colour = curve, shape = curve)) +
    (if (delay && nrow(rings) > 0) ggplot2::geom_polygon(ggplot2::aes(fill = curve), rings, alpha = 0.15, linewidth = 0.4, show.legend = FALSE)) +
    ggplot2::geom_point(size = if (delay) 1.1 else 1.8, alpha = if (delay) 0.6 else 1) +
    (if (delay) ggplot2::geom_point(data = means, size = 2.6)) +
    scale_levels(curves, title, c("colour", "shape", "fill")) +
    ggplot2::scale_x_continuous(x_title, labels = label_axis, expand = ggplot2::expansion(0.08), trans = if (delay) "reverse" else "identity") +
    ggplot2::scale_y_continuous(y_title, labels = label_axis, expand = ggplot2::expansion(0.08)) +
    panel_facets(panels, data) + theme_samovar() +
    ggplot2::theme(legend.position = if (length(curves) > 1) "top" else "none")
}

# The ellipse of points at Mahalanobis distance 1 from the mean: its half axes are the standard deviations along the principal directions.
ellipse_of <- function(x, y) {
  half <- eigen(stats::cov(cbind(x, y)), symmetric = TRUE)
  turn <- seq(0, 2 * pi, length.out = 73)
  ring <- half$vectors %*% (sqrt(pmax(half$values, 0)) * rbind(cos(turn), sin(turn)))
  list(x = mean(x) + ring[1, ], y = mean(y) + ring[2, ])
}
