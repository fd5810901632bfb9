// Reading numbers from packet bytes, and mixing them into a hash.
#pragma once

#include <cstdint>
#include <cstring>

namespace samovar {

inline uint16_t swap16(uint16_t x) { return __builtin_bswap16(x); }
inline uint32_t swap32(uint32_t x) { return __builtin_bswap32(x); }

template <typename T>
inline T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Network byte order; the hosts that run the analysis are little endian (checked in core_pcap.cpp).
inline uint16_t net16(const uint8_t* at) { return swap16(load<uint16_t>(at)); }
inline uint32_t net32(const uint8_t* at) { return swap32(load<uint32_t>(at)); }

// One multiplication spreads every input bit over the result (the idea of wyhash and mum).
__extension__ typedef unsigned __int128 Wide;
__extension__ typedef __int128 Signed;
inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15ULL) * (b ^ 0xD1B54A32D192ED03ULL);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Fewer than eight bytes, as if followed by zeros. Overlapping loads are used, because a copy of a variable number of
// bytes that is then loaded as one number stalls the processor.
inline uint64_t load_short(const uint8_t* at, size_t n) {
  if (n >= 4) return load<uint32_t>(at) | uint64_t{load<uint32_t>(at + n - 4)} << 8 * (n - 4);
  if (n == 0) return 0;
  return at[0] | uint64_t{at[n / 2]} << 8 * (n / 2) | uint64_t{at[n - 1]} << 8 * (n - 1);
}

// The length is hashed too, so that bytes differ from the same bytes followed by zeros.
inline uint64_t mix_bytes(uint64_t hash, const uint8_t* at, size_t n) {
  hash = mix(hash, n);
  for (; n >= 8; at += 8, n -= 8) hash = mix(hash, load<uint64_t>(at));
  return n ? mix(hash, load_short(at, n)) : hash;
}

}  // namespace samovar
