test_that("an axis of rates or numbers is numeric, any other has its levels in the order of the plan", {
  expect_equal(level_axis(c("500Kbit", "40Mbit"), NULL, "udp"), list(at = c(0.5, 40), title = "udp (Mbit/s)"))
  expect_equal(level_axis(c("4", "12"), NULL, "stations")$at, c(4, 12))
  expect_equal(levels(level_axis(c("pie", "codel"), c("codel", "fq", "pie"), "aqm")$at), c("codel", "pie"))
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
