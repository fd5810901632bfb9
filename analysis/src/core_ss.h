// Reads the output of iproute2's `ss -tin`, sample after sample.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "core_text.h"

namespace samovar::ss {

// Names of the numeric columns, in the table's order.
enum Column : size_t {
  cwnd, ssthresh, srtt, rttvar, min_rtt, rto, snd_mss, rcv_mss, pmtu, unacked, sacked, lost, retrans, total_retrans, reordering,
  bytes_sent, bytes_acked, bytes_received, bytes_retrans, segs_out, segs_in, notsent, snd_wnd, rcv_space, rcv_ssthresh,
  send_rate, pacing_rate, delivery_rate, busy, rwnd_limited, sndbuf_limited, last_sent, app_limited, bbr_rate, recv_q, send_q,
  column_count
};
extern const std::array<const char*, column_count> names;

// Distinct texts of a column; codes count from 1.
class Words {
 public:
  int code(std::string_view word);
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::unordered_map<std::string, int> known_;
  std::vector<std::string> all_;
};

struct Table {
  std::vector<double> epoch_s, rest_ns;  // NaN before the first time stamp
  std::vector<int> state, cc, src, dst, sport, dport;
  std::array<std::vector<double>, column_count> real;
  Words states, ccs, addresses;
  size_t strange = 0, first_strange = 0;  // lines that ss does not print
  bool cut = false;
};

// Throws FormatError, with a text beginning with "line N: ", if no line is from ss.
Table read(Source& source);

}  // namespace samovar::ss
