#include <Rcpp.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core_packet_pairs.h"
#include "glue_threads.h"

namespace {

samovar::Packets packets_of(const Rcpp::DataFrame& capture) {
  const Rcpp::NumericVector id = capture["id"], t_ns = capture["t_ns"];
  const Rcpp::IntegerVector flow = capture["flow"];
  const auto is_earlier = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  const double began_ns = capture.hasAttribute("first_ns") ? Rcpp::as<double>(capture.attr("first_ns"))
                          : t_ns.size() == 0               ? NA_REAL
                                                           : *std::min_element(t_ns.begin(), t_ns.end(), is_earlier);
  return {id.begin(), t_ns.begin(), flow.begin(), static_cast<size_t>(id.size()), began_ns};
}

// Group and direction of each flow level of the capture: out[g] and back[g] name the two directions of
// group g.
samovar::Sides sides_of(const Rcpp::DataFrame& capture, const Rcpp::CharacterVector& out,
                        const Rcpp::CharacterVector& back) {
  const Rcpp::IntegerVector flow = capture["flow"];
  const Rcpp::CharacterVector levels = flow.attr("levels");
  const Rcpp::IntegerVector out_group = Rcpp::match(levels, out), back_group = Rcpp::match(levels, back);
  samovar::Sides sides(static_cast<size_t>(levels.size()));
  for (R_xlen_t k = 0; k < levels.size(); ++k) {
    if (out_group[k] != NA_INTEGER) sides[static_cast<size_t>(k)] = {out_group[k] - 1, true};
    else if (back_group[k] != NA_INTEGER) sides[static_cast<size_t>(k)] = {back_group[k] - 1, false};
  }
  return sides;
}

Rcpp::List table_of(const std::vector<samovar::Tally>& tallies) {
  const R_xlen_t n = static_cast<R_xlen_t>(tallies.size());
  Rcpp::NumericVector sent(n), matched(n), ambiguous(n), unjudged(n);
  for (R_xlen_t g = 0; g < n; ++g) {
    const samovar::Tally& tally = tallies[static_cast<size_t>(g)];
    sent[g] = tally.sent;
    matched[g] = tally.matched;
    ambiguous[g] = tally.ambiguous;
    unjudged[g] = tally.unjudged;
  }
  return Rcpp::List::create(Rcpp::_["sent"] = sent, Rcpp::_["matched"] = matched,
                            Rcpp::_["ambiguous"] = ambiguous, Rcpp::_["unjudged"] = unjudged);
}

// Rows, counted from 1, at which the packets of one capture were found in the other; NA if not found.
Rcpp::List rows_of(const samovar::Packets& left, const samovar::Sides& sides, const std::vector<int32_t>& found,
                   bool outgoing) {
  std::vector<int> group, row, other;
  for (size_t i = 0; i < left.n; ++i) {
    if (left.flow[i] <= 0) continue;
    const samovar::Side side = sides[static_cast<size_t>(left.flow[i] - 1)];
    if (side.group < 0 || side.outgoing != outgoing || left.id[i] < 0 || std::isnan(left.t_ns[i])) continue;
    group.push_back(side.group + 1);
    row.push_back(static_cast<int>(i) + 1);
    other.push_back(found[i] < 0 ? NA_INTEGER : found[i] + 1);
  }
  return Rcpp::List::create(Rcpp::_["group"] = group, Rcpp::_["row"] = row, Rcpp::_["other"] = other);
}

// Two captures with the packets to match.
struct Captures {
  samovar::Packets ref, mon;
  samovar::Sides ref_sides, mon_sides;
  Captures(const Rcpp::DataFrame& r, const Rcpp::DataFrame& m, const Rcpp::CharacterVector& out, const Rcpp::CharacterVector& back)
      : ref(packets_of(r)), mon(packets_of(m)), ref_sides(sides_of(r, out, back)), mon_sides(sides_of(m, out, back)) {}
  samovar::Matching match() const { return samovar::match_packets(ref, ref_sides, mon, mon_sides, threads_wanted()); }
  samovar::Tallies tally(const samovar::Matching& matching, R_xlen_t groups) const {
    return samovar::tally_packets(ref, ref_sides, mon, mon_sides, matching, static_cast<size_t>(groups));
  }
};

// A vector of which every element will be written.
template <typename Vector>
Vector blank(R_xlen_t n) {
  Vector x(Rcpp::no_init(n));
  samovar::prefer_large_pages(x.begin(), static_cast<size_t>(n) * sizeof *x.begin());
  return x;
}

// Sorts pairs by group, and keeps the order of the pairs of a group.
Rcpp::List table_of(const std::vector<samovar::Pair>& pairs, R_xlen_t groups) {
  const R_xlen_t n = static_cast<R_xlen_t>(pairs.size());
  Rcpp::IntegerVector group = blank<Rcpp::IntegerVector>(n);
  Rcpp::NumericVector t_ns = blank<Rcpp::NumericVector>(n), arrival_ns = blank<Rcpp::NumericVector>(n), rtt_ms = blank<Rcpp::NumericVector>(n);
  std::vector<R_xlen_t> place(static_cast<size_t>(groups) + 1);
  for (const samovar::Pair& pair : pairs) ++place[static_cast<size_t>(pair.group) + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  double floored = 0;
  for (const samovar::Pair& pair : pairs) {
    const R_xlen_t k = place[static_cast<size_t>(pair.group)]++;
    group[k] = pair.group + 1;
    t_ns[k] = pair.t_ns;
    arrival_ns[k] = pair.arrival_ns;
    rtt_ms[k] = static_cast<double>(pair.rtt_ns) / 1e6;
    floored += pair.floored;
  }
  return Rcpp::List::create(Rcpp::_["group"] = group, Rcpp::_["t_ns"] = t_ns, Rcpp::_["rtt_ms"] = rtt_ms,
                            Rcpp::_["arrival_ns"] = arrival_ns, Rcpp::_["floored"] = floored);
}

}  // namespace

// [[Rcpp::export]]
Rcpp::List matched_rows(const Rcpp::DataFrame& ref, const Rcpp::DataFrame& mon, const Rcpp::CharacterVector& out,
                        const Rcpp::CharacterVector& back) {
  const Captures captures(ref, mon, out, back);
  const samovar::Matching matching = captures.match();
  return Rcpp::List::create(Rcpp::_["out"] = rows_of(captures.ref, captures.ref_sides, matching.mon_of_ref, true),
                            Rcpp::_["back"] = rows_of(captures.mon, captures.mon_sides, matching.ref_of_mon, false));
}

// [[Rcpp::export]]
Rcpp::List matched_delays(const Rcpp::DataFrame& ref, const Rcpp::DataFrame& mon, const Rcpp::CharacterVector& out,
                          const Rcpp::CharacterVector& back, const Rcpp::NumericVector& mon_ns) {
  const Captures captures(ref, mon, out, back);
  if (static_cast<size_t>(mon_ns.size()) != captures.mon.n) Rcpp::stop("mon_ns must have one time per packet of mon");
  const samovar::Matching matching = captures.match();
  const samovar::Delays delays(captures.ref, captures.mon, captures.mon_sides, mon_ns.begin(), matching);
  const R_xlen_t n = static_cast<R_xlen_t>(delays.size());
  Rcpp::NumericVector t_ns = blank<Rcpp::NumericVector>(n), delay_ms = blank<Rcpp::NumericVector>(n);
  Rcpp::IntegerVector ref_row = blank<Rcpp::IntegerVector>(n), mon_row = blank<Rcpp::IntegerVector>(n);
  Rcpp::CharacterVector direction(n);
  const Rcpp::Shield<SEXP> forward(Rf_mkChar("forward")), backward(Rf_mkChar("back"));
  R_xlen_t k = 0;
  delays.each([&](const samovar::Delay& delay) {
    SET_STRING_ELT(direction, k, delay.outgoing ? forward : backward);
    t_ns[k] = delay.t_ns;
    delay_ms[k] = delay.delay_ns / 1e6;
    ref_row[k] = delay.ref_row + 1;
    mon_row[k] = delay.mon_row + 1;
    ++k;
  });
  return Rcpp::List::create(Rcpp::_["direction"] = direction, Rcpp::_["ref_row"] = ref_row, Rcpp::_["mon_row"] = mon_row,
                            Rcpp::_["delay_ms"] = delay_ms, Rcpp::_["t_ns"] = t_ns);
}

// [[Rcpp::export]]
Rcpp::List matched_pairs(const Rcpp::DataFrame& ref, const Rcpp::DataFrame& mon, const Rcpp::CharacterVector& out,
                         const Rcpp::CharacterVector& back) {
  const Captures captures(ref, mon, out, back);
  const samovar::Matching matching = captures.match();
  std::vector<samovar::Pair> pairs;
  samovar::Tallies tallies;
  samovar::share_out(threads_wanted(), 2, [&](size_t k) {
    if (k == 0) pairs = samovar::pair_packets(captures.ref, captures.mon, captures.mon_sides, matching, static_cast<size_t>(out.size()));
    else tallies = captures.tally(matching, out.size());
  });
  return Rcpp::List::create(Rcpp::_["pairs"] = table_of(pairs, out.size()), Rcpp::_["out"] = table_of(tallies.out),
                            Rcpp::_["back"] = table_of(tallies.back));
}

// [[Rcpp::export]]
Rcpp::List matched_counts(const Rcpp::DataFrame& ref, const Rcpp::DataFrame& mon, const Rcpp::CharacterVector& out,
                          const Rcpp::CharacterVector& back) {
  const Captures captures(ref, mon, out, back);
  const samovar::Tallies tallies = captures.tally(captures.match(), out.size());
  return Rcpp::List::create(Rcpp::_["out"] = table_of(tallies.out), Rcpp::_["back"] = table_of(tallies.back));
}
