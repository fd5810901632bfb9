# outputs.yaml, the manifest of metrics, figures and tables, agrees with the functions of the package; a project may have a manifest of its own.

test_that("every entry of outputs.yaml has a function, and every function of a figure or table has an entry", {
  space <- asNamespace("samovar")
  for (kind in c("figure", "table")) {
    functions <- grep(paste0("^", kind, "_[a-z_]+$"), ls(space), value = TRUE)
    functions <- Filter(\(name) is.function(get(name, envir = space)), functions)
    expect_setequal(gsub("_", "-", sub(paste0(kind, "_"), "", functions)), known_names(kind))
  }
  for (metric in outputs_of("metric")) expect_true(is.function(function_named(metric[["function"]])))
})

test_that("the options of figures and tables in outputs.yaml are the arguments of their functions, with the same defaults", {
  for (kind in c("figure", "table")) {
    for (name in known_names(kind)) {
      arguments <- formals(function_named(paste0(kind, "_", gsub("-", "_", name))))
      options <- outputs_of(kind)[[name]]$options
      expect_equal(names(arguments), c("results", "trials", names(options)), info = name)
      for (option in names(options)) {
        info <- options[[option]]
        if (isTRUE(info$required)) {
          expect_equal(arguments[[option]], quote(expr = ), info = paste(name, option))
        } else {
          default <- arguments[[option]]
          expect_equal(if (identical(default, quote(Inf))) NULL else default, info$default, info = paste(name, option))
        }
      }
    }
  }
})

test_that("every need of a metric is a quantity, and TCP state is read from each logger that records it", {
  for (metric in outputs_of("metric")) expect_true(all(metric$needs %in% names(outputs_of("quantity"))))
  expect_setequal(names(sender_sources), sources_of("tcp-state"))
  expect_equal(sources_of("siftr"), "siftr")
})

test_that("captions of several trials over time name the factors of the panels or columns", {
  folder <- small_campaign()
  quietly(analyse_campaign(folder, figures = list("queue-time", "trial-time-series"), cores = 1L))
  captions <- vapply(jsonlite::fromJSON(file.path(folder, "bundle", "figures.json"), simplifyVector = FALSE), \(figure) figure$caption, "")
  expect_match(captions[1], "Panels: Part, Congestion control, MTU (bytes).", fixed = TRUE)
  expect_match(captions[2], "Columns: Part, Congestion control, MTU (bytes).", fixed = TRUE)
})

test_that("a caption names the logger that recorded the values of the figure", {
  campaign <- read_campaign(small_campaign())
  ids <- campaign$trials$id
  expect_equal(source_words(campaign, ids, "cwnd_median_packets"), "TCP state recorded by tcp-info")
  expect_equal(source_words(campaign, ids, c("rtt_median_ms", "queue_max_packets")), "")
  from_siftr <- \(manifest) {
    manifest$files <- lapply(manifest$files, \(f) if (identical(f$logger, "tcp-info")) utils::modifyList(f, list(logger = "siftr")) else f)
    manifest
  }
  campaign$manifests[[1]] <- from_siftr(campaign$manifests[[1]])
  expect_equal(source_words(campaign, ids, c("cwnd_median_packets", "cycles")), "TCP state recorded by tcp-info and siftr")
  expect_equal(source_words(campaign, ids[1], "local_drops_packets"), "Rejected packets recorded by siftr")
  expect_equal(metrics_of(list(table = "treatments", metrics = list("cycles", "goodput_bps"))), c("cycles", "goodput_bps"))
})

test_that("a metric that is not in outputs.yaml is an error", {
  expect_error(metric_rows("bulk", list(rtt_meadian_ms = 1)), "did you mean .rtt_median_ms.", class = "samovar_error_name")
})

own_project <- function() {
  folder <- tempfile("analysis-")
  dir.create(folder)
  writeLines(c(
    "metrics:", "  small_share: {what: share of small packets, unit: share, needs: [capture], function: small_share}",
    "figures:", "  small-by-cc: {what: Share of small packets, options: {axis: {what: Axis., values: [log]}}, shows: [small_share]}"
  ), file.path(folder, "outputs.yaml"))
  writeLines(c(
    "small_share <- function(flow) mean((flow$far %||% flow$near)$ip_bytes < 100)",
    "figure_small_by_cc <- function(results, trials, axis = NULL) {",
    "  data <- values_of_metrics(results, trials, 'small_share')",
    "  plot <- ggplot2::ggplot(data, ggplot2::aes(cc, value)) + ggplot2::geom_point() + theme_samovar()",
    "  list(plot = plot, data = data[, .(cc, value)], trials = unique(data$trial), width_in = 3, height_in = 2, title = 'Small', caption = '')",
    "}"
  ), file.path(folder, "small.R"))
  folder
}

test_that("a project adds metrics and figures with its own manifest and R files", {
  on.exit(use_project(NULL))
  folder <- small_campaign()
  quietly(results <- analyse_campaign(folder, figures = list(list(figure = "small-by-cc", title = "Mine")), cores = 1L, project = own_project()))
  expect_equal(nrow(results$metrics[metric == "small_share" & unit == "share"]), 6)
  figures <- jsonlite::fromJSON(file.path(folder, "bundle", "figures.json"), simplifyVector = FALSE)
  expect_equal(figures[[1]][c("name", "title")], list(name = "small-by-cc", title = "Mine"))
  quietly(again <- analyse_campaign(folder, figures = list(), cores = 1L))
  expect_equal(nrow(again$metrics[metric == "small_share"]), 0)
})

test_that("a project overrides entries of the package, and its functions must exist", {
  on.exit(use_project(NULL))
  project <- own_project()
  unlink(file.path(project, "small.R"))
  use_project(project)
  expect_error(function_named("small_share"), "missing", class = "samovar_error_name")
  writeLines("figures: {design: {what: Mine}}", file.path(project, "outputs.yaml"))
  use_project(project)
  expect_equal(outputs_of("figure")$design$what, "Mine")
  expect_equal(sum(names(outputs_of("figure")) == "design"), 1)
})

test_that("figures whose options give them the same name have files of their own", {
  folder <- small_campaign()
  overlaid <- list(figure = "bars", show = "goodput_bps", by = "mtu", overlay = "cc")
  panels <- list(figure = "bars", show = "goodput_bps", by = "mtu", facet = "cc")
  expect_equal(entry_names(list(overlaid, panels, list(figure = "bars-goodput-bps-mtu-cc-2")), "figure"),
               c("bars-goodput-bps-mtu-cc", "bars-goodput-bps-mtu-cc-2", "bars-goodput-bps-mtu-cc-2-2"))
  quietly(analyse_campaign(folder, figures = list(overlaid, panels), cores = 1L))
  drawn <- jsonlite::fromJSON(file.path(folder, "bundle", "figures.json"), simplifyVector = FALSE)
  expect_equal(lengths(lapply(drawn, \(figure) figure$layout$facets)), c(0, 1))
  expect_equal(uniqueN(vapply(drawn, \(figure) figure$file, "")), 2)
  expect_true("cc" %in% names(fread(file.path(folder, "bundle", drawn[[2]]$data))))
})
