/* Between the ends: the buffer of an adapter, its PAUSE frames, the medium, the delay behind it. */
#include "adapter.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHORTEST_FRAME = 60, QUANTUM_BITS = 512 };
#define DRIFT_STEP_NS INT64_C(500000000)

struct medium {
  struct frame *served;
  int served_way, last_way;
  int64_t free_ns; /* while a frame is served: when its last bit has passed */
};

struct settings now_set;
struct way ways[WAYS];
static struct medium media[WAYS]; /* a simplex medium is the first alone */
static uint64_t loss_state, drift_state; /* apart, so that frames do not change the walk */
static double drift_now;
static int64_t drift_next_ns;

/* xorshift64*, G. Marsaglia (2003), S. Vigna (2016): in [0, 1). */
static double drawn(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (double)((*state * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

void push(struct queue *queue, struct frame *frame) {
  frame->next = NULL;
  if (queue->last) queue->last->next = frame;
  else queue->first = frame;
  queue->last = frame;
}

struct frame *pop(struct queue *queue) {
  struct frame *frame = queue->first;
  if (frame && !(queue->first = frame->next)) queue->last = NULL;
  return frame;
}

static void empty(struct queue *queue) {
  for (struct frame *frame; (frame = pop(queue));) free(frame);
}

static void send_pause(int direction, unsigned quanta, int64_t now_ns) {
  static const unsigned char head[] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x50, 0x41,
                                       0x55, 0x53, 0x00, 0x88, 0x08, 0x00, 0x01};
  unsigned char frame[SHORTEST_FRAME] = {0};
  memcpy(frame, head, sizeof head);
  frame[11] = (unsigned char)direction;
  frame[16] = (unsigned char)(quanta >> 8);
  frame[17] = (unsigned char)quanta;
  if (write(ways[direction].tap, frame, sizeof frame) < 0) ways[direction].count.unwritten_frames++;
  if (quanta) ways[direction].count.pauses++;
  else ways[direction].count.resumes++;
  tell(direction, quanta ? "pause" : "resume", now_ns);
}

int is_full(int direction) { return ways[direction].held_frames >= (int64_t)now_set.buffer_frames[direction]; }

void pause_or_resume(int direction, int64_t now_ns) {
  struct way *way = &ways[direction];
  if (!now_set.flow_control || now_set.pause_quanta < 1) return;
  int paused = way->paused_until_ns > now_ns;
  int64_t resume_at = (int64_t)(now_set.buffer_frames[direction] - now_set.resume_frames);
  if (!paused && is_full(direction)) {
    way->paused_until_ns = now_ns + (int64_t)(now_set.pause_quanta * QUANTUM_BITS / now_set.link_bps * 1e9);
    send_pause(direction, (unsigned)now_set.pause_quanta, now_ns);
  } else if (paused && way->held_frames <= (resume_at > 0 ? resume_at : 0)) {
    way->paused_until_ns = 0;
    send_pause(direction, 0, now_ns);
  }
}

/* A walk that is drawn back to the middle, of a second's order of memory. It is one of time alone: steps that an idle
 * pair has slept through are taken when it wakes. */
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

/* Whose turn it is on a medium: of two that wait, the one that was not served last. */
static int next_way(const struct medium *medium, int first, int last) {
  int chosen = -1;
  for (int direction = first; direction <= last; direction++) {
    const struct frame *head = ways[direction].waiting.first;
    if (!head) continue;
    int both_wait = chosen >= 0 && head->t_ns <= medium->free_ns &&
                    ways[chosen].waiting.first->t_ns <= medium->free_ns;
    if (chosen < 0 || (both_wait ? medium->last_way == chosen
                                 : head->t_ns < ways[chosen].waiting.first->t_ns))
      chosen = direction;
  }
  return chosen;
}

static void arrive(struct medium *medium) {
  struct way *way = &ways[medium->served_way];
  struct frame *frame = medium->served;
  medium->served = NULL;
  medium->last_way = medium->served_way;
  way->held_frames--;
  if (now_set.loss[medium->served_way] > 0 && drawn(&loss_state) < now_set.loss[medium->served_way]) {
    way->count.lost_frames++;
    free(frame);
    return;
  }
  frame->t_ns = medium->free_ns + (int64_t)now_set.delay_ns[medium->served_way];
  push(&way->flying, frame);
}

static void advance(struct medium *medium, int first, int last, int64_t now_ns) {
  for (;;) {
    if (medium->served) {
      if (medium->free_ns > now_ns) return;
      arrive(medium);
    }
    int direction = next_way(medium, first, last);
    if (direction < 0) return;
    struct frame *frame = pop(&ways[direction].waiting);
    int64_t begins_ns = frame->t_ns > medium->free_ns ? frame->t_ns : medium->free_ns;
    medium->served = frame;
    medium->served_way = direction;
    medium->free_ns = begins_ns + takes_ns(direction, frame);
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
  for (int direction = DOWN; direction < WAYS; direction++) pause_or_resume(direction, now_ns);
  exchange_frames(now_ns);
  pass(now_ns); /* what came may begin: when it ends is the next instant of interest */
}

int may_read(int direction, int64_t now_ns) {
  return ways[direction].paused_until_ns <= now_ns && ways[direction].link_free_ns <= now_ns;
}

int64_t next_frame_ns(int64_t now_ns) {
  int64_t next_ns = NEVER_NS;
  for (int direction = DOWN; direction < WAYS; direction++) {
    const struct way *way = &ways[direction];
    if (media[direction].served) next_ns = earlier(next_ns, media[direction].free_ns);
    if (way->flying.first) next_ns = earlier(next_ns, way->flying.first->t_ns);
    if (way->paused_until_ns > now_ns) next_ns = earlier(next_ns, way->paused_until_ns);
    if (way->link_free_ns > now_ns) next_ns = earlier(next_ns, way->link_free_ns);
  }
  return next_ns;
}

void begin_anew(const struct settings *set) {
  now_set = *set;
  for (int direction = DOWN; direction < WAYS; direction++) {
    struct way *way = &ways[direction];
    if (way->paused_until_ns) send_pause(direction, 0, clock_ns(CLOCK_MONOTONIC)); /* who was told to wait need not */
    empty(&way->waiting);
    empty(&way->flying);
    free(media[direction].served);
    media[direction] = (struct medium){.last_way = UP};
    way->held_frames = way->paused_until_ns = way->link_free_ns = 0;
    way->usual_bytes = SHORTEST_FRAME;
    way->count = (struct counters){0};
  }
  loss_state = drift_state = UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)now_set.seed;
  drift_now = 0;
  drift_next_ns = clock_ns(CLOCK_MONOTONIC);
}
