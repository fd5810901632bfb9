/* Durations of frames, rates of replies, and frame errors by rate and signal-to-noise ratio (SNR). */
#include "wlan.h"

#include <math.h>

enum { SERVICE_BITS = 16, TAIL_BITS = 6, SYMBOL_NS = 4000, LARGEST_WINDOW = 1023 };

const double rates_mbit[RATES] = {1, 2, 5.5, 6, 9, 11, 12, 18, 24, 36, 48, 54};
/* A symbol of OFDM (clause 17) carries this many bits at each rate; 0 marks rates of DSSS (clause 15) and CCK (clause 18). */
static const int symbol_bits[RATES] = {0, 0, 0, 24, 36, 0, 48, 72, 96, 144, 192, 216};
enum { MANDATORY = 0x16f, OFDM_RATES = 0xfd8 }; /* a bit for each of these rates */

int is_ofdm(int rate) { return symbol_bits[rate] > 0; }

int lowest_rate(const struct phy *phy) { return __builtin_ctz(phy->rates); }

/* Table 7-37: the default parameters of EDCA. DIFS is SIFS and two slots; AIFS is SIFS and the slots of the
 * category. */
static struct access edca_access(int category, int window) {
  static const int aifs_slots[CATEGORIES] = {7, 3, 2, 2};
  int divisor = category == VOICE ? 4 : category == VIDEO ? 2 : 1;
  return (struct access){.late_slots = aifs_slots[category] - 2,
                         .least_window = (window + 1) / divisor - 1,
                         .largest_window = divisor == 1 ? LARGEST_WINDOW : 2 * (window + 1) / divisor - 1};
}

/* Clauses 18.3.3, 17.4.4 and 19.8.4: characteristics of the PHYs. DIFS and EIFS: clauses 9.2.10 and 9.2.3.5, with the ACK
 * at the lowest mandatory rate. Stations of 802.11b among those of 802.11g require the long slot (clause 19.4.4). */
struct phy phy_of(const struct settings *set) {
  struct phy phy = {.slot_ns = 20000, .sifs_ns = 10000, .least_window = 31, .short_preamble = set->short_preamble > 0};
  int standard = (int)set->standard;
  if (standard == STANDARD_A) phy.sifs_ns = 16000;
  if (standard == STANDARD_G) phy.extension_ns = 6000;
  if (standard == STANDARD_A || (standard == STANDARD_G && !set->protection)) phy.slot_ns = 9000;
  if (standard != STANDARD_B) phy.least_window = 15;
  for (int rate = 0; rate < RATES; rate++) {
    if (is_ofdm(rate) ? standard == STANDARD_B : standard == STANDARD_A) continue;
    phy.rates |= 1u << rate;
    if (MANDATORY & 1u << rate && rates_mbit[rate] <= set->basic_mbit) phy.basic |= 1u << rate;
  }
  if (!(phy.basic & OFDM_RATES)) phy.basic |= MANDATORY & OFDM_RATES & phy.rates;
  for (int category = 0; category < CATEGORIES; category++)
    phy.access[category] = set->edca ? edca_access(category, phy.least_window) : (struct access){0, phy.least_window, LARGEST_WINDOW};
  phy.difs_ns = phy.sifs_ns + 2 * phy.slot_ns;
  phy.eifs_ns = phy.sifs_ns + airtime_ns(&phy, lowest_rate(&phy), ACK_BYTES) + phy.difs_ns;
  return phy;
}

/* Clauses 17.4.3, 18.2.2, 18.3.4 and 19.8.3: TXTIME. The short preamble does not exist at 1 Mbit/s. */
int64_t airtime_ns(const struct phy *phy, int rate, size_t bytes) {
  int64_t bits = 8 * (int64_t)bytes;
  if (is_ofdm(rate)) {
    int64_t symbols = (SERVICE_BITS + bits + TAIL_BITS + symbol_bits[rate] - 1) / symbol_bits[rate];
    return 20000 + symbols * SYMBOL_NS + phy->extension_ns;
  }
  return (phy->short_preamble && rate > 0 ? 96000 : 192000) + 1000 * (int64_t)ceil((double)bits / rates_mbit[rate]);
}

