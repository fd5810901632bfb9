#include "core_siftr.h"

#include <arpa/inet.h>
#include <algorithm>
#include <climits>
#include <cstring>

namespace samovar::siftr {

const std::array<ColumnAbout, column_count> columns = {{
    {"t_ns", true}, {"direction", false}, {"flow", false}, {"cwnd_bytes", true}, {"ssthresh_bytes", true},
    {"swnd_bytes", true}, {"snd_wnd_bytes", false}, {"rcv_wnd_bytes", false}, {"srtt_us", true}, {"ertt_us", true},
    {"rto_us", true}, {"in_flight_bytes", false}, {"mss_bytes", false}, {"state", false}, {"flags", true}, {"flags2", true},
    {"sack", false}, {"snd_scale", false}, {"rcv_scale", false}, {"snd_buffer_bytes", false}, {"snd_buffered_bytes", false},
    {"rcv_buffer_bytes", false}, {"rcv_buffered_bytes", false}, {"reassembly_segments", false}, {"flow_id", true},
    {"flow_type", false}, {"seq", true}, {"ack", true}, {"payload_bytes", false}, {"hash", true},
}};

namespace {

constexpr int no_integer = INT_MIN;  // R's NA
constexpr double unset = 1073725440;  // 65535 << 14, the largest window there is: nothing has set it yet
constexpr size_t tail_after_ports = 18;
constexpr size_t longest_tail = 24;
constexpr size_t most_sessions = 256;

// name, fields, hashed, ticks, segments, ertt, flow_ids, data, siftr2
constexpr Layout layouts[] = {
    {"1.2.3", 25, true, true, false, false, false, false, false},
    {"1.2.4", 26, true, true, true, false, false, false, false},
    {"1.2.4-ertt", 27, true, true, true, true, false, false, false},
    {"1.2.4-flowid", 28, true, true, true, false, true, false, false},
    {"1.3.0", 27, false, false, true, false, true, false, false},
    {"1.3.0-data", 30, false, false, true, false, true, true, false},
    {"siftr2", 18, false, false, true, false, true, true, true},
};

int as_integer(int64_t value) {
  return value > INT_MIN && value <= INT_MAX ? static_cast<int>(value) : no_integer;
}

double at_least_one(int64_t value, double unit) { return value > 0 ? static_cast<double>(value) * unit : missing; }

bool has(const Layout& layout, size_t c) {
  switch (c) {
    case ertt: return layout.ertt;
    case reassembly: return layout.segments;
    case flow_id: return layout.flow_ids;
    case flow_type: return layout.flow_ids && !layout.siftr2;
    case seq:
    case ack: return layout.data && !layout.siftr2;
    case payload: return layout.data;
    case hash: return layout.hashed;
    case state:
    case sack:
    case snd_scale:
    case rcv_scale: return !layout.siftr2;
    default: return true;
  }
}

[[noreturn]] void refuse(size_t line, const std::string& what) {
  throw FormatError("line " + std::to_string(line) + ": " + what);
}

bool begins(std::string_view line, std::string_view with) { return line.substr(0, with.size()) == with; }

std::string_view value_of(std::string_view line, std::string_view key) {
  std::string_view found;
  split(line, '\t', [&](std::string_view field) {
    if (field.size() > key.size() && begins(field, key) && field[key.size()] == '=') found = field.substr(key.size() + 1);
  });
  return found;
}

bool whole_number(std::string_view text, int64_t& value) {
  Scanner scan(text);
  return scan.number(value) && scan.done();
}

double count_of(std::string_view line, std::string_view key) {
  int64_t value = 0;
  return whole_number(value_of(line, key), value) ? static_cast<double>(value) : missing;
}

// An address in canonical form: old versions print IPv6 as eight groups.
bool usual_address(std::string_view text, std::string& usual) {
  char buffer[INET6_ADDRSTRLEN];
  unsigned char bytes[16];
  const std::string copy(text);
  const int family = copy.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (copy.find('\0') != std::string::npos || ::inet_pton(family, copy.c_str(), bytes) != 1) return false;
  usual = ::inet_ntop(family, bytes, buffer, sizeof buffer);
  return true;
}

bool port_of(std::string_view text, int& port) {
  int64_t value = 0;
  if (!whole_number(text, value) || value > 65535) return false;
  port = static_cast<int>(value);
  return true;
}

// The first four fields, without the comma after them; empty if there are fewer than five fields.
std::string_view four_fields(const char* from, const char* end) {
  const char* at = from;
  for (int commas = 0; at != end; ++at)
    if (*at == ',' && ++commas == 4) return {from, static_cast<size_t>(at - from)};
  return {};
}

bool read_time(Scanner& scan, int64_t& s, int64_t& ns) {
  if (!scan.number(s) || !scan.take('.')) return false;
  const char* from = scan.at;
  if (!scan.number(ns) || scan.at - from > 9) return false;
  for (auto digits = scan.at - from; digits < 9; ++digits) ns *= 10;
  return true;
}

}  // namespace

bool in_all_layouts(size_t c) { return c != hash && has(layouts[0], c); }

Chunk::Chunk(const Layout& of) : layout(&of) {
  for (size_t c = 0; c < column_count; ++c) {
    if (!has(of, c)) continue;
    if (columns[c].real) real[c].reset(new double[room]);
    else integer[c].reset(new int[room]);
  }
}

Session& Log::begin(Session next) {
  if (sessions_.size() == most_sessions) throw FormatError("has more than 256 headers or footers of SIFTR");
  return sessions_.emplace_back(std::move(next));
}

Session& Log::session() { return sessions_.empty() ? begin({}) : sessions_.back(); }

void Log::read(Source& source) {
  Lines lines(source);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    if (begins(line, "enable_time_secs=")) header(line, lines.number());
    else if (begins(line, "disable_time_secs=") && !lines.cut()) footer(line);
    else if (lines.cut()) session().cut = true;
    else record(line, lines.number());
  }
}

