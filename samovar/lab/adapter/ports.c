/* The ports: frames are read from the TAPs of hosts at the rate of their cables, and written to them. */
#include "adapter.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_FRAME = 65536, READS = 32 };
#define CABLE_BURST_NS INT64_C(1000000) /* burst in which the cable may be read, so that not every frame needs a wake-up */

struct reading {
  int planned, found;
  ssize_t lengths_bytes[READS];
  unsigned char bytes[READS][LARGEST_FRAME];
};

static struct reading readings[DIRECTIONS];

static int64_t on_cable_ns(size_t length_bytes) { return (int64_t)((double)length_bytes * 8e9 / now_set.link_bps); }

/* A TAP delivers frames as fast as it is read; only the rate of the cable keeps a burst in the ring of the host. */
static int64_t carried(const struct adapter *adapter, int64_t now_ns) {
  int64_t since_ns = adapter->link_free_ns > now_ns - CABLE_BURST_NS ? adapter->link_free_ns : now_ns - CABLE_BURST_NS;
  return 1 + (now_ns - since_ns) / (on_cable_ns(adapter->usual_bytes) + 1);
}

static void plan_reads(int direction, int64_t now_ns) {
  struct adapter *adapter = &adapters[direction];
  struct reading *reading = &readings[direction];
  int64_t wanted = may_read(direction, now_ns) ? carried(adapter, now_ns) : 0;
  int64_t room = (int64_t)now_set.buffer_frames[direction] - adapter->held_frames;
  /* An adapter that pauses its host reads only frames for which it has room; others drop frames. */
  if (now_set.flow_control && now_set.pause_quanta >= 1) wanted = earlier(wanted, room);
  wanted = earlier(wanted, 2 * reading->found + 4); /* a read without a frame is not free either */
  reading->planned = (int)earlier(wanted, READS);
  for (int number = 0; number < reading->planned; number++)
    plan_read(adapter->tap, reading->bytes[number], LARGEST_FRAME, &reading->lengths_bytes[number]);
}

static void accept_frame(int direction, const unsigned char *bytes, size_t length_bytes, int64_t now_ns) {
  struct adapter *adapter = &adapters[direction];
  adapter->count.in_frames++;
  adapter->usual_bytes = length_bytes;
  if (adapter->link_free_ns < now_ns - CABLE_BURST_NS) adapter->link_free_ns = now_ns - CABLE_BURST_NS;
  adapter->link_free_ns += on_cable_ns(length_bytes);
  if (is_full(direction)) {
    adapter->count.dropped_frames++;
    return;
  }
  struct frame *frame = malloc(sizeof *frame + length_bytes);
  if (!frame) die("memory");
  frame->t_ns = now_ns;
  frame->length_bytes = length_bytes;
  memcpy(frame->bytes, bytes, length_bytes);
  push(&adapter->waiting, frame);
  adapter->held_frames++;
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

static void plan_writes(struct adapter *adapter, struct queue *leaving, int64_t now_ns) {
  while (adapter->flying.first && adapter->flying.first->t_ns <= now_ns) {
    struct frame *frame = pop(&adapter->flying);
    plan_write(adapter->far, frame->bytes, frame->length_bytes, &frame->written_bytes);
    push(leaving, frame);
  }
}

static void count_out(struct adapter *adapter, struct queue *leaving) {
  for (struct frame *frame; (frame = pop(leaving)); free(frame)) {
    adapter->count.out_frames++;
    adapter->count.out_bytes += frame->length_bytes;
    if (frame->written_bytes < 0) adapter->count.unwritten_frames++;
  }
}

/* Write frames that are due, and read new ones. */
void exchange_frames(int64_t now_ns) {
  struct queue leaving[DIRECTIONS] = {{0}};
  for (int direction = DOWN; direction < DIRECTIONS; direction++) plan_writes(&adapters[direction], &leaving[direction], now_ns);
  for (int direction = DOWN; direction < DIRECTIONS; direction++) plan_reads(direction, now_ns);
  run_batch();
  for (int direction = DOWN; direction < DIRECTIONS; direction++) {
    count_out(&adapters[direction], &leaving[direction]);
    accept_frames(direction, now_ns);
  }
}
