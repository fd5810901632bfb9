#include "core_text.h"

#include <cstring>

namespace samovar {
namespace {

constexpr size_t first_look = size_t{1} << 14;
constexpr size_t longest_line = size_t{1} << 26;

const char* find_line_end(const Source& source, size_t from) {
  const auto* text = reinterpret_cast<const char*>(source.cursor());
  return static_cast<const char*>(std::memchr(text + from, '\n', source.available() - from));
}

std::string_view without_return(const char* text, size_t n) {
  return {text, n > 0 && text[n - 1] == '\r' ? n - 1 : n};
}

}  // namespace

bool Lines::next(std::string_view& line) {
  source_.skip(spent_);
  spent_ = 0;
  size_t seen = 0;
  const char* stop = source_.available() ? find_line_end(source_, 0) : nullptr;
  for (size_t wanted = first_look; !stop; wanted *= 2) {
    if (wanted > longest_line) throw FormatError("line " + std::to_string(number_ + 1) + " is longer than 64 MiB");
    seen = source_.available();
    const bool more = source_.ensure(wanted);
    if (source_.available() > seen) stop = find_line_end(source_, seen);
    if (!more) break;
  }
  const auto* text = reinterpret_cast<const char*>(source_.cursor());
  const size_t n = stop ? static_cast<size_t>(stop - text) : source_.available();
  if (!stop && n == 0) return false;
  ++number_;
  spent_ = stop ? n + 1 : n;
  if (stop) {
    line = without_return(text, n);
    return true;
  }
  cut_ = true;
  last_.assign(text, n);
  line = without_return(last_.data(), n);
  return true;
}

bool Scanner::hexadecimal(int64_t& value) {
  const char* from = at;
  uint64_t sum = 0;
  for (; at != end; ++at) {
    const char lower = static_cast<char>(*at | 0x20);
    const unsigned digit = static_cast<unsigned>(*at - '0');
    if (digit <= 9) sum = sum << 4 | digit;
    else if (lower >= 'a' && lower <= 'f') sum = sum << 4 | static_cast<unsigned>(lower - 'a' + 10);
    else break;
  }
  value = static_cast<int64_t>(sum);
  return at != from && at - from <= 15;
}

std::string_view Scanner::until(char mark) {
  const char* from = at;
  const auto* found = static_cast<const char*>(std::memchr(at, mark, static_cast<size_t>(end - at)));
  at = found ? found : end;
  return {from, static_cast<size_t>(at - from)};
}

double decimal(std::string_view text) {
  Scanner scan(text);
  const double sign = scan.take('-') ? -1 : 1;
  int64_t whole = 0, part = 0;
  if (!scan.number(whole)) return missing;
  if (scan.done()) return sign * static_cast<double>(whole);
  if (!scan.take('.') && !scan.take(',')) return missing;
  const char* from = scan.at;
  if (!scan.number(part) || !scan.done()) return missing;
  return sign * (static_cast<double>(whole) + static_cast<double>(part) / std::pow(10, scan.at - from));
}

}  // namespace samovar
