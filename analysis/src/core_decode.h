// Decodes the bytes of a frame into columns.
#pragma once

#include <array>
#include <limits>
#include <utility>

#include "core_flow.h"
#include "core_pcap.h"

namespace samovar {

// R's values for NA, so that columns can be passed to R unchanged.
constexpr int missing_int = std::numeric_limits<int>::min();
double missing_double();

enum Proto { tcp = 1, udp, icmp, icmp6, ip, pause, pfc, mac_control, arp, mpls, pppoe, snap, other };
inline const char* const proto_names[] = {"tcp",         "udp", "icmp", "icmp6", "ip",   "pause", "pfc",
                                          "mac-control", "arp", "mpls", "pppoe", "snap", "other"};

// One decoded packet; ?read_pcap describes the fields.
struct Row {
  double t_ns, seq, ack, tsval, tsecr, id, sack_left, sack_right;
  int frame_bytes, ip_bytes, proto, flow, src, sport, dst, dport, ip_id, flags, window, payload_bytes,
      mss_bytes, wscale, superpacket, interface, captured_bytes, header_cut, vlan, vlan_inner, tos, ttl,
      fragment_bytes, more_fragments, options, sack_blocks, icmp_type, icmp_code, echo_id, echo_seq, opcode,
      quanta, pfc_classes;
};

// Bits of `options`, one for each kind of TCP option.
enum TcpOption {
  option_mss = 1,
  option_wscale = 2,
  option_sack_permitted = 4,
  option_sack = 8,
  option_timestamps = 16,
  option_fast_open = 32,
  option_multipath = 64,
  option_authentication = 128,  // MD5 (RFC 2385) and AO (RFC 5925)
  option_user_timeout = 256,
  option_other = 512,
  option_malformed = 1024  // or cut off
};

enum class Kind { real, integer, logical };

struct Column {
  const char* name;
  Kind kind;
  double Row::* real;  // one of the two is set
  int Row::* integer;
  bool usual;  // one of the usual columns
};
constexpr Column real(const char* name, double Row::* member, bool usual = true) {
  return {name, Kind::real, member, nullptr, usual};
}
constexpr Column integer(const char* name, int Row::* member, bool usual = true) {
  return {name, Kind::integer, nullptr, member, usual};
}
constexpr Column logical(const char* name, int Row::* member, bool usual = true) {
  return {name, Kind::logical, nullptr, member, usual};
}

inline constexpr Column columns[] = {
    real("t_ns", &Row::t_ns),
    integer("frame_bytes", &Row::frame_bytes),
    integer("ip_bytes", &Row::ip_bytes),
    integer("proto", &Row::proto),
    integer("flow", &Row::flow),
    integer("src", &Row::src),
    integer("sport", &Row::sport),
    integer("dst", &Row::dst),
    integer("dport", &Row::dport),
    integer("ip_id", &Row::ip_id),
    real("seq", &Row::seq),
    real("ack", &Row::ack),
    integer("flags", &Row::flags),
    integer("window", &Row::window),
    integer("payload_bytes", &Row::payload_bytes),
    real("tsval", &Row::tsval),
    real("tsecr", &Row::tsecr),
    integer("mss_bytes", &Row::mss_bytes),
    integer("wscale", &Row::wscale),
    real("id", &Row::id),
    logical("superpacket", &Row::superpacket),
    integer("interface", &Row::interface, false),
    integer("captured_bytes", &Row::captured_bytes, false),
    logical("header_cut", &Row::header_cut, false),
    integer("vlan", &Row::vlan, false),
    integer("vlan_inner", &Row::vlan_inner, false),
    integer("tos", &Row::tos, false),
    integer("ttl", &Row::ttl, false),
    integer("fragment_bytes", &Row::fragment_bytes, false),
    logical("more_fragments", &Row::more_fragments, false),
    integer("options", &Row::options, false),
    integer("sack_blocks", &Row::sack_blocks, false),
    real("sack_left", &Row::sack_left, false),
    real("sack_right", &Row::sack_right, false),
    integer("icmp_type", &Row::icmp_type, false),
    integer("icmp_code", &Row::icmp_code, false),
    integer("echo_id", &Row::echo_id, false),
    integer("echo_seq", &Row::echo_seq, false),
    integer("opcode", &Row::opcode, false),
    integer("quanta", &Row::quanta, false),
    integer("pfc_classes", &Row::pfc_classes, false),
};

// Length of the pause for one class of priority flow control (IEEE 802.1Qbb).
struct ClassPause {
  double t_ns;
  int interface, priority, quanta;
};

// A fragment of a packet (RFC 791, RFC 8200). Only the first of a datagram has ports and therefore a flow; the others have 0.
struct Fragment {
  size_t row;
  uint64_t datagram;
  int flow;
};

// Name of a link type; nullptr if unknown.
const char* name_of_link(uint32_t link_type);

class Decoder {
 public:
  // IP packets longer than `mtu_bytes` were never on a wire: an interface segments or reassembles them.
  explicit Decoder(int mtu_bytes) : mtu_bytes_(mtu_bytes) {}
  // Decodes `n` records, one to a row. Functions that few packets need are not inlined: the others are compiled into one loop.
  void decode(const Record* records, size_t n, Row* rows);

