test_that("an axis of sizes, rates or numbers is numeric, any other has its levels in their order", {
  expect_equal(level_axis(factor(c("500Kbit", "40Mbit")), "udp"), list(at = c(0.5, 40), title = "udp (Mbit/s)", sizes = FALSE))
  expect_equal(level_axis(c("4", "12"), "stations")$at, c(4, 12))
  expect_equal(level_axis(c("50KB", "1MB"), "rwnd"), list(at = c(5e4, 1e6), title = "rwnd", sizes = TRUE))
  expect_equal(levels(level_axis(factor(c("pie", "codel"), c("codel", "pie")), "aqm")$at), c("codel", "pie"))
  expect_equal(level_axis(factor(c("0B", "9KB")), "limit")$at, factor(c("0B", "9KB"))) # 0 has no logarithm
})

test_that("figures against receive windows are medians by the factor rwnd, with the window in bytes", {
  folder <- small_campaign()
  quietly(results <- analyse_campaign(folder, figures = list(), cores = 1L))
  short <- make_output(results, list(figure = "rtt-by-rwnd", part = "window"))
  long <- make_output(results, list(figure = "bars", kind = "points", show = "rtt_median_ms", by = "rwnd", part = "window"))
  expect_equal(names(short$data)[1:4], c("curve", "rwnd", "rwnd_bytes", "median"))
  expect_equal(unname(as.list(short$data)), unname(as.list(long$data)))
  expect_match(long$caption, "Grey line: theory")
  expect_equal(short$layout$x, "rwnd_bytes")
  in_packets <- make_output(results, list(figure = "metric-by-factor", metric = "cwnd_median_packets", factor = "rwnd", part = "window"))$data
  in_kb <- make_output(results, list(figure = "cwnd-by-rwnd", part = "window"))$data
  expect_equal(in_kb$median, in_packets$median * (1500 - tcp_header_bytes) / 1e3)
})

test_that("labels of an axis have the same number of decimals", {
  expect_equal(label_axis(c(NA, 1.978, 1.979, 1.98, 0.1 + 0.2 + 1.681)), c(NA, "1.978", "1.979", "1.980", "1.981"))
  expect_equal(label_axis(c(40, 60, 1e6)), c("40", "60", "1000000"))
  data <- data.table::data.table(x = c(1.9774, 1.9815), y = c(40, 110), curve = factor("a"))
  shown <- ggplot2::ggplot_build(plot_two_metrics(data, "Throughput (Mbit/s)", "RTT (ms)"))$layout$panel_params[[1]]$x$get_labels()
  shown <- shown[!is.na(shown)]
  expect_gt(length(shown), 2)
  expect_equal(unique(nchar(sub("^[^.]*", "", shown))), 4L)
})

test_that("an axis of medians includes negative values", {
  data <- data.table::data.table(level = c(1, 2), curve = factor("a"), median = c(-3, 4), lo = c(-4, 3), hi = c(-2, 5))
  range <- ggplot2::layer_scales(plot_by_factor(data, "x", "y", y_from = y_start(data)))$y$get_limits()
  expect_equal(range, c(-4, 5))
})

test_that("the title of a metric has its words and its unit", {
  expect_equal(metric_title("rtt_median_ms", "ms"), "RTT median (ms)")
  expect_equal(metric_title("loss_share", "%"), "Loss (%)")
  expect_equal(metric_title("goodput_bps", "Mbit/s"), "Goodput (Mbit/s)")
})

test_that("windows of a series are combined to complete windows of the requested width", {
  series <- data.table::data.table(trial = "a", flow = "x", t_s = seq(0.25, 11.75, by = 0.5), mid = rep(c(1, 3, 9), c(10, 10, 4)))
  expect_equal(wider_windows(series, 5)$mbps, c(1, 3))
  expect_equal(nrow(wider_windows(series, 30)), 0)
  # A longer trial has windows of 2 or 10 s, so that those of at least 5 s are 6 or 10 s long.
  ramp <- \(span_s) data.table::data.table(trial = "a", flow = "x", t_s = seq(span_s / 2, 60, by = span_s))[, mid := t_s]
  expect_equal(wider_windows(ramp(2), 5)[, .(width_s, mbps)], data.table::data.table(width_s = 6, mbps = seq(3, 57, by = 6)))
  expect_equal(wider_windows(ramp(10), 5)[, .(width_s, mbps)], data.table::data.table(width_s = 10, mbps = seq(5, 55, by = 10)))
})

