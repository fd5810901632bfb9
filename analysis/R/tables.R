# Make the tables of the report. Published values that an experiment gives are shown beside the measured values.

# --- Medians

table_cc_comparison <- function(results, trials, published = NULL) {
  campaign <- results$campaign
  if (!"cc" %in% campaign$factors) abort_nothing("the experiment has no factor cc")
  trials <- at_largest_rwnd(campaign, trials)
  curves <- curves_of(campaign, trials)
  values <- values_of_metrics(results, trials, c("rtt_median_ms", "rtt_max_ms"))
  values[, level := curves$labels[match(trial, trials$id)]]
  per_trial <- values[, .(value = stats::median(value)), by = .(level, cc, metric, trial)]
  data <- per_trial[, median_interval(value), by = .(level, cc, metric)][order(level)]
  rows <- lapply(levels(droplevels(data$level)), \(l) cc_row(data[level == l], l, published, trial_count(values, l)))
  sources <- as.vector(vapply(names(published), \(s) paste0(s, ": ", c("median", "max")), character(2)))
  list(
    title = "RTT by congestion control",
    columns = headed(c(curves$title, "RTT median (ms)", "RTT max (ms)", "Trials", sources),
                     c("left", rep("right", 3 + length(sources)))),
    rows = rows, data = data, trials = unique(values$trial),
    caption = sentences(
      "RTT of packet pairs: median over the trials of each trial's median and maximum, with the interval in brackets",
      if (length(published) > 0) paste("Values of", paste(names(published), collapse = " and "), "(ms) are published, not measured here"),
      fixed_words(campaign, trials, curves$factors), bracket_words(data$n), path_words(campaign, trials)
    )
  )
}

cc_row <- function(measured, label, published, n) {
  cells <- unlist(lapply(published, \(source) {
    entry <- source[[measured$cc[1]]]
    vapply(c("median", "max"), \(k) as.character(entry[[k]] %||% "-"), "")
  }))
  c(label, interval_text(measured[metric == "rtt_median_ms"], 3), interval_text(measured[metric == "rtt_max_ms"], 3), n, unname(cells))
}

table_crossed <- function(results, trials, metric, rows, columns, published = NULL) {
  campaign <- results$campaign
  check_factor(campaign, rows, "factor of rows")
  check_factor(campaign, columns, "factor of columns")
  values <- values_of_metrics(results, trials, metric)
  shown <- display_unit(values$unit[1])
  per_trial <- values[, .(value = stats::median(value) * shown$scale), by = c("trial", rows, columns)]
  setnames(per_trial, c(rows, columns), c("row", "column"))
  data <- per_trial[, median_interval(value), by = .(row, column)]
  # Trials of several treatments are not a sample of one distribution.
  pooled <- nlevels(curves_of(campaign, trials, but = c(rows, columns))$labels) > 1
  if (pooled) data[, c("lo", "hi", "confidence") := NA_real_]
  down <- intersect(known_levels(campaign, rows), data$row)
  across <- intersect(known_levels(campaign, columns), data$column)
  cells <- \(l) c(l, vapply(across, \(a) interval_text(data[row == l & column == a], 3), ""),
                  if (!is.null(published)) vapply(across, \(a) as.character(published[[l]][[a]] %||% "-"), ""))
  list(
    title = paste(metric_title(metric, shown$unit), "by", factor_title(rows), "and", factor_title(columns)),
    columns = headed(c(factor_title(rows), paste0(columns, " ", across), if (!is.null(published)) paste0(across, ", published")),
                     c("left", rep("right", length(across) * (1L + !is.null(published))))),
    rows = lapply(down, cells), data = data, trials = unique(per_trial$trial),
    caption = sentences(
      paste0("Medians, ", replicate_words(data$n), if (!pooled) ", with intervals in brackets"),
      published_words(published), if (pooled) "No interval: each cell has trials of several treatments" else bracket_words(data$n), path_words(campaign, trials)
    )
  )
}