  // Packets whose headers were not captured completely.
  size_t cut_packets() const { return cut_; }
  size_t untimed_packets() const { return untimed_; }
  // Packets of an unknown link type, which are not decoded.
  size_t unknown_packets() const { return unknown_; }
  // Packets below a header that is not decoded: mpls, pppoe or snap.
  size_t undecoded_packets(Proto proto) const { return undecoded_[static_cast<size_t>(proto - mpls)]; }
  std::vector<ClassPause> take_class_pauses() { return std::move(class_pauses_); }
  // Fragments since the last call.
  std::vector<Fragment> take_fragments() { return std::exchange(fragments_, {}); }
  const FlowTable& flows() const { return flows_; }
  // Adds the counts and names of another decoder, which decoded the packets that follow; returns its flows and addresses in this numbering.
  FlowTable::Renumbering absorb(Decoder& later);

 private:
  struct Bytes {
    const uint8_t* at;
    size_t n;
    bool has(size_t wanted) const { return n >= wanted; }
    Bytes after(size_t k) const { return {at + k, n - k}; }
  };
  struct Network {
    FlowKey key;
    uint64_t identity;  // of the packet below its transport header
    uint64_t datagram;  // the datagram that this is a fragment of; 0: none
    uint8_t protocol;
    int transport_bytes;
    bool first_fragment;
  };

  bool decode_plain(const Record& record, Row& row);
  void decode_any(const Record& record, Row& row);
  void decode_link(uint32_t link_type, Bytes bytes, Row& row);
  void decode_type(uint16_t type, Bytes bytes, Row& row);
  [[gnu::noinline]] void decode_mac_control(Bytes bytes, Row& row);
  void decode_class_pause(Bytes bytes, Row& row);
  void decode_ip(Bytes bytes, Row& row);
  void decode_ipv4(Bytes bytes, Row& row);
  [[gnu::noinline]] void decode_ipv6(Bytes bytes, Row& row);
  void decode_transport(Network& network, Bytes bytes, Row& row);
  uint64_t decode_tcp(Bytes bytes, uint64_t identity, Row& row);
  [[gnu::noinline]] uint64_t decode_cut_tcp(Bytes bytes, uint64_t identity, Row& row);
  void decode_options(Bytes options, Row& row);
  [[gnu::noinline]] void decode_option(const uint8_t* at, size_t n, Row& row);
  [[gnu::noinline]] void decode_icmp(Bytes bytes, Row& row);
  void set_ip_bytes(int length, int header, Bytes bytes, Row& row);
  const Flow& set_flow(const FlowKey& key, Row& row);
  void cut() { cut_now_ = true; }

  int mtu_bytes_;
  size_t decoded_ = 0, cut_ = 0, untimed_ = 0, unknown_ = 0;
  std::array<size_t, snap - mpls + 1> undecoded_{};
  bool cut_now_ = false;
  std::vector<ClassPause> class_pauses_;
  std::vector<Fragment> fragments_;
  const uint8_t* frame_ = nullptr;  // where the current frame starts
  FlowTable flows_;
};

}  // namespace samovar
