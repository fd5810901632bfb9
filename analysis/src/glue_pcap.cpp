// [[Rcpp::plugins(cpp17)]]
#include <Rcpp.h>

#include <list>

#include "core_table.h"

namespace {

using samovar::column_count;
using samovar::columns;

constexpr size_t rows_between_interrupts = 1 << 16;

samovar::Destination allocate(Rcpp::List& table, size_t rows) {
  samovar::Destination to;
  Rcpp::CharacterVector names(column_count);
  for (size_t c = 0; c < column_count; ++c) {
    SEXP column = Rf_allocVector(columns[c].real ? REALSXP : INTSXP, static_cast<R_xlen_t>(rows));
    table[c] = column;
    names[c] = columns[c].name;
    to.at[c] = columns[c].real ? static_cast<void*>(REAL(column)) : INTEGER(column);
  }
  table.names() = names;
  return to;
}

Rcpp::List read_whole(samovar::Capture& capture, samovar::Decoder& decoder) {
  Rcpp::List table(column_count);
  const size_t rows = capture.count();
  const samovar::Destination to = allocate(table, rows);
  for (size_t done = 0; done < rows; Rcpp::checkUserInterrupt()) {
    const size_t wanted = std::min(rows_between_interrupts, rows - done);
    if (samovar::decode_rows(capture, decoder, to, done, wanted) != wanted)
      Rcpp::stop("has changed while it was read");
    done += wanted;
  }
  samovar::Record beyond;
  capture.next(beyond);  // sets the note on a cut tail
  return table;
}

Rcpp::List read_stream(samovar::Capture& capture, samovar::Decoder& decoder) {
  std::list<samovar::Chunk> chunks;
  size_t rows = 0;
  do {
    Rcpp::checkUserInterrupt();
    samovar::Chunk& chunk = chunks.emplace_back(rows_between_interrupts);
    chunk.rows = samovar::decode_rows(capture, decoder, chunk.destination(), 0, rows_between_interrupts);
    rows += chunk.rows;
  } while (chunks.back().rows == rows_between_interrupts);
  Rcpp::List table(column_count);
  const samovar::Destination to = allocate(table, rows);
  for (size_t first = 0; !chunks.empty(); chunks.pop_front()) {
    chunks.front().copy_to(to, first);
    first += chunks.front().rows;
  }
  return table;
}

void set_levels(Rcpp::List& table, const char* name, const Rcpp::CharacterVector& levels) {
  Rcpp::IntegerVector column = table[name];
  column.attr("levels") = levels;
  column.attr("class") = "factor";
}

}  // namespace

// [[Rcpp::export]]
Rcpp::List decode_capture(const std::string& path) {
  const auto source = samovar::open_source(path);
  samovar::Capture capture(*source);
  samovar::Decoder decoder(capture.link_type());
  Rcpp::List table = source->whole() ? read_whole(capture, decoder) : read_stream(capture, decoder);
  const Rcpp::CharacterVector addresses = Rcpp::wrap(decoder.flows().address_names());
  set_levels(table, "proto",
             Rcpp::CharacterVector(std::begin(samovar::proto_names), std::end(samovar::proto_names)));
  set_levels(table, "flow", Rcpp::wrap(decoder.flows().flow_names()));
  set_levels(table, "src", addresses);
  set_levels(table, "dst", addresses);
  return Rcpp::List::create(
      Rcpp::_["table"] = table, Rcpp::_["epoch_s"] = static_cast<double>(capture.epoch_s()),
      Rcpp::_["link_type"] = decoder.link_name(), Rcpp::_["precision"] = capture.nanoseconds() ? "ns" : "us",
      Rcpp::_["snaplen_bytes"] = static_cast<double>(capture.snaplen_bytes()),
      Rcpp::_["cut_packets"] = static_cast<double>(decoder.cut_packets()),
      Rcpp::_["truncated"] = !capture.truncation().empty(), Rcpp::_["truncated_note"] = capture.truncation());
}