table_treatments <- function(results, trials, metrics, flow = NULL, against = NULL, published = NULL) {
  campaign <- results$campaign
  curves <- curves_of(campaign, trials)
  values <- values_of_metrics(results, trials, metrics, flow)
  values[, level := curves$labels[match(trial, trials$id)]]
  per_trial <- values[, .(value = stats::median(value) * display_unit(unit[1])$scale, unit = display_unit(unit[1])$unit), by = .(level, metric, trial)]
  data <- per_trial[, c(median_interval(value), list(unit = unit[1])), by = .(level, metric)][order(level, match(metric, metrics))]
  shown <- intersect(metrics, data$metric)
  heads <- vapply(shown, \(m) metric_title(m, data[metric == m]$unit[1]), "")
  changes <- if (!is.null(against)) changes_from_part(results, trials, metrics[1], flow, against, curves)
  if (!is.null(against)) heads <- c(heads, paste0(metric_title(metrics[1], ""), ", change from ", against, " (%)"))
  given <- utils::head(c(metrics, if (!is.null(against)) "change"), max(0, lengths(published)))
  compared <- intersect(c(shown, "change"), given)
  rows <- lapply(levels(droplevels(data$level)), \(l) {
    cells <- as.character(unlist(published[[l]]))[match(compared, c(metrics, "change"))]
    c(l, vapply(shown, \(m) interval_text(data[level == l & metric == m], 3), ""), if (!is.null(against)) changes[[l]], trial_count(values, l),
      ifelse(is.na(cells), "-", cells))
  })
  list(
    title = paste(heads, collapse = ", "),
    columns = headed(c(curves$title, heads, "Trials", if (length(compared) > 0) paste0(heads[match(compared, c(shown, "change"))], ", published")), c("left", rep("right", length(heads) + 1 + length(compared)))),
    rows = rows, data = data, trials = unique(per_trial$trial),
    caption = sentences(
      paste0("Medians, ", replicate_words(data$n), ", with intervals in brackets"), flow_words(flow),
      published_words(compared), bracket_words(data$n), path_words(campaign, trials)
    )
  )
}

# Return, for each row, how much a metric changes, in percent, from the trials of part `against` that have the
# same levels: text such as "+34.7", or "-" if that part has no such trials.
changes_from_part <- function(results, trials, name, flow, against, curves) {
  campaign <- results$campaign
  others <- campaign$trials[part == against]
  if (nrow(others) == 0) abort_nothing(paste("no trial of part", against, "can be used"))
  treatments <- \(x) do.call(paste, c(lapply(campaign$factors, \(f) as.character(x[[f]])), list(sep = "\r")))
  median_of <- \(rows) {
    if (nrow(rows) == 0) return(NA_real_)
    values_of_metrics(results, rows, name, flow)[, .(value = stats::median(value)), by = trial][, stats::median(value)]
  }
  labels <- levels(droplevels(curves$labels))
  stats::setNames(lapply(labels, \(l) {
    here <- trials[curves$labels == l]
    percent <- 100 * (median_of(here) / median_of(others[treatments(others) %in% treatments(here)]) - 1)
    if (is.finite(percent)) sprintf("%+.1f", percent) else "-"
  }), labels)
}

table_completion_by_size <- function(results, trials, flow = NULL) {
  campaign <- results$campaign
  curves <- curves_of(campaign, trials)
  values <- values_of_metrics(results, trials, c("flow_completion_s", "delivered_bytes"), flow)
  flows <- dcast(values, trial + flow ~ metric, value.var = "value")
  if (!all(c("flow_completion_s", "delivered_bytes") %in% names(flows))) abort_nothing("no capture has a TCP flow")
  flows <- flows[!is.na(flow_completion_s) & delivered_bytes > 0]
  flows[, level := curves$labels[match(trial, trials$id)]]
  flows[, size := cut(delivered_bytes, size_edges, size_words, right = FALSE)]
  per_trial <- flows[, .(flows = .N, median_s = stats::median(flow_completion_s), p95_s = quantiles_of(flow_completion_s, 0.95)), by = .(level, size, trial)]
  data <- per_trial[, c(list(flows = sum(flows)), stats::setNames(median_interval(p95_s)[c("median", "lo", "hi")], c("p95_s", "p95_lo_s", "p95_hi_s")), median_interval(median_s)),
                    by = .(level, size)][order(level, size)]
  rows <- lapply(seq_len(nrow(data)), \(i) with(data[i], c(
    as.character(level), as.character(size), flows, interval_text(data[i], 3), interval_text(data[i, .(median = p95_s, lo = p95_lo_s, hi = p95_hi_s)], 3), n
  )))
  list(
    title = "Flow completion time by size",
    columns = headed(c(curves$title, "Size", "Flows", "Median (s)", "95th percentile (s)", "Trials"), c("left", "left", rep("right", 4))),
    rows = rows, data = data, trials = unique(flows$trial),
    caption = sentences(
      "Time from the SYN to the acknowledgement of the last data: medians over the trials of each trial's median and 95th percentile, with intervals in brackets",
      flow_words(flow), bracket_words(data$n), path_words(campaign, trials)
    )
  )
}

