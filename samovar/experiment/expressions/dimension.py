"""Dimensions of the terms of formulas, and the names that formulas may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from samovar.units import UnitError


class Dimension(NamedTuple):
    """Exponents of bytes, seconds and packets; `share` marks a number that was written with %."""

    bytes: int = 0
    seconds: int = 0
    packets: int = 0
    share: bool = False

    def in_bytes(self) -> Dimension:
        """Return the dimension with packets counted in bytes, an MTU each."""
        return Dimension(self.bytes + self.packets, self.seconds, 0, self.share)

    def __str__(self) -> str:
        return _NAMES.get(self) or _product(self)


NUMBER = Dimension()
BYTES = Dimension(bytes=1)
SECONDS = Dimension(seconds=1)
PACKETS = Dimension(packets=1)
SHARE = Dimension(share=True)
RATE = Dimension(bytes=1, seconds=-1)
FREQUENCY = Dimension(seconds=-1)
_NAMES = {
    NUMBER: "a number",
    BYTES: "a size",
    SECONDS: "a time",
    PACKETS: "a count of packets",
    SHARE: "a share",
    RATE: "a rate",
    FREQUENCY: "a frequency",
}


def common(left: Dimension, right: Dimension) -> Dimension:
    """Return the dimension of a sum; packets count as bytes if the other side is bytes. Raises UnitError."""
    if left == right:
        return left
    if left.in_bytes() == right.in_bytes():
        return left.in_bytes()
    raise UnitError(f"{left} and {right} cannot be added or compared")


def product(left: Dimension, right: Dimension) -> Dimension:
    """Return the dimension of a product; a share of a quantity has the dimension of the quantity."""
    bytes, seconds, packets = (a + b for a, b in zip(left[:3], right[:3], strict=True))
    pure = not any((*left[:3], *right[:3]))
    return Dimension(bytes, seconds, packets, pure and (left.share or right.share))


def quotient(left: Dimension, right: Dimension) -> Dimension:
    """Return the dimension of a quotient."""
    bytes, seconds, packets = (a - b for a, b in zip(left[:3], right[:3], strict=True))
    pure = not any((*left[:3], *right[:3]))
    return Dimension(bytes, seconds, packets, pure and left.share and not right.share)


def _product(dimension: Dimension) -> str:
    parts = [
        name if power == 1 else f"{name}^{power}"
        for name, power in zip(("bytes", "seconds", "packets"), dimension[:3], strict=True)
        if power
    ]
    return f"a quantity in {' * '.join(parts)}"


_DIRECTED = {"RATE": RATE, "BDP": BYTES, "BUFFER": BYTES}
KEYS_OF_PATH = {
    "rate": RATE,
    "buffer": BYTES,
    "delay": SECONDS,
    "jitter": SECONDS,
    "loss": SHARE,
    "loss_burst": PACKETS,
    "reorder": SHARE,
    "duplicate": SHARE,
}
KEYS_OF_FLOW = {
    "start": SECONDS,
    "size": BYTES,
    "duration": SECONDS,
    "rwnd": BYTES,
    "count": NUMBER,
    "every": SECONDS,
}
_DIRECTIONS = ("down", "up")


def _names() -> dict[str, Dimension]:
    names = {"RTT": SECONDS, "MTU": BYTES, "path.rtt": SECONDS}
    names |= {"rwnd": BYTES, "mtu": BYTES, "txd": NUMBER, "duration": SECONDS}
    directed = _DIRECTED | {f"path.{key}": dimension for key, dimension in KEYS_OF_PATH.items()}
    names |= {name: dimension for name, dimension in directed.items() if name != "path.delay"}
    return names | {
        f"{name}.{direction}": kind for name, kind in directed.items() for direction in _DIRECTIONS
    }


NAMES: Mapping[str, Dimension] = _names()
"""Names that every experiment has; without a direction they mean `down`."""

_CANONICAL = {"RTT": "path.rtt", "MTU": "mtu"} | {
    f"{short}{direction}": f"path.{long}{direction or '.down'}"
    for short, long in (("RATE", "rate"), ("BUFFER", "buffer"))
    for direction in ("", ".down", ".up")
}


def dimension_of(name: str) -> Dimension | None:
    """Return the dimension of a name; None if formulas have no such name."""
    if name in NAMES:
        return NAMES[name]
    owner, _, key = name.rpartition(".")
    return KEYS_OF_FLOW.get(key) if owner.startswith("traffic.") and owner != "traffic." else None


def known_names() -> tuple[str, ...]:
    """Return the names that messages list as known: one direction of each, and keys of any flow."""
    short = [name for name in NAMES if not name.endswith((".down", ".up"))]
    return (*short, "path.delay.down", *(f"traffic.<flow>.{key}" for key in KEYS_OF_FLOW))


def canonical(name: str) -> str:
    """Return the full name of a value: path.rate.down for RATE, BDP.down for BDP."""
    if name in _CANONICAL:
        return _CANONICAL[name]
    directed = name == "BDP" or (name.removeprefix("path.") in KEYS_OF_PATH and name.startswith("path."))
    return f"{name}.down" if directed else name
