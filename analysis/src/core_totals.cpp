#include "core_totals.h"

#include <climits>
#include <cmath>
#include <cstdint>

namespace samovar {

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
    total.payload_bytes += columns.payload_bytes[i] == INT_MIN ? std::nan("") : columns.payload_bytes[i];
  }
  return totals;
}

}  // namespace samovar
