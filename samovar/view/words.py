"""Small words that all views use: lengths of time, counts, columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def clock(seconds: float) -> str:
    """Write a length of time as people read it: 0:42, 12:05, 3:20:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def counted(number: int, thing: str) -> str:
    """Write a number of things: 1 trial, 2 trials, 5,000 trials."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Align rows of cells in columns, two blanks apart."""
    table = [tuple(row) for row in rows]
    if not table:
        return
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
