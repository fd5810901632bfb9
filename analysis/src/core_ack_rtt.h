// Round-trip times of data and its acknowledgement in one capture, by the rules of tcptrace 6.6.7.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace samovar {

// Unwraps sequence numbers: each becomes the 64-bit number nearest to the last one. If ports are reused, the numbers of the
// next connection are above all earlier ones.
class Unwrapper {
 public:
  int64_t operator()(uint32_t number) {
    last_ = started_ ? near(number) : number;
    if (!started_) origin_ = lowest_ = number;
    top_ = std::max(top_, last_);
    started_ = true;
    only_syn_ = only_syn_ && last_ == syn_;
    return last_;
  }
  // Returns the number nearest to the last one, without changing the last one.
  int64_t near(uint32_t number) const {
    return last_ + static_cast<int32_t>(number - static_cast<uint32_t>(last_));
  }
  // Call for each SYN, before its number is unwrapped. Returns TRUE if the SYN starts a new connection; FALSE if it is
  // retransmitted, or is in the file after packets that were sent after it.
  bool begin(uint32_t syn, int64_t payload) {
    const bool other = started_ && (has_syn_ ? syn != static_cast<uint32_t>(syn_) : syn + 1 != lowest_);
    if (other) origin_ = last_ = ((top_ >> 32) + 2) * (int64_t{1} << 32) + syn;
    if (other || !started_) only_syn_ = true;
    if (other || !has_syn_) syn_ = started_ ? near(syn) : syn;
    end_of_syn_ = syn_ + 1 + payload;
    has_syn_ = true;
    return other;
  }
  // While only a SYN has been sent, an acknowledgement of anything else belongs to an earlier connection.
  bool acknowledges(int64_t ack) const {
    return started_ && !(only_syn_ && (ack <= syn_ || ack > end_of_syn_));
  }
  // Whether anything was sent, and the first number of the connection.
  bool started() const { return started_; }
  int64_t origin() const { return origin_; }

 private:
  int64_t last_ = 0, origin_ = 0, top_ = 0, syn_ = 0, end_of_syn_ = 0;
  uint32_t lowest_ = 0;
  bool started_ = false, has_syn_ = false, only_syn_ = false;
};

struct Sample {
  int64_t rtt_ns;
  int64_t bytes;
};

// Segments that were sent and not yet acknowledged, in order of sequence number.
class Scoreboard {
 public:
  void send(int64_t first, int64_t end, int64_t t_ns);
  // Returns TRUE if the acknowledgement of everything before `ack` gives a sample.
  bool acknowledge(int64_t ack, int64_t t_ns, Sample& sample);

 private:
  struct Segment {
    int64_t first, end, t_ns;
    bool sent_twice = false;
    bool acknowledged = false;
  };
  void collapse();
  std::deque<Segment> segments_;
};

}  // namespace samovar
