"""Text that all commands print: durations, aligned columns, no terminal escapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, set_cell_size

_TERMINAL_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Terminal escapes (ECMA-48), characters that change the direction of text (UAX 9), and lone surrogates."""


def harmless(text: str) -> str:
    """Return the text with a dot for each control character: hosts must not control the user's terminal."""
    return _TERMINAL_CONTROLS.sub("·", text)


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, or with hours: 0:42, 12:05, 3:20:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a line per row with the cells aligned in columns, two spaces apart."""
    table = [tuple(row) for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(map(set_cell_size, row, widths)).rstrip()
