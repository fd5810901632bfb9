// Lines of a text file and the numbers in them, without copying either.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core_source.h"

namespace samovar {

// Lines without their end (LF or CR LF). Every line is followed by a byte that is not a digit, so that scanning a number ends.
class Lines {
 public:
  explicit Lines(Source& source) : source_(source) {}
  // Returns false at the end; the view is valid until the next call. Throws FormatError for a line of over 64 MiB.
  bool next(std::string_view& line);
  size_t number() const { return number_; }
  // Whether the last line has no line end, because the log was cut off.
  bool cut() const { return cut_; }

 private:
  Source& source_;
  std::string last_;
  size_t spent_ = 0;
  size_t number_ = 0;
  bool cut_ = false;
};

// Calls `take(part)` for each part of a text between separators.
template <typename Take>
void split(std::string_view text, char separator, Take take) {
  while (true) {
    const size_t at = text.find(separator);
    take(text.substr(0, at));
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + 1);
  }
}

// A cursor over a line. Each reader returns false for unexpected text and leaves the cursor there.
struct Scanner {
  const char* at;
  const char* end;
  explicit Scanner(std::string_view text) : at(text.data()), end(text.data() + text.size()) {}

  bool done() const { return at == end; }
  bool take(char wanted) {
    if (at == end || *at != wanted) return false;
    ++at;
    return true;
  }
  // Up to 18 digits; these logs have no longer values.
  bool number(int64_t& value) {
    const char* from = at;
    uint64_t sum = 0;
    while (at != end && static_cast<unsigned>(*at - '0') <= 9) sum = sum * 10 + static_cast<unsigned>(*at++ - '0');
    value = static_cast<int64_t>(sum);
    return at != from && at - from <= 18;
  }
  bool integer(int64_t& value) {
    const bool negative = take('-');
    if (!number(value)) return false;
    if (negative) value = -value;
    return true;
  }
  bool hexadecimal(int64_t& value);
  std::string_view until(char mark);
};

// The whole text as a decimal number with a point or comma; NaN if it is not one.
double decimal(std::string_view text);

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

}  // namespace samovar
