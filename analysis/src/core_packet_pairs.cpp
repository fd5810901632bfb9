#include "core_packet_pairs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "core_threads.h"

namespace samovar {
namespace {

constexpr int32_t none = -1;
constexpr int64_t slack_ns = 1000000000;

inline bool takes_part(const Packets& packets, const Sides& sides, size_t i) {
  const int flow = packets.flow[i];  // a missing flow is negative
  return flow > 0 && sides[static_cast<size_t>(flow - 1)].group >= 0 && packets.id[i] >= 0 &&
         !std::isnan(packets.t_ns[i]);
}

// An id is already a hash: its low bits select the slot, others the share.
uint64_t bits_of(double id) { return static_cast<uint64_t>(id); }

constexpr unsigned share_from_bit = 45, most_share_bits = 8;

unsigned bits_for_shares(size_t packets, size_t share_packets) {
  unsigned bits = 0;
  while (bits < most_share_bits && packets >> bits > share_packets) ++bits;
  return bits;
}

// Memory that is written before it is read.
template <typename T>
std::unique_ptr<T[]> blank(size_t n) {
  std::unique_ptr<T[]> all(new T[n]);
  prefer_large_pages(all.get(), n * sizeof(T));
  return all;
}

template <typename T>
std::vector<T> filled(size_t n, T value) {
  std::vector<T> all;
  all.reserve(n);
  prefer_large_pages(all.data(), n * sizeof(T));
  all.assign(n, value);
  return all;
}

// Packets of one share, in order of capture.
struct Share {
  const double* id;
  const int32_t* row;
  size_t n;
};

// The packets of a capture to be matched, ordered by share.
class Shares {
 public:
  Shares(const Packets& packets, const Sides& sides, unsigned bits)
      : shift_(share_from_bit + most_share_bits - bits), mask_((size_t{1} << bits) - 1), from_(mask_ + 2), end_(mask_ + 1),
        id_(blank<double>(packets.n)), row_(blank<int32_t>(packets.n)) {
    // Space for all packets, matched or not: the share depends on the id alone.
    for (size_t i = 0; i < packets.n; ++i)
      if (packets.id[i] >= 0) ++from_[share_of(packets.id[i]) + 1];
    std::partial_sum(from_.begin(), from_.end(), from_.begin());
    std::copy_n(from_.begin(), end_.size(), end_.begin());
    for (size_t i = 0; i < packets.n; ++i) {
      if (!takes_part(packets, sides, i)) continue;
      const size_t at = end_[share_of(packets.id[i])]++;
      id_[at] = packets.id[i];
      row_[at] = static_cast<int32_t>(i);
    }
  }
  Share operator[](size_t k) const { return {&id_[from_[k]], &row_[from_[k]], end_[k] - from_[k]}; }

 private:
  size_t share_of(double id) const { return bits_of(id) >> shift_ & mask_; }
  unsigned shift_;
  size_t mask_;
  std::vector<size_t> from_, end_;
  std::unique_ptr<double[]> id_;
  std::unique_ptr<int32_t[]> row_;
};

// Ids of a share of ref with their positions, in order of capture. The memory is reused for the next share.
class IdTable {
 public:
  void fill(const Share& ref) {
    size_t slots = 64;
    while (slots < 2 * ref.n) slots *= 2;
    mask_ = slots - 1;
    id_ = ref.id;
    first_.assign(slots, none);
    next_.resize(ref.n);
    // Go from the last packet to the first, and put each at the front of the list of its id.
    for (size_t i = ref.n; i-- > 0;) next_[i] = std::exchange(first_[find(id_[i])], static_cast<int32_t>(i));
  }
  int32_t first(double id) const { return first_[find(id)]; }
  int32_t next(int32_t i) const { return next_[static_cast<size_t>(i)]; }

