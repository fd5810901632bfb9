#include "core_table.h"

#include <algorithm>

#include "core_threads.h"

namespace samovar {
namespace {

// Small enough that a batch of rows stays in the first-level cache while it is transposed.
constexpr size_t batch_rows = 64;
using Batch = std::array<Row, batch_rows>;

// Four at a time, each loaded before the first is stored: the compiler cannot know that columns and rows do not overlap.
template <typename T>
void turn(const Batch& batch, T Row::* member, size_t n, T* to) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const T a = batch[i].*member, b = batch[i + 1].*member, c = batch[i + 2].*member, d = batch[i + 3].*member;
    to[i] = a, to[i + 1] = b, to[i + 2] = c, to[i + 3] = d;
  }
  for (; i < n; ++i) to[i] = batch[i].*member;
}

void store(const Batch& batch, size_t n, const Destination& to, size_t first) {
  for (size_t c = 0; c < column_count; ++c) {
    if (!to.at[c]) continue;
    if (columns[c].real) turn(batch, columns[c].real, n, static_cast<double*>(to.at[c]) + first);
    else turn(batch, columns[c].integer, n, static_cast<int*>(to.at[c]) + first);
  }
}

void renumber(int* column, size_t rows, const std::vector<int>& to) {
  for (size_t i = 0; i < rows; ++i)
    if (column[i] > 0) column[i] = to[static_cast<size_t>(column[i])];
}

void renumber(const Destination& to, size_t first, size_t rows, const FlowTable::Renumbering& numbers) {
  for (size_t c = 0; c < column_count; ++c) {
    const bool is_flow = columns[c].integer == &Row::flow;
    if (!is_flow && columns[c].integer != &Row::src && columns[c].integer != &Row::dst) continue;
    if (to.at[c]) renumber(static_cast<int*>(to.at[c]) + first, rows, is_flow ? numbers.flow : numbers.address);
  }
}

constexpr size_t most_known_interfaces = 256;
constexpr size_t records_judged_by = size_t{1} << 14;

const char* const known_links =
    "; expected Ethernet (1), null (0), loop (108), raw IP (12, 14, 101, 228, 229), SLL (113) or SLL2 (276)";

void check_link(const Capture& capture) {
  const std::vector<Interface>& interfaces = capture.interfaces();
  const auto known = [](const Interface& i) { return name_of_link(i.link_type) != nullptr; };
  if (interfaces.empty() || std::any_of(interfaces.begin(), interfaces.end(), known)) return;
  throw FormatError("has link type " + std::to_string(interfaces.front().link_type) + known_links);
}

// Bytes that seem to begin with a record. `parts` has where each part of their records begins, and its number of records.
struct Share {
  const uint8_t *begin, *end;
  std::vector<std::pair<const uint8_t*, size_t>> parts{};
  const uint8_t* reached = nullptr;
};

std::vector<Share> guess_shares(const Capture& capture, const uint8_t* begin, const uint8_t* end, size_t share_bytes) {
  std::vector<Share> shares{{begin, end}};
  while (static_cast<size_t>(end - begin) > share_bytes) {
    begin = capture.seeming_record(begin + share_bytes, end);
    if (!begin) break;
    shares.back().end = begin;
    shares.push_back({begin, end});
  }
  return shares;
}

void pass_share(const Capture& capture, Share& share, size_t part_rows) {
  Span span(share.begin, static_cast<size_t>(share.end - share.begin));
  const std::unique_ptr<Capture> fork = capture.fork(span);
  for (size_t passed = part_rows; passed == part_rows;) {
    const uint8_t* const at = span.cursor();
    passed = fork->pass(part_rows);
    share.parts.emplace_back(at, passed);
  }
  share.reached = span.cursor();
}

}  // namespace

size_t decode_rows(Capture& capture, Decoder& decoder, const Destination& to, size_t first, size_t limit) {
  Batch batch;
  std::array<Record, batch_rows> records;
  size_t done = 0;
  for (bool more = true; more && done < limit;) {
    const size_t room = std::min(batch_rows, limit - done);
    size_t n = 0;
    while (n < room && more) {
      const size_t taken = capture.take(records.data(), room - n);
      decoder.decode(records.data(), taken, &batch[n]);
      n += taken;
      more = taken > 0;
    }
    store(batch, n, to, first + done);
    done += n;
  }
  return done;
}

