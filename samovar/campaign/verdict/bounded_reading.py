"""Files that hosts have packed, read with bounds: a small one can be made to unpack to terabytes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_LINE_BYTES = 1 << 20
MOST_TIMES = 250
"""How often its size a trace may unpack to. Lines of numbers give 3 to 20, an idle queue's 50; zeros 1030."""
SLACK_BYTES = 16 << 20
LONGEST_TEXT_BYTES = 64 << 20
TRACE, SAID = "accepted: a trace as it is written", "accepted: what a generator prints"


@contextmanager
def open_lines(file: Path, encoding: str = "ascii") -> Iterator[Iterator[str]]:
    """Open a packed text for reading line by line, ends of lines included.

    Raises OSError, EOFError, zlib.error, and ValueError past the bounds, from here or while it is read.
    """
    most_bytes = MOST_TIMES * file.stat().st_size + SLACK_BYTES
    with gzip.open(file, "rb") as packed:
        yield _lines(packed, encoding, most_bytes)


def _lines(packed: gzip.GzipFile, encoding: str, most_bytes: int) -> Iterator[str]:
    count = 0
    while line := packed.readline(LONGEST_LINE_BYTES + 1):
        count += len(line)
        if len(line) > LONGEST_LINE_BYTES:
            raise ValueError(f"a line of more than {LONGEST_LINE_BYTES} bytes; {TRACE}")
        if count > most_bytes:
            raise ValueError(f"unpacks to more than {MOST_TIMES} times its size; {TRACE}")
        yield line.decode(encoding, "replace")


def read_text(file: Path) -> str:
    """Return a packed text as it is. Raises as open_lines does, past LONGEST_TEXT_BYTES too."""
    with gzip.open(file, "rb") as packed:
        data = packed.read(LONGEST_TEXT_BYTES + 1)
    if len(data) > LONGEST_TEXT_BYTES:
        raise ValueError(f"unpacks to more than {LONGEST_TEXT_BYTES} bytes; {SAID}")
    return data.decode(errors="replace")
