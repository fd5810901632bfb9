/* The choice of a rate: fixed; by automatic rate fallback, ARF (A. Kamerman, L. Monteban, "WaveLAN-II", Bell Labs Technical
 * Journal 2(3), 1997); or by sampling, after SampleRate (J. Bicknell, "Bit-rate Selection in Wireless Networks", MIT, 2005). */
#include "wlan.h"

enum { SUCCESSES_TO_RISE = 10, FAILURES_TO_FALL = 2, SAMPLED_ONE_IN = 10, FRAMES_TO_REFUSE = 4, USUAL_BYTES = 1500 };
/* Numbers of tries after which the rate of a frame falls: to the next lower one, to the one below it, and to
 * the lowest. */
enum { TRIES = 4, MORE_TRIES = 7, MOST_TRIES = 11 };
#define REFUSED_NS (10 * SECOND_NS)
#define MEMORY 0.95 /* weight of earlier frames in a moving mean */

static int highest(unsigned rates) { return 31 - __builtin_clz(rates); }

void begin_choice(struct chooser *chooser, const struct phy *phy, int adaptation, double rate_mbit) {
  unsigned usable = phy->rates;
  if (adaptation == FIXED)
    for (int rate = RATES - 1; rate > lowest_rate(phy) && rates_mbit[rate] > rate_mbit; rate--) usable &= ~(1u << rate);
  *chooser = (struct chooser){.rate = highest(usable)};
}

static int is_refused(const struct chooser *chooser, int rate, int64_t now_ns) {
  return chooser->failed[rate] >= FRAMES_TO_REFUSE && now_ns - chooser->failed_ns[rate] < REFUSED_NS;
}

/* The time for one attempt to send a frame of usual size, including the backoff before it, and EIFS, or ACK
 * and DIFS, after it. */
static double once_ns(const struct phy *phy, int rate) {
  return (double)(airtime_ns(phy, rate, USUAL_BYTES) + phy->eifs_ns + phy->least_window * phy->slot_ns / 2);
}

/* The expected time until a frame arrives. */
static double expected_ns(const struct chooser *chooser, const struct phy *phy, int rate) {
  return once_ns(phy, rate) * chooser->attempts[rate] / chooser->arrivals[rate];
}

/* The rate that is expected to be fastest among those that were tried; the highest rate if none was tried. */
static int best_rate(const struct chooser *chooser, const struct phy *phy, int64_t now_ns) {
  int best = -1, untried = lowest_rate(phy);
  for (int rate = 0; rate < RATES; rate++) {
    if (!(phy->rates & 1u << rate) || is_refused(chooser, rate, now_ns)) continue;
    if (!(chooser->arrivals[rate] > 0)) untried = rate;
    else if (best < 0 || expected_ns(chooser, phy, rate) < expected_ns(chooser, phy, best)) best = rate;
  }
  return best < 0 ? untried : best;
}

/* One frame in ten goes at a random rate that would be faster than the best one if nothing was lost. */
static int sampled_rate(struct chooser *chooser, const struct phy *phy, int64_t now_ns, uint64_t *random) {
  int best = best_rate(chooser, phy, now_ns), candidates[RATES], count = 0;
  if (++chooser->frames < SAMPLED_ONE_IN) return best;
  chooser->frames = 0;
  for (int rate = 0; rate < RATES; rate++)
    if (phy->rates & 1u << rate && rate != best && !is_refused(chooser, rate, now_ns) &&
        once_ns(phy, rate) < (chooser->arrivals[best] > 0 ? expected_ns(chooser, phy, best) : once_ns(phy, best)))
      candidates[count++] = rate;
  return count ? candidates[(int)(drawn(random) * count)] : best;
}

/* The next lower rate of the same modulation, or else the lowest. */
static int lower_rate(const struct phy *phy, int rate) {
  for (int lower = rate - 1; lower > 0; lower--)
    if (phy->rates & 1u << lower && is_ofdm(lower) == is_ofdm(rate)) return lower;
  return lowest_rate(phy);
}

/* Return the rate of the next try of a frame. With sampling, later tries fall back as in FreeBSD's driver of Atheros radios
 * (sys/dev/ath/ath_rate/sample), so that a frame that collided repeatedly is not sent at the lowest rate at once. */
int choose_rate(struct chooser *chooser, const struct phy *phy, int adaptation, int retries, int64_t now_ns, uint64_t *random) {
  if (adaptation != SAMPLING) return chooser->rate;
  if (retries == 0) chooser->rate = sampled_rate(chooser, phy, now_ns, random);
  if (retries < TRIES) return chooser->rate;
  if (retries < MORE_TRIES) return lower_rate(phy, chooser->rate);
  return retries < MOST_TRIES ? lower_rate(phy, lower_rate(phy, chooser->rate)) : lowest_rate(phy);
}

static void rise_or_fall(struct chooser *chooser, const struct phy *phy, int arrived) {
  unsigned higher = phy->rates & ~((2u << chooser->rate) - 1), lower = phy->rates & ((1u << chooser->rate) - 1);
  int probed = chooser->probing;
  chooser->probing = 0;
  chooser->successes = arrived ? chooser->successes + 1 : 0;
  chooser->failures = arrived ? 0 : chooser->failures + 1;
  if (chooser->successes >= SUCCESSES_TO_RISE && higher) {
    chooser->rate = __builtin_ctz(higher);
    chooser->probing = 1;
  } else if (lower && (chooser->failures >= FAILURES_TO_FALL || (chooser->failures && probed))) {
    chooser->rate = highest(lower);
  } else {
    return;
  }
  chooser->successes = chooser->failures = 0;
}

static void remember(struct chooser *chooser, int attempts, int arrived, int64_t now_ns) {
  int rate = chooser->rate, first = !(chooser->attempts[rate] > 0);
  double weight = first ? 1 : 1 - MEMORY;
  chooser->attempts[rate] += weight * (attempts - chooser->attempts[rate]);
  chooser->arrivals[rate] += weight * (arrived - chooser->arrivals[rate]);
  chooser->failed[rate] = arrived ? 0 : chooser->failed[rate] + 1;
  if (!arrived) chooser->failed_ns[rate] = now_ns;
}

/* Update the choice of the rate after a try of a frame; `arrived` tells whether it was acknowledged. `retries` is the number of
 * earlier tries of the frame, `tries` the largest possible number of tries. */
void learn(struct chooser *chooser, const struct phy *phy, int adaptation, int tries, int retries, int arrived, int64_t now_ns) {
  int tries_at_rate = tries < TRIES ? tries : TRIES;
  if (adaptation == ARF) rise_or_fall(chooser, phy, arrived);
  if (adaptation == SAMPLING && (arrived ? retries < TRIES : retries == tries_at_rate - 1))
    remember(chooser, retries + 1, arrived, now_ns);
}
