#include "core_pcapng.h"

#include <algorithm>
#include <limits>

#include "core_bytes.h"

namespace samovar {
namespace {

constexpr uint32_t block_interface = 1, block_packet = 2, block_simple = 3, block_statistics = 5,
                   block_enhanced = 6;
constexpr uint32_t byte_order = 0x1A2B3C4D;
constexpr uint16_t option_end = 0, option_name = 2, option_interface_drops = 5, option_system_drops = 7,
                   option_resolution = 9, option_offset = 14;
constexpr size_t frame_bytes = 12;  // a block's type and its length, before and after
constexpr size_t most_interfaces = 65536;
// Limit for blocks of descriptions: names and comments are short.
constexpr uint32_t longest_description = 1u << 20;

// One block in the source's window, without the type and lengths around it.
struct Body {
  const uint8_t* at;
  size_t n;
  bool has(size_t wanted) const { return n >= wanted; }
};

class NgCapture final : public Capture {
 public:
  explicit NgCapture(Source& source) : Capture(source) {
    if (!begin_section()) throw FormatError("is a pcapng file whose section header is damaged: " + truncation());
  }
  NgCapture(const NgCapture& other, Source& source) : Capture(other, source), section_(other.section_) {}
  const char* format() const override { return "pcapng"; }
  std::unique_ptr<Capture> fork(Source& source) const override { return std::make_unique<NgCapture>(*this, source); }

  size_t take(Record* to, size_t limit) override { return take_from(*this, to, limit); }

  bool next(Record& record) override {
    for (;;) {
      if (!source_.ensure(frame_bytes)) {
        if (source_.available() == 0 && source_.damage().empty()) return false;
        return stop("the file ends inside a block header");
      }
      const uint32_t type = file32(source_.cursor());
      if (type == block_section) {
        if (!begin_section()) return false;
        continue;
      }
      const uint32_t length = file32(source_.cursor() + 4);
      if (length < frame_bytes || length % 4 != 0)
        return stop("a block claims an impossible length of " + std::to_string(length) + " bytes");
      const bool is_packet = type == block_enhanced || type == block_packet || type == block_simple;
      if (!is_packet && type != block_interface && type != block_statistics) {
        if (!source_.pass(length)) return stop("the file ends inside a block");
        continue;
      }
      if (length > (is_packet ? 2 * longest_announced_record : longest_description))
        return stop("a block claims an impossible length of " + std::to_string(length) + " bytes");
      if (!source_.ensure(length)) return stop("the file ends inside a block");
      if (file32(source_.cursor() + length - 4) != length)
        return stop("a block's two lengths differ");
      const Body body{source_.cursor() + 8, length - frame_bytes};
      if (is_packet ? !read_packet(type, body, record) : !read_description(type, body)) return false;
      source_.skip(length);
      if (is_packet) return true;
    }
  }

 private:
  bool begin_section() {
    if (!source_.ensure(28)) return stop("the file ends inside a section header");
    const uint8_t* at = source_.cursor();
    const uint32_t mark = load<uint32_t>(at + 8);
    if (mark != byte_order && mark != swap32(byte_order)) return stop("a section has no byte-order mark");
    swapped_ = mark != byte_order;
    const uint32_t length = file32(at + 4);
    const uint16_t version = file16(at + 12);
    if (version != 1)
      return stop("a section has version " + std::to_string(version) + "; expected version 1");
    if (length < 28 || length % 4 != 0)
      return stop("a section header claims an impossible length of " + std::to_string(length) + " bytes");
    if (!source_.pass(length)) return stop("the file ends inside a section header");
    section_ = interfaces_.size();  // each section counts its interfaces anew
    return true;
  }

  bool read_description(uint32_t type, Body body) {
    return type == block_interface ? read_interface(body) : read_statistics(body);
  }

