// Rows turned into columns, a batch at a time.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "core_decode.h"

namespace samovar {

constexpr size_t column_count = sizeof columns / sizeof columns[0];

// Addresses of a table's columns; nullptr for columns that are not wanted.
struct Destination {
  std::array<void*, column_count> at{};
};

// Decodes up to `limit` records into `to` from row `first` on; returns the number, which is smaller only at the end.
size_t decode_rows(Capture& capture, Decoder& decoder, const Destination& to, size_t first, size_t limit);

// Columns that own their memory, for an unknown number of packets.
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

// Gives the fragments of a datagram the flow and ports of its first fragment, which must precede them. Up to 4096 datagrams
// are remembered.
class Datagrams {
 public:
  // Row `first` of `to` is the packet after the first `before` packets of the capture.
  void complete(const std::vector<Fragment>& fragments, const FlowTable& flows, const Destination& to, size_t first, size_t before);

 private:
  struct Known {
    uint64_t datagram;
    int flow;
  };
  static constexpr size_t most_known = 4096;
  std::vector<Known> known_;
};

// A capture file with its reader.
class Reader {
 public:
  static constexpr size_t usual_part_rows = size_t{1} << 15, usual_share_bytes = size_t{1} << 24;
  // Throws FormatError if the source is not a capture, or a classic one of an unknown link type.
  Reader(std::unique_ptr<Source> source, int mtu_bytes);

  Capture& capture() { return *capture_; }
  Decoder& decoder() { return decoder_; }
  bool countable() const { return source_->whole(); }
  // Estimates the result of count() from the first records.
  size_t packets_expected() const;
  // Skips the records of a source that can be counted ahead: determines their number, where parts of up to `part_rows` of
  // them begin, and what the capture records at its end. Throws FormatError if the file has changed since.
  void count(size_t threads, size_t part_rows = usual_part_rows, size_t share_bytes = usual_share_bytes);
  size_t packets() const { return packets_; }
  // Decodes everything that was counted, with several threads. `pause`: see share_out(). Throws FormatError if the file
  // has changed since.
  void read_counted(const Destination& to, size_t threads, const std::function<void()>& pause = nullptr);
  // Decodes what was not counted, from the front.
  size_t read(const Destination& to, size_t first, size_t limit);
  // Throws FormatError if there were packets, but none of a known link type.
  void check_links() const;

 private:
  // Records that can be decoded independently of those before.
  struct Part {
    std::unique_ptr<Span> source;
    std::unique_ptr<Capture> capture;
    Decoder decoder;
    FlowTable::Renumbering numbers{};
    size_t first = 0, rows = 0;
  };
  void add_part(const uint8_t* begin, size_t rows);
  size_t count_part(size_t part_rows);
  // Maps the rest of a file at once, which costs less than a page fault for every few pages.
  void map_rest(size_t threads, size_t share_bytes) const;
  // Counts the rest with several threads, as far as the beginnings of records can be recognised.
  void count_shares(size_t threads, size_t part_rows, size_t share_bytes);
  void read_part(Part& part, Decoder& decoder, const Destination& to);
  // Adds the flows and counts of all parts to those of the capture.
  void absorb_parts(const Destination& to, size_t threads);

  std::unique_ptr<Source> source_;
  std::unique_ptr<Capture> capture_;
  int mtu_bytes_;
  Decoder decoder_;
  Datagrams datagrams_;
  std::vector<Part> parts_;
  size_t packets_ = 0, read_ = 0;
};

}  // namespace samovar
