/* A pair of adapters, such as powerline ones, between two TAP interfaces: a queue of frames in front of a slower
 * medium. A full queue throttles the host by Ethernet flow control (IEEE 802.3, annex 31B) or drops at its tail.
 *
 *   adapter FOLDER TAP_A TAP_B      `down` is the direction from A to B, `up` is the direction from B to A
 *
 * The transmission of a frame starts when the medium is free and the frame has arrived, and takes the frame's length divided
 * by the rate. While a host is paused, its TAP is not read, and the ring of the TAP fills, like that of a card that obeys
 * PAUSE frames. */
#include "adapter.h"

#define OF(field, direction) (offsetof(struct settings, field) + (direction) * sizeof(double))
static const struct key keys[] = {
    {"rate_down_bps", OF(rate_bps, DOWN), 0, 1e3, 1e11, 100e6},
    {"rate_up_bps", OF(rate_bps, UP), 0, 1e3, 1e11, 100e6},
    {"buffer_down_frames", OF(buffer_frames, DOWN), 0, 1, 1e6, 1000},
    {"buffer_up_frames", OF(buffer_frames, UP), 0, 1, 1e6, 1000},
    {"delay_down_ns", OF(delay_ns, DOWN), 0, 0, 6e10, 0},
    {"delay_up_ns", OF(delay_ns, UP), 0, 0, 6e10, 0},
    {"loss_down", OF(loss, DOWN), 0, 0, 1, 0},
    {"loss_up", OF(loss, UP), 0, 0, 1, 0},
    {"simplex", OF(simplex, 0), 0, 0, 1, 0},
    {"access_ns", OF(access_ns, 0), 0, 0, 1e9, 0},
    {"burst_ns", OF(burst_ns, 0), 0, 0, 1e9, 0},
    {"flow_control", OF(flow_control, 0), 0, 0, 1, 0},
    {"pause_quanta", OF(pause_quanta, 0), 0, 0, 65535, 65535},
    {"resume_frames", OF(resume_frames, 0), 0, 1, 1e6, 32},
    {"drift", OF(drift, 0), 0, 0, 0.9, 0},
    {"seed", OF(seed, 0), 0, 0, 9e15, 1},
    {"link_bps", OF(link_bps, 0), 0, 1e6, 1e11, 100e6},
};
static const char *const direction_names[DIRECTIONS] = {"down", "up"};

static void write_counters(FILE *state) {
  for (int direction = DOWN; direction < DIRECTIONS; direction++) {
    const struct counters *count = &adapters[direction].count;
    const char *name = direction_names[direction];
    fprintf(state, "%s_in_packets=%llu\n%s_out_packets=%llu\n%s_drops=%llu\n%s_unwritten=%llu\n", name,
            (unsigned long long)count->in_frames, name, (unsigned long long)count->out_frames, name,
            (unsigned long long)count->dropped_frames, name, (unsigned long long)count->unwritten_frames);
  }
}

void tell_adapter(int direction, const char *event, int64_t now_ns) {
  const struct counters *count = &adapters[direction].count;
  tell(now_ns, "%s,%s,%lld,%llu,%llu,%llu,%llu,%llu,%llu,%llu", direction_names[direction], event,
       (long long)adapters[direction].held_frames, (unsigned long long)count->in_frames,
       (unsigned long long)count->out_frames, (unsigned long long)count->out_bytes,
       (unsigned long long)count->dropped_frames, (unsigned long long)count->lost_frames,
       (unsigned long long)count->pauses, (unsigned long long)count->resumes);
}

static void tell_sample(int64_t now_ns) {
  for (int direction = DOWN; direction < DIRECTIONS; direction++) tell_adapter(direction, "sample", now_ns);
}

struct device device = {
    .name = "adapter",
    .keys = keys,
    .key_count = sizeof keys / sizeof *keys,
    .settings = &now_set,
    .settings_bytes = sizeof now_set,
    .ports = DIRECTIONS,
    .truth_columns = "direction,event,backlog_packets,in_packets,out_packets,out_bytes,drops,losses,pauses,resumes",
    .sample_ns = SECOND_NS / 100,
    .begin_anew = begin_anew,
    .move_frames = move_frames,
    .next_event_ns = next_frame_ns,
    .may_read = may_read,
    .write_counters = write_counters,
    .tell_sample = tell_sample,
};

int main(int count, char **words) {
  if (count != 4) {
    fprintf(stderr, "usage: adapter FOLDER TAP_A TAP_B\n");
    return 2;
  }
  return run_device(words[1], (const char *const *)words + 2);
}
