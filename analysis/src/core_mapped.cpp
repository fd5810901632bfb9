#include "core_mapped.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core_source.h"
#include "core_stream.h"

namespace samovar {
namespace {

// Data that the signal handler may use: no locks, no allocation.
struct Place {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> shrunk{false};
};
// read_pcap() closes its file before it returns; each call of read_pcap_parts() keeps its file open, and calls may be nested.
constexpr size_t most_mappings = 64;
std::array<Place, most_mappings> places;
std::atomic<size_t> standing{0};
struct sigaction before;

uintptr_t page_bytes() {
  static const auto bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

uintptr_t page_of(const uint8_t* at) {
  return reinterpret_cast<uintptr_t>(at) / page_bytes() * page_bytes();
}

void cover(int number, siginfo_t* about, void* context) {
  const auto at = reinterpret_cast<uintptr_t>(about->si_addr);
  for (Place& place : places) {
    if (at < place.begin || at >= place.end) continue;
    const uintptr_t from = at - at % page_bytes();
    void* covered = ::mmap(reinterpret_cast<void*>(from), place.end - from, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (covered == MAP_FAILED) break;
    place.shrunk = true;
    return;
  }
  // Not our page: restore the previous handler, or the default, which gets the signal when the instruction is repeated.
  (void)number;
  (void)context;
  ::sigaction(SIGBUS, &before, nullptr);
}

void watch() {
  if (standing++ > 0) return;
  page_bytes();
  struct sigaction ours{};
  ours.sa_sigaction = cover;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(SIGBUS, &ours, &before);
}

void unwatch() {
  if (--standing == 0) ::sigaction(SIGBUS, &before, nullptr);
}

size_t free_place() {
  for (size_t i = 0; i < most_mappings; ++i)
    if (places[i].end == 0) return i;
  throw FormatError("cannot be mapped: " + std::to_string(most_mappings) + " captures are open already");
}

}  // namespace

Mapping::Mapping(const Descriptor& file, size_t bytes) : bytes_(bytes) {
  if (bytes_ == 0) return;
  place_ = free_place();
  base_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (base_ == MAP_FAILED) throw FormatError(std::string("cannot be mapped (") + std::strerror(errno) + ")");
  ::madvise(base_, bytes_, MADV_SEQUENTIAL);
  Place& place = places[place_];
  place.shrunk = false;
  place.begin = reinterpret_cast<uintptr_t>(base_);
  place.end = place.begin + bytes_;
  watch();
}

Mapping::~Mapping() {
  if (bytes_ == 0) return;
  unwatch();
  places[place_].begin = places[place_].end = 0;
  ::munmap(base_, bytes_);
}

void Mapping::map(const uint8_t* from, const uint8_t* to) const {
#ifdef MADV_POPULATE_READ
  const uintptr_t begin = page_of(from);
  if (to > from) ::madvise(reinterpret_cast<void*>(begin), reinterpret_cast<uintptr_t>(to) - begin, MADV_POPULATE_READ);
#else
  (void)from;
  (void)to;
#endif
}

void Mapping::unmap(const uint8_t* from, const uint8_t* to) const {
  const uintptr_t begin = page_of(from + page_bytes() - 1), end = page_of(to);
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bool Mapping::shrunk() const { return bytes_ > 0 && places[place_].shrunk; }

}  // namespace samovar
