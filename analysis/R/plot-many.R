# Draw very many points as a picture at print resolution, so that the size of a figure's file is limited.

#' A layer of points for any number of points
#'
#' Up to `most_vectors` points per panel are drawn as by [ggplot2::geom_point()]. More points are drawn as one picture per panel at print resolution,
#' while axes, text and legends stay vectors. So a file with a million points is as large as a photograph and opens at once. Points are opaque discs;
#' later rows cover earlier ones.
#'
#' @inheritParams ggplot2::geom_point
#' @param size Diameter of a point, mm.
#' @param dpi Dots per inch of the picture.
#' @param most_vectors If a panel has more points than this, they are drawn as a picture.
#' @return A layer for a ggplot.
#' @examples
#' library(ggplot2)
#' points <- data.frame(x = rnorm(20000), y = rnorm(20000))
#' ggplot(points, aes(x, y)) + geom_many_points(dpi = 100) + theme_samovar()
#' @export
geom_many_points <- function(mapping = NULL, data = NULL, ..., size = 0.4, dpi = 300, most_vectors = 5000, na.rm = FALSE, show.legend = NA,
                             inherit.aes = TRUE) {
  ggplot2::layer(
    geom = GeomManyPoints, stat = "identity", position = "identity", mapping = mapping, data = data, show.legend = show.legend,
    inherit.aes = inherit.aes, params = list(size = size, stroke = 0, dpi = dpi, most_vectors = most_vectors, na.rm = na.rm, ...)
  )
}

GeomManyPoints <- ggplot2::ggproto(
  "GeomManyPoints", ggplot2::GeomPoint,
  extra_params = c("na.rm", "dpi", "most_vectors"),
  draw_panel = function(self, data, panel_params, coord, na.rm = FALSE, dpi = 300, most_vectors = 5000) {
    if (nrow(data) <= most_vectors) {
      return(ggplot2::ggproto_parent(ggplot2::GeomPoint, self)$draw_panel(data, panel_params, coord, na.rm = na.rm))
    }
    at <- coord$transform(data, panel_params)
    shown <- which(at$x >= 0 & at$x <= 1 & at$y >= 0 & at$y <= 1)
    grid::gTree(x = at$x[shown], y = at$y[shown], colour = at$colour[shown], diameter_in = at$size[1] / 25.4, dpi = dpi, cl = "many_points")
  },
  # Points that are too small for their colour to be recognised are larger in the legend.
  draw_key = function(data, params, size) {
    data$size <- max(data$size, 1.8)
    ggplot2::draw_key_point(data, params, size)
  }
)

#' Make the picture of a panel, whose size is known only when it is drawn
#' @param x A gTree of class `many_points`.
#' @return `x` with the picture as its child.
#' @exportS3Method grid::makeContent
#' @noRd
makeContent.many_points <- function(x) {
  inches <- c(grid::convertWidth(grid::unit(1, "npc"), "in", TRUE), grid::convertHeight(grid::unit(1, "npc"), "in", TRUE))
  picture <- dots_picture(x$x, x$y, x$colour, pmax(1L, as.integer(ceiling(inches * x$dpi))), x$diameter_in * x$dpi)
  grid::setChildren(x, grid::gList(grid::rasterGrob(picture, width = grid::unit(1, "npc"), height = grid::unit(1, "npc"), interpolate = FALSE)))
}

# `x` and `y` are 0 to 1 from the lower left corner; `size` is the number of columns and rows of the picture. Its background is transparent.
dots_picture <- function(x, y, colour, size, diameter) {
  colours <- unique(colour)
  column <- pmax(1L, as.integer(ceiling(x * size[1])))
  row <- pmax(1L, as.integer(ceiling((1 - y) * size[2])))
  centres <- integer(size[1] * size[2])
  centres[column + (row - 1L) * size[1]] <- match(colour, colours)
  structure(c(0L, native_colour(colours))[grow_dots(centres, size, diameter) + 1L], dim = rev(size), class = "nativeRaster", channels = 4L)
}

# Each dot becomes a disc. Centres are drawn last, so that no dot is covered completely.
grow_dots <- function(centres, size, diameter) {
  at <- which(centres > 0L)
  column <- (at - 1L) %% size[1] + 1L
  grown <- integer(length(centres))
  for (k in disc_offsets(diameter)) {
    to <- column + k[1]
    cell <- at + k[1] + k[2] * size[1]
    inside <- to >= 1L & to <= size[1] & cell >= 1L & cell <= length(centres)
    grown[cell[inside]] <- centres[at[inside]]
  }
  grown
}