/* Clause 9.6: an ACK or CTS has the highest basic rate that has the modulation of the frame and is not above
 * the rate of the frame. If no basic rate has this modulation, its mandatory rates are used instead. */
int reply_rate(const struct phy *phy, int rate) {
  int found = is_ofdm(rate) ? 3 : 0;
  for (int reply = found; reply <= rate; reply++)
    if (phy->basic & 1u << reply && is_ofdm(reply) == is_ofdm(rate)) found = reply;
  return found;
}

/* The CTS-to-self (clause 9.13) has a rate that stations of 802.11b understand. */
int protection_rate(const struct phy *phy) { return reply_rate(phy, 5); }

static double q(double x) { return 0.5 * erfc(x / sqrt(2)); }

/* Bit error rates of DSSS and CCK in white noise by SNR per chip (M. Fainberg, "A performance analysis of the IEEE 802.11b
 * LAN in the presence of Bluetooth PAN", Polytechnic University, 2001: union bounds over the code words). */
static double dsss_error(int rate, double snr) {
  if (rate == 0) return q(sqrt(11 * snr));
  if (rate == 1) return q(sqrt(5.5 * snr));
  if (rate == 2) return 8.0 / 15 * (14 * q(sqrt(8 * snr)) + q(sqrt(16 * snr)));
  return 128.0 / 255 * (24 * q(sqrt(4 * snr)) + 16 * q(sqrt(6 * snr)) + 174 * q(sqrt(8 * snr)) + 16 * q(sqrt(10 * snr)) +
                        24 * q(sqrt(12 * snr)) + q(sqrt(16 * snr)));
}

/* Bit error rates of OFDM: those of Gray-coded BPSK, QPSK and QAM (J. Proakis, "Digital Communications"), decoded by hard
 * decisions. The union bound has the distance spectra of the convolutional code with 64 states and of its punctured forms
 * (D. Haccoun, G. Begin, "High-rate punctured convolutional codes", IEEE Trans. Comm. 37(11), 1989) and the Chernoff bound. */
static double ofdm_error(int rate, double snr) {
  static const struct {
    int inputs, distance, step, bits[5];
  } codes[] = {{1, 10, 2, {36, 211, 1404, 11633, 77433}}, {2, 6, 1, {3, 70, 285, 1276, 6160}}, {3, 5, 1, {42, 201, 1492, 10469, 62935}}};
  int subcarrier_bits = rate <= 4 ? 1 : rate <= 7 ? 2 : rate <= 9 ? 4 : 6;
  double raw = subcarrier_bits == 1   ? q(sqrt(2 * snr))
               : subcarrier_bits == 2 ? q(sqrt(snr))
               : subcarrier_bits == 4 ? 0.75 * q(sqrt(snr / 5))
                                      : 7.0 / 12 * q(sqrt(snr / 21));
  int code = rate == 10 ? 1 : rate == 4 || rate == 7 || rate == 9 || rate == 11 ? 2 : 0;
  double base = 2 * sqrt(raw * (1 - raw)), sum = 0;
  for (int term = 0; term < 5; term++)
    sum += codes[code].bits[term] * pow(base, codes[code].distance + term * codes[code].step);
  return sum / (2 * codes[code].inputs);
}

/* Return the probability that a frame is received with errors, if bit errors are independent. */
double frame_error(int rate, double snr_db, size_t bytes) {
  double snr = pow(10, snr_db / 10);
  double bit = is_ofdm(rate) ? ofdm_error(rate, snr) : dsss_error(rate, snr);
  if (bit < 1e-12) return 0;
  return bit >= 0.5 ? 1 : -expm1(8 * (double)bytes * log1p(-bit));
}
