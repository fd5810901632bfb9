// Lines of a text file and the numbers in them, without a copy of either.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core_source.h"

namespace samovar {

// Lines without their end (LF or CR LF). Every line is followed by a byte that is no digit, so scanning a number ends.
class Lines {
 public:
  explicit Lines(Source& source) : source_(source) {}
  // False at the end; the view stays valid until the next call. Throws FormatError on a line of over 64 MiB.
  bool next(std::string_view& line);
  size_t number() const { return number_; }
  // The last line had no line end: its writer was cut off.
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

// A cursor over a line: each reader returns false, and leaves the cursor where it was wrong, on other text.
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
  // Up to 18 digits; more cannot be a value of these logs.
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

// A decimal number with point or decimal comma, all of the text; NaN when it is none.
double decimal(std::string_view text);

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

}  // namespace samovar
