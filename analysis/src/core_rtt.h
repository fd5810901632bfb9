// Round-trip times of data and its acknowledgement in one capture, by the rules of tcptrace 6.6.7.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace samovar {

// Sequence numbers without their wrap: each is taken as the one next to the last. Ports that are used again begin another
// connection, whose numbers come after all before.
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
  // As the number next to the last, which stays what it was.
  int64_t near(uint32_t number) const {
    return last_ + static_cast<int32_t>(number - static_cast<uint32_t>(last_));
  }
  // For each SYN, before its number: TRUE where another connection begins, and not where the SYN is sent again or stands in the file
  // behind what was sent after it.
  bool begin(uint32_t syn, int64_t payload) {
    const bool other = started_ && (has_syn_ ? syn != static_cast<uint32_t>(syn_) : syn + 1 != lowest_);
    if (other) origin_ = last_ = ((top_ >> 32) + 2) * (int64_t{1} << 32) + syn;
    if (other || !started_) only_syn_ = true;
    if (other || !has_syn_) syn_ = started_ ? near(syn) : syn;
    end_of_syn_ = syn_ + 1 + payload;
    has_syn_ = true;
    return other;
  }
  // What comes back before more than a SYN was sent acknowledges that, or is of a connection before.
  bool acknowledges(int64_t ack) const {
    return started_ && !(only_syn_ && (ack <= syn_ || ack > end_of_syn_));
  }
  // Whether anything was sent, and where the numbers of the connection begin.
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

// What was sent and not forgotten yet, in order of sequence number.
class Scoreboard {
 public:
  void send(int64_t first, int64_t end, int64_t t_ns);
  // TRUE when the acknowledgement of everything before `ack` gives a sample.
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
