// Any bytes as a log of SIFTR: no crash, no hang, bounded memory, and the same rows whether the file arrives whole or in pieces.

#include <cstdlib>

#include "../src/core_siftr.h"
#include "inputs.h"

using namespace samovar;

namespace {

// Every value is read, so that the sanitizers find columns of a row that were not set.
double rows_of(Source& source) {
  siftr::Log log;
  try {
    log.read(source);
    log.finish();
  } catch (const FormatError&) {
    return -1;
  }
  double rows = 0, sum = 0;
  for (const auto& chunk : log.chunks()) {
    rows += static_cast<double>(chunk.rows);
    for (size_t r = 0; r < chunk.rows; ++r) {
      const auto flow = static_cast<size_t>(chunk.integer[siftr::flow][r]);
      if (flow < 1 || flow > log.flows().size()) std::abort();
      sum += chunk.real[siftr::t_ns][r];
    }
  }
  if (!(sum <= 1e300)) std::abort();
  return rows;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n) { return same_rows(data, n, rows_of); }
