# Read packet captures, list their flows, and check the arguments of functions that take a capture.

#' Read a packet capture, one row per packet
#'
#' Files: pcap with microseconds or nanoseconds in either byte order; pcapng with any number of sections and interfaces,
#' each with its own resolution, offset and link type (enhanced, simple and obsolete packet blocks; other blocks and
#' options are skipped). Plain files are mapped into memory, gzip and zstd streams are decompressed as they are read.
#' Link types: Ethernet with VLAN tags (802.1Q, 802.1ad), null and loop, raw IP, SLL, SLL2. For a truncated or damaged file, the table has the complete
#' packets before the damage, attribute `truncated` is TRUE, and a warning of class `samovar_warning_truncated` is given. Packets below MPLS, PPPoE or SNAP
#' headers, or of an unknown link type, are not decoded: they have no flow, and a warning of class `samovar_warning_undecoded` counts them.
#'
#' @param path One capture file.
#' @param columns NULL for the usual columns, "all", or names of columns; the name "usual" stands for the usual columns. Columns that are not
#'   requested cost neither time nor memory.
#' @param mtu_bytes IP packets longer than this are superpackets; the default is more than any Ethernet carries.
#' @return A data.table in capture order. The usual columns:
#' - `t_ns` (double, ns since `epoch_s`; NA for packets of simple packet blocks, which have no time),
#' - `frame_bytes` (length on the wire as captured by the kernel, without FCS),
#' - `ip_bytes` (IP total length, RFC 791, or 40 plus the payload length of RFC 8200; if that is 0, the frame less its
#'   link header; NA without IP),
#' - `proto` (factor: tcp, udp, icmp, icmp6, ip, pause, pfc, mac-control, arp, mpls, pppoe, snap, other),
#' - `flow` (factor "a.b.c.d:p > e.f.g.h:q", IPv6 in brackets, without ports if there are none; NA without
#'   IP),
#' - `src`, `dst` (factor), `sport`, `dport` (integer; fragments other than the first have no ports: they get flow and ports of the first fragment, NA
#'   if it is not before them in the capture),
#' - `ip_id`, `seq`, `ack` (double), `flags` (integer, low 9 bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32,
#'   ECE 64, CWR 128, AE 256; RFC 9293, RFC 3168),
#' - `window` (bytes, unscaled; for a PAUSE frame its quanta), `payload_bytes` (of TCP, UDP and ICMP without their headers,
#'   according to the IP header, however much was captured; NA if the snapshot length cut a TCP header before its data offset), `tsval`, `tsecr`
#'   (double; RFC 7323),
#' - `mss_bytes` (RFC 9293), `wscale` (shift, at most 14; RFC 7323): options of a SYN, else NA,
#' - `id` (double, 53-bit hash of the fields that routers do not change; equal at both ends of a path),
#' - `superpacket` (TRUE if the IP length is 0 or above `mtu_bytes`: the interface segments or reassembles it, so
#'   that it is not a packet on the wire).
#'
#' Columns on request:
#' - `interface` (number of the row in attribute `interfaces`), `captured_bytes` (of the frame), `header_cut` (TRUE if
#'   the snapshot length cut a header that this table needs: fields that were captured completely have values, the others are NA),
#' - `vlan`, `vlan_inner` (VLAN ids, 0 to 4095, of the first and second tag; IEEE 802.1Q),
#' - `tos` (DSCP in the upper six bits, ECN in the lower two; RFC 2474, RFC 3168), `ttl` (IPv6: hop limit),
#' - `fragment_bytes` (offset of a fragment, NA for whole packets), `more_fragments` (FALSE for the last fragment),
#' - `options` (TCP options seen, a bit each: MSS 1, window scale 2, SACK permitted 4, SACK 8, time stamps 16, fast open 32,
#'   multipath 64, MD5 or AO 128, user timeout 256, any other 512, malformed or cut off 1024; RFC 9293 and IANA's list),
#' - `sack_blocks` (number of blocks), `sack_left`, `sack_right` (double: edges of the first block: the data that were received last, or twice;
#'   RFC 2018, RFC 2883),
#' - `icmp_type`, `icmp_code`, `echo_id`, `echo_seq` (the last two for echo requests and replies; RFC 792, RFC 4443),
#' - `opcode` of MAC control (1 PAUSE, 257 PFC; IEEE 802.3 annex 31), `quanta` (length of the pause in 512 bit times; for PFC the longest),
#'   `pfc_classes` (enabled classes, a bit each; IEEE 802.1Qbb).
#'
#' Attributes: `path`, `epoch_s` (whole seconds of the first packet), `format` ("pcap", "pcapng"), `link_type`, `precision`
#' (unit of the time stamps, the coarsest of all interfaces), `snaplen_bytes` (the shortest; 0 for no limit), `interfaces`
#' (data.table `interface`, `name`, `link_type`, `snaplen_bytes`, `precision`, `offset_s`, `interface_drops`,
#' `system_drops`: packets that were not captured, NA if unknown), `class_pauses` (data.table of PFC: `t_ns`,
#' `interface`, `priority`, `quanta`), `cut_packets` (number of packets whose headers were not captured completely), `untimed_packets` (number of packets
#' without a time), `undecoded_packets` (number of packets below `mpls`, `pppoe` and `snap` headers, and of an `unknown link type`, whose `proto` is
#' other), `truncated` (TRUE if reading stopped before the end of the file) and `truncated_note` (the reason, and the position in the decompressed file, in
#' bytes).
#' @source pcap-savefile(5); draft-ietf-opsawg-pcap; draft-ietf-opsawg-pcapng; the list of link types at tcpdump.org.
#' @examples
#' capture <- read_pcap(samovar_example("bulk-sender.pcap.gz"))
#' capture
#' capture[proto == "tcp", .N, by = flow]
#' @export
read_pcap <- function(path, columns = NULL, mtu_bytes = 9216) {
  path <- check_capture_path(path)
  wanted <- columns_wanted(columns)
  mtu_bytes <- check_count(mtu_bytes, "mtu_bytes")
  capture <- as_capture(of_capture(path, decode_capture(path.expand(path), wanted, mtu_bytes)), path)
  warn_incomplete(capture)
}

