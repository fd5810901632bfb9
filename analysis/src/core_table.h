// Rows turned into columns, a batch at a time.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core_decode.h"

namespace samovar {

constexpr size_t column_count = sizeof columns / sizeof columns[0];

// Where each column of a table lies in memory; nullptr where it is not wanted.
struct Destination {
  std::array<void*, column_count> at{};
};

// Decodes up to `limit` records into `to` from row `first` on; the number decoded is less only at the end.
size_t decode_rows(Capture& capture, Decoder& decoder, const Destination& to, size_t first, size_t limit);

// Columns that own their memory, for when the number of packets is not known beforehand.
class Chunk {
 public:
  Chunk(size_t capacity, const std::vector<size_t>& wanted);
  const Destination& destination() const { return destination_; }
  size_t rows = 0;
  void copy_to(const Destination& to, size_t first) const;

 private:
  std::vector<std::unique_ptr<double[]>> real_;
  std::vector<std::unique_ptr<int[]>> integer_;
  Destination destination_;
};

// A capture file with what reads it.
class Reader {
 public:
  // Throws FormatError when the file is no capture or, as a classic one, of a link type that is not known.
  Reader(const std::string& path, int mtu_bytes);
  // Counts the packets first when `count` is true and the source is whole.
  Reader(std::unique_ptr<Source> source, int mtu_bytes, bool count);

  Capture& capture() { return *capture_; }
  Decoder& decoder() { return decoder_; }
  bool counted() const { return counted_; }
  size_t packets() const { return packets_; }
  size_t read(const Destination& to, size_t first, size_t limit);
  // Throws FormatError when packets were seen and none of a link type that is known.
  void check_links() const;

 private:
  std::unique_ptr<Source> source_;
  std::unique_ptr<Capture> capture_;
  Decoder decoder_;
  bool counted_;
  size_t packets_, read_ = 0;
};

}  // namespace samovar
