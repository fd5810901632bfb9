# Life of batteries by material and temperature: Montgomery, Design and Analysis of Experiments, 8th ed., tables 5.1 and 5.5.
batteries <- data.table::data.table(
  material = rep(1:3, each = 12), temperature = rep(rep(c(15, 70, 125), each = 4), 3), block = 1L,
  value = c(130, 155, 74, 180, 34, 40, 80, 75, 20, 70, 82, 58, 150, 188, 159, 126, 136, 122, 106, 115, 25, 70, 58, 45,
            138, 110, 168, 160, 174, 120, 150, 139, 96, 104, 82, 60)
)

test_that("sums of squares of an analysis of variance are those of a published example", {
  found <- variance_explained(batteries, c("material", "temperature"))
  expect_equal(found$term, c("material", "temperature", "material:temperature", "residual", "total"))
  expect_equal(round(found$sum_sq, 2), c(10683.72, 39118.72, 9613.78, 18230.75, 77646.97))
  expect_equal(found$df, c(2, 2, 4, 27, 35))
})

test_that("effect sizes of an analysis of variance are those computed by hand", {
  # The cells have two trials each: 1 3, 5 7, 2 4, 10 12. Their means are 2, 6, 3 and 11, the means of the levels of a are 4 and 7, the means of
  # the levels of b are 2.5 and 8.5, and the mean of all trials is 5.5.
  values <- data.table::data.table(a = rep(1:2, each = 4), b = rep(rep(1:2, each = 2), 2), block = 1L, value = c(1, 3, 5, 7, 2, 4, 10, 12))
  found <- variance_explained(values, c("a", "b"))
  # Sums of squares: a 8 * 1.5^2 = 18; b 8 * 3^2 = 72; a:b 8 * 1^2 = 8; within cells 4 * 2 = 8; total 106.
  expect_equal(found$sum_sq, c(18, 72, 8, 8, 106))
  expect_equal(found$share, c(18, 72, 8, 8, 106) / 106)
  expect_equal(found$generalised[1:3], c(18 / 26, 72 / 80, 8 / 16))
  expect_equal(found$omega_sq[1:3], c(16, 70, 6) / 108)
})

with_blocks <- function() {
  set.seed(3)
  data.table::CJ(cc = c("cubic", "cdg", "vegas"), rwnd = c("50KB", "200KB"), mtu = c(600, 1500), block = 1:4)[, value := stats::rnorm(.N) + 3 * block + (cc == "cdg") * (mtu == 600)]
}

test_that("a balanced design in blocks is split as by aov with blocks as a stratum", {
  values <- with_blocks()
  found <- variance_explained(values, c("cc", "rwnd", "mtu"))
  expected <- summary(stats::aov(value ~ cc * rwnd * factor(mtu) + Error(factor(block)), values))
  within <- expected[["Error: Within"]][[1]]
  expect_equal(found[!term %in% c("block", "total")]$sum_sq, within[["Sum Sq"]])
  expect_equal(found[!term %in% c("block", "total")]$df, within[["Df"]])
  expect_equal(found[term == "block"]$sum_sq, expected[["Error: factor(block)"]][[1]][["Sum Sq"]])
  expect_equal(sum(found[term != "total"]$share), 1)
  # Differences between blocks are noise of the path: another experiment would have other blocks.
  noise <- sum(found[term %in% c("block", "residual")]$sum_sq)
  expect_equal(found[term == "cc"]$generalised, within[["Sum Sq"]][1] / (within[["Sum Sq"]][1] + noise))
})

