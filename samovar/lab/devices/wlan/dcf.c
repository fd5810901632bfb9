/* The distributed coordination function (clause 9.2): who sends when, and with what result.
 *
 * The medium alternates between idle slots and exchanges: data and ACK, with CTS-to-self or RTS and CTS before them, or a
 * collision. All ports hear each other at once, and count slots from the same instant after an exchange: DIFS after one that
 * succeeded, EIFS after one that did not. The senders of a collision wait for their ACK that long too. A backoff is frozen
 * during an exchange and then continues: a port that has slots left does not send in slot 0 (G. Bianchi, I. Tinnirello,
 * Y. Xiao, "Refinements on IEEE 802.11 DCF modeling approaches", IEEE Trans. Veh. Tech. 59(3), 2010). */
#include "wlan.h"

#include <stdlib.h>

/* Clauses 7.2.1 and 7.2.2: RTS, CTS and ACK, and data with LLC and SNAP headers instead of the 14 bytes of Ethernet. */
enum { RTS_BYTES = 20, CTS_BYTES = 14, ADDED_BYTES = 24 + 8 + 4 - 14, LARGEST_WINDOW = 1023 };

static int64_t drawn_slot(struct wlan *wlan, const struct port *port) {
  return (int64_t)(drawn(&wlan->random) * (port->window + 1));
}

/* Restart the model at a time, without frames, with these settings for the ports. */
void wlan_begin(struct wlan *wlan, const struct settings *set, int ports, int64_t now_ns) {
  for (int number = 0; number < wlan->ports; number++) empty(&wlan->port[number].waiting);
  empty(&wlan->received);
  *wlan = (struct wlan){.set = *set, .phy = phy_of(set), .ports = ports, .idle_ns = now_ns, .busy_until_ns = NEVER_NS,
                        .random = seeded(set->seed)};
  for (int number = 0; number < ports; number++) {
    wlan->port[number].window = wlan->phy.least_window;
    begin_choice(&wlan->chooser[0][number], &wlan->phy, (int)set->adaptation[number], set->rate_mbit[number]);
    begin_choice(&wlan->chooser[1][number], &wlan->phy, (int)set->adaptation[ACCESS_POINT], set->rate_mbit[ACCESS_POINT]);
  }
}

/* The station that sends a frame to the access point or receives it from there. */
static int station_of(const struct frame *frame, int sender) { return sender == ACCESS_POINT ? frame->to : sender; }

static int sender_of(const struct wlan *wlan, const struct port *port) { return (int)(port - wlan->port); }

static int is_for_all(const struct wlan *wlan, const struct port *port) {
  return port == &wlan->port[ACCESS_POINT] && port->waiting.first->to == EVERYONE;
}

/* Clause 9.2.5.1: a port whose backoff is over may send in the next slot if the medium is idle, or else draws a backoff.
 * Sending begins with a slot even if the medium has long been idle. */
static void enqueue(struct wlan *wlan, struct port *port, struct frame *frame, int64_t now_ns) {
  if (port->queued >= (int64_t)wlan->set.queue_frames[sender_of(wlan, port)]) {
    port->count.dropped_frames++;
    free(frame);
    return;
  }
  push(&port->waiting, frame);
  if (port->queued++) return;
  int64_t idle_ns = now_ns - wlan->idle_ns, slot = (idle_ns + wlan->phy.slot_ns - 1) / wlan->phy.slot_ns;
  int is_idle = wlan->busy_until_ns == NEVER_NS && idle_ns >= 0;
  if (is_idle && port->slot < slot) port->slot = slot;
  else if (!is_idle && port->slot == 0) port->slot = drawn_slot(wlan, port);
}

/* Take a frame that arrives now at the queue of its port; wlan_advance must have been called for this time. */
void wlan_offer(struct wlan *wlan, struct frame *frame, int64_t now_ns) {
  struct port *port = &wlan->port[frame->from];
  port->count.in_frames++;
  enqueue(wlan, port, frame, now_ns);
}

/* Choose the rate of a port's next try, and note how long it keeps the medium busy in a collision. */
static void plan_try(struct wlan *wlan, struct port *port, int64_t now_ns) {
  const struct frame *frame = port->waiting.first;
  const struct phy *phy = &wlan->phy;
  int sender = sender_of(wlan, port), station = station_of(frame, sender);
  size_t bytes = frame->length_bytes + ADDED_BYTES;
  port->sends = 1;
  port->uses_rts = 0;
  port->before_ns = 0;
  if (is_for_all(wlan, port)) {
    port->rate = lowest_rate(phy);
  } else {
    port->rate = choose_rate(&wlan->chooser[sender == ACCESS_POINT][station], phy, (int)wlan->set.adaptation[sender],
                             port->retries, now_ns, &wlan->random);
    port->uses_rts = (double)bytes > wlan->set.rts_bytes;
  }
  int protects = wlan->set.protection && is_ofdm(port->rate) && (int)wlan->set.standard == STANDARD_G;
  int control = protects ? protection_rate(phy) : reply_rate(phy, port->rate);
  if (port->uses_rts)
    port->before_ns = airtime_ns(phy, control, RTS_BYTES) + airtime_ns(phy, control, CTS_BYTES) + 2 * phy->sifs_ns;
  else if (protects) port->before_ns = airtime_ns(phy, control, CTS_BYTES) + phy->sifs_ns;
  port->data_ns = airtime_ns(phy, port->rate, bytes);
  port->alone_ns = port->uses_rts ? airtime_ns(phy, control, RTS_BYTES) : port->before_ns + port->data_ns;
  port->count.attempts++;
}

