# Measure applications from the logs of their generators: pages, videos, queries, calls and games.

# --- Requests

#' Times of web pages
#'
#' The time of a page is the time from its first request to the last byte of its last object. A page with an unfinished object has no time.
#'
#' @param requests Log of a client, see [read_requests()].
#' @return A data.table, a row per page: `number`, `t_ns` (of its first request, since attribute `epoch_s`), `objects`, `page_s`.
#' @source Own definition.
#' @examples
#' page_times(read_requests(samovar_example("web-client.csv.gz")))
#' @export
page_times <- function(requests) {
  pages <- requests[, .(t_ns = min(t_ns), objects = .N, page_s = if (all(finished)) max(t_ns / 1e9 + seconds) - min(t_ns) / 1e9 else NA_real_), by = number]
  keep_epoch(pages[], requests)
}

#' Completion times of queries to several servers
#'
#' A query asks all servers at the same planned time and is complete with the last byte of the last answer:
#'
#' \deqn{T_k = \max_i (l_{ik} + d_{ik})}
#'
#' where l is how long after the planned time the request of query k to server i was sent, and d is how long the request took. A query that waits for
#' answers to earlier queries therefore takes longer. The time of each request is counted from the start that its own client planned. The error of these times
#' is small, because the verdict bounds the difference between the clients' actual starts.
#'
#' @param requests Logs of the clients, one per server: a list of tables from [read_requests()].
#' @return A data.table, a row per query: `number`, `t_ns` (planned by the first client, since attribute `epoch_s`), `query_s` (NA if an answer is
#'   unfinished or missing).
#' @source M. Alizadeh et al., Data Center TCP (DCTCP), 2010, for the time of a query; own definition of its start.
#' @examples
#' # Two servers.
#' query_completion(lapply(samovar_example() |> grep(pattern = "^query", value = TRUE), \(name) read_requests(samovar_example(name))))
#' @export
query_completion <- function(requests) {
  epoch_s <- min(vapply(requests, attr, 0, "epoch_s"))
  of_server <- \(x) x[, .(number, due_ns = t_ns + (attr(x, "epoch_s") - epoch_s) * 1e9 - late_s * 1e9, seconds = late_s + seconds, finished)]
  all <- rbindlist(lapply(requests, of_server))
  queries <- all[, .(t_ns = min(due_ns), query_s = if (all(finished) && .N == length(requests)) max(seconds) else NA_real_), by = number]
  setattr(queries[order(number)], "epoch_s", epoch_s)[]
}

#' Playback of a video, from the arrival times of its chunks
#'
#' Playback starts when the first chunk is complete. The video stalls whenever all complete chunks have been played, until the next chunk is complete:
#'
#' \deqn{stall_k = \max(0, a_k - (a_0 + \sum_{j<k} p_j + \sum_{j<k} stall_j))}
#'
#' where a is the arrival time of the last byte of chunk k, and p the chunk's play time. A chunk that is unfinished at the end of the flow stalls the video
#' until the flow ends.
#'
#' @param requests Log of a client of `dash`, see [read_requests()].
#' @return A data.table, a row per complete chunk: `t_ns` (arrival of its last byte, since attribute `epoch_s`), `play_s`, `bitrate_bps`, `stall_s` (the stall
#'   before the chunk), `ahead_s` (play time in the buffer just after the chunk arrived). Attributes: `startup_s` (from the first request; NA if no chunk was
#'   completed), `rebuffering_s` and `stalls` (time and number of all stalls, including one at the end), `epoch_s`.
#' @source 3GPP TS 26.247, clause 10.2, for the metrics; own definition of the model.
#' @examples
#' video <- play_video(read_requests(samovar_example("video-client.csv.gz")))
#' video
#' attr(video, "startup_s")
#' @export
play_video <- function(requests) {
  x <- requests[order(t_ns)]
  ends_s <- x$t_ns / 1e9 + x$seconds
  done <- which(x$finished & !is.na(x$play_s))
  arrived_s <- ends_s[done]
  played_s <- x$play_s[done]
  # For each chunk, the time at which playback would have to start so that the chunk arrives just in time.
  # If a chunk's start time is later than the latest start time of the earlier chunks, playback stalls for
  # the difference.
  slack_s <- arrived_s - c(0, cumsum(played_s))[seq_along(done)]
  start_s <- cummax(slack_s)
  stall_s <- c(0, diff(start_s))[seq_along(done)]
  runs_dry_s <- if (length(done) > 0) start_s[length(done)] + sum(played_s)
  last_s <- if (length(done) > 0) max(0, max(ends_s) - runs_dry_s) else 0
  video <- data.table(t_ns = round(arrived_s * 1e9), play_s = played_s, bitrate_bps = 8 * x$bytes[done] / played_s, stall_s, ahead_s = start_s + cumsum(played_s) - arrived_s)
  setattr(video, "startup_s", if (length(done) > 0) arrived_s[1] - x$t_ns[1] / 1e9 else NA_real_)
  setattr(video, "rebuffering_s", sum(stall_s) + last_s)
  setattr(video, "stalls", sum(stall_s > 0) + (last_s > 0))
  keep_epoch(video[], requests)
}

