"""YAML syntax through PyYAML: untyped nodes with positions, bounded nesting, and errors in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import yaml

from samovar.errors import DefinitionError, Problem

MOST_NESTED = 40
_LINE_ENDS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # line breaks of YAML 1.1


@dataclass(frozen=True)
class Position:
    """A position in a file; line and column count from 1, and `text` is the whole line.

    A position on the command line has line 0 and the option as its file.
    """

    file: str
    line: int
    column: int
    text: str = field(default="", compare=False, repr=False)

    def problem(self, message: str) -> Problem:
        """Return a problem at this position."""
        return Problem(self.file, self.line, self.column, message, self.text)

    def __str__(self) -> str:
        """Render as file:line:column, or as the option of the command line."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class SourceText:
    """A text with the positions in it: a whole file, or with `start` a part of one line."""

    def __init__(self, file: str, content: str, start: Position | None = None) -> None:
        self.content, self._file, self._start = content, file, start
        self._lines = _LINE_ENDS.split(content)

    def position(self, line: int, column: int) -> Position:
        """Return the position of a line and column that count from 0."""
        if self._start is not None:
            first = self._start
            return Position(first.file, first.line, first.column + column, first.text)
        text = self._lines[line] if line < len(self._lines) else ""
        return Position(self._file, line + 1, column + 1, text)

    def position_at(self, index: int) -> Position:
        """Return the position of a character by its index in the text."""
        before = self.content[:index]
        return self.position(before.count("\n"), index - (before.rfind("\n") + 1))


class _BoundedLoader(yaml.BaseLoader):
    """PyYAML's untyped loader with a bound on nesting."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {MOST_NESTED} levels", problem_mark=mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def compose(source: SourceText) -> yaml.Node | None:
    """Parse a text into PyYAML's nodes, None if it is empty; raises DefinitionError at the first error."""
    try:
        return _BoundedLoader(source.content).get_single_node()
    except yaml.MarkedYAMLError as error:
        problem = _position(error, source).problem(_message(error))
    except yaml.reader.ReaderError as error:
        code = f"U+{ord(source.content[error.position]):04X}"
        message = f"control character {code}; only printable text is allowed"
        problem = source.position_at(error.position).problem(message)
    raise DefinitionError([problem])


def _position(error: yaml.MarkedYAMLError, source: SourceText) -> Position:
    opening = error.context_mark if (error.problem or "") in _CAUSED_AT_OPENING else None
    mark = opening or error.problem_mark or error.context_mark
    return source.position(mark.line, mark.column) if mark else source.position(0, 0)


_CAUSED_AT_OPENING = ("could not find expected ':'", "found unexpected end of stream")
"""Errors whose cause is where the construct began, not where PyYAML noticed."""

_CLOSE = "close the bracket"
_QUOTE = "quote the text"
_MESSAGES: Sequence[tuple[str, str | Callable[[re.Match[str]], str]]] = (
    (r"'\\t'", "tab character; YAML allows only spaces for indentation"),
    (r"found another document", "second document in one file; write one document per file"),
    (r"could not find expected ':'", "missing ': ' in this line; write key: value"),
    (r"mapping values are not allowed", f"':' where no key is allowed; {_QUOTE} that contains ': '"),
    (
        r"(sequence entries|mapping keys) are not allowed",
        lambda m: f"'{'-' if m[1][0] == 's' else '?'} ' where no entry is allowed; {_QUOTE} that contains it",
    ),
    (r"expected ',' or '(.)', but got", lambda m: f"missing ',' or '{m[1]}' before this; {_CLOSE}"),
    (r"node content, but found '<stream end>'", f"a '[' or '{{' before this is never closed; {_CLOSE}"),
    (
        r"node content, but found '(.)'",
        lambda m: f"'{m[1]}' where a key or value must be; write one, or {_QUOTE}",
    ),
    (r"found unexpected end of stream", "this quote is never closed; add the closing quote"),
    (r"undefined alias '(.*)'", lambda m: f"alias '*{m[1]}' has no anchor; define '&{m[1]}' before it"),
    (r"cannot start any token", f"a text cannot begin with this character in YAML; {_QUOTE}"),
    (
        r"duplicate anchor '(.*)'",
        lambda m: f"anchor '&{m[1].split(chr(39))[0]}' is defined twice; define it once",
    ),
    (
        r"expected <block end>|expected '<document start>'",
        "this line is not indented like its neighbours; use the same number of spaces",
    ),
    (r"(nested deeper than \d+ levels)", lambda m: f"{m[1]}; this is not a definition file"),
    (r"escape", "unknown escape in double quotes; write \\\\ for a backslash, or use single quotes"),
    (
        r"(?:scanning|parsing) an? (?:alias|anchor)",
        f"'&' begins an anchor and '*' an alias in YAML; {_QUOTE}",
    ),
    (r"tag", f"'!' begins a tag in YAML; {_QUOTE}"),
    (r"directive", f"'%' begins a directive in YAML; {_QUOTE}"),
    (r"block scalar", f"'|' or '>' begins a text on the following lines in YAML; {_QUOTE}"),
)
"""What PyYAML reports, as a pattern, and the message that is shown for it."""


def _message(error: yaml.MarkedYAMLError) -> str:
    problem = f"{error.problem or 'cannot be read'} {error.context or ''}".rstrip()
    message = f"not valid YAML: {problem}"
    for pattern, words in _MESSAGES:
        match = re.search(pattern, problem)
        if match:
            message = words if isinstance(words, str) else words(match)
            break
    opening, here = error.context_mark, error.problem_mark
    if opening and here and opening.line != here.line and message.endswith(_CLOSE):
        return f"{message} that opens in line {opening.line + 1}"
    return message
