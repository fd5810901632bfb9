#' Read a packet capture, one row per packet
#'
#' Classic pcap files (microsecond or nanosecond time stamps, either byte order), plain or gzip-compressed, of
#' link types Ethernet (with VLAN tags), null, raw IP, SLL and SLL2. A file that was cut short gives its whole
#' packets.
#'
#' @param path One capture file.
#' @return A data.table in capture order with columns
#' - `t_ns` (double, ns since `epoch_s`),
#' - `frame_bytes` (length on the wire as captured by the kernel, without FCS),
#' - `ip_bytes` (IP total length; of a superpacket with length 0, the frame less its link header; NA without
#'   IP),
#' - `proto` (factor: tcp, udp, icmp, icmp6, ip, pause, mac-control, arp, other),
#' - `flow` (factor "a.b.c.d:p > e.f.g.h:q", IPv6 in brackets, without ports where there are none; NA without
#'   IP),
#' - `src`, `dst` (factor), `sport`, `dport` (integer),
#' - `ip_id`, `seq`, `ack` (double), `flags` (integer, low 9 bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32,
#'   ECE 64, CWR 128),
#' - `window` (unscaled; of a PAUSE frame its quanta), `payload_bytes`, `tsval`, `tsecr` (double),
#' - `mss_bytes`, `wscale` (options of a SYN, else NA),
#' - `id` (double, 53 bit hash of what routers leave alone; equal at both ends of a path).
#'
#' and attributes `path`, `epoch_s` (whole seconds of the first packet), `link_type`, `precision` ("us" or
#' "ns"), `snaplen_bytes`, `cut_packets` (captured shorter than their headers), `truncated` (TRUE when the
#' file ends inside a record) and `truncated_note`.
#' @export
read_pcap <- function(path) {
  if (!is.character(path) || length(path) != 1L || is.na(path)) {
    cli::cli_abort("{.arg path}: not one file name; the path of a capture would have been accepted",
                   class = "samovar_error_argument")
  }
  if (!file.exists(path)) {
    cli::cli_abort("{.path {path}}: does not exist; a capture file would have been accepted",
                   class = "samovar_error_file")
  }
  decoded <- tryCatch(decode_capture(path.expand(path)), error = \(e) abort_capture(path, e))
  as_capture(decoded, path)
}

abort_capture <- function(path, error) {
  reason <- conditionMessage(error)
  cli::cli_abort("{.path {path}}: {reason}", class = "samovar_error_capture", call = NULL)
}

as_capture <- function(decoded, path) {
  capture <- setDT(decoded$table)
  for (name in setdiff(names(decoded), "table")) setattr(capture, name, decoded[[name]])
  setattr(capture, "path", path)
  capture[]
}

#' The same flow seen from the other end
#'
#' @param flow Flow names, "a:p > b:q".
#' @return Character: "b:q > a:p".
#' @export
reverse_flow <- function(flow) {
  sub("^(\\S+) > (\\S+)", "\\2 > \\1", as.character(flow))
}

#' The TCP flows that carry data, one per connection
#'
#' @param capture A table of [read_pcap()].
#' @param proto Protocols to take.
#' @return A data.table: `flow` (the direction with more payload), `src`, `sport`, `dst`, `dport`, `packets`,
#'   `payload_bytes`, `first_ns`, `last_ns`; most payload first.
#' @export
data_flows <- function(capture, proto = "tcp") {
  wanted <- proto
  flows <- capture[proto %in% wanted & !is.na(flow) & !is.na(sport), .(
    src = src[1L], sport = sport[1L], dst = dst[1L], dport = dport[1L], packets = .N,
    payload_bytes = sum(as.double(payload_bytes)), first_ns = t_ns[1L], last_ns = t_ns[.N]
  ), by = flow]
  flows[, flow := as.character(flow)]
  back <- flows[list(reverse_flow(flows$flow)), payload_bytes, on = "flow"]
  # Of two directions with as much payload, the one seen first counts.
  ahead <- is.na(back) | flows$payload_bytes > back |
    (flows$payload_bytes == back & seq_len(nrow(flows)) < match(reverse_flow(flows$flow), flows$flow))
  flows[ahead][order(-payload_bytes)]
}

# Rows of a capture keep the attributes that tell what its times mean; a table computed from it does not.
check_capture <- function(capture, arg = "capture") {
  has_columns <- is.data.table(capture) && all(c("t_ns", "flow", "id") %in% names(capture))
  if (has_columns && !is.null(attr(capture, "epoch_s"))) return(invisible(capture))
  cli::cli_abort(
    "{.arg {arg}}: not a capture; a table of {.fn read_pcap}, or rows of one, would have been accepted",
    class = "samovar_error_argument", call = NULL
  )
}

check_flow <- function(capture, flow) {
  flow <- as.character(flow)
  known <- levels(capture$flow)
  if (length(flow) == 1L && (flow %in% known || reverse_flow(flow) %in% known)) return(flow)
  cli::cli_abort("{.arg flow}: {.val {flow}} is not in the capture; one of {.val {known}} would have been accepted",
                 class = "samovar_error_flow", call = NULL)
}

rows_of_flow <- function(capture, name, columns) {
  level <- match(name, levels(capture$flow), nomatch = -1L)
  capture[which(as.integer(capture$flow) == level), columns, with = FALSE]
}