 private:
  // The slot of an id, or where it would be.
  size_t find(double id) const {
    size_t at = bits_of(id) & mask_;
    while (first_[at] != none && id_[first_[at]] != id) at = (at + 1) & mask_;
    return at;
  }
  const double* id_ = nullptr;
  std::vector<int32_t> first_, next_;
  size_t mask_ = 0;
};

// Rows of ref with the same id; those before `at` are used or too old.
struct Queue {
  size_t at, end;
};
// A packet of mon that waits for one of these.
struct Deferred {
  int32_t mon_row;
  size_t queue;
};
// Packets of a share whose id is not unique.
struct Ambiguous {
  std::vector<int32_t> rows;
  std::vector<Queue> queues;
  std::vector<Deferred> deferred;
};

// State shared by the shares of a matching: each writes the rows of its own ids.
struct Common {
  const Packets& ref;
  const Packets& mon;
  Matching result;
  // Clock difference plus delay of the unique packets.
  int64_t least_ns = std::numeric_limits<int64_t>::max() / 2;
  int64_t most_ns = std::numeric_limits<int64_t>::min() / 2;
  bool any_unique = false;

  void match(int32_t i, int32_t j) {
    result.mon_of_ref[static_cast<size_t>(i)] = j;
    result.ref_of_mon[static_cast<size_t>(j)] = i;
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
  // 1: ref's packet is too old to be mon's, -1: too new, 0: it can be mon's.
  int fit(int32_t i, int32_t j) const {
    if (!any_unique) return 0;
    const int64_t difference = mon.time(static_cast<size_t>(j)) - ref.time(static_cast<size_t>(i));
    return difference > most_ns + slack_ns ? 1 : difference < least_ns - slack_ns ? -1 : 0;
  }
  void match_deferred(Ambiguous& ambiguous) {
    for (const Deferred& later : ambiguous.deferred) {
      Queue& queue = ambiguous.queues[later.queue];
      const auto fits = [&] { return fit(ambiguous.rows[queue.at], later.mon_row); };
      while (queue.at < queue.end && fits() > 0) ++queue.at;
      if (queue.at < queue.end && fits() == 0) match(ambiguous.rows[queue.at++], later.mon_row);
    }
  }
};

// Matches unique packets, share by share, and collects the others.
class Matcher {
 public:
  explicit Matcher(Common& common) : common_(common) {}

  Ambiguous match_unique(const Share& ref, const Share& mon) {
    table_.fill(ref);
    found_.assign(ref.n, none);
    again_.clear();
    for (size_t j = 0; j < mon.n; ++j) match_or_defer(mon, static_cast<int32_t>(j));
    Ambiguous ambiguous;
    if (!again_.empty()) set_apart(ref, mon, ambiguous);
    for (size_t i = 0; i < ref.n; ++i)
      if (found_[i] >= 0) common_.match(ref.row[i], mon.row[found_[i]]);
    return ambiguous;
  }

 private:
  struct Again {
    int32_t first, mon;
  };
  void match_or_defer(const Share& mon, int32_t j) {
    const int32_t i = table_.first(mon.id[j]);
    if (i == none) return;
    if (found_[static_cast<size_t>(i)] != none || table_.next(i) != none) again_.push_back({i, j});
    else found_[static_cast<size_t>(i)] = j;
  }
  // An id that occurs once in ref but again in mon is not unique either: its first match is undone and joins the queue.
  void set_apart(const Share& ref, const Share& mon, Ambiguous& to) {
    for (const Again& again : again_) {
      int32_t& found = found_[static_cast<size_t>(again.first)];
      if (found > queued) {
        if (found != none) to.deferred.push_back({mon.row[found], to.queues.size()});
        found = queued - static_cast<int32_t>(to.queues.size());
        add_queue(ref, again.first, to);
      }
      to.deferred.push_back({mon.row[again.mon], static_cast<size_t>(queued - found)});
    }
    std::sort(to.deferred.begin(), to.deferred.end(),
              [](const Deferred& a, const Deferred& b) { return a.mon_row < b.mon_row; });
  }
  void add_queue(const Share& ref, int32_t first, Ambiguous& to) {
    const size_t from = to.rows.size();
    for (int32_t i = first; i != none; i = table_.next(i)) {
      to.rows.push_back(ref.row[i]);
      common_.result.ambiguous_ref[static_cast<size_t>(ref.row[i])] = 1;
    }
    to.queues.push_back({from, to.rows.size()});
  }

