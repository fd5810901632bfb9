#include "core_source.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core_mapped.h"
#include "core_stream.h"

namespace samovar {

bool Source::pass(uint64_t n) {
  while (n > 0) {
    if (!ensure(1)) return false;
    const size_t step = static_cast<size_t>(std::min<uint64_t>(n, available()));
    skip(step);
    n -= step;
  }
  return true;
}

namespace {

// Larger files are not counted ahead: that would cost as much as reading them.
constexpr size_t largest_counted_bytes = size_t{1} << 31;

class MappedFile final : public Source {
 public:
  MappedFile(const Descriptor& file, size_t bytes) : mapping_(file, bytes) {
    begin_ = cursor_ = static_cast<const uint8_t*>(mapping_.data());
    end_ = begin_ + bytes;
  }
  bool whole() const override { return mapping_.bytes() <= largest_counted_bytes; }
  void rewind_to(const uint8_t* at) override { cursor_ = at; }
  void map(const uint8_t* from, const uint8_t* to) const override { mapping_.map(from, to); }
  void unmap(const uint8_t* from, const uint8_t* to) const override { mapping_.unmap(from, to); }
  void check() const override {
    if (mapping_.shrunk())
      throw FormatError("became shorter while it was read; read it again when no program writes to it");
  }

 protected:
  bool fill(size_t) override { return false; }

 private:
  Mapping mapping_;
};

bool starts_with(const uint8_t* head, size_t n, std::initializer_list<uint8_t> mark) {
  return n >= mark.size() && std::equal(mark.begin(), mark.end(), head);
}

// RFC 8878, section 3.1: a frame or a skippable frame.
bool is_zstd(const uint8_t* head, size_t n) {
  return starts_with(head, n, {0x28, 0xB5, 0x2F, 0xFD}) ||
         (n >= 4 && (head[0] & 0xF0) == 0x50 && head[1] == 0x2A && head[2] == 0x4D && head[3] == 0x18);
}

void refuse_other_compressions(const uint8_t* head, size_t n) {
  const char* advice = "; expected a plain, gzip- or zstd-compressed file";
  if (starts_with(head, n, {0xFD, '7', 'z', 'X', 'Z'}))
    throw FormatError(std::string("is xz-compressed") + advice);
  if (starts_with(head, n, {'B', 'Z', 'h'})) throw FormatError(std::string("is bzip2-compressed") + advice);
  if (starts_with(head, n, {0x04, 0x22, 0x4D, 0x18}))
    throw FormatError(std::string("is lz4-compressed") + advice);
}

}  // namespace

std::unique_ptr<Source> open_source(const std::string& path) {
  Descriptor file(path);
  struct stat about{};
  if (::fstat(file.get(), &about) != 0)
    throw FormatError(std::string("cannot be examined (") + std::strerror(errno) + ")");
  if (!S_ISREG(about.st_mode)) throw FormatError("is not a regular file");
  uint8_t head[6];
  const ssize_t got = ::pread(file.get(), head, sizeof head, 0);
  const size_t n = got > 0 ? static_cast<size_t>(got) : 0;
  refuse_other_compressions(head, n);
  if (starts_with(head, n, {0x1F, 0x8B})) return open_gzip(std::move(file));
  if (is_zstd(head, n)) return open_zstd(std::move(file));
  return std::make_unique<MappedFile>(file, static_cast<size_t>(about.st_size));
}

}  // namespace samovar
