# As data_flows(), in one pass over the packets.
carrying_flows <- function(capture, proto = "tcp") {
  kind <- if (is.factor(capture$proto)) capture$proto else factor(capture$proto)
  sums <- setDT(flow_totals(capture$flow, kind, capture$sport, capture$payload_bytes, levels(kind) %in% proto))
  end <- \(column, rows = sums$first) capture[[column]][rows]
  flows <- data.table(
    flow = levels(capture$flow)[sums$flow], src = end("src"), sport = end("sport"), dst = end("dst"), dport = end("dport"),
    packets = sums$packets, payload_bytes = sums$payload_bytes, first_ns = end("t_ns"), last_ns = end("t_ns", sums$last)
  )
  back <- match(reverse_flow(flows$flow), flows$flow)
  back_bytes <- flows$payload_bytes[back]
  # Of two directions with as much payload, the one seen first counts.
  ahead <- is.na(back) | flows$payload_bytes > back_bytes | (flows$payload_bytes == back_bytes & seq_len(nrow(flows)) < back)
  flows[which(ahead)][order(-payload_bytes)]
}
