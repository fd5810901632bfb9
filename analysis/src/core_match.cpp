#include "core_match.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core_threads.h"

namespace samovar {
namespace {

constexpr int32_t none = -1;
constexpr int64_t slack_ns = 1000000000;
constexpr size_t prefetch_ahead = 16;

bool takes_part(const Packets& packets, const Sides& sides, size_t i) {
  const int flow = packets.flow[i];  // a missing flow is negative
  return flow > 0 && sides[static_cast<size_t>(flow - 1)].group >= 0 && packets.id[i] >= 0 &&
         !std::isnan(packets.t_ns[i]);
}

// An id is a hash already: its low bits choose the slot, others the share of the work.
uint64_t bits_of(double id) { return static_cast<uint64_t>(id); }

// Ids of ref with their rows in order of capture. A slot knows an id's last row; from each row of an id the next is
// known, from the last the first.
class IdTable {
 public:
  IdTable(const Packets& ref, std::vector<int32_t>& next, size_t expected) : ref_(ref), next_(next) {
    size_t slots = 64;
    while (3 * slots < 4 * expected) slots *= 2;
    resize(slots);
  }
  void prefetch(double id) const { __builtin_prefetch(&slots_[bits_of(id) & mask_]); }

  void add(double id, int32_t row) {
    const size_t slot = find(id);
    int32_t& last = slots_[slot].last;
    next_[static_cast<size_t>(row)] = last == none ? row : std::exchange(next_[static_cast<size_t>(last)], row);
    if (last == none && 4 * ++used_ > 3 * slots_.size()) return grow(row);
    last = row;
    slots_[slot].tag = tag_of(id);
  }
  // Where the id is, or would be.
  size_t find(double id) const {
    size_t at = bits_of(id) & mask_;
    while (slots_[at].last != none && !(slots_[at].tag == tag_of(id) && id_of(slots_[at].last) == id))
      at = (at + 1) & mask_;
    return at;
  }
  int32_t first(size_t slot) const {
    const int32_t last = slots_[slot].last;
    return last == none ? none : next_[static_cast<size_t>(last)];
  }
  bool repeats(size_t slot) const { return first(slot) != slots_[slot].last; }
  void drop_first(size_t slot) {
    int32_t& last = slots_[slot].last;
    if (!repeats(slot)) last = none;
    else next_[static_cast<size_t>(last)] = next_[static_cast<size_t>(first(slot))];
  }
  template <typename Visit>
  void each(size_t slot, Visit visit) const {
    for (int32_t row = first(slot); row != none; row = row == slots_[slot].last ? none : next_[static_cast<size_t>(row)])
      visit(row);
  }

 private:
  struct Slot {
    uint32_t tag = 0;  // bits of the id that the slot's place does not tell
    int32_t last = none;
  };
  static uint32_t tag_of(double id) { return static_cast<uint32_t>(bits_of(id) >> 21); }
  double id_of(int32_t row) const { return ref_.id[static_cast<size_t>(row)]; }

  void resize(size_t slots) {
    slots_ = std::vector<Slot>();
    slots_.reserve(slots);
    prefer_large_pages(slots_.data(), slots * sizeof(Slot));
    slots_.resize(slots);
    mask_ = slots - 1;
  }
  void grow(int32_t row) {
    std::vector<Slot> before;
    before.swap(slots_);
    resize(2 * before.size());
    before.push_back({tag_of(id_of(row)), row});
    for (const Slot& slot : before)
      if (slot.last != none) slots_[find(id_of(slot.last))] = slot;
  }
  const Packets& ref_;
  std::vector<int32_t>& next_;
  std::vector<Slot> slots_;
  size_t mask_ = 0, used_ = 0;
};

struct Deferred {
  int32_t mon_row;
  size_t slot;
};

template <typename T>
std::vector<T> filled(size_t n, T value) {
  std::vector<T> all;
  all.reserve(n);
  prefer_large_pages(all.data(), n * sizeof(T));
  all.assign(n, value);
  return all;
}

// What the shares of a matching have in common: each writes the rows of its own ids.
struct Common {
  const Packets& ref;
  const Sides& ref_sides;
  const Packets& mon;
  const Sides& mon_sides;
  Matching result;
  std::vector<int32_t> next;
  // Clock difference plus delay of the packets that are unique.
  int64_t least_ns = std::numeric_limits<int64_t>::max() / 2;
  int64_t most_ns = std::numeric_limits<int64_t>::min() / 2;
  bool any_unique = false;

