/* Queues of frames, and seeded random numbers. */
#include "device.h"

#include <stdlib.h>

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

void empty(struct queue *queue) {
  for (struct frame *frame; (frame = pop(queue));) free(frame);
}

uint64_t seeded(double seed) { return UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)seed; }

/* Return a random number in [0, 1), by xorshift64* (G. Marsaglia, 2003; S. Vigna, 2016). */
double drawn(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (double)((*state * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}
