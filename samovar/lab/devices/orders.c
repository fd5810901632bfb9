/* Orders are checked and executed; the state file shows the current settings. */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ORDER_BYTES = 16384 };

static long order_number;

/* Write the current settings to FOLDER/state, atomically. */
void write_state(const char *refused) {
  char path[512], part[520];
  snprintf(path, sizeof path, "%s/state", device.folder);
  snprintf(part, sizeof part, "%s.part", path);
  FILE *out = fopen(part, "we");
  if (!out) die(part);
  if (refused) fprintf(out, "refused=%s\n", refused);
  for (const struct key *key = device.keys; key < device.keys + device.key_count; key++) {
    const double *values = values_of(device.settings, key);
    if (!key->of_ports) fprintf(out, "%s=%.10g\n", key->name, *values);
    for (int port = 0; key->of_ports && port < device.ports; port++)
      fprintf(out, "%s@%d=%.10g\n", key->name, port, values[port]);
  }
  fprintf(out, "recording=%d\nlost_lines=%llu\n", is_recording(), (unsigned long long)lost_lines());
  device.write_counters(out);
  fprintf(out, "number=%ld\n", order_number);
  if (fclose(out) || rename(part, path)) die(path);
}

static const char *apply(char *pairs) {
  char *rest = NULL, *pair = pairs ? strtok_r(pairs, " ", &rest) : NULL;
  void *settings = malloc(device.settings_bytes);
  const char *refused = NULL;
  if (!settings) die("memory");
  set_usual(settings, device.keys, device.key_count);
  for (; pair && !refused; pair = strtok_r(NULL, " ", &rest))
    refused = parse_pair(settings, device.keys, device.key_count, pair);
  if (!refused) {
    memcpy(device.settings, settings, device.settings_bytes);
    device.begin_anew();
  }
  free(settings);
  return refused;
}

static void obey(char *line) {
  char *rest, *word = strtok_r(line, " ", &rest), *number = strtok_r(NULL, " ", &rest);
  const char *refused = NULL;
  if (!word || !number) return;
  order_number = strtol(number, NULL, 10);
  if (!strcmp(word, "set")) {
    refused = apply(rest);
  } else if (!strcmp(word, "record")) {
    want_record();
    return; /* find_reader() writes the state once the file `truth` has a reader */
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
  umask(0); /* users of the hosts may change the settings, as on a real device */
  snprintf(path, sizeof path, "%s/truth", device.folder);
  if (mkfifo(path, 0666) && errno != EEXIST) die(path);
  snprintf(path, sizeof path, "%s/orders", device.folder);
  if (mkfifo(path, 0666) && errno != EEXIST) die(path);
  int orders = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC); /* writable too, so that reads never return end of file */
  if (orders < 0) die(path);
  return orders;
}

void begin_orders(void) {
  apply(NULL);
  write_state(NULL);
}
