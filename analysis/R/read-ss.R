#' Read what `ss -tin` printed
#'
#' The text of iproute2's ss(8), of any version since 4: one line per socket or two (`-O`, `-m` and `-e` are taken too). ss tells no time, so
#' whoever samples it writes a line with the time before each sample: seconds (`date +%s.%N`) or nanoseconds since 1970, alone.
#'
#' @param path A file, plain or gzip-compressed, with any number of samples.
#' @return A data.table in the file's order, one row per socket and sample: `t_ns` (ns since attribute `epoch_s`; NA
#'   without time lines), `src` (this host), `sport`, `dst`, `dport`, `state` (as ss names it), `cc`, `cwnd_packets`,
#'   `ssthresh_packets` (Inf where ss shows none: not set yet), `srtt_us`, `rttvar_us`, `min_rtt_us`, `rto_us`, `snd_mss_bytes`,
#'   `rcv_mss_bytes`, `pmtu_bytes`, `unacked_packets`, `sacked_packets`, `lost_packets`, `retrans_packets` (now),
#'   `total_retrans_packets` (0 where ss leaves them out), `reordering_packets`, `bytes_sent`, `bytes_acked`, `bytes_received`, `bytes_retrans`, `segs_out`,
#'   `segs_in`, `notsent_bytes`, `snd_wnd_bytes`, `rcv_space_bytes`, `rcv_ssthresh_bytes`, `send_rate_bps`, `pacing_rate_bps`,
#'   `delivery_rate_bps`, `busy_ms`, `rwnd_limited_ms`, `sndbuf_limited_ms`, `last_sent_ms`, `app_limited` (logical), `bbr_rate_bps`,
#'   `recv_q_bytes`, `send_q_bytes`. Attribute `strange_lines` counts lines that are none of ss. A last sample that was cut off is left out.
#' @source ss(8); misc/ss.c of iproute2.
#' @export
read_ss <- function(path) {
  check_files(path, "output of ss -tin")
  found <- tryCatch(read_ss_file(path.expand(path[1])), error = \(e) abort_core(conditionMessage(e), "samovar_error_log"))
  x <- setDT(found$table)
  informed <- !is.na(x$rto_us)
  for (name in c("unacked_packets", "sacked_packets", "lost_packets", "retrans_packets", "total_retrans_packets", "app_limited")) {
    set(x, which(informed & is.na(x[[name]])), name, 0)
  }
  set(x, which(informed & is.na(x$ssthresh_packets)), "ssthresh_packets", Inf)
  set(x, NULL, "app_limited", x$app_limited == 1)
  first_s <- if (any(!is.na(x$epoch_s))) min(x$epoch_s, na.rm = TRUE) else 0
  set(x, NULL, "t_ns", (x$epoch_s - first_s) * 1e9 + x$t_ns)
  set(x, NULL, "epoch_s", NULL)
  setattr(x, "epoch_s", first_s)
  setattr(x, "strange_lines", found$strange)
  x[]
}
