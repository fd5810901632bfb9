#include <Rcpp.h>

#include <cmath>
#include <vector>

#include "core_match.h"

namespace {

samovar::Packets packets_of(const Rcpp::DataFrame& capture) {
  const Rcpp::NumericVector id = capture["id"], t_ns = capture["t_ns"];
  const Rcpp::IntegerVector flow = capture["flow"];
  return {id.begin(), t_ns.begin(), flow.begin(), static_cast<size_t>(id.size())};
}

// Group and direction of each of the capture's flow levels: out[g] and back[g] name the two directions of
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

// Where the packets that left one capture's host were found in the other: rows counted from 1, NA where nowhere.
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

}  // namespace

// [[Rcpp::export]]
Rcpp::List matched_rows(const Rcpp::DataFrame& ref, const Rcpp::DataFrame& mon, const Rcpp::CharacterVector& out,
                        const Rcpp::CharacterVector& back) {
  const samovar::Packets r = packets_of(ref), m = packets_of(mon);
  const samovar::Sides ref_sides = sides_of(ref, out, back), mon_sides = sides_of(mon, out, back);
  const samovar::Matching matching = samovar::match_packets(r, ref_sides, m, mon_sides);
  return Rcpp::List::create(Rcpp::_["out"] = rows_of(r, ref_sides, matching.mon_of_ref, true),
                            Rcpp::_["back"] = rows_of(m, mon_sides, matching.ref_of_mon, false));
}

// [[Rcpp::export]]
Rcpp::List match_captures(const Rcpp::DataFrame& ref, const Rcpp::DataFrame& mon,
                          const Rcpp::CharacterVector& out, const Rcpp::CharacterVector& back) {
  const samovar::Packets r = packets_of(ref), m = packets_of(mon);
  const samovar::Sides ref_sides = sides_of(ref, out, back), mon_sides = sides_of(mon, out, back);
  const size_t groups = static_cast<size_t>(out.size());
  const samovar::Matching matching = samovar::match_packets(r, ref_sides, m, mon_sides);
  const std::vector<samovar::Pair> pairs = samovar::pair_packets(r, m, mon_sides, matching, groups);

  const R_xlen_t n = static_cast<R_xlen_t>(pairs.size());
  Rcpp::IntegerVector group(n);
  Rcpp::NumericVector t_ns(n), arrival_ns(n), rtt_ms(n);
  double floored = 0;
  for (R_xlen_t k = 0; k < n; ++k) {
    const samovar::Pair& pair = pairs[static_cast<size_t>(k)];
    group[k] = pair.group + 1;
    t_ns[k] = pair.t_ns;
    arrival_ns[k] = pair.arrival_ns;
    rtt_ms[k] = static_cast<double>(pair.rtt_ns) / 1e6;
    floored += pair.floored;
  }
  const samovar::Tallies tallies = samovar::tally_packets(r, ref_sides, m, mon_sides, matching, groups);
  return Rcpp::List::create(Rcpp::_["group"] = group, Rcpp::_["t_ns"] = t_ns, Rcpp::_["rtt_ms"] = rtt_ms,
                            Rcpp::_["arrival_ns"] = arrival_ns, Rcpp::_["floored"] = floored,
                            Rcpp::_["out"] = table_of(tallies.out), Rcpp::_["back"] = table_of(tallies.back));
}
