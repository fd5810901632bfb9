// Any bytes as output of ss: no crash, no hang, bounded memory, and the same rows whether the file arrives whole or in pieces.

#include <cstdlib>

#include "../src/core_ss.h"
#include "inputs.h"

using namespace samovar;

namespace {

double rows_of(Source& source) {
  try {
    const ss::Table table = ss::read(source);
    for (const auto& column : table.real)
      if (column.size() != table.state.size()) std::abort();
    for (const int code : table.cc)
      if (code < 0 || static_cast<size_t>(code) > table.ccs.all().size()) std::abort();
    return static_cast<double>(table.state.size());
  } catch (const FormatError&) {
    return -1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n) { return same_rows(data, n, rows_of); }