# --- Packets of calls and games

#' Lost packets, and how bursty the losses are
#'
#' All packets up to the highest number that arrived count as sent, so packets lost at the very end are not counted:
#'
#' \deqn{expected = 1 + \max(number), \quad lost = expected - received}
#'
#' The burst ratio is the mean length of the runs of lost packets divided by the mean length that independent losses would have:
#'
#' \deqn{BurstR = \bar{length} (1 - lost / expected)}
#'
#' @param messages Packets that arrived, see [read_messages()].
#' @param late Numbers of packets that arrived, but too late to be used; they count as lost.
#' @return A list: `expected_packets`, `lost_packets`, `loss_share` (NA if nothing arrived), `burst_ratio` (between 1 and 8, the range of G.107; 1 without losses).
#' @source RFC 3550, section 6.4.1 and appendix A.3; ITU-T G.107 (06/2015), clause 7.5.
#' @examples
#' message_loss(read_messages(samovar_example("call-to.csv.gz")))
#' @export
message_loss <- function(messages, late = double()) {
  if (nrow(messages) == 0) return(list(expected_packets = 0, lost_packets = 0, loss_share = NA_real_, burst_ratio = NA_real_))
  expected <- 1 + max(messages$number)
  used <- sort(setdiff(messages$number, late))
  gaps <- diff(c(-1, used, expected)) - 1
  bursts <- gaps[gaps > 0]
  lost <- sum(bursts)
  ratio <- if (length(bursts) > 0) min(max(mean(bursts) * (1 - lost / expected), 1), 8) else 1
  list(expected_packets = expected, lost_packets = lost, loss_share = lost / expected, burst_ratio = ratio)
}

#' One-way delays of the packets in both directions of a flow
#'
#' The offset of the clocks is chosen so that the smallest delay is the same in both directions, as NTP does. The error of each delay is then at most half
#' of the smallest round-trip time. The sum of two delays, one in each direction, does not depend on the clocks.
#'
#' \deqn{delay = (t_{arrival} - t_{sent}) - m + (m + m_{back}) / 2}
#'
#' where m is the smallest difference (arrival less sending time) in the packet's direction, and m_back the smallest difference in the opposite direction.
#'
#' @param messages Packets that arrived at the flow's `to`, see [read_messages()].
#' @param back Packets that arrived at the flow's `from`.
#' @return A list of `there` and `back`: delays in ms in the order of arrival; NA if nothing arrived in the other direction.
#' @source RFC 5905, section 8, for the assumption.
#' @examples
#' to <- read_messages(samovar_example("call-to.csv.gz"))
#' from <- read_messages(samovar_example("call-from.csv.gz"))
#' median(message_delays(to, from)$there)
#' @export
message_delays <- function(messages, back) {
  transit_ms <- lapply(list(there = messages, back = back), \(x) (x$t_ns - x$sent_ns) / 1e6)
  least_ms <- vapply(transit_ms, \(ms) if (length(ms) > 0) min(ms) else NA_real_, 0)
  Map(\(ms, least) ms - least + sum(least_ms) / 2, transit_ms, least_ms)
}

