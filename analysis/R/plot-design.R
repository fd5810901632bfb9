# Draw the figure of a campaign's design: the levels of each factor in the order of the trials.

#' Design of a campaign: the levels of each factor by trial order
#'
#' @param data A table with `factor` (factor), `level` (factor), `standing` (factor: whether the trials are used), `from` and `to` (first and last of
#'   consecutive trials with the same level).
#' @param blocks A table with `from` and `to` (first and last trial of a block), `shaded` (TRUE or FALSE).
#' @param parts A table with `part`, `from` (first trial of the part).
#' @return A ggplot.
#' @examples
#' design <- data.table::data.table(factor = factor("cc"), level = factor(c("cubic", "newreno")), standing = factor("analysed"), from = c(1, 3), to = c(2, 4))
#' plot_design(design, blocks = data.table::data.table(from = 1, to = 4, shaded = FALSE), parts = data.table::data.table(part = "one", from = 1))
#' @export
plot_design <- function(data, blocks, parts) {
  ggplot2::ggplot(data) +
    ggplot2::geom_rect(
      ggplot2::aes(xmin = from - 0.5, xmax = to + 0.5, ymin = -Inf, ymax = Inf), blocks[shaded == TRUE],
      fill = "grey93", inherit.aes = FALSE
    ) +
    ggplot2::geom_segment(
      ggplot2::aes(x = from - 0.5, xend = to + 0.5, y = level, yend = level, colour = standing), linewidth = 2.6
    ) +
    ggplot2::geom_vline(ggplot2::aes(xintercept = from - 0.5), parts[-1], colour = "grey40", linewidth = 0.3) +
    ggplot2::facet_grid(ggplot2::vars(factor), scales = "free_y", space = "free_y", switch = "y") +
    ggplot2::scale_x_continuous(
      order_title(parts), limits = c(min(blocks$from) - 0.5, max(blocks$to) + 0.5), breaks = order_breaks,
      expand = ggplot2::expansion(0.005)
    ) +
    ggplot2::scale_y_discrete(NULL) +
    scale_levels(levels(data$standing), NULL, "colour") +
    theme_samovar() +
    ggplot2::theme(
      panel.grid.major = ggplot2::element_blank(),
      strip.text.y.left = ggplot2::element_text(angle = 0, hjust = 1),
      legend.position = if (nlevels(data$standing) > 1) "top" else "none"
    )
}

# The axis covers all trials, including those of parts without factors, and starts at 1.
order_breaks <- function(limits) {
  whole <- unique(round(pmax(pretty(limits), ceiling(limits[1]))))
  whole[whole <= limits[2]]
}

order_title <- function(parts) {
  if (nrow(parts) < 2) return("Trial, in order")
  paste0("Trial, in order (", paste0(parts$part, " from ", parts$from, collapse = ", "), ")")
}

# At a width of 6.3 in, more trials cannot be distinguished.
most_drawn <- 2000L
used_or_not <- c("analysed", "left out or not run")

figure_design <- function(results, trials) {
  campaign <- results$campaign
  design <- cbind(
    trials[, .(order = seq_len(.N), trial = id, part, replicate, block, standing = used_or_not[2L - (id %in% campaign$trials$id)])],
    trials[, campaign$factors, with = FALSE]
  )
  shown <- utils::head(design, most_drawn)
  if (all(is.na(shown[, campaign$factors, with = FALSE]))) abort_nothing("the trials have no factors")
  data <- level_runs(shown, campaign)
  blocks <- shown[, .(from = min(order), to = max(order)), by = .(run = rleid(part, block))][, shaded := seq_len(.N) %% 2L == 0L]
  parts <- shown[, .(from = min(order)), by = part]
  levels <- data[, .(levels = uniqueN(level)), by = factor]
  list(
    plot = plot_design(data, blocks, parts), data = design, trials = design$trial, width_in = 6.3,
    height_in = 0.9 + 0.16 * sum(levels$levels + 2), title = "Design: factor levels by trial order",
    caption = sentences(
      paste("Levels of", count_words(nrow(design), "trial"), "in the order of the plan"),
      if (nrow(blocks) > 1) "Blocks alternate between white and shaded",
      if (nrow(design) > most_drawn) paste("Only the first", most_drawn, "are drawn")
    )
  )
}

# Consecutive trials with the same level become one line, which keeps the file small.
level_runs <- function(design, campaign) {
  long <- melt(design, id.vars = c("order", "part", "standing"), measure.vars = campaign$factors,
               variable.name = "factor", value.name = "level", variable.factor = FALSE)[!is.na(level)]
  data <- long[, .(from = min(order), to = max(order)),
               by = .(factor, level, standing, run = rleid(factor, part, level, standing))]
  known <- unlist(lapply(campaign$factors, \(f) rev(factor_levels(campaign, f))))
  data[, factor := factor(factor, levels = campaign$factors)]
  data[, level := factor(level, levels = unique(c(known, level)))]
  data[, standing := factor(standing, levels = intersect(used_or_not, standing))]
  data[order(factor, from)]
}

# `order`, `id`, `part`, a text column per factor, `replicate`, `block` of each trial of the plan.
planned_trials <- function(campaign) {
  rows <- lapply(campaign$plan$trials, \(t) c(t[c("id", "part")], factor_row(t$treatment, campaign$factors), t[c("replicate", "block")]))
  rows <- rbindlist(rows)[, order := .I]
  picked <- campaign$part$trials
  if (is.null(picked)) rows[] else rows[id %in% picked]
}
