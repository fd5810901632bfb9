#' Read a packet capture, one row per packet
#'
#' Classic pcap files (microsecond or nanosecond time stamps, either byte order),
#' plain or gzip-compressed, of link types Ethernet (with VLAN tags), null, raw IP,
#' SLL and SLL2. A file that was cut short gives its whole packets.
#'
#' @param path One capture file.
#' @return A data.table in capture order with columns
#' - `t_ns` (double, ns since `epoch_s`),
#' - `frame_bytes` (length on the wire as captured by the kernel, without FCS),
#' - `ip_bytes` (IP total length; of a superpacket with length 0, the frame less its link header; NA without IP),
#' - `proto` (factor: tcp, udp, icmp, icmp6, ip, pause, mac-control, arp, other),
#' - `flow` (factor "a.b.c.d:p > e.f.g.h:q", IPv6 in brackets, without ports where there are none; NA without IP),
#' - `src`, `dst` (factor), `sport`, `dport` (integer),
#' - `ip_id`, `seq`, `ack` (double), `flags` (integer, low 9 bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128),
#' - `window` (unscaled; of a PAUSE frame its quanta), `payload_bytes`, `tsval`, `tsecr` (double),
#' - `mss_bytes`, `wscale` (options of a SYN, else NA),
#' - `id` (double, 53 bit hash of what routers leave alone; equal at both ends of a path).
#'
#' and attributes `path`, `epoch_s` (whole seconds of the first packet), `link_type`, `precision` ("us" or "ns"),
#' `snaplen_bytes`, `cut_packets` (captured shorter than their headers), `truncated` (TRUE when the file ends inside a record) and
#' `truncated_note`.
#' @export
read_pcap <- function(path) {
  cli::cli_abort("{.fn read_pcap} is being written", class = "samovar_error_todo")
}

#' The same flow seen from the other end
#'
#' @param flow Flow names, "a:p > b:q".
#' @return Character: "b:q > a:p".
#' @export
reverse_flow <- function(flow) {
  ends <- strsplit(as.character(flow), " > ", fixed = TRUE)
  vapply(ends, \(end) paste(rev(end), collapse = " > "), "")
}

#' The TCP flows that carry data, one per connection
#'
#' @param capture A table of [read_pcap()].
#' @param proto Protocols to take.
#' @return A data.table: `flow` (the direction with more payload), `src`, `sport`, `dst`, `dport`, `packets`,
#'   `payload_bytes`, `first_ns`, `last_ns`; most payload first.
#' @export
data_flows <- function(capture, proto = "tcp") {
  cli::cli_abort("{.fn data_flows} is being written", class = "samovar_error_todo")
}
