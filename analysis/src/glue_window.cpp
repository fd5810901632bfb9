#include <Rcpp.h>

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
