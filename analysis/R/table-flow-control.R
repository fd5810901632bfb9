#' Which trials met PAUSE frames, and by what it is known
#' @noRd
# Shows: pause_frames_seen or local_drops_packets.
table_flow_control <- function(results, options) {
  campaign <- results$campaign
  trials <- select_trials(results, options)
  told <- results$metrics[metric %in% c(flow_control_witnesses, "loss_share") & trial %in% trials$id]
  if (!any(flow_control_witnesses[1:2] %in% told$metric)) abort_nothing("no trial watched for PAUSE frames")
  data <- flow_control_of_trials(told)
  curves <- curves_of(campaign, trials, but = grep("^traffic[.]", campaign$factors, value = TRUE))
  data[, level := curves$labels[match(trial, trials$id)]]
  setorder(data, level, trial)
  levels <- levels(droplevels(data$level))
  list(
    title = options$title %||% "PAUSE frames: seen, swallowed or none",
    columns = headed(c(curves$title, "Flow control", "Frames seen", "Counted by the card", "Refused by the ring", "Trials"), c("left", "left", rep("right", 4))),
    rows = unlist(lapply(levels, \(l) flow_control_rows(data[level == l], l)), recursive = FALSE), data = data, trials = unique(data$trial),
    caption = sentences(
      "Medians over trials. Seen: the sender's capture or logger holds PAUSE frames",
      "Swallowed: it holds none, but the card counted some, or its ring refused packets while the interface sent more slowly than before",
      "None: the card counted none, or packets were lost beyond a ring that never filled",
      "A dash: nobody counted", path_words(campaign, trials)
    )
  )
}

flow_control_witnesses <- c("pause_frames_seen", "local_drops_packets", "pause_frames_counted", "ring_held_share")

# One row per trial: its flows share the interface, so the largest of each witness is the interface's.
flow_control_of_trials <- function(told) {
  most <- \(x) if (length(x) > 0) max(x) else NA_real_
  told[, {
    of <- \(name) most(value[metric == name])
    list(seen = of("pause_frames_seen"), counted = of("pause_frames_counted"), refused = of("local_drops_packets"),
         held_share = of("ring_held_share"), lost_share = of("loss_share"))
  }, by = trial][, state := flow_control_state(seen, counted, refused, held_share, lost_share)][]
}

flow_control_rows <- function(data, label) {
  middle <- \(x) if (all(is.na(x))) "-" else format_plain(signif(stats::median(x, na.rm = TRUE), 4))
  lapply(split(data, data$state), \(d) c(label, d$state[1], middle(d$seen), middle(d$counted), middle(d$refused), nrow(d))) |> unname()
}
