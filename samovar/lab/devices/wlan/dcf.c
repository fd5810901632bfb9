/* The distributed coordination function (clause 9.2), or that of EDCA (clause 9.9.1): who sends when, and with what result.
 *
 * The medium alternates between idle slots and exchanges: data and ACK, with CTS-to-self or RTS and CTS before them, or a
 * collision. All ports hear each other at once, and count slots from the same instant after an exchange: DIFS after a
 * successful exchange, EIFS after a failed one. The senders of a collision wait for their ACK for as long as EIFS. A
 * backoff is frozen during an exchange and then continues: a port that has slots left does not send in slot 0 (G. Bianchi,
 * I. Tinnirello, Y. Xiao, "Refinements on IEEE 802.11 DCF modeling approaches", IEEE Trans. Veh. Tech. 59(3), 2010). With
 * EDCA a port also counts the slot in which another port begins to send (I. Tinnirello, G. Bianchi, "Rethinking the IEEE 802.11e
 * EDCA performance modeling methodology", IEEE/ACM Trans. Netw. 18(2), 2010). Each access to the medium is for one
 * frame. */
#include "wlan.h"

#include <stdlib.h>

/* Clauses 7.2.1 and 7.2.2: lengths of RTS and CTS, and the bytes by which a data frame is longer than on
 * Ethernet: MAC header, LLC and SNAP headers, and FCS, instead of the 14 bytes of the Ethernet header. */
enum { RTS_BYTES = 20, CTS_BYTES = 14, ADDED_BYTES = 24 + 8 + 4 - 14 };

static const struct access *access_of(const struct wlan *wlan, const struct contender *from) {
  return &wlan->phy.access[from->category];
}

static int64_t drawn_slot(struct wlan *wlan, const struct contender *from) {
  return access_of(wlan, from)->late_slots + (int64_t)(drawn(&wlan->random) * (from->window + 1));
}

/* Return the queue of a port for frames of a category. */
struct contender *contender_of(struct wlan *wlan, int port, int category) {
  int each = wlan->contenders / wlan->ports;
  return &wlan->contender[port * each + (each > 1 ? category : 0)];
}

/* Restart the model at `now_ns`, without frames, with these settings and this number of ports. */
void wlan_begin(struct wlan *wlan, const struct settings *set, int ports, int64_t now_ns) {
  for (int number = 0; number < wlan->contenders; number++) empty(&wlan->contender[number].waiting);
  empty(&wlan->received);
  int each = set->edca ? CATEGORIES : 1;
  *wlan = (struct wlan){.set = *set, .phy = phy_of(set), .ports = ports, .contenders = ports * each, .idle_ns = now_ns,
                        .busy_until_ns = NEVER_NS, .random = seeded(set->seed)};
  for (int number = 0; number < wlan->contenders; number++) {
    struct contender *from = &wlan->contender[number];
    *from = (struct contender){.port = number / each, .category = each > 1 ? number % each : BEST_EFFORT};
    from->slot = access_of(wlan, from)->late_slots;
    from->window = access_of(wlan, from)->least_window;
  }
  for (int number = 0; number < ports; number++) {
    begin_choice(&wlan->chooser[0][number], &wlan->phy, (int)set->adaptation[number], set->rate_mbit[number]);
    begin_choice(&wlan->chooser[1][number], &wlan->phy, (int)set->adaptation[ACCESS_POINT], set->rate_mbit[ACCESS_POINT]);
  }
}

/* Return the station that sends a frame to the access point, or receives it from there. */
static int station_of(const struct frame *frame, int sender) { return sender == ACCESS_POINT ? frame->to : sender; }

static int is_for_all(const struct contender *from) {
  return from->port == ACCESS_POINT && from->waiting.first->to == EVERYONE;
}

/* Clause 9.2.5.1: a port whose backoff is over may send in the next slot if the medium is idle, or else draws a backoff.
 * A transmission begins at the start of a slot even if the medium has long been idle. */
static void enqueue(struct wlan *wlan, int port, struct frame *frame, int64_t now_ns) {
  struct contender *from = contender_of(wlan, port, frame->category);
  if (from->queued >= (int64_t)wlan->set.queue_frames[port]) {
    wlan->port[port].count.dropped_frames++;
    free(frame);
    return;
  }
  push(&from->waiting, frame);
  if (from->queued++) return;
  int64_t idle_ns = now_ns - wlan->idle_ns, slot = (idle_ns + wlan->phy.slot_ns - 1) / wlan->phy.slot_ns;
  int is_idle = wlan->busy_until_ns == NEVER_NS && idle_ns >= 0;
  if (is_idle && from->slot < slot) from->slot = slot;
  else if (!is_idle && from->slot == access_of(wlan, from)->late_slots) from->slot = drawn_slot(wlan, from);
}

