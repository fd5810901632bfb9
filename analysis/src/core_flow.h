// Numbers for flows and addresses, in order of first appearance.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace samovar {

// Addresses as two words each (IPv4 in the first), then ports, protocol and what is valid.
struct FlowKey {
  std::array<uint64_t, 4> address{};
  uint16_t sport = 0, dport = 0;
  uint8_t protocol = 0;  // 0 where there are no ports
  uint8_t version = 4;
  bool operator==(const FlowKey& other) const {
    return address == other.address && sport == other.sport && dport == other.dport &&
           protocol == other.protocol && version == other.version;
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
  const Flow& find(const FlowKey& key);
  // "a.b.c.d:p > e.f.g.h:q"; " (udp)" follows where a TCP flow has the same ends.
  std::vector<std::string> flow_names() const;
  const std::vector<std::string>& address_names() const { return addresses_; }

 private:
  const Flow& add(const FlowKey& key, uint64_t hash, size_t slot);
  int address_number(const FlowKey& key, size_t end);
  void grow();

  std::vector<Flow> flows_;
  std::vector<int32_t> slots_;
  std::vector<std::string> addresses_;
  std::unordered_map<std::string, int> address_numbers_;
};

}  // namespace samovar
