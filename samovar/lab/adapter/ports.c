/* The ends: frames that are taken from hosts' TAPs as their cables carry them, and those that are handed over. */
#include "adapter.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_FRAME = 65536, READS = 32 };
#define CABLE_BURST_NS INT64_C(1000000) /* how unevenly the cable may be read, so that not every frame costs a wake-up */

struct reading {
  int planned, found;
  ssize_t lengths_bytes[READS];
  unsigned char bytes[READS][LARGEST_FRAME];
};

static struct reading readings[WAYS];

static int64_t on_cable_ns(size_t length_bytes) { return (int64_t)((double)length_bytes * 8e9 / now_set.link_bps); }

/* A TAP hands frames over as fast as it is read: the cable's own rate is what keeps a burst in the host's ring. */
static int64_t carried(const struct way *way, int64_t now_ns) {
  int64_t since_ns = way->link_free_ns > now_ns - CABLE_BURST_NS ? way->link_free_ns : now_ns - CABLE_BURST_NS;
  return 1 + (now_ns - since_ns) / (on_cable_ns(way->usual_bytes) + 1);
}

static void plan_reads(int direction, int64_t now_ns) {
  struct way *way = &ways[direction];
  struct reading *reading = &readings[direction];
  int64_t wanted = may_read(direction, now_ns) ? carried(way, now_ns) : 0;
  int64_t room = (int64_t)now_set.buffer_frames[direction] - way->held_frames;
  /* An adapter that pauses its host takes no more than it has room for; one that does not finds out. */
  if (now_set.flow_control && now_set.pause_quanta >= 1) wanted = earlier(wanted, room);
  wanted = earlier(wanted, 2 * reading->found + 4); /* a read that finds nothing has its cost too */
  reading->planned = (int)earlier(wanted, READS);
  for (int number = 0; number < reading->planned; number++)
    plan_read(way->tap, reading->bytes[number], LARGEST_FRAME, &reading->lengths_bytes[number]);
}

static void accept_frame(int direction, const unsigned char *bytes, size_t length_bytes, int64_t now_ns) {
  struct way *way = &ways[direction];
  way->count.in_frames++;
  way->usual_bytes = length_bytes;
  if (way->link_free_ns < now_ns - CABLE_BURST_NS) way->link_free_ns = now_ns - CABLE_BURST_NS;
  way->link_free_ns += on_cable_ns(length_bytes);
  if (is_full(direction)) {
    way->count.dropped_frames++;
    return;
  }
  struct frame *frame = malloc(sizeof *frame + length_bytes);
  if (!frame) die("memory");
  frame->t_ns = now_ns;
  frame->length_bytes = length_bytes;
  memcpy(frame->bytes, bytes, length_bytes);
  push(&way->waiting, frame);
  way->held_frames++;
  pause_or_resume(direction, now_ns);
}

static void accept_frames(int direction, int64_t now_ns) {
  struct reading *reading = &readings[direction];
  reading->found = 0;
  for (int number = 0; number < reading->planned; number++) {
    if (reading->lengths_bytes[number] <= 0) continue;
    accept_frame(direction, reading->bytes[number], (size_t)reading->lengths_bytes[number], now_ns);
    reading->found++;
  }
}

static void plan_writes(struct way *way, struct queue *leaving, int64_t now_ns) {
  while (way->flying.first && way->flying.first->t_ns <= now_ns) {
    struct frame *frame = pop(&way->flying);
    plan_write(way->far, frame->bytes, frame->length_bytes, &frame->written_bytes);
    push(leaving, frame);
  }
}

static void count_out(struct way *way, struct queue *leaving) {
  for (struct frame *frame; (frame = pop(leaving)); free(frame)) {
    way->count.out_frames++;
    way->count.out_bytes += frame->length_bytes;
    if (frame->written_bytes < 0) way->count.unwritten_frames++;
  }
}

/* Hand over what is due and take what may come. */
void exchange_frames(int64_t now_ns) {
  struct queue leaving[WAYS] = {{0}};
  for (int direction = DOWN; direction < WAYS; direction++) plan_writes(&ways[direction], &leaving[direction], now_ns);
  for (int direction = DOWN; direction < WAYS; direction++) plan_reads(direction, now_ns);
  run_batch();
  for (int direction = DOWN; direction < WAYS; direction++) {
    count_out(&ways[direction], &leaving[direction]);
    accept_frames(direction, now_ns);
  }
}
