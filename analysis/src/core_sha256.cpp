#include "core_sha256.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace samovar {
namespace {

// FIPS 180-4, section 4.2.2.
constexpr std::array<uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr uint32_t turned(uint32_t x, int by) { return (x >> by) | (x << (32 - by)); }

uint32_t word_at(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
}

}  // namespace

void Sha256::block(const uint8_t* at) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = word_at(at + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t early = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t late = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + early + w[i - 7] + late;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    const uint32_t two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  const std::array<uint32_t, 8> after{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += after[i];
}

void Sha256::add(const void* data, size_t size) {
  if (size == 0) return;
  const auto* at = static_cast<const uint8_t*>(data);
  bytes_ += size;
  if (held_ > 0) {
    const size_t taken = std::min(size, rest_.size() - held_);
    std::memcpy(rest_.data() + held_, at, taken);
    held_ += taken, at += taken, size -= taken;
    if (held_ < rest_.size()) return;
    block(rest_.data());
    held_ = 0;
  }
  for (; size >= rest_.size(); at += rest_.size(), size -= rest_.size()) block(at);
  std::memcpy(rest_.data(), at, size);
  held_ = size;
}

std::string Sha256::hex() {
  const uint64_t bits = bytes_ * 8;
  std::array<uint8_t, 72> tail{0x80};
  const size_t zeros = (held_ < 56 ? 56 : 120) - held_;
  for (size_t i = 0; i < 8; ++i) tail[zeros + i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  add(tail.data(), zeros + 8);
  std::string text;
  for (const uint32_t word : state_) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", word);
    text += digits;
  }
  return text;
}

std::string sha256_of_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return {};
  std::vector<uint8_t> buffer(1 << 18);
  Sha256 sum;
  size_t size;
  while ((size = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0) sum.add(buffer.data(), size);
  return std::ferror(file.get()) ? std::string{} : sum.hex();
}

}  // namespace samovar
