/* The settings of a wireless network that an order (a line of FOLDER/orders) can change. */
#include "wlan.h"

#define OF(field) #field, offsetof(struct settings, field)
const struct key wlan_keys[WLAN_KEYS] = {
    {OF(standard), 0, STANDARD_B, STANDARD_A, STANDARD_G},
    {OF(short_preamble), 0, 0, 1, 0},
    {OF(protection), 0, 0, 1, 0},
    {OF(edca), 0, 0, 1, 0},
    {OF(rts_bytes), 0, 0, 65536, 65536},
    {OF(tries), 0, 1, 255, 7},
    {OF(basic_mbit), 0, 1, 54, 24},
    {OF(seed), 0, 0, 9e15, 1},
    {OF(adaptation), 1, FIXED, SAMPLING, FIXED},
    {OF(rate_mbit), 1, 1, 54, 54},
    {OF(snr_db), 1, -20, 100, 50},
    {OF(loss), 1, 0, 1, 0},
    {OF(queue_frames), 1, 1, 1e6, 50},
};
