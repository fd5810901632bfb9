// Sums of bytes per window of time.
#pragma once

#include <cstddef>
#include <vector>

namespace samovar {

// `count` windows of equal width; `from_ns` and `to_ns` (exclusive) are counted from `origin_ns`.
struct Windows {
  double origin_ns, from_ns, to_ns, width_ns;
  size_t count;
};

struct WindowSums {
  std::vector<int> groups;    // in order of first appearance
  std::vector<double> bytes;  // of each group, one after the other, `count` windows
};

// Packets without a time or a group are in no window; a packet of unknown size makes the sum of its window unknown (NaN).
// Without `group`, all packets belong to group 1.
WindowSums sum_windows(const double* t_ns, const int* bytes, const int* group, size_t n, size_t most_groups,
                       const Windows& windows);

}  // namespace samovar
