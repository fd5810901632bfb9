#include <Rcpp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core_ack_rtt.h"
#include "core_sequence.h"

namespace {

constexpr int flag_fin = 1, flag_syn = 2, flag_rst = 4, flag_ack = 16;

// The TCP packets of one flow and its reverse direction, in order of time; in order of capture if some have no time.
class Conversation {
 public:
  Conversation(const Rcpp::DataFrame& capture, const std::string& out, const std::string& back)
      : t_ns_(capture["t_ns"]),
        seq_(capture["seq"]),
        ack_(capture["ack"]),
        flags_(capture["flags"]),
        window_(capture["window"]),
        payload_(capture["payload_bytes"]),
        flow_(capture["flow"]),
        out_(level_of(out)),
        back_(level_of(back)) {}

  // Packets of pcapng's simple blocks have no time (NA): their bytes count, their time does not. If the snapshot length cut the
  // header, missing numbers and flags are 0, window and payload NA_INTEGER. Fragments after the first have a payload and no
  // sequence number.
  struct Packet {
    bool out, timed, flagged, numbered;
    int64_t t_ns;
    uint32_t seq, ack;
    int flags, window, payload_bytes;
    bool has(int flag) const { return flags & flag; }
    // Whether this packet of the receiver closes its window: until it opens, the sender may only probe it (RFC 9293, section 3.8.6.1).
    bool closes_window() const { return window == 0 || !(has(flag_ack) || has(flag_syn)); }
  };
  template <typename Visit>
  void each(Visit visit) const {
    const int* flow = flow_.begin();
    for (const R_xlen_t i : rows()) {
      const bool timed = !std::isnan(t_ns_[i]), flagged = flags_[i] != NA_INTEGER;
      visit(Packet{flow[i] == out_, timed, flagged, !std::isnan(seq_[i]), timed ? static_cast<int64_t>(t_ns_[i]) : 0, number_of(seq_[i]),
                   number_of(ack_[i]), flagged ? flags_[i] : 0, window_[i], payload_[i]});
    }
  }

 private:
  std::vector<R_xlen_t> rows() const {
    const int* flow = flow_.begin();
    std::vector<R_xlen_t> found;
    bool timed = true;
    for (R_xlen_t i = 0, n = flow_.size(); i < n; ++i) {
      if ((flow[i] != out_ && flow[i] != back_) || (std::isnan(seq_[i]) && payload_[i] == 0)) continue;
      found.push_back(i);
      timed = timed && !std::isnan(t_ns_[i]);
    }
    const double* t_ns = t_ns_.begin();
    const auto earlier = [t_ns](R_xlen_t a, R_xlen_t b) { return t_ns[a] < t_ns[b]; };
    // Captures of one CPU usually are in order.
    if (timed && !std::is_sorted(found.begin(), found.end(), earlier)) std::stable_sort(found.begin(), found.end(), earlier);
    return found;
  }
  static uint32_t number_of(double x) { return std::isnan(x) ? 0 : static_cast<uint32_t>(x); }
  int level_of(const std::string& name) const {
    const Rcpp::CharacterVector levels = flow_.attr("levels");
    for (R_xlen_t k = 0; k < levels.size(); ++k)
      if (levels[k] == name) return static_cast<int>(k) + 1;
    return -1;  // no flow has this number
  }
  Rcpp::NumericVector t_ns_, seq_, ack_;
  Rcpp::IntegerVector flags_, window_, payload_, flow_;
  int out_, back_;
};

}  // namespace

// [[Rcpp::export]]
Rcpp::List acknowledged_segments(const Rcpp::DataFrame& capture, const std::string& out,
                                 const std::string& back) {
  samovar::Scoreboard board;
  samovar::Unwrapper unwrap;
  bool closed = false;  // the receiver's last window was 0: segments are probes now
  std::vector<double> t_ns, rtt_ms, bytes;
  Conversation(capture, out, back).each([&](const Conversation::Packet& p) {
    if (!p.timed || !p.flagged) return;
    if (p.out) {
      const int64_t length = p.payload_bytes + p.has(flag_syn) + p.has(flag_fin);
      if (length == 0) return;
      if (p.has(flag_syn)) unwrap.begin(p.seq, p.payload_bytes);
      const int64_t first = unwrap(p.seq);
      if (!closed) board.send(first, first + length, p.t_ns);
      return;
    }
    samovar::Sample sample{};
    const int64_t ack = unwrap.near(p.ack);
    if (p.has(flag_ack) && unwrap.acknowledges(ack) && board.acknowledge(ack, p.t_ns, sample)) {
      t_ns.push_back(static_cast<double>(p.t_ns));
      rtt_ms.push_back(static_cast<double>(sample.rtt_ns) / 1e6);
      bytes.push_back(static_cast<double>(sample.bytes));
    }
    if (!p.has(flag_rst)) closed = p.closes_window();
  });
  return Rcpp::List::create(Rcpp::_["t_ns"] = t_ns, Rcpp::_["rtt_ms"] = rtt_ms, Rcpp::_["bytes"] = bytes);
}

