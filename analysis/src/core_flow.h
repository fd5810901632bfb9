// Numbers for flows and addresses, in order of first appearance.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace samovar {

// Key of a flow.
struct FlowKey {
  std::array<uint64_t, 4> address{};  // two words each, IPv4 in the first
  // Ports, protocol and version in one word: written separately and compared as one, they would stall the processor.
  uint64_t ends = uint64_t{4} << 40;
  void set_version(uint8_t version) { ends = uint64_t{version} << 40; }
  void set_ports(uint8_t protocol, uint16_t sport, uint16_t dport) {
    ends |= uint64_t{sport} | uint64_t{dport} << 16 | uint64_t{protocol} << 32;
  }
  uint16_t sport() const { return static_cast<uint16_t>(ends); }
  uint16_t dport() const { return static_cast<uint16_t>(ends >> 16); }
  uint8_t protocol() const { return static_cast<uint8_t>(ends >> 32); }  // 0 where there are no ports
  uint8_t version() const { return static_cast<uint8_t>(ends >> 40); }
  bool operator==(const FlowKey& other) const {
    return ends == other.ends && address[0] == other.address[0] && address[2] == other.address[2] &&
           address[1] == other.address[1] && address[3] == other.address[3];
  }
  uint64_t hash() const;
};

struct Flow {
  FlowKey key;
  int number, src, dst;  // from 1, as R counts factor levels
  uint64_t hash;
};

class FlowTable {
 public:
  FlowTable();
  const Flow& find(const FlowKey& key) {
    const size_t place = (key.sport() * size_t{3} + key.dport() + key.protocol()) % recent_.size();
    const auto known = static_cast<size_t>(recent_[place]);
    if (known < flows_.size() && flows_[known].key == key) return flows_[known];
    const Flow& flow = look_up(key);
    recent_[place] = flow.number - 1;
    return flow;
  }
  // Returns another table's flows and addresses in this numbering and adds the missing ones, as if the other's packets
  // came after this one's. Number n is at index n.
  struct Renumbering {
    std::vector<int> flow, address;
    bool changes() const;
  };
  Renumbering absorb(const FlowTable& other);
  // Returns the flow with this number.
  const Flow& at(int number) const { return flows_[static_cast<size_t>(number - 1)]; }
  // "a.b.c.d:p > e.f.g.h:q"; followed by " (udp)" if a TCP flow has the same ends.
  std::vector<std::string> flow_names() const;
  const std::vector<std::string>& address_names() const { return addresses_; }

 private:
  const Flow& look_up(const FlowKey& key);
  const Flow& add(const FlowKey& key, uint64_t hash, size_t slot);
  int address_number(const FlowKey& key, size_t end);
  void grow();

  std::vector<Flow> flows_;
  std::vector<int32_t> slots_;
  // Most packets belong to the same flow as a recent packet.
  std::array<int32_t, 64> recent_{};
  std::vector<std::string> addresses_;
  std::unordered_map<std::string, int> address_numbers_;
};

}  // namespace samovar
