/* What the parts of the adapter share. */
#ifndef SAMOVAR_ADAPTER_H
#define SAMOVAR_ADAPTER_H
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DOWN, UP, WAYS };
#define SECOND_NS INT64_C(1000000000)
#define NEVER_NS INT64_MAX

struct frame {
  struct frame *next;
  int64_t t_ns; /* when it came; on the far side of the medium: when it is due */
  size_t length_bytes;
  ssize_t written_bytes; /* what became of it at the other host */
  unsigned char bytes[];
};

struct queue {
  struct frame *first, *last;
};

/* What an order can set: a number each, as `keys` in orders.c lists them. */
struct settings {
  double rate_bps[WAYS], buffer_frames[WAYS], delay_ns[WAYS], loss[WAYS];
  double simplex, flow_control, pause_quanta, resume_frames, drift, seed, link_bps;
};

/* What one adapter has done since it was last set. */
struct counters {
  uint64_t in_frames, out_frames, out_bytes, dropped_frames, lost_frames, unwritten_frames, pauses, resumes;
};

/* One way: the adapter that takes frames from a TAP, and what is on its way to the other. */
struct way {
  int tap, far;
  struct queue waiting, flying;
  int64_t held_frames; /* waiting and on the medium: what the buffer is measured by */
  int64_t paused_until_ns;
  int64_t link_free_ns; /* when the cable from the host has carried what was taken from it */
  size_t usual_bytes; /* the last frame's length: how many the cable may have carried is guessed by it */
  struct counters count;
};

extern const char *const way_names[WAYS];
extern const char *folder;
extern struct settings now_set;
extern struct way ways[WAYS];

void die(const char *what) __attribute__((noreturn));
int64_t clock_ns(int clock);
static inline int64_t earlier(int64_t one_ns, int64_t other_ns) { return one_ns < other_ns ? one_ns : other_ns; }

/* medium.c: what is between the ends */
void begin_anew(const struct settings *set);
int may_read(int direction, int64_t now_ns);
void move_frames(int64_t now_ns);
void push(struct queue *queue, struct frame *frame);
struct frame *pop(struct queue *queue);
int is_full(int direction);
void pause_or_resume(int direction, int64_t now_ns);

/* ports.c: frames that come from TAPs and go to them */
void exchange_frames(int64_t now_ns);

/* batch.c: many of those at once */
void open_batch(void);
void plan_read(int tap, unsigned char *bytes, size_t room_bytes, ssize_t *result);
void plan_write(int tap, unsigned char *bytes, size_t length_bytes, ssize_t *result);
void run_batch(void);
int64_t next_frame_ns(int64_t now_ns);

/* orders.c: what is asked for, and what is in force */
int open_orders(void);
void begin_orders(void);
void read_orders(int orders);
void write_state(const char *refused);

/* truth.c: what nobody who measures should have to guess */
void want_record(void);
int is_recording(void);
uint64_t lost_lines(void);
void tell(int direction, const char *event, int64_t now_ns);
void sample(int64_t now_ns);
int64_t next_sample_ns(int64_t now_ns);

#endif
