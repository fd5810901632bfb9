// SHA-256 (FIPS 180-4): a trial's files against what its manifest says of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace samovar {

class Sha256 {
 public:
  void add(const void* data, size_t size);
  // Ends the message; nothing can be added after that.
  std::string hex();

 private:
  void block(const uint8_t* at);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_{};
  size_t held_ = 0;
  uint64_t bytes_ = 0;
};

// Hexadecimal digest of a file; empty where it cannot be read to its end.
std::string sha256_of_file(const std::string& path);

}  // namespace samovar
