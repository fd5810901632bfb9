#include "core_ss.h"

#include <algorithm>

namespace samovar::ss {

const std::array<const char*, column_count> names = {
    "cwnd_packets", "ssthresh_packets", "srtt_us", "rttvar_us", "min_rtt_us", "rto_us", "snd_mss_bytes", "rcv_mss_bytes",
    "pmtu_bytes", "unacked_packets", "sacked_packets", "lost_packets", "retrans_packets", "total_retrans_packets",
    "reordering_packets", "bytes_sent", "bytes_acked", "bytes_received", "bytes_retrans", "segs_out", "segs_in", "notsent_bytes",
    "snd_wnd_bytes", "rcv_space_bytes", "rcv_ssthresh_bytes", "send_rate_bps", "pacing_rate_bps", "delivery_rate_bps",
    "busy_ms", "rwnd_limited_ms", "sndbuf_limited_ms", "last_sent_ms", "app_limited", "bbr_rate_bps", "recv_q_bytes",
    "send_q_bytes"};

namespace {

struct Key {
  Column column;
  double unit;
};

const std::unordered_map<std::string_view, Key> keys = {
    {"cwnd", {cwnd, 1}}, {"ssthresh", {ssthresh, 1}}, {"minrtt", {min_rtt, 1e3}}, {"rto", {rto, 1e3}}, {"mss", {snd_mss, 1}},
    {"rcvmss", {rcv_mss, 1}}, {"pmtu", {pmtu, 1}}, {"unacked", {unacked, 1}}, {"sacked", {sacked, 1}}, {"lost", {lost, 1}},
    {"reordering", {reordering, 1}}, {"bytes_sent", {bytes_sent, 1}}, {"bytes_acked", {bytes_acked, 1}},
    {"bytes_received", {bytes_received, 1}}, {"bytes_retrans", {bytes_retrans, 1}}, {"segs_out", {segs_out, 1}},
    {"segs_in", {segs_in, 1}}, {"notsent", {notsent, 1}}, {"snd_wnd", {snd_wnd, 1}}, {"rcv_space", {rcv_space, 1}},
    {"rcv_ssthresh", {rcv_ssthresh, 1}}, {"busy", {busy, 1}}, {"rwnd_limited", {rwnd_limited, 1}},
    {"sndbuf_limited", {sndbuf_limited, 1}}, {"lastsnd", {last_sent, 1}}};

const std::unordered_map<std::string_view, Column> rates = {
    {"send", send_rate}, {"pacing_rate", pacing_rate}, {"delivery_rate", delivery_rate}};

bool is_any(std::string_view word, std::initializer_list<std::string_view> of) {
  return std::find(of.begin(), of.end(), word) != of.end();
}

size_t digits_of(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && (static_cast<unsigned>(text[n] - '0') <= 9 || text[n] == '.' || text[n] == ',')) ++n;
  return n;
}

// The number at the beginning of "12ms(0.5%)", "34.8", "60000"; NaN if there is none.
double leading(std::string_view text) { return decimal(text.substr(0, digits_of(text))); }

// "135042657bps", or "3.1Mbps" before iproute2 5.0.
double rate(std::string_view text) {
  const size_t n = digits_of(text);
  const std::string_view unit = text.substr(n);
  if (n == 0 || unit.size() < 3 || unit.substr(unit.size() - 3) != "bps") return missing;
  const double scale = unit.size() == 3 ? 1 : unit[0] == 'K' ? 1e3 : unit[0] == 'M' ? 1e6 : unit[0] == 'G' ? 1e9 : unit[0] == 'T' ? 1e12 : missing;
  return decimal(text.substr(0, n)) * scale;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t";
  const size_t from = text.find_first_not_of(blank);
  return from == std::string_view::npos ? std::string_view{} : text.substr(from, text.find_last_not_of(blank) - from + 1);
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

bool is_state(std::string_view word) {
  return is_any(word, {"ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "UNCONN", "CLOSE-WAIT",
                       "LAST-ACK", "LISTEN", "CLOSING", "UNKNOWN"});
}

struct End {
  std::string address;
  int port = -1;
};

bool read_end(std::string_view word, End& end) {
  const size_t colon = word.rfind(':');
  if (colon == std::string_view::npos) return false;
  int64_t port = -1;
  Scanner scan(word.substr(colon + 1));
  if (scan.number(port) && scan.done() && port <= 65535) end.port = static_cast<int>(port);
  std::string_view address = word.substr(0, colon);
  if (address.size() > 1 && address.front() == '[') address = address.substr(1, address.find(']') - 1);
  if (address.substr(0, 7) == "::ffff:" && address.find('.') != std::string_view::npos) address.remove_prefix(7);
  end.address = std::string(address.substr(0, address.find('%')));
  return !end.address.empty();
}

class Reader {
 public:
  void line(std::string_view text, size_t number) {
    if (trimmed(text).empty()) return;
    text = unstamped(text);
    if (trimmed(text).empty()) return void(row_ = false);
    const auto words = words_of(text);
    const bool indented = text[0] == ' ' || text[0] == '\t';
    if (is_any(words[0], {"State", "Netid"})) return void(heading_ = true);
    if (indented && row_) return tokens(words, 0);
    if (!socket(words)) strange(number);
  }
  // The sample that an incomplete line belongs to is incomplete too.
  void cut(std::string_view text) {
    out_.cut = true;
    text = unstamped(text);
    if (row_ && !text.empty() && (text[0] == ' ' || text[0] == '\t')) drop_last();
  }
  Table& finish() {
    if (out_.state.empty() && !heading_) {
      throw FormatError("line " + std::to_string(std::max<size_t>(out_.first_strange, 1)) +
                        ": is not output of ss -tin; expected a line that begins with a state such as ESTAB");
    }
    return out_;
  }

 private:
  void strange(size_t number) {
    row_ = false;
    if (out_.strange++ == 0) out_.first_strange = number;
  }

  // Removes the time at the beginning of a line, in seconds or nanoseconds since 1970. It is alone on a line before each sample (also after #), or
  // in front of every line and followed by a blank, as ts '%s' and ts '%.s' write it.
  std::string_view unstamped(std::string_view text) {
    const std::string_view whole = trimmed(text);
    const std::string_view alone = !whole.empty() && whole[0] == '#' ? trimmed(whole.substr(1)) : whole;
    if (time(alone)) return {};
    const size_t blank = std::min(text.find(' '), text.size());
    return time(text.substr(0, blank)) ? text.substr(std::min(blank + 1, text.size())) : text;
  }

  bool time(std::string_view text) {
    Scanner scan(text);
    int64_t s = 0, ns = 0;
    const char* from = scan.at;
    while (!scan.done() && static_cast<unsigned>(*scan.at - '0') <= 9) ++scan.at;
    const auto digits = static_cast<size_t>(scan.at - from);
    if (digits != 10 && (digits != 19 || !scan.done())) return false;
    Scanner whole(text.substr(0, 10));
    whole.number(s);
    std::string part(text.substr(10));
    if (digits == 10 && !part.empty()) {
      if (part[0] != '.' && part[0] != ',') return false;
      part.erase(0, 1);
    }
    if (part.size() > 9) return false;
    part.resize(9, '0');
    Scanner fraction(part);
    if (!fraction.number(ns) || !fraction.done()) return false;
    now_s_ = static_cast<double>(s);
    now_ns_ = static_cast<double>(ns);
    return true;
  }

  bool socket(const std::vector<std::string_view>& words) {
    const size_t at = is_any(words[0], {"tcp", "mptcp"}) ? 1 : 0;
    End local, peer;
    if (words.size() < at + 5 || !is_state(words[at]) || !read_end(words[at + 3], local) || !read_end(words[at + 4], peer)) return false;
    out_.epoch_s.push_back(now_s_);
    out_.rest_ns.push_back(now_ns_);
    out_.state.push_back(out_.states.code(words[at]));
    out_.src.push_back(out_.addresses.code(local.address));
    out_.dst.push_back(out_.addresses.code(peer.address));
    out_.sport.push_back(local.port);
    out_.dport.push_back(peer.port);
    out_.cc.push_back(0);
    for (auto& column : out_.real) column.push_back(missing);
    set(recv_q, leading(words[at + 1]));
    set(send_q, leading(words[at + 2]));
    row_ = true;
    tokens(words, at + 5);
    return true;
  }

  void tokens(const std::vector<std::string_view>& words, size_t from) {
    for (size_t i = from; i < words.size(); ++i) {
      const auto found = rates.find(words[i]);
      const size_t colon = words[i].find(':');
      if (found != rates.end()) {
        if (i + 1 < words.size()) set(found->second, rate(words[++i]));
      } else if (colon == std::string_view::npos) {
        if (words[i] == "app_limited") set(app_limited, 1);
      } else {
        const std::string_view key = words[i].substr(0, colon);
        // The congestion control is the word before the first of these two words.
        if (i > from && out_.cc.back() == 0 && is_any(key, {"wscale", "rto"})) name_cc(words[i - 1]);
        value(key, words[i].substr(colon + 1));
      }
    }
  }

  void name_cc(std::string_view word) {
    const bool flag = is_any(word, {"ts", "sack", "ecn", "ecnseen", "fastopen", "cong", "<->", "-->", "<--", "---"});
    if (!flag && word.find(':') == std::string_view::npos && word.size() < 17) out_.cc.back() = out_.ccs.code(word);
  }

  void value(std::string_view key, std::string_view text) {
    const size_t slash = text.find('/');
    const std::string_view second = slash == std::string_view::npos ? std::string_view{} : text.substr(slash + 1);
    if (key == "rtt") {
      set(srtt, leading(text) * 1e3);
      set(rttvar, leading(second) * 1e3);
    } else if (key == "retrans") {
      set(retrans, leading(text));
      set(total_retrans, leading(second));
    } else if (key == "bbr") {
      const size_t at = text.find("bw:");
      if (at != std::string_view::npos) set(bbr_rate, rate(text.substr(at + 3, text.find(',', at) - at - 3)));
    } else if (const auto found = keys.find(key); found != keys.end()) {
      set(found->second.column, leading(text) * found->second.unit);
    }
  }

  void set(Column column, double to) { out_.real[column].back() = to; }

  void drop_last() {
    for (auto* column : {&out_.epoch_s, &out_.rest_ns}) column->pop_back();
    for (auto* column : {&out_.state, &out_.cc, &out_.src, &out_.dst, &out_.sport, &out_.dport}) column->pop_back();
    for (auto& column : out_.real) column.pop_back();
  }

  Table out_;
  double now_s_ = missing, now_ns_ = missing;
  bool row_ = false, heading_ = false;
};

}  // namespace

int Words::code(std::string_view word) {
  const auto found = known_.emplace(word, static_cast<int>(all_.size()) + 1);
  if (found.second) all_.emplace_back(word);
  return found.first->second;
}

Table read(Source& source) {
  Lines lines(source);
  Reader reader;
  for (std::string_view line; lines.next(line);) {
    if (lines.cut()) reader.cut(line);
    else reader.line(line, lines.number());
  }
  return std::move(reader.finish());
}

}  // namespace samovar::ss
