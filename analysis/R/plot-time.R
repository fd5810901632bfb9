# Draw quantities over time, with one trial of each treatment.

#' Time series of trials in stacked panels
#'
#' One row per quantity, one column per trial. For each 1/600 of the trial, the line shows the median, and the band reaches from the minimum to the
#' maximum.
#'
#' @param data A table with `panel` (factor), `column` (factor), `curve` (factor), `trial`, `flow`, `t_s`, `low`, `mid`, `high`.
#' @param limits A table with `panel`, `column`, `value` of horizontal marks, or NULL.
#' @param panels A facet of ggplot2.
#' @param y_title Title of the y axis, for panels without their own titles.
#' @param events A table with `panel`, `column`, `t_s`, `cause` (factor) of moments to mark on the time axis, or NULL.
#' @param title Title of the legend.
#' @return A ggplot.
#' @examples
#' info <- read_tcp_info(samovar_example("bulk-tcp-info.csv.gz"))[dport == 5001 & bytes_acked > 1000]
#' series <- info[, .(panel = factor("cwnd (packets)"), column = factor("newreno"), curve = factor("bulk"), trial = "first", flow = "bulk", t_s = t_ns / 1e9,
#'                    low = cwnd_packets, mid = cwnd_packets, high = cwnd_packets)]
#' plot_time_series(series)
#' @export
plot_time_series <- function(data, limits = NULL, panels = stacked_panels(), y_title = NULL, events = NULL, title = "Flow") {
  curves <- levels(data$curve)
  ggplot2::ggplot(data, ggplot2::aes(t_s, mid, colour = curve, group = interaction(curve, trial, flow))) +
    limit_lines(limits) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = low, ymax = high, fill = curve), colour = NA, alpha = 0.35) +
    ggplot2::geom_line(stat = StatThin, linewidth = 0.35) +
    event_points(events, length(curves)) +
    panels +
    scale_levels(curves, title, c("colour", "fill")) +
    ggplot2::scale_x_continuous("Time since the start of traffic (s)", expand = ggplot2::expansion(c(0.01, 0.02)), n.breaks = 4,
                                labels = label_axis) +
    ggplot2::scale_y_continuous(y_title, limits = \(range) c(min(0, range[1]), max(range[2], 1e-9)), expand = ggplot2::expansion(c(0, 0.08)), n.breaks = 4) +
    theme_samovar() +
    ggplot2::theme(strip.text.y.left = ggplot2::element_text(angle = 90, hjust = 0.5), panel.spacing.x = ggplot2::unit(14, "pt"),
                   legend.position = if (length(curves) > 1 || !is.null(events)) "top" else "none")
}

stacked_panels <- function(across = 1) {
  titles <- ggplot2::labeller(column = ggplot2::as_labeller(\(x) broken_titles(x, across)))
  ggplot2::facet_grid(panel ~ column, scales = "free_y", switch = "y", labeller = titles)
}

limit_lines <- function(limits) {
  if (is.null(limits) || nrow(limits) == 0) return(NULL)
  ggplot2::geom_hline(ggplot2::aes(yintercept = value), limits, colour = "grey40", linewidth = 0.4, linetype = "dotted")
}

event_points <- function(events, curves) {
  if (is.null(events) || nrow(events) == 0) return(NULL)
  list(
    ggplot2::geom_point(ggplot2::aes(t_s, 0, shape = cause), events, inherit.aes = FALSE, size = 1.6, colour = "grey15"),
    ggplot2::scale_shape_manual("cwnd reduced", values = stats::setNames(c(16, 4, 2, 8, 1), cause_words)),
    if (curves < 2) ggplot2::guides(colour = "none", fill = "none")
  )
}

cause_words <- c(recovery = "fast recovery", timeout = "timeout", cwr = "no loss", enobufs = "refused packet (ENOBUFS)", ssthresh = "cause unknown")

