/* Read and write many frames of TAPs in one system call, by io_uring (io_uring(7)). If it is not available, each read and write
 * is a system call. In user-mode Linux, a system call costs ten times as much as the frame itself. */
#include "device.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLOTS = 255, CANCELLED = SLOTS, ENTRIES = 256, PATIENCE_NS = 1000000 };

struct slot {
  int writes, tap;
  unsigned char *bytes;
  size_t length_bytes;
  ssize_t *result;
};

struct ring {
  int file;
  unsigned *tail, mask, *order; /* submissions */
  struct io_uring_sqe *asked;
  unsigned *done_head, *done_tail, done_mask; /* completions */
  struct io_uring_cqe *done;
  int cannot_refuse; /* TAPs of this kernel do not support RWF_NOWAIT: a read that waits must be cancelled */
};

static struct slot slots[SLOTS];
static unsigned planned;
static struct ring ring = {.file = -1};

static void *mapped(size_t length_bytes, off_t what) {
  void *place =
      mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.file, what);
  if (place == MAP_FAILED) die("io_uring");
  return place;
}

void open_batch(void) {
  struct io_uring_params set = {0};
  ring.file = (int)syscall(SYS_io_uring_setup, ENTRIES, &set);
  if (ring.file < 0) return; /* not supported by the kernel, or disabled by its administrator */
  char *asked = mapped(set.sq_off.array + set.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
  char *done = mapped(set.cq_off.cqes + set.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
  ring.asked = mapped(set.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
  ring.tail = (unsigned *)(asked + set.sq_off.tail);
  ring.mask = *(unsigned *)(asked + set.sq_off.ring_mask);
  ring.order = (unsigned *)(asked + set.sq_off.array);
  ring.done_head = (unsigned *)(done + set.cq_off.head);
  ring.done_tail = (unsigned *)(done + set.cq_off.tail);
  ring.done_mask = *(unsigned *)(done + set.cq_off.ring_mask);
  ring.done = (struct io_uring_cqe *)(done + set.cq_off.cqes);
}

static void plan(struct slot slot) {
  if (planned == SLOTS) run_batch();
  *slot.result = -EAGAIN;
  slots[planned++] = slot;
}

/* Plan to read up to this number of frames; `reading` must be valid until run_batch. */
void plan_reads(struct reading *reading, int tap, int64_t wanted) {
  wanted = earlier(wanted, 2 * reading->found + 4); /* a read that finds no frame takes time too */
  reading->planned = wanted > 0 ? (int)earlier(wanted, READS) : 0;
  for (int number = 0; number < reading->planned; number++)
    plan((struct slot){0, tap, reading->bytes[number], LARGEST_FRAME, &reading->lengths_bytes[number]});
}

/* Return a copy of one of the frames that were read, NULL if there was none. */
static struct frame *copy_frame(const struct reading *reading, int number, int64_t now_ns) {
  ssize_t length_bytes = reading->lengths_bytes[number];
  if (length_bytes <= 0) return NULL;
  struct frame *frame = malloc(sizeof *frame + (size_t)length_bytes);
  if (!frame) die("memory");
  *frame = (struct frame){.t_ns = now_ns, .length_bytes = (size_t)length_bytes};
  memcpy(frame->bytes, reading->bytes[number], (size_t)length_bytes);
  return frame;
}

/* Hand each frame that was read to `accept`, which owns it from then on. */
void take_frames(struct reading *reading, int port, int64_t now_ns, void (*accept)(int port, struct frame *frame, int64_t now_ns)) {
  reading->found = 0;
  for (int number = 0; number < reading->planned; number++) {
    struct frame *frame = copy_frame(reading, number, now_ns);
    if (!frame) continue;
    reading->found++;
    accept(port, frame, now_ns);
  }
}

/* Plan to write one frame; both pointers must be valid until run_batch. */
void plan_write(int tap, unsigned char *bytes, size_t length_bytes, ssize_t *result) {
  plan((struct slot){1, tap, bytes, length_bytes, result});
}

static void run_singly(void) {
  for (unsigned number = 0; number < planned; number++) {
    struct slot *slot = &slots[number];
    *slot->result = slot->writes ? write(slot->tap, slot->bytes, slot->length_bytes)
                                 : read(slot->tap, slot->bytes, slot->length_bytes);
  }
}

static struct io_uring_sqe *next_entry(unsigned tail, unsigned number) {
  unsigned place = (tail + number) & ring.mask;
  struct io_uring_sqe *entry = &ring.asked[place];
  memset(entry, 0, sizeof *entry);
  entry->user_data = number;
  ring.order[place] = place;
  return entry;
}

static void ask(unsigned tail, unsigned number) {
  const struct slot *slot = &slots[number];
  struct io_uring_sqe *entry = next_entry(tail, number);
  entry->opcode = slot->writes ? IORING_OP_WRITE : IORING_OP_READ;
  entry->fd = slot->tap;
  entry->off = UINT64_MAX; /* at the file's current position */
  entry->addr = (uint64_t)(uintptr_t)slot->bytes;
  entry->len = (unsigned)slot->length_bytes;
  /* Without RWF_NOWAIT, the read would wait for a frame, although the TAP was opened with O_NONBLOCK. */
  if (!slot->writes && !ring.cannot_refuse) entry->rw_flags = RWF_NOWAIT;
}

static void call_off(unsigned tail, unsigned number) {
  struct io_uring_sqe *entry = next_entry(tail, number);
  entry->opcode = IORING_OP_ASYNC_CANCEL;
  entry->cancel_flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
  entry->user_data = CANCELLED;
}

static unsigned ask_all(void) {
  unsigned tail = *ring.tail, count = planned;
  for (unsigned number = 0; number < planned; number++) ask(tail, number);
  if (ring.cannot_refuse) {
    call_off(tail, count++);
  }
  __atomic_store_n(ring.tail, tail + count, __ATOMIC_RELEASE);
  return count;
}

static unsigned reap(void) {
  unsigned head = *ring.done_head, first = head, tail = __atomic_load_n(ring.done_tail, __ATOMIC_ACQUIRE);
  for (; head != tail; head++) {
    const struct io_uring_cqe *entry = &ring.done[head & ring.done_mask];
    if (entry->user_data == CANCELLED) continue;
    *slots[entry->user_data].result = entry->res;
    if (entry->res == -EOPNOTSUPP) ring.cannot_refuse = 1;
  }
  __atomic_store_n(ring.done_head, head, __ATOMIC_RELEASE);
  return head - first;
}

static int call_off_again(void) {
  unsigned tail = *ring.tail;
  call_off(tail, 0);
  __atomic_store_n(ring.tail, tail + 1, __ATOMIC_RELEASE);
  return 1;
}

/* A frame that arrives while reads are being cancelled wakes all reads. Reads that find no frame wait again, so they must
 * be cancelled again. */
static void run_together(void) {
  struct __kernel_timespec patience = {.tv_nsec = PATIENCE_NS};
  struct io_uring_getevents_arg wait = {.ts = (uint64_t)(uintptr_t)&patience};
  unsigned count = ask_all(), taken = 0, done = 0;
  while (done < count) {
    long now_taken = syscall(SYS_io_uring_enter, ring.file, count - taken, count - done,
                             IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &wait, sizeof wait);
    if (now_taken > 0) taken += (unsigned)now_taken;
    else if (now_taken < 0 && errno == ETIME && ring.cannot_refuse) count += call_off_again();
    else if (now_taken < 0 && errno != ETIME && errno != EINTR && errno != EAGAIN && errno != EBUSY) die("io_uring");
    done += reap();
  }
}

/* Run the reads and writes in the order in which they were planned; the TAPs do not block. */
void run_batch(void) {
  if (!planned) return;
  if (ring.file < 0) run_singly();
  else run_together();
  planned = 0;
}
