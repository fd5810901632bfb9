"""Small words that all views use: lengths of time, counts, columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

BAR = 24
_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""What steers a terminal (ECMA-48) or turns the text around it (UAX 9), and halves of characters."""


def harmless(text: str) -> str:
    """Put a dot for each character that would steer a terminal: what hosts say is shown, not obeyed."""
    return _STEERING.sub("·", text)


def clock(seconds: float) -> str:
    """Write a length of time as people read it: 0:42, 12:05, 3:20:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def counted(number: int, thing: str) -> str:
    """Write a number of things: 1 trial, 2 trials, 5,000 trials."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def set_lines(overrides: Mapping[str, str]) -> Iterator[str]:
    """Say what --set changes, in a line; nothing where it changes nothing."""
    if overrides:
        yield "set: " + ", ".join(f"{key}={value}" for key, value in overrides.items())


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Align rows of cells in columns, two blanks apart."""
    table = [tuple(row) for row in rows]
    if not table:
        return
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


_BEFORE_TEXT = re.compile(r" *(?:\S+(?: \S+)* {2,})?")
INDENT, MOST_INDENT = 4, 30


def folded(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Break lines that are wider than a terminal at blanks; the rest stands below the text of the first."""
    for line in lines:
        yield from _folded(line, width) if width and len(line) > width else [line]


def _folded(line: str, width: int) -> Sequence[str]:
    column = _BEFORE_TEXT.match(line)
    before = column.end() if column else 0
    indent = len(line) - len(line.lstrip())
    hang = before if indent < before <= min(MOST_INDENT, width // 2) else indent + INDENT
    rest = wrap(
        line[before:],
        width,
        initial_indent=" " * before,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line[:before] + rest[0].lstrip(), *rest[1:]] if rest else [line]


def meter(label: str, done: int, of: int, passed_s: float, width: int) -> str:
    """Show how much of something is done as a bar, with the time left by the pace so far."""
    share = min(1.0, done / of) if of else 1.0
    full = round(share * BAR)
    left = f" ETA {clock(passed_s / share - passed_s)}" if 0 < share < 1 else ""
    return f"{'━' * full}{'╌' * (BAR - full)} {share:4.0%}{left} {label}"[:width]
