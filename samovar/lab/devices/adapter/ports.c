/* The ports: frames are read from the TAPs of hosts at the rate of their cables, and written to them. */
#include "adapter.h"

#include <stdlib.h>

/* Frames that a cable carries in this time may be read together, so that not every frame needs a wake-up. */
#define CABLE_BURST_NS INT64_C(1000000)

static struct reading readings[DIRECTIONS];

static int64_t on_cable_ns(size_t length_bytes) { return (int64_t)((double)length_bytes * 8e9 / now_set.link_bps); }

/* A TAP delivers frames as fast as they are read. A burst stays in the ring of the host only because this
   program reads frames at the rate of the cable. */
static int64_t carried(const struct adapter *adapter, int64_t now_ns) {
  int64_t since_ns = adapter->link_free_ns > now_ns - CABLE_BURST_NS ? adapter->link_free_ns : now_ns - CABLE_BURST_NS;
  return 1 + (now_ns - since_ns) / (on_cable_ns(adapter->usual_bytes) + 1);
}

static int64_t wanted_frames(int direction, int64_t now_ns) {
  const struct adapter *adapter = &adapters[direction];
  int64_t wanted = may_read(direction, now_ns) ? carried(adapter, now_ns) : 0;
  int64_t room = (int64_t)now_set.buffer_frames[direction] - adapter->held_frames;
  /* An adapter that pauses its host reads only frames for which it has room. Other adapters read and drop the rest. */
  return now_set.flow_control && now_set.pause_quanta >= 1 ? earlier(wanted, room) : wanted;
}

static void accept_frame(int direction, struct frame *frame, int64_t now_ns) {
  struct adapter *adapter = &adapters[direction];
  adapter->count.in_frames++;
  adapter->usual_bytes = frame->length_bytes;
  if (adapter->link_free_ns < now_ns - CABLE_BURST_NS) adapter->link_free_ns = now_ns - CABLE_BURST_NS;
  adapter->link_free_ns += on_cable_ns(frame->length_bytes);
  if (is_full(direction)) {
    adapter->count.dropped_frames++;
    free(frame);
    return;
  }
  push(&adapter->waiting, frame);
  adapter->held_frames++;
  pause_or_resume(direction, now_ns);
}

static void plan_writes(int direction, struct queue *leaving, int64_t now_ns) {
  struct adapter *adapter = &adapters[direction];
  while (adapter->flying.first && adapter->flying.first->t_ns <= now_ns) {
    struct frame *frame = pop(&adapter->flying);
    plan_write(device.taps[DOWN + UP - direction], frame->bytes, frame->length_bytes, &frame->written_bytes);
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
  for (int direction = DOWN; direction < DIRECTIONS; direction++) plan_writes(direction, &leaving[direction], now_ns);
  for (int direction = DOWN; direction < DIRECTIONS; direction++)
    plan_reads(&readings[direction], device.taps[direction], wanted_frames(direction, now_ns));
  run_batch();
  for (int direction = DOWN; direction < DIRECTIONS; direction++) {
    count_out(&adapters[direction], &leaving[direction]);
    take_frames(&readings[direction], direction, now_ns, accept_frame);
  }
}
