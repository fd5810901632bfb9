/* A pair of adapters, such as powerline ones, between two TAP interfaces: a queue of frames in front of a slower
 * medium, which pushes back by Ethernet flow control (IEEE 802.3, annex 31B) or drops at its tail.
 *
 *   adapter FOLDER TAP_A TAP_B      `down` is the way from A to B, `up` the way back
 *
 * FOLDER/orders is a named pipe that takes an order a line:
 *   set NUMBER KEY=VALUE...         be what the keys say (see `keys` below), empty, counters at zero; whatever is not
 *                                   named is as at the start
 *   record NUMBER                   write the truth to whoever reads FOLDER/truth, until he leaves
 * FOLDER/state holds `number=NUMBER` of the last order that was obeyed and what is in force, or `refused=WHY`.
 *
 * Frames keep to a schedule that is computed, not to when this process happens to run: a frame begins when the medium
 * is free and the frame is there, and takes its length over the rate. A late wake-up delays what has been scheduled
 * before it and nothing after. While an adapter is paused its TAP is not read, and the TAP's own ring fills, as that
 * of a card does which obeys the PAUSE frame. */
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

const char *const way_names[WAYS] = {"down", "up"};
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

/* A TAP that was taken away is ready for ever and has nothing to read. */
static void leave(int direction) {
  fprintf(stderr, "adapter: the TAP that %s begins at is gone\n", way_names[direction]);
  exit(1);
}

/* What is due sooner than MODERATION_NS waits as long as that, and what comes meanwhile with it, as cards moderate their
 * interrupts: a wake-up for each frame is what a virtual machine cannot afford. A frame that finds nobody before it is
 * taken at once. */
static void wait_for_more(int orders, int64_t now_ns) {
  int64_t left_ns = earlier(next_frame_ns(now_ns), next_sample_ns(now_ns)) - now_ns;
  int moderated = left_ns < MODERATION_NS;
  if (moderated) left_ns = MODERATION_NS;
  struct pollfd watched[WAYS + 1] = {{.fd = orders, .events = POLLIN}};
  for (int direction = DOWN; direction < WAYS; direction++)
    watched[direction + 1] = (struct pollfd){
        .fd = !moderated && may_read(direction, now_ns) ? ways[direction].tap : -1, .events = POLLIN};
  struct timespec patience = {left_ns / SECOND_NS, left_ns % SECOND_NS};
  /* Signals come in here and nowhere else, so that none is missed between a look at `ended` and the wait. */
  sigset_t none;
  sigemptyset(&none);
  int found = ppoll(watched, WAYS + 1, left_ns > 60 * SECOND_NS ? NULL : &patience, &none);
  if (found > 0 && watched[0].revents) read_orders(orders);
  for (int direction = DOWN; found > 0 && direction < WAYS; direction++)
    if (watched[direction + 1].revents & (POLLERR | POLLNVAL)) leave(direction);
}

static void run(int orders) {
  while (!ended) {
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC); /* once: a look at the clock is a call of the kernel too, in a user-mode one */
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

/* A device on a desk does not wait for its host's processor, so this one goes first where that is allowed. It takes no
 * real-time priority: a kernel that is itself short of time, as a user-mode one may be, would have none left for anybody else. */
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
  for (int direction = DOWN; direction < WAYS; direction++) ways[direction].tap = open_tap(words[2 + direction]);
  ways[DOWN].far = ways[UP].tap;
  ways[UP].far = ways[DOWN].tap;
  open_batch();
  int orders = open_orders();
  begin_orders();
  go_first();
  run(orders);
  return 0;
}
