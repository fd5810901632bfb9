# Define theme, colours, legends and number formats of all figures.

#' Theme of all figures
#'
#' Text has a size of 9 points in figures that are 6.3 in wide, like the report's text. Axes and grid are grey; only data are coloured.
#'
#' @param base_size Size of text, points.
#' @return A ggplot2 theme.
#' @examples
#' library(ggplot2)
#' ggplot(mtcars, aes(wt, mpg)) + geom_point() + theme_samovar()
#' @export
theme_samovar <- function(base_size = 9) {
  ink <- "grey15"
  small <- ggplot2::element_text(size = base_size - 1, colour = ink)
  ggplot2::theme_minimal(base_size = base_size) +
    ggplot2::theme(
      text = ggplot2::element_text(colour = ink),
      axis.text = small,
      axis.title = ggplot2::element_text(size = base_size, colour = ink),
      axis.line = ggplot2::element_line(colour = "grey40", linewidth = 0.3),
      axis.ticks = ggplot2::element_line(colour = "grey40", linewidth = 0.3),
      panel.grid.major = ggplot2::element_line(colour = "grey90", linewidth = 0.25),
      panel.grid.minor = ggplot2::element_blank(),
      panel.spacing = ggplot2::unit(8, "pt"),
      strip.text = ggplot2::element_text(size = base_size, colour = ink, hjust = 0),
      strip.placement = "outside",
      legend.position = "top",
      legend.justification = "left",
      legend.margin = ggplot2::margin(0, 0, 0, 0),
      legend.box.spacing = ggplot2::unit(4, "pt"),
      legend.key.width = ggplot2::unit(18, "pt"),
      legend.key.height = ggplot2::unit(10, "pt"),
      legend.text = small,
      legend.title = ggplot2::element_text(size = base_size - 1, colour = ink),
      plot.margin = ggplot2::margin(4, 8, 4, 4)
    )
}

# Largest height of a figure that fits on a page of the report together with a caption of several lines.
most_height_in <- 7.8

# Okabe and Ito, "Color Universal Design", 2008: colours that colour-blind readers can distinguish. Yellow is omitted because it is hard to see on
# white.
okabe_ito <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
line_types <- c("solid", "22", "42", "13", "62", "1343", "solid", "22")
point_shapes <- c(16, 17, 15, 18, 1, 2, 0, 5)

# The largest number of curves whose colours readers can distinguish. Quantities have an order, so they get a scale with more colours.
most_curves <- function(levels) if (is.null(values_of_levels(levels))) length(okabe_ito) else 2L * length(okabe_ito)

# The light end of the scale is omitted because it is hard to see on white.
ordered_colours <- function(n) grDevices::hcl.colors(ceiling(1.15 * n), "viridis")[seq_len(n)]

# A level has the same colour, line and point in all figures of a campaign, according to its position in the plan.
scale_levels <- function(levels, title, aesthetics = c("colour", "linetype", "shape")) {
  most <- most_curves(levels)
  if (length(levels) > most) {
    cli::cli_abort("A figure can show at most {most} curves, not {length(levels)} ({title}); \\
                    choose with an option of the figure, such as {.code {title}: [{levels[1]}, {levels[2]}]}.",
                   class = "samovar_error_figure", call = NULL)
  }
  pick <- \(values) stats::setNames(rep_len(values, length(levels)), levels)
  colours <- if (length(levels) > length(okabe_ito)) ordered_colours(length(levels)) else okabe_ito
  guide <- wrapped_legend(levels, title)
  list(
    if ("colour" %in% aesthetics) ggplot2::scale_colour_manual(title, values = pick(colours), guide = guide),
    if ("fill" %in% aesthetics) ggplot2::scale_fill_manual(title, values = pick(colours), guide = guide),
    if ("linetype" %in% aesthetics) ggplot2::scale_linetype_manual(title, values = pick(line_types), guide = guide),
    if ("shape" %in% aesthetics) ggplot2::scale_shape_manual(title, values = pick(point_shapes), guide = guide)
  )
}

# A legend above the panels, in as few rows as its text allows, filled row by row. If the title and
# all entries do not fit into one row, the title is placed above the entries.
wrapped_legend <- function(levels, title) {
  if (length(levels) < 2) return("legend")
  rows <- legend_rows(levels, title)
  ggplot2::guide_legend(nrow = rows$entries, byrow = TRUE, title.position = if (rows$title > 0) "top")
}

# The rows of a legend's entries, and the row of its title (0 or 1) if this is above the entries.
legend_rows <- function(levels, title) {
  entries <- legend_entry_pt + text_width_pt(levels)
  above <- sum(text_width_pt(title), entries) > legend_width_pt
  fits <- \(columns) sum(tapply(entries, (seq_along(entries) - 1) %% columns, max)) <= legend_width_pt
  columns <- if (above) max(1, Filter(fits, seq_along(entries))) else length(entries)
  list(entries = ceiling(length(entries) / columns), title = as.integer(above))
}