  static constexpr int32_t queued = -2;  // stands for the first queue; further queues have -3, -4, ...
  Common& common_;
  IdTable table_;
  std::vector<int32_t> found_;  // each packet of ref: its place in mon's share, or its queue (see queued)
  std::vector<Again> again_;
};

// The last two packets that left, which is all that pairing needs: packets with the same time stamp are not strictly
// before each other.
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
                       size_t threads, size_t share_packets) {
  const unsigned bits = bits_for_shares(std::max(ref.n, mon.n), share_packets);
  const size_t count = size_t{1} << bits;
  if (bits == 0) threads = 1;
  Common common{ref, mon, {}};
  std::optional<Shares> of_ref, of_mon;
  share_out(threads, 2, [&](size_t k) {
    if (k == 0) {
      of_ref.emplace(ref, ref_sides, bits);
      common.result.mon_of_ref = filled(ref.n, none);
      common.result.ambiguous_ref = filled(ref.n, uint8_t{0});
    } else {
      of_mon.emplace(mon, mon_sides, bits);
      common.result.ref_of_mon = filled(mon.n, none);
    }
  });
  std::vector<Ambiguous> ambiguous(count);
  std::atomic<size_t> next{0};
  share_out(threads, std::min(threads, count), [&](size_t) {
    Matcher matcher(common);
    for (size_t k; (k = next++) < count;) ambiguous[k] = matcher.match_unique((*of_ref)[k], (*of_mon)[k]);
  });
  if (std::any_of(ambiguous.begin(), ambiguous.end(), [](const Ambiguous& some) { return !some.deferred.empty(); })) {
    common.measure_spread();
    share_out(threads, count, [&](size_t k) { common.match_deferred(ambiguous[k]); });
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

// Sorts rows by time; rows of the same time keep their order. With several CPUs, some packets of a file are late: only these are sorted.
template <typename Earlier>
void order_rows(std::vector<int32_t>& rows, Earlier earlier) {
  std::vector<int32_t> late;
  auto kept = rows.begin();
  for (const int32_t row : rows) {
    if (kept != rows.begin() && earlier(row, kept[-1])) late.push_back(row);
    else *kept++ = row;
  }
  std::stable_sort(late.begin(), late.end(), earlier);
  std::copy(late.begin(), late.end(), kept);
  std::inplace_merge(rows.begin(), kept, rows.end(), earlier);
}

// Packets of mon that were seen at ref, in order of time.
std::vector<int32_t> matched_rows(const Packets& mon, const Matching& matching) {
  std::vector<int32_t> rows;
  rows.reserve(mon.n);
  prefer_large_pages(rows.data(), mon.n * sizeof rows[0]);
  for (size_t j = 0; j < mon.n; ++j)
    if (matching.ref_of_mon[j] >= 0) rows.push_back(static_cast<int32_t>(j));
  order_rows(rows, [&](int32_t a, int32_t b) { return mon.t_ns[a] < mon.t_ns[b]; });
  return rows;
}

// Packets of the groups that were sent in one direction, in order of time.
std::vector<int32_t> rows_in_direction(const Packets& capture, const Sides& sides, bool outgoing) {
  std::vector<int32_t> rows;
  for (size_t i = 0; i < capture.n; ++i)
    if (takes_part(capture, sides, i) && sides[static_cast<size_t>(capture.flow[i] - 1)].outgoing == outgoing)
      rows.push_back(static_cast<int32_t>(i));
  order_rows(rows, [&](int32_t a, int32_t b) { return capture.t_ns[a] < capture.t_ns[b]; });
  return rows;
}

}  // namespace

std::vector<Pair> pair_packets(const Packets& ref, const Packets& mon, const Sides& mon_sides,
                               const Matching& matching, size_t groups) {
  std::vector<Conversation> conversations(groups);
  std::vector<Pair> pairs;
  pairs.reserve(returned_packets(mon, mon_sides, matching));
  prefer_large_pages(pairs.data(), pairs.capacity() * sizeof(Pair));
  for (const int32_t row : matched_rows(mon, matching)) {
    const size_t j = static_cast<size_t>(row);
    const int32_t i = matching.ref_of_mon[j];
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

Delays::Delays(const Packets& ref, const Packets& mon, const Sides& mon_sides, const double* mon_ns, const Matching& matching)
    : ref_(ref), mon_ns_(mon_ns), matching_(matching) {
  const auto is_out = [&](int32_t j) { return mon_sides[static_cast<size_t>(mon.flow[j] - 1)].outgoing; };
  for (size_t i = 0; i < ref.n; ++i)
    if (const int32_t j = matching.mon_of_ref[i]; j >= 0 && is_out(j)) out_.push_back(static_cast<int32_t>(i));
  for (size_t j = 0; j < mon.n; ++j)
    if (matching.ref_of_mon[j] >= 0 && !is_out(static_cast<int32_t>(j))) back_.push_back(static_cast<int32_t>(j));
  order(out_, ref.t_ns);
  order(back_, mon_ns);
}

void Delays::order(std::vector<int32_t>& rows, const double* t_ns) {
  order_rows(rows, [t_ns](int32_t a, int32_t b) { return is_before(t_ns[a], t_ns[b]); });
}

namespace {

// `found` has the row of each packet in the capture at the other end. An unmatched packet is unjudged if, at the
// delay of the first matched packet, it would have arrived before that capture began. Unmatched packets after the last match are unjudged too.
template <typename IsAmbiguous>
std::vector<Tally> tally_direction(const Packets& left, const Sides& sides, bool outgoing, const Packets& arrived,
                                   const std::vector<int32_t>& found, size_t groups, IsAmbiguous is_ambiguous) {
  const std::vector<int32_t> rows = rows_in_direction(left, sides, outgoing);
  const auto group_of = [&](size_t i) { return static_cast<size_t>(sides[static_cast<size_t>(left.flow[i] - 1)].group); };
  std::vector<double> judged_from_ns(groups, std::nan(""));
  for (const int32_t row : rows) {
    const size_t i = static_cast<size_t>(row);
    double& from_ns = judged_from_ns[group_of(i)];
    if (found[i] >= 0 && std::isnan(from_ns)) from_ns = left.t_ns[i] - (arrived.t_ns[found[i]] - arrived.began_ns);
  }
  std::vector<Tally> tallies(groups);
  std::vector<double> late(groups);
  for (const int32_t row : rows) {
    const size_t i = static_cast<size_t>(row), group = group_of(i);
    Tally& tally = tallies[group];
    const bool is_matched = found[i] >= 0;
    ++tally.sent;
    tally.matched += is_matched;
    tally.ambiguous += is_ambiguous(i);
    tally.unjudged += !is_matched && left.t_ns[i] < judged_from_ns[group];
    late[group] = is_matched ? 0 : late[group] + 1;
  }
  for (size_t group = 0; group < groups; ++group) tallies[group].unjudged += late[group];
  return tallies;
}

}  // namespace

Tallies tally_packets(const Packets& ref, const Sides& ref_sides, const Packets& mon, const Sides& mon_sides,
                      const Matching& matching, size_t groups) {
  const auto& of_mon = matching.ref_of_mon;
  return {tally_direction(ref, ref_sides, true, mon, matching.mon_of_ref, groups, [&](size_t i) { return matching.ambiguous_ref[i] != 0; }),
          tally_direction(mon, mon_sides, false, ref, of_mon, groups,
                          [&](size_t j) { return of_mon[j] >= 0 && matching.ambiguous_ref[static_cast<size_t>(of_mon[j])] != 0; })};
}

}  // namespace samovar
