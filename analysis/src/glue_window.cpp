#include <Rcpp.h>

#include <cmath>

#include "core_totals.h"
#include "core_window.h"

// [[Rcpp::export]]
Rcpp::List window_sums(const Rcpp::NumericVector& t_ns, const Rcpp::IntegerVector& bytes, const Rcpp::IntegerVector& group,
                       int groups, const Rcpp::List& frame) {
  const samovar::Windows windows{Rcpp::as<double>(frame["origin_ns"]), Rcpp::as<double>(frame["from_ns"]),
                                 Rcpp::as<double>(frame["to_ns"]), Rcpp::as<double>(frame["width_ns"]),
                                 static_cast<size_t>(Rcpp::as<double>(frame["count"]))};
  const auto sums = samovar::sum_windows(t_ns.begin(), bytes.begin(), groups > 0 ? group.begin() : nullptr,
                                         static_cast<size_t>(t_ns.size()), groups > 0 ? static_cast<size_t>(groups) : 1, windows);
  return Rcpp::List::create(Rcpp::_["groups"] = sums.groups, Rcpp::_["bytes"] = sums.bytes);
}

// [[Rcpp::export]]
Rcpp::DataFrame flow_totals(const Rcpp::IntegerVector& flow, const Rcpp::IntegerVector& proto, const Rcpp::IntegerVector& sport,
                            const Rcpp::IntegerVector& payload_bytes, const Rcpp::IntegerVector& ip_bytes, const Rcpp::LogicalVector& wanted) {
  const R_xlen_t n = flow.size();
  if (proto.size() != n || sport.size() != n || payload_bytes.size() != n || ip_bytes.size() != n) Rcpp::stop("all columns must have the same length");
  const R_xlen_t flows = Rf_xlength(flow.attr("levels"));
  const samovar::FlowColumns columns{flow.begin(), proto.begin(), sport.begin(), payload_bytes.begin(), ip_bytes.begin(), static_cast<size_t>(n)};
  const auto totals = samovar::total_flows(columns, static_cast<size_t>(flows), std::vector<bool>(wanted.begin(), wanted.end()));
  std::vector<int> number, first, last, packets;
  std::vector<double> payload, most;
  for (const samovar::FlowTotal& total : totals) {
    number.push_back(total.flow);
    first.push_back(static_cast<int>(total.first) + 1);
    last.push_back(static_cast<int>(total.last) + 1);
    packets.push_back(static_cast<int>(total.packets));
    payload.push_back(std::isnan(total.payload_bytes) ? NA_REAL : total.payload_bytes);
    most.push_back(total.most_bytes);
  }
  return Rcpp::DataFrame::create(Rcpp::_["flow"] = number, Rcpp::_["first"] = first, Rcpp::_["last"] = last,
                                 Rcpp::_["packets"] = packets, Rcpp::_["payload_bytes"] = payload, Rcpp::_["most_bytes"] = most);
}