void Log::finish() {
  const bool headed = std::any_of(sessions_.begin(), sessions_.end(), [](const Session& s) { return s.header; });
  if (headed || any_) return;
  if (sessions_.empty()) throw FormatError("is empty; expected a log of SIFTR");
  if (sessions_[0].footer) throw FormatError("has only a footer of SIFTR; read it after the file with the header");
  refuse(static_cast<size_t>(std::isnan(sessions_[0].first_malformed) ? 1 : sessions_[0].first_malformed),
         "is not a record of SIFTR; expected a line that begins with enable_time_secs=");
}

void Log::header(std::string_view line, size_t number) {
  Session next;
  next.header = true;
  next.version = std::string(value_of(line, "siftrver"));
  next.sysver = count_of(line, "sysver");
  if (!whole_number(value_of(line, "enable_time_secs"), next.enabled_s) ||
      !whole_number(value_of(line, "enable_time_usecs"), next.enabled_us))
    refuse(number, "the header needs enable_time_secs= and enable_time_usecs= as whole numbers");
  const std::string_view form = value_of(line, "rec_fmt");
  const bool first = begins(next.version, "1.2."), second = begins(next.version, "1.3.");
  if (form.empty() && !first && !second)
    refuse(number, "siftrver=" + next.version.substr(0, 20) + "; expected 1.2.x, 1.3.x or siftr2 2.x");
  if (!form.empty()) {
    if (begins(form, "bin")) refuse(number, "siftr2 wrote binary records; expected text records");
    next.layout = &layouts[6];
  }
  if (first && form.empty() &&
      (!whole_number(value_of(line, "hz"), next.hz) || !whole_number(value_of(line, "tcp_rtt_scale"), next.rtt_scale) ||
       next.hz == 0 || next.rtt_scale == 0))
    refuse(number, "a header of version 1.2 needs hz= and tcp_rtt_scale= above 0, the units of its times");
  begin(std::move(next));
}

void Log::footer(std::string_view line) {
  if (sessions_.empty() || sessions_.back().footer) begin({});
  Session& s = sessions_.back();
  s.footer = true;
  s.disabled_s = count_of(line, "disable_time_secs") + count_of(line, "disable_time_usecs") / 1e6;
  s.counted_in = count_of(line, "num_inbound_tcp_pkts");
  s.counted_out = count_of(line, "num_outbound_tcp_pkts");
  s.skipped = count_of(line, "total_skipped_tcp_pkts");
  if (s.layout && s.layout->siftr2) {
    s.skipped = count_of(line, "ring_drops");
    list_flows(value_of(line, "flow_list"));
  }
}

const Layout& Log::layout_of(std::string_view line, size_t number) {
  Session& s = session();
  if (s.layout) return *s.layout;
  const auto fields = static_cast<size_t>(std::count(line.begin(), line.end(), ',')) + 1;
  const bool hashed = line.size() > 4 && line.substr(1, 3) == ",0x";
  for (const Layout& layout : layouts) {
    if (layout.fields != fields || layout.hashed != hashed || layout.siftr2) continue;
    if (s.header && layout.ticks != (s.hz > 0)) continue;
    if (!s.header && layout.ticks)
      refuse(number, "records of version 1.2 without the header, which gives the unit of their times; "
                     "read it after the file with the header");
    s.layout = &layout;
    return layout;
  }
  static constexpr Layout none{};
  return none;
}