size_edges <- c(0, 1e4, 1e5, 1e6, 1e7, Inf)

size_words <- c("below 10 KB", "10 to 100 KB", "100 KB to 1 MB", "1 to 10 MB", "from 10 MB")

# --- Effects of factors

table_changes <- function(results, trials, metric, factor, against = NULL, as = "difference", flow = NULL) {
  campaign <- results$campaign
  check_factor(campaign, factor)
  known <- known_levels(campaign, factor)
  against <- against %||% intersect(planned_levels(campaign, factor), trials[[factor]])[1]
  if (!against %in% known) abort_choice(paste("Unknown level of", factor), against, known)
  values <- values_of_metrics(results, trials, metric, flow)
  curves <- curves_of(campaign, trials, but = factor)
  shown <- display_unit(values$unit[1])
  values[, curve := curves$labels[match(trial, trials$id)]]
  per_trial <- values[!is.na(get(factor)), .(value = stats::median(value) * shown$scale), by = c("trial", "curve", factor, "replicate")]
  setnames(per_trial, c(factor, "replicate"), c("level", "pair"))
  per_trial[, run := positions_of(campaign, trial)]
  data <- paired_changes(per_trial, against, as)[order(curve, match(level, known))]
  if (nrow(data) == 0) abort_nothing(paste0("no block has two trials that differ only in ", factor, ", one of them with ", against))
  several <- uniqueN(per_trial$curve) > 1
  ratio <- as == "ratio"
  y_title <- metric_title(metric, shown$unit)
  list(
    title = paste0("Change of ", y_title, " by ", factor_title(factor)),
    columns = headed(c(if (several) curves$title, factor_title(factor), paste("At", against), "At level", if (ratio) "Ratio" else "Change", "Confidence", "Pairs"),
                     c(rep("left", 1L + several), rep("right", 5L))),
    rows = lapply(seq_len(nrow(data)), \(i) c(if (several) as.character(data$curve[i]), change_cells(data[i], if (ratio) 5 else 4))),
    data = data, trials = unique(per_trial$trial),
    caption = sentences(
      paste0(y_title, " at ", factor, " ", against, " and at the level of the row: medians over pairs of trials, and the median ",
             if (ratio) "ratio" else "difference", " within a pair, with its interval in brackets (order statistics)"),
      pairing_words(campaign, per_trial), change_words(data), flow_words(flow), path_words(campaign, trials)
    )
  )
}

# Ratios have a digit more, because most are close to 1.
change_cells <- function(row, digits) {
  number <- \(v) format_plain(signif(v, 4))
  change <- interval_text(row[, .(median = change, lo, hi)], digits)
  c(row$level, number(row$from), number(row$to), paste0(if (!row$distinct) "~ ", change), if (is.na(row$confidence)) "-" else percent_words(row$confidence), row$n)
}

change_words <- function(data) {
  without <- is.na(data$lo) & !is.na(data$change)
  c(
    if (any(!data$distinct)) "~: the interval includes zero change, or there is no interval",
    if (any(without & data$n < fewest_values)) paste("No interval: fewer than", fewest_values, "pairs"),
    if (any(without & data$n >= fewest_values)) "No interval: all trials of one level were run before those of the other, so that drift or a reboot is part of the change",
    if (sum(!is.na(data$lo)) > 1) "Each interval has its confidence by itself, not all of them together"
  )
}

