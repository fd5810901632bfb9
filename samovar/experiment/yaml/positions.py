"""Places in files, with the line that stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from samovar.errors import Problem

_LINE_ENDS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # what YAML 1.1 calls a break


@dataclass(frozen=True)
class Mark:
    """A place in a file; line and column count from 1, and `text` is the whole line."""

    file: str
    line: int
    column: int
    text: str = field(default="", compare=False, repr=False)

    def problem(self, message: str) -> Problem:
        """Return the mistake that stands here."""
        return Problem(self.file, self.line, self.column, message, self.text)

    def __str__(self) -> str:
        """Render as file:line:column; a place on the command line is the option itself."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Places:
    """Makes the marks of one text, which is a file's or part of a line."""

    def __init__(self, file: str, content: str, start: Mark | None = None) -> None:
        self._file, self._start = file, start
        self._lines = _LINE_ENDS.split(content)

    def at(self, line: int, column: int) -> Mark:
        """Return the mark of a line and column that count from 0."""
        if self._start is not None:
            first = self._start
            return Mark(first.file, first.line, first.column + column, first.text)
        here = self._lines[line] if line < len(self._lines) else ""
        return Mark(self._file, line + 1, column + 1, here)
