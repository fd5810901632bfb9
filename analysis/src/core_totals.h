// Totals of each flow of a capture.
#pragma once

#include <cstddef>
#include <vector>

namespace samovar {

// Columns of a capture's table; INT_MIN for NA.
struct FlowColumns {
  const int* flow;
  const int* proto;
  const int* sport;
  const int* payload_bytes;
  const int* ip_bytes;
  size_t n;
};

struct FlowTotal {
  int flow;
  size_t first, last;  // rows
  double packets = 0, payload_bytes = 0;  // NaN if the payload of a packet is missing
  double most_bytes = 0;                  // upper bound of the payload: IP bytes less the shortest headers where it is missing
};

// Totals of the flows below `flows`, in order of first appearance, over packets with a flow and ports whose protocol has
// true in `wanted`.
std::vector<FlowTotal> total_flows(const FlowColumns& columns, size_t flows, const std::vector<bool>& wanted);

}  // namespace samovar
