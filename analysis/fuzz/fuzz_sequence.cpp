// Any order of segments and acknowledgements: the sequence space must equal a plain set of numbers, and retransmitted or unsent
// data must give no RTT sample.

#include <map>
#include <set>

#include "../src/core_ack_rtt.h"
#include "../src/core_sequence.h"
#include "inputs.h"

using namespace samovar;

namespace {

constexpr size_t longest = 400;  // every number is an element of a set here: longer inputs would be slow and test nothing new

// Six bytes per step: action, position, length.
struct Step {
  bool acknowledges, begins;
  uint32_t number;
  int64_t length;
};

Step step_at(const uint8_t* data, uint32_t start) {
  uint32_t offset;
  std::memcpy(&offset, data + 1, sizeof offset);
  // Usually near each other, sometimes anywhere, so that the numbers wrap.
  if (data[0] & 6) offset &= 0xff;
  return {(data[0] & 1) != 0, (data[0] & 0x38) == 0x38, start + offset, 1 + data[5]};
}

// How many numbers of [first, end) were sent before, counted one by one.
int64_t add_slowly(std::set<int64_t>& sent, int64_t first, int64_t end) {
  int64_t known = 0;
  for (int64_t number = first; number < end; ++number) known += !sent.insert(number).second;
  return known;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n) {
  if (n < 4) return 0;
  uint32_t start;
  std::memcpy(&start, data, sizeof start);
  SequenceSpace space;
  Scoreboard board;
  Unwrapper unwrap;
  std::set<int64_t> sent;
  std::map<int64_t, int> times_sent;  // by the last number of a segment
  int64_t t_ns = 0;
  for (size_t at = 4; at + 6 <= std::min<size_t>(n, longest); at += 6, t_ns += 1000) {
    const Step step = step_at(data + at, start);
    Sample sample{};
    if (step.acknowledges) {
      const int64_t ack = unwrap.near(step.number);
      if (!unwrap.acknowledges(ack)) continue;
      if (!board.acknowledge(ack, t_ns, sample)) continue;
      if (sample.rtt_ns < 0 || sample.rtt_ns > t_ns || sample.bytes < 1) wrong("a sample with an impossible RTT or size");
      if (times_sent[ack - 1] != 1) wrong("a sample from data that was sent twice or never");
      continue;
    }
    const bool another = step.begins && unwrap.begin(step.number, step.length - 1);
    const int64_t first = unwrap(step.number), end = first + step.length;
    if (another && (first != unwrap.origin() || first <= *sent.rbegin())) wrong("the numbers of a new connection overlap those of an earlier one");
    for (int64_t number = first; number < end; ++number) ++times_sent[number];
    board.send(first, end, t_ns);
    if (space.add(first, end) != add_slowly(sent, first, end)) wrong("the count of numbers that were sent before is wrong");
    if (space.top(0) != *sent.rbegin() + 1) wrong("the highest number is wrong");
  }
  return 0;
}
