#include "core_pcap.h"

#include <algorithm>

#include "core_bytes.h"
#include "core_pcapng.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "core_bytes.h reads network order by swapping");

namespace samovar {

bool Capture::stop(const std::string& why) {
  truncation_ = (source_.damage().empty() ? why : source_.damage()) + " (byte " +
                std::to_string(source_.offset()) + ")";
  return false;
}

namespace {

constexpr size_t file_header_bytes = 24;
constexpr size_t record_header_bytes = 16;
// Prefetch many records ahead: with only 512 bytes, the pass over the headers waits for memory half of its time. A prefetch of unmapped memory has no effect.
constexpr size_t prefetched_bytes = 4096;
constexpr ptrdiff_t furthest_guess_bytes = 1 << 17;
constexpr int enough_records = 32;
constexpr uint32_t magic_us = 0xA1B2C3D4, magic_ns = 0xA1B23C4D;
constexpr const char* expected =
    "; expected a capture in pcap (magic a1b2c3d4 or a1b23c4d, either byte order) or pcapng format, plain, gzip- or "
    "zstd-compressed";

void prefetch(const uint8_t* record) {
  __builtin_prefetch(record + prefetched_bytes);
  __builtin_prefetch(record + prefetched_bytes + 64);
}

[[noreturn]] void refuse(const char* what) { throw FormatError(std::string(what) + expected); }

class ClassicCapture final : public Capture {
 public:
  explicit ClassicCapture(Source& source) : Capture(source) {
    const uint8_t* at = source_.cursor();
    const uint32_t magic = load<uint32_t>(at);
    swapped_ = magic != magic_us && magic != magic_ns;
    fraction_ns_ = file32(at) == magic_ns ? 1 : 1000;
    Interface& interface = interfaces_.emplace_back();
    interface.snaplen_bytes = file32(at + 16);
    // The upper bits give the length of a frame check sequence.
    interface.link_type = file32(at + 20) & 0x03FFFFFF;
    interface.resolution_exponent = fraction_ns_ == 1 ? 9 : 6;
    // Before version 2.3, the lengths of a record were in the other order. In version 2.3 they are in either order (libpcap's sf-pcap.c).
    const int version = 100 * file16(at + 4) + file16(at + 6);
    order_ = version < 203 ? Order::frame_first : version == 203 ? Order::either : Order::captured_first;
    longest_ = std::min(std::max(interface.snaplen_bytes, longest_record), longest_announced_record);
    source_.skip(file_header_bytes);
  }

  ClassicCapture(const ClassicCapture& other, Source& source)
      : Capture(other, source), order_(other.order_), fraction_ns_(other.fraction_ns_), longest_(other.longest_) {}

  const char* format() const override { return "pcap"; }
  std::unique_ptr<Capture> fork(Source& source) const override {
    return std::make_unique<ClassicCapture>(*this, source);
  }

  // Of all records between the first, which sets the epoch, and the last, only the lengths are read.
  size_t pass(size_t limit) override {
    size_t passed = Capture::pass(std::min<size_t>(limit, 1));
    while (passed > 0 && passed < limit && source_.ensure(record_header_bytes)) {
      prefetch(source_.cursor());
      const uint32_t captured = captured_bytes(source_.cursor());
      if (!is_possible(source_.cursor(), captured) || !source_.ensure(record_header_bytes + captured)) break;
      source_.skip(record_header_bytes + captured);
      ++passed;
    }
    return passed + Capture::pass(limit - passed);
  }

  const uint8_t* seeming_record(const uint8_t* from, const uint8_t* end) const override {
    const uint8_t* last = from + std::min<ptrdiff_t>(end - from, furthest_guess_bytes);
    for (const uint8_t* at = from; at < last; ++at)
      if (seems_record(at, end)) return at;
    return nullptr;
  }

  [[gnu::flatten]] size_t take(Record* to, size_t limit) override { return take_from(*this, to, limit); }

  bool next(Record& record) override {
    if (!source_.ensure(record_header_bytes)) {
      if (source_.available() == 0 && source_.damage().empty()) return false;
      return stop("the file ends inside a record header");
    }
    const uint32_t captured = captured_bytes(source_.cursor());
    if (captured > longest_)
      return stop("a record claims an impossible length of " + std::to_string(captured) + " bytes");
    if (!is_possible(source_.cursor(), captured)) return stop("a record has an impossible header");
    if (!source_.ensure(record_header_bytes + captured)) return stop("the file ends inside a record");
    const uint8_t* at = source_.cursor();
    prefetch(at);
    set_time(record, file32(at), int64_t{file32(at + 4)} * fraction_ns_);
    record.captured_bytes = captured;
    record.frame_bytes = frame_bytes(at);
    record.link_type = interfaces_.front().link_type;
    record.data = at + record_header_bytes;
    source_.skip(record_header_bytes + captured);
    return true;
  }

 private:
  bool swapped_lengths(const uint8_t* record) const {
    return order_ == Order::frame_first || (order_ == Order::either && file32(record + 8) > file32(record + 12));
  }
  uint32_t captured_bytes(const uint8_t* record) const { return file32(record + (swapped_lengths(record) ? 12 : 8)); }
  uint32_t frame_bytes(const uint8_t* record) const { return file32(record + (swapped_lengths(record) ? 8 : 12)); }

  // Whether a record's fraction of a second and its lengths are possible. A damaged length leads to bytes of a packet, often
  // zeros, which must not be read as records.
  bool is_possible(const uint8_t* record, uint32_t captured) const {
    return file32(record + 4) < 1000000000 / fraction_ns_ && captured > 0 && captured <= longest_ && captured <= frame_bytes(record);
  }

  // Whether lengths lead from record to record.
  bool seems_record(const uint8_t* at, const uint8_t* end) const {
    for (int seen = 0; seen < enough_records && at != end; ++seen) {
      if (end - at < static_cast<ptrdiff_t>(record_header_bytes)) return false;
      const uint32_t captured = captured_bytes(at);
      if (!is_possible(at, captured) || end - at - static_cast<ptrdiff_t>(record_header_bytes) < captured) return false;
      at += record_header_bytes + captured;
    }
    return true;
  }

  enum class Order { captured_first, frame_first, either } order_ = Order::captured_first;
  int64_t fraction_ns_ = 1000;
  uint32_t longest_ = longest_record;
};

}  // namespace

std::unique_ptr<Capture> open_capture(Source& source) {
  const bool enough = source.ensure(file_header_bytes);
  if (source.available() == 0 && source.damage().empty()) refuse("is empty");
  if (source.available() == 0) throw FormatError("cannot be read: " + source.damage() + expected);
  const uint32_t magic = source.available() >= 4 ? load<uint32_t>(source.cursor()) : 0;
  if (magic == block_section) return open_pcapng(source);
  if (magic != magic_us && magic != magic_ns && magic != swap32(magic_us) && magic != swap32(magic_ns))
    refuse("is not a packet capture");
  if (!enough) refuse("ends inside its file header");
  return std::make_unique<ClassicCapture>(source);
}

}  // namespace samovar
