// The union of the sequence space that was sent.
#pragma once

#include <cstdint>
#include <map>

namespace samovar {

class SequenceSpace {
 public:
  // Adds [first, end) and returns how many of its numbers were already present.
  int64_t add(int64_t first, int64_t end);
  // Returns the end of the highest range, or `otherwise` if there is none.
  int64_t top(int64_t otherwise) const { return ranges_.empty() ? otherwise : ranges_.rbegin()->second; }

 private:
  std::map<int64_t, int64_t> ranges_;  // first -> end, neither touching nor overlapping
};

}  // namespace samovar
