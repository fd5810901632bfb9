// Round-trip times of data and its acknowledgement in one capture, by the rules of tcptrace 6.6.7.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace samovar {

// Sequence numbers without their wrap: each is taken as the one next to the last.
class Unwrapper {
 public:
  int64_t operator()(uint32_t number) {
    last_ = started_ ? last_ + static_cast<int32_t>(number - static_cast<uint32_t>(last_)) : number;
    started_ = true;
    return last_;
  }
  // As the number next to the last, which stays what it was.
  int64_t near(uint32_t number) const {
    return last_ + static_cast<int32_t>(number - static_cast<uint32_t>(last_));
  }
  bool started() const { return started_; }

 private:
  int64_t last_ = 0;
  bool started_ = false;
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
