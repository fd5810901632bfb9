/* A wireless network between TAP interfaces: hosts are its stations and its access point.
 *
 *   wlan FOLDER HOST TAP MAC [HOST TAP MAC ...]      the first host is the access point
 *
 * Frames follow the model in dcf.c, whose time is taken from the monotonic clock. The TAPs are read as soon as they have
 * frames. A full queue drops frames, and hosts do not learn of it. */
#include "wlan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAC_BYTES = 6, WORDS_OF_PORT = 3 };

static struct settings now_set;
static struct wlan wlan;
static const char *hosts[MOST_PORTS];
static unsigned char macs[MOST_PORTS][MAC_BYTES];
static struct reading readings[MOST_PORTS];
static uint64_t unwritten_frames;

static void begin_anew(void) {
  wlan_begin(&wlan, &now_set, device.ports, clock_ns(CLOCK_MONOTONIC));
  unwritten_frames = 0;
}

/* A unicast frame to an address that no station has goes to the access point, like a frame to a host behind it. */
static int receiver_of(const struct frame *frame) {
  if (frame->bytes[0] & 1) return EVERYONE;
  for (int port = 0; port < device.ports; port++)
    if (!memcmp(frame->bytes, macs[port], MAC_BYTES)) return port;
  return ACCESS_POINT;
}

/* The access category of a frame by its packet's DSCP (RFC 8325, section 4.3); best effort if it is not an IP packet. */
static int category_of(const struct frame *frame) {
  const unsigned char *bytes = frame->bytes;
  if (frame->length_bytes < 16) return BEST_EFFORT;
  int type = bytes[12] << 8 | bytes[13], traffic_class = (bytes[14] & 15) << 4 | bytes[15] >> 4;
  int dscp = (type == 0x800 ? bytes[15] : type == 0x86dd ? traffic_class : 0) >> 2;
  if (dscp == 44 || dscp == 46 || dscp >= 48) return VOICE; /* VOICE-ADMIT, EF, CS6, CS7 */
  if (dscp >= 24) return VIDEO;
  return dscp == 8 ? BACKGROUND : BEST_EFFORT; /* CS1 */
}

static void accept_frame(int port, struct frame *frame, int64_t now_ns) {
  frame->from = port;
  frame->category = category_of(frame);
  frame->to = frame->length_bytes > MAC_BYTES ? receiver_of(frame) : port;
  if (frame->to == port) free(frame);
  else wlan_offer(&wlan, frame, now_ns);
}

static void plan_writes(struct queue *leaving) {
  for (struct frame *frame; (frame = pop(&wlan.received)); push(leaving, frame))
    for (int port = 0; port < device.ports; port++)
      if (port == frame->to || (frame->to == EVERYONE && port != frame->from))
        plan_write(device.taps[port], frame->bytes, frame->length_bytes, &frame->written_bytes);
}

/* Let time pass in the model, write frames that have arrived, and read new ones. */
static void move_frames(int64_t now_ns) {
  struct queue leaving = {0};
  wlan_advance(&wlan, now_ns);
  plan_writes(&leaving);
  for (int port = 0; port < device.ports; port++)
    plan_reads(&readings[port], device.taps[port], readings[port].found ? READS : 1);
  run_batch();
  for (struct frame *frame; (frame = pop(&leaving)); free(frame)) unwritten_frames += frame->written_bytes < 0;
  for (int port = 0; port < device.ports; port++) take_frames(&readings[port], port, now_ns, accept_frame);
}

static int64_t next_event_ns(int64_t now_ns) {
  (void)now_ns;
  return wlan_next_ns(&wlan);
}

static int may_read(int port, int64_t now_ns) {
  (void)port, (void)now_ns;
  return 1;
}

static void write_counters(FILE *state) { fprintf(state, "unwritten=%" PRIu64 "\n", unwritten_frames); }

static void tell_sample(int64_t now_ns) {
  for (int port = 0; port < device.ports; port++) {
    const struct counters *count = &wlan.port[port].count;
    tell(now_ns, "%s,%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
         ",%" PRIu64 ",%g,%" PRId64 ",%" PRId64, hosts[port], wlan_queued(&wlan, port), count->in_frames, count->out_frames,
         count->out_bytes, count->dropped_frames, count->attempts, count->collisions, count->errors, count->discarded_frames,
         rates_mbit[wlan.port[port].rate], count->airtime_ns, wlan.busy_ns);
  }
}

struct device device = {
    .name = "wlan",
    .keys = wlan_keys,
    .key_count = WLAN_KEYS,
    .settings = &now_set,
    .settings_bytes = sizeof now_set,
    .truth_columns = "station,backlog_packets,in_packets,out_packets,out_bytes,drops,tries,collisions,errors,given_up,"
                     "rate_mbit,airtime_ns,medium_busy_ns",
    .sample_ns = SECOND_NS / 50,
    .begin_anew = begin_anew,
    .move_frames = move_frames,
    .next_event_ns = next_event_ns,
    .may_read = may_read,
    .write_counters = write_counters,
    .tell_sample = tell_sample,
};

static int read_mac(const char *text, unsigned char *mac) {
  return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) == MAC_BYTES;
}

int main(int count, char **words) {
  const char *taps[MOST_PORTS];
  int valid = count > 2 && (count - 2) % WORDS_OF_PORT == 0 && (count - 2) / WORDS_OF_PORT <= MOST_PORTS;
  for (int word = 2; valid && word < count; word += WORDS_OF_PORT, device.ports++) {
    hosts[device.ports] = words[word];
    taps[device.ports] = words[word + 1];
    valid = read_mac(words[word + 2], macs[device.ports]);
  }
  if (!valid) {
    fprintf(stderr, "usage: wlan FOLDER HOST TAP MAC [HOST TAP MAC ...]\n");
    return 2;
  }
  return run_device(words[1], taps);
}
