/* Declarations that the parts of the pair of adapters share. */
#ifndef SAMOVAR_ADAPTER_H
#define SAMOVAR_ADAPTER_H
#include "../device.h"

enum { DOWN, UP, DIRECTIONS };

/* Settings that an order can change, each a number; `keys` in adapter.c lists them. */
struct settings {
  double rate_bps[DIRECTIONS], buffer_frames[DIRECTIONS], delay_ns[DIRECTIONS], loss[DIRECTIONS];
  double simplex, access_ns, burst_ns, flow_control, pause_quanta, resume_frames, drift, seed, link_bps;
};

/* Counters of one adapter since it was last set. */
struct counters {
  uint64_t in_frames, out_frames, out_bytes, dropped_frames, lost_frames, unwritten_frames, pauses, resumes;
};

/* One direction: the adapter that takes frames from a TAP, and the frames on their way to the other adapter. */
struct adapter {
  struct queue waiting, flying;
  int64_t held_frames; /* frames that wait or are on the medium: the occupancy of the buffer */
  int64_t paused_until_ns;
  int64_t link_free_ns; /* when the cable from the host has carried all frames that the adapter has read */
  size_t usual_bytes; /* length of the last frame, to estimate how many frames the cable has carried */
  struct counters count;
};

extern struct settings now_set;
extern struct adapter adapters[DIRECTIONS];

/* medium.c: buffers, PAUSE frames, medium and delay */
void begin_anew(void);
int may_read(int direction, int64_t now_ns);
void move_frames(int64_t now_ns);
int64_t next_frame_ns(int64_t now_ns);
int is_full(int direction);
void pause_or_resume(int direction, int64_t now_ns);

/* ports.c: frames from and to TAPs */
void exchange_frames(int64_t now_ns);

/* adapter.c */
void tell_adapter(int direction, const char *event, int64_t now_ns);

#endif
