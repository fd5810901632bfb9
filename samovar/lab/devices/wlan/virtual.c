/* The model in virtual time, without TAPs: some ports always have a frame to send.
 *
 *   virtual SECONDS PORTS LENGTH FLOW[,FLOW...] [KEY=VALUE...]
 *
 * A FLOW is SENDER:RECEIVER or SENDER:RECEIVER:CATEGORY, best effort by default; LENGTH is that of the Ethernet frames.
 * Prints the counters of each port, and then those of the medium, as lines of JSON. */
#include "wlan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FLOWS = MOST_PORTS * CATEGORIES };

struct flow {
  int from, to, category;
};

static void supply(struct wlan *wlan, const struct flow *flow, size_t length_bytes, int64_t now_ns) {
  while (contender_of(wlan, flow->from, flow->category)->queued < 2) {
    struct frame *frame = calloc(1, sizeof *frame);
    if (!frame) abort();
    *frame = (struct frame){.length_bytes = length_bytes, .from = flow->from, .to = flow->to, .category = flow->category};
    wlan_offer(wlan, frame, now_ns);
  }
}

static void print_counters(const struct wlan *wlan, int64_t now_ns) {
  for (int number = 0; number < wlan->ports; number++) {
    const struct counters *count = &wlan->port[number].count;
    printf("{\"port\": %d, \"out_frames\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"attempts\": %" PRIu64
           ", \"collisions\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"discarded\": %" PRIu64 ", \"airtime_ns\": %" PRId64 "}\n",
           number, count->out_frames, count->dropped_frames, count->attempts, count->collisions, count->errors,
           count->discarded_frames, count->airtime_ns);
  }
  printf("{\"busy_ns\": %" PRId64 ", \"time_ns\": %" PRId64 "}\n", wlan->busy_ns, now_ns);
}

int main(int count, char **words) {
  static struct wlan wlan;
  struct flow flows[MOST_FLOWS];
  int flow_count = 0;
  struct settings set;
  set_usual(&set, wlan_keys, WLAN_KEYS);
  if (count < 5) return 2;
  int64_t end_ns = (int64_t)(atof(words[1]) * 1e9), now_ns = 0;
  for (char *rest = words[4], *word; flow_count < MOST_FLOWS && (word = strsep(&rest, ","));) {
    struct flow *flow = &flows[flow_count++];
    flow->category = BEST_EFFORT;
    if (sscanf(word, "%d:%d:%d", &flow->from, &flow->to, &flow->category) < 2) return 2;
  }
  for (int number = 5; number < count; number++) {
    const char *why = parse_pair(&set, wlan_keys, WLAN_KEYS, words[number]);
    if (why) {
      fprintf(stderr, "%s\n", why);
      return 2;
    }
  }
  wlan_begin(&wlan, &set, atoi(words[2]), 0);
  while (now_ns < end_ns) {
    for (int flow = 0; flow < flow_count; flow++) supply(&wlan, &flows[flow], (size_t)atoi(words[3]), now_ns);
    now_ns = wlan_next_ns(&wlan);
    wlan_advance(&wlan, now_ns);
    for (struct frame *frame; (frame = pop(&wlan.received));) free(frame);
  }
  print_counters(&wlan, now_ns);
  return 0;
}