# A pair in one block was run close together in time; other pairs have only the number of their replicate in common.
pairing_words <- function(campaign, per_trial) {
  pairs <- per_trial[, .(curve, pair, block = blocks_of(campaign, trial))]
  if (identical(campaign$plan$order, "blocked") && uniqueN(pairs) == uniqueN(pairs[, .(curve, pair)])) return("Trials are paired by block")
  "Trials are paired by replicate: pairs were not run in one block, so that drift of the path is part of the noise"
}

table_variance_explained <- function(results, trials, metric, scale = NULL, flow = NULL) {
  campaign <- results$campaign
  values <- values_of_metrics(results, trials, metric, flow)
  shown <- display_unit(values$unit[1])
  per_trial <- values[, .(value = stats::median(value) * shown$scale), by = c("trial", "part", campaign$factors, "metric", "unit")]
  if (identical(scale, "log")) {
    if (any(per_trial$value <= 0)) abort_nothing(paste("logarithms need positive values, but", metric, "is", min(per_trial$value), "in a trial"))
    per_trial[, value := log(value)]
  }
  data <- variance_by_part(campaign, per_trial)
  if (nrow(data) == 0) abort_nothing(paste("no factor varies, or", metric, "is the same in all trials"))
  several <- uniqueN(data$part) > 1
  of <- paste0(if (identical(scale, "log")) "the logarithm of ", metric_title(metric, shown$unit))
  list(
    title = paste("Variance of", of, "by factor"),
    columns = headed(c(if (several) "Part", "Term", "df", "Sum of squares", "\u03b7\u00b2 (%)", "Generalised \u03b7\u00b2 (%)", "\u03c9\u00b2 (%)"),
                     c(rep("left", 1L + several), rep("right", 5L))),
    rows = lapply(seq_len(nrow(data)), \(i) c(if (several) data$part[i], variance_cells(data[i]))),
    data = data, trials = unique(per_trial$trial),
    caption = sentences(
      paste0("Analysis of variance of ", of, ", ", count_words(nrow(per_trial), "trial")),
      paste0("\u03b7\u00b2: share of the total sum of squares; generalised \u03b7\u00b2: share of the term, blocks and replicates together; ",
             "\u03c9\u00b2: estimate of the share beyond this sample, negative where a term explains less than noise would"),
      variance_words(data), flow_words(flow), path_words(campaign, trials)
    )
  )
}

variance_cells <- function(row) {
  percent <- \(share) if (is.na(share)) "-" else format(round(100 * share, 1), nsmall = 1, trim = TRUE)
  titles <- c(higher = "Higher interactions", block = "Block", residual = "Replicates (residual)", total = "Total")
  title <- unname(titles[row$term])
  if (is.na(title)) title <- paste(vapply(strsplit(row$term, ":", fixed = TRUE)[[1]], term_title, ""), collapse = " \u00d7 ")
  c(title, row$df, if (is.na(row$sum_sq)) "-" else format_plain(signif(row$sum_sq, 4)), percent(row$share), percent(row$generalised), percent(row$omega_sq))
}

# Return the title of a term: "Rate = Buffer" for "path.rate = path.buffer", two factors that always change
# together.
term_title <- function(names) paste(vapply(strsplit(names, " = ", fixed = TRUE)[[1]], factor_title, ""), collapse = " = ")

# Notes on what the table cannot show.
variance_words <- function(data) {
  sums <- data[, .(added = sum(sum_sq[term != "total"], na.rm = TRUE), total = sum_sq[term == "total"]), by = part]
  c(
    if (any(abs(sums$added / sums$total - 1) > 1e-6)) "The design is unbalanced: sums of squares are of type II and do not add up to the total",
    if (any(data[term == "residual"]$df == 0)) "Without replicates, noise cannot be distinguished from the highest interaction",
    if (any(data[!term %in% c("residual", "total")]$df == 0)) "Dash: these trials cannot distinguish the term from other terms",
    if (any(data[, is.na(omega_sq) & !is.na(generalised)])) "No \u03c9\u00b2 of a level that needs a reboot: its noise is the difference between two boots"
  )
}

# --- Buffer size