/* Return the number of frames that wait at a port, including the one on the medium. */
int64_t wlan_queued(const struct wlan *wlan, int port) {
  int64_t queued = 0;
  for (int number = 0; number < wlan->contenders; number++)
    if (wlan->contender[number].port == port) queued += wlan->contender[number].queued;
  return queued;
}

/* Take a frame that arrives now at the queue of its port; wlan_advance must have been called for this time. */
void wlan_offer(struct wlan *wlan, struct frame *frame, int64_t now_ns) {
  wlan->port[frame->from].count.in_frames++;
  enqueue(wlan, frame->from, frame, now_ns);
}

/* Choose the rate of the next try, and note how long the try keeps the medium busy in a collision. */
static void plan_try(struct wlan *wlan, struct contender *from, int64_t now_ns) {
  const struct frame *frame = from->waiting.first;
  const struct phy *phy = &wlan->phy;
  int station = station_of(frame, from->port);
  size_t bytes = frame->length_bytes + ADDED_BYTES;
  from->uses_rts = 0;
  from->before_ns = 0;
  if (is_for_all(from)) {
    from->rate = lowest_rate(phy);
  } else {
    from->rate = choose_rate(&wlan->chooser[from->port == ACCESS_POINT][station], phy,
                             (int)wlan->set.adaptation[from->port], from->retries, now_ns, &wlan->random);
    from->uses_rts = (double)bytes > wlan->set.rts_bytes;
  }
  int protects = wlan->set.protection && is_ofdm(from->rate) && (int)wlan->set.standard == STANDARD_G;
  int control = protects ? protection_rate(phy) : reply_rate(phy, from->rate);
  if (from->uses_rts)
    from->before_ns = airtime_ns(phy, control, RTS_BYTES) + airtime_ns(phy, control, CTS_BYTES) + 2 * phy->sifs_ns;
  else if (protects) from->before_ns = airtime_ns(phy, control, CTS_BYTES) + phy->sifs_ns;
  from->data_ns = airtime_ns(phy, from->rate, bytes);
  from->alone_ns = from->uses_rts ? airtime_ns(phy, control, RTS_BYTES) : from->before_ns + from->data_ns;
  wlan->port[from->port].rate = from->rate;
  wlan->port[from->port].count.attempts++;
}

static int is_lost(struct wlan *wlan, int station, int rate, size_t bytes) {
  double right = 1 - frame_error(rate, wlan->set.snr_db[station], bytes);
  return drawn(&wlan->random) >= right;
}

/* Determine the result of a try during which no other port sends. */
static void exchange(struct wlan *wlan, struct contender *from, int64_t now_ns) {
  const struct frame *frame = from->waiting.first;
  const struct phy *phy = &wlan->phy;
  int station = station_of(frame, from->port), reply = reply_rate(phy, from->rate);
  wlan->received_ns = wlan->busy_until_ns = now_ns + from->before_ns + from->data_ns;
  if (is_for_all(from)) {
    wlan->delivered = wlan->confirmed = 1;
  } else {
    wlan->delivered = !is_lost(wlan, station, from->rate, frame->length_bytes + ADDED_BYTES) &&
                      drawn(&wlan->random) >= wlan->set.loss[station];
    wlan->confirmed = wlan->delivered && !is_lost(wlan, station, reply, ACK_BYTES);
    if (wlan->delivered) wlan->busy_until_ns += phy->sifs_ns + airtime_ns(phy, reply, ACK_BYTES);
  }
  from->air_ns = wlan->busy_until_ns - now_ns;
}

static void collide(struct wlan *wlan, int64_t now_ns) {
  wlan->delivered = wlan->confirmed = 0;
  wlan->busy_until_ns = now_ns;
  for (struct contender *from = wlan->contender; from < wlan->contender + wlan->contenders; from++) {
    if (!from->sends) continue;
    wlan->port[from->port].count.collisions++;
    from->air_ns = from->alone_ns;
    if (now_ns + from->air_ns > wlan->busy_until_ns) wlan->busy_until_ns = now_ns + from->air_ns;
  }
}

static int64_t first_slot(const struct wlan *wlan) {
  int64_t first = NEVER_NS;
  for (const struct contender *from = wlan->contender; from < wlan->contender + wlan->contenders; from++)
    if (from->queued && from->slot < first) first = from->slot;
  return first;
}

/* Return the slot in which a backoff ends, counted after the exchange that begins in `slot`. */
static int64_t slot_after(const struct wlan *wlan, const struct contender *from, int64_t slot) {
  int64_t late_slots = access_of(wlan, from)->late_slots;
  if (!wlan->set.edca) return from->slot > slot ? from->slot - slot : 0;
  if (slot < late_slots) return from->slot;
  return from->slot > slot ? from->slot - (slot - late_slots) - 1 : late_slots;
}

