#include "core_flow.h"

#include <arpa/inet.h>
#include <unordered_set>

#include "core_bytes.h"

namespace samovar {
namespace {

std::string address_text(const FlowKey& key, size_t end) {
  char text[INET6_ADDRSTRLEN] = "";
  uint8_t bytes[16];
  std::memcpy(bytes, &key.address[2 * end], sizeof bytes);
  ::inet_ntop(key.version() == 6 ? AF_INET6 : AF_INET, bytes, text, sizeof text);
  return text;
}

std::string end_text(const FlowKey& key, size_t end) {
  const std::string address = address_text(key, end);
  if (key.protocol() == 0) return address;
  const std::string port = std::to_string(end == 0 ? key.sport() : key.dport());
  return key.version() == 6 ? "[" + address + "]:" + port : address + ":" + port;
}

constexpr uint8_t tcp_protocol = 6;

}  // namespace

uint64_t FlowKey::hash() const {
  const uint64_t low = mix(address[0], address[2] ^ ends);
  return version() == 6 ? mix(low, mix(address[1], address[3])) : low;
}

FlowTable::FlowTable() : slots_(1024, -1) {}

FlowTable::Renumbering FlowTable::absorb(const FlowTable& other) {
  Renumbering to{std::vector<int>(other.flows_.size() + 1), std::vector<int>(other.addresses_.size() + 1)};
  for (const Flow& theirs : other.flows_) {
    const Flow& ours = find(theirs.key);
    to.flow[static_cast<size_t>(theirs.number)] = ours.number;
    to.address[static_cast<size_t>(theirs.src)] = ours.src;
    to.address[static_cast<size_t>(theirs.dst)] = ours.dst;
  }
  return to;
}

bool FlowTable::Renumbering::changes() const {
  const auto counts_up = [](const std::vector<int>& numbers) {
    for (size_t n = 1; n < numbers.size(); ++n)
      if (numbers[n] != static_cast<int>(n)) return false;
    return true;
  };
  return !counts_up(flow) || !counts_up(address);
}

const Flow& FlowTable::look_up(const FlowKey& key) {
  const uint64_t hash = key.hash();
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  for (; slots_[slot] >= 0; slot = (slot + 1) & mask) {
    const Flow& flow = flows_[static_cast<size_t>(slots_[slot])];
    if (flow.hash == hash && flow.key == key) return flow;
  }
  return add(key, hash, slot);
}

const Flow& FlowTable::add(const FlowKey& key, uint64_t hash, size_t slot) {
  slots_[slot] = static_cast<int32_t>(flows_.size());
  flows_.push_back(
      {key, static_cast<int>(flows_.size()) + 1, address_number(key, 0), address_number(key, 1), hash});
  if (2 * flows_.size() > slots_.size()) grow();
  return flows_.back();
}

void FlowTable::grow() {
  slots_.assign(2 * slots_.size(), -1);
  const size_t mask = slots_.size() - 1;
  for (const Flow& flow : flows_) {
    size_t slot = flow.hash & mask;
    while (slots_[slot] >= 0) slot = (slot + 1) & mask;
    slots_[slot] = flow.number - 1;
  }
}

int FlowTable::address_number(const FlowKey& key, size_t end) {
  const std::string text = address_text(key, end);
  const auto [found, is_new] = address_numbers_.try_emplace(text, static_cast<int>(addresses_.size()) + 1);
  if (is_new) addresses_.push_back(text);
  return found->second;
}

std::vector<std::string> FlowTable::flow_names() const {
  std::unordered_set<std::string> taken;
  for (const Flow& flow : flows_) {
    if (flow.key.protocol() != tcp_protocol) continue;
    taken.insert(end_text(flow.key, 0) + " > " + end_text(flow.key, 1));
    taken.insert(end_text(flow.key, 1) + " > " + end_text(flow.key, 0));
  }
  std::vector<std::string> names;
  for (const Flow& flow : flows_) {
    std::string name = end_text(flow.key, 0) + " > " + end_text(flow.key, 1);
    const bool clash = flow.key.protocol() != tcp_protocol && flow.key.protocol() != 0 && taken.count(name);
    names.push_back(clash ? name + " (udp)" : name);
  }
  return names;
}

}  // namespace samovar
