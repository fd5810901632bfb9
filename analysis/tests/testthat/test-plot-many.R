samples <- function(n) {
  set.seed(20130417)
  data.table::data.table(t_s = seq(0, 60, length.out = n), flow = factor(rep_len(c("a", "b"), n)), value = 20 + stats::rexp(n, 1 / 5))
}

write_pdf <- function(plot) {
  path <- tempfile(fileext = ".pdf")
  write_figure(plot, path, 6.3, 3, as.POSIXct(0, origin = "1970-01-01", tz = "UTC"))
  path
}

# Images of a PDF: width, height and dots per inch.
pictures <- function(path) {
  lines <- system2("pdfimages", c("-list", path), stdout = TRUE)[-(1:2)]
  do.call(rbind, lapply(strsplit(trimws(lines), " +"), \(f) data.frame(type = f[3], width = as.integer(f[4]), height = as.integer(f[5]), dpi = as.integer(f[13]))))
}

test_that("many points are drawn as one image at 300 dots per inch, with axes and legend as text", {
  need_tool("pdfimages")
  path <- write_pdf(plot_samples(samples(20000), "RTT (ms)"))
  found <- pictures(path)
  expect_setequal(found$type, c("image", "smask"))
  expect_true(all(abs(found$dpi - 300) <= 1))
  words <- system2("pdftotext", c(path, "-"), stdout = TRUE)
  expect_true(all(c("Time (s)", "Flow") %in% words))
})

test_that("a figure of few points is drawn as vectors", {
  need_tool("pdfimages")
  expect_null(pictures(write_pdf(plot_samples(samples(2000), "RTT (ms)"))))
})

test_that("a figure of a million points, or of lines through them, is smaller than a megabyte", {
  many <- samples(1e6)
  for (form in c("points", "line", "step")) expect_lt(file.size(write_pdf(plot_samples(many, "RTT (ms)", form))), 1e6)
})

test_that("two R processes write the same bytes for the same figure", {
  code <- sprintf("library(samovar); set.seed(1); x <- data.table::data.table(t_s = 1:3e4, value = stats::runif(3e4), flow = 'a')
                   for (form in c('points', 'step')) write_figure(plot_samples(x, 'y', form), file.path('%%s', form), 6, 3, as.POSIXct(9, origin = '1970-01-01'))")
  sums <- lapply(1:2, \(k) {
    folder <- tempfile("drawn-")
    dir.create(folder)
    status <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(sprintf(code, folder))), stdout = FALSE, stderr = FALSE)
    expect_equal(status, 0L)
    unname(tools::md5sum(list.files(folder, full.names = TRUE)))
  })
  expect_length(sums[[1]], 2)
  expect_equal(sums[[1]], sums[[2]])
})

test_that("a dot in an image covers the pixels around its own, later rows are on top, and points outside are left out", {
  picture <- dots_picture(c(0.55, 0.55, 0.05), c(0.55, 0.55, 0.95), c("#FF0000", "#0000FF", "#00FF00"), c(10L, 10L), 3)
  expect_equal(dim(picture), c(10L, 10L))
  rows <- matrix(as.integer(picture), 10, byrow = TRUE)
  blue <- native_colour("#0000FF")
  expect_equal(which(rows == blue, arr.ind = TRUE)[, c("row", "col")] |> apply(2, range), cbind(row = c(4L, 6L), col = c(5L, 7L)))
  expect_equal(sum(rows == native_colour("#FF0000")), 0)
  expect_equal(rows[1, 1:3], c(native_colour("#00FF00"), native_colour("#00FF00"), 0L))
  # R interprets the number as the original colour: the first byte in memory is red.
  expect_equal(as.integer(writeBin(native_colour("#0102FF"), raw(), endian = "little")), c(1L, 2L, 255L, 255L))
})

test_that("a thinned line has the same extremes in every pixel column as the full line", {
  x <- seq(0, 10, length.out = 50000)
  y <- sin(40 * x) + ifelse(seq_along(x) %in% c(17, 33333), 9, 0)
  rows <- thinned_rows(x, y, 500)
  expect_lte(length(rows), 2000)
  expect_false(is.unsorted(rows))
  column <- findInterval(x, seq(0, 10, length.out = 501), all.inside = TRUE)
  heights <- \(at) data.table::data.table(column = column[at], y = y[at])[, .(low = min(y), high = max(y), first = y[1], last = y[.N]), keyby = column]
  expect_equal(heights(rows), heights(seq_along(x)))
})

test_that("a line of few samples is not thinned", {
  built <- ggplot2::ggplot_build(plot_samples(samples(2000), "RTT (ms)", "line"))$data[[1]]
  expect_equal(nrow(built), 2000)
})
