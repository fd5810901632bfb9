/* The program of a device: it opens the TAPs, and runs the device until a signal ends it.
 *
 * FOLDER/orders is a named pipe for orders, one per line:
 *   set NUMBER KEY=VALUE...         apply these settings (see the keys of the device), and defaults for all others; empty the
 *                                   queues and reset the counters
 *   record NUMBER                   write the true state to FOLDER/truth until its reader closes it
 *   tell NUMBER                     write FOLDER/state again, with the present counters
 * FOLDER/state has the current settings and counters, `number=NUMBER` of the last order, and `refused=WHY` if it was refused.
 *
 * Frames follow a computed schedule that does not depend on when this process runs: a late wake-up delays only frames that
 * were due before it. */
#include "device.h"

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

static volatile sig_atomic_t ended;

void die(const char *what) {
  fprintf(stderr, "%s: %s: %s\n", device.name, what, strerror(errno));
  exit(1);
}

int64_t clock_ns(int clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * SECOND_NS + time.tv_nsec;
}

/* A TAP that was removed is always readable but has no frames. */
static void leave(int port) {
  fprintf(stderr, "%s: the TAP of port %d is gone\n", device.name, port);
  exit(1);
}

/* Wait until the next event. A wait for due frames lasts at least MODERATION_NS, and all frames that are due by its end are moved
 * together, like the interrupt moderation of cards: a wake-up for each frame is too expensive in a virtual machine. A frame
 * that arrives at an idle device is taken at once. */
static void wait_for_more(int orders, int64_t now_ns) {
  int64_t left_ns = earlier(device.next_event_ns(now_ns), next_sample_ns(now_ns)) - now_ns;
  int moderated = left_ns < MODERATION_NS;
  if (moderated) left_ns = MODERATION_NS;
  struct pollfd watched[MOST_PORTS + 1] = {{.fd = orders, .events = POLLIN}};
  for (int port = 0; port < device.ports; port++)
    watched[port + 1] = (struct pollfd){
        .fd = !moderated && device.may_read(port, now_ns) ? device.taps[port] : -1, .events = POLLIN};
  struct timespec patience = {left_ns / SECOND_NS, left_ns % SECOND_NS};
  /* Signals are delivered only here, so that none is missed between the test of `ended` and the wait. */
  sigset_t none;
  sigemptyset(&none);
  int found = ppoll(watched, (nfds_t)device.ports + 1, left_ns > 60 * SECOND_NS ? NULL : &patience, &none);
  if (found > 0 && watched[0].revents) read_orders(orders);
  for (int port = 0; found > 0 && port < device.ports; port++)
    if (watched[port + 1].revents & (POLLERR | POLLNVAL)) leave(port);
}

static void run(int orders) {
  while (!ended) {
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC); /* once, because reading the clock is a system call in a user-mode kernel */
    device.move_frames(now_ns);
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

/* Run the device whose ports are the TAPs with these names; return 0 when a signal ends it. */
int run_device(const char *folder, const char *const *taps) {
  device.folder = folder;
  listen_for_the_end();
  for (int port = 0; port < device.ports; port++) device.taps[port] = open_tap(taps[port]);
  open_batch();
  int orders = open_orders();
  begin_orders();
  go_first();
  run(orders);
  return 0;
}