  bool read_interface(Body body) {
    if (!body.has(8)) return stop("an interface's description is too short");
    if (interfaces_.size() == most_interfaces) return stop("the file describes too many interfaces");
    Interface interface;
    interface.link_type = file16(body.at);
    interface.snaplen_bytes = file32(body.at + 4);
    each_option(body, 8, [&](uint16_t code, const uint8_t* at, size_t n) {
      if (code == option_name) interface.name.assign(at, at + n);
      if (code == option_resolution && n >= 1) {
        interface.binary_resolution = at[0] & 0x80;
        interface.resolution_exponent = at[0] & 0x7F;
      }
      if (code == option_offset && n >= 8) interface.offset_s = static_cast<int64_t>(file64(at));
    });
    if (interface.resolution_exponent > (interface.binary_resolution ? 63 : 19))
      return stop("an interface's time stamps have units finer than 64 bits can represent");
    interfaces_.push_back(std::move(interface));
    return true;
  }

  bool read_statistics(Body body) {
    if (!body.has(12) || !knows(file32(body.at))) return true;
    Interface& interface = interfaces_[section_ + file32(body.at)];
    each_option(body, 12, [&](uint16_t code, const uint8_t* at, size_t n) {
      if (n < 8) return;
      if (code == option_interface_drops) interface.interface_drops = static_cast<double>(file64(at));
      if (code == option_system_drops) interface.system_drops = static_cast<double>(file64(at));
    });
    return true;
  }

  bool read_packet(uint32_t type, Body body, Record& record) {
    const size_t head = type == block_simple ? 4 : 20;
    if (!body.has(head)) return stop("a packet's block is too short");
    const uint32_t number = type == block_simple     ? 0
                            : type == block_enhanced ? file32(body.at)
                                                     : file16(body.at);
    if (!knows(number))
      return stop("a packet refers to interface " + std::to_string(number) + ", which the file does not describe");
    const Interface& interface = interfaces_[section_ + number];
    record.interface = static_cast<int>(section_ + number) + 1;
    record.link_type = interface.link_type;
    record.data = body.at + head;
    record.frame_bytes = file32(body.at + head - 4);
    if (type == block_simple) {
      // This block has neither a time nor the captured length.
      const uint32_t limit = interface.snaplen_bytes ? interface.snaplen_bytes : record.frame_bytes;
      record.captured_bytes = std::min(record.frame_bytes, limit);
      record.timed = false;
    } else {
      record.captured_bytes = file32(body.at + 12);
      stamp(record, uint64_t{file32(body.at + 4)} << 32 | file32(body.at + 8), interface);
    }
    if (record.captured_bytes > body.n - head) return stop("a packet is longer than its block");
    return true;
  }

  void stamp(Record& record, uint64_t count, const Interface& interface) {
    const uint64_t unit = per_second(interface);
    const Wide fraction_ns = static_cast<Wide>(count % unit) * 1000000000 / unit;
    // A count of whole seconds may have 64 bits, and the offset may have another 63.
    constexpr Signed furthest_s = Signed{1} << 52;
    const Signed second = static_cast<Signed>(count / unit) + interface.offset_s;
    set_time(record, static_cast<int64_t>(std::clamp<Signed>(second, -furthest_s, furthest_s)),
             static_cast<int64_t>(fraction_ns));
  }

  static uint64_t per_second(const Interface& interface) {
    if (interface.binary_resolution) return uint64_t{1} << interface.resolution_exponent;
    uint64_t unit = 1;
    for (int i = 0; i < interface.resolution_exponent; ++i) unit *= 10;
    return unit;
  }

  template <typename Visit>
  void each_option(Body body, size_t from, Visit visit) const {
    while (body.n >= from + 4) {
      const uint16_t code = file16(body.at + from), n = file16(body.at + from + 2);
      from += 4;
      if (code == option_end || body.n - from < n) return;
      visit(code, body.at + from, n);
      from += (size_t{n} + 3) / 4 * 4;
    }
  }

  uint64_t file64(const uint8_t* at) const {
    const uint64_t value = load<uint64_t>(at);
    return swapped_ ? __builtin_bswap64(value) : value;
  }
  bool knows(uint32_t number) const { return number < interfaces_.size() - section_; }

  size_t section_ = 0;  // interfaces described before this section
};

}  // namespace

std::unique_ptr<Capture> open_pcapng(Source& source) { return std::make_unique<NgCapture>(source); }

}  // namespace samovar
