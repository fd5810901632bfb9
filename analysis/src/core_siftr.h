// SIFTR logs of FreeBSD (siftr(4)): a header, a record per packet, a footer with counts.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core_text.h"

namespace samovar::siftr {

// Columns of a table, in order; a log has those of its layout.
enum Column : size_t {
  t_ns, direction, flow, cwnd, ssthresh, swnd, snd_wnd, rcv_wnd, srtt, ertt, rto, in_flight, mss, state, flags, flags2, sack,
  snd_scale, rcv_scale, snd_buffer, snd_buffered, rcv_buffer, rcv_buffered, reassembly, flow_id, flow_type, seq, ack, payload,
  hash, column_count
};

struct ColumnAbout {
  const char* name;
  bool real;
};
extern const std::array<ColumnAbout, column_count> columns;
bool in_all_layouts(size_t column);

// The format of one version of SIFTR. Versions with the same version string differ in their number of fields.
struct Layout {
  const char* name;
  size_t fields;
  bool hashed;      // a hash of the packet in field 2
  bool ticks;       // srtt and RTO in units of the kernel's clock, not in microseconds
  bool segments;    // reassembly queue
  bool ertt;        // unsmoothed RTT of CAIA's patch
  bool flow_ids;
  bool data;        // sequence numbers and payload
  bool siftr2;      // hexadecimal, addresses in the footer
};

struct Flow {
  std::string local, foreign;
  int local_port = 0, foreign_port = 0;
  double mss = missing;
};

// The part of a log from when SIFTR was enabled until it was disabled.
struct Session {
  bool header = false, footer = false, cut = false;
  std::string version;
  const Layout* layout = nullptr;
  int64_t hz = 0, rtt_scale = 0, enabled_s = 0, enabled_us = 0;
  double sysver = missing, rows = 0, rows_in = 0, malformed = 0, first_malformed = missing, backwards = 0;
  double disabled_s = missing, counted_in = missing, counted_out = missing, skipped = missing;
};

struct Chunk {
  explicit Chunk(const Layout& layout);
  static constexpr size_t room = 1 << 14;
  const Layout* layout;
  size_t rows = 0;
  // Allocated when a row is added, so that memory is touched for rows only.
  std::array<std::unique_ptr<double[]>, column_count> real;
  std::array<std::unique_ptr<int[]>, column_count> integer;
};

class Log {
 public:
  // Reads a file, which continues the session of the file before. Throws FormatError with a text beginning with "line N: ".
  void read(Source& source);
  // Throws if none of the files had a record.
  void finish();

  std::list<Chunk>& chunks() { return chunks_; }
  const std::vector<Flow>& flows() const { return flows_; }
  const std::vector<Session>& sessions() const { return sessions_; }
  int64_t epoch_s() const { return epoch_s_; }

 private:
  struct Stamp {
    int64_t s = 0, ns = 0;
  };
  void header(std::string_view line, size_t number);
  void footer(std::string_view line);
  void record(std::string_view line, size_t number);
  bool record_1(std::string_view line, const Layout& layout);
  bool record_2(std::string_view line, const Layout& layout);
  const Layout& layout_of(std::string_view line, size_t number);
  size_t row(const Layout& layout, Stamp time, bool incoming, int flow);
  int flow_of(std::string_view ends);
  int flow_of_key(std::string_view key);
  void list_flows(std::string_view list);
  Session& session();
  Session& begin(Session next);

  std::list<Chunk> chunks_;
  std::vector<Flow> flows_;
  std::vector<Session> sessions_;
  std::unordered_map<std::string, int> known_;
  std::string last_ends_;
  int last_flow_ = -1;
  int64_t epoch_s_ = 0;
  double last_ns_ = 0;
  bool any_ = false;
};

}  // namespace samovar::siftr
