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
  static constexpr size_t usual_part_rows = size_t{1} << 15;
  // Throws FormatError when the source is no capture or, as a classic one, of a link type that is not known.
  Reader(std::unique_ptr<Source> source, int mtu_bytes);

  Capture& capture() { return *capture_; }
  Decoder& decoder() { return decoder_; }
  bool countable() const { return source_->whole(); }
  // Has the kernel map one of so many shares of a file; any thread may, before or beside count(), which it spares page faults.
  void map_share(size_t share, size_t shares) const { source_->map_share(share, shares); }
  // What count() will find, judged by the first of them.
  size_t packets_expected() const;
  // Passes over the records of what is countable: their number is known then, where a part begins at each `part_rows` of
  // them, and what the capture tells at its end. Throws FormatError when the file has changed since.
  void count(size_t part_rows = usual_part_rows);
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
  std::unique_ptr<Source> source_;
  std::unique_ptr<Capture> capture_;
  int mtu_bytes_;
  Decoder decoder_;
  Datagrams datagrams_;
  std::vector<Part> parts_;
  size_t packets_ = 0, read_ = 0;
};

}  // namespace samovar
