/* Orders are checked and executed; the state file shows the current settings. */
#include "adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ORDER_BYTES = 4096 };

static long order_number;

static struct settings fresh_settings(void) {
  struct settings set = {.link_bps = 100e6, .resume_frames = 32, .pause_quanta = 65535, .seed = 1};
  for (int direction = DOWN; direction < DIRECTIONS; direction++) {
    set.rate_bps[direction] = 100e6;
    set.buffer_frames[direction] = 1000;
  }
  return set;
}

struct key {
  const char *name;
  size_t at;
  double least, most;
};

#define OF_DIRECTION(field, direction) (offsetof(struct settings, field) + (direction) * sizeof(double))
static const struct key keys[] = {
    {"rate_down_bps", OF_DIRECTION(rate_bps, DOWN), 1e3, 1e11},
    {"rate_up_bps", OF_DIRECTION(rate_bps, UP), 1e3, 1e11},
    {"buffer_down_frames", OF_DIRECTION(buffer_frames, DOWN), 1, 1e6},
    {"buffer_up_frames", OF_DIRECTION(buffer_frames, UP), 1, 1e6},
    {"delay_down_ns", OF_DIRECTION(delay_ns, DOWN), 0, 6e10},
    {"delay_up_ns", OF_DIRECTION(delay_ns, UP), 0, 6e10},
    {"loss_down", OF_DIRECTION(loss, DOWN), 0, 1},
    {"loss_up", OF_DIRECTION(loss, UP), 0, 1},
    {"simplex", offsetof(struct settings, simplex), 0, 1},
    {"flow_control", offsetof(struct settings, flow_control), 0, 1},
    {"pause_quanta", offsetof(struct settings, pause_quanta), 0, 65535},
    {"resume_frames", offsetof(struct settings, resume_frames), 1, 1e6},
    {"drift", offsetof(struct settings, drift), 0, 0.9},
    {"seed", offsetof(struct settings, seed), 0, 9e15},
    {"link_bps", offsetof(struct settings, link_bps), 1e6, 1e11},
};
enum { KEYS = sizeof keys / sizeof *keys };

static double *value_of(struct settings *set, const struct key *key) { return (double *)((char *)set + key->at); }

/* Write the current settings to FOLDER/state, atomically. */
void write_state(const char *refused) {
  char path[512], part[520];
  snprintf(path, sizeof path, "%s/state", folder);
  snprintf(part, sizeof part, "%s.part", path);
  FILE *out = fopen(part, "we");
  if (!out) die(part);
  if (refused) fprintf(out, "refused=%s\n", refused);
  for (int number = 0; number < KEYS; number++)
    fprintf(out, "%s=%.10g\n", keys[number].name, *value_of(&now_set, &keys[number]));
  fprintf(out, "recording=%d\nlost_lines=%llu\n", is_recording(), (unsigned long long)lost_lines());
  for (int direction = DOWN; direction < DIRECTIONS; direction++) {
    const struct counters *count = &adapters[direction].count;
    fprintf(out, "%s_in_packets=%llu\n%s_out_packets=%llu\n%s_drops=%llu\n%s_unwritten=%llu\n", direction_names[direction],
            (unsigned long long)count->in_frames, direction_names[direction], (unsigned long long)count->out_frames,
            direction_names[direction], (unsigned long long)count->dropped_frames, direction_names[direction],
            (unsigned long long)count->unwritten_frames);
  }
  fprintf(out, "number=%ld\n", order_number);
  if (fclose(out) || rename(part, path)) die(path);
}

static const char *parse_pair(struct settings *set, const char *pair) {
  static char why[256];
  const char *sign = strchr(pair, '=');
  for (int number = 0; sign && number < KEYS; number++) {
    const struct key *key = &keys[number];
    if (strlen(key->name) != (size_t)(sign - pair) || strncmp(key->name, pair, (size_t)(sign - pair))) continue;
    char *end;
    double value = strtod(sign + 1, &end);
    if (*end || end == sign + 1 || !(value >= key->least && value <= key->most)) {
      snprintf(why, sizeof why, "%s; accepted: %g to %g", pair, key->least, key->most);
      return why;
    }
    *value_of(set, key) = value;
    return NULL;
  }
  snprintf(why, sizeof why, "%s: no such key", pair);
  return why;
}

static void obey(char *line) {
  char *rest, *word = strtok_r(line, " ", &rest), *number = strtok_r(NULL, " ", &rest);
  const char *refused = NULL;
  if (!word || !number) return;
  order_number = strtol(number, NULL, 10);
  if (!strcmp(word, "set")) {
    struct settings set = fresh_settings();
    while (!refused && (word = strtok_r(NULL, " ", &rest))) refused = parse_pair(&set, word);
    if (!refused) begin_anew(&set);
  } else if (!strcmp(word, "record")) {
    want_record();
    return; /* the state is written when the truth has a reader */
  } else if (strcmp(word, "tell")) {
    refused = "no such order";
  }
  write_state(refused);
}

void read_orders(int orders) {
  static char text[ORDER_BYTES];
  static size_t length;
  ssize_t got = read(orders, text + length, sizeof text - 1 - length);
  if (got <= 0) return;
  length += (size_t)got;
  text[length] = 0;
  for (char *end; (end = memchr(text, '\n', length));) {
    *end = 0;
    obey(text);
    length -= (size_t)(end + 1 - text);
    memmove(text, end + 1, length + 1);
  }
  if (length == sizeof text - 1) length = 0; /* no valid order is so long */
}

int open_orders(void) {
  char path[512];
  umask(0); /* like a real device, users of the hosts may change its settings */
  snprintf(path, sizeof path, "%s/truth", folder);
  if (mkfifo(path, 0666) && errno != EEXIST) die(path);
  snprintf(path, sizeof path, "%s/orders", folder);
  if (mkfifo(path, 0666) && errno != EEXIST) die(path);
  int orders = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC); /* also for writing, so that it has no end of file */
  if (orders < 0) die(path);
  return orders;
}

void begin_orders(void) {
  struct settings set = fresh_settings();
  begin_anew(&set);
  write_state(NULL);
}
