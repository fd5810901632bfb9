#include "core_decode.h"

#include <algorithm>
#include <array>

#include "core_bytes.h"

namespace samovar {
namespace {

constexpr uint16_t type_ipv4 = 0x0800, type_ipv6 = 0x86DD, type_arp = 0x0806, type_mac_control = 0x8808;
constexpr uint16_t type_mpls = 0x8847, type_mpls_multicast = 0x8848, type_pppoe = 0x8864;  // RFC 5332, RFC 2516
// Up to here the field is a length (IEEE 802.3), followed by LLC; these service access points announce SNAP (RFC 1042).
constexpr uint16_t longest_802_3 = 1500, snap_service_points = 0xAAAA;
constexpr uint16_t opcode_pause = 0x0001;  // IEEE 802.3 annex 31B
constexpr uint16_t opcode_pfc = 0x0101;    // IEEE 802.3 annex 31D, 802.1Qbb
constexpr uint8_t number_icmp = 1, number_tcp = 6, number_udp = 17, number_icmp6 = 58;
constexpr uint8_t no_next_header = 59;  // RFC 8200, section 4.7
constexpr int flag_syn = 2;
constexpr size_t shortest_tcp = 20;  // RFC 9293, section 3.1: a header without options
// Two bytes of padding, kind and length of the time stamps option (RFC 7323, appendix A); with the time stamps 12 bytes.
constexpr uint32_t padded_timestamps = 0x0101080A;
constexpr size_t stamps_bytes = 12;
constexpr uint32_t link_ethernet = 1;
constexpr size_t plain_bytes = 14 + 20 + shortest_tcp;  // headers of a packet without options

bool is_vlan(uint16_t type) { return type == 0x8100 || type == 0x88A8 || type == 0x9100; }

int proto_of(uint8_t number) {
  switch (number) {
    case number_tcp: return tcp;
    case number_udp: return udp;
    case number_icmp: return icmp;
    case number_icmp6: return icmp6;
    default: return ip;
  }
}

}  // namespace

double missing_double() {
  static const double value = [] {
    const uint64_t bits = 0x7FF00000000007A2ULL;  // R's NA_real_
    return load<double>(reinterpret_cast<const uint8_t*>(&bits));
  }();
  return value;
}

const char* name_of_link(uint32_t link_type) {
  switch (link_type) {
    case 0: return "null";
    case 1: return "ethernet";
    case 12:
    case 14:
    case 101:
    case 228:
    case 229: return "raw";
    case 108: return "loop";
    case 113: return "sll";
    case 276: return "sll2";
    default: return nullptr;
  }
}

// Functions that nearly all packets need are compiled into one: that saves a tenth of the time.
[[gnu::flatten]] void Decoder::decode(const Record* records, size_t n, Row* rows) {
  static const Row blank = [] {
    Row empty{};
    for (const Column& column : columns)
      if (column.real) empty.*column.real = missing_double();
      else empty.*column.integer = missing_int;
    empty.proto = other;
    empty.superpacket = empty.header_cut = 0;
    return empty;
  }();
  for (size_t i = 0; i < n; ++i) {
    const Record& record = records[i];
    Row& row = rows[i];
    row = blank;
    if (record.timed) row.t_ns = static_cast<double>(record.t_ns);
    row.frame_bytes = static_cast<int>(std::min<uint32_t>(record.frame_bytes, std::numeric_limits<int>::max()));
    row.captured_bytes = static_cast<int>(record.captured_bytes);
    row.interface = record.interface;
    if (!decode_plain(record, row)) decode_any(record, row);
    ++decoded_;
  }
}

// Decodes a TCP segment with no option but time stamps, in an unfragmented IPv4 packet without options, in an untagged Ethernet frame, if all headers
// were captured: nearly every packet of an experiment, in half of the time of decode_any(). Returns false for other packets.
bool Decoder::decode_plain(const Record& record, Row& row) {
  if (record.captured_bytes < plain_bytes || record.link_type != link_ethernet || !record.timed) return false;
  const uint8_t* const type = record.data + 12;
  const uint8_t* const ip = type + 2;
  const uint8_t* const segment = ip + 20;
  const uint8_t* const options = segment + shortest_tcp;
  const int ip_bytes = net16(ip + 2);
  const int tcp_words = segment[12] >> 4;
  const bool has_stamps = tcp_words == 8 && record.captured_bytes >= plain_bytes + stamps_bytes && net32(options) == padded_timestamps;
  const bool plain = net16(type) == type_ipv4 && ip[0] == 0x45 && (net16(ip + 6) & 0x3FFF) == 0 && ip[9] == number_tcp &&
                     (has_stamps || tcp_words == 5) && ip_bytes >= 20 + 4 * tcp_words;
  if (!plain) return false;
  row.proto = tcp;
  row.ip_bytes = ip_bytes;
  row.superpacket = ip_bytes > mtu_bytes_;
  row.tos = ip[1];
  row.ttl = ip[8];
  row.ip_id = net16(ip + 4);
  row.seq = net32(segment + 4);
  row.ack = net32(segment + 8);
  row.flags = (segment[12] & 1) << 8 | segment[13];
  row.window = net16(segment + 14);
  row.payload_bytes = ip_bytes - 20 - 4 * tcp_words;
  row.options = has_stamps ? option_timestamps : 0;
  FlowKey key;
  key.address = {load<uint32_t>(ip + 12), 0, load<uint32_t>(ip + 16), 0};
  key.set_ports(number_tcp, net16(segment), net16(segment + 2));
  uint64_t identity = mix(set_flow(key, row).hash, mix(uint64_t{net16(ip + 4)} << 16, number_tcp));
  identity = mix(mix(identity, load<uint64_t>(segment + 4)), load<uint32_t>(segment + 12));
  if (has_stamps) {
    row.tsval = net32(options + 4);
    row.tsecr = net32(options + 8);
    identity = mix_bytes(identity, options, stamps_bytes);
  }
  row.id = static_cast<double>(identity >> 11);
  return true;
}

void Decoder::decode_any(const Record& record, Row& row) {
  cut_now_ = false;
  frame_ = record.data;
  decode_link(record.link_type, {record.data, record.captured_bytes}, row);
  row.header_cut = cut_now_;
  cut_ += cut_now_;
  if (row.proto >= mpls && row.proto <= snap) ++undecoded_[static_cast<size_t>(row.proto - mpls)];
  if (record.timed) return;
  ++untimed_;
  row.id = missing_double();  // without a time it cannot be paired
}

FlowTable::Renumbering Decoder::absorb(Decoder& later) {
  cut_ += later.cut_;
  untimed_ += later.untimed_;
  unknown_ += later.unknown_;
  for (size_t k = 0; k < undecoded_.size(); ++k) undecoded_[k] += later.undecoded_[k];
  class_pauses_.insert(class_pauses_.end(), later.class_pauses_.begin(), later.class_pauses_.end());
  later.class_pauses_.clear();
  const FlowTable::Renumbering numbers = flows_.absorb(later.flows_);
  for (const Fragment& f : later.take_fragments())
    fragments_.push_back({decoded_ + f.row, f.datagram, numbers.flow[static_cast<size_t>(f.flow)]});
  decoded_ += later.decoded_;
  return numbers;
}

void Decoder::decode_link(uint32_t link_type, Bytes bytes, Row& row) {
  size_t header = 0, type_at = 0;
  switch (link_type) {
    case link_ethernet: header = 14, type_at = 12; break;
    case 113: header = 16, type_at = 14; break;
    case 276: header = 20, type_at = 0; break;
    case 0:
    case 108: header = 4; break;
    case 12:
    case 14:
    case 101:
    case 228:
    case 229: break;
    default: ++unknown_; return;
  }
  if (!bytes.has(header)) return cut();
  const Bytes inside = bytes.after(header);
  if (header >= 14) return decode_type(net16(bytes.at + type_at), inside, row);
  decode_ip(inside, row);
}

void Decoder::decode_type(uint16_t type, Bytes bytes, Row& row) {
  while (is_vlan(type)) {
    if (!bytes.has(4)) return cut();
    int& tag = row.vlan == missing_int ? row.vlan : row.vlan_inner;
    tag = net16(bytes.at) & 0x0FFF;
    type = net16(bytes.at + 2);
    bytes = bytes.after(4);
  }
  if (type == type_ipv4 || type == type_ipv6) return decode_ip(bytes, row);
  if (type == type_arp) row.proto = arp;
  if (type == type_mac_control) decode_mac_control(bytes, row);
  // What follows may carry IP, which is not decoded.
  if (type == type_mpls || type == type_mpls_multicast) row.proto = mpls;
  if (type == type_pppoe) row.proto = pppoe;
  if (type <= longest_802_3 && bytes.has(2) && net16(bytes.at) == snap_service_points) row.proto = snap;
}

void Decoder::decode_mac_control(Bytes bytes, Row& row) {
  row.proto = mac_control;
  if (!bytes.has(2)) return cut();
  row.opcode = net16(bytes.at);
  if (row.opcode == opcode_pfc) {
    row.proto = pfc;
    return decode_class_pause(bytes.after(2), row);
  }
  if (row.opcode != opcode_pause) return;
  row.proto = pause;
  if (!bytes.has(4)) return cut();
  row.window = row.quanta = net16(bytes.at + 2);
}

void Decoder::decode_class_pause(Bytes bytes, Row& row) {
  if (!bytes.has(2)) return cut();
  row.pfc_classes = net16(bytes.at) & 0xFF;
  for (int priority = 0; priority < 8; ++priority) {
    if (!(row.pfc_classes >> priority & 1)) continue;
    const size_t at = 2 + 2 * static_cast<size_t>(priority);
    if (!bytes.has(at + 2)) return cut();
    const int quanta = net16(bytes.at + at);
    row.quanta = std::max(row.quanta, quanta);
    class_pauses_.push_back({row.t_ns, row.interface, priority, quanta});
  }
}

void Decoder::decode_ip(Bytes bytes, Row& row) {
  if (!bytes.has(1)) return cut();
  const int version = bytes.at[0] >> 4;
  if (version == 4) decode_ipv4(bytes, row);
  if (version == 6) decode_ipv6(bytes, row);
}

// A superpacket, which an interface is to segment or has reassembled, may have a length field of 0, because the length needs
// more bits or the interface is to fill it in: the length of the frame is used then.
void Decoder::set_ip_bytes(int length, int header, Bytes bytes, Row& row) {
  const int inside = std::max(row.frame_bytes - static_cast<int>(bytes.at - frame_), 0);
  row.ip_bytes = length ? length + header : inside;
  row.superpacket = length == 0 || row.ip_bytes > mtu_bytes_;
}

void Decoder::decode_ipv4(Bytes bytes, Row& row) {
  row.proto = ip;
  if (!bytes.has(20)) return cut();
  const uint8_t* at = bytes.at;
  const size_t header = 4 * size_t{at[0] & 0x0Fu};
  const int length = net16(at + 2);
  const int fragment = net16(at + 6) & 0x1FFF;
  const bool more = net16(at + 6) & 0x2000;
  set_ip_bytes(length, 0, bytes, row);
  row.tos = at[1];
  row.ttl = at[8];
  row.ip_id = net16(at + 4);
  if (fragment || more) {
    row.fragment_bytes = 8 * fragment;
    row.more_fragments = more;
  }
  Network network{};
  network.key.set_version(4);
  network.key.address = {load<uint32_t>(at + 12), 0, load<uint32_t>(at + 16), 0};
  network.protocol = at[9];
  network.identity = mix(uint64_t{net16(at + 4)} << 16 | static_cast<uint64_t>(fragment), at[9]);
  if (fragment || more) network.datagram = mix(network.key.hash(), mix(net16(at + 4), at[9]));
  network.transport_bytes = row.ip_bytes - static_cast<int>(header);
  network.first_fragment = fragment == 0;
  if (header < 20 || !bytes.has(header)) {
    set_flow(network.key, row);
    return cut();
  }
  decode_transport(network, bytes.after(header), row);
}

void Decoder::decode_ipv6(Bytes bytes, Row& row) {
  row.proto = ip;
  if (!bytes.has(40)) return cut();
  const uint8_t* at = bytes.at;
  const int length = net16(at + 4);
  set_ip_bytes(length, 40, bytes, row);
  if (length == 0 && at[6] == no_next_header) row.ip_bytes = 40, row.superpacket = 0;
  row.tos = net16(at) >> 4 & 0xFF;
  row.ttl = at[7];
  Network network{};
  network.key.set_version(6);
  std::memcpy(network.key.address.data(), at + 8, 32);
  network.protocol = at[6];
  network.first_fragment = true;
  Bytes rest = bytes.after(40);
  uint64_t fragment = 0;
  // Extension headers (RFC 8200, section 4): each gives the type of the next header, and most also give their own length.
  for (bool more = true; more;) {
    const uint8_t type = network.protocol;
    more = type == 0 || type == 43 || type == 44 || type == 51 || type == 60 || type == 135 || type == 139 ||
           type == 140;
    if (!more) break;
    if (!rest.has(8)) {
      set_flow(network.key, row);
      return cut();
    }
    if (type == 44) {
      fragment = load<uint64_t>(rest.at);
      row.fragment_bytes = net16(rest.at + 2) & 0xFFF8;
      row.more_fragments = rest.at[3] & 1;
      network.first_fragment = row.fragment_bytes == 0;
      network.datagram = mix(network.key.hash(), load<uint32_t>(rest.at + 4));
    }
    const size_t n = type == 44   ? 8
                     : type == 51 ? 4 * (size_t{rest.at[1]} + 2)
                                  : 8 * (size_t{rest.at[1]} + 1);
    if (!rest.has(n)) {
      set_flow(network.key, row);
      return cut();
    }
    network.protocol = rest.at[0];
    rest = rest.after(n);
    if (!network.first_fragment) break;
  }
  network.identity = mix(fragment, network.protocol);
  network.transport_bytes = row.ip_bytes - static_cast<int>(rest.at - bytes.at);
  decode_transport(network, rest, row);
}

void Decoder::decode_transport(Network& network, Bytes bytes, Row& row) {
  // The padding of short frames is not payload; a sender's own capture does not have it.
  bytes.n = std::min(bytes.n, static_cast<size_t>(std::max(network.transport_bytes, 0)));
  row.proto = proto_of(network.protocol);
  row.payload_bytes = std::max(network.transport_bytes, 0);
  const bool has_ports = (row.proto == tcp || row.proto == udp) && network.first_fragment;
  if (has_ports && bytes.has(4)) {
    network.key.set_ports(network.protocol, net16(bytes.at), net16(bytes.at + 2));
  } else if (has_ports) {
    cut();
  }
  uint64_t identity = mix(set_flow(network.key, row).hash, network.identity);
  if (network.datagram && (network.key.protocol() != 0 || !network.first_fragment))
    fragments_.push_back({decoded_, network.datagram, network.first_fragment ? row.flow : 0});
  if (has_ports && row.proto == tcp) {
    identity = decode_tcp(bytes, identity, row);
  } else if (has_ports) {
    row.payload_bytes = std::max(network.transport_bytes - 8, 0);
    if (!bytes.has(8)) cut();
    // Length and checksum are not hashed: with checksum offload the sender's capture has no valid checksum.
    if (bytes.has(8)) identity = mix_bytes(identity, bytes.at + 8, std::min<size_t>(bytes.n - 8, 12));
  } else {
    if (network.first_fragment && (row.proto == icmp || row.proto == icmp6)) {
      row.payload_bytes = std::max(network.transport_bytes - 8, 0);
      decode_icmp(bytes, row);
    }
    identity = mix_bytes(identity, bytes.at, std::min<size_t>(bytes.n, 20));
  }
  row.id = static_cast<double>(identity >> 11);
}

uint64_t Decoder::decode_tcp(Bytes bytes, uint64_t identity, Row& row) {
  if (!bytes.has(shortest_tcp)) return decode_cut_tcp(bytes, identity, row);
  const uint8_t* at = bytes.at;
  const size_t header = 4 * size_t{static_cast<unsigned>(at[12] >> 4)};
  row.seq = net32(at + 4);
  row.flags = (at[12] & 1) << 8 | at[13];
  row.ack = net32(at + 8);
  row.window = net16(at + 14);
  row.payload_bytes = std::max(row.payload_bytes - static_cast<int>(std::max(header, shortest_tcp)), 0);
  identity = mix(identity, load<uint64_t>(at + 4));
  identity = mix(identity, load<uint32_t>(at + 12));
  row.options = 0;
  if (header <= shortest_tcp) return identity;
  const Bytes options{at + shortest_tcp, std::min(bytes.n, header) - shortest_tcp};
  decode_options(options, row);
  if (!bytes.has(header)) {
    cut();
    row.options |= option_malformed;
  }
  return mix_bytes(identity, options.at, options.n);
}

// Keep the complete fields of a header that the snapshot length cut: it is read as if zeros followed, and incomplete fields are removed.
uint64_t Decoder::decode_cut_tcp(Bytes bytes, uint64_t identity, Row& row) {
  cut();
  std::array<uint8_t, shortest_tcp> padded{};
  std::copy_n(bytes.at, bytes.n, padded.begin());
  const int transport_bytes = row.payload_bytes;
  const uint64_t whole = decode_tcp({padded.data(), padded.size()}, identity, row);
  if (!bytes.has(8)) row.seq = missing_double();
  if (!bytes.has(12)) row.ack = missing_double();
  if (!bytes.has(13)) {
    row.payload_bytes = transport_bytes > static_cast<int>(shortest_tcp) ? missing_int : 0;
    row.options = missing_int;
  }
  if (!bytes.has(14)) row.flags = missing_int;
  if (!bytes.has(16)) row.window = missing_int;
  // Checksum and urgent pointer are not hashed, also if the header ends within them.
  return bytes.has(16) ? whole : mix_bytes(identity, bytes.at, bytes.n);
}

void Decoder::decode_icmp(Bytes bytes, Row& row) {
  if (!bytes.has(2)) return cut();
  row.icmp_type = bytes.at[0];
  row.icmp_code = bytes.at[1];
  const bool echo = row.proto == icmp ? row.icmp_type == 0 || row.icmp_type == 8  // RFC 792
                                      : row.icmp_type == 128 || row.icmp_type == 129;  // RFC 4443
  if (!echo) return;
  if (!bytes.has(8)) return cut();
  row.echo_id = net16(bytes.at + 4);
  row.echo_seq = net16(bytes.at + 6);
}

void Decoder::decode_options(Bytes options, Row& row) {
  row.options = 0;
  // The options of nearly all packets begin in this way.
  if (options.has(stamps_bytes) && net32(options.at) == padded_timestamps) {
    row.options = option_timestamps;
    row.tsval = net32(options.at + 4);
    row.tsecr = net32(options.at + 8);
    options = options.after(stamps_bytes);
  }
  while (options.has(1)) {
    const uint8_t kind = options.at[0];
    if (kind == 0) return;
    if (kind == 1) {
      options = options.after(1);
      continue;
    }
    const size_t n = options.has(2) ? options.at[1] : 0;
    if (n < 2 || !options.has(n)) {
      row.options |= option_malformed;
      // Only the first block of SACK is read, which may be complete although the option is cut.
      if (kind == 5 && n >= 10 && options.has(10)) decode_option(options.at, n, row);
      return;
    }
    decode_option(options.at, n, row);
    options = options.after(n);
  }
}

// Kinds of IANA's registry of TCP parameters; options of a SYN are valid on a SYN only (RFC 9293, 7323, 2018).
void Decoder::decode_option(const uint8_t* at, size_t n, Row& row) {
  const bool syn = row.flags & flag_syn;
  switch (at[0]) {
    case 2:
      row.options |= option_mss;
      if (syn && n == 4) row.mss_bytes = net16(at + 2);
      break;
    case 3:
      row.options |= option_wscale;
      if (syn && n == 3) row.wscale = std::min<int>(at[2], 14);  // RFC 7323, section 2.3
      break;
    case 4: row.options |= option_sack_permitted; break;
    case 5:
      row.options |= option_sack;
      row.sack_blocks = static_cast<int>((n - 2) / 8);
      if (n < 10) break;
      row.sack_left = net32(at + 2);
      row.sack_right = net32(at + 6);
      break;
    case 8:
      row.options |= option_timestamps;
      if (n != 10) break;
      row.tsval = net32(at + 2);
      row.tsecr = net32(at + 6);
      break;
    case 19:
    case 29: row.options |= option_authentication; break;
    case 28: row.options |= option_user_timeout; break;
    case 30: row.options |= option_multipath; break;
    case 34: row.options |= option_fast_open; break;
    default: row.options |= option_other;
  }
}

const Flow& Decoder::set_flow(const FlowKey& key, Row& row) {
  const Flow& flow = flows_.find(key);
  row.flow = flow.number;
  row.src = flow.src;
  row.dst = flow.dst;
  if (key.protocol()) {
    row.sport = key.sport();
    row.dport = key.dport();
  }
  return flow;
}

}  // namespace samovar
