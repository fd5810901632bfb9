#include "core_match.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core_bytes.h"

namespace samovar {
namespace {

constexpr int32_t none = -1;
constexpr int64_t slack_ns = 1000000000;
constexpr size_t prefetch_ahead = 16;

// Ids of ref with their rows in order of capture. An id is a hash already: its low bits choose the slot.
class IdTable {
 public:
  explicit IdTable(size_t n) : next_(n, none) {
    size_t slots = 64;
    while (slots < 2 * n) slots *= 2;
    slots_.resize(slots);
  }
  struct Slot {
    double id = -1;  // ids are not negative
    int32_t head = none;
    int32_t tail = none;
  };
  void prefetch(double id) const { __builtin_prefetch(&slots_[start(id)]); }
  Slot& find(double id) {
    size_t at = start(id);
    while (slots_[at].id != id && slots_[at].id >= 0) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  // TRUE when the id was there already.
  bool add(double id, int32_t row) {
    Slot& slot = find(id);
    const bool again = slot.id >= 0;
    if (again) next_[static_cast<size_t>(slot.tail)] = row;
    else slot = {id, row, row};
    slot.tail = row;
    return again;
  }
  int32_t next(int32_t row) const { return next_[static_cast<size_t>(row)]; }
  size_t number(const Slot& slot) const { return static_cast<size_t>(&slot - slots_.data()); }
  Slot& operator[](size_t number) { return slots_[number]; }

 private:
  size_t start(double id) const {
    return static_cast<size_t>(static_cast<uint64_t>(id)) & (slots_.size() - 1);
  }
  std::vector<Slot> slots_;
  std::vector<int32_t> next_;
};

bool takes_part(const Packets& packets, const Sides& sides, size_t i) {
  const int flow = packets.flow[i];  // a missing flow is negative
  return flow > 0 && sides[static_cast<size_t>(flow - 1)].group >= 0 && packets.id[i] >= 0 &&
         !std::isnan(packets.t_ns[i]);
}

template <typename Visit>
void each_row(const Packets& packets, const Sides& sides, const IdTable& table, Visit visit) {
  for (size_t i = 0; i < packets.n; ++i) {
    if (i + prefetch_ahead < packets.n && packets.id[i + prefetch_ahead] >= 0)
      table.prefetch(packets.id[i + prefetch_ahead]);
    if (takes_part(packets, sides, i)) visit(i);
  }
}

struct Deferred {
  int32_t mon_row;
  size_t slot;
};

class Matcher {
 public:
  Matcher(const Packets& ref, const Packets& mon) : ref_(ref), mon_(mon), table_(ref.n) {
    result_.ref_of_mon.assign(mon.n, none);
    result_.ambiguous_ref.assign(ref.n, 0);
    result_.mon_of_ref.assign(ref.n, none);
  }

  Matching run(const Sides& ref_sides, const Sides& mon_sides) {
    each_row(ref_, ref_sides, table_, [&](size_t i) { table_.add(ref_.id[i], static_cast<int32_t>(i)); });
    each_row(mon_, mon_sides, table_, [&](size_t j) { match_or_defer(j); });
    if (!deferred_.empty()) match_deferred();
    return std::move(result_);
  }

 private:
  void match(int32_t i, int32_t j) {
    result_.ref_of_mon[static_cast<size_t>(j)] = i;
    result_.mon_of_ref[static_cast<size_t>(i)] = j;
  }
  void match_or_defer(size_t j) {
    const IdTable::Slot& slot = table_.find(mon_.id[j]);
    if (slot.id < 0) return;
    const int32_t i = slot.head;
    if (slot.head != slot.tail || result_.mon_of_ref[static_cast<size_t>(i)] >= 0) {
      deferred_.push_back({static_cast<int32_t>(j), table_.number(slot)});
      return;
    }
    match(i, static_cast<int32_t>(j));
  }
  // An id seen once in ref but again in mon is not unique either: its first match is taken back and joins the
  // queue.
  void take_back_ambiguous() {
    std::vector<Deferred> more;
    for (const Deferred& later : deferred_) {
      const IdTable::Slot& slot = table_[later.slot];
      for (int32_t i = slot.head; i != none; i = table_.next(i))
        result_.ambiguous_ref[static_cast<size_t>(i)] = 1;
      int32_t& j = result_.mon_of_ref[static_cast<size_t>(slot.head)];
      if (j < 0) continue;
      more.push_back({j, later.slot});
      result_.ref_of_mon[static_cast<size_t>(j)] = none;
      j = none;
    }
    deferred_.insert(deferred_.end(), more.begin(), more.end());
    std::sort(deferred_.begin(), deferred_.end(),
              [](const Deferred& a, const Deferred& b) { return a.mon_row < b.mon_row; });
  }
  void measure_spread() {
    for (size_t i = 0; i < ref_.n; ++i) {
      if (result_.mon_of_ref[i] < 0) continue;
      const int64_t difference = mon_.time(static_cast<size_t>(result_.mon_of_ref[i])) - ref_.time(i);
      least_ns_ = std::min(least_ns_, difference);
      most_ns_ = std::max(most_ns_, difference);
      any_unique_ = true;
    }
  }
  void match_deferred() {
    take_back_ambiguous();
    measure_spread();
    for (const Deferred& later : deferred_) {
      IdTable::Slot& slot = table_[later.slot];
      while (slot.head != none && fit(slot.head, later.mon_row) > 0) slot.head = table_.next(slot.head);
      if (slot.head == none || fit(slot.head, later.mon_row) < 0) continue;
      match(slot.head, later.mon_row);
      slot.head = table_.next(slot.head);
    }
  }
  // 1: ref's packet is too old to be this one of mon, -1: too young, 0: it may be.
  int fit(int32_t i, int32_t j) const {
    if (!any_unique_) return 0;
    const int64_t difference = mon_.time(static_cast<size_t>(j)) - ref_.time(static_cast<size_t>(i));
    return difference > most_ns_ + slack_ns ? 1 : difference < least_ns_ - slack_ns ? -1 : 0;
  }

  const Packets& ref_;
  const Packets& mon_;
  IdTable table_;
  Matching result_;
  std::vector<Deferred> deferred_;
  int64_t least_ns_ = std::numeric_limits<int64_t>::max() / 2;
  int64_t most_ns_ = std::numeric_limits<int64_t>::min() / 2;
  bool any_unique_ = false;
};

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

Matching match_packets(const Packets& ref, const Sides& ref_sides, const Packets& mon,
                       const Sides& mon_sides) {
  return Matcher(ref, mon).run(ref_sides, mon_sides);
}

std::vector<Pair> pair_packets(const Packets& ref, const Packets& mon, const Sides& mon_sides,
                               const Matching& matching, size_t groups) {
  std::vector<Conversation> conversations(groups);
  std::vector<Pair> pairs;
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