# Draw a list of quantities over time. With `from` or `to`, the span that they bound is measured again in more detail; `until_s` only limits what is drawn.
figure_time_series <- function(results, trials, show, of = NULL, overlay = NULL, facet = NULL, from = NULL, to = NULL, mark = NULL) {
  time_figure(results, trials, show, series_list(show, "over time"), shown_words(show), of, overlay = overlay, facet = facet, from = from, to = to,
              events = "reductions" %in% mark)
}

# "Queue, cwnd and retransmissions over time"
series_list <- function(show, words) paste(titles_in_sentence(unique(vapply(outputs_of("series")[show], \(s) s$title, ""))), words)

titles_in_sentence <- function(titles) and_words(c(titles[1], in_sentence(titles[-1])))

shown_words <- function(show) {
  known <- outputs_of("series")[show]
  capital(titles_in_sentence(vapply(known, \(s) if (length(show) > 2) s$title else paste0(s$title, " (", s$what, ")"), "")))
}

figure_trial_time_series <- function(results, trials, flow = NULL) {
  time_figure(results, at_largest_rwnd(results$campaign, trials), c("cwnd", "rtt", "throughput", "queue"), "One trial over time",
              "Congestion window, RTT of packet pairs, throughput of IP packets at the receiver and bottleneck queue", flow)
}

figure_queue_time <- function(results, trials) {
  time_figure(results, at_largest_rwnd(results$campaign, trials), "queue", "Bottleneck queue over time", "Packets in the bottleneck's queue")
}

figure_rtt_time <- function(results, trials, seconds = Inf, flow = NULL) {
  what <- if (is.finite(seconds)) paste("RTT of packet pairs in the first", format_plain(seconds), "seconds") else "RTT of packet pairs"
  time_figure(results, at_largest_rwnd(results$campaign, trials), "rtt", "RTT over time", what, flow, until_s = seconds)
}

figure_sender_time <- function(results, trials, show = NULL, flow = NULL) {
  shown <- intersect(names(sender_units), show %||% c("cwnd", "ssthresh", "srtt", "rto", "flight", "send-window"))
  time_figure(results, at_largest_rwnd(results$campaign, trials), shown, "The sender's TCP over time",
              paste("What the sender's TCP reported:", paste(shown, collapse = ", ")), flow, events = TRUE, more = srtt_words[intersect(shown, names(srtt_words))])
}

srtt_words <- c(srtt = "srtt is a moving mean of RTTs that include the receiver's delay of acknowledgements; the RTT of packet pairs does not")

# Quantities without a flow, such as the queue, are drawn whatever flows are chosen.
time_figure <- function(results, trials, show, title, what, of = NULL, overlay = NULL, facet = NULL, from = NULL, to = NULL, until_s = Inf,
                        events = FALSE, more = NULL) {
  campaign <- results$campaign
  chosen <- grid_of_trials(campaign, trials, overlay, facet, if (length(show) > 1) most_columns else most_panels)
  rows <- rows_over_time(results, chosen$trials$id, show, from, to)
  data <- of_series(rows[t_s <= until_s], of)
  if (nrow(data) == 0) abort_nothing(paste("no trial has data:", unrecorded_words(show)))
  name_panels(data, chosen)
  dropped <- drop_curves(data)
  data <- data[curve %in% dropped$kept][, curve := droplevels(curve)]
  setorder(data, panel, column)
  limits <- queue_limits(campaign, chosen, data)
  reductions <- if (events) reductions_of(results, chosen, data, of)
  stacked <- nlevels(data$panel) > 1
  columns <- if (stacked) NULL else wrap_columns(nlevels(data$column))
  facets <- if (stacked) stacked_panels(nlevels(data$column)) else
    ggplot2::facet_wrap(~column, ncol = columns, labeller = ggplot2::as_labeller(\(x) broken_titles(x, columns)))
  plain <- is.null(overlay) && is.null(facet)
  list(
    plot = plot_time_series(data, limits, facets, if (!stacked) one_line(levels(data$panel)), reductions, chosen$legend),
    data = data[, c("trial", if (!plain) c("column", "curve"), "flow", "quantity", "unit", "t_s", "low", "mid", "high"), with = FALSE],
    trials = unique(as.character(data$trial)), width_in = 6.3,
    height_in = if (stacked) 1 + 1.25 * nlevels(data$panel) else 0.8 + 1.3 * ceiling(nlevels(data$column) / columns), title = title,
    layout = list(kind = "line", x = "t_s", y = "mid", low = "low", high = "high", curve = if (plain) "flow" else "curve",
                  facets = c("quantity", if (plain) "trial" else "column")),
    sources = series_source_words(campaign, data, show),
    caption = sentences(
      paste0(what, " of ", count_words(nrow(chosen$trials), "trial"), " (replicate ", paste(sort(unique(chosen$trials$replicate)), collapse = ", "), ")"),
      chosen$left_out, dropped$left_out, flow_words(of),
      if (nlevels(chosen$column) > 1) paste0(if (stacked) "Columns: " else "Panels: ", chosen$title),
      fixed_words(campaign, trials, chosen$factors),
      "Line: median, band: minimum to maximum of each 1/600 of the trial", window_words(data),
      if (!is.null(limits)) "Dotted line: configured buffer", upstream_queue_words(campaign, data), if (!is.null(reductions)) "Points: reductions of cwnd", more,
      path_words(campaign, trials)
    )
  )
}