#' Process a capture that is too large for memory, part by part
#'
#' The file is read once, from front to back; no more than one part is in memory.
#'
#' @inheritParams read_pcap
#' @param measure A function that is called with each part, which is a table like that of [read_pcap()]. The factors `flow`, `src` and `dst` keep the levels of
#'   earlier parts, so that codes stay the same from part to part. Names of levels may change: if TCP packets have the addresses and ports
#'   of an earlier UDP flow, that flow's name ends with " (udp)" from this part on. `cut_packets` and similar attributes count from the start of the file.
#' @param packets Number of rows of a part; the last part may have fewer.
#' @return A list of the results of `measure`, one element per part; empty for a capture without packets.
#' @examples
#' # Packets per flow, 500 packets at a time.
#' parts <- read_pcap_parts(samovar_example("bulk-sender.pcap.gz"), \(part) part[, .N, by = flow], packets = 500)
#' data.table::rbindlist(parts)[, .(packets = sum(N)), by = flow]
#' @export
read_pcap_parts <- function(path, measure, packets = 1e6, columns = NULL, mtu_bytes = 9216) {
  path <- check_capture_path(path)
  wanted <- columns_wanted(columns)
  packets <- check_count(packets, "packets")
  parts <- of_capture(path, open_capture_parts(path.expand(path), check_count(mtu_bytes, "mtu_bytes")))
  on.exit(close_capture_parts(parts))
  results <- list()
  repeat {
    part <- as_capture(of_capture(path, decode_capture_part(parts, wanted, packets)), path)
    if (nrow(part) > 0L) results <- c(results, list(measure(part)))
    if (nrow(part) < packets) break
  }
  warn_incomplete(part)
  results
}

check_capture_path <- function(path) {
  if (!is.character(path) || length(path) != 1L || is.na(path)) {
    cli::cli_abort("{.arg path} must be the path of one capture",
                   class = "samovar_error_argument", call = NULL)
  }
  if (file.exists(path)) return(path)
  cli::cli_abort("{.path {path}}: does not exist; expected a capture file",
                 class = "samovar_error_file", call = NULL)
}

columns_wanted <- function(columns) {
  known <- capture_columns()
  if (identical(columns, "all")) return(seq_along(known$name))
  if (is.null(columns)) columns <- "usual"
  strange <- setdiff(columns, c(known$name, "usual"))
  if (!is.character(columns) || length(columns) == 0L || length(strange) > 0L) {
    cli::cli_abort("{.arg columns}: unknown column {.val {strange}}; expected \"usual\", \"all\" or names of {.val {known$name}}",
                   class = "samovar_error_argument", call = NULL)
  }
  which(known$name %in% columns | (known$usual & "usual" %in% columns))
}

check_count <- function(x, arg) {
  if (is.numeric(x) && length(x) == 1L && isTRUE(x >= 1 & x <= .Machine$integer.max)) return(as.integer(x))
  cli::cli_abort("{.arg {arg}}: {.val {x}}; expected a whole number from 1 to {(.Machine$integer.max)}",
                 class = "samovar_error_argument", call = NULL)
}

of_capture <- function(path, code) {
  tryCatch(code, error = \(e) abort_capture(path, e))
}

abort_capture <- function(path, error) {
  reason <- conditionMessage(error)
  cli::cli_abort("{.path {path}}: {reason}", class = "samovar_error_capture", call = NULL)
}

as_capture <- function(decoded, path) {
  capture <- setDT(decoded$table)
  for (name in c("interfaces", "class_pauses")) setDT(decoded[[name]])
  for (name in setdiff(names(decoded), "table")) setattr(capture, name, decoded[[name]])
  setattr(capture, "path", path)
  capture
}

