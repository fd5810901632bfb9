"""Format values with units and aligned columns for the output of commands; remove terminal escapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.cells import cell_len, set_cell_size

from samovar.units import format_bytes, format_duration, format_rate, format_share

_TERMINAL_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Matches control characters, as in terminal escapes (ECMA-48), characters that change the direction of text
(UAX 9), and lone surrogates."""


WIDEST = 60
"""The largest width, in terminal characters, to which a cell can widen its column."""


def harmless(text: str) -> str:
    """Return a text with each control character replaced by a dot.

    Output of hosts is printed, and must not control the user's terminal.
    """
    return _TERMINAL_CONTROLS.sub("·", text)


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a line per row, with its cells aligned in columns that are two spaces apart.

    A cell wider than WIDEST shifts the rest of its row to the right, but no other row.
    """
    table = [tuple(row) for row in rows]
    widths = [
        max((cell_len(cell) for cell in column if cell_len(cell) <= WIDEST), default=0)
        for column in zip(*table, strict=True)
    ]
    for row in table:
        cells = (
            set_cell_size(cell, max(width, cell_len(cell))) for cell, width in zip(row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()


def first_lines(lines: Sequence[str], most: int, hint: str = "") -> Iterator[str]:
    """Yield at most `most` lines, and if there are more, a line with the number of those left out."""
    yield from lines[:most]
    if len(lines) > most:
        yield f"  … {len(lines) - most:,} more{hint}"


UNITS: Mapping[str, Callable[[Any], str]] = {
    "mtu_bytes": "{} B".format,
    "_bps": format_rate,
    "free_bytes": partial(format_bytes, digits=3),
    "_bytes": format_bytes,
    "_packets": "{:g} packets".format,
    **dict.fromkeys(("offset_s", "error_s"), partial(format_duration, digits=2)),
    "_s": format_duration,
    **dict.fromkeys(("loss", "reorder", "duplicate"), format_share),
}
"""The formatting function of a value, by the suffix of its key in plan.json or in a host's facts."""


def key_title(key: str) -> str:
    """Return a key of plan.json or of a host's facts as words without its unit, such as `max mtu`."""
    units = (unit for unit in UNITS if unit.startswith("_") and key.endswith(unit))
    return key.removesuffix(next(units, "")).replace("_", " ")


def value_text(key: str, value: Any) -> str:
    """Return a value, which may be a list or mapping, as text; empty for None, 0, False and empty values."""
    if isinstance(value, Mapping):
        texts = {name: value_text(name, one) for name, one in value.items()}
        return ", ".join(f"{name} {text}" for name, text in texts.items() if text)
    if isinstance(value, list | tuple):
        parts = [value_text(key, one) for one in value]
        return ("; " if value and isinstance(value[0], Mapping) else ", ").join(parts)
    if not value and key != "start_s":
        return ""
    return quantity_text(key, value)


def quantity_text(key: str, value: Any) -> str:
    """Return a single value as text, with the unit that its key implies."""
    shows = (show for end, show in UNITS.items() if key.endswith(end) and not isinstance(value, str))
    return next(shows, str)(value)
