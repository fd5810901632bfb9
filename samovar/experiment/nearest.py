"""Messages for unknown names, with the nearest known one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from samovar.units import quoted

MOST_LISTED = 40


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant: a similar one, or one that ends in it (path.rate)."""
    names = sorted(set(known))
    folded = {one.lower(): one for one in names}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.65)
    ending = (one for one in names if one.endswith(f".{name}"))
    return folded[close[0]] if close else next(ending, None)


def unknown(what: str, name: str, known: Iterable[str], kinds: Iterable[str] | None = None) -> str:
    """Return the message for an unknown name, with the nearest known one and the list of known ones.

    `kinds` are listed instead of the known names where these are too many.
    """
    near = nearest(name, known := set(known))
    hint = f"did you mean '{near}'? " if near else ""
    names = sorted(set(known if kinds is None else kinds), key=_by_number)
    listed = ", ".join(names[:MOST_LISTED]) + (", ..." if len(names) > MOST_LISTED else "")
    return f"unknown {what} {quoted(name)}; {hint}known: {listed or 'none'}"


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts 600 before 1200 and sta2 before sta10."""
    return [(int(piece), "") if piece.isdecimal() else (0, piece) for piece in re.split(r"(\d+)", name)]
