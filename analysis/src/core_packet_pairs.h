// Finds the same packets in two captures, and round-trip times from them (CAIA-TR-060707A, CAIA-TR-130730A).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace samovar {

// Columns of a capture's table. Times are whole nanoseconds held in doubles; `began_ns` is when the capture began.
struct Packets {
  const double* id;
  const double* t_ns;
  const int* flow;
  size_t n;
  double began_ns = -std::numeric_limits<double>::infinity();
  int64_t time(size_t i) const { return static_cast<int64_t>(t_ns[i]); }
};

// Packets to match: for each flow number its group, and whether it goes from ref to mon.
struct Side {
  int group = -1;
  bool outgoing = false;
};
using Sides = std::vector<Side>;

struct Matching {
  std::vector<int32_t> ref_of_mon;     // row of ref for each row of mon, -1 where there is none
  std::vector<int32_t> mon_of_ref;     // the reverse: row of mon for each row of ref
  std::vector<uint8_t> ambiguous_ref;  // the id occurs again in ref or in mon
};

// Matches packets with equal ids, first in first out. If an id occurs more than once, the times of a match must also differ
// by the clock difference plus delay of the unique packets, to within a second. Otherwise an id that repeats (UDP, a counter
// of 65536 packets) could match a packet that was lost long before.
// The work is divided by id, into shares of `share_packets` packets, whose table fits the second-level cache.
constexpr size_t usual_share_packets = size_t{1} << 13;
Matching match_packets(const Packets& ref, const Sides& ref_sides, const Packets& mon, const Sides& mon_sides,
                       size_t threads = 1, size_t share_packets = usual_share_packets);

// A packet found in both captures, with both times on one clock.
struct Delay {
  double t_ns;  // of departure
  double delay_ns;
  int32_t ref_row, mon_row;
  bool outgoing;
};
// Delays of the matched packets in order of departure; those without a time first (NaN in `mon_ns`, the times of mon on
// ref's clock). At equal times, outgoing packets precede returning ones.
class Delays {
 public:
  Delays(const Packets& ref, const Packets& mon, const Sides& mon_sides, const double* mon_ns, const Matching& matching);
  size_t size() const { return out_.size() + back_.size(); }

  template <typename Visit>
  void each(Visit visit) const {
    auto out = out_.begin(), back = back_.begin();
    while (out != out_.end() || back != back_.end()) {
      if (back == back_.end() || (out != out_.end() && !is_before(mon_ns_[*back], ref_.t_ns[*out]))) {
        const int32_t i = *out++, j = matching_.mon_of_ref[static_cast<size_t>(i)];
        visit(Delay{ref_.t_ns[i], mon_ns_[j] - ref_.t_ns[i], i, j, true});
      } else {
        const int32_t j = *back++, i = matching_.ref_of_mon[static_cast<size_t>(j)];
        visit(Delay{mon_ns_[j], ref_.t_ns[i] - mon_ns_[j], i, j, false});
      }
    }
  }

 private:
  static bool is_before(double a_ns, double b_ns) { return a_ns < b_ns || (std::isnan(a_ns) && !std::isnan(b_ns)); }
  static void order(std::vector<int32_t>& rows, const double* t_ns);
  const Packets& ref_;
  const double* mon_ns_;
  const Matching& matching_;
  std::vector<int32_t> out_, back_;  // rows of ref and of mon
};

struct Pair {
  int group;
  double t_ns;        // on ref's clock
  double arrival_ns;  // of the packet that went out, on mon's clock
  int64_t rtt_ns;
  bool floored;  // was negative
};

// Pairs each packet I returning from mon with the last packet O that reached mon strictly before I left; each packet is
// used once.
std::vector<Pair> pair_packets(const Packets& ref, const Packets& mon, const Sides& mon_sides,
                               const Matching& matching, size_t groups);

// Counts of the packets of one group in one direction, at the end where they left.
struct Tally {
  double sent = 0, matched = 0, ambiguous = 0;
  // Unmatched packets that would have arrived before the other capture began, or that left after the last matched packet: they may
  // have arrived outside the other capture, or have been lost.
  double unjudged = 0;
};
struct Tallies {
  std::vector<Tally> out, back;
};
Tallies tally_packets(const Packets& ref, const Sides& ref_sides, const Packets& mon, const Sides& mon_sides,
                      const Matching& matching, size_t groups);

}  // namespace samovar
