/* Write the true state of a device, such as its queues and counters, as lines to FOLDER/truth. */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRUTH_BYTES = 1 << 20 };
#define PATIENCE_NS (10 * SECOND_NS)

static int truth = -1;
static int64_t wanted_until_ns, sample_next_ns = NEVER_NS;
static char text[TRUTH_BYTES];
static size_t length_bytes;
static uint64_t lost;

int is_recording(void) { return truth >= 0; }

uint64_t lost_lines(void) { return lost; }

static void stop_recording(void) {
  if (truth >= 0) close(truth);
  truth = -1;
  length_bytes = 0;
  sample_next_ns = NEVER_NS;
}

static void flush_truth(void) {
  while (truth >= 0 && length_bytes > 0) {
    ssize_t written = write(truth, text, length_bytes);
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) {
      stop_recording();
      return;
    }
    length_bytes -= (size_t)written;
    memmove(text, text + written, length_bytes);
  }
}

/* Convert a time of the monotonic clock to that of the hosts' clock. The offset between the two clocks is
 * measured every tenth of a second, and used if the measurement was not interrupted. So recorded times are as
 * exact as the schedule, however late this process runs. */
static int64_t realtime_ns(int64_t now_ns) {
  static int64_t apart_ns, error_ns = NEVER_NS, look_again_ns;
  if (now_ns < look_again_ns) return now_ns + apart_ns;
  look_again_ns = now_ns + SECOND_NS / 10;
  int64_t before_ns = clock_ns(CLOCK_MONOTONIC), there_ns = clock_ns(CLOCK_REALTIME);
  int64_t taken_ns = clock_ns(CLOCK_MONOTONIC) - before_ns, fresh_ns = there_ns - before_ns - taken_ns / 2;
  int stepped = apart_ns - fresh_ns > SECOND_NS || fresh_ns - apart_ns > SECOND_NS;
  if (stepped || taken_ns <= error_ns + SECOND_NS / 100000) {
    apart_ns = fresh_ns;
    error_ns = taken_ns;
  }
  return now_ns + apart_ns;
}

/* Write a line that begins with the time. */
void tell(int64_t now_ns, const char *format, ...) {
  if (truth < 0) return;
  char line[512];
  va_list values;
  int length = snprintf(line, sizeof line, "%lld,", (long long)realtime_ns(now_ns));
  va_start(values, format);
  length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, values);
  va_end(values);
  line[length++] = '\n';
  if (length_bytes + (size_t)length > sizeof text) {
    lost++;
    return;
  }
  memcpy(text + length_bytes, line, (size_t)length);
  length_bytes += (size_t)length;
}

static void begin_recording(int64_t now_ns) {
  char path[512];
  snprintf(path, sizeof path, "%s/truth", device.folder);
  truth = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (truth < 0) return; /* there is no reader yet */
  wanted_until_ns = 0;
  length_bytes = (size_t)snprintf(text, sizeof text, "t_ns,%s\n", device.truth_columns);
  sample_next_ns = now_ns;
}

/* Start to record as soon as there is a reader. */
void want_record(void) {
  stop_recording();
  wanted_until_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
}

static void find_reader(int64_t now_ns) {
  begin_recording(now_ns);
  if (is_recording()) {
    write_state(NULL);
  } else if (now_ns > wanted_until_ns) {
    wanted_until_ns = 0;
    write_state("nobody reads the truth");
  }
}

void sample(int64_t now_ns) {
  if (wanted_until_ns) find_reader(now_ns);
  if (now_ns < sample_next_ns) return;
  device.tell_sample(now_ns);
  sample_next_ns = now_ns - now_ns % device.sample_ns + device.sample_ns;
  flush_truth();
}

int64_t next_sample_ns(int64_t now_ns) {
  return earlier(sample_next_ns, wanted_until_ns ? now_ns + device.sample_ns / 10 : NEVER_NS);
}
