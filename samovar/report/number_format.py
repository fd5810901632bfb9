"""Format numbers for the report: few digits, a suitable prefix, and the unit after a space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

PREFIXED = {"bps": "bit/s", "bit/s": "bit/s", "bytes": "B", "s": "s"}
"""Maps units of metrics that can have a prefix, such as k or M, to their symbols."""
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))


def number(value: float, digits: int = 4) -> str:
    """Return a number without an exponent; with at most `digits` significant digits if it is not whole."""
    if not math.isfinite(value):
        return "–"
    if value == 0 or (value == int(value) and abs(value) < 1e7):
        return f"{value:.0f}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scale(values: Sequence[float], unit: str) -> tuple[float, str]:
    """Return a divisor for the values, and the unit's symbol with the matching prefix.

    The prefix is chosen for the largest value.
    """
    if unit == "share":
        return 0.01, "%"
    if unit not in PREFIXED:
        return 1.0, unit
    largest = max((abs(value) for value in values), default=0.0)
    fitting = (pair for pair in PREFIXES if largest >= pair[0]) if largest else iter(((1.0, ""),))
    factor, prefix = next(fitting, PREFIXES[-1])
    if unit == "bytes" and factor < 1:
        factor, prefix = 1.0, ""
    return factor, prefix + PREFIXED[unit]


def quantity(value: float, unit: str) -> str:
    """Return a value with its unit, such as 34.1 Mbit/s."""
    return span(value, value, unit)


def span(low: float, high: float, unit: str) -> str:
    """Return a range with its unit, such as 1.5–2.0 s, or one value if both ends round to it."""
    divisor, symbol = scale((low, high), unit)
    first, last = number(low / divisor), number(high / divisor)
    decimals = max(len(text.partition(".")[2]) for text in (first, last))
    if decimals:
        first, last = f"{low / divisor:.{decimals}f}", f"{high / divisor:.{decimals}f}"
    return f"{first if first == last else f'{first}–{last}'} {symbol}".rstrip()


def moment(t_s: float) -> str:
    """Return a time in seconds since the epoch as date and time in UTC."""
    at = datetime.fromtimestamp(t_s, UTC)
    return f"{at.day} {at:%B %Y, %H:%M:%S} UTC"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Join words as in a sentence: a, b and c. `last` is the conjunction before the last word."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
