#include "core_totals.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>

namespace samovar {
namespace {

constexpr int shortest_headers = 40;  // of IPv4 and TCP

}  // namespace

std::vector<FlowTotal> total_flows(const FlowColumns& columns, size_t flows, const std::vector<bool>& wanted) {
  constexpr size_t unseen = SIZE_MAX;
  std::vector<size_t> place(flows, unseen);
  std::vector<FlowTotal> totals;
  for (size_t i = 0; i < columns.n; ++i) {
    const int flow = columns.flow[i], proto = columns.proto[i];
    if (flow < 1 || static_cast<size_t>(flow) > flows || columns.sport[i] == INT_MIN) continue;
    if (proto < 1 || static_cast<size_t>(proto) > wanted.size() || !wanted[static_cast<size_t>(proto - 1)]) continue;
    size_t& at = place[static_cast<size_t>(flow - 1)];
    if (at == unseen) {
      at = totals.size();
      totals.push_back({flow, i, i});
    }
    FlowTotal& total = totals[at];
    total.last = i;
    ++total.packets;
    const int payload = columns.payload_bytes[i], whole = columns.ip_bytes[i];
    const bool known = payload != INT_MIN;
    total.payload_bytes += known ? payload : std::nan("");
    total.most_bytes += known ? payload : whole == INT_MIN ? 0 : std::max(whole - shortest_headers, 0);
  }
  return totals;
}

}  // namespace samovar
