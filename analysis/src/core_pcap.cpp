#include "core_pcap.h"

#include <algorithm>

#include "core_bytes.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "core_bytes.h reads network order by swapping");

namespace samovar {
namespace {

constexpr size_t file_header_bytes = 24;
constexpr size_t record_header_bytes = 16;
// libpcap's MAXIMUM_SNAPLEN: a longer record is a damaged length, not a packet.
constexpr uint32_t longest_record = 262144;
constexpr const char* accepted =
    "; a classic pcap file (magic a1b2c3d4 or a1b23c4d, either byte order), plain or gzip-compressed, would "
    "have been accepted";

}  // namespace

Capture::Capture(Source& source) : source_(source) {
  const bool enough = source_.ensure(file_header_bytes);
  const uint8_t* at = source_.cursor();
  if (source_.available() == 0) throw FormatError(std::string("is empty") + accepted);
  const uint32_t magic = source_.available() >= 4 ? load<uint32_t>(at) : 0;
  if (magic == 0x0A0D0D0A)
    throw FormatError(std::string("is a pcapng file") + accepted +
                      " (convert it with `tcpdump -r in.pcapng -w out.pcap`)");
  swapped_ = magic == 0xD4C3B2A1 || magic == 0x4D3CB2A1;
  const uint32_t kind = swapped_ ? swap32(magic) : magic;
  if (kind != 0xA1B2C3D4 && kind != 0xA1B23C4D)
    throw FormatError(std::string("is not a packet capture") + accepted);
  if (!enough) throw FormatError(std::string("ends inside its file header") + accepted);
  fraction_ns_ = kind == 0xA1B23C4D ? 1 : 1000;
  snaplen_ = file32(at + 16);
  link_type_ = file32(at + 20) & 0x03FFFFFF;  // the bits above tell the length of a frame check sequence
  source_.skip(file_header_bytes);
}

uint32_t Capture::file32(const uint8_t* at) const {
  const uint32_t value = load<uint32_t>(at);
  return swapped_ ? swap32(value) : value;
}

bool Capture::stop(std::string why) {
  truncation_ = source_.damage().empty() ? std::move(why) : source_.damage();
  return false;
}

bool Capture::next(Record& record) {
  if (!source_.ensure(record_header_bytes)) {
    if (source_.available() == 0 && source_.damage().empty()) return false;
    return stop("the file ends inside a record header");
  }
  const uint8_t* at = source_.cursor();
  const uint32_t captured = file32(at + 8);
  if (captured > std::max(snaplen_, longest_record) || captured > (1u << 26))
    return stop("a record claims an impossible length");
  if (!source_.ensure(record_header_bytes + captured)) return stop("the file ends inside a record");
  at = source_.cursor();
  const int64_t second = file32(at);
  if (!any_) {
    any_ = true;
    epoch_s_ = second;
  }
  record = {(second - epoch_s_) * 1000000000 + int64_t{file32(at + 4)} * fraction_ns_, captured,
            file32(at + 12), at + record_header_bytes};
  source_.skip(record_header_bytes + captured);
  return true;
}

size_t Capture::count() {
  const uint8_t* here = source_.cursor();
  const bool any = any_;
  size_t n = 0;
  Record record;
  while (next(record)) ++n;
  source_.rewind_to(here);
  any_ = any;
  truncation_.clear();
  return n;
}

}  // namespace samovar