table_buffer_estimates <- function(results, trials, published = NULL) {
  campaign <- results$campaign
  curves <- curves_of(campaign, trials)
  values <- values_of_metrics(results, trials, names(buffer_columns))
  values[, level := curves$labels[match(trial, trials$id)]]
  per_trial <- values[, .(value = stats::median(value)), by = .(level, metric, trial)]
  data <- per_trial[, median_interval(value), by = .(level, metric)][order(level, match(metric, names(buffer_columns)))]
  shown <- intersect(names(buffer_columns), data$metric)
  compared <- unique(unlist(lapply(published, names)))
  rows <- lapply(levels(droplevels(data$level)), \(l) {
    c(l, vapply(shown, \(m) interval_text(data[level == l & metric == m]), ""), trial_count(values, l),
      vapply(compared, \(k) as.character(published[[l]][[k]] %||% "-"), ""))
  })
  list(
    title = "Buffer size estimates",
    columns = headed(c(curves$title, buffer_columns[shown], "Trials", if (length(compared) > 0) paste0(compared, ", published")),
                     c("left", rep("right", length(shown) + 1 + length(compared)))),
    rows = rows, data = data, trials = unique(values$trial),
    caption = sentences(
      "Buffer in packets: median over the trials of each trial's median over its cwnd cycles, with the interval in brackets",
      "Queue sampler: longest queue in the samples of trials with drops",
      "Method 1 uses the mean rate of the cycle, its local variant the rate during the queueing delay",
      "Method 2 uses cwnd one round trip before its reduction, less the packets on the idle path; as published, cwnd at its reduction",
      published_words(compared), bracket_words(data$n), path_words(campaign, trials)
    )
  )
}

buffer_columns <- c(
  buffer_method1_packets = "Method 1", buffer_method2_packets = "Method 2", buffer_truth_packets = "Queue sampler",
  buffer_method1_local_packets = "Method 1, local rate", buffer_method2_raw_packets = "Method 2, as published"
)

table_pause_buffer <- function(results, trials, published = NULL) {
  data <- pause_estimates(results, trials, pause_methods)
  per_trial <- data[, .(packets = stats::median(packets)), by = .(curve, metric, mtu_bytes, trial)]
  medians <- per_trial[, c(median_interval(packets), list(mtu_bytes = mtu_bytes[1])), by = .(curve, metric)]
  cell <- \(l, m) {
    row <- medians[curve == l & metric == m]
    if (nrow(row) == 0) return("-")
    paste0(interval_text(row, 5), " (", format(round(row$median * row$mtu_bytes / 2^20, 1), nsmall = 1), ")")
  }
  rows <- lapply(levels(data$curve), \(l) {
    c(l, vapply(pause_methods, \(m) cell(l, m), ""), uniqueN(data[curve == l]$trial), vapply(published[[l]], as.character, ""))
  })
  sources <- if (length(published) > 0) paste0("Method ", seq_along(published[[1]]), ", published")
  list(
    title = "Estimated buffer size",
    columns = headed(c(attr(data, "title"), "Method 1", "Method 2", "Trials", sources), c("left", rep("right", 3 + length(sources)))),
    rows = rows, data = medians, trials = unique(data$trial),
    caption = sentences(
      "Median buffer in packets, with the interval in brackets, and in MiB at the MTU", pause_method_words,
      published_words(published), bracket_words(medians$n), path_words(results$campaign, trials)
    )
  )
}

pause_methods <- c("1" = "buffer_pause_packets", "2" = "buffer_delay_packets")

pause_method_words <- c(
  "1" = "Packets in flight when the packet that triggered the first PAUSE frame was sent, less those on the idle path.",
  "2" = "One-way delay of that packet, less the idle one-way delay, times the link rate, divided by the MTU."
)

# One row per estimate. The sending rate and size are not properties of the device: trials that differ only in such factors share a curve.
pause_estimates <- function(results, trials, metrics) {
  campaign <- results$campaign
  found <- results$metrics[metric %in% metrics][trials, on = c(trial = "id"), nomatch = NULL]
  if (nrow(found) == 0) abort_nothing("no trial has a PAUSE frame early enough for an estimate")
  curves <- curves_of(campaign, trials, but = grep("^traffic[.]", campaign$factors, value = TRUE))
  found[, curve := droplevels(curves$labels[match(trial, trials$id)])]
  mtu_bytes <- vapply(campaign$manifests[found$trial], mtu_of, 0)
  data <- found[, .(curve, packets = value, trial, metric, mtu_bytes)][order(curve, metric, packets)]
  setattr(data, "title", curves$title)
  data
}

