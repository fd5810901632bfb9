"""Convert values from TEACUP's notation to samovar's."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite, nan
from typing import Any

from samovar.teacup.parameters import NoCounterpartError
from samovar.units import format_bytes, format_duration, format_rate, format_share

Convert = Callable[[Any], str]
SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def number(value: Any) -> float:
    """Return a finite number; raises NoCounterpartError."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = nan
    if not isfinite(found):
        raise NoCounterpartError(f"{str(value)[:40]!r} is not a number")
    return found


def _scaled(factor: float, write: Callable[[float], str]) -> Convert:
    """Return a function that multiplies a number by `factor` and formats the product."""
    return lambda value: write(number(value) * factor)


seconds, milliseconds = _scaled(1, format_duration), _scaled(1e-3, format_duration)
share = _scaled(1, format_share)
whole_bytes = _scaled(1, lambda value: format_bytes(round(value)))
kibibytes = _scaled(1024, lambda value: format_bytes(round(value)))
kilobits = _scaled(1000, lambda value: format_rate(round(value)))


def rate(value: Any) -> str:
    """Convert a rate in the notation of tc, dummynet or iperf: 8mbit, 512kbit, 10M, or a number in bit/s."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kmg]?)(?:bits?|bps|bits/s)?", str(value).strip().lower())
    if match is None:
        raise NoCounterpartError(f"{str(value)[:40]!r} is not a rate")
    return format_rate(round(float(match[1]) * SCALES[match[2]]))


def size(value: Any) -> str:
    """Convert a size in the notation of iperf, tc or ipfw. The suffixes k, m and g mean powers of 1024.

    Examples are 64k, 30kb and 20Kbytes.
    """
    match = re.fullmatch(r"([0-9]+) *([kmg]?)(?:b(?:ytes?)?)?", str(value).strip().lower())
    if match is None:
        raise NoCounterpartError(f"{str(value)[:40]!r} is not a size")
    return format_bytes(int(match[1]) * 1024 ** list(SCALES).index(match[2]))


def interval(value: Any) -> str:
    """Convert a frequency in 1/s to an interval."""
    return format_duration(round(1 / (number(value) or 1), 9))


def algorithm(value: Any) -> str:
    """Return samovar's name of a congestion control; raises NoCounterpartError."""
    name = str(value)
    if name.lower() in ("compound", ""):
        raise NoCounterpartError(f"{name or 'an empty name'} is not a congestion control of Linux or FreeBSD")
    return "newreno" if name.lower() == "reno" else name


def link_of(address: str) -> str:
    """Return the name of an address's link: the address's /24 network, because TEACUP's networks are /24."""
    return "net-" + "-".join(address.split(".")[:3])
