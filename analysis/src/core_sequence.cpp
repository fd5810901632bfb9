#include "core_sequence.h"

#include <algorithm>
#include <iterator>

namespace samovar {

int64_t SequenceSpace::add(int64_t first, int64_t end) {
  int64_t known = 0, merged_first = first, merged_end = end;
  auto at = ranges_.upper_bound(first);
  if (at != ranges_.begin() && std::prev(at)->second >= first) --at;
  while (at != ranges_.end() && at->first <= end) {
    known += std::max<int64_t>(std::min(end, at->second) - std::max(first, at->first), 0);
    merged_first = std::min(merged_first, at->first);
    merged_end = std::max(merged_end, at->second);
    at = ranges_.erase(at);
  }
  ranges_.emplace_hint(at, merged_first, merged_end);
  return known;
}

}  // namespace samovar
