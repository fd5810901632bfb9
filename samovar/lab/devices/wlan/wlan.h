/* A model of an infrastructure network of IEEE 802.11: one access point, any number of stations, and the DCF by which they
 * share the medium. It does no input or output and reads no clock: callers pass each frame with its time of arrival, and the
 * time until which to simulate. Clauses are those of IEEE Std 802.11-2007. */
#ifndef SAMOVAR_WLAN_H
#define SAMOVAR_WLAN_H
#include "../device.h"

enum { ACCESS_POINT, EVERYONE = MOST_PORTS, RATES = 12, ACK_BYTES = 14 };
enum { BACKGROUND, BEST_EFFORT, VIDEO, VOICE, CATEGORIES }; /* of EDCA, by rising priority */
enum { STANDARD_B, STANDARD_G, STANDARD_A };
enum { FIXED, ARF, SAMPLING };

/* Settings, each a number; keys.c lists them. `adaptation`, `rate_mbit` and `queue_frames` apply to a sender. `snr_db`
 * and `loss` apply to both directions between a station and the access point. */
struct settings {
  double standard, short_preamble, protection, edca, rts_bytes, tries, basic_mbit, seed;
  double adaptation[MOST_PORTS], rate_mbit[MOST_PORTS], snr_db[MOST_PORTS], loss[MOST_PORTS], queue_frames[MOST_PORTS];
};

/* How frames of a category contend: the slots that they wait longer than DIFS, and the contention window. */
struct access {
  int late_slots, least_window, largest_window;
};

/* What a standard prescribes: durations, contention windows, and bit masks of its rates. */
struct phy {
  int64_t slot_ns, sifs_ns, difs_ns, eifs_ns, extension_ns;
  int least_window, short_preamble;
  struct access access[CATEGORIES];
  unsigned rates, basic;
};

/* How the rate of one direction between a station and the access point is chosen. */
struct chooser {
  int rate; /* current rate; with sampling, the rate of the current frame */
  int successes, failures, probing; /* ARF: in succession */
  int frames; /* sampling: frames since one was sent at a rate other than the best */
  int failed[RATES]; /* number of frames that failed in succession */
  int64_t failed_ns[RATES];
  double attempts[RATES], arrivals[RATES]; /* moving means over frames; 0: not tried yet */
};

struct counters {
  uint64_t in_frames, out_frames, out_bytes, dropped_frames; /* at the queue */
  uint64_t attempts, collisions, errors, discarded_frames; /* on the medium */
  int64_t airtime_ns;
};

/* A queue that contends for the medium. With EDCA a port has one for each category, else only one. */
struct contender {
  int port, category;
  struct queue waiting;
  int64_t queued; /* frames waiting, including the one on the medium */
  int64_t slot; /* number of the slot in which it may send, counted from idle_ns: the rest of its backoff */
  int window, retries;
  int was_received; /* the first frame was received, but its ACK was lost */
  int sends, uses_rts, rate; /* the present try */
  int64_t before_ns, data_ns; /* durations: CTS-to-self, or RTS with CTS, including SIFS; the data frame */
  int64_t alone_ns; /* duration of the transmission if nobody answers */
  int64_t air_ns; /* time for which it keeps the medium busy */
};

struct port {
  int rate; /* of the last try */
  struct counters count;
};

struct wlan {
  struct settings set;
  struct phy phy;
  int ports, contenders;
  struct port port[MOST_PORTS];
  struct contender contender[MOST_PORTS * CATEGORIES]; /* grouped by port, then by rising priority */
  struct chooser chooser[2][MOST_PORTS]; /* from stations, and from the access point to them */
  int64_t idle_ns; /* the beginning of slot 0: the end of the last exchange plus DIFS or EIFS */
  int64_t busy_until_ns; /* end of the present exchange; NEVER_NS: there is none */
  int64_t received_ns; /* end of its data frame */
  int senders, delivered, confirmed; /* of this exchange */
  int64_t busy_ns; /* time in exchanges since the beginning */
  uint64_t random;
  struct queue received; /* frames that have arrived, in order of time */
};

/* dcf.c */
void wlan_begin(struct wlan *wlan, const struct settings *set, int ports, int64_t now_ns);
void wlan_offer(struct wlan *wlan, struct frame *frame, int64_t now_ns);
int64_t wlan_next_ns(const struct wlan *wlan);
void wlan_advance(struct wlan *wlan, int64_t now_ns);
int64_t wlan_queued(const struct wlan *wlan, int port);
struct contender *contender_of(struct wlan *wlan, int port, int category);

/* phy.c */
extern const double rates_mbit[RATES];
struct phy phy_of(const struct settings *set);
int64_t airtime_ns(const struct phy *phy, int rate, size_t bytes);
int lowest_rate(const struct phy *phy);
int reply_rate(const struct phy *phy, int rate);
int protection_rate(const struct phy *phy);
int is_ofdm(int rate);
double frame_error(int rate, double snr_db, size_t bytes);

/* rates.c */
void begin_choice(struct chooser *chooser, const struct phy *phy, int adaptation, double rate_mbit);
int choose_rate(struct chooser *chooser, const struct phy *phy, int adaptation, int retries, int64_t now_ns, uint64_t *random);
void learn(struct chooser *chooser, const struct phy *phy, int adaptation, int tries, int retries, int arrived, int64_t now_ns);

/* keys.c */
enum { WLAN_KEYS = 13 };
extern const struct key wlan_keys[WLAN_KEYS];

#endif
