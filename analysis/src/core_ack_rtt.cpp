#include "core_ack_rtt.h"

#include <algorithm>
#include <limits>

namespace samovar {
namespace {

constexpr size_t most_gaps = 64;

}  // namespace

void Scoreboard::send(int64_t first, int64_t end, int64_t t_ns) {
  auto at = segments_.end();
  if (!segments_.empty() && first < segments_.back().end)
    at = std::upper_bound(segments_.begin(), segments_.end(), first,
                          [](int64_t number, const Segment& s) { return number < s.end; });
  bool continued = false;
  for (; at != segments_.end() && first < end; ++at) {
    if (first < at->first) {
      at = segments_.insert(at, {first, std::min(end, at->first), t_ns}) + 1;
      if (end <= at->first) return;
      first = at->first;
    }
    at->sent_twice = true;
    // Only the segment in which the retransmission begins gets the retransmission's time.
    if (!continued) at->t_ns = t_ns;
    continued = true;
    first = at->end;
  }
  if (first < end) segments_.push_back({first, end, t_ns});
}

bool Scoreboard::acknowledge(int64_t ack, int64_t t_ns, Sample& sample) {
  bool changed = false, sampled = false;
  int64_t newest_ns = std::numeric_limits<int64_t>::min();
  for (Segment& segment : segments_) {
    if (ack <= segment.first) break;
    newest_ns = std::max(newest_ns, segment.t_ns);
    if (segment.acknowledged) continue;
    segment.acknowledged = changed = true;
    if (ack != segment.end || segment.sent_twice || newest_ns > segment.t_ns) continue;
    sample = {t_ns - segment.t_ns, segment.end - segment.first};
    sampled = true;
  }
  if (changed) collapse();
  return sampled;
}

// Adjacent acknowledged segments are merged; the result has the newest of their times. Packets that the capture lacks leave
// gaps between segments; if there are many gaps, the oldest are forgotten.
void Scoreboard::collapse() {
  size_t at = 0;
  while (at + 1 < segments_.size() && segments_[at].acknowledged) {
    Segment& next = segments_[at + 1];
    if (!next.acknowledged || segments_[at].end != next.first) {
      ++at;
      continue;
    }
    next.first = segments_[at].first;
    next.t_ns = std::max(next.t_ns, segments_[at].t_ns);
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  for (; at > most_gaps; --at) {
    segments_[1].t_ns = std::max(segments_[1].t_ns, segments_[0].t_ns);
    segments_.pop_front();
  }
}

}  // namespace samovar