test_that("many blocks, or many treatments, have the sums of squares of a balanced design", {
  set.seed(4)
  values <- data.table::CJ(cc = 1:2, rwnd = 1:3, block = 1:3000)[, value := stats::rnorm(.N) + cc * rwnd + block %% 7]
  of_means <- \(by) sum((values[, mean := mean(value), by = by]$mean - mean(values$value))^2)
  # A matrix of indicators for 3,000 blocks or treatments would take 0.4 GB, and a fit of it would take hours.
  found <- variance_explained(values, c("cc", "rwnd"))
  expect_equal(found[term == "rwnd"]$sum_sq, of_means("rwnd"))
  expect_equal(found[term == "cc:rwnd"]$sum_sq, of_means(c("cc", "rwnd")) - of_means("cc") - of_means("rwnd"))
  expect_equal(found[term == "block", c(df, sum_sq)], c(2999, of_means("block")))
  expect_equal(found[term == "residual"]$df, 17999 - 2999 - 5)
  data.table::setnames(values, c("rwnd", "block"), c("block", "rwnd"))
  expect_equal(variance_explained(values, "rwnd")[term == "rwnd", c(df, sum_sq)], c(2999, of_means("rwnd")))
})

test_that("an unbalanced design has sums of squares of type II, as comparisons of models give them", {
  values <- with_blocks()[-c(2, 9, 10, 30)][, mtu := factor(mtu)][, block := factor(block)]
  found <- variance_explained(values, c("cc", "rwnd", "mtu"))
  gain <- \(term, without) {
    small <- stats::lm(without, values)
    stats::deviance(small) - stats::deviance(stats::update(small, paste("~ . +", term)))
  }
  expect_equal(found[term == "cc"]$sum_sq, gain("cc", value ~ rwnd * mtu + block))
  expect_equal(found[term == "cc:mtu"]$sum_sq, gain("cc:mtu", value ~ cc * rwnd + rwnd * mtu + block))
  expect_equal(found[term == "cc:rwnd:mtu"]$sum_sq, gain("cc:rwnd:mtu", value ~ (cc + rwnd + mtu)^2 + block))
  expect_equal(found[term == "block"]$sum_sq, gain("block", value ~ cc * rwnd * mtu))
  full <- stats::lm(value ~ cc * rwnd * mtu + block, values)
  expect_equal(found[term == "residual"]$sum_sq, stats::deviance(full))
  expect_equal(found[term == "residual"]$df, stats::df.residual(full))
})

test_that("a level that needs a reboot has the sum of squares between its whole plots, and blocks are within them", {
  values <- with_blocks()[mtu == 600][, block := block + 4L * (rwnd == "50KB")]
  found <- variance_explained(values, c("cc", "rwnd"))
  expected <- stats::anova(stats::lm(value ~ cc * rwnd + factor(block), values))
  expect_equal(found[match(c("cc", "rwnd", "block", "cc:rwnd", "residual"), term)]$sum_sq, expected[["Sum Sq"]])
  expect_equal(found[term == "block"]$df, 6)
  # The noise between boots cannot be estimated from two boots.
  expect_equal(is.na(found$omega_sq), found$term %in% c("rwnd", "block", "residual", "total"))
  expect_match(variance_words(found[, part := "main"]), "needs a reboot", all = FALSE)
})

test_that("interactions of many factors are one term, and the residual stays the noise of replicates", {
  values <- with_blocks()
  all <- variance_explained(values, c("cc", "rwnd", "mtu"))
  found <- variance_explained(values, c("cc", "rwnd", "mtu"), highest = 1L)
  expect_equal(found$term, c("cc", "rwnd", "mtu", "higher", "block", "residual", "total"))
  expect_equal(found[term == "higher"]$sum_sq, sum(all[grepl(":", term)]$sum_sq))
  expect_equal(found[term == "residual"], all[term == "residual"])
})

test_that("factors that always change together are one term, effect sizes without replicates are NA, and values without variance give no table", {
  values <- with_blocks()[, rate := ifelse(rwnd == "50KB", "1Mbit", "2Mbit")]
  expect_equal(variance_explained(values, c("cc", "rwnd", "rate"))$term[1:3], c("cc", "rwnd = rate", "cc:rwnd = rate"))
  once <- variance_explained(values[block == 1 & mtu == 600], c("cc", "rwnd"))
  expect_equal(once[term == "residual"]$df, 0)
  expect_true(all(is.na(c(once$omega_sq, once$generalised))))
  expect_match(variance_words(once[, part := "main"]), "Without replicates", all = FALSE)
  expect_null(variance_explained(values[, value := 1], c("cc", "rwnd")))
  expect_null(variance_explained(with_blocks()[cc == "cdg"], "cc"))
})