/* Hand a frame to the host of its receiver; the access point forwards frames for other stations. */
static void deliver(struct wlan *wlan, int port, struct frame *frame) {
  struct counters *count = &wlan->port[port].count;
  frame->t_ns = wlan->received_ns;
  count->out_frames++;
  count->out_bytes += frame->length_bytes;
  if (port != ACCESS_POINT && frame->to != ACCESS_POINT) enqueue(wlan, ACCESS_POINT, frame, frame->t_ns);
  else push(&wlan->received, frame);
}

/* Clauses 9.2.4 and 9.2.8: a frame without an ACK is repeated with twice the contention window, until the limit of tries.
 * If only the ACK was lost, the receiver ignores the repetitions, and the frame is delivered when its sender
 * stops trying. */
static void back_off(struct wlan *wlan, struct contender *from, int is_done) {
  const struct access *access = access_of(wlan, from);
  struct frame *frame = from->waiting.first;
  from->window = 2 * from->window + 1 < access->largest_window ? 2 * from->window + 1 : access->largest_window;
  if (is_done || ++from->retries >= (int)wlan->set.tries) {
    pop(&from->waiting);
    from->queued--;
    if (from->was_received) deliver(wlan, from->port, frame);
    else {
      wlan->port[from->port].count.discarded_frames++;
      free(frame);
    }
    from->retries = from->was_received = 0;
    from->window = access->least_window;
  }
  from->slot = drawn_slot(wlan, from);
}

static void end_try(struct wlan *wlan, struct contender *from) {
  struct counters *count = &wlan->port[from->port].count;
  int station = station_of(from->waiting.first, from->port), for_all = is_for_all(from);
  if (!for_all)
    learn(&wlan->chooser[from->port == ACCESS_POINT][station], &wlan->phy, (int)wlan->set.adaptation[from->port],
          (int)wlan->set.tries, from->retries, wlan->confirmed, wlan->busy_until_ns);
  count->airtime_ns += from->air_ns;
  count->errors += wlan->senders == 1 && !wlan->confirmed;
  from->was_received |= wlan->delivered;
  back_off(wlan, from, wlan->confirmed || for_all);
}

/* Clause 9.9.1.3: if two categories of a port would send in the same slot, only the one of higher priority
 * sends. The other one backs off as after a collision. */
static int is_outranked(const struct wlan *wlan, const struct contender *from) {
  const struct contender *end = wlan->contender + wlan->contenders;
  for (const struct contender *other = from + 1; other < end && other->port == from->port; other++)
    if (other->sends) return 1;
  return 0;
}

static void begin_exchange(struct wlan *wlan, int64_t slot, int64_t now_ns) {
  struct contender *end = wlan->contender + wlan->contenders, *sender = NULL;
  wlan->senders = 0;
  for (struct contender *from = wlan->contender; from < end; from++) {
    from->sends = from->queued && from->slot == slot;
    from->slot = slot_after(wlan, from, slot);
  }
  for (struct contender *from = wlan->contender; from < end; from++) {
    if (!from->sends) continue;
    if (is_outranked(wlan, from)) {
      from->sends = 0;
      back_off(wlan, from, 0);
      continue;
    }
    plan_try(wlan, from, now_ns);
    wlan->senders++;
    sender = from;
  }
  if (wlan->senders == 1) exchange(wlan, sender, now_ns);
  else collide(wlan, now_ns);
  wlan->busy_ns += wlan->busy_until_ns - now_ns;
}

static void end_exchange(struct wlan *wlan) {
  wlan->idle_ns = wlan->busy_until_ns + (wlan->confirmed ? wlan->phy.difs_ns : wlan->phy.eifs_ns);
  for (struct contender *from = wlan->contender; from < wlan->contender + wlan->contenders; from++)
    if (from->sends) end_try(wlan, from);
  wlan->busy_until_ns = NEVER_NS;
}

/* Return the time of the next event on the medium, if no frame arrives before. */
int64_t wlan_next_ns(const struct wlan *wlan) {
  if (wlan->busy_until_ns != NEVER_NS) return wlan->busy_until_ns;
  int64_t slot = first_slot(wlan);
  return slot == NEVER_NS ? NEVER_NS : wlan->idle_ns + slot * wlan->phy.slot_ns;
}

/* Simulate until a time; frames that have arrived by then are in `received`. */
void wlan_advance(struct wlan *wlan, int64_t now_ns) {
  for (int64_t next_ns; (next_ns = wlan_next_ns(wlan)) <= now_ns;) {
    if (wlan->busy_until_ns != NEVER_NS) end_exchange(wlan);
    else begin_exchange(wlan, first_slot(wlan), next_ns);
  }
}
