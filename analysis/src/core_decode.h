// From a frame's bytes to columns.
#pragma once

#include <limits>

#include "core_flow.h"
#include "core_pcap.h"

namespace samovar {

// R's marks of a missing value, so that the columns can be handed over as they are.
constexpr int missing_int = std::numeric_limits<int>::min();
double missing_double();

enum Proto { tcp = 1, udp, icmp, icmp6, ip, pause, mac_control, arp, other };
inline const char* const proto_names[] = {"tcp",   "udp",         "icmp", "icmp6", "ip",
                                          "pause", "mac-control", "arp",  "other"};

// One packet as decoded; the rows of the table that read_pcap() gives.
struct Row {
  double t_ns, seq, ack, tsval, tsecr, id;
  int frame_bytes, ip_bytes, proto, flow, src, sport, dst, dport, ip_id, flags, window, payload_bytes,
      mss_bytes, wscale;
};

struct Column {
  const char* name;
  double Row::* real;  // one of the two is set
  int Row::* integer;
};
inline constexpr Column columns[] = {{"t_ns", &Row::t_ns, nullptr},
                                     {"frame_bytes", nullptr, &Row::frame_bytes},
                                     {"ip_bytes", nullptr, &Row::ip_bytes},
                                     {"proto", nullptr, &Row::proto},
                                     {"flow", nullptr, &Row::flow},
                                     {"src", nullptr, &Row::src},
                                     {"sport", nullptr, &Row::sport},
                                     {"dst", nullptr, &Row::dst},
                                     {"dport", nullptr, &Row::dport},
                                     {"ip_id", nullptr, &Row::ip_id},
                                     {"seq", &Row::seq, nullptr},
                                     {"ack", &Row::ack, nullptr},
                                     {"flags", nullptr, &Row::flags},
                                     {"window", nullptr, &Row::window},
                                     {"payload_bytes", nullptr, &Row::payload_bytes},
                                     {"tsval", &Row::tsval, nullptr},
                                     {"tsecr", &Row::tsecr, nullptr},
                                     {"mss_bytes", nullptr, &Row::mss_bytes},
                                     {"wscale", nullptr, &Row::wscale},
                                     {"id", &Row::id, nullptr}};

class Decoder {
 public:
  // Throws FormatError for a link type that is not known.
  explicit Decoder(uint32_t link_type);
  void decode(const Record& record, Row& row);

  const char* link_name() const { return link_name_; }
  // Packets captured too short for their headers.
  size_t cut_packets() const { return cut_; }
  const FlowTable& flows() const { return flows_; }

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
    uint8_t protocol;
    int transport_bytes;
    bool first_fragment;
  };

  void decode_link(Bytes bytes, Row& row);
  void decode_type(uint16_t type, Bytes bytes, Row& row);
  void decode_ip(Bytes bytes, Row& row);
  void decode_ipv4(Bytes bytes, Row& row);
  void decode_ipv6(Bytes bytes, Row& row);
  void decode_transport(Network& network, Bytes bytes, Row& row);
  uint64_t decode_tcp(Bytes bytes, uint64_t identity, Row& row);
  void decode_options(Bytes options, Row& row);
  const Flow& set_flow(const FlowKey& key, Row& row);
  void cut() { cut_now_ = true; }

  uint32_t link_type_;
  const char* link_name_;
  size_t cut_ = 0;
  bool cut_now_ = false;
  const uint8_t* frame_ = nullptr;  // where the current frame starts
  FlowTable flows_;
};

}  // namespace samovar