# --- Calls

#' Quality of a telephone call by the E-model
#'
#' The rating R of ITU-T G.107 for a narrow-band call, with the recommendation's default for every parameter that is not an argument:
#'
#' \deqn{R = R_o - I_s - I_d - I_{e,eff} + A, \quad I_{e,eff} = I_e + (95 - I_e) \frac{P_{pl}}{P_{pl} / BurstR + B_{pl}}}
#'
#' By default, `t_ms` and half of `tr_ms` are equal to the one-way delay `ta_ms`, as on a connection with the same delay in both directions.
#'
#' @param ta_ms One-way delay from mouth to ear, ms; a vector, like all arguments.
#' @param loss_share Share of lost packets, 0 to 1.
#' @param burst_ratio BurstR: 1 for independent losses, more for bursts.
#' @param ie,bpl Equipment impairment factor and packet-loss robustness factor of the codec. For G.711 they are 0 and 4.3,
#'   or 0 and 25.1 with loss concealment (G.711 Appendix I).
#' @param t_ms Mean one-way delay of the echo path, ms.
#' @param tr_ms Round-trip delay of the four-wire loop, ms.
#' @param a Advantage factor A.
#' @return A data.table: `r`, and its terms `ro`, `is`, `id`, `ie_eff`.
#' @source ITU-T G.107 (06/2015), clauses 7.1 to 7.7; ITU-T G.113 (11/2007), Appendix I, for `ie` and `bpl`.
#' @examples
#' e_model() # all defaults: R = 93.2
#' e_model(ta_ms = 150, loss_share = 0.01, bpl = 25.1)
#' @export
e_model <- function(ta_ms = 0, loss_share = 0, burst_ratio = 1, ie = 0, bpl = 4.3, t_ms = ta_ms, tr_ms = 2 * ta_ms, a = 0) {
  d <- e_model_defaults
  db <- \(...) 10 * log10(Reduce(`+`, lapply(list(...), \(level) 10^(level / 10))))
  # Clause 7.2: basic signal-to-noise ratio.
  olr <- d$slr + d$rlr
  nos <- d$ps - d$slr - d$ds - 100 + 0.004 * (d$ps - olr - d$ds - 14)^2
  pre <- d$pr + 10 * log10(1 + 10^((10 - (d$stmr + d$dr)) / 10))
  nor <- d$rlr - 121 + pre + 0.008 * (pre - 35)^2
  no <- db(d$nc, nos, nor, d$nfor + d$rlr)
  ro <- 15 - 1.5 * (d$slr + no)
  # Clause 7.3: impairments that occur at the same time as the voice.
  xolr <- olr + 0.2 * (64 + no - d$rlr)
  iolr <- 20 * ((1 + (xolr / 8)^8)^(1 / 8) - xolr / 8)
  stmro <- -10 * log10(10^(-d$stmr / 10) + exp(-t_ms / 4) * 10^(-d$telr / 10))
  ist <- 12 * (1 + ((stmro - 13) / 6)^8)^(1 / 8) - 28 * (1 + ((stmro + 1) / 19.4)^35)^(1 / 35) - 13 * (1 + ((stmro - 3) / 33)^13)^(1 / 13) + 29
  q <- 37 - 15 * log10(d$qdu)
  g <- 1.07 + 0.258 * q + 0.0602 * q^2
  iq <- 15 * log10(1 + 10^((ro - 100) / 15 + 46 / 8.4 - g / 9) + 10^(46 / 30 - g / 40))
  is <- iolr + ist + iq
  # Clause 7.4: impairments by delay: talker echo, listener echo, and the delay itself.
  terv <- d$telr - 40 * log10((1 + t_ms / 10) / (1 + t_ms / 150)) + 6 * exp(-0.3 * t_ms^2)
  roe <- -1.5 * (no - d$rlr)
  re <- 80 + 2.5 * (terv - 14)
  idte <- ((roe - re) / 2 + sqrt((roe - re)^2 / 4 + 100) - 1) * (1 - exp(-t_ms))
  rle <- 10.5 * (d$wepl + 7) * (tr_ms + 1)^-0.25
  idle <- (ro - rle) / 2 + sqrt((ro - rle)^2 / 4 + 169)
  x <- log2(pmax(ta_ms, d$mt_ms) / d$mt_ms)
  idd <- 25 * ((1 + x^(6 * d$st))^(1 / (6 * d$st)) - 3 * (1 + (x / 3)^(6 * d$st))^(1 / (6 * d$st)) + 2)
  id <- idte + idle + idd
  # Clause 7.5: codec and losses.
  ie_eff <- ie + (95 - ie) * 100 * loss_share / (100 * loss_share / burst_ratio + bpl)
  data.table(r = ro - is - id - ie_eff + a, ro, is, id, ie_eff)
}

