// Rows turned into columns, a batch at a time.
#pragma once

#include <array>
#include <functional>
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

// Gives the fragments of a datagram the flow and the ports that its first had. That one has to come before them; of datagrams whose
// fragments come mixed up some thousand are remembered.
class Datagrams {
 public:
  // Row `first` of `to` is the packet before which `before` were decoded.
  void complete(const std::vector<Fragment>& fragments, const FlowTable& flows, const Destination& to, size_t first, size_t before);

 private:
  struct Known {
    uint64_t datagram;
    int flow;
  };
  static constexpr size_t most_known = 4096;
  std::vector<Known> known_;
};

// A capture file with what reads it.
class Reader {
 public:
  static constexpr size_t usual_part_rows = size_t{1} << 15, usual_share_bytes = size_t{1} << 24;
  // Throws FormatError when the source is no capture or, as a classic one, of a link type that is not known.
  Reader(std::unique_ptr<Source> source, int mtu_bytes);

  Capture& capture() { return *capture_; }
  Decoder& decoder() { return decoder_; }
  bool countable() const { return source_->whole(); }
  // What count() will find, judged by the first of them.
  size_t packets_expected() const;
  // Passes over the records of what is countable: their number is known then, where parts of up to `part_rows` of them
  // begin, and what the capture tells at its end. Throws FormatError when the file has changed since.
  void count(size_t threads, size_t part_rows = usual_part_rows, size_t share_bytes = usual_share_bytes);
  size_t packets() const { return packets_; }
  // What was counted, all of it, by several threads. `pause` as of share_out(). Throws FormatError when the file has
  // changed since.
  void read_counted(const Destination& to, size_t threads, const std::function<void()>& pause = nullptr);
  // What was not counted, from the front on.
  size_t read(const Destination& to, size_t first, size_t limit);
  // Throws FormatError when packets were seen and none of a link type that is known.
  void check_links() const;

 private:
  // Records that can be decoded apart from those before.
  struct Part {
    std::unique_ptr<Span> source;
    std::unique_ptr<Capture> capture;
    Decoder decoder;
    FlowTable::Renumbering numbers{};
    size_t first = 0, rows = 0;
  };
  void add_part(const uint8_t* begin, size_t rows);
  size_t count_part(size_t part_rows);
  // Has the kernel map what is left of a file: faults for every few pages would cost more.
  void map_rest(size_t threads, size_t share_bytes) const;
  // Counts what is left by several threads, as far as it can be told where a record begins.
  void count_shares(size_t threads, size_t part_rows, size_t share_bytes);
  void read_part(Part& part, const Destination& to);

  std::unique_ptr<Source> source_;
  std::unique_ptr<Capture> capture_;
  int mtu_bytes_;
  Decoder decoder_;
  Datagrams datagrams_;
  std::vector<Part> parts_;
  size_t packets_ = 0, read_ = 0;
};

}  // namespace samovar
