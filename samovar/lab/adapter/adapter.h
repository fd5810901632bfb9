/* Declarations that the parts of the program share. */
#ifndef SAMOVAR_ADAPTER_H
#define SAMOVAR_ADAPTER_H
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DOWN, UP, DIRECTIONS };
#define SECOND_NS INT64_C(1000000000)
#define NEVER_NS INT64_MAX

struct frame {
  struct frame *next;
  int64_t t_ns; /* arrival; beyond the medium, the time at which it is delivered */
  size_t length_bytes;
  ssize_t written_bytes; /* result of the write to the other host */
  unsigned char bytes[];
};

struct queue {
  struct frame *first, *last;
};

/* Settings that an order can change, each a number; `keys` in orders.c lists them. */
struct settings {
  double rate_bps[DIRECTIONS], buffer_frames[DIRECTIONS], delay_ns[DIRECTIONS], loss[DIRECTIONS];
  double simplex, flow_control, pause_quanta, resume_frames, drift, seed, link_bps;
};

/* Counters of one adapter since it was last set. */
struct counters {
  uint64_t in_frames, out_frames, out_bytes, dropped_frames, lost_frames, unwritten_frames, pauses, resumes;
};

/* One direction: the adapter that takes frames from a TAP, and the frames on their way to the other. */
struct adapter {
  int tap, far;
  struct queue waiting, flying;
  int64_t held_frames; /* waiting or on the medium: the occupancy of the buffer */
  int64_t paused_until_ns;
  int64_t link_free_ns; /* time at which the cable from the host has carried all frames taken from it */
  size_t usual_bytes; /* length of the last frame, to estimate how many the cable may have carried */
  struct counters count;
};

extern const char *const direction_names[DIRECTIONS];
extern const char *folder;
extern struct settings now_set;
extern struct adapter adapters[DIRECTIONS];

void die(const char *what) __attribute__((noreturn));
int64_t clock_ns(int clock);
static inline int64_t earlier(int64_t one_ns, int64_t other_ns) { return one_ns < other_ns ? one_ns : other_ns; }

/* medium.c: buffers, PAUSE frames, medium and delay */
void begin_anew(const struct settings *set);
int may_read(int direction, int64_t now_ns);
void move_frames(int64_t now_ns);
void push(struct queue *queue, struct frame *frame);
struct frame *pop(struct queue *queue);
int is_full(int direction);
void pause_or_resume(int direction, int64_t now_ns);

/* ports.c: frames from and to TAPs */
void exchange_frames(int64_t now_ns);

/* batch.c: many reads and writes at once */
void open_batch(void);
void plan_read(int tap, unsigned char *bytes, size_t room_bytes, ssize_t *result);
void plan_write(int tap, unsigned char *bytes, size_t length_bytes, ssize_t *result);
void run_batch(void);
int64_t next_frame_ns(int64_t now_ns);

/* orders.c: orders and the current settings */
int open_orders(void);
void begin_orders(void);
void read_orders(int orders);
void write_state(const char *refused);

/* truth.c: the record of the true state */
void want_record(void);
int is_recording(void);
uint64_t lost_lines(void);
void tell(int direction, const char *event, int64_t now_ns);
void sample(int64_t now_ns);
int64_t next_sample_ns(int64_t now_ns);

#endif