# Table 2 of G.107 (06/2015). Levels are in dB, dBm0p and dB(A); `mt_ms` and `st` have the values for the default sensitivity to delay.
e_model_defaults <- list(slr = 8, rlr = 2, stmr = 15, dr = 3, ds = 3, telr = 65, wepl = 110, qdu = 1, nc = -70, nfor = -64, ps = 35, pr = 35, mt_ms = 100, st = 1)

#' Mean opinion score of a rating
#'
#' \deqn{MOS = 1 + 0.035 R + R (R - 60) (100 - R) \cdot 7 \cdot 10^{-6}}
#'
#' for R between 0 and 100. MOS is 1 for a lower R, and 4.5 for a higher one. For R below 6.5 the formula gives less than 1, and MOS is 1.
#'
#' @param r Ratings R from [e_model()].
#' @return Estimated conversational mean opinion scores (MOS-CQE), 1 to 4.5.
#' @source ITU-T G.107 (06/2015), Annex B.
#' @examples
#' e_model_mos(c(50, 60, 70, 80, 90))
#' @export
e_model_mos <- function(r) {
  inside <- 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6
  fifelse(r < 0, 1, fifelse(r > 100, 4.5, pmax(inside, 1)))
}

#' Rating of one direction of a call, from the delays of its packets
#'
#' A phone plays each packet a fixed delay after it was sent; packets that arrive later are lost. The delay with the highest rating is chosen, so the
#' result is the rating of a phone with the best fixed playout buffer:
#'
#' \deqn{T_a = packet + playout, \quad R = \max_{playout} R(T_a, lost + late)}
#'
#' @param messages Packets that arrived, see [read_messages()].
#' @param delay_ms Their one-way delays, see [message_delays()].
#' @param packet_ms Duration of the sound in a packet. The sender must wait this long before it can send the packet.
#' @param bpl Packet-loss robustness factor of the codec; by default that of G.711 with loss concealment. Its `ie` is 0.
#' @return A list: `e_model_r`, `mos`, `playout_ms` (the chosen delay between sending and playing).
#' @source ITU-T G.107 (06/2015); ITU-T G.113 (11/2007), Appendix I.
#' @examples
#' to <- read_messages(samovar_example("call-to.csv.gz"))
#' from <- read_messages(samovar_example("call-from.csv.gz"))
#' call_quality(to, message_delays(to, from)$there)
#' @export
call_quality <- function(messages, delay_ms, packet_ms = 20, bpl = 25.1) {
  if (nrow(messages) == 0 || anyNA(delay_ms)) return(list(e_model_r = NA_real_, mos = NA_real_, playout_ms = NA_real_))
  # Playout delays to try. The shortest is enough for the fastest half of the packets, the longest for all packets.
  playout_ms <- unique(stats::quantile(delay_ms, seq(0.5, 1, by = 0.005), names = FALSE, type = 1))
  losses <- lapply(playout_ms, \(most_ms) message_loss(messages, messages$number[delay_ms > most_ms]))
  column <- \(name) vapply(losses, `[[`, 0, name)
  r <- e_model(packet_ms + playout_ms, column("loss_share"), column("burst_ratio"), bpl = bpl)$r
  best <- which.max(r)
  list(e_model_r = r[best], mos = e_model_mos(r[best]), playout_ms = playout_ms[best])
}