# Rows of series of some trials. Series that every analysis measures over whole trials are stored already; others are measured when a figure shows them.
rows_over_time <- function(results, ids, show, from = NULL, to = NULL) {
  whole <- is.null(from) && is.null(to)
  stored <- rbind(no_series, if (whole) rows_of(results, "series", ids, show), fill = TRUE)
  needs <- series_needs(ids, show, stored, from, to)
  measured <- if (length(needs) > 0) series_of_trials(results, needs)$series else no_series
  columns <- c("trial", "flow", "quantity", "unit", "t_s", "low", "mid", "high", "source")
  rows <- rbind(stored, measured, fill = TRUE)
  rows[, intersect(columns, names(rows)), with = FALSE]
}

no_series <- data.table(trial = character(), flow = character(), quantity = character(), unit = character(), t_s = double(), low = double(),
                        mid = double(), high = double(), source = character())

# Return the trials with series that are not among the stored rows, and the names of these series.
series_needs <- function(ids, show, stored, from, to) {
  there <- unique(stored[, .(trial, quantity)])
  there <- split(there$quantity, there$trial)[ids]
  needs <- unname(Map(\(id, names) list(id = id, names = setdiff(show, names), from_s = from %||% -Inf, to_s = to %||% Inf), ids, there))
  Filter(\(need) length(need$names) > 0, needs)
}

# Return the rows of the chosen flows, and all rows of quantities that belong to the trial or a host.
of_series <- function(rows, of) {
  if (is.null(of)) return(rows)
  scopes <- vapply(outputs_of("series")[rows$quantity], \(s) s$scope %||% "flow", "")
  rows[!scopes %in% c("flow", "application") | flow %in% of | flow_label(flow) %in% of]
}

# Add factors that tell in which panel and on which curve each row is drawn. If the curves are flows, a
# quantity without a flow has the colour of the first flow.
name_panels <- function(data, chosen) {
  flows <- setdiff(unique(data$flow), "")
  if (length(flows) == 0) flows <- data$quantity[1]
  labels <- factor(fifelse(data$flow == "", flows[1], data$flow), levels = flows)
  titles <- vapply(unique(data$quantity), series_title, "")
  at <- match(data$trial, chosen$trials$id)
  order <- intersect(names(outputs_of("series")), names(titles))
  curves <- if (length(chosen$overlay) == 0) labels else if (length(flows) == 1) chosen$curve[at] else interaction(chosen$curve[at], labels, sep = ", ", lex.order = TRUE)
  data[, panel := factor(titles[quantity], levels = unique(titles[order]))]
  data[, column := droplevels(chosen$column[at])][, curve := droplevels(curves)][, flow := labels]
}

