# Draw sequence numbers over time: segments, acknowledgements, the receiver's window, retransmissions and SACK.

figure_time_sequence <- function(results, trials, of = NULL, from = NULL, to = NULL) {
  campaign <- results$campaign
  chosen <- grid_of_trials(campaign, trials)
  rows <- rbindlist(lapply(chosen$trials$id, \(id) sequence_of_trial(source_of_trial(results, id), id, of, from %||% -Inf, to %||% Inf)))
  if (nrow(rows) == 0) abort_nothing("no trial has a TCP flow and a capture at one of its ends in this span of time")
  labels <- chosen$column[match(rows$trial, chosen$trials$id)]
  flows <- unique(rows$flow)
  rows[, panel := if (length(flows) > 1) droplevels(interaction(labels, factor(flow, levels = flows), sep = ", ", lex.order = TRUE)) else droplevels(labels)]
  every <- nlevels(rows$panel)
  data <- rows[as.integer(panel) <= most_columns][, panel := droplevels(panel)]
  shown <- data[, joined_segments(.SD), by = .(panel, trial, flow, event)]
  list(
    plot = plot_time_sequence(shown), data = shown[, .(trial, flow, event, t_s, low_kb, high_kb)], trials = unique(as.character(shown$trial)),
    width_in = 6.3, height_in = min(0.8 + (if (nlevels(data$panel) > 1) 2.1 else 3.4) * nlevels(data$panel), most_height_in), title = "Sequence numbers over time",
    layout = list(kind = "segments", x = "t_s", low = "low_kb", high = "high_kb", curve = "event", facets = c("trial", "flow")),
    sources = sentences(paste("Recorded by captures", if (all(rows$near)) "at the flow's sender" else "at one end of the flow")),
    caption = sentences(
      paste0("Sequence numbers of ", count_words(uniqueN(shown$trial), "trial"), ", from the first data: segments and retransmissions from their first to their last byte, ",
             "blocks that SACK reports (the first of each ACK), the acknowledged data, and the end of the receiver's window"),
      chosen$left_out,
      if (every > most_columns) paste(most_columns, "of", every, "flows are shown, as more panels cannot be read; choose with `of`"),
      if (nrow(shown) < nrow(data)) paste("Segments that would be printed at the same place are joined:", nrow(data), "became", nrow(shown)),
      if (!"window" %in% shown$event) "The receiver's window is unknown, because the capture lacks its scale" else
        if (!"window" %in% visible(shown)$event) "The end of the receiver's window is above the part shown",
      flow_words(of), fixed_words(campaign, trials, chosen$factors), path_words(campaign, trials)
    )
  )
}

# A receive window of megabytes would leave no room for the segments.
visible <- function(data) {
  top <- data[!event %in% c("ACK", "window"), .(top = 1.15 * max(high_kb)), by = panel]
  data[top, on = "panel"][high_kb <= top]
}

# Rows `trial`, `flow`, `event`, `t_s`, `low_kb`, `high_kb` of the TCP flows of a trial; `near` is TRUE for a capture at the sender.
sequence_of_trial <- function(from, id, of, from_s, to_s) {
  manifest <- from$manifest
  traces <- open_traces(from$folder, manifest, c("usual", "sack_left", "sack_right"))
  flows <- Filter(\(f) is.null(of) || f$label %in% of || flow_label(f$label) %in% of, manifest$resolved$flows)
  rbindlist(lapply(flows, \(flow) {
    x <- subject_of_flow(flow, traces, manifest)
    capture <- x$near %||% x$far
    if (is.null(capture) || !x$tcp) return(NULL)
    events <- sequence_events(capture, x$name)
    if (nrow(events) == 0) return(NULL)
    events[, t_s := seconds_at_near(events, x)]
    events[t_s >= from_s & t_s <= to_s, .(trial = id, flow = flow$label, event, t_s, low_kb = low / 1e3, high_kb = high / 1e3, near = !is.null(x$near))]
  }))
}