void Log::record(std::string_view line, size_t number) {
  // A record after a footer belongs to another session, whose header is missing.
  if (!sessions_.empty() && sessions_.back().footer) begin({});
  const Layout& layout = layout_of(line, number);
  if (layout.fields && (layout.siftr2 ? record_2(line, layout) : record_1(line, layout))) return;
  Session& s = session();
  if (s.malformed++ == 0) s.first_malformed = static_cast<double>(number);
}

int Log::flow_of(std::string_view ends) {
  if (last_flow_ >= 0 && ends == last_ends_) return last_flow_;
  const std::string key(ends);
  auto found = known_.find(key);
  if (found == known_.end()) {
    std::vector<std::string_view> part;
    split(ends, ',', [&](std::string_view text) { part.push_back(text); });
    Flow flow;
    if (part.size() != 4 || !usual_address(part[0], flow.local) || !usual_address(part[2], flow.foreign) ||
        !port_of(part[1], flow.local_port) || !port_of(part[3], flow.foreign_port))
      return -1;
    flows_.push_back(std::move(flow));
    found = known_.emplace(key, static_cast<int>(flows_.size()) - 1).first;
  }
  last_ends_ = key;
  return last_flow_ = found->second;
}

// Adds a row with the values that all layouts have.
size_t Log::row(const Layout& layout, Stamp time, bool incoming, int of_flow) {
  Session& s = session();
  if (chunks_.empty() || chunks_.back().rows == Chunk::room || chunks_.back().layout != &layout)
    chunks_.emplace_back(layout);
  Chunk& chunk = chunks_.back();
  if (!any_) epoch_s_ = time.s;
  const double now = static_cast<double>(time.s - epoch_s_) * 1e9 + static_cast<double>(time.ns);
  if (any_ && s.rows > 0 && now < last_ns_) ++s.backwards;
  last_ns_ = now;
  any_ = true;
  ++s.rows;
  if (incoming) ++s.rows_in;
  const size_t r = chunk.rows++;
  chunk.real[t_ns][r] = now;
  chunk.integer[direction][r] = incoming ? 1 : 2;
  chunk.integer[flow][r] = of_flow + 1;
  return r;
}

bool Log::record_1(std::string_view line, const Layout& layout) {
  Scanner scan(line);
  Stamp time;
  int64_t mark = 0;
  int64_t v[longest_tail];
  const bool incoming = *scan.at == 'i';
  if ((!incoming && *scan.at != 'o') || (++scan.at, !scan.take(','))) return false;
  if (layout.hashed &&
      !(scan.take('0') && scan.take('x') && scan.hexadecimal(mark) && scan.take(',')))
    return false;
  if (!read_time(scan, time.s, time.ns) || !scan.take(',')) return false;
  const std::string_view ends = four_fields(scan.at, scan.end);
  if (ends.empty()) return false;
  scan.at += ends.size() + 1;
  const size_t n = layout.fields - (layout.hashed ? 7 : 6);
  for (size_t k = 0; k < n; ++k)
    if ((k > 0 && !scan.take(',')) || !scan.integer(v[k])) return false;
  if (!scan.done()) return false;
  const int of_flow = flow_of(ends);
  if (of_flow < 0) return false;

  const size_t r = row(layout, time, incoming, of_flow);
  const Session& s = sessions_.back();
  Chunk& to = chunks_.back();
  const double srtt_unit = layout.ticks ? 1e6 / (static_cast<double>(s.hz) * static_cast<double>(s.rtt_scale)) : 1;
  const auto ssthresh_now = static_cast<double>(v[0]), cwnd_now = static_cast<double>(v[1]);
  to.real[ssthresh][r] = ssthresh_now >= unset ? std::numeric_limits<double>::infinity() : ssthresh_now;
  to.real[cwnd][r] = cwnd_now == unset ? missing : cwnd_now;
  to.real[swnd][r] = cwnd_now == unset ? missing : std::min(cwnd_now, static_cast<double>(v[3]));
  to.real[flags2][r] = static_cast<double>(v[2]);
  to.integer[snd_wnd][r] = as_integer(v[3]);
  to.integer[rcv_wnd][r] = as_integer(v[4]);
  to.integer[snd_scale][r] = as_integer(v[5]);
  to.integer[rcv_scale][r] = as_integer(v[6]);
  to.integer[state][r] = v[7] >= 0 && v[7] <= 10 ? static_cast<int>(v[7]) + 1 : no_integer;
  to.integer[mss][r] = as_integer(v[8]);
  to.real[srtt][r] = at_least_one(v[9], srtt_unit);
  to.integer[sack][r] = as_integer(v[10]);
  to.real[flags][r] = static_cast<double>(v[11]);
  to.real[rto][r] = static_cast<double>(v[12]) * (layout.ticks ? 1e6 / static_cast<double>(s.hz) : 1);
  to.integer[snd_buffer][r] = as_integer(v[13]);
  to.integer[snd_buffered][r] = as_integer(v[14]);
  to.integer[rcv_buffer][r] = as_integer(v[15]);
  to.integer[rcv_buffered][r] = as_integer(v[16]);
  to.integer[in_flight][r] = as_integer(v[17]);
  size_t k = tail_after_ports;
  if (layout.segments) to.integer[reassembly][r] = as_integer(v[k++]);
  if (layout.ertt) to.real[ertt][r] = at_least_one(v[k++], srtt_unit);
  if (layout.flow_ids) {
    to.real[flow_id][r] = static_cast<double>(v[k++]);
    to.integer[flow_type][r] = as_integer(v[k++]);
  }
  if (layout.data) {
    to.real[seq][r] = static_cast<double>(v[k++]);
    to.real[ack][r] = static_cast<double>(v[k++]);
    to.integer[payload][r] = as_integer(v[k++]);
  }
  if (layout.hashed) to.real[hash][r] = static_cast<double>(mark);
  return true;
}

