// A file mapped into memory that another program may truncate meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace samovar {

class Descriptor;

// Access to a mapped page behind the end of the file raises SIGBUS, which ends the program. While a mapping exists, such
// pages read as zeros and are recorded: callers must check shrunk() before they use what they read.
class Mapping {
 public:
  // Throws FormatError if the file cannot be mapped.
  Mapping(const Descriptor& file, size_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const void* data() const { return base_; }
  size_t bytes() const { return bytes_; }
  bool shrunk() const;
  // Maps the pages of these bytes at once if the kernel can (Linux 5.14): a page fault for every 16 pages costs twice as much.
  void map(const uint8_t* from, const uint8_t* to) const;
  // Releases the pages of these bytes, so that the last user does not have to unmap all pages.
  void unmap(const uint8_t* from, const uint8_t* to) const;

 private:
  void* base_ = nullptr;
  size_t bytes_;
  size_t place_ = 0;
};

}  // namespace samovar
