# What the flows of a trial come to together. `sizes` has a row for each flow that was seen: `down` (TRUE when it comes from a
# sender of the testbed), `start_s` (planned), `throughput_bps`, `ip_bytes`, `payload_bytes`, and on the receiver's clock
# `first_s` and `last_s`, its first and last packet with data.
metrics_together <- function(trial) {
  sizes <- trial$sizes
  if (is.null(sizes) || nrow(sizes) == 0) return(NULL)
  list(throughput_total_bps = sum(sizes$throughput_bps), link_utilisation_share = utilisation(sizes[sizes$down], trial$manifest$resolved$path$down$rate_bps),
       domination_share = domination(sizes), fairness_jain = jain(sizes$throughput_bps))
}

utilisation <- function(sizes, rate_bps) {
  if (nrow(sizes) == 0 || length(rate_bps) == 0) return(NA)
  8 * sum(sizes$ip_bytes) / (max(sizes$last_s) - min(sizes$first_s)) / rate_bps
}

# Of the directions that have a competition, that of the flow that begins first.
domination <- function(sizes) {
  competing <- sizes[, .SD[.N > 1], by = "down"]
  if (nrow(competing) == 0) return(NA)
  first <- competing[order(start_s)][1]
  first$payload_bytes / sum(competing$payload_bytes[competing$down == first$down])
}

# Jain, Chiu, Hawe: A quantitative measure of fairness and discrimination, DEC-TR-301, 1984.
jain <- function(x) if (length(x) > 1) sum(x)^2 / (length(x) * sum(x^2)) else NA

flow_size <- function(flow, far, name, manifest) {
  packets <- far[as.character(far$flow) == name & may_carry(far$payload_bytes)]
  if (nrow(packets) < 2) return(NULL)
  seen_s <- range(packets$t_ns) / 1e9
  # Packets of one instant have no rate.
  if (!isTRUE(diff(seen_s) > 0)) return(NULL)
  ip_bytes <- sum(as.double(packets$ip_bytes))
  data.table(
    down = is_down(flow, manifest), start_s = as.double(flow$start_s %||% 0),
    throughput_bps = 8 * ip_bytes / diff(seen_s), ip_bytes, payload_bytes = sum(as.double(packets$payload_bytes)),
    first_s = attr(far, "epoch_s") + seen_s[1], last_s = attr(far, "epoch_s") + seen_s[2]
  )
}