void Datagrams::complete(const std::vector<Fragment>& fragments, const FlowTable& flows, const Destination& to, size_t first,
                         size_t before) {
  if (fragments.empty()) return;
  known_.resize(most_known);
  for (const Fragment& fragment : fragments) {
    Known& known = known_[fragment.datagram % most_known];
    if (fragment.flow) {
      known = {fragment.datagram, fragment.flow};
      continue;
    }
    if (!known.flow || known.datagram != fragment.datagram) continue;
    const Flow& flow = flows.at(known.flow);
    Row row{};
    row.flow = flow.number;
    row.sport = flow.key.sport();
    row.dport = flow.key.dport();
    for (size_t c = 0; c < column_count; ++c) {
      const auto member = columns[c].integer;
      if (to.at[c] && (member == &Row::flow || member == &Row::sport || member == &Row::dport))
        static_cast<int*>(to.at[c])[first + fragment.row - before] = row.*member;
    }
  }
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

Reader::Reader(std::unique_ptr<Source> source, int mtu_bytes)
    : source_(std::move(source)),
      capture_(open_capture(*source_)),
      mtu_bytes_(mtu_bytes),
      decoder_(mtu_bytes) {
  source_->check();
  check_link(*capture_);
}

size_t Reader::packets_expected() const {
  Span ahead(source_->cursor(), source_->available());
  const std::unique_ptr<Capture> capture = capture_->fork(ahead);
  Record record;
  size_t seen = 0;
  while (seen < records_judged_by && capture->next(record)) ++seen;
  if (seen < records_judged_by) return seen;
  const size_t bytes_each = (source_->available() - ahead.available()) / seen;
  return source_->available() / bytes_each;
}

void Reader::count(size_t threads, size_t part_rows, size_t share_bytes) {
  // The first part determines what all others need: the beginning of the capture.
  bool more = count_part(part_rows) == part_rows;
  if (more) {
    map_rest(threads, share_bytes);
    count_shares(threads, part_rows, share_bytes);
  }
  while (more) more = count_part(part_rows) == part_rows;
  source_->check();
}

size_t Reader::count_part(size_t part_rows) {
  const uint8_t* begin = source_->cursor();
  // A part knows all interfaces before it; a file with many interfaces is not divided further.
  if (packets_ == 0 || capture_->interfaces().size() <= most_known_interfaces) add_part(begin, 0);
  const size_t passed = capture_->pass(part_rows);
  parts_.back().rows += passed;
  packets_ += passed;
  return passed;
}

void Reader::add_part(const uint8_t* begin, size_t rows) {
  Part& part = parts_.emplace_back(Part{nullptr, nullptr, Decoder(mtu_bytes_)});
  part.source = std::make_unique<Span>(begin, static_cast<size_t>(source_->cursor() + source_->available() - begin));
  part.capture = capture_->fork(*part.source);
  part.first = packets_;
  part.rows = rows;
  packets_ += rows;
}

void Reader::map_rest(size_t threads, size_t share_bytes) const {
  const uint8_t* const begin = source_->cursor();
  const size_t bytes = source_->available();
  share_out(threads, bytes / share_bytes + 1, [&](size_t k) {
    source_->map(begin + k * share_bytes, begin + std::min(bytes, (k + 1) * share_bytes));
  });
}

void Reader::count_shares(size_t threads, size_t part_rows, size_t share_bytes) {
  const uint8_t* const begin = source_->cursor();
  std::vector<Share> shares = guess_shares(*capture_, begin, begin + source_->available(), share_bytes);
  if (shares.size() == 1) return;
  share_out(threads, shares.size(), [&](size_t k) { pass_share(*capture_, shares[k], part_rows); });
  for (const Share& share : shares) {
    // The guess is right if the earlier records end where this share begins. Otherwise count() continues from here.
    if (share.begin != source_->cursor()) return;
    for (const auto& [at, rows] : share.parts) add_part(at, rows);
    source_->rewind_to(share.reached);
  }
}

void Reader::read_part(Part& part, Decoder& decoder, const Destination& to) {
  const uint8_t* const begin = part.source->cursor();
  if (decode_rows(*part.capture, decoder, to, part.first, part.rows) != part.rows)
    throw FormatError("has changed while it was read; read it again when no program writes to it");
  source_->unmap(begin, part.source->cursor());
}

void Reader::read_counted(const Destination& to, size_t threads, const std::function<void()>& pause) {
  // A single thread decodes all parts with one decoder, so that it numbers flows only once.
  const bool alone = threads == 1;
  share_out(threads, parts_.size(), [&](size_t k) { read_part(parts_[k], alone ? decoder_ : parts_[k].decoder, to); }, pause);
  source_->check();
  if (!alone) absorb_parts(to, threads);
  datagrams_.complete(decoder_.take_fragments(), decoder_.flows(), to, 0, 0);
  read_ = packets_;
  parts_.clear();
}

void Reader::absorb_parts(const Destination& to, size_t threads) {
  for (Part& part : parts_) part.numbers = decoder_.absorb(part.decoder);
  share_out(threads, parts_.size(), [&](size_t k) {
    if (parts_[k].numbers.changes()) renumber(to, parts_[k].first, parts_[k].rows, parts_[k].numbers);
  });
}

size_t Reader::read(const Destination& to, size_t first, size_t limit) {
  const uint8_t* const begin = source_->cursor();
  const size_t n = decode_rows(*capture_, decoder_, to, first, limit);
  source_->check();
  // Only the bytes of a mapped file still lie at `begin`; those of a decompressed file may have been overwritten.
  if (source_->stays()) source_->unmap(begin, source_->cursor());
  datagrams_.complete(decoder_.take_fragments(), decoder_.flows(), to, first, read_);
  read_ += n;
  return n;
}

void Reader::check_links() const {
  if (read_ > 0 && read_ == decoder_.unknown_packets()) check_link(*capture_);
}

}  // namespace samovar
