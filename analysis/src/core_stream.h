// Sources that deliver bytes in order and hold them only while they are needed.
#pragma once

#include <utility>
#include <vector>

#include "core_source.h"

namespace samovar {

// An open file that closes itself.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path);
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class Stream : public Source {
 protected:
  explicit Stream(size_t room = 1 << 20);
  // Reads up to `room` more bytes; returns 0 at the end, with the reason in damage_ if it is not the stream's own end.
  virtual size_t read_into(uint8_t* to, size_t room) = 0;
  bool fill(size_t wanted) override;
  bool stays() const override { return false; }

 private:
  std::vector<uint8_t> buffer_;
};

std::unique_ptr<Source> open_gzip(Descriptor file);
std::unique_ptr<Source> open_zstd(Descriptor file);

}  // namespace samovar
