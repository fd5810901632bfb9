// Any bytes as a log of SIFTR: no crash, no hang, bounded memory, and the same rows whether the file is there at once or trickles in.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../src/core_stream.h"
#include "../src/core_siftr.h"

using namespace samovar;

namespace {

class Whole final : public Source {
 public:
  Whole(const uint8_t* data, size_t n) {
    begin_ = cursor_ = data;
    end_ = data + n;
  }
  bool whole() const override { return true; }

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

// Every value is looked at: a row whose columns were not set would be found by the sanitizers.
double rows_of(Source& source) {
  siftr::Log log;
  try {
    log.read(source);
    log.finish();
  } catch (const FormatError&) {
    return -1;
  }
  double rows = 0, sum = 0;
  for (const auto& chunk : log.chunks()) {
    rows += static_cast<double>(chunk.rows);
    for (size_t r = 0; r < chunk.rows; ++r) {
      const auto flow = static_cast<size_t>(chunk.integer[siftr::flow][r]);
      if (flow < 1 || flow > log.flows().size()) std::abort();
      sum += chunk.real[siftr::t_ns][r];
    }
  }
  if (!(sum <= 1e300)) std::abort();
  return rows;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n) {
  Whole whole(data, n);
  Trickle trickle(data, n);
  if (rows_of(whole) == rows_of(trickle)) return 0;
  std::fprintf(stderr, "another number of rows when the file trickles in\n");
  std::abort();
}
