/* Declarations that the devices of a lab share: frames, TAPs, orders, and the record of the true state. */
#ifndef SAMOVAR_DEVICE_H
#define SAMOVAR_DEVICE_H
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SECOND_NS INT64_C(1000000000)
#define NEVER_NS INT64_MAX
enum { MOST_PORTS = 65, LARGEST_FRAME = 65536, READS = 32 };

struct frame {
  struct frame *next;
  int64_t t_ns; /* time of arrival; once the frame has left the medium, time of delivery */
  size_t length_bytes; /* of the Ethernet frame, without FCS */
  ssize_t written_bytes; /* result of the write to the other host */
  int from, to, category; /* ports and access category of a wireless network */
  unsigned char bytes[];
};

struct queue {
  struct frame *first, *last;
};

/* A setting that can be changed by an order: one number, or one for each port, in the device's settings. */
struct key {
  const char *name;
  size_t at;
  int of_ports; /* a value for each port: KEY sets all values, KEY@PORT sets one */
  double least, most, usual;
};

/* The description of a device that its program gives to the code that all devices share. */
struct device {
  const char *name, *folder;
  const struct key *keys;
  int key_count;
  void *settings; /* in force */
  size_t settings_bytes;
  int ports, taps[MOST_PORTS];
  const char *truth_columns;
  int64_t sample_ns;
  void (*begin_anew)(void); /* empty the queues and reset the counters; the settings may have changed */
  void (*move_frames)(int64_t now_ns);
  int64_t (*next_event_ns)(int64_t now_ns);
  int (*may_read)(int port, int64_t now_ns);
  void (*write_counters)(FILE *state);
  void (*tell_sample)(int64_t now_ns);
};

extern struct device device;

void die(const char *what) __attribute__((noreturn));
int64_t clock_ns(int clock);
static inline int64_t earlier(int64_t one_ns, int64_t other_ns) { return one_ns < other_ns ? one_ns : other_ns; }

/* program.c */
int run_device(const char *folder, const char *const *taps);

/* frames.c */
void push(struct queue *queue, struct frame *frame);
struct frame *pop(struct queue *queue);
void empty(struct queue *queue);
double drawn(uint64_t *state);
uint64_t seeded(double seed);

/* settings.c */
void set_usual(void *settings, const struct key *keys, int count);
const char *parse_pair(void *settings, const struct key *keys, int count, const char *pair);
double *values_of(void *settings, const struct key *key);

/* batch.c: many reads and writes at once */
struct reading {
  int planned, found;
  ssize_t lengths_bytes[READS];
  unsigned char bytes[READS][LARGEST_FRAME];
};

void open_batch(void);
void plan_reads(struct reading *reading, int tap, int64_t wanted);
void plan_write(int tap, unsigned char *bytes, size_t length_bytes, ssize_t *result);
void run_batch(void);
void take_frames(struct reading *reading, int port, int64_t now_ns, void (*accept)(int port, struct frame *frame, int64_t now_ns));

/* orders.c: orders and the current settings */
int open_orders(void);
void begin_orders(void);
void read_orders(int orders);
void write_state(const char *refused);

/* truth.c: the record of the true state */
void want_record(void);
int is_recording(void);
uint64_t lost_lines(void);
void tell(int64_t now_ns, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sample(int64_t now_ns);
int64_t next_sample_ns(int64_t now_ns);

#endif