# Pixels whose centre is inside a disc, the farthest first.
disc_offsets <- function(diameter) {
  reach <- floor(diameter / 2)
  steps <- expand.grid(x = -reach:reach, y = -reach:reach)
  steps <- steps[steps$x^2 + steps$y^2 <= max(diameter / 2, 0)^2, ]
  steps <- steps[order(-(steps$x^2 + steps$y^2), steps$x, steps$y), ]
  lapply(seq_len(nrow(steps)), \(k) as.integer(c(steps$x[k], steps$y[k])))
}

# R's format for colours of pictures: red in the lowest byte, opaque in the highest.
native_colour <- function(colours) {
  parts <- grDevices::col2rgb(colours)
  as.integer(parts[1, ] + 256 * parts[2, ] + 65536 * parts[3, ] - 2^24)
}

# Thin out lines of very many points: keep, for each column of a 600 dpi print, the first, lowest, highest and last point, which give the same strokes as
# all points (Jugel et al., M4: A Visualization-Oriented Time Series Data Aggregation, VLDB 2014). The line must be in the order of x.
StatThin <- ggplot2::ggproto(
  "StatThin", ggplot2::Stat,
  required_aes = c("x", "y"),
  compute_group = function(data, scales, columns = print_columns) {
    if (nrow(data) <= 4 * columns) return(data)
    data <- if (is.unsorted(data$x)) data[order(data$x), ] else data
    data[thinned_rows(data$x, data$y, columns), ]
  }
)

# Number of pixel columns of a figure that is printed 6.3 in wide at 600 dpi.
print_columns <- 3800L

thinned_rows <- function(x, y, columns) {
  span <- range(x)
  points <- data.table(y, column = findInterval(x, seq(span[1], span[2], length.out = columns + 1L), all.inside = TRUE))
  rows <- points[, .(row = .I[c(1L, which.min(y), which.max(y), .N)]), by = column]$row
  sort(unique(rows))
}

#' Samples over time, for any number of samples
#'
#' Each sample is a point, or the samples are joined by a line; each flow has a colour. The file stays small
#' even with a million samples: many points become a picture (see [geom_many_points()]), and a line is drawn
#' through the first, lowest, highest and last sample of each column of pixels at 600 dpi.
#'
#' @param data A table with `t_s`, `value` and, if there are several flows, `flow`.
#' @param y_title Title of the y axis.
#' @param form "points", "line" or "step".
#' @param title Title of the legend.
#' @return A ggplot.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' receiver <- read_pcap(samovar_example("bulk-receiver.pcap.gz"))
#' rtt <- packet_pair_rtt(sender, receiver, data_flows(sender)$flow[1])
#' plot_samples(rtt[, .(t_s = t_ns / 1e9, value = rtt_ms)], "RTT (ms)")
#' @export
plot_samples <- function(data, y_title, form = c("points", "line", "step"), title = "Flow") {
  form <- match.arg(form)
  flows <- if (is.null(data[["flow"]])) "all" else levels(droplevels(as.factor(data[["flow"]])))
  shown <- data.table(t_s = data$t_s, value = data$value, flow = factor(data[["flow"]] %||% "all", levels = flows))
  layer <- switch(form,
    points = geom_many_points(na.rm = TRUE),
    line = ggplot2::geom_line(stat = StatThin, linewidth = 0.35, na.rm = TRUE),
    step = ggplot2::geom_step(stat = StatThin, linewidth = 0.5, na.rm = TRUE)
  )
  ggplot2::ggplot(shown, ggplot2::aes(t_s, value, colour = flow)) + layer +
    scale_levels(flows, title, "colour") +
    ggplot2::scale_x_continuous("Time (s)", expand = ggplot2::expansion(c(0.01, 0.02)), labels = label_axis) +
    # Only negative values are outside the limits, and these are clipped, so checking a million values would waste time.
    ggplot2::scale_y_continuous(y_title, limits = c(0, NA), oob = \(x, ...) x, expand = ggplot2::expansion(c(0, 0.05))) +
    theme_samovar() +
    ggplot2::theme(legend.position = if (length(flows) > 1) "top" else "none")
}