  Common(const Packets& r, const Sides& rs, const Packets& m, const Sides& ms)
      : ref(r), ref_sides(rs), mon(m), mon_sides(ms), next(filled(r.n, none)) {
    result.ref_of_mon = filled(mon.n, none);
    result.mon_of_ref = filled(ref.n, none);
    result.ambiguous_ref = filled(ref.n, uint8_t{0});
  }
  void measure_spread() {
    for (size_t i = 0; i < ref.n; ++i) {
      if (result.mon_of_ref[i] < 0) continue;
      const int64_t difference = mon.time(static_cast<size_t>(result.mon_of_ref[i])) - ref.time(i);
      least_ns = std::min(least_ns, difference);
      most_ns = std::max(most_ns, difference);
      any_unique = true;
    }
  }
  // 1: ref's packet is too old to be this one of mon, -1: too young, 0: it may be.
  int fit(int32_t i, int32_t j) const {
    if (!any_unique) return 0;
    const int64_t difference = mon.time(static_cast<size_t>(j)) - ref.time(static_cast<size_t>(i));
    return difference > most_ns + slack_ns ? 1 : difference < least_ns - slack_ns ? -1 : 0;
  }
};

// The packets whose ids fall to one share of the work.
class Matcher {
 public:
  Matcher(Common& common, size_t share, size_t shares)
      : common_(common), result_(common.result), share_(share), shares_(shares), table_(common.ref, common.next, common.ref.n / shares) {}

  void match_unique() {
    const Packets &ref = common_.ref, &mon = common_.mon;
    each_row(ref, common_.ref_sides, [&](size_t i) { table_.add(ref.id[i], static_cast<int32_t>(i)); });
    each_row(mon, common_.mon_sides, [&](size_t j) { match_or_defer(j); });
    if (!deferred_.empty()) take_back_ambiguous();
  }
  bool has_deferred() const { return !deferred_.empty(); }
  void match_deferred() {
    for (const Deferred& later : deferred_) {
      int32_t i;
      while ((i = table_.first(later.slot)) != none && common_.fit(i, later.mon_row) > 0) table_.drop_first(later.slot);
      if (i == none || common_.fit(i, later.mon_row) < 0) continue;
      match(i, later.mon_row);
      table_.drop_first(later.slot);
    }
  }

 private:
  bool is_mine(double id) const { return id >= 0 && (bits_of(id) >> 45 & 0xFF) * shares_ >> 8 == share_; }

  template <typename Visit>
  void each_row(const Packets& packets, const Sides& sides, Visit visit) const {
    for (size_t i = 0; i < packets.n; ++i) {
      if (i + prefetch_ahead < packets.n && is_mine(packets.id[i + prefetch_ahead]))
        table_.prefetch(packets.id[i + prefetch_ahead]);
      if (is_mine(packets.id[i]) && takes_part(packets, sides, i)) visit(i);
    }
  }
  void match(int32_t i, int32_t j) {
    result_.ref_of_mon[static_cast<size_t>(j)] = i;
    result_.mon_of_ref[static_cast<size_t>(i)] = j;
  }
  void match_or_defer(size_t j) {
    const size_t slot = table_.find(common_.mon.id[j]);
    const int32_t i = table_.first(slot);
    if (i == none) return;
    if (table_.repeats(slot) || result_.mon_of_ref[static_cast<size_t>(i)] >= 0)
      deferred_.push_back({static_cast<int32_t>(j), slot});
    else match(i, static_cast<int32_t>(j));
  }
  // An id seen once in ref but again in mon is not unique either: its first match is taken back and joins the
  // queue.
  void take_back_ambiguous() {
    std::vector<Deferred> more;
    for (const Deferred& later : deferred_) {
      // An id that repeats in ref was never matched, and is gone through once.
      const int32_t first = table_.first(later.slot);
      if (!std::exchange(result_.ambiguous_ref[static_cast<size_t>(first)], uint8_t{1}))
        table_.each(later.slot, [&](int32_t i) { result_.ambiguous_ref[static_cast<size_t>(i)] = 1; });
      int32_t& j = result_.mon_of_ref[static_cast<size_t>(first)];
      if (j < 0) continue;
      more.push_back({j, later.slot});
      result_.ref_of_mon[static_cast<size_t>(j)] = none;
      j = none;
    }
    deferred_.insert(deferred_.end(), more.begin(), more.end());
    std::sort(deferred_.begin(), deferred_.end(),
              [](const Deferred& a, const Deferred& b) { return a.mon_row < b.mon_row; });
  }

