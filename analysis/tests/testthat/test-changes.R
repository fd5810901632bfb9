# Six blocks that drift by ten units each, and an effect of about three.
drifting <- function() {
  data.table::data.table(curve = "all", level = rep(c("cubic", "cdg"), each = 6), pair = rep(1:6, 2), run = c(seq(1, 11, 2), seq(2, 12, 2)),
                         value = c(10, 20, 30, 40, 50, 60, 13, 22.5, 33.5, 42, 54, 63.25))
}

test_that("a change is the median of the differences within blocks, so that a drift of the path between blocks does not matter", {
  found <- paired_changes(drifting(), against = "cubic")
  expect_equal(found$change, 3.125)
  expect_equal(c(found$lo, found$hi), c(2, 4))
  expect_equal(c(found$from, found$to), c(35, 37.75))
  expect_equal(c(found$n, found$confidence), c(6, 1 - 2 / 64))
  expect_true(found$distinct)
  # Without the blocks, the same values show no difference: the intervals of both medians overlap almost completely.
  alone <- drifting()[, median_interval(value), by = level]
  expect_lt(max(alone$lo), min(alone$hi))
})

test_that("a block without both levels has no pair, and below three pairs there is no interval", {
  found <- paired_changes(drifting()[!(level == "cdg" & pair > 2)], against = "cubic")
  expect_equal(found[, .(n, change, lo, distinct)], data.table::data.table(n = 2L, change = 2.75, lo = NA_real_, distinct = FALSE))
  expect_equal(found$from, 15)
})

test_that("a ratio needs positive values, and is distinct if its interval excludes 1", {
  found <- paired_changes(drifting()[, value := ifelse(level == "cdg", 2 * pair, pair)], against = "cubic", as = "ratio")
  expect_equal(found[, .(change, lo, hi, distinct)], data.table::data.table(change = 2, lo = 2, hi = 2, distinct = TRUE))
  none <- paired_changes(drifting()[, value := value - 10], against = "cubic", as = "ratio")
  expect_true(is.na(none$change) && is.na(none$lo) && !none$distinct)
})

test_that("levels that were run one after the other have a change, but no interval", {
  found <- paired_changes(drifting()[, run := seq_len(.N)], against = "cubic")
  expect_equal(found[, .(change, lo, hi, n, confidence, distinct)], data.table::data.table(change = 3.125, lo = NA_real_, hi = NA_real_, n = 6L, confidence = NA_real_, distinct = FALSE))
  expect_match(change_words(found), "run before those of the other", all = FALSE)
  expect_false(is.na(paired_changes(drifting()[, run := c(1:5, 7, 6, 8:12)], against = "cubic")$lo))
})

test_that("blocks are numbered as they were run: a level that needs a reboot counts its blocks from 1 again", {
  trial <- \(id, block) list(id = id, part = "main", block = block)
  campaign <- list(plan = list(order = "blocked", trials = list(trial("a", 1), trial("b", 1), trial("c", 2), trial("d", 2), trial("e", 1))))
  expect_equal(blocks_of(campaign, c("e", "a", "b", "c", "d")), c(3, 1, 1, 2, 2))
  pairs <- \(trial, pair) pairing_words(campaign, data.table::data.table(trial = trial, curve = "all", pair = pair))
  expect_equal(pairs(c("a", "b", "c", "d"), c(1, 1, 2, 2)), "Trials are paired by block")
  expect_match(pairs(c("a", "e", "c", "d"), c(1, 1, 2, 2)), "paired by replicate")
  expect_equal(pairs(c("a", "b"), c(1, 1)), "Trials are paired by block")
  campaign$plan$order <- "shuffled"
  expect_match(pairs(c("a", "b", "c", "d"), c(1, 1, 2, 2)), "paired by replicate")
})

