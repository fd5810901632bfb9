#include "core_table.h"

#include <algorithm>

namespace samovar {
namespace {

// Small enough that a batch of rows stays in the first-level cache while it is turned.
constexpr size_t batch_rows = 64;
using Batch = std::array<Row, batch_rows>;

void store(const Batch& batch, size_t n, const Destination& to, size_t first) {
  for (size_t c = 0; c < column_count; ++c) {
    if (!to.at[c]) continue;
    if (const auto member = columns[c].real) {
      double* out = static_cast<double*>(to.at[c]) + first;
      for (size_t i = 0; i < n; ++i) out[i] = batch[i].*member;
    } else {
      const auto integer = columns[c].integer;
      int* out = static_cast<int*>(to.at[c]) + first;
      for (size_t i = 0; i < n; ++i) out[i] = batch[i].*integer;
    }
  }
}

const char* const known_links =
    "; Ethernet (1), null (0), loop (108), raw IP (12, 14, 101, 228, 229), SLL (113) or SLL2 (276) would have been "
    "accepted";

void check_link(const Capture& capture) {
  const std::vector<Interface>& interfaces = capture.interfaces();
  const auto known = [](const Interface& i) { return name_of_link(i.link_type) != nullptr; };
  if (interfaces.empty() || std::any_of(interfaces.begin(), interfaces.end(), known)) return;
  throw FormatError("has link type " + std::to_string(interfaces.front().link_type) + known_links);
}

}  // namespace

size_t decode_rows(Capture& capture, Decoder& decoder, const Destination& to, size_t first, size_t limit) {
  Batch batch;
  Record record;
  size_t done = 0;
  for (bool more = true; more && done < limit;) {
    const size_t room = std::min(batch_rows, limit - done);
    size_t n = 0;
    while (n < room && (more = capture.next(record))) decoder.decode(record, batch[n++]);
    store(batch, n, to, first + done);
    done += n;
  }
  return done;
}

Chunk::Chunk(size_t capacity, const std::vector<size_t>& wanted) {
  for (const size_t c : wanted) {
    if (columns[c].real) destination_.at[c] = real_.emplace_back(new double[capacity]).get();
    else destination_.at[c] = integer_.emplace_back(new int[capacity]).get();
  }
}

void Chunk::copy_to(const Destination& to, size_t first) const {
  for (size_t c = 0; c < column_count; ++c) {
    const void* from = destination_.at[c];
    if (!from) continue;
    if (columns[c].real)
      std::copy_n(static_cast<const double*>(from), rows, static_cast<double*>(to.at[c]) + first);
    else std::copy_n(static_cast<const int*>(from), rows, static_cast<int*>(to.at[c]) + first);
  }
}

Reader::Reader(const std::string& path, int mtu_bytes) : Reader(open_source(path), mtu_bytes, true) {}

Reader::Reader(std::unique_ptr<Source> source, int mtu_bytes, bool count)
    : source_(std::move(source)),
      decoder_(mtu_bytes),
      counted_(count && source_->whole()),
      packets_(counted_ ? count_records(*source_) : 0) {
  capture_ = open_capture(*source_);
  source_->check();
  check_link(*capture_);
}

size_t Reader::read(const Destination& to, size_t first, size_t limit) {
  const size_t n = decode_rows(*capture_, decoder_, to, first, limit);
  source_->check();
  read_ += n;
  return n;
}

void Reader::check_links() const {
  if (read_ > 0 && read_ == decoder_.unknown_packets()) check_link(*capture_);
}

}  // namespace samovar
