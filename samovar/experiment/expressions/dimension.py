"""What kind of quantity a term of a formula is: bytes, seconds, packets, a share, or a product of these."""

from __future__ import annotations

from typing import NamedTuple

from samovar.units import UnitError


class Dimension(NamedTuple):
    """Exponents of bytes, seconds and packets; a share is a number that was written with %."""

    bytes: int = 0
    seconds: int = 0
    packets: int = 0
    share: bool = False

    def in_bytes(self) -> Dimension:
        """Return the dimension once every packet stands for the bytes of an MTU."""
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


def alike(left: Dimension, right: Dimension) -> Dimension:
    """Return what a sum of both is, packets counted as bytes when the other side is; raises UnitError."""
    if left == right:
        return left
    if left.in_bytes() == right.in_bytes():
        return left.in_bytes()
    raise UnitError(f"{left} and {right} do not go together")


def product(left: Dimension, right: Dimension) -> Dimension:
    """Return what a product of both is; a share of something is that thing."""
    bytes, seconds, packets = (a + b for a, b in zip(left[:3], right[:3], strict=True))
    pure = not any((*left[:3], *right[:3]))
    return Dimension(bytes, seconds, packets, pure and (left.share or right.share))


def quotient(left: Dimension, right: Dimension) -> Dimension:
    """Return what one divided by the other is."""
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
