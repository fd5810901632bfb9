// The same bytes at once and in pieces: every fuzzed reader must read both the same way.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../src/core_stream.h"

namespace samovar {

[[noreturn]] inline void wrong(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

class Whole final : public Source {
 public:
  Whole(const uint8_t* data, size_t n) {
    begin_ = cursor_ = data;
    end_ = data + n;
  }
  bool whole() const override { return true; }
  void rewind_to(const uint8_t* at) override { cursor_ = at; }

 protected:
  bool fill(size_t) override { return false; }
};

class Trickle final : public Stream {
 public:
  Trickle(const uint8_t* data, size_t n) : Stream(64), data_(data), left_(n) {}

 protected:
  size_t read_into(uint8_t* to, size_t room) override {
    const size_t n = std::min({room, left_, size_t{37}});
    if (n) std::memcpy(to, data_, n);
    data_ += n;
    left_ -= n;
    return n;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// For readers that are compared by their number of rows only.
template <typename Rows>
int same_rows(const uint8_t* data, size_t n, Rows rows_of) {
  Whole whole(data, n);
  Trickle trickle(data, n);
  if (rows_of(whole) != rows_of(trickle)) wrong("the number of rows differs if the file arrives in pieces");
  return 0;
}

}  // namespace samovar
