// Rows turned into columns, a batch at a time.
#pragma once

#include <array>
#include <vector>

#include "core_decode.h"

namespace samovar {

constexpr size_t column_count = sizeof columns / sizeof columns[0];

// Where each column of a table lies in memory.
struct Destination {
  std::array<void*, column_count> at{};
};

// Decodes up to `limit` records into `to` from row `first` on; the number decoded is less only at the end.
size_t decode_rows(Capture& capture, Decoder& decoder, const Destination& to, size_t first, size_t limit);

// Columns that own their memory, for when the number of packets is not known beforehand.
class Chunk {
 public:
  explicit Chunk(size_t rows);
  const Destination& destination() const { return destination_; }
  size_t rows = 0;
  void copy_to(const Destination& to, size_t first) const;

 private:
  std::array<std::vector<double>, column_count> real_;
  std::array<std::vector<int>, column_count> integer_;
  Destination destination_;
};

}  // namespace samovar