# "cwnd (packets)", in two lines if it is longer than a panel is high.
series_title <- function(name) {
  entry <- outputs_of("series")[[name]]
  text <- paste0(entry$title, " (", entry$unit, ")")
  if (nchar(text) > 15) sub(" (", "\n(", text, fixed = TRUE) else text
}

one_line <- function(text) gsub("\n", " ", text, fixed = TRUE)

# The curves that have colours, and how many others are left out.
drop_curves <- function(data) {
  every <- levels(data$curve)
  kept <- utils::head(every, most_curves(every))
  list(kept = kept, left_out = if (length(every) > length(kept)) {
    paste(length(kept), "of", length(every), "curves are shown, because more colours are hard to distinguish; choose with `of` or the levels of a factor")
  })
}

most_columns <- 4L
most_panels <- 12L

wrap_columns <- function(panels) if (panels <= 4) 1L else if (panels <= 8) 2L else 3L

#' Arrange trials in panels and curves: the first replicate of each treatment
#'
#' Factors that vary and are neither `overlay` nor `facet` distinguish panels, or curves if `facet` is given.
#' @param overlay,facet Names of factors.
#' @param most Largest number of panels that remain readable.
#' @return A list: `trials` (one per panel and curve), `column` and `curve` (factors, the panel and the curve of each trial), `legend` (its title), `overlay` (factors
#'   of the curves), `factors` (all that vary), `title` (of the panels), `left_out` (a sentence on treatments that are not shown, or NULL).
#' @noRd
grid_of_trials <- function(campaign, trials, overlay = NULL, facet = NULL, most = most_columns) {
  for (name in c(overlay, facet)) check_factor(campaign, name)
  vary <- curves_of(campaign, trials)$factors
  rest <- setdiff(vary, c(overlay, facet))
  if (!is.null(facet)) overlay <- c(overlay, rest)
  column <- curves_of(campaign, trials, but = overlay, at_least = facet)
  curve <- if (length(overlay) > 0) curves_of(campaign, trials, but = setdiff(c("part", campaign$factors), overlay), at_least = overlay)
  labels <- data.table(id = trials$id, column = column$labels, curve = if (is.null(curve)) factor("all") else curve$labels, replicate = trials$replicate)
  first <- labels[order(column, curve, replicate)][, .SD[1], by = .(column, curve)]
  shown <- first[column %in% utils::head(levels(droplevels(column)), most)]
  every <- uniqueN(first$column)
  list(
    trials = trials[match(shown$id, id)], column = droplevels(shown$column), curve = droplevels(shown$curve), legend = curve$title %||% "Flow",
    overlay = overlay, factors = unique(c(column$factors, curve$factors)), title = column$title,
    left_out = if (every > most) {
      paste(most, "of", every, "combinations of", column$title, "are shown, as more panels cannot be read; choose with the levels of a factor or `part`")
    }
  )
}

# Arrange the first replicate of each treatment in columns.
representatives <- function(campaign, trials) {
  grid <- grid_of_trials(campaign, trials)
  list(trials = grid$trials, labels = grid$column, title = grid$title, factors = grid$factors, left_out = grid$left_out)
}

# Moments at which cwnd was reduced, in the first panel.
reductions_of <- function(results, chosen, data, flow) {
  if (nrow(results$cycles) == 0) return(NULL) # the table of a campaign without reductions has no columns
  found <- of_flows(results$cycles[trial %in% chosen$trials$id], flow)
  if (nrow(found) == 0) return(NULL)
  span_s <- range(data$t_s)
  found <- found[which(found$end_s >= span_s[1] & found$end_s <= span_s[2])]
  if (nrow(found) == 0) return(NULL)
  panels <- levels(data$panel)
  found[, .(panel = factor(panels[1], levels = panels), column = chosen$column[match(trial, chosen$trials$id)], t_s = end_s,
            cause = factor(cause_words[cause], levels = cause_words))]
}

queue_limits <- function(campaign, chosen, data) {
  limits <- unique(data.table(
    panel = factor(series_title("queue"), levels = levels(data$panel)), column = chosen$column,
    value = vapply(chosen$trials$id, \(id) set_buffer(campaign, id), 0)
  ))[!is.na(panel) & !is.na(value)]
  if (nrow(limits) > 0) limits
}

