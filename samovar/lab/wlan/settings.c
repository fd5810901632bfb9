/* Settings by name, as orders and test programs give them. */
#include "wlan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
  const char *name;
  size_t at;
  int of_ports; /* a value for each port: KEY sets all, KEY@PORT one */
  double least, most, usual;
};

#define OF(field) #field, offsetof(struct settings, field)
static const struct key keys[] = {
    {OF(standard), 0, STANDARD_B, STANDARD_A, STANDARD_G},
    {OF(short_preamble), 0, 0, 1, 0},
    {OF(protection), 0, 0, 1, 0},
    {OF(rts_bytes), 0, 0, 65536, 65536},
    {OF(tries), 0, 1, 255, 7},
    {OF(basic_mbit), 0, 1, 54, 24},
    {OF(seed), 0, 0, 9e15, 1},
    {OF(adaptation), 1, FIXED, SAMPLING, FIXED},
    {OF(rate_mbit), 1, 1, 54, 54},
    {OF(snr_db), 1, -20, 100, 50},
    {OF(loss), 1, 0, 1, 0},
    {OF(queue_frames), 1, 1, 1e6, 50},
};
enum { KEYS = sizeof keys / sizeof *keys };

static double *values_of(struct settings *set, const struct key *key) { return (double *)((char *)set + key->at); }

struct settings fresh_settings(void) {
  struct settings set;
  for (int number = 0; number < KEYS; number++)
    for (int port = 0; port < (keys[number].of_ports ? MOST_PORTS : 1); port++)
      values_of(&set, &keys[number])[port] = keys[number].usual;
  return set;
}

/* Set one KEY=VALUE or KEY@PORT=VALUE; return NULL, or why this cannot be. */
const char *parse_pair(struct settings *set, const char *pair) {
  static char why[256];
  size_t length = strcspn(pair, "@=");
  char *end = (char *)pair + length;
  long port = *end == '@' ? strtol(end + 1, &end, 10) : -1;
  snprintf(why, sizeof why, "%s: no such key", pair);
  for (int number = 0; *end == '=' && number < KEYS; number++) {
    const struct key *key = &keys[number];
    if (strlen(key->name) != length || strncmp(key->name, pair, length)) continue;
    char *rest;
    double value = strtod(end + 1, &rest);
    if (*rest || rest == end + 1 || !(value >= key->least && value <= key->most)) {
      snprintf(why, sizeof why, "%s; accepted: %g to %g", pair, key->least, key->most);
      return why;
    }
    if (port >= (key->of_ports ? MOST_PORTS : 0)) return why;
    for (int one = 0; one < (key->of_ports ? MOST_PORTS : 1); one++)
      if (port < 0 || port == one) values_of(set, key)[one] = value;
    return NULL;
  }
  return why;
}