  Common& common_;
  Matching& result_;
  size_t share_, shares_;
  IdTable table_;
  std::vector<Deferred> deferred_;
};

constexpr size_t most_shares = 64;  // of the 256 that the bits of an id tell apart

// The last two packets that went out, which is all that pairing needs: packets with one and the same time
// stamp are not strictly before each other.
struct Outgoing {
  int64_t mon_ns = 0, ref_ns = 0;
  size_t number = 0;  // 0: none yet
};
struct Conversation {
  Outgoing last, earlier;
  size_t sent = 0, used = 0;
  void send(int64_t mon_ns, int64_t ref_ns) {
    if (last.number && last.mon_ns < mon_ns) earlier = last;
    last = {mon_ns, ref_ns, ++sent};
  }
  const Outgoing* before(int64_t mon_ns) const {
    const Outgoing& candidate = last.mon_ns < mon_ns ? last : earlier;
    return candidate.number > used && candidate.mon_ns < mon_ns ? &candidate : nullptr;
  }
};

}  // namespace

Matching match_packets(const Packets& ref, const Sides& ref_sides, const Packets& mon, const Sides& mon_sides,
                       size_t threads, size_t least_shared) {
  Common common(ref, ref_sides, mon, mon_sides);
  const size_t count = ref.n + mon.n < least_shared ? 1 : std::clamp<size_t>(threads, 1, most_shares);
  std::vector<std::optional<Matcher>> shares(count);
  share_out(threads, count, [&](size_t k) { shares[k].emplace(common, k, count).match_unique(); });
  if (std::any_of(shares.begin(), shares.end(), [](const auto& share) { return share->has_deferred(); })) {
    common.measure_spread();
    share_out(threads, count, [&](size_t k) { shares[k]->match_deferred(); });
  }
  return std::move(common.result);
}

namespace {

size_t returned_packets(const Packets& mon, const Sides& sides, const Matching& matching) {
  size_t n = 0;
  for (size_t j = 0; j < mon.n; ++j)
    n += matching.ref_of_mon[j] >= 0 && !sides[static_cast<size_t>(mon.flow[j] - 1)].outgoing;
  return n;
}

}  // namespace

std::vector<Pair> pair_packets(const Packets& ref, const Packets& mon, const Sides& mon_sides,
                               const Matching& matching, size_t groups) {
  std::vector<Conversation> conversations(groups);
  std::vector<Pair> pairs;
  pairs.reserve(returned_packets(mon, mon_sides, matching));
  prefer_large_pages(pairs.data(), pairs.capacity() * sizeof(Pair));
  for (size_t j = 0; j < mon.n; ++j) {
    const int32_t i = matching.ref_of_mon[j];
    if (i < 0) continue;
    const Side side = mon_sides[static_cast<size_t>(mon.flow[j] - 1)];
    Conversation& talk = conversations[static_cast<size_t>(side.group)];
    const int64_t mon_ns = mon.time(j), ref_ns = ref.time(static_cast<size_t>(i));
    if (side.outgoing) {
      talk.send(mon_ns, ref_ns);
      continue;
    }
    const Outgoing* out = talk.before(mon_ns);
    if (!out) continue;
    talk.used = out->number;
    const int64_t round_ns = ref_ns - out->ref_ns;
    const int64_t rtt_ns = round_ns - (mon_ns - out->mon_ns);
    pairs.push_back({side.group, static_cast<double>(ref_ns) - static_cast<double>(round_ns) / 2,
                     static_cast<double>(out->mon_ns), std::max<int64_t>(rtt_ns, 0), rtt_ns < 0});
  }
  return pairs;
}

std::vector<Delay> delays_of(const Packets& ref, const Packets& mon, const Sides& mon_sides, const double* mon_ns,
                             const Matching& matching) {
  const auto is_out = [&](size_t j) { return mon_sides[static_cast<size_t>(mon.flow[j] - 1)].outgoing; };
  const size_t returned = returned_packets(mon, mon_sides, matching);
  const size_t all = static_cast<size_t>(
      std::count_if(matching.ref_of_mon.begin(), matching.ref_of_mon.end(), [](int32_t i) { return i >= 0; }));
  std::vector<Delay> delays;
  delays.reserve(all);
  prefer_large_pages(delays.data(), all * sizeof(Delay));
  const auto row = [](size_t k) { return static_cast<int32_t>(k); };
  for (size_t i = 0; i < ref.n; ++i) {
    const int32_t j = matching.mon_of_ref[i];
    if (j < 0 || !is_out(static_cast<size_t>(j))) continue;
    delays.push_back({ref.t_ns[i], mon_ns[j] - ref.t_ns[i], row(i), j, true});
  }
  for (size_t j = 0; j < mon.n; ++j) {
    const int32_t i = matching.ref_of_mon[j];
    if (i >= 0 && !is_out(j)) delays.push_back({mon_ns[j], ref.t_ns[i] - mon_ns[j], i, row(j), false});
  }
  const auto earlier = [](const Delay& a, const Delay& b) {
    return a.t_ns < b.t_ns || (std::isnan(a.t_ns) && !std::isnan(b.t_ns));
  };
  const auto back = delays.end() - static_cast<std::ptrdiff_t>(returned);
  // Each way is in order as a rule: captures are.
  if (!std::is_sorted(delays.begin(), back, earlier)) std::stable_sort(delays.begin(), back, earlier);
  if (!std::is_sorted(back, delays.end(), earlier)) std::stable_sort(back, delays.end(), earlier);
  std::inplace_merge(delays.begin(), back, delays.end(), earlier);
  return delays;
}

void Tally::add(bool is_matched, bool is_ambiguous) {
  ++sent;
  matched += is_matched;
  ambiguous += is_ambiguous;
  unjudged = is_matched ? 0 : unjudged + 1;
}

Tallies tally_packets(const Packets& ref, const Sides& ref_sides, const Packets& mon, const Sides& mon_sides,
                      const Matching& matching, size_t groups) {
  Tallies tallies{std::vector<Tally>(groups), std::vector<Tally>(groups)};
  for (size_t i = 0; i < ref.n; ++i) {
    if (!takes_part(ref, ref_sides, i)) continue;
    const Side side = ref_sides[static_cast<size_t>(ref.flow[i] - 1)];
    if (side.outgoing)
      tallies.out[static_cast<size_t>(side.group)].add(matching.mon_of_ref[i] >= 0,
                                                       matching.ambiguous_ref[i]);
  }
  for (size_t j = 0; j < mon.n; ++j) {
    if (!takes_part(mon, mon_sides, j)) continue;
    const Side side = mon_sides[static_cast<size_t>(mon.flow[j] - 1)];
    const int32_t i = matching.ref_of_mon[j];
    if (!side.outgoing)
      tallies.back[static_cast<size_t>(side.group)].add(
          i >= 0, i >= 0 && matching.ambiguous_ref[static_cast<size_t>(i)]);
  }
  return tallies;
}

}  // namespace samovar