static int is_lost(struct wlan *wlan, int station, int rate, size_t bytes) {
  double right = 1 - frame_error(rate, wlan->set.snr_db[station], bytes);
  return drawn(&wlan->random) >= right;
}

/* Determine the result of a try during which no other port sends. */
static void exchange(struct wlan *wlan, struct port *port, int64_t now_ns) {
  const struct frame *frame = port->waiting.first;
  const struct phy *phy = &wlan->phy;
  int station = station_of(frame, sender_of(wlan, port)), reply = reply_rate(phy, port->rate);
  wlan->received_ns = wlan->busy_until_ns = now_ns + port->before_ns + port->data_ns;
  if (is_for_all(wlan, port)) {
    wlan->delivered = wlan->confirmed = 1;
  } else {
    wlan->delivered = !is_lost(wlan, station, port->rate, frame->length_bytes + ADDED_BYTES) &&
                      drawn(&wlan->random) >= wlan->set.loss[station];
    wlan->confirmed = wlan->delivered && !is_lost(wlan, station, reply, ACK_BYTES);
    if (wlan->delivered) wlan->busy_until_ns += phy->sifs_ns + airtime_ns(phy, reply, ACK_BYTES);
  }
  port->air_ns = wlan->busy_until_ns - now_ns;
}

static void collide(struct wlan *wlan, int64_t now_ns) {
  wlan->delivered = wlan->confirmed = 0;
  wlan->busy_until_ns = now_ns;
  for (struct port *port = wlan->port; port < wlan->port + wlan->ports; port++) {
    if (!port->sends) continue;
    port->count.collisions++;
    port->air_ns = port->alone_ns;
    if (now_ns + port->air_ns > wlan->busy_until_ns) wlan->busy_until_ns = now_ns + port->air_ns;
  }
}

static int64_t first_slot(const struct wlan *wlan) {
  int64_t first = NEVER_NS;
  for (const struct port *port = wlan->port; port < wlan->port + wlan->ports; port++)
    if (port->queued && port->slot < first) first = port->slot;
  return first;
}

static void begin_exchange(struct wlan *wlan, int64_t slot, int64_t now_ns) {
  struct port *sender = NULL;
  wlan->senders = 0;
  for (struct port *port = wlan->port; port < wlan->port + wlan->ports; port++) {
    port->sends = 0;
    port->slot = port->slot > slot ? port->slot - slot : 0;
    if (port->slot || !port->queued) continue;
    plan_try(wlan, port, now_ns);
    wlan->senders++;
    sender = port;
  }
  if (wlan->senders == 1) exchange(wlan, sender, now_ns);
  else collide(wlan, now_ns);
  wlan->busy_ns += wlan->busy_until_ns - now_ns;
}

/* Hand a frame to the host of its receiver; the access point forwards frames for other stations. */
static void deliver(struct wlan *wlan, struct port *port, struct frame *frame) {
  frame->t_ns = wlan->received_ns;
  port->count.out_frames++;
  port->count.out_bytes += frame->length_bytes;
  if (port != &wlan->port[ACCESS_POINT] && frame->to != ACCESS_POINT)
    enqueue(wlan, &wlan->port[ACCESS_POINT], frame, frame->t_ns);
  else push(&wlan->received, frame);
}

/* Clauses 9.2.4 and 9.2.8: a frame without an ACK is repeated with twice the contention window, until the limit of tries.
 * If only the ACK was lost, the receiver ignores the repeated frames, and gets the frame when its sender is done with it. */
static void end_try(struct wlan *wlan, struct port *port) {
  struct frame *frame = port->waiting.first;
  int sender = sender_of(wlan, port), station = station_of(frame, sender);
  int for_all = is_for_all(wlan, port);
  if (!for_all)
    learn(&wlan->chooser[sender == ACCESS_POINT][station], &wlan->phy, (int)wlan->set.adaptation[sender], port->retries,
          wlan->confirmed, wlan->busy_until_ns);
  port->count.airtime_ns += port->air_ns;
  port->count.errors += wlan->senders == 1 && !wlan->confirmed;
  port->was_received |= wlan->delivered;
  port->window = 2 * port->window + 1 < LARGEST_WINDOW ? 2 * port->window + 1 : LARGEST_WINDOW;
  if (wlan->confirmed || for_all || ++port->retries >= (int)wlan->set.tries) {
    pop(&port->waiting);
    port->queued--;
    if (port->was_received) deliver(wlan, port, frame);
    else {
      port->count.discarded_frames++;
      free(frame);
    }
    port->retries = port->was_received = 0;
    port->window = wlan->phy.least_window;
  }
  port->slot = drawn_slot(wlan, port);
}

static void end_exchange(struct wlan *wlan) {
  wlan->idle_ns = wlan->busy_until_ns + (wlan->confirmed ? wlan->phy.difs_ns : wlan->phy.eifs_ns);
  for (struct port *port = wlan->port; port < wlan->port + wlan->ports; port++)
    if (port->sends) end_try(wlan, port);
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
