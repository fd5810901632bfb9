/* Set the settings of a device by name, as in an order (a line of FOLDER/orders). */
#include "device.h"

#include <stdlib.h>
#include <string.h>

double *values_of(void *settings, const struct key *key) { return (double *)((char *)settings + key->at); }

void set_usual(void *settings, const struct key *keys, int count) {
  for (const struct key *key = keys; key < keys + count; key++)
    for (int port = 0; port < (key->of_ports ? MOST_PORTS : 1); port++) values_of(settings, key)[port] = key->usual;
}

/* Set one KEY=VALUE or KEY@PORT=VALUE; return NULL, or the reason why it is refused. */
const char *parse_pair(void *settings, const struct key *keys, int count, const char *pair) {
  static char why[256];
  size_t length = strcspn(pair, "@=");
  char *end = (char *)pair + length;
  long port = *end == '@' ? strtol(end + 1, &end, 10) : -1;
  for (const struct key *key = keys; *end == '=' && key < keys + count; key++) {
    int values = key->of_ports ? MOST_PORTS : 1;
    if (strlen(key->name) != length || strncmp(key->name, pair, length)) continue;
    if (port >= (key->of_ports ? MOST_PORTS : 0)) break;
    char *rest;
    double value = strtod(end + 1, &rest);
    if (*rest || rest == end + 1 || !(value >= key->least && value <= key->most)) {
      snprintf(why, sizeof why, "%s; accepted: %g to %g", pair, key->least, key->most);
      return why;
    }
    for (int one = 0; one < values; one++)
      if (port < 0 || port == one) values_of(settings, key)[one] = value;
    return NULL;
  }
  snprintf(why, sizeof why, "%s: no such key", pair);
  return why;
}
