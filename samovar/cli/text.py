"""Text that all commands print: durations, counts, aligned columns, folded lines, no terminal escapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rich.cells import cell_len, set_cell_size

_TERMINAL_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Terminal escapes (ECMA-48), characters that change the direction of text (UAX 9), and lone surrogates."""
_BEFORE_TEXT = re.compile(r" *(?:\S+(?: \S+)* {2,})?")
INDENT, MOST_INDENT = 4, 30


def harmless(text: str) -> str:
    """Return the text with a dot for each control character: hosts must not control the user's terminal."""
    return _TERMINAL_CONTROLS.sub("·", text)


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, or with hours: 0:42, 12:05, 3:20:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 trial, 2 trials, 5,000 trials."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a line per row with the cells aligned in columns, two spaces apart."""
    table = [tuple(row) for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(map(set_cell_size, row, widths)).rstrip()


def folded(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Break lines longer than `width` at spaces; continuation lines are indented to the text of the first."""
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