# --- Metrics of a trial

# Measure the applications of a trial: metrics, quantiles of samples, and series.
measure_applications <- function(manifest, traces) {
  subjects <- applications_of(manifest, traces)
  measured <- Map(\(label, x) {
    found <- application_samples(x)
    list(metrics = metric_rows(label, measured_metrics("application", x)), samples = sample_quantiles(label, found), series = sample_series(label, found))
  }, names(subjects), subjects)
  lapply(stats::setNames(nm = c("metrics", "samples", "series")), \(name) rbindlist(lapply(measured, `[[`, name)))
}

# Return the arguments of functions with the scope "application", named by label. An application is a flow; for `incast` it is all flows of one entry of
# the experiment, because a query goes to the servers of all these flows. An application whose logs cannot be read is left out.
applications_of <- function(manifest, traces) {
  flows <- Filter(\(f) f$generator %in% names(application_logs), manifest$resolved$flows)
  labels <- vapply(flows, \(f) if (f$generator == "incast") f$group %||% flow_label(f$label) else f$label, "")
  subjects <- lapply(stats::setNames(nm = unique(labels)), \(label) {
    members <- flows[labels == label]
    read <- application_logs[[members[[1]]$generator]]
    list2env(list(flow = members[[1]], label = label, logs = lapply(members, \(f) read(traces, f)), traces = traces))
  })
  Filter(\(x) !any(vapply(x$logs, is.null, TRUE)), subjects)
}

log_or_null <- function(read, path) if (length(path) > 0) tryCatch(read(path), samovar_error_trace = \(e) NULL)

client_log <- function(traces, flow) log_or_null(read_requests, traces$log(flow$label, "client"))

both_logs <- function(traces, flow) {
  found <- list(there = log_or_null(read_messages, traces$log(flow$label, "server")), back = log_or_null(read_messages, traces$log(flow$label, "client")))
  if (!any(vapply(found, is.null, TRUE))) found
}

# For each generator, the function that reads the logs of its flows.
application_logs <- list(http = client_log, dash = client_log, incast = client_log, voip = both_logs, game = both_logs)

# The samples of an application: a table for each series in outputs.yaml, by name, with `t_s` (since the start of traffic, on the clock of the log) and `value`.
application_samples <- function(x) {
  samples <- \(log, value, host = x$flow$to) data.table(t_s = seconds_since(log, start_on(x$traces, host)), value = value)
  finished <- \(log) keep_epoch(log[finished == TRUE], log)
  found <- switch(x$flow$generator,
    http = {
      log <- finished(x$logs[[1]])
      pages <- page_times(x$logs[[1]])
      list("object-time" = samples(log, log$seconds), "first-byte-time" = samples(log, log$first_byte_s), "page-time" = samples(pages, pages$page_s))
    },
    dash = {
      log <- finished(x$logs[[1]])
      video <- play_video(x$logs[[1]])
      list("chunk-time" = samples(log, log$seconds), "video-rate" = samples(video, video$bitrate_bps / 1e6), "video-ahead" = samples(video, video$ahead_s))
    },
    incast = {
      answers <- lapply(x$logs, finished)
      queries <- query_completion(x$logs)
      list("response-time" = rbindlist(lapply(answers, \(log) samples(log, log$seconds))), "query-time" = samples(queries, queries$query_s))
    },
    {
      both <- x$logs[[1]]
      delays <- message_delays(both$there, both$back)
      list("message-delay" = samples(both$there, delays$there), "message-delay-back" = samples(both$back, delays$back, x$flow$from))
    }
  )
  lapply(found, from_source, paste("generator", x$flow$generator))
}

sample_quantiles <- function(label, found) {
  rbindlist(Map(\(quantity, one) {
    known <- finite(one$value)
    if (length(known) > 0) data.table(flow = label, quantity, unit = series_unit(quantity), as.data.table(quantiles_of_samples(known)))
  }, names(found), found))
}