# A campaign of one part in six blocks, as the tables read it.
blocked_campaign <- function() {
  planned <- data.table::CJ(block = 1:6, cc = c("cubic", "cdg"))[, id := paste0(cc, block)]
  trials <- planned[, .(id, part = "main", cc, replicate = block, verdict = "valid")]
  metrics <- trials[, .(trial = id, flow = "bulk", metric = "loss_share", unit = "share", value = replicate / 100 + ifelse(cc == "cdg", 0.001 * (10 + replicate), 0))]
  plan <- list(order = "blocked", parts = list(list(name = "main", factors = list(cc = list("cubic", "cdg")))),
               trials = lapply(seq_len(nrow(planned)), \(i) list(id = planned$id[i], part = "main", block = planned$block[i])))
  list(campaign = list(factors = "cc", plan = plan, trials = trials, manifests = list()), metrics = metrics)
}

test_that("the table of changes has a row per level, with the confidence of its interval, and says how trials are paired", {
  results <- blocked_campaign()
  found <- table_changes(results, results$campaign$trials, "loss_share", "cc")
  expect_equal(found$rows, list(c("cdg", "3.5", "4.85", "1.35 [1.1, 1.6]", "96.88 %", "6")))
  expect_match(found$caption, "paired by block", fixed = TRUE)
  other <- table_changes(results, results$campaign$trials[replicate < 3], "loss_share", "cc", against = "cdg", as = "ratio")
  expect_match(other$rows[[1]][4], "^~ 0[.][0-9]+$")
  expect_match(other$caption, "fewer than 3 pairs", fixed = TRUE)
  expect_equal(other$rows[[1]][5:6], c("-", "2"))
  expect_error(table_changes(results, results$campaign$trials, "loss_share", "cc", against = "vegas"), class = "samovar_error_name")
  expect_error(table_changes(results, results$campaign$trials[cc == "cdg"], "loss_share", "cc", against = "cubic"), class = "samovar_no_data")
})

test_that("the table of variance has a row per factor, block, residual and total", {
  results <- blocked_campaign()
  found <- table_variance_explained(results, results$campaign$trials, "loss_share")
  expect_equal(vapply(found$rows, `[`, "", 1), c("Congestion control", "Block", "Replicates (residual)", "Total"))
  expect_equal(vapply(found$rows, `[`, "", 2), c("1", "5", "5", "11"))
  expect_equal(found$rows[[4]][4:6], c("100.0", "-", "-"))
  results$metrics[, value := 0]
  expect_error(table_variance_explained(results, results$campaign$trials, "loss_share", scale = "log"), class = "samovar_no_data")
  expect_error(table_variance_explained(results, results$campaign$trials, "loss_share"), class = "samovar_no_data")
})

test_that("the exported table of variance has every metric that varies, with the same shares as the report's table of a single metric", {
  results <- blocked_campaign()
  metrics <- results$metrics[results$campaign$trials[, .(trial = id, part, cc)], on = "trial"]
  several <- rbind(metrics, copy(metrics)[, `:=`(metric = "rtt_median_ms", unit = "ms", value = value^2)], copy(metrics)[, `:=`(metric = "drops", unit = "packets", value = 0)])
  found <- variance_of(results$campaign, several)
  expect_equal(unique(found$metric), c("loss_share", "rtt_median_ms"))
  expect_equal(found[metric == "loss_share"]$share, table_variance_explained(results, results$campaign$trials, "loss_share")$data$share)
})

test_that("tables of a campaign of several parts compare levels and explain variance within each part", {
  folder <- small_campaign()
  edit_json(file.path(folder, "plan.json"), \(p) {
    p$figures <- list()
    p$tables <- list(
      list(table = "changes", part = "window", metric = "rtt_median_ms", factor = "rwnd", against = "9KB"),
      list(table = "variance-explained", metric = "rtt_median_ms", scale = "log")
    )
    p
  })
  quietly(analyse_campaign(folder, cores = 1L))
  tables <- jsonlite::fromJSON(file.path(folder, "bundle", "tables.json"), simplifyVector = FALSE)
  for (table in tables) expect_equal(length(table$columns), unique(lengths(table$rows)))
  expect_equal(vapply(tables[[1]]$rows, \(row) row[[2]], ""), c("15KB", "21KB"))
  expect_match(tables[[1]]$caption, "paired by replicate")
  expect_equal(unique(vapply(tables[[2]]$rows, \(row) row[[1]], "")), c("buffer", "window"))
  expect_match(tables[[2]]$caption, "Without replicates")
})