# Warn of packets that the table lacks or that are not decoded, which would otherwise look like loss.
warn_incomplete <- function(capture) {
  path <- attr(capture, "path")
  if (attr(capture, "truncated")) {
    cli::cli_warn("{.path {path}}: {attr(capture, 'truncated_note')}; the packets before were read",
                  class = c("samovar_warning_truncated", "samovar_warning"))
  }
  undecoded <- attr(capture, "undecoded_packets")
  undecoded <- undecoded[undecoded > 0]
  if (length(undecoded) > 0) {
    cli::cli_warn("{.path {path}}: not decoded: {.val {paste(undecoded, names(undecoded))}} packets",
                  class = c("samovar_warning_undecoded", "samovar_warning"))
  }
  capture
}

#' The reverse direction of a flow
#'
#' @param flow Flow names, "a:p > b:q".
#' @return Character: "b:q > a:p".
#' @examples
#' reverse_flow("10.0.0.1:5000 > 10.0.0.2:80")
#' @export
reverse_flow <- function(flow) {
  sub("^(\\S+) > (\\S+)", "\\2 > \\1", as.character(flow))
}

#' The flows that carry data, one per connection
#'
#' Packets without ports (echoes, fragments without their first fragment) are left out.
#'
#' @param capture A table from [read_pcap()] with `t_ns`, `flow`, `proto`, `src`, `sport`, `dst`, `dport`, `payload_bytes`, or some of its rows.
#' @param proto Protocols to include.
#' @return A data.table: `flow` (the direction with more payload; if equal, the direction seen first), `src`, `sport`, `dst`, `dport`,
#'   `packets`, `payload_bytes`, `first_ns`, `last_ns` (`t_ns` of its first and last packet in the capture's order); sorted by payload, the most first, and
#'   flows with equal payload by their first packets. `payload_bytes` is NA for a flow with a packet of unknown payload. Flows of unknown payload come last; an
#'   upper bound of their payload, from column `ip_bytes`, decides their direction and their order.
#' @examples
#' data_flows(read_pcap(samovar_example("bulk-sender.pcap.gz")))
#' @export
data_flows <- function(capture, proto = "tcp") {
  check_columns(capture, c("t_ns", "flow", "proto", "src", "sport", "dst", "dport", "payload_bytes"))
  kind <- coded(capture$proto)
  name <- coded(capture$flow)
  # Without that column, packets of unknown payload count as empty.
  ip_bytes <- capture[["ip_bytes"]] %||% capture$payload_bytes
  sums <- setDT(flow_totals(name, kind, capture$sport, capture$payload_bytes, ip_bytes, levels(kind) %in% proto))
  end <- \(column, rows = sums$first) capture[[column]][rows]
  flows <- data.table(
    flow = levels(name)[sums$flow], src = end("src"), sport = end("sport"), dst = end("dst"), dport = end("dport"),
    packets = sums$packets, payload_bytes = sums$payload_bytes, first_ns = end("t_ns"), last_ns = end("t_ns", sums$last)
  )
  back <- match(reverse_flow(flows$flow), flows$flow)
  most <- sums$most_bytes
  ahead <- is.na(back) | most > most[back] | (most == most[back] & seq_along(back) < back)
  flows[ahead][order(-payload_bytes, -most[ahead])]
}

# Find packets that may carry data. If the snapshot length cut a TCP header, the payload is unknown.
may_carry <- function(payload_bytes) is.na(payload_bytes) | payload_bytes > 0

coded <- function(x) if (is.factor(x)) x else factor(x)

check_columns <- function(capture, columns) {
  lacking <- setdiff(columns, names(capture))
  if (is.data.table(capture) && length(lacking) == 0L) return(invisible(capture))
  cli::cli_abort("{.arg capture}: missing column {.val {lacking}}; expected a table of {.fn read_pcap} with columns {.val {columns}}",
                 class = "samovar_error_argument", call = NULL)
}

# Rows of a capture keep the attributes that define its times; a table computed from a capture does not keep them.
check_capture <- function(capture, arg = "capture") {
  has_columns <- is.data.table(capture) && is.double(capture[["t_ns"]]) && is.factor(capture[["flow"]]) && "id" %in% names(capture)
  if (has_columns && !is.null(attr(capture, "epoch_s"))) return(invisible(capture))
  cli::cli_abort(
    "{.arg {arg}}: not a capture; expected a table of {.fn read_pcap}, or rows of one",
    class = "samovar_error_argument", call = NULL
  )
}

check_flow <- function(capture, flow) {
  flow <- as.character(flow)
  known <- levels(capture$flow)
  if (length(flow) == 1L && (flow %in% known || reverse_flow(flow) %in% known)) return(flow)
  cli::cli_abort("{.arg flow}: {.val {flow}} is not in the capture; expected one of {.val {known}}",
                 class = "samovar_error_flow", call = NULL)
}

# The packets of a flow in the order of their times.
rows_of_flow <- function(capture, name, columns) {
  check_columns(capture, columns)
  level <- match(name, levels(capture$flow), nomatch = -1L)
  capture[in_order_of_time(capture, which(as.integer(capture$flow) == level)), columns, with = FALSE]
}
