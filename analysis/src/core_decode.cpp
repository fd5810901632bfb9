#include "core_decode.h"

#include <algorithm>

#include "core_bytes.h"

namespace samovar {
namespace {

constexpr uint16_t type_ipv4 = 0x0800, type_ipv6 = 0x86DD, type_arp = 0x0806, type_mac_control = 0x8808;
constexpr uint16_t opcode_pause = 0x0001;  // IEEE 802.3 annex 31B
constexpr uint8_t number_icmp = 1, number_tcp = 6, number_udp = 17, number_icmp6 = 58;
constexpr int flag_syn = 2;

bool is_vlan(uint16_t type) { return type == 0x8100 || type == 0x88A8 || type == 0x9100; }

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
    default:
      throw FormatError("has link type " + std::to_string(link_type) +
                        "; Ethernet (1), null (0), loop (108), raw IP (101, 228, 229), SLL (113) or SLL2 "
                        "(276) would have been accepted");
  }
}

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

Decoder::Decoder(uint32_t link_type) : link_type_(link_type), link_name_(name_of_link(link_type)) {}

void Decoder::decode(const Record& record, Row& row) {
  static const Row blank = [] {
    Row empty{};
    for (const Column& column : columns)
      if (column.real) empty.*column.real = missing_double();
      else empty.*column.integer = missing_int;
    empty.proto = other;
    return empty;
  }();
  row = blank;
  row.t_ns = static_cast<double>(record.t_ns);
  row.frame_bytes = static_cast<int>(std::min<uint32_t>(record.frame_bytes, std::numeric_limits<int>::max()));
  cut_now_ = false;
  frame_ = record.data;
  decode_link({record.data, record.captured_bytes}, row);
  cut_ += cut_now_;
}

void Decoder::decode_link(Bytes bytes, Row& row) {
  size_t header = 0, type_at = 0;
  switch (link_type_) {
    case 1: header = 14, type_at = 12; break;
    case 113: header = 16, type_at = 14; break;
    case 276: header = 20, type_at = 0; break;
    case 0:
    case 108: header = 4; break;
    default: break;
  }
  if (!bytes.has(header)) return cut();
  const Bytes inside = bytes.after(header);
  if (header >= 14) return decode_type(net16(bytes.at + type_at), inside, row);
  decode_ip(inside, row);
}

void Decoder::decode_type(uint16_t type, Bytes bytes, Row& row) {
  while (is_vlan(type)) {
    if (!bytes.has(4)) return cut();
    type = net16(bytes.at + 2);
    bytes = bytes.after(4);
  }
  if (type == type_ipv4 || type == type_ipv6) return decode_ip(bytes, row);
  if (type == type_arp) row.proto = arp;
  if (type != type_mac_control) return;
  row.proto = mac_control;
  if (!bytes.has(4)) return cut();
  if (net16(bytes.at) != opcode_pause) return;
  row.proto = pause;
  row.window = net16(bytes.at + 2);
}

void Decoder::decode_ip(Bytes bytes, Row& row) {
  if (!bytes.has(1)) return cut();
  const int version = bytes.at[0] >> 4;
  if (version == 4) decode_ipv4(bytes, row);
  if (version == 6) decode_ipv6(bytes, row);
}