upstream_queue_words <- function(campaign, data) {
  ids <- unique(as.character(data[quantity %in% c("queue", "queue-bytes", "queue-delay", "drops")]$trial))
  upstream <- vapply(campaign$manifests[ids], is_queued_upstream, TRUE)
  if (any(upstream)) paste0("Queue, rate and buffer are those of the upstream direction", if (!all(upstream)) paste(" of", and_words(ids[upstream])))
}

# --- Where a quantity comes from

# "Windows of 0.1 s", if counts or rates are shown.
window_words <- function(data) {
  counts <- data[quantity %in% names(Filter(\(s) isTRUE(s$windows), outputs_of("series")))]
  if (nrow(counts) == 0) return(NULL)
  widths <- counts[, .(width = if (.N > 1) round(stats::median(diff(t_s)), 3) else NA_real_), by = .(trial, flow, quantity)]$width
  widths <- sort(unique(widths[!is.na(widths)]))
  if (length(widths) > 0) paste("Windows of", paste(format_plain(widths), collapse = " and "), "s")
}

# "Recorded by tcp-info: cwnd; by captures at both ends: RTT. Nothing recorded loss, which needs captures at both ends of a flow."
series_source_words <- function(campaign, data, show) {
  rows <- unique(data, by = intersect(c("trial", "quantity", "source"), names(data)))
  rows <- rows[, .(trial = as.character(trial), quantity, source = if ("source" %in% names(data)) source else NA_character_)]
  rows[is.na(source), source := vapply(seq_len(.N), \(i) recorded_source(campaign$manifests[[trial[i]]], quantity[i]), "")]
  titles <- vapply(outputs_of("series"), \(s) s$title, "")
  rows[, source := sub("^captures?(-at-[a-z-]+)?", "captures", source)]
  by <- rows[!is.na(source), .(titles = and_words(in_sentence(unique(titles[quantity])))), by = source]
  missing <- setdiff(show, rows$quantity)
  sentences(if (nrow(by) > 0) paste0("Recorded by ", paste(by$source, by$titles, sep = ": ", collapse = "; ")), if (length(missing) > 0) sub("^n", "N", unrecorded_words(missing)))
}

# The first source of a series that recorded something in a trial.
recorded_source <- function(manifest, name) {
  entry <- outputs_of("series")[[name]]
  by_programs <- identical(entry$scope, "application")
  there <- if (by_programs) vapply(manifest$resolved$flows, \(f) f$generator, "") else
    unlist(lapply(manifest$files, \(f) if (identical(f$kind, "capture")) "capture" else f$logger))
  found <- lapply(entry$sources, \(group) vapply(group, \(one) intersect(sources_of(one), there)[1], ""))
  found <- Filter(\(group) !anyNA(group), found)
  if (length(found) == 0) NA_character_ else paste0(if (by_programs) "generator ", and_words(found[[1]]))
}

# "nothing recorded cwnd, which needs logger tcp-info, siftr or tcp-probe at a flow's sender"
unrecorded_words <- function(names) {
  each <- vapply(names, \(name) {
    entry <- outputs_of("series")[[name]]
    needs <- vapply(entry$sources, \(group) and_words(vapply(unlist(group), recording_words, "", scope = entry$scope %||% "flow")), "")
    paste0(name, ", which needs ", or_words(needs))
  }, "")
  paste("nothing recorded", paste(each, collapse = ", nor "))
}

recording_words <- function(name, scope) {
  known <- outputs_of("quantity")[[name]]
  if (scope == "host") return(paste(if (name == "capture") "a capture" else paste("logger", name), "at a host"))
  if (is.null(known)) return(paste("logger", name, "at a flow's sender"))
  if (identical(unlist(known$sources), "capture") || known$at == "flow") return(known$what)
  place <- c(sender = "at a flow's sender", both = "at both ends of a flow", router = "at the bottleneck's router", either = "at one end of a flow",
             receiver = "at a flow's receiver")[[known$at]]
  paste("logger", or_words(unlist(known$sources)), place)
}