# --- PAUSE frames

table_flow_control <- function(results, trials) {
  campaign <- results$campaign
  found <- results$metrics[metric %in% c(flow_control_columns, "loss_share") & trial %in% trials$id]
  if (!any(flow_control_columns[1:2] %in% found$metric)) abort_nothing("no trial recorded PAUSE frames or drops at the sender")
  data <- flow_control_of_trials(found)
  curves <- curves_of(campaign, trials, but = grep("^traffic[.]", campaign$factors, value = TRUE))
  data[, level := curves$labels[match(trial, trials$id)]]
  setorder(data, level, trial)
  levels <- levels(droplevels(data$level))
  list(
    title = "PAUSE frames: seen, swallowed or none",
    columns = headed(c(curves$title, "Flow control", "Frames captured", "Counted by the card", "Rejected by the ring", "Trials"), c("left", "left", rep("right", 4))),
    rows = unlist(lapply(levels, \(l) flow_control_rows(data[level == l], l)), recursive = FALSE), data = data, trials = unique(data$trial),
    caption = sentences(
      "Medians over trials. Seen: PAUSE frames are in the sender's capture or log",
      "Swallowed: the capture has none, but the card counted some, or its ring rejected packets while the interface sent more slowly than before",
      "None: the card counted none, or packets were lost elsewhere while the ring never filled",
      "Dash: not counted", path_words(campaign, trials)
    )
  )
}

flow_control_columns <- c("pause_frames_seen", "local_drops_packets", "pause_frames_counted", "ring_held_share")

# One row per trial: its flows share the interface, so the largest value of each metric is the interface's.
flow_control_of_trials <- function(found) {
  most <- \(x) if (length(x) > 0) max(x) else NA_real_
  found[, {
    of <- \(name) most(value[metric == name])
    list(seen = of("pause_frames_seen"), counted = of("pause_frames_counted"), refused = of("local_drops_packets"),
         held_share = of("ring_held_share"), lost_share = of("loss_share"))
  }, by = trial][, state := flow_control_state(seen, counted, refused, held_share, lost_share)][]
}

flow_control_rows <- function(data, label) {
  middle <- \(x) if (all(is.na(x))) "-" else format_plain(signif(stats::median(x, na.rm = TRUE), 4))
  lapply(split(data, data$state), \(d) c(label, d$state[1], middle(d$seen), middle(d$counted), middle(d$refused), nrow(d))) |> unname()
}

# --- The campaign

table_overhead <- function(results, trials) {
  phases <- results$campaign$phases[id %in% trials$id]
  totals <- trials[!is.na(overhead_s), .(id, phase = "overhead, all phases", seconds = overhead_s)]
  both <- rbind(phases, totals)
  if (nrow(both) == 0) abort_nothing("no trial recorded its overhead")
  data <- both[, .(median_s = stats::median(seconds), max_s = max(seconds), total_s = sum(seconds), n = .N), by = phase]
  seconds <- \(v) format(round(v, 2), nsmall = 2, trim = TRUE)
  list(
    title = "Overhead of a trial in addition to its traffic",
    columns = headed(c("Phase", "Median (s)", "Max (s)", "All trials (s)", "Trials"), c("left", rep("right", 4))),
    rows = lapply(seq_len(nrow(data)), \(i) with(data[i], c(phase, seconds(median_s), seconds(max_s), seconds(total_s), n))),
    data = data, trials = trials$id,
    caption = sentences(paste("Time per phase, over", count_words(nrow(trials), "trial")))
  )
}

table_left_out <- function(results, trials) {
  left <- results$left_out
  list(
    title = "Trials left out",
    columns = headed(c("Trial", "Reason"), c("left", "left")),
    rows = lapply(seq_len(nrow(left)), \(i) c(left$id[i], left$reason[i])),
    data = left, trials = character(),
    caption = sentences(
      if (nrow(left) == 0) "No trial was left out" else paste("Left out:", nrow(left), "of", results$planned, "planned trials")
    )
  )
}
