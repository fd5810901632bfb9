// [[Rcpp::plugins(cpp17)]]
#include <Rcpp.h>

#include <algorithm>

#include "core_siftr.h"
#include "glue_threads.h"

namespace {

using namespace samovar;

std::string end_name(const std::string& address, int port) {
  const bool six = address.find(':') != std::string::npos;
  return (six ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

bool in_any(const std::list<siftr::Chunk>& chunks, size_t c) {
  if (chunks.empty()) return siftr::in_all_layouts(c);
  return std::any_of(chunks.begin(), chunks.end(),
                     [c](const siftr::Chunk& chunk) { return chunk.real[c] || chunk.integer[c]; });
}

void copy_real(const std::list<siftr::Chunk>& chunks, size_t c, double* to) {
  for (const auto& chunk : chunks) {
    if (!chunk.real[c]) std::fill_n(to, chunk.rows, NA_REAL);
    else std::copy_n(chunk.real[c].get(), chunk.rows, to);
    to += chunk.rows;
  }
}

void copy_integer(const std::list<siftr::Chunk>& chunks, size_t c, int* to) {
  for (const auto& chunk : chunks) {
    if (!chunk.integer[c]) std::fill_n(to, chunk.rows, NA_INTEGER);
    else std::copy_n(chunk.integer[c].get(), chunk.rows, to);
    to += chunk.rows;
  }
}

Rcpp::List table_of(std::list<siftr::Chunk>& chunks) {
  R_xlen_t rows = 0;
  for (const auto& chunk : chunks) rows += static_cast<R_xlen_t>(chunk.rows);
  std::vector<size_t> there;
  for (size_t c = 0; c < siftr::column_count; ++c)
    if (in_any(chunks, c)) there.push_back(c);
  Rcpp::List table(static_cast<R_xlen_t>(there.size()));
  Rcpp::CharacterVector names(static_cast<R_xlen_t>(there.size()));
  std::vector<void*> to;
  for (size_t k = 0; k < there.size(); ++k) {
    const bool real = siftr::columns[there[k]].real;
    SEXP column = Rf_allocVector(real ? REALSXP : INTSXP, rows);
    table[static_cast<R_xlen_t>(k)] = column;
    names[static_cast<R_xlen_t>(k)] = siftr::columns[there[k]].name;
    to.push_back(real ? static_cast<void*>(REAL(column)) : static_cast<void*>(INTEGER(column)));
    prefer_large_pages(to.back(), static_cast<size_t>(rows) * (real ? sizeof(double) : sizeof(int)));
  }
  // Each task moves one column and frees the source.
  share_out(threads_wanted(), there.size(), [&](size_t k) {
    const size_t c = there[k];
    if (siftr::columns[c].real) copy_real(chunks, c, static_cast<double*>(to[k]));
    else copy_integer(chunks, c, static_cast<int*>(to[k]));
    for (auto& chunk : chunks) {
      chunk.real[c].reset();
      chunk.integer[c].reset();
    }
  });
  table.names() = names;
  return table;
}

Rcpp::DataFrame flows_of(const siftr::Log& log) {
  const auto& flows = log.flows();
  const auto n = static_cast<R_xlen_t>(flows.size());
  Rcpp::CharacterVector name(n), src(n), dst(n);
  Rcpp::IntegerVector sport(n), dport(n);
  Rcpp::NumericVector mss(n);
  for (R_xlen_t i = 0; i < n; ++i) {
    const siftr::Flow& f = flows[static_cast<size_t>(i)];
    sport[i] = f.local_port;
    dport[i] = f.foreign_port;
    mss[i] = std::isnan(f.mss) ? NA_REAL : f.mss;
    // siftr2 has addresses in its footer, which a truncated log lacks.
    name[i] = f.local.empty() ? "unknown " + std::to_string(i + 1) : end_name(f.local, f.local_port) + " > " + end_name(f.foreign, f.foreign_port);
    src[i] = f.local;
    dst[i] = f.foreign;
  }
  return Rcpp::DataFrame::create(Rcpp::_["flow"] = name, Rcpp::_["src"] = src, Rcpp::_["sport"] = sport, Rcpp::_["dst"] = dst,
                                 Rcpp::_["dport"] = dport, Rcpp::_["mss_bytes"] = mss, Rcpp::_["stringsAsFactors"] = false);
}

template <typename Vector, typename Get>
Vector each(const std::vector<siftr::Session>& sessions, Get get) {
  Vector out(static_cast<R_xlen_t>(sessions.size()));
  for (size_t i = 0; i < sessions.size(); ++i) out[static_cast<R_xlen_t>(i)] = get(sessions[i]);
  return out;
}

Rcpp::DataFrame sessions_of(const siftr::Log& log) {
  const auto& all = log.sessions();
  const auto real = [&](auto get) { return each<Rcpp::NumericVector>(all, get); };
  using S = siftr::Session;
  return Rcpp::DataFrame::create(
      Rcpp::_["layout"] = each<Rcpp::CharacterVector>(all, [](const S& s) { return s.layout ? s.layout->name : "none"; }),
      Rcpp::_["version"] = each<Rcpp::CharacterVector>(all, [](const S& s) { return s.version; }),
      Rcpp::_["sysver"] = real([](const S& s) { return s.sysver; }),
      Rcpp::_["header"] = each<Rcpp::LogicalVector>(all, [](const S& s) { return s.header; }),
      Rcpp::_["footer"] = each<Rcpp::LogicalVector>(all, [](const S& s) { return s.footer; }),
      Rcpp::_["cut"] = each<Rcpp::LogicalVector>(all, [](const S& s) { return s.cut; }),
      Rcpp::_["enabled_s"] = real([](const S& s) { return s.header ? static_cast<double>(s.enabled_s) + static_cast<double>(s.enabled_us) / 1e6 : NA_REAL; }),
      Rcpp::_["disabled_s"] = real([](const S& s) { return s.disabled_s; }),
      Rcpp::_["records"] = real([](const S& s) { return s.rows; }),
      Rcpp::_["records_in"] = real([](const S& s) { return s.rows_in; }),
      Rcpp::_["counted_in"] = real([](const S& s) { return s.counted_in; }),
      Rcpp::_["counted_out"] = real([](const S& s) { return s.counted_out; }),
      Rcpp::_["skipped"] = real([](const S& s) { return s.skipped; }),
      Rcpp::_["malformed"] = real([](const S& s) { return s.malformed; }),
      Rcpp::_["first_malformed_line"] = real([](const S& s) { return s.first_malformed; }),
      Rcpp::_["backwards"] = real([](const S& s) { return s.backwards; }), Rcpp::_["stringsAsFactors"] = false);
}

}  // namespace

// [[Rcpp::export]]
Rcpp::List read_siftr_files(const std::vector<std::string>& paths) {
  siftr::Log log;
  std::string path;
  try {
    for (const std::string& each : paths) {
      path = each;
      const auto source = open_source(path);
      log.read(*source);
      source->check();
      Rcpp::checkUserInterrupt();
    }
    log.finish();
  } catch (const FormatError& error) {
    Rcpp::stop("%s\t%s", path, error.what());
  }
  Rcpp::List table = table_of(log.chunks());
  return Rcpp::List::create(Rcpp::_["table"] = table, Rcpp::_["flows"] = flows_of(log), Rcpp::_["sessions"] = sessions_of(log),
                            Rcpp::_["epoch_s"] = static_cast<double>(log.epoch_s()));
}
