"""Parse and format quantities with units: text such as 50KB to numbers, and back.

KB, MB and GB are powers of 1000. KiB, MiB and GiB are powers of 1024 (IEC 80000-13). Rates count bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
_QUANTITY = re.compile(rf"(?P<number>{_NUMBER})(?P<space> *)(?P<unit>[A-Za-z%µ/]*)")
LARGEST = 10**18
MOST_QUOTED = 80
ETHERNET_MTU_BYTES = 1500
"""The MTU that is assumed for interfaces whose MTU the experiment does not set."""
_EXACT = Context(prec=80)  # enough digits for the product of any accepted number and any scale


class UnitError(ValueError):
    """A text is not the expected quantity. The message says what was expected."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of quantity: its name, an example, and each unit's size in multiples of the smallest unit."""

    name: str
    example: str
    scales: Mapping[str, int]

    def unit(self, written: str) -> str | None:
        """Return the unit that a text names, or None. Letter case matters, except in rates."""
        if written in self.scales:
            return written
        same = [unit for unit in self.scales if unit.lower() == written.lower()]
        return same[0] if len(same) == 1 and self is RATE else None


SIZE = Kind(
    "size",
    "50KB",
    {"B": 1, "KB": 10**3, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    | {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
)
RATE = Kind("rate", "40Mbit", {"bit": 1, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9})
DURATION = Kind(
    "time",
    "5ms",
    {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9},
)
PACKETS = Kind("count of packets", "546packets", {"packets": 1, "packet": 1})
SHARE = Kind("share", "2%", {"%": 1})
DRIFT = Kind("drift", "50ppm", {"ppm": 1})

KINDS = (SIZE, RATE, DURATION, PACKETS, SHARE)
"""The kinds of quantities that formulas may contain."""


def quoted(text: str) -> str:
    """Return a text in quotes for a message; a long text is cut."""
    return f"'{text}'" if len(text) <= MOST_QUOTED else f"'{text[: MOST_QUOTED - 1]}…'"


def split_quantity(text: str) -> tuple[Decimal, str, Kind | None] | None:
    """Split a quantity into its number, its unit as written, and its kind.

    For a bare number, the unit is empty and the kind None. Returns None if the text is not a quantity with a
    known unit.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or match["space"]:
        return None
    if not match["unit"]:
        return Decimal(match["number"]), "", None
    kind = next((kind for kind in KINDS if kind.unit(match["unit"])), None)
    return (Decimal(match["number"]), match["unit"], kind) if kind else None


def parse_size(text: str, *, allow_zero: bool = False) -> int:
    """Return a size such as 50KB in bytes. Raises UnitError."""
    return _whole(text, SIZE, "bytes", allow_zero)


def parse_rate(text: str) -> int:
    """Return a bit rate such as 40Mbit in bit/s. Raises UnitError."""
    return _whole(text, RATE, "bit/s")


def parse_packets(text: str) -> int:
    """Return a number of packets such as 546packets as an integer. Raises UnitError."""
    return _whole(text, PACKETS, "packets")


def parse_duration(text: str, *, allow_zero: bool = False) -> float:
    """Return a time such as 5ms in seconds. Raises UnitError, also for a fraction of a nanosecond."""
    return float(Decimal(_whole(text, DURATION, "nanoseconds", allow_zero)) / 10**9)


def parse_share(text: str) -> float:
    """Return a share such as 2% as a fraction from 0 to 1. Raises UnitError."""
    value = _scaled(text, SHARE, allow_zero=True)
    if value > 100:
        raise UnitError(f"share {quoted(text)} is more than 100%; expected 0% to 100%")
    return float(value / 100)


def parse_drift(text: str) -> float:
    """Return a clock's drift, such as 50ppm, as a number of ppm. Raises UnitError."""
    return float(_scaled(text, DRIFT))


def parse_count(text: str, *, least: int = 0, most: int = LARGEST, what: str = "whole number") -> int:
    """Return a whole number without a unit, from `least` to `most`. Raises UnitError."""
    bounds = f"from {least}" + (f" to {most}" if most != LARGEST else " up")
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise UnitError(f"{quoted(text)} is not a whole number; expected digits only, {bounds}")
    _refuse_octal(text)
    value = int(text)
    if not least <= value <= most:
        raise UnitError(f"{what} {value} is out of range; expected one {bounds}")
    return value


def parse_number(text: str) -> float:
    """Return a number without a unit, such as 0.98 or -3. Raises UnitError, also for nan and inf."""
    if not re.fullmatch(rf"-?{_NUMBER}", text):
        raise UnitError(
            f"{quoted(text)} is not a number; expected digits such as 546 or 0.98, without a unit"
        )
    _refuse_octal(text)
    return float(Decimal(text))


def parse_frequency(text: str) -> float:
    """Return a frequency such as 2/s or 30/min as a number per second. Raises UnitError."""
    match = re.fullmatch(rf"({_NUMBER})/(s|min|h)", text)
    if match is None or not Decimal(match[1]):
        raise UnitError(
            f"{quoted(text)} is not a frequency; expected one above zero such as 2/s (units: /s, /min, /h)"
        )
    return float(Decimal(match[1]) / {"s": 1, "min": 60, "h": 3600}[match[2]])


def parse_switch(text: str) -> int:
    """Return 1 for on and 0 for off. Raises UnitError."""
    if text not in ("on", "off"):
        raise UnitError(f"{quoted(text)} is not a switch; expected on or off")
    return int(text == "on")


def format_bytes(count_bytes: int, digits: int | None = None) -> str:
    """Format a number of bytes in the largest fitting decimal unit.

    The result is exact, or rounded to `digits` significant digits.
    """
    return _format(count_bytes, SIZE, "TB GB MB KB B", digits)


def format_rate(rate_bps: int, digits: int | None = None) -> str:
    """Format a rate in bit/s in the largest fitting unit.

    The result is exact, or rounded to `digits` significant digits.
    """
    return _format(rate_bps, RATE, "Gbit Mbit Kbit bit", digits)


def format_duration(duration_s: float, digits: int | None = None) -> str:
    """Format seconds in the most readable unit: 2ms, 80s, 90min, 2h.

    The result is exact to the nanosecond, or rounded to `digits` significant digits.
    """
    count_ns = int((Decimal(repr(float(duration_s))) * 10**9).to_integral_value())
    if count_ns == 0:
        return "0s"
    if digits is None:
        for unit in ("h", "min"):
            if count_ns % DURATION.scales[unit] == 0:
                return f"{count_ns // DURATION.scales[unit]}{unit}"
        return _format(count_ns, DURATION, "s ms us ns", None)
    return _format(count_ns, DURATION, "h min s ms us ns", digits)


def format_share(share: float) -> str:
    """Format a fraction as an exact percentage: 2%, 0.01%."""
    return format_number(Decimal(repr(float(share))) * 100) + "%"


def format_drift(drift_ppm: float) -> str:
    """Format a drift in ppm exactly: 50ppm, 0.5ppm."""
    return format_number(Decimal(repr(float(drift_ppm)))) + "ppm"


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours if it is an hour or more: 0:42, 12:05, 3:20:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 trial, 2 trials, 5,000 trials."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _format(count: int, kind: Kind, units: str, digits: int | None) -> str:
    """Format `count`, given in the smallest of `units`, in the largest unit that is at most this quantity."""
    fitting = (unit for unit in units.split() if abs(count) >= kind.scales[unit])
    unit = next(fitting, units.split()[-1])
    value = Decimal(count) / kind.scales[unit]
    if digits is not None and value:
        value = round(value, digits - 1 - value.adjusted())
    return format_number(value) + unit


def format_number(value: Decimal) -> str:
    """Format a number without exponent and without zeros at the end of its decimals."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _whole(text: str, kind: Kind, what: str, allow_zero: bool = False) -> int:
    value = _scaled(text, kind, allow_zero)
    if value != value.to_integral_value():
        expected = f"expected one such as {kind.example}"
        raise UnitError(f"{kind.name} {quoted(text)} is not a whole number of {what}; {expected}")
    if value > LARGEST:
        raise UnitError(f"{kind.name} {quoted(text)} is too large; expected one such as {kind.example}")
    return int(value)


def _scaled(text: str, kind: Kind, allow_zero: bool = False) -> Decimal:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnitError(f"{quoted(text)} is not a {kind.name}; expected a {kind.name} such as {kind.example}")
    _refuse_octal(match["number"])
    unit = kind.unit(match["unit"])
    if unit is None or match["space"]:
        raise UnitError(_unit_refusal(text, match["unit"], kind))
    value = _EXACT.multiply(Decimal(match["number"]), Decimal(kind.scales[unit]))
    if value == 0 and not allow_zero:
        raise UnitError(f"{kind.name} {quoted(text)} is zero; expected more, such as {kind.example}")
    return value


def _refuse_octal(number: str) -> None:
    """Raise UnitError for a leading zero, because YAML 1.1 and C read 010 as eight, but people as ten."""
    plain = re.sub(r"^(-?)0+(?=[0-9])", r"\1", number)
    if plain != number:
        raise UnitError(f"number '{number}' begins with a zero; expected {plain}")


def _unit_refusal(text: str, unit: str, kind: Kind) -> str:
    expected = f"expected a {kind.name} such as {kind.example}"
    other = next((one for one in KINDS if unit in one.scales and one is not kind), None)
    if not unit or other is not None:
        return f"{quoted(text)} {f'is a {other.name}' if other else 'has no unit'}; {expected}"
    known = ", ".join(one for one in kind.scales if one not in ("kB", "packet"))
    return f"{quoted(text)} is not a {kind.name}; {expected} (units: {known})"
