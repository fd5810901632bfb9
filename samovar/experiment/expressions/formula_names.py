"""The names that formulas may use, and what each of them is."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.experiment.expressions.dimension import BYTES, NUMBER, PACKETS, RATE, SECONDS, SHARE, Dimension

_DIRECTED = {"RATE": RATE, "BDP": BYTES, "BUFFER": BYTES}
_OF_PATH = {
    "rate": RATE,
    "buffer": BYTES,
    "delay": SECONDS,
    "jitter": SECONDS,
    "loss": SHARE,
    "loss_burst": PACKETS,
    "reorder": SHARE,
    "duplicate": SHARE,
}
OF_FLOW = {
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
    directed = _DIRECTED | {f"path.{key}": dimension for key, dimension in _OF_PATH.items()}
    names |= {name: dimension for name, dimension in directed.items() if name != "path.delay"}
    return names | {f"{name}.{way}": kind for name, kind in directed.items() for way in _DIRECTIONS}


NAMES: Mapping[str, Dimension] = _names()
"""Names that mean the same in every experiment; without a direction, `down` is meant."""

_CANONICAL = {"RTT": "path.rtt", "MTU": "mtu"} | {
    f"{short}{way}": f"path.{long}{way or '.down'}"
    for short, long in (("RATE", "rate"), ("BUFFER", "buffer"))
    for way in ("", ".down", ".up")
}


def dimension_of(name: str) -> Dimension | None:
    """Return what a name is; None when formulas know no such name."""
    if name in NAMES:
        return NAMES[name]
    owner, _, key = name.rpartition(".")
    return OF_FLOW.get(key) if owner.startswith("traffic.") and owner != "traffic." else None


def known_names() -> tuple[str, ...]:
    """Return the names for messages: directions are left out."""
    short = [name for name in NAMES if not name.endswith((".down", ".up"))]
    return (*short, "path.delay.down", *(f"traffic.<flow>.{key}" for key in OF_FLOW))


def canonical(name: str) -> str:
    """Return the one name of a value: RATE is path.rate.down, BDP is BDP.down."""
    if name in _CANONICAL:
        return _CANONICAL[name]
    directed = name == "BDP" or (name.removeprefix("path.") in _OF_PATH and name.startswith("path."))
    return f"{name}.down" if directed else name