// Unwrapped sequence numbers of both directions' packets, in order of capture: `first` of outgoing packets, `ack_to` of
// returning ones, `origin` of the connection.
// [[Rcpp::export]]
Rcpp::List connection_numbers(const Rcpp::LogicalVector& out, const Rcpp::NumericVector& seq, const Rcpp::NumericVector& ack,
                              const Rcpp::IntegerVector& flags, const Rcpp::IntegerVector& payload_bytes) {
  samovar::Unwrapper unwrap;
  const R_xlen_t n = out.size();
  Rcpp::NumericVector first(n, NA_REAL), ack_to(n, NA_REAL), origin(n, NA_REAL);
  for (R_xlen_t i = 0; i < n; ++i) {
    const int marks = flags[i] == NA_INTEGER ? 0 : flags[i];
    if (out[i] && !std::isnan(seq[i])) {
      const auto number = static_cast<uint32_t>(seq[i]);
      if (marks & flag_syn) unwrap.begin(number, std::max(payload_bytes[i], 0));
      first[i] = static_cast<double>(unwrap(number));
    } else if (!out[i] && (marks & flag_ack) && !std::isnan(ack[i])) {
      const int64_t number = unwrap.near(static_cast<uint32_t>(ack[i]));
      if (unwrap.acknowledges(number)) ack_to[i] = static_cast<double>(number);
    }
    if (unwrap.started()) origin[i] = static_cast<double>(unwrap.origin());
  }
  return Rcpp::List::create(Rcpp::_["first"] = first, Rcpp::_["ack_to"] = ack_to, Rcpp::_["origin"] = origin);
}

// The data packets of a flow in order of time: `first` and `end` of their sequence numbers, `new_bytes` that were not in the capture before. Probes of a
// closed window are not data; `probe_bytes` of them were acknowledged and not sent again. `unknown` is TRUE if the payload of a packet is unknown.
// [[Rcpp::export]]
Rcpp::List data_segments(const Rcpp::DataFrame& capture, const std::string& out, const std::string& back) {
  samovar::SequenceSpace space;
  samovar::Unwrapper unwrap;
  std::vector<double> t_ns, firsts, ends, new_bytes;
  double probes = 0, probe_bytes = 0;
  bool closed = false;
  int64_t probed = -1;  // the byte of the last probe, which counts as delivered if it is acknowledged
  int64_t first_acked = 0, acked = 0, acked_before = 0;
  bool any_acked = false, unknown = false;
  Conversation(capture, out, back).each([&](const Conversation::Packet& p) {
    if (p.payload_bytes == NA_INTEGER || !p.numbered) {
      unknown |= p.out && (p.payload_bytes == NA_INTEGER || unwrap.started());
      return;
    }
    if (p.out && p.has(flag_syn) && unwrap.begin(p.seq, p.payload_bytes)) {
      acked_before += acked - first_acked;
      any_acked = false;
      first_acked = acked = 0;
    }
    // A SYN takes one number before its data (RFC 9293, section 3.4).
    const int64_t first = p.out ? unwrap(p.seq) + p.has(flag_syn) : 0;
    if (p.out && closed && p.payload_bytes == 1 && first >= space.top(first)) {
      ++probes;
      probed = first;
      return;
    }
    if (p.out && p.payload_bytes > 0) {
      const int64_t end = first + p.payload_bytes;
      t_ns.push_back(p.timed ? static_cast<double>(p.t_ns) : NA_REAL);
      firsts.push_back(static_cast<double>(first));
      ends.push_back(static_cast<double>(end));
      new_bytes.push_back(static_cast<double>(p.payload_bytes - space.add(first, end)));
    } else if (const int64_t number = unwrap.near(p.ack); !p.out && p.has(flag_ack) && unwrap.acknowledges(number)) {
      if (!any_acked) first_acked = acked = number;
      any_acked = true;
      acked = std::max(acked, number);
      if (probed >= 0 && number > probed) {
        probe_bytes += static_cast<double>(1 - space.add(probed, probed + 1));
        probed = -1;
      }
    }
    if (!p.out && !p.has(flag_rst)) closed = p.window != NA_INTEGER && p.closes_window();
  });
  return Rcpp::List::create(
      Rcpp::_["packets"] = Rcpp::List::create(Rcpp::_["t_ns"] = t_ns, Rcpp::_["first"] = firsts, Rcpp::_["end"] = ends, Rcpp::_["new_bytes"] = new_bytes),
      Rcpp::_["window_probes"] = probes, Rcpp::_["probe_bytes"] = probe_bytes,
      Rcpp::_["acked_bytes"] = static_cast<double>(acked_before + acked - first_acked), Rcpp::_["unknown"] = unknown);
}
