# Words of captions: said once, so that all figures say them alike.

count_words <- function(n, one, many = paste0(one, "s")) paste(n, if (n == 1) one else many)

interval_words <- function(n) {
  if (max(n) < 3) return("No interval is given for fewer than three trials.")
  if (min(n) >= 6) return("Bars: 95 % interval of the median (order statistics).")
  if (max(n) < 6) return("Bars: range of the trials (fewer than six give no 95 % interval).")
  "Bars: 95 % interval of the median (order statistics), or the range where there are fewer than six trials."
}

replicate_words <- function(n) {
  if (min(n) == max(n)) return(paste("median of", count_words(n[1], "trial"), "per point"))
  paste0("median of ", min(n), " to ", max(n), " trials per point")
}

flow_words <- function(flows) {
  if (is.null(flows)) return("")
  paste(if (length(unlist(flows)) == 1) "Flow" else "Flows", paste(unlist(flows), collapse = ", "))
}

# "part window; rwnd 9999KB": what was held still.
fixed_words <- function(campaign, trials, but = character()) {
  held <- setdiff(campaign$factors, but)
  held <- held[vapply(held, \(f) uniqueN(trials[[f]]) == 1 && !is.na(trials[[f]][1]), TRUE)]
  paste(vapply(held, \(f) paste(f, trials[[f]][1]), ""), collapse = ", ")
}

# What the way that data takes through the bottleneck was set to, and the delay added both ways.
path_down <- function(manifest) c(manifest$resolved$path$down, manifest$resolved$path["rtt_s"])

# "40 Mbit/s, buffer 546 packets, idle RTT 2 ms", or nothing when the trials' paths differ.
path_words <- function(campaign, trials) {
  paths <- unique(lapply(campaign$manifests[trials$id], \(m) path_down(m)[c("rate_bps", "rtt_s", "buffer_packets", "buffer_bytes")]))
  if (length(paths) != 1) return("")
  p <- paths[[1]]
  words <- c(
    if (!is.null(p$rate_bps)) paste(format_plain(p$rate_bps / 1e6), "Mbit/s"),
    if (!is.null(p$buffer_packets)) paste("buffer", format_plain(p$buffer_packets), "packets"),
    if (!is.null(p$buffer_bytes)) paste("buffer", label_bytes(p$buffer_bytes)),
    if (!is.null(p$rtt_s)) paste("delay added", format_plain(p$rtt_s * 1e3), "ms")
  )
  paste(words, collapse = ", ")
}

sentences <- function(...) {
  said <- trimws(c(...))
  said <- said[nzchar(said)]
  paste(ifelse(grepl("[.]$", said), said, paste0(said, ".")), collapse = " ")
}

# Buffer that the trials were given, packets; NA when they differ or it was set in bytes or by nobody.
set_buffer <- function(campaign, ids) {
  set <- unique(unlist(lapply(campaign$manifests[ids], \(m) path_down(m)$buffer_packets %||% NA_real_)))
  if (length(set) == 1) as.double(set) else NA_real_
}
