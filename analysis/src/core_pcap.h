// Records of a classic pcap file (draft-ietf-opsawg-pcap; pcap-savefile(5)).
#pragma once

#include "core_source.h"

namespace samovar {

struct Record {
  int64_t t_ns;  // since the whole second of the file's first record
  uint32_t captured_bytes;
  uint32_t frame_bytes;
  const uint8_t* data;
};

class Capture {
 public:
  // Reads the file header; throws FormatError when it is not one of a classic pcap file.
  explicit Capture(Source& source);

  // The next whole record; its data stay valid until the next call.
  bool next(Record& record);
  // Records still to come. Only for a whole() source, which is left where it was.
  size_t count();

  uint32_t link_type() const { return link_type_; }
  uint32_t snaplen_bytes() const { return snaplen_; }
  bool nanoseconds() const { return fraction_ns_ == 1; }
  int64_t epoch_s() const { return epoch_s_; }
  // Why reading stopped before the end of the last record; empty when it did not.
  const std::string& truncation() const { return truncation_; }

 private:
  uint32_t file32(const uint8_t* at) const;
  bool stop(std::string why);

  Source& source_;
  bool swapped_ = false;
  int64_t fraction_ns_ = 1000;
  uint32_t snaplen_ = 0;
  uint32_t link_type_ = 0;
  int64_t epoch_s_ = 0;
  bool any_ = false;
  std::string truncation_;
};

}  // namespace samovar
