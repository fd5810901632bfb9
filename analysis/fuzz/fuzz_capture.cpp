// Any bytes as a capture: no crash, no hang, bounded memory, and the same packets whether the whole file is available or
// arrives in pieces, as compressed files do. Compressed input is decompressed.

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../src/core_packet_pairs.h"
#include "../src/core_table.h"
#include "inputs.h"

using namespace samovar;

namespace {

struct Outcome {
  std::string refusal, truncation;
  std::vector<double> t_ns, id;
  std::vector<int> flow, src, sport, dst, frame_bytes;
  std::vector<std::string> flow_names;
  size_t cut = 0, untimed = 0, unknown = 0, pauses = 0;
  size_t flows = 0;
  bool operator==(const Outcome& other) const {
    const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
    };
    return refusal == other.refusal && truncation == other.truncation && same(t_ns, other.t_ns) &&
           same(id, other.id) && flow == other.flow && src == other.src && sport == other.sport && dst == other.dst &&
           frame_bytes == other.frame_bytes && flow_names == other.flow_names && cut == other.cut &&
           untimed == other.untimed && unknown == other.unknown && pauses == other.pauses;
  }
};

std::vector<size_t> all_columns() {
  std::vector<size_t> all;
  for (size_t c = 0; c < column_count; ++c) all.push_back(c);
  return all;
}

size_t column_named(const char* name) {
  for (size_t c = 0; c < column_count; ++c)
    if (std::strcmp(columns[c].name, name) == 0) return c;
  wrong("a column has the wrong name");
}

template <typename T>
void append(std::vector<T>& to, const Chunk& chunk, const char* name) {
  const T* from = static_cast<const T*>(chunk.destination().at[column_named(name)]);
  to.insert(to.end(), from, from + chunk.rows);
}

void append(Outcome& outcome, const Chunk& chunk) {
  append(outcome.t_ns, chunk, "t_ns");
  append(outcome.id, chunk, "id");
  append(outcome.flow, chunk, "flow");
  append(outcome.src, chunk, "src");
  append(outcome.sport, chunk, "sport");
  append(outcome.dst, chunk, "dst");
  append(outcome.frame_bytes, chunk, "frame_bytes");
}

// Records that can be counted are decoded in parts by two threads, a stream from the front.
Outcome read_all(std::unique_ptr<Source> source) {
  Outcome outcome;
  try {
    Reader reader(std::move(source), 9216);
    const bool at_once = reader.countable();
    const size_t expected = at_once ? reader.packets_expected() : 0;
    if (at_once) reader.count(2, 7, 200);
    // An input of this size has fewer packets than the estimate is based on.
    if (at_once && expected != reader.packets()) wrong("the number of packets differs from the estimate");
    Chunk chunk(at_once ? reader.packets() : 100, all_columns());
    if (at_once) {
      reader.read_counted(chunk.destination(), 2);
      chunk.rows = reader.packets();
      append(outcome, chunk);
    } else {
      do {
        chunk.rows = reader.read(chunk.destination(), 0, 100);
        append(outcome, chunk);
      } while (chunk.rows == 100);
    }
    outcome.truncation = reader.capture().truncation();
    outcome.flow_names = reader.decoder().flows().flow_names();
    outcome.flows = outcome.flow_names.size();
    outcome.cut = reader.decoder().cut_packets();
    outcome.untimed = reader.decoder().untimed_packets();
    outcome.unknown = reader.decoder().unknown_packets();
    outcome.pauses = reader.decoder().take_class_pauses().size();
    reader.check_links();
  } catch (const FormatError& refused) {
    outcome.refusal = refused.what();
    if (outcome.refusal.empty()) wrong("an error without a reason");
  }
  return outcome;
}

// The matching is the same however the work is divided.
void check_shares(const Packets& ref, const Packets& mon, const Sides& sides, const Matching& matching) {
  const Matching shared = match_packets(ref, sides, mon, sides, 3, 0);
  if (shared.ref_of_mon != matching.ref_of_mon || shared.mon_of_ref != matching.mon_of_ref ||
      shared.ambiguous_ref != matching.ambiguous_ref)
    wrong("the matching depends on the number of shares");
  const Delays delays(ref, mon, sides, mon.t_ns, matching);
  size_t seen = 0;
  double last_ns = std::nan("");
  delays.each([&](const Delay& delay) {
    if (matching.mon_of_ref[static_cast<size_t>(delay.ref_row)] != delay.mon_row) wrong("a delay between packets that were not matched");
    if (delay.t_ns < last_ns) wrong("delays are not in order of time");
    last_ns = delay.t_ns;
    ++seen;
  });
  if (seen != delays.size()) wrong("the number of delays differs from size()");
}