test_that("figures and tables can be drawn by factor, by flow and in windows, next to published numbers", {
  folder <- small_campaign()
  plan <- file.path(folder, "plan.json")
  edit_json(plan, \(p) {
    p$figures <- list(
      list(figure = "metric-by-factor", part = "window", metric = "rtt_median_ms", factor = "rwnd", axis = "log"),
      list(figure = "throughput-cdf", part = "window", window = "1s"), list(figure = "rtt-cdf", part = "window", flow = "bulk")
    )
    p$tables <- list(
      list(table = "treatments", part = "window", flow = "bulk", metrics = list("rtt_median_ms", "loss_share"), published = list("40KB" = list(7.5))),
      list(table = "buffer-estimates", part = "buffer", published = list("600" = list("Method 1" = 549)))
    )
    p
  })
  quietly(results <- analyse_campaign(folder, cores = 1L))
  left <- jsonlite::fromJSON(file.path(folder, "bundle", "analysis.json"))$figures_left_out
  expect_length(left, 0)
  tables <- jsonlite::fromJSON(file.path(folder, "bundle", "tables.json"), simplifyVector = FALSE)
  heads <- vapply(tables[[1]]$columns, \(column) column$name, "")
  expect_true(all(c("RTT median (ms)", "Loss (%)", "RTT median (ms), published") %in% heads))
  expect_true("Method 1, published" %in% vapply(tables[[2]]$columns, \(column) column$name, ""))
  expect_true(any(vapply(tables[[2]]$rows, \(row) "549" %in% unlist(row), TRUE)))
  flows <- data.table::fread(file.path(folder, "tables", "flows.csv"))
  expect_setequal(flows$flow, "bulk")
})

# The widest right edge of the legend's text, and the width of the page, in points.
legend_edge_pt <- function(levels, title) {
  data <- data.table::CJ(level = c(1, 2), curve = factor(levels, levels = levels))[, c("median", "lo", "hi") := 1]
  plot <- plot_by_factor(data, "Rate (Mbit/s)", "Throughput (Mbit/s)", title)
  grDevices::cairo_pdf(tempfile(fileext = ".pdf"), width = 6.3, height = 3.2, family = "DejaVu Sans")
  on.exit(grDevices::dev.off())
  grobs <- ggplot2::ggplotGrob(plot)
  legend <- grobs$grobs[[grep("guide-box", grobs$layout$name)[1]]]
  panel_left <- sum(grid::convertWidth(grobs$widths[seq_len(grobs$layout$l[grobs$layout$name == "panel"] - 1)], "pt", valueOnly = TRUE))
  c(edge = panel_left + grid::convertWidth(sum(legend$grobs[[1]]$widths), "pt", valueOnly = TRUE), page = 6.3 * 72)
}

# Draw bars with these levels in one or more panels. Return, for each label of the first x axis, its width in points and its number of lines, and the room in
# points that a label has.
labels_pt <- function(levels, panels) {
  grDevices::pdf(NULL, width = 6.3, height = 2.6)
  on.exit(grDevices::dev.off())
  data <- data.table::CJ(level = factor(levels, levels = levels), panel = seq_len(panels))[, c("curve", "median", "lo", "hi") := list(factor("a"), 2, 1, 3)]
  plot <- plot_bars(data, "Changed", "Share", panels = if (panels > 1) "panel" else character())
  axis <- ggplot2::ggplot_build(plot)$layout$panel_params[[1]]$x$get_labels()
  grobs <- ggplot2::ggplotGrob(plot)
  taken <- grid::convertWidth(sum(grobs$widths[-grobs$layout$l[grepl("^panel", grobs$layout$name)]]), "pt", valueOnly = TRUE)
  wide <- vapply(strsplit(axis, "\n", fixed = TRUE), \(lines) max(grid::convertWidth(grid::stringWidth(lines), "pt", valueOnly = TRUE)), 0) * 8 / 12 # pdf() starts with 12 pt
  list(wide = wide, room = (6.3 * 72 - taken) / panels / length(levels), lines = lengths(strsplit(axis, "\n", fixed = TRUE)))
}

test_that("labels of bars are broken where they would overlap, and are turned where a word is too long", {
  causes <- c("nothing", "no SACK", "no RACK", "small TSQ", "80 packets", "320 packets", "starts at once", "starts every 20 s", "CUBIC", "no HyStart")
  for (found in list(labels_pt(causes, 1), labels_pt(c("down and up", "down only", "voice beside"), 3))) {
    expect_true(all(found$wide < found$room))
    expect_gt(max(found$lines), 1)
  }
  expect_equal(labels_pt(c("9 KB", "15 KB"), 1)$lines, c(1, 1))
  turned <- word_axis("Changed", strrep(letters[1:10], 15))
  expect_equal(turned$guide$angle, 35)
})

test_that("a legend of two factors with eight levels stays within the page, whatever the words", {
  pairs <- \(cc, mtu) as.vector(outer(cc, mtu, paste, sep = ", "))
  for (levels in list(pairs(c("cubic", "newreno", "cdg", "vegas"), c(600, 1500)), pairs("newreno", c(600, 900, 1200, 1500)),
                      pairs(c("newreno", "cubic"), c("pfifo, 9999 KB, ECN on", "fq_codel, 9999 KB, ECN on")), c("cubic", "cdg"))) {
    found <- legend_edge_pt(levels, "Congestion control, MTU")
    expect_lt(found[["edge"]], found[["page"]])
  }
  expect_gt(wrapped_legend(pairs(c("cubic", "newreno", "cdg", "vegas"), c(600, 1500)), "Congestion control, MTU")$nrow, 1)
  expect_equal(wrapped_legend(c("cubic", "cdg"), "Congestion control")$nrow, 1)
})
