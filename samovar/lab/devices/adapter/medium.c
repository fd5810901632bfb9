/* The buffer of an adapter, its PAUSE frames, the medium, and the delay after the medium.
 *
 * A transmission on the medium begins with the access, whose duration varies at random by up to a fifth of its mean, like a
 * slotted backoff. The transmission carries frames that waited when the access began: at least one, and as many as fit into
 * the burst. They arrive together at its end. */
#include "adapter.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHORTEST_FRAME = 60, QUANTUM_BITS = 512 };
#define ACCESS_VARIES 0.2
#define DRIFT_STEP_NS INT64_C(500000000)

struct medium {
  struct queue served; /* frames of the current transmission */
  int served_direction, last_direction;
  int64_t free_ns; /* end of the current transmission */
};

struct settings now_set;
struct adapter adapters[DIRECTIONS];
static struct medium media[DIRECTIONS]; /* if the medium is simplex, both directions use the first */
/* Each use of random numbers has a state of its own, so that frames do not change the drift. */
static uint64_t loss_state, drift_state, access_state;
static double drift_now;
static int64_t drift_next_ns;

static void send_pause(int direction, unsigned quanta, int64_t now_ns) {
  static const unsigned char head[] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x50, 0x41,
                                       0x55, 0x53, 0x00, 0x88, 0x08, 0x00, 0x01};
  unsigned char frame[SHORTEST_FRAME] = {0};
  memcpy(frame, head, sizeof head);
  frame[11] = (unsigned char)direction;
  frame[16] = (unsigned char)(quanta >> 8);
  frame[17] = (unsigned char)quanta;
  if (write(device.taps[direction], frame, sizeof frame) < 0) adapters[direction].count.unwritten_frames++;
  if (quanta) adapters[direction].count.pauses++;
  else adapters[direction].count.resumes++;
  tell_adapter(direction, quanta ? "pause" : "resume", now_ns);
}

int is_full(int direction) { return adapters[direction].held_frames >= (int64_t)now_set.buffer_frames[direction]; }

void pause_or_resume(int direction, int64_t now_ns) {
  struct adapter *adapter = &adapters[direction];
  if (!now_set.flow_control || now_set.pause_quanta < 1) return;
  int paused = adapter->paused_until_ns > now_ns;
  int64_t resume_at = (int64_t)(now_set.buffer_frames[direction] - now_set.resume_frames);
  if (!paused && is_full(direction)) {
    adapter->paused_until_ns = now_ns + (int64_t)(now_set.pause_quanta * QUANTUM_BITS / now_set.link_bps * 1e9);
    send_pause(direction, (unsigned)now_set.pause_quanta, now_ns);
  } else if (paused && adapter->held_frames <= (resume_at > 0 ? resume_at : 0)) {
    adapter->paused_until_ns = 0;
    send_pause(direction, 0, now_ns);
  }
}

/* Make the steps of a random walk, half a second apart, which reverts to its mean within about five seconds. The walk depends
 * only on time: when the pair wakes after an idle period, the walk makes the missed steps. */
static void drift(int64_t now_ns) {
  for (; now_set.drift > 0 && now_ns >= drift_next_ns; drift_next_ns += DRIFT_STEP_NS) {
    drift_now = 0.9 * drift_now + 0.6 * (drawn(&drift_state) - 0.5);
    if (drift_now > 1) drift_now = 1;
    if (drift_now < -1) drift_now = -1;
  }
}

static int64_t takes_ns(int direction, const struct frame *frame) {
  double rate_bps = now_set.rate_bps[direction] * (1 + now_set.drift * drift_now);
  return (int64_t)((double)frame->length_bytes * 8e9 / rate_bps + 0.5);
}

/* Return the direction to serve next on a medium, or -1 if no frame waits. If frames wait in both directions, they take turns. */
static int next_direction(const struct medium *medium, int first, int last) {
  int chosen = -1;
  for (int direction = first; direction <= last; direction++) {
    const struct frame *head = adapters[direction].waiting.first;
    if (!head) continue;
    int both_wait = chosen >= 0 && head->t_ns <= medium->free_ns &&
                    adapters[chosen].waiting.first->t_ns <= medium->free_ns;
    if (chosen < 0 || (both_wait ? medium->last_direction == chosen
                                 : head->t_ns < adapters[chosen].waiting.first->t_ns))
      chosen = direction;
  }
  return chosen;
}