// The first half of the packets is one end of a path, the second half the other.
void match_halves(const Outcome& o) {
  const size_t half = o.id.size() / 2;
  if (half == 0) return;
  Sides sides(o.flows);
  for (size_t k = 0; k < sides.size(); ++k) sides[k] = {static_cast<int>(k / 2), k % 2 == 0};
  const size_t groups = o.flows / 2 + 1;
  const Packets ref{o.id.data(), o.t_ns.data(), o.flow.data(), half};
  const Packets mon{o.id.data() + half, o.t_ns.data() + half, o.flow.data() + half, o.id.size() - half};
  const Matching matching = match_packets(ref, sides, mon, sides);
  check_shares(ref, mon, sides, matching);
  for (size_t j = 0; j < mon.n; ++j)
    if (matching.ref_of_mon[j] >= 0 && ref.id[matching.ref_of_mon[j]] != mon.id[j]) wrong("packets with different ids were matched");
  pair_packets(ref, mon, sides, matching, groups);
  tally_packets(ref, sides, mon, sides, matching, groups);
}

bool equal_but_for_frame(const Row& a, const Row& b) {
  for (const Column& column : columns) {
    if (column.integer == &Row::frame_bytes || column.integer == &Row::captured_bytes) continue;
    const bool equal = column.real ? std::memcmp(&(a.*column.real), &(b.*column.real), sizeof(double)) == 0
                                   : a.*column.integer == b.*column.integer;
    if (!equal) return false;
  }
  return true;
}

// Most frames are decoded by a function of their own. The same packets without a frame are decoded by the general one.
void check_plain(std::unique_ptr<Source> source) {
  constexpr uint32_t link_ethernet = 1, link_raw = 101, frame_bytes = 14;
  try {
    Reader reader(std::move(source), 9216);
    Decoder framed(9216), bare(9216);
    Record record;
    while (reader.capture().next(record)) {
      // Lengths beyond the range of an integer are not shortened by the frame's header.
      const bool usual_length = record.frame_bytes >= record.captured_bytes && record.frame_bytes <= std::numeric_limits<int>::max();
      const bool is_ipv4 = usual_length && record.link_type == link_ethernet && record.captured_bytes > frame_bytes && net16(record.data + 12) == 0x0800 &&
                           record.data[14] >> 4 == 4;
      if (!is_ipv4) continue;
      Row with_frame, without_frame;
      framed.decode(&record, 1, &with_frame);
      record.link_type = link_raw;
      record.data += frame_bytes;
      record.captured_bytes -= frame_bytes;
      record.frame_bytes -= frame_bytes;
      bare.decode(&record, 1, &without_frame);
      if (!equal_but_for_frame(with_frame, without_frame)) wrong("a packet in a frame is decoded differently");
    }
  } catch (const FormatError&) {
  }
}

bool is_compressed(const uint8_t* data, size_t n) {
  return n >= 4 && ((data[0] == 0x1F && data[1] == 0x8B) || (data[1] == 0xB5 && data[2] == 0x2F) ||
                    (data[1] == 0x2A && data[2] == 0x4D));
}

void read_file(const uint8_t* data, size_t n) {
  const int fd = ::memfd_create("capture", 0);
  if (fd < 0 || ::write(fd, data, n) != static_cast<ssize_t>(n)) wrong("cannot write a file in memory");
  try {
    read_all(open_source("/proc/self/fd/" + std::to_string(fd)));
  } catch (const FormatError&) {
  }
  ::close(fd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n) {
  if (is_compressed(data, n)) {
    read_file(data, n);
    return 0;
  }
  const Outcome at_once = read_all(std::make_unique<Whole>(data, n));
  if (!(at_once == read_all(std::make_unique<Trickle>(data, n)))) wrong("a stream gives other packets than a file");
  match_halves(at_once);
  check_plain(std::make_unique<Whole>(data, n));
  return 0;
}