void Decoder::decode_ipv4(Bytes bytes, Row& row) {
  row.proto = ip;
  if (!bytes.has(20)) return cut();
  const uint8_t* at = bytes.at;
  const size_t header = 4 * size_t{at[0] & 0x0Fu};
  const int length = net16(at + 2);
  const int fragment = net16(at + 6) & 0x1FFF;
  row.ip_bytes = length ? length : row.frame_bytes - static_cast<int>(bytes.at - frame_);
  row.ip_id = net16(at + 4);
  Network network{};
  network.key.version = 4;
  network.key.address = {load<uint32_t>(at + 12), 0, load<uint32_t>(at + 16), 0};
  network.protocol = at[9];
  network.identity = mix(uint64_t{net16(at + 4)} << 16 | static_cast<uint64_t>(fragment), at[9]);
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
  row.ip_bytes = length ? length + 40 : row.frame_bytes - static_cast<int>(bytes.at - frame_);
  Network network{};
  network.key.version = 6;
  std::memcpy(network.key.address.data(), at + 8, 32);
  network.protocol = at[6];
  network.first_fragment = true;
  Bytes rest = bytes.after(40);
  uint64_t fragment = 0;
  // Extension headers (RFC 8200, section 4): each tells the next one's type, most their length.
  for (bool more = true; more;) {
    const uint8_t type = network.protocol;
    more = type == 0 || type == 43 || type == 44 || type == 51 || type == 60;
    if (!more) break;
    if (!rest.has(8)) {
      set_flow(network.key, row);
      return cut();
    }
    if (type == 44) {
      fragment = load<uint64_t>(rest.at);
      network.first_fragment = (net16(rest.at + 2) & 0xFFF8) == 0;
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
  // Padding of short frames is no payload; a sender's own capture does not have it.
  bytes.n = std::min(bytes.n, static_cast<size_t>(std::max(network.transport_bytes, 0)));
  row.proto = proto_of(network.protocol);
  row.payload_bytes = std::max(network.transport_bytes, 0);
  const bool has_ports = (row.proto == tcp || row.proto == udp) && network.first_fragment;
  if (has_ports && bytes.has(4)) {
    network.key.protocol = network.protocol;
    network.key.sport = net16(bytes.at);
    network.key.dport = net16(bytes.at + 2);
  } else if (has_ports) {
    cut();
  }
  uint64_t identity = mix(set_flow(network.key, row).hash, network.identity);
  if (has_ports && row.proto == tcp) {
    identity = decode_tcp(bytes, identity, row);
  } else if (has_ports) {
    row.payload_bytes = std::max(network.transport_bytes - 8, 0);
    if (!bytes.has(8)) cut();
    // The length and checksum fields stay out: checksum offload leaves the sender's capture without one.
    if (bytes.has(8)) identity = mix_bytes(identity, bytes.at + 8, std::min<size_t>(bytes.n - 8, 12));
  } else {
    if (network.first_fragment && (row.proto == icmp || row.proto == icmp6))
      row.payload_bytes = std::max(network.transport_bytes - 8, 0);
    identity = mix_bytes(identity, bytes.at, std::min<size_t>(bytes.n, 20));
  }
  row.id = static_cast<double>(identity >> 11);
}

uint64_t Decoder::decode_tcp(Bytes bytes, uint64_t identity, Row& row) {
  if (!bytes.has(20)) {
    cut();
    return mix_bytes(identity, bytes.at, bytes.n);
  }
  const uint8_t* at = bytes.at;
  const size_t header = 4 * size_t{static_cast<unsigned>(at[12] >> 4)};
  row.seq = net32(at + 4);
  row.flags = (at[12] & 1) << 8 | at[13];
  row.ack = net32(at + 8);
  row.window = net16(at + 14);
  row.payload_bytes = std::max(row.payload_bytes - static_cast<int>(std::max<size_t>(header, 20)), 0);
  identity = mix(identity, load<uint64_t>(at + 4));
  identity = mix(identity, load<uint32_t>(at + 12));
  if (header <= 20) return identity;
  if (!bytes.has(header)) cut();
  const Bytes options{at + 20, std::min(bytes.n, header) - 20};
  decode_options(options, row);
  return mix_bytes(identity, options.at, options.n);
}

void Decoder::decode_options(Bytes options, Row& row) {
  while (options.has(2)) {
    const uint8_t kind = options.at[0];
    if (kind == 0) return;
    const size_t n = kind == 1 ? 1 : options.at[1];
    if (n == 0 || (kind != 1 && n < 2) || !options.has(n)) return;
    if (kind == 8 && n == 10) {
      row.tsval = net32(options.at + 2);
      row.tsecr = net32(options.at + 6);
    } else if ((row.flags & flag_syn) && kind == 2 && n == 4) {
      row.mss_bytes = net16(options.at + 2);
    } else if ((row.flags & flag_syn) && kind == 3 && n == 3) {
      row.wscale = std::min<int>(options.at[2], 14);  // RFC 7323, section 2.3
    }
    options = options.after(n);
  }
}

const Flow& Decoder::set_flow(const FlowKey& key, Row& row) {
  const Flow& flow = flows_.find(key);
  row.flow = flow.number;
  row.src = flow.src;
  row.dst = flow.dst;
  if (key.protocol) {
    row.sport = key.sport;
    row.dport = key.dport;
  }
  return flow;
}

}  // namespace samovar
