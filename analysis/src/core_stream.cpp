#include "core_stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace samovar {

Descriptor::Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) throw FormatError(std::string("cannot be opened (") + std::strerror(errno) + ")");
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Stream::Stream(size_t room) : buffer_(room) { begin_ = cursor_ = end_ = buffer_.data(); }

// The buffer grows with the bytes read, never with the length that a record claims.
bool Stream::fill(size_t wanted) {
  size_t kept = available();
  passed_ += static_cast<uint64_t>(cursor_ - begin_);
  if (kept) std::memmove(buffer_.data(), cursor_, kept);
  while (kept < wanted) {
    if (kept == buffer_.size()) buffer_.resize(2 * kept);
    const size_t got = read_into(buffer_.data() + kept, buffer_.size() - kept);
    if (got == 0) break;
    kept += got;
  }
  begin_ = cursor_ = buffer_.data();
  end_ = begin_ + kept;
  return kept >= wanted;
}

namespace {

class GzipStream final : public Stream {
 public:
  explicit GzipStream(Descriptor& file) : stream_(::gzdopen(file.get(), "rb")) {
    if (!stream_) throw FormatError("cannot be read as gzip");
    file.release();
    ::gzbuffer(stream_, 1 << 17);
  }
  ~GzipStream() override { ::gzclose(stream_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

 protected:
  // gzread returns intact data before it reports damage behind it.
  size_t read_into(uint8_t* to, size_t room) override {
    if (!damage_.empty()) return 0;
    const unsigned asked = static_cast<unsigned>(std::min<size_t>(room, 1 << 30));
    const int n = ::gzread(stream_, to, asked);
    if (n < static_cast<int>(asked)) note_end();
    return n > 0 ? static_cast<size_t>(n) : 0;
  }

 private:
  void note_end() {
    int code = Z_OK;
    const char* text = ::gzerror(stream_, &code);
    if (code == Z_BUF_ERROR) damage_ = "the gzip stream ends before its end mark";
    else if (code != Z_OK && code != Z_STREAM_END)
      damage_ = std::string("the gzip stream is damaged (") + text + ")";
  }
  gzFile stream_;
};

// Frames of RFC 8878, one after the other. The library rejects frames that need a window of more than 128 MiB (zstd --long=28
// and above), so memory is bounded.
class ZstdStream final : public Stream {
 public:
  explicit ZstdStream(Descriptor file)
      : file_(std::move(file)), context_(::ZSTD_createDCtx()), packed_(::ZSTD_DStreamInSize()) {
    if (!context_) throw std::bad_alloc();
  }
  ~ZstdStream() override { ::ZSTD_freeDCtx(context_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

 protected:
  size_t read_into(uint8_t* to, size_t room) override {
    // Given room for a whole frame, the library decodes the frame in one step, and a damaged frame would then give no bytes at all.
    ZSTD_outBuffer out{to, std::min(room, ::ZSTD_DStreamOutSize()), 0};
    while (out.pos == 0 && damage_.empty()) {
      if (in_.pos == in_.size) read_packed();
      if (in_.pos == in_.size && !open_) break;
      const bool was_fed = in_.pos < in_.size;
      const size_t hint = ::ZSTD_decompressStream(context_, &out, &in_);
      if (::ZSTD_isError(hint))
        damage_ = std::string("the zstd stream is damaged (") + ::ZSTD_getErrorName(hint) + ")";
      else if (!was_fed && out.pos == 0 && damage_.empty())
        damage_ = "the zstd stream ends before its end mark";
      else open_ = hint != 0;
    }
    return out.pos;
  }

 private:
  void read_packed() {
    ssize_t n;
    do n = ::read(file_.get(), packed_.data(), packed_.size());
    while (n < 0 && errno == EINTR);
    if (n < 0) damage_ = std::string("the rest of the file cannot be read (") + std::strerror(errno) + ")";
    in_ = {packed_.data(), n > 0 ? static_cast<size_t>(n) : 0, 0};
  }
  Descriptor file_;
  ZSTD_DCtx* context_;
  std::vector<uint8_t> packed_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool open_ = false;  // inside a frame
};

}  // namespace

std::unique_ptr<Source> open_gzip(Descriptor file) { return std::make_unique<GzipStream>(file); }
std::unique_ptr<Source> open_zstd(Descriptor file) { return std::make_unique<ZstdStream>(std::move(file)); }

}  // namespace samovar
