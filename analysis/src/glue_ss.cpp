// [[Rcpp::plugins(cpp17)]]
#include <Rcpp.h>

#include "core_ss.h"

namespace {

Rcpp::IntegerVector factor(const std::vector<int>& codes, const samovar::ss::Words& words) {
  Rcpp::IntegerVector column = Rcpp::wrap(codes);
  for (int& code : column)
    if (code == 0) code = NA_INTEGER;
  column.attr("levels") = Rcpp::CharacterVector(Rcpp::wrap(words.all()));
  column.attr("class") = "factor";
  return column;
}

Rcpp::IntegerVector ports(const std::vector<int>& values) {
  Rcpp::IntegerVector column = Rcpp::wrap(values);
  for (int& port : column)
    if (port < 0) port = NA_INTEGER;
  return column;
}

Rcpp::NumericVector numbers(const std::vector<double>& values) {
  Rcpp::NumericVector column = Rcpp::wrap(values);
  for (double& value : column)
    if (ISNAN(value)) value = NA_REAL;
  return column;
}

}  // namespace

// [[Rcpp::export]]
Rcpp::List read_ss_file(const std::string& path) {
  try {
    const auto source = samovar::open_source(path);
    const samovar::ss::Table found = samovar::ss::read(*source);
    source->check();
    Rcpp::List table = Rcpp::List::create(
        Rcpp::_["epoch_s"] = numbers(found.epoch_s), Rcpp::_["t_ns"] = numbers(found.rest_ns),
        Rcpp::_["src"] = factor(found.src, found.addresses), Rcpp::_["sport"] = ports(found.sport),
        Rcpp::_["dst"] = factor(found.dst, found.addresses), Rcpp::_["dport"] = ports(found.dport),
        Rcpp::_["state"] = factor(found.state, found.states), Rcpp::_["cc"] = factor(found.cc, found.ccs));
    for (size_t c = 0; c < samovar::ss::column_count; ++c) table.push_back(numbers(found.real[c]), samovar::ss::names[c]);
    return Rcpp::List::create(Rcpp::_["table"] = table, Rcpp::_["strange"] = static_cast<double>(found.strange),
                              Rcpp::_["first_strange"] = static_cast<double>(found.first_strange), Rcpp::_["cut"] = found.cut);
  } catch (const samovar::FormatError& error) {
    Rcpp::stop("%s\t%s", path, error.what());
  }
}
