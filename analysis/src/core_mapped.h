// A file in memory whose end another program may take away while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace samovar {

class Descriptor;

// Touching a mapped page behind the file's end raises SIGBUS, which ends the program. While a mapping stands, such
// pages read as zeros instead and the mapping says so: whoever reads must ask shrunk() before what was read counts.
class Mapping {
 public:
  // Throws FormatError when the file cannot be mapped.
  Mapping(const Descriptor& file, size_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const void* data() const { return base_; }
  size_t bytes() const { return bytes_; }
  bool shrunk() const;
  // Maps the pages of these bytes at once, where the kernel can (Linux 5.14): a fault for every 16 costs twice as much.
  void map(const uint8_t* from, const uint8_t* to) const;
  // Lets go of the pages that these bytes fill: who is first to be done with them spares the last to unmap them all.
  void unmap(const uint8_t* from, const uint8_t* to) const;

 private:
  void* base_ = nullptr;
  size_t bytes_;
  size_t place_ = 0;
};

}  // namespace samovar