# Height that a figure needs for the rows of its legend beyond the first three.
legend_height_in <- function(levels, title) 0.16 * max(0, sum(unlist(legend_rows(levels, title))) - 3)

# In figures that are 6.3 inches wide, panels are about 5.5 inches wide; a legend starts at the left edge of
# the panels.
legend_width_pt <- 5.5 * 72
legend_entry_pt <- 18 + 2 * 5.5 # of each entry: the key, and the space on both sides of its text

# Width of text of 8 pt in DejaVu Sans, whose characters are 0.6 em wide on average and digits 0.64 em. A
# graphics device, which could measure the text, is open only while a figure is written.
text_width_pt <- function(text) 8 * 0.64 * nchar(text)

# Break titles of panels at spaces, for panels in `across` columns; a title that is wider than its panel would be cut off. In many columns, titles would
# take the room of the panels.
broken_titles <- function(texts, across) {
  if (across > most_columns) return(as.character(texts))
  most <- floor((legend_width_pt / across - 14) / (text_width_pt("0") * 9 / 8)) # titles have 9 points
  vapply(as.character(texts), \(text) paste(strwrap(text, max(most, 5) + 1), collapse = "\n"), "", USE.NAMES = FALSE)
}

# A discrete axis whose labels are words, for a figure with `across` columns of panels. Labels that are too wide for one line are broken at spaces. If a
# single word is too wide, all labels are rotated by 35 degrees, or by 90 degrees if they are short and two lines do not fit.
word_axis <- function(title, levels, across = 1, ...) {
  room_pt <- legend_width_pt / across / max(1, length(levels)) - 2
  broken <- \(most) vapply(levels, \(text) paste(strwrap(text, most + 1), collapse = "\n"), "") # strwrap() makes lines shorter than its width
  labels <- broken(floor(room_pt / text_width_pt("0")))
  turned <- any(text_width_pt(unlist(strsplit(labels, "\n", fixed = TRUE))) > room_pt)
  upright <- turned && room_pt < 18 && all(text_width_pt(levels) < 72)
  ggplot2::scale_x_discrete(title, labels = if (!turned) labels else if (upright) levels else broken(18),
                            guide = ggplot2::guide_axis(angle = if (upright) 90 else if (turned) 35), ...)
}

# Sizes as users write them: 50000 is "50 KB" and 9999000 is "9999 KB", not rounded to "10 MB".
label_bytes <- function(bytes) {
  big <- bytes >= 1e6 & bytes %% 1e5 == 0
  ifelse(is.na(bytes), NA_character_,
         ifelse(big, paste(format_plain(bytes / 1e6), "MB"), paste(format_plain(bytes / 1e3), "KB")))
}

# Labels of a linear axis have the same number of decimals: 1.979 and 1.980, not 1.979 and 1.98.
label_axis <- function(x) ifelse(is.na(x), NA_character_, format(x, trim = TRUE, scientific = FALSE, digits = 6))

format_plain <- function(x) vapply(x, \(v) format(v, trim = TRUE, scientific = FALSE, digits = 6), "")

# The kinds of quantities that levels of factors can be, with the size of each unit in multiples of the smallest one, as in samovar/units.py.
unit_scales <- list(
  size = c(B = 1, KB = 1e3, kB = 1e3, MB = 1e6, GB = 1e9, TB = 1e12, KiB = 2^10, MiB = 2^20, GiB = 2^30, TiB = 2^40),
  rate = c(bit = 1, kbit = 1e3, mbit = 1e6, gbit = 1e9), time = c(ns = 1, us = 1e3, ms = 1e6, s = 1e9, min = 60e9, h = 3600e9),
  packets = c(packet = 1, packets = 1), share = c("%" = 1), drift = c(ppm = 1), products = c(BDP = 1), number = stats::setNames(1, "")
)

# "40Mbit" of kind rate is 40e6; NA for a text that is not of this kind. A zero needs no unit.
parse_quantity <- function(text, kind) {
  number <- suppressWarnings(as.double(sub("[A-Za-z% ]+$", "", text)))
  unit <- sub("^[0-9.eE+-]+ *", "", text)
  scales <- unit_scales[[kind]]
  scale <- unname(scales)[match(if (kind == "rate") tolower(unit) else unit, names(scales))]
  fifelse(unit == "" & number %in% 0, 0, number * scale)
}

# The values of texts if all are quantities of one kind, else NULL.
values_of_levels <- function(texts) {
  values <- Filter(\(v) !anyNA(v), lapply(names(unit_scales), \(kind) parse_quantity(texts, kind)))
  if (length(values) > 0) values[[1]]
}

# Return the texts in the order of their values if they have values, else in the given order.
in_order_of_value <- function(texts) {
  values <- values_of_levels(texts)
  if (is.null(values)) texts else texts[order(values)]
}
