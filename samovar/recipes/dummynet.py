"""How dummynet is told a queue's values, and how ipfw(8) prints them back; recipes use these as filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

RED_SCALE = 1 << 16
"""RED's shares are held in units of 1/65536 (SCALE_RED of sys/netinet/ip_dummynet.h)."""
PIE_SCALE = 1 << 13
"""PIE's weights are held in units of 1/8192 (PIE_SCALE of sys/netpfil/ipfw/dn_aqm_pie.h)."""


def dn_us(seconds: float) -> str:
    """Write a time as ipfw takes it."""
    us = round(seconds * 1e6)
    return f"{us}us" if us % 1000 else f"{us // 1000}ms"


def dn_time(seconds: float) -> str:
    """Write a time as ipfw prints it: 500us, 2.5ms, and a second as 1fs (us_to_time() of its dummynet.c)."""
    us = round(seconds * 1e6)
    if us < 1000:
        return f"{us}us" if us else "0"
    return f"{us / 1000:g}ms" if us < 1_000_000 else f"{us / 1e6:g}fs"


def dn_red(share: float) -> str:
    """Write a share or weight of RED as ipfw prints it."""
    return f"{int(share * RED_SCALE) / RED_SCALE:.6f}"


def dn_pie(weight: float) -> str:
    """Write a weight of PIE as ipfw prints it."""
    return f"{int(weight * PIE_SCALE) / PIE_SCALE:g}"


def dn_rate(rate_bps: int) -> int:
    """Round a rate to what ipfw's printing tells of it: three digits after the point of Mbit/s or Kbit/s."""
    step = 1000 if rate_bps >= 1_000_000 else 1
    return round(rate_bps / step) * step


FILTERS: Mapping[str, Callable[..., Any]] = {
    "dn_us": dn_us,
    "dn_time": dn_time,
    "dn_red": dn_red,
    "dn_pie": dn_pie,
    "dn_rate": dn_rate,
}