and_words <- function(words) listed_words(words, "and")
or_words <- function(words) listed_words(words, "or")

listed_words <- function(words, last) {
  n <- length(words)
  if (n < 2) words else paste(paste(words[-n], collapse = ", "), last, words[n])
}

# --- PAUSE frames

#' Congestion window and PAUSE frames over time
#'
#' Each PAUSE frame is drawn as a tick below the curve of cwnd, and each packet that the host's own interface rejected as a dotted line.
#'
#' @param data A table with `column` (factor, one panel each), `quantity` ("cwnd", "pause", "drop"), `t_s`, `value` (in packets, for cwnd only).
#' @return A ggplot.
#' @examples
#' cwnd <- data.table::data.table(column = factor("one trial"), quantity = "cwnd", t_s = 0:9 / 10, value = 10:19)
#' pauses <- data.table::data.table(column = factor("one trial"), quantity = "pause", t_s = c(0.7, 0.75, 0.8), value = NA_real_)
#' plot_cwnd_pause(rbind(cwnd, pauses))
#' @export
plot_cwnd_pause <- function(data) {
  top <- max(data[quantity == "cwnd"]$value)
  colours <- okabe_ito[c(2, 1)]
  words <- data[, .(t_s = min(t_s)), by = column]
  drops <- data[quantity == "drop"]
  ggplot2::ggplot(data[quantity == "cwnd"], ggplot2::aes(t_s, value)) +
    ggplot2::geom_segment(ggplot2::aes(x = t_s, xend = t_s, y = -0.16 * top, yend = -0.04 * top), data[quantity == "pause"],
                          colour = colours[2], linewidth = 0.25) +
    ggplot2::geom_vline(ggplot2::aes(xintercept = t_s), drops, colour = "grey30", linewidth = 0.4, linetype = "dotted") +
    ggplot2::geom_text(ggplot2::aes(x = t_s, y = top * 1.06), drops, label = " packet rejected", hjust = 0, vjust = 0, size = 2.8, colour = "grey30") +
    ggplot2::geom_step(stat = StatThin, colour = colours[1], linewidth = 0.5) +
    ggplot2::geom_text(ggplot2::aes(y = top * 0.97), words, label = "cwnd", hjust = 0, vjust = 1, size = 2.8, colour = colours[1]) +
    ggplot2::geom_text(ggplot2::aes(y = -0.1 * top), words, label = "PAUSE", hjust = 0, size = 2.8, colour = colours[2]) +
    ggplot2::facet_wrap(~column, ncol = 1, scales = "free_x") +
    ggplot2::scale_x_continuous("Time since the start of traffic (s)", n.breaks = 6, labels = label_axis) +
    ggplot2::scale_y_continuous("cwnd (packets)", limits = c(-0.18 * top, 1.14 * top), breaks = \(range) Filter(\(b) b >= 0, pretty(c(0, top), 4))) +
    theme_samovar()
}

figure_cwnd_pause <- function(results, trials) {
  campaign <- results$campaign
  seen <- trials[id %in% results$closeup[["trial"]]]
  if (nrow(seen) == 0) abort_nothing("no trial has both PAUSE frames and a congestion window")
  chosen <- representatives(campaign, seen)
  data <- results$closeup[trial %in% chosen$trials$id]
  data[, column := droplevels(chosen$labels[match(trial, chosen$trials$id)])]
  list(
    plot = plot_cwnd_pause(data), data = data[, .(trial, flow, quantity, t_s, value)], trials = chosen$trials$id, width_in = 6.3,
    height_in = 0.8 + 1.6 * nlevels(data$column), title = "Congestion window and PAUSE frames",
    caption = sentences(
      paste0("cwnd and PAUSE frames of ", count_words(nrow(chosen$trials), "trial"),
             ", around the first episode that ended with a rejected packet, or around the first episode if none did"),
      chosen$left_out, fixed_words(campaign, trials, chosen$factors), path_words(campaign, trials)
    )
  )
}