// Addresses are in the footer only: until then, a flow is known by its key.
int Log::flow_of_key(std::string_view key) {
  const auto found = known_.emplace("#" + std::string(key), static_cast<int>(flows_.size()));
  if (found.second) flows_.emplace_back();
  return found.first->second;
}

// flow id, direction, ms since it was enabled, cwnd, ssthresh, srtt, payload, windows, flags, RTO, buffers, pipe, segments
bool Log::record_2(std::string_view line, const Layout& layout) {
  Scanner scan(line);
  const std::string_view key = scan.until(',');
  int64_t id = 0, v[16];
  Scanner digits(key);
  if (!digits.hexadecimal(id) || !digits.done() || !scan.take(',')) return false;
  const bool incoming = scan.take('i');
  if ((!incoming && !scan.take('o')) || !scan.take(',')) return false;
  for (size_t k = 0; k < 16; ++k)
    if ((k > 0 && !scan.take(',')) || !scan.hexadecimal(v[k])) return false;
  if (!scan.done()) return false;
  const Session& enabled = session();
  const int64_t us = enabled.enabled_us + v[0] % 1000 * 1000;
  const Stamp time{enabled.enabled_s + v[0] / 1000 + us / 1000000, us % 1000000 * 1000};
  const size_t r = row(layout, time, incoming, flow_of_key(key));
  Chunk& to = chunks_.back();
  const auto cwnd_now = static_cast<double>(v[1]), ssthresh_now = static_cast<double>(v[2]);
  to.real[cwnd][r] = cwnd_now == unset ? missing : cwnd_now;
  to.real[ssthresh][r] = ssthresh_now >= unset ? std::numeric_limits<double>::infinity() : ssthresh_now;
  to.real[swnd][r] = cwnd_now == unset ? missing : std::min(cwnd_now, static_cast<double>(v[5]));
  to.real[srtt][r] = at_least_one(v[3], 1);
  to.integer[payload][r] = as_integer(v[4]);
  to.integer[snd_wnd][r] = as_integer(v[5]);
  to.integer[rcv_wnd][r] = as_integer(v[6]);
  to.real[flags][r] = static_cast<double>(v[7]);
  to.real[flags2][r] = static_cast<double>(v[8]);
  to.real[rto][r] = static_cast<double>(v[9]);
  to.integer[snd_buffer][r] = as_integer(v[10]);
  to.integer[snd_buffered][r] = as_integer(v[11]);
  to.integer[rcv_buffer][r] = as_integer(v[12]);
  to.integer[rcv_buffered][r] = as_integer(v[13]);
  to.integer[in_flight][r] = as_integer(v[14]);
  to.integer[reassembly][r] = as_integer(v[15]);
  to.integer[mss][r] = no_integer;
  to.real[flow_id][r] = static_cast<double>(id);
  return true;
}

// key, IP version, local address and port, foreign address and port, stack, congestion control, MSS, …
void Log::list_flows(std::string_view list) {
  split(list, ';', [&](std::string_view entry) {
    std::vector<std::string_view> part;
    split(entry, ',', [&](std::string_view text) { part.push_back(text); });
    Flow named;
    if (part.size() < 9 || !usual_address(part[2], named.local) || !usual_address(part[4], named.foreign) ||
        !port_of(part[3], named.local_port) || !port_of(part[5], named.foreign_port))
      return;
    named.mss = decimal(part[8]);
    flows_[static_cast<size_t>(flow_of_key(part[0]))] = std::move(named);
  });
}

}  // namespace samovar::siftr
