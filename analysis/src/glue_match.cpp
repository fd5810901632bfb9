#include <Rcpp.h>

#include <cmath>
#include <vector>

#include "core_match.h"
#include "glue_threads.h"

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
  const samovar::Matching matching = samovar::match_packets(r, ref_sides, m, mon_sides, threads_wanted());
  return Rcpp::List::create(Rcpp::_["out"] = rows_of(r, ref_sides, matching.mon_of_ref, true),
                            Rcpp::_["back"] = rows_of(m, mon_sides, matching.ref_of_mon, false));
}

// [[Rcpp::export]]
Rcpp::List matched_delays(const Rcpp::DataFrame& ref, const Rcpp::DataFrame& mon, const Rcpp::CharacterVector& out,
                          const Rcpp::CharacterVector& back, const Rcpp::NumericVector& mon_ns) {
  const samovar::Packets r = packets_of(ref), m = packets_of(mon);
  if (static_cast<size_t>(mon_ns.size()) != m.n) Rcpp::stop("times of another number of packets");
  const samovar::Sides ref_sides = sides_of(ref, out, back), mon_sides = sides_of(mon, out, back);
  const samovar::Matching matching = samovar::match_packets(r, ref_sides, m, mon_sides, threads_wanted());
  const std::vector<samovar::Delay> delays = samovar::delays_of(r, m, mon_sides, mon_ns.begin(), matching);
  const R_xlen_t n = static_cast<R_xlen_t>(delays.size());
  Rcpp::NumericVector t_ns(Rcpp::no_init(n)), delay_ms(Rcpp::no_init(n));
  Rcpp::IntegerVector ref_row(Rcpp::no_init(n)), mon_row(Rcpp::no_init(n));
  Rcpp::CharacterVector direction(n);
  const Rcpp::Shield<SEXP> forward(Rf_mkChar("forward")), backward(Rf_mkChar("back"));
  for (R_xlen_t k = 0; k < n; ++k) {
    const samovar::Delay& delay = delays[static_cast<size_t>(k)];
    SET_STRING_ELT(direction, k, delay.outgoing ? forward : backward);
    t_ns[k] = delay.t_ns;
    delay_ms[k] = delay.delay_ns / 1e6;
    ref_row[k] = delay.ref_row + 1;
    mon_row[k] = delay.mon_row + 1;
  }
  return Rcpp::List::create(Rcpp::_["direction"] = direction, Rcpp::_["ref_row"] = ref_row, Rcpp::_["mon_row"] = mon_row,
                            Rcpp::_["delay_ms"] = delay_ms, Rcpp::_["t_ns"] = t_ns);
}

// [[Rcpp::export]]
Rcpp::List match_captures(const Rcpp::DataFrame& ref, const Rcpp::DataFrame& mon,
                          const Rcpp::CharacterVector& out, const Rcpp::CharacterVector& back) {
  const samovar::Packets r = packets_of(ref), m = packets_of(mon);
  const samovar::Sides ref_sides = sides_of(ref, out, back), mon_sides = sides_of(mon, out, back);
  const size_t groups = static_cast<size_t>(out.size());
  const samovar::Matching matching = samovar::match_packets(r, ref_sides, m, mon_sides, threads_wanted());
  std::vector<samovar::Pair> pairs;
  samovar::Tallies tallies;
  samovar::share_out(threads_wanted(), 2, [&](size_t k) {
    if (k == 0) pairs = samovar::pair_packets(r, m, mon_sides, matching, groups);
    else tallies = samovar::tally_packets(r, ref_sides, m, mon_sides, matching, groups);
  });

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
  return Rcpp::List::create(Rcpp::_["group"] = group, Rcpp::_["t_ns"] = t_ns, Rcpp::_["rtt_ms"] = rtt_ms,
                            Rcpp::_["arrival_ns"] = arrival_ns, Rcpp::_["floored"] = floored,
                            Rcpp::_["out"] = table_of(tallies.out), Rcpp::_["back"] = table_of(tallies.back));
}
