#include "core_window.h"

#include <climits>
#include <cmath>
#include <cstdint>

namespace samovar {

WindowSums sum_windows(const double* t_ns, const int* bytes, const int* group, size_t n, size_t most_groups,
                       const Windows& windows) {
  constexpr size_t unseen = SIZE_MAX;
  WindowSums sums;
  std::vector<size_t> place(most_groups + 1, unseen);
  const auto enter = [&](int which) {
    place[static_cast<size_t>(which)] = sums.bytes.size();
    sums.groups.push_back(which);
    sums.bytes.resize(sums.bytes.size() + windows.count, 0);
  };
  if (!group) enter(1);
  for (size_t i = 0; i < n; ++i) {
    const double at_ns = t_ns[i] - windows.origin_ns;
    const int which = group ? group[i] : 1;
    if (!(at_ns >= windows.from_ns && at_ns < windows.to_ns) || which < 1 ||
        static_cast<size_t>(which) > most_groups)
      continue;
    const auto window = static_cast<size_t>(std::floor((at_ns - windows.from_ns) / windows.width_ns));
    if (window >= windows.count) continue;
    if (place[static_cast<size_t>(which)] == unseen) enter(which);
    sums.bytes[place[static_cast<size_t>(which)] + window] += bytes[i] == INT_MIN ? std::nan("") : bytes[i];
  }
  return sums;
}

}  // namespace samovar
