#' The design of a campaign: each factor against the order of its trials
#'
#' @param data A table `factor` (factor), `level` (factor), `standing` (factor), `from`, `to`: orders between which a level stays.
#' @param blocks A table `from`, `to`, `shaded`: orders between which trials belong to one block.
#' @param parts A table `part`, `from`: the order at which each part begins.
#' @return A ggplot.
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

# The axis holds every trial, those of parts without a factor too, and counts from 1.
order_breaks <- function(limits) {
  whole <- unique(round(pmax(pretty(limits), ceiling(limits[1]))))
  whole[whole <= limits[2]]
}

order_title <- function(parts) {
  if (nrow(parts) < 2) return("Trial, in order")
  paste0("Trial, in order (", paste0(parts$part, " from ", parts$from, collapse = ", "), ")")
}

# A line of 6.3 in holds no more trials that could be told apart.
most_drawn <- 2000L
used_or_not <- c("analysed", "left out or not run")

#' Factors against the order of trials, with blocks and which trials are analysed
#' @noRd
figure_design <- function(results, options) {
  campaign <- results$campaign
  design <- design_of(campaign, options)
  shown <- utils::head(design, most_drawn)
  data <- level_runs(shown, campaign)
  blocks <- shown[, .(from = min(order), to = max(order)), by = .(part, block)][, shaded := seq_len(.N) %% 2L == 0L]
  parts <- shown[, .(from = min(order)), by = part]
  levels <- data[, .(levels = uniqueN(level)), by = factor]
  list(
    plot = plot_design(data, blocks, parts), data = design, trials = design$trial, width_in = 6.3,
    height_in = 0.9 + 0.16 * sum(levels$levels + 2), title = options$title %||% "Design: factors against order",
    caption = sentences(
      paste("Levels of", count_words(nrow(design), "trial"), "in the order of the plan"),
      if (nrow(blocks) > 1) "A change of shade begins another block",
      if (nrow(design) > most_drawn) paste("Drawn: the first", most_drawn, "of them")
    )
  )
}

# Every trial of the plan, run or not: options choose among them as they do among those that were.
design_of <- function(campaign, options) {
  every <- campaign
  every$trials <- planned_trials(campaign$plan, campaign$factors)
  chosen <- select_trials(list(campaign = every), options)
  cbind(
    chosen[, .(order = seq_len(.N), trial = id, part, replicate, block,
               standing = used_or_not[2L - (id %in% campaign$trials$id)])],
    chosen[, campaign$factors, with = FALSE]
  )
}

# Neighbours of one level are one stroke: slow factors then take as little room in the file as on the page.
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
planned_trials <- function(plan, factors) {
  rows <- lapply(plan$trials, \(t) c(t[c("id", "part")], factor_row(t$treatment, factors), t[c("replicate", "block")]))
  rbindlist(rows)[, order := .I][]
}