#' Sequence numbers of a flow over time, as a time-sequence graph shows them
#'
#' @param capture A table from [read_pcap()], preferably of a capture at the sender. If it has the columns `sack_left` and `sack_right`, the result has rows
#'   for SACK.
#' @param flow Name of the flow that carries the data.
#' @return A data.table in order of time: `t_ns` (since the capture's `epoch_s`), `event` (factor "segment", "retransmission", "SACK", "ACK", "window"), `low`
#'   and `high` (bytes since the first data; equal for ACK and window, which is the end of the window that the receiver offers).
#' @source tcptrace 6.6.7, time sequence graphs (`-S`); the blocks of SACK: RFC 2018.
#' @noRd
sequence_events <- function(capture, flow) {
  check_capture(capture)
  flow <- check_flow(capture, flow)
  data <- data_packets(capture, flow)
  if (nrow(data) == 0) return(data.table(t_ns = double(), event = factor(character(), sequence_names), low = double(), high = double()))
  level <- match(c(flow, reverse_flow(flow)), levels(capture$flow), nomatch = -1L)
  at <- in_order_of_time(capture, which(as.integer(capture$flow) %in% level))
  x <- tcp_progress(capture, flow)[, row := at]
  answers <- x[!out & !is.na(ack_to) & bitwAnd(fcoalesce(flags, 0L), 22L) == 16L]
  scale <- attr(advertised_window(capture, flow), "wscale")
  origin <- min(data$first)
  sack <- if (all(c("sack_left", "sack_right") %in% names(capture))) {
    blocks <- answers[, .(t_ns, ack_to, ack, left = capture$sack_left[row], right = capture$sack_right[row])][!is.na(left)]
    blocks[, .(t_ns, event = "SACK", low = ack_to + distance(ack, left), high = ack_to + distance(ack, right))]
  }
  events <- rbind(
    data[, .(t_ns, event = fifelse(new_bytes < payload_bytes, "retransmission", "segment"), low = first, high = end)], sack,
    answers[, .(t_ns, event = "ACK", low = ack_to, high = ack_to)],
    answers[!is.na(window) & !is.na(scale), .(t_ns, event = "window", low = ack_to + window * 2^scale, high = ack_to + window * 2^scale)]
  )
  events[, event := factor(event, levels = sequence_names)][, low := low - origin][, high := high - origin]
  setorder(events, t_ns)
  setattr(events, "epoch_s", attr(capture, "epoch_s"))
  events[]
}

sequence_names <- c("segment", "retransmission", "SACK", "ACK", "window")

# Return the signed distance from one 32-bit sequence number to another, in the shorter direction modulo 2^32.
distance <- function(from, to) {
  ahead <- (to - from) %% 2^32
  fifelse(ahead >= 2^31, ahead - 2^32, ahead)
}

# If there are many rows, join those that fall into the same two pixel columns of the print.
joined_segments <- function(x) {
  columns <- print_columns %/% 2L
  if (nrow(x) <= 3 * columns) return(x[, .(t_s, low_kb, high_kb)])
  column <- findInterval(x$t_s, seq(min(x$t_s), max(x$t_s), length.out = columns + 1L), all.inside = TRUE)
  x[, .(t_s = t_s[1], low_kb = min(low_kb), high_kb = max(high_kb)), by = .(column = column)][, !"column"]
}

#' Time-sequence graph
#' @param data A table with `panel` (factor), `event` (factor "segment", "retransmission", "SACK", "ACK", "window"), `t_s`, `low_kb`, `high_kb`.
#' @return A ggplot.
#' @examples
#' sender <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' sent <- sender[flow == data_flows(sender)$flow[1] & payload_bytes > 0]
#' low_kb <- (sent$seq - sent$seq[1]) / 1e3
#' event <- factor(ifelse(low_kb < cummax(low_kb), "retransmission", "segment"))
#' data <- data.table::data.table(panel = factor("newreno"), event, t_s = sent$t_ns / 1e9, low_kb, high_kb = low_kb + sent$payload_bytes / 1e3)
#' plot_time_sequence(data)
#' @export
plot_time_sequence <- function(data) {
  drawn <- data[event %in% c("segment", "retransmission", "SACK")]
  lines <- visible(data)[event %in% c("ACK", "window")]
  colours <- stats::setNames(okabe_ito[c(1, 2, 3, 7, 5)], sequence_names)
  ggplot2::ggplot(mapping = ggplot2::aes(t_s, colour = event)) +
    ggplot2::geom_step(ggplot2::aes(y = high_kb), lines, linewidth = 0.35) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = low_kb, ymax = high_kb), drawn, linewidth = 0.5) +
    ggplot2::geom_point(ggplot2::aes(y = low_kb), drawn[event == "retransmission"], size = 0.8) +
    ggplot2::scale_colour_manual("", values = colours, breaks = intersect(sequence_names, as.character(data$event))) +
    ggplot2::scale_x_continuous("Time since the start of traffic (s)", labels = label_axis, expand = ggplot2::expansion(c(0.01, 0.02))) +
    ggplot2::scale_y_continuous("Sequence number (KB)", labels = label_axis, expand = ggplot2::expansion(c(0.02, 0.05))) +
    (if (nlevels(data$panel) > 1) ggplot2::facet_wrap(~panel, ncol = 1, scales = "free_y")) +
    theme_samovar()
}
