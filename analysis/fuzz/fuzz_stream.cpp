// Any bytes, compressed and truncated: what is read must be the beginning of them, and all of them unless the file was truncated,
// which the reader must report. The first byte selects format, members and truncation.

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <vector>

#include "inputs.h"

using namespace samovar;

namespace {

using Bytes = std::vector<uint8_t>;

void append_gzip(Bytes& to, const uint8_t* data, size_t n) {
  z_stream z{};
  if (::deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) wrong("zlib cannot start to compress");
  const size_t before = to.size();
  to.resize(before + ::deflateBound(&z, n));
  z.next_in = const_cast<uint8_t*>(data);
  z.avail_in = static_cast<uInt>(n);
  z.next_out = to.data() + before;
  z.avail_out = static_cast<uInt>(to.size() - before);
  if (::deflate(&z, Z_FINISH) != Z_STREAM_END) wrong("zlib cannot finish compressing");
  to.resize(before + z.total_out);
  ::deflateEnd(&z);
}

void append_zstd(Bytes& to, const uint8_t* data, size_t n) {
  const size_t before = to.size();
  to.resize(before + ZSTD_compressBound(n));
  const size_t made = ZSTD_compress(to.data() + before, to.size() - before, data, n, 1);
  if (ZSTD_isError(made)) wrong("zstd cannot compress");
  to.resize(before + made);
}

Bytes compressed(const uint8_t* data, size_t n, int choice) {
  Bytes file;
  const auto append = choice & 1 ? append_zstd : append_gzip;
  const size_t first = choice & 2 ? n / 3 : n;
  append(file, data, first);
  if (first < n) append(file, data + first, n - first);
  return file;
}

struct Reading {
  Bytes bytes;
  std::string damage;
};

Reading read_back(const Bytes& file, size_t step) {
  const int fd = ::memfd_create("stream", 0);
  if (fd < 0 || ::write(fd, file.data(), file.size()) != static_cast<ssize_t>(file.size())) wrong("cannot write a file in memory");
  Reading reading;
  try {
    const auto source = open_source("/proc/self/fd/" + std::to_string(fd));
    while (source->ensure(1)) {
      source->ensure(step);
      const size_t n = std::min(step, source->available());
      reading.bytes.insert(reading.bytes.end(), source->cursor(), source->cursor() + n);
      source->skip(n);
    }
    if (source->offset() != reading.bytes.size()) wrong("the offset differs from the number of bytes read");
    reading.damage = source->damage();
  } catch (const FormatError& refused) {
    reading.damage = refused.what();
  }
  ::close(fd);
  return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n) {
  if (n < 8) return 0;
  const int choice = data[0];
  const size_t step = 1 + data[1] % 200;
  const size_t cut_by = choice & 4 ? 1 + data[2] : 0;
  Bytes file = compressed(data + 3, n - 3, choice);
  const bool cut = cut_by > 0 && cut_by + 10 < file.size();
  if (cut) file.resize(file.size() - cut_by);
  const Reading reading = read_back(file, step);
  const size_t got = reading.bytes.size();
  if (got > n - 3 || (got > 0 && std::memcmp(reading.bytes.data(), data + 3, got) != 0)) wrong("the bytes differ from those that were compressed");
  if (!cut && (got != n - 3 || !reading.damage.empty())) wrong("a complete file was not read completely");
  if (got < n - 3 && reading.damage.empty() && !(choice & 2)) wrong("a truncated file was not reported as truncated");
  return 0;
}
