#include "core_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace samovar {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw FormatError(std::string("cannot be opened (") + std::strerror(errno) + ")");
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class MappedFile final : public Source {
 public:
  MappedFile(const Descriptor& file, size_t bytes) : bytes_(bytes) {
    if (bytes_ == 0) return;
    base_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (base_ == MAP_FAILED)
      throw FormatError(std::string("cannot be mapped (") + std::strerror(errno) + ")");
    ::madvise(base_, bytes_, MADV_SEQUENTIAL);
    cursor_ = static_cast<const uint8_t*>(base_);
    end_ = cursor_ + bytes_;
  }
  ~MappedFile() override {
    if (bytes_) ::munmap(base_, bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  bool whole() const override { return true; }
  void rewind_to(const uint8_t* at) override { cursor_ = at; }

 protected:
  bool fill(size_t) override { return false; }

 private:
  void* base_ = nullptr;
  size_t bytes_;
};

class InflatedFile final : public Source {
 public:
  explicit InflatedFile(Descriptor& file) : stream_(::gzdopen(file.get(), "rb")), buffer_(1 << 20) {
    if (!stream_) throw FormatError("cannot be read as gzip");
    file.release();
    ::gzbuffer(stream_, 1 << 17);
    cursor_ = end_ = buffer_.data();
  }
  ~InflatedFile() override { ::gzclose(stream_); }
  InflatedFile(const InflatedFile&) = delete;
  InflatedFile& operator=(const InflatedFile&) = delete;

 protected:
  bool fill(size_t wanted) override {
    size_t kept = available();
    std::vector<uint8_t> larger;
    uint8_t* to = buffer_.data();
    if (wanted > buffer_.size()) {
      larger.resize(wanted);
      to = larger.data();
    }
    std::memmove(to, cursor_, kept);
    if (!larger.empty()) buffer_.swap(larger);
    kept += inflate_into(buffer_.data() + kept, buffer_.size() - kept);
    cursor_ = buffer_.data();
    end_ = cursor_ + kept;
    return kept >= wanted;
  }

 private:
  // gzread gives what was whole before it reports the damage behind it.
  size_t inflate_into(uint8_t* to, size_t room) {
    size_t got = 0;
    while (got < room && damage_.empty()) {
      const int n = ::gzread(stream_, to + got, static_cast<unsigned>(std::min<size_t>(room - got, 1 << 30)));
      if (n > 0) got += static_cast<size_t>(n);
      if (n < static_cast<int>(std::min<size_t>(room - got, 1))) note_end();
      if (n <= 0) break;
    }
    return got;
  }
  void note_end() {
    int code = Z_OK;
    const char* text = ::gzerror(stream_, &code);
    if (code == Z_BUF_ERROR) damage_ = "the gzip stream ends before its end mark";
    else if (code != Z_OK && code != Z_STREAM_END)
      damage_ = std::string("the gzip stream is damaged (") + text + ")";
  }

  gzFile stream_;
  std::vector<uint8_t> buffer_;
};

bool starts_with(const uint8_t* head, size_t n, std::initializer_list<uint8_t> mark) {
  return n >= mark.size() && std::equal(mark.begin(), mark.end(), head);
}

void refuse_other_compressions(const uint8_t* head, size_t n) {
  const char* advice = "; a plain or gzip-compressed capture would have been accepted";
  if (starts_with(head, n, {0x28, 0xB5, 0x2F, 0xFD}))
    throw FormatError(std::string("is zstd-compressed") + advice);
  if (starts_with(head, n, {0xFD, '7', 'z', 'X', 'Z'}))
    throw FormatError(std::string("is xz-compressed") + advice);
  if (starts_with(head, n, {'B', 'Z', 'h'})) throw FormatError(std::string("is bzip2-compressed") + advice);
}

}  // namespace

std::unique_ptr<Source> open_source(const std::string& path) {
  Descriptor file(path);
  struct stat about{};
  if (::fstat(file.get(), &about) != 0)
    throw FormatError(std::string("cannot be examined (") + std::strerror(errno) + ")");
  if (!S_ISREG(about.st_mode))
    throw FormatError("is not a regular file; a capture file would have been accepted");
  uint8_t head[6];
  const ssize_t got = ::pread(file.get(), head, sizeof head, 0);
  const size_t n = got > 0 ? static_cast<size_t>(got) : 0;
  refuse_other_compressions(head, n);
  if (starts_with(head, n, {0x1F, 0x8B})) return std::make_unique<InflatedFile>(file);
  return std::make_unique<MappedFile>(file, static_cast<size_t>(about.st_size));
}

}  // namespace samovar
