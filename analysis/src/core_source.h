// The bytes of a capture or log: a mapped file or a decompressed stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace samovar {

// The file is not what was expected; the text says what it is instead, or what was expected.
struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A window on the bytes to be read. Subclasses only extend the window.
class Source {
 public:
  virtual ~Source() = default;
  bool ensure(size_t wanted) { return available() >= wanted || fill(wanted); }
  size_t available() const { return static_cast<size_t>(end_ - cursor_); }
  const uint8_t* cursor() const { return cursor_; }
  void skip(size_t n) { cursor_ += n; }
  // Skips bytes without holding all of them; false if the source ends before.
  bool pass(uint64_t n);
  // Bytes before the cursor; of a compressed file, decompressed.
  uint64_t offset() const { return passed_ + static_cast<uint64_t>(cursor_ - begin_); }

  // Whether all bytes are present, so that going back is possible and counting ahead is cheap.
  virtual bool whole() const { return false; }
  virtual void rewind_to(const uint8_t*) {}
  // Whether bytes before the cursor stay where they are.
  virtual bool stays() const { return true; }
  // Announces bytes that are about to be read, or are no longer needed, to save page faults.
  virtual void map(const uint8_t*, const uint8_t*) const {}
  virtual void unmap(const uint8_t*, const uint8_t*) const {}
  // Throws FormatError if the file changed while it was read. Call before results are used.
  virtual void check() const {}
  // Why the stream ended before its own end mark; empty if it did not.
  const std::string& damage() const { return damage_; }

 protected:
  virtual bool fill(size_t wanted) = 0;
  const uint8_t* begin_ = nullptr;
  const uint8_t* cursor_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint64_t passed_ = 0;  // before begin_
  std::string damage_;
};

// Bytes of another source, which must outlive this one.
class Span final : public Source {
 public:
  Span(const uint8_t* begin, size_t n) {
    begin_ = cursor_ = begin;
    end_ = begin + n;
  }

 protected:
  bool fill(size_t) override { return false; }
};

// Opens a plain file as a mapping, a gzip or zstd file as a stream; throws FormatError.
std::unique_ptr<Source> open_source(const std::string& path);

}  // namespace samovar