sample_series <- function(label, found) {
  rbindlist(Map(\(quantity, one) with(one[is.finite(value)][order(t_s)], thin_series(t_s, value, label, quantity, series_unit(quantity))), names(found), found))
}

series_unit <- function(name) outputs_of("series")[[name]]$unit

web_metrics <- function(x) {
  if (!identical(x$flow$generator, "http")) return(NULL)
  log <- x$logs[[1]]
  pages <- finite(page_times(log)$page_s)
  objects <- log[finished == TRUE]
  list(page_median_s = middle(pages), page_p95_s = tail_of(pages, 0.95), object_median_s = middle(objects$seconds), object_p95_s = tail_of(objects$seconds, 0.95),
       first_byte_median_s = middle(finite(objects$first_byte_s)), objects_unfinished = sum(!log$finished))
}

video_metrics <- function(x) {
  if (!identical(x$flow$generator, "dash") || all(is.na(x$logs[[1]]$play_s))) return(NULL)
  video <- play_video(x$logs[[1]])
  if (nrow(video) == 0) return(list(video_arrived_s = 0))
  # Neighbouring bit rates differ by a factor of two. A smaller difference is not a switch, only the effect of rounding
  # sizes to whole bytes.
  switches <- sum(abs(diff(log2(video$bitrate_bps))) > 0.5)
  list(startup_s = attr(video, "startup_s"), rebuffering_s = attr(video, "rebuffering_s"), stalls = attr(video, "stalls"),
       bitrate_bps = sum(video$bitrate_bps * video$play_s) / sum(video$play_s), bitrate_switches = switches, video_arrived_s = sum(video$play_s))
}

query_metrics <- function(x) {
  if (!identical(x$flow$generator, "incast")) return(NULL)
  queries <- query_completion(x$logs)$query_s
  answers <- unlist(lapply(x$logs, \(log) log$seconds[log$finished]))
  known <- finite(queries)
  list(query_median_s = middle(known), query_p95_s = tail_of(known, 0.95), query_p99_s = tail_of(known, 0.99), query_max_s = if (length(known) > 0) max(known) else NA_real_,
       queries_unfinished = sum(is.na(queries)), response_median_s = middle(answers), response_p99_s = tail_of(answers, 0.99))
}

message_metrics <- function(x) {
  if (!x$flow$generator %in% c("voip", "game")) return(NULL)
  both <- x$logs[[1]]
  delays <- message_delays(both$there, both$back)
  values <- Map(\(log, delay_ms) list(
    loss_share = message_loss(log)$loss_share, delay_median_ms = middle(delay_ms), delay_p99_ms = tail_of(delay_ms, 0.99),
    jitter_ms = if (nrow(log) > 1) mean(smoothed_jitter(log$sent_ns, log$t_ns)$jitter_ms) else NA_real_
  ), both, delays)
  c(stats::setNames(values$there, paste0("message_", names(values$there))), stats::setNames(values$back, paste0("back_message_", names(values$back))),
    list(message_round_trip_median_ms = values$there$delay_median_ms + values$back$delay_median_ms))
}

call_metrics <- function(x) {
  both <- x$logs[[1]]
  if (!identical(x$flow$generator, "voip") || !is_g711(both$there)) return(NULL)
  delays <- message_delays(both$there, both$back)
  there <- call_quality(both$there, delays$there)
  back <- call_quality(both$back, delays$back)
  c(there, stats::setNames(back, paste0("back_", names(back))))
}

# Return whether the packets are those of G.711 over RTP: 64 kbit/s of payload after a header of 12 bytes.
is_g711 <- function(log) {
  if (nrow(log) < 2) return(FALSE)
  every_s <- stats::median(diff(log$sent_ns) / diff(log$number), na.rm = TRUE) / 1e9
  isTRUE(abs((log$bytes[1] - 12) * 8 / every_s / 64e3 - 1) < 0.05)
}

middle <- function(values) if (length(values) > 0) stats::median(values) else NA_real_

tail_of <- function(values, share) if (length(values) > 0 && !anyNA(values)) quantiles_of(values, share) else NA_real_
