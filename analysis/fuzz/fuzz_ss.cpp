// Any bytes as output of ss: no crash, no hang, bounded memory, and the same rows whether the file is there at once or trickles in.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../src/core_stream.h"
#include "../src/core_ss.h"

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

double rows_of(Source& source) {
  try {
    const ss::Table table = ss::read(source);
    for (const auto& column : table.real)
      if (column.size() != table.state.size()) std::abort();
    for (const int code : table.cc)
      if (code < 0 || static_cast<size_t>(code) > table.ccs.all().size()) std::abort();
    return static_cast<double>(table.state.size());
  } catch (const FormatError&) {
    return -1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n) {
  Whole whole(data, n);
  Trickle trickle(data, n);
  if (rows_of(whole) == rows_of(trickle)) return 0;
  std::fprintf(stderr, "another number of rows when the file trickles in\n");
  std::abort();
}
