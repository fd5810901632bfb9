"""DiffServ code points by name: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE)."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.experiment.nearest import unknown
from samovar.units import UnitError

NAMES: Mapping[str, int] = {
    "DF": 0,
    "LE": 1,
    "EF": 46,
    "VA": 44,
    **{f"CS{one}": one * 8 for one in range(8)},
    **{f"AF{one}{drop}": one * 8 + drop * 2 for one in range(1, 5) for drop in range(1, 4)},
}
LARGEST = 63


def parse_dscp(text: str) -> int:
    """Read a code point's name or number, as a number from 0 to 63; raises UnitError."""
    if text.isascii() and text.isdigit():
        if len(text) > 2 or int(text) > LARGEST:
            raise UnitError(f"code point {text} is out of range; expected one from 0 to {LARGEST}")
        return int(text)
    if text not in NAMES:
        raise UnitError(f"{unknown('code point', text, NAMES)}, or 0 to {LARGEST}")
    return NAMES[text]
