#include "core_table.h"

#include <algorithm>
#include <cstring>

namespace samovar {
namespace {

// Small enough that a batch of rows stays in the first-level cache while it is turned.
constexpr size_t batch_rows = 128;
using Batch = std::array<Row, batch_rows>;

void store(const Batch& batch, size_t n, const Destination& to, size_t first) {
  for (size_t c = 0; c < column_count; ++c) {
    if (const auto member = columns[c].real) {
      double* out = static_cast<double*>(to.at[c]) + first;
      for (size_t i = 0; i < n; ++i) out[i] = batch[i].*member;
    } else {
      const auto integer = columns[c].integer;
      int* out = static_cast<int*>(to.at[c]) + first;
      for (size_t i = 0; i < n; ++i) out[i] = batch[i].*integer;
    }
  }
}

}  // namespace

size_t decode_rows(Capture& capture, Decoder& decoder, const Destination& to, size_t first, size_t limit) {
  Batch batch;
  Record record;
  size_t done = 0;
  for (bool more = true; more && done < limit;) {
    const size_t room = std::min(batch_rows, limit - done);
    size_t n = 0;
    while (n < room && (more = capture.next(record))) decoder.decode(record, batch[n++]);
    store(batch, n, to, first + done);
    done += n;
  }
  return done;
}

Chunk::Chunk(size_t capacity) {
  for (size_t c = 0; c < column_count; ++c) {
    if (columns[c].real) real_[c].resize(capacity);
    else integer_[c].resize(capacity);
    destination_.at[c] = columns[c].real ? static_cast<void*>(real_[c].data()) : integer_[c].data();
  }
}

void Chunk::copy_to(const Destination& to, size_t first) const {
  for (size_t c = 0; c < column_count; ++c) {
    if (columns[c].real) std::copy_n(real_[c].data(), rows, static_cast<double*>(to.at[c]) + first);
    else std::copy_n(integer_[c].data(), rows, static_cast<int*>(to.at[c]) + first);
  }
}

}  // namespace samovar
