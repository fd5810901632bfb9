// Records of a capture file: classic pcap (draft-ietf-opsawg-pcap, pcap-savefile(5)) and pcapng
// (draft-ietf-opsawg-pcapng).
#pragma once

#include <algorithm>
#include <vector>

#include "core_bytes.h"
#include "core_source.h"

namespace samovar {

// Description of a capture's interface; a classic file has one.
struct Interface {
  uint32_t link_type = 0;
  uint32_t snaplen_bytes = 0;  // 0: no limit
  std::string name;
  bool binary_resolution = false;  // a time stamp's unit is 2^-exponent or 10^-exponent seconds
  int resolution_exponent = 6;
  int64_t offset_s = 0;  // added to its time stamps
  // Packets that were not captured for lack of space, in the interface and in the operating system; negative if unknown.
  double interface_drops = -1, system_drops = -1;
};

struct Record {
  int64_t t_ns = 0;  // since the whole second of the file's first record that has a time
  uint32_t captured_bytes = 0;
  uint32_t frame_bytes = 0;
  uint32_t link_type = 0;
  int interface = 1;  // from 1 over the whole file
  bool timed = true;
  const uint8_t* data = nullptr;
};

class Capture {
 public:
  virtual ~Capture() = default;
  // Returns the next complete record; its data are valid until the next call.
  virtual bool next(Record& record) = 0;
  // Takes complete records, at least one unless at the end and at most `limit`, and returns their number; their data are valid until the next call.
  virtual size_t take(Record* to, size_t limit) = 0;
  // Skips up to `limit` records and returns their number, which is smaller only at the end.
  virtual size_t pass(size_t limit) {
    Record record;
    size_t passed = 0;
    while (passed < limit && next(record)) ++passed;
    return passed;
  }
  // Returns where a record seems to begin at or after `from`; nullptr if nowhere. This is a guess: a caller finds out
  // whether it is right by skipping all earlier records.
  virtual const uint8_t* seeming_record(const uint8_t*, const uint8_t*) const { return nullptr; }
  virtual const char* format() const = 0;
  // Returns a reader of the rest of this capture from another source, whose bytes are those after this reader's cursor.
  virtual std::unique_ptr<Capture> fork(Source& source) const = 0;

  const std::vector<Interface>& interfaces() const { return interfaces_; }
  int64_t epoch_s() const { return epoch_s_; }
  // Why reading stopped before the end of the last record; empty if it did not.
  const std::string& truncation() const { return truncation_; }

 protected:
  explicit Capture(Source& source) : source_(source) {}
  Capture(const Capture& other, Source& source)
      : source_(source),
        swapped_(other.swapped_),
        interfaces_(other.interfaces_),
        epoch_s_(other.epoch_s_),
        any_(other.any_) {}
  uint32_t file32(const uint8_t* at) const {
    const uint32_t value = load<uint32_t>(at);
    return swapped_ ? swap32(value) : value;
  }
  uint16_t file16(const uint8_t* at) const {
    const uint16_t value = load<uint16_t>(at);
    return swapped_ ? swap16(value) : value;
  }
  bool stop(const std::string& why);
  // Takes records with the class's own next(), which the compiler can inline: a virtual call for each record costs time.
  template <typename Itself>
  size_t take_from(Itself& itself, Record* to, size_t limit) {
    const size_t most = source_.stays() ? limit : std::min<size_t>(limit, 1);
    size_t taken = 0;
    while (taken < most && itself.next(to[taken])) ++taken;
    return taken;
  }
  // Sets the record's time; the first one sets the epoch.
  void set_time(Record& record, int64_t second, int64_t nanosecond) {
    if (!any_) {
      any_ = true;
      epoch_s_ = second;
    }
    record.timed = true;
    // Seconds are below 2^53, nanoseconds (of a damaged file) below 2^43: nothing here exceeds 64 bits.
    const int64_t since_s = std::clamp(second - epoch_s_, -2 * furthest_s, 2 * furthest_s);
    record.t_ns = std::clamp(since_s * 1000000000 + nanosecond, -furthest_s * 1000000000, furthest_s * 1000000000);
  }

  Source& source_;
  bool swapped_ = false;
  std::vector<Interface> interfaces_;

 private:
  // Differences of two such times, 63 years either way, still fit 64 bits.
  static constexpr int64_t furthest_s = 2000000000;
  int64_t epoch_s_ = 0;
  bool any_ = false;
  std::string truncation_;
};

// libpcap's MAXIMUM_SNAPLEN: a longer record is a damaged length, unless the file announces longer ones.
constexpr uint32_t longest_record = 262144;
constexpr uint32_t longest_announced_record = 1u << 26;

// Reads the header of a file; throws FormatError if it is not a capture.
std::unique_ptr<Capture> open_capture(Source& source);

}  // namespace samovar
