/* A pair of adapters, such as powerline ones, between two TAP interfaces: a queue of frames in front of a slower
 * medium, which throttles the host by Ethernet flow control (IEEE 802.3, annex 31B) or drops at its tail.
 *
 *   adapter FOLDER TAP_A TAP_B      `down` is the direction from A to B, `up` from B to A
 *
 * FOLDER/orders is a named pipe for orders, one a line:
 *   set NUMBER KEY=VALUE...         apply these settings (see `keys` in orders.c), and defaults for all others; empty the
 *                                   queues and reset the counters
 *   record NUMBER                   write the true state to FOLDER/truth until its reader closes it
 * FOLDER/state has `number=NUMBER` of the last order that was executed and the current settings, or `refused=WHY`.
 *
 * Frames follow a computed schedule that does not depend on when this process runs: a frame starts when the medium is
 * free and the frame has arrived, and takes its length over the rate. A late wake-up delays only frames that were due
 * before it. While an adapter is paused, its TAP is not read, and the ring of the TAP fills, like that of a card that
 * obeys PAUSE frames. */
#include "adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>

#define MODERATION_NS INT64_C(200000)

const char *const direction_names[DIRECTIONS] = {"down", "up"};
const char *folder;
static volatile sig_atomic_t ended;

void die(const char *what) {
  fprintf(stderr, "adapter: %s: %s\n", what, strerror(errno));
  exit(1);
}

int64_t clock_ns(int clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * SECOND_NS + time.tv_nsec;
}

/* A TAP that was removed is always readable but has no frames. */
static void leave(int direction) {
  fprintf(stderr, "adapter: the TAP that %s begins at is gone\n", direction_names[direction]);
  exit(1);
}

/* Frames that are due sooner than MODERATION_NS wait that long together with later ones, like the interrupt moderation of
 * cards: a wake-up for each frame is too expensive in a virtual machine. A frame that arrives at an idle adapter is taken
 * at once. */
static void wait_for_more(int orders, int64_t now_ns) {
  int64_t left_ns = earlier(next_frame_ns(now_ns), next_sample_ns(now_ns)) - now_ns;
  int moderated = left_ns < MODERATION_NS;
  if (moderated) left_ns = MODERATION_NS;
  struct pollfd watched[DIRECTIONS + 1] = {{.fd = orders, .events = POLLIN}};
  for (int direction = DOWN; direction < DIRECTIONS; direction++)
    watched[direction + 1] = (struct pollfd){
        .fd = !moderated && may_read(direction, now_ns) ? adapters[direction].tap : -1, .events = POLLIN};
  struct timespec patience = {left_ns / SECOND_NS, left_ns % SECOND_NS};
  /* Signals are delivered only here, so that none is missed between the test of `ended` and the wait. */
  sigset_t none;
  sigemptyset(&none);
  int found = ppoll(watched, DIRECTIONS + 1, left_ns > 60 * SECOND_NS ? NULL : &patience, &none);
  if (found > 0 && watched[0].revents) read_orders(orders);
  for (int direction = DOWN; found > 0 && direction < DIRECTIONS; direction++)
    if (watched[direction + 1].revents & (POLLERR | POLLNVAL)) leave(direction);
}

static void run(int orders) {
  while (!ended) {
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC); /* once, because reading the clock is a system call in a user-mode kernel */
    move_frames(now_ns);
    sample(now_ns);
    wait_for_more(orders, now_ns);
  }
}

static int open_tap(const char *name) {
  int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
  if (tap < 0) die("/dev/net/tun");
  if (strlen(name) >= sizeof request.ifr_name) {
    errno = ENAMETOOLONG;
    die(name);
  }
  strcpy(request.ifr_name, name);
  if (ioctl(tap, TUNSETIFF, &request) < 0) die(name);
  return tap;
}

/* A real device does not compete for the processor of its host, so this process gets a higher priority if that is allowed.
 * It is not a real-time priority, with which a slow user-mode kernel would have no time left for other processes. */
static void go_first(void) { setpriority(PRIO_PROCESS, 0, -10); }

static void end(int number) { ended = number; }

static void listen_for_the_end(void) {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, NULL);
  signal(SIGTERM, end);
  signal(SIGINT, end);
  signal(SIGPIPE, SIG_IGN);
}

int main(int count, char **words) {
  if (count != 4) {
    fprintf(stderr, "usage: adapter FOLDER TAP_A TAP_B\n");
    return 2;
  }
  folder = words[1];
  listen_for_the_end();
  for (int direction = DOWN; direction < DIRECTIONS; direction++) adapters[direction].tap = open_tap(words[2 + direction]);
  adapters[DOWN].far = adapters[UP].tap;
  adapters[UP].far = adapters[DOWN].tap;
  open_batch();
  int orders = open_orders();
  begin_orders();
  go_first();
  run(orders);
  return 0;
}