static void begin_transmission(struct medium *medium, int direction) {
  struct queue *waiting = &adapters[direction].waiting;
  int64_t begins_ns = waiting->first->t_ns > medium->free_ns ? waiting->first->t_ns : medium->free_ns, filled_ns = 0;
  do {
    filled_ns += takes_ns(direction, waiting->first);
    push(&medium->served, pop(waiting));
  } while (waiting->first && waiting->first->t_ns <= begins_ns &&
           filled_ns + takes_ns(direction, waiting->first) <= (int64_t)now_set.burst_ns);
  medium->served_direction = direction;
  int64_t access_ns = (int64_t)(now_set.access_ns * (1 + ACCESS_VARIES * (2 * drawn(&access_state) - 1)));
  medium->free_ns = begins_ns + access_ns + filled_ns;
}

static void end_transmission(struct medium *medium) {
  struct adapter *adapter = &adapters[medium->served_direction];
  double loss = now_set.loss[medium->served_direction];
  medium->last_direction = medium->served_direction;
  for (struct frame *frame; (frame = pop(&medium->served));) {
    adapter->held_frames--;
    if (loss > 0 && drawn(&loss_state) < loss) {
      adapter->count.lost_frames++;
      free(frame);
      continue;
    }
    frame->t_ns = medium->free_ns + (int64_t)now_set.delay_ns[medium->served_direction];
    push(&adapter->flying, frame);
  }
}

static void advance(struct medium *medium, int first, int last, int64_t now_ns) {
  for (;;) {
    if (medium->served.first) {
      if (medium->free_ns > now_ns) return;
      end_transmission(medium);
    }
    int direction = next_direction(medium, first, last);
    if (direction < 0) return;
    begin_transmission(medium, direction);
  }
}

static void pass(int64_t now_ns) {
  if (now_set.simplex) {
    advance(&media[0], DOWN, UP, now_ns);
  } else {
    advance(&media[DOWN], DOWN, DOWN, now_ns);
    advance(&media[UP], UP, UP, now_ns);
  }
}

void move_frames(int64_t now_ns) {
  drift(now_ns);
  pass(now_ns);
  for (int direction = DOWN; direction < DIRECTIONS; direction++) pause_or_resume(direction, now_ns);
  exchange_frames(now_ns);
  pass(now_ns); /* a new transmission may begin; its end is the next event */
}

int may_read(int direction, int64_t now_ns) {
  return adapters[direction].paused_until_ns <= now_ns && adapters[direction].link_free_ns <= now_ns;
}

int64_t next_frame_ns(int64_t now_ns) {
  int64_t next_ns = NEVER_NS;
  for (int direction = DOWN; direction < DIRECTIONS; direction++) {
    const struct adapter *adapter = &adapters[direction];
    if (media[direction].served.first) next_ns = earlier(next_ns, media[direction].free_ns);
    if (adapter->flying.first) next_ns = earlier(next_ns, adapter->flying.first->t_ns);
    if (adapter->paused_until_ns > now_ns) next_ns = earlier(next_ns, adapter->paused_until_ns);
    if (adapter->link_free_ns > now_ns) next_ns = earlier(next_ns, adapter->link_free_ns);
  }
  return next_ns;
}

void begin_anew(void) {
  for (int direction = DOWN; direction < DIRECTIONS; direction++) {
    struct adapter *adapter = &adapters[direction];
    if (adapter->paused_until_ns) send_pause(direction, 0, clock_ns(CLOCK_MONOTONIC)); /* release a paused host */
    empty(&adapter->waiting);
    empty(&adapter->flying);
    empty(&media[direction].served);
    media[direction] = (struct medium){.last_direction = UP};
    adapter->held_frames = adapter->paused_until_ns = adapter->link_free_ns = 0;
    adapter->usual_bytes = SHORTEST_FRAME;
    adapter->count = (struct counters){0};
  }
  loss_state = drift_state = access_state = seeded(now_set.seed);
  drift_now = 0;
  drift_next_ns = clock_ns(CLOCK_MONOTONIC);
}
