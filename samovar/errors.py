"""The error tree: every failure a user can cause or meet is one of these.

SamovarError
├── DefinitionError     a YAML file says something that cannot be meant; carries every place at once
├── PlanError           the definition is sound but cannot become a plan on this testbed
├── RecipeError         a recipe file is malformed, missing, or refuses its values
├── TestbedError        a host cannot be reached, or answers differently from what was asked
│   ├── UnreachableError  a host does not answer (in samovar.hosts)
│   ├── HostsError      several hosts at once, by host (in samovar.hosts)
│   ├── RemoteError     a remote command failed; carries host, exit code and output
│   └── DeadlineError   a remote step did not end within its bound
├── CampaignError       a results folder is not what it should be
├── AnalysisError       the R stage failed
├── ReportError         the bundle could not be set
└── LabError            the virtual lab could not be started or stopped
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_GUTTER = 6  # for the line's number


class SamovarError(Exception):
    """Any failure with a message fit for the person at the terminal."""


@dataclass(frozen=True)
class Problem:
    """One mistake at one place of one file (line and column count from 1; 0 when unknown).

    `text` is the line that it stands in, when that is known.
    """

    file: str
    line: int
    column: int
    message: str
    text: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        """Render as file:line:column: message, the form editors can jump to."""
        if not self.line:
            return f"{self.file}: {self.message}"
        return f"{self.file}:{self.line}:{self.column}: {self.message}"

    def excerpt(self, width: int = 100) -> tuple[str, str] | None:
        """Return the line that it stands in and a caret under the place, both cut to a width in cells.

        None when the line is not known. A tab is shown as one blank, and what cannot be printed as a dot.
        """
        if not self.text or not self.column:
            return None
        shown = "".join(_shown(character) for character in self.text)
        at = min(self.column, len(shown) + 1) - 1
        first, last = _window(shown, at, width)
        left, right = ("…" if first else ""), ("…" if last < len(shown) else "")
        before = cells(left + shown[first:at])
        return f"{left}{shown[first:last]}{right}", " " * before + "^"


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes (UAX 11; combining characters take none)."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown(character: str) -> str:
    if character == "\t":
        return " "
    printable = character.isprintable() or unicodedata.combining(character)
    return character if printable else "·"


def _window(text: str, at: int, width: int) -> tuple[int, int]:
    """Return the part of a text, by first and last index, that fits a width and has a place in its middle."""
    if cells(text) <= width:
        return 0, len(text)
    first = last = at
    room = width - 2  # an ellipsis on either side
    while True:
        right = _width(text[last]) if last < len(text) else width
        if right <= room:
            last, room = last + 1, room - right
        left = _width(text[first - 1]) if first else width
        if left <= room:
            first, room = first - 1, room - left
        if min(left, right) > room:
            return first, last


class DefinitionError(SamovarError):
    """Everything that is wrong in the definition files, reported at once, sorted by place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line, p.column, p.message)))
        super().__init__("\n".join(str(p) for p in self.problems))

    def lines(self, width: int = 100) -> Iterator[tuple[str, str]]:
        """Yield what to show: ("message", text), each followed by its ("line", text) and ("caret", text)."""
        for problem in self.problems:
            yield "message", str(problem)
            excerpt = problem.excerpt(width - _GUTTER - 3)
            if excerpt is not None:
                yield "line", f"{problem.line or '':>{_GUTTER}} | {excerpt[0]}"
                yield "caret", f"{'':>{_GUTTER}} | {excerpt[1]}"


class PlanError(SamovarError):
    """The definition is sound but cannot become a plan."""


class RecipeError(SamovarError):
    """A recipe is malformed, missing, or refuses the values it was given."""


class TestbedError(SamovarError):
    """A host cannot be reached, or is not in the state that was asked for.

    `host` names the one that it is about, empty where none or several are.
    """

    __test__ = False  # the name starts like a test class; pytest must not collect it
    host: str = ""


class RemoteError(TestbedError):
    """A remote script ended with a non-zero exit code."""

    def __init__(self, host: str, step: str, exit_code: int, output: str) -> None:
        self.host, self.step, self.exit_code, self.output = host, step, exit_code, output
        tail = output.strip()[-2000:]
        super().__init__(f"{host}: {step}: exit code {exit_code}" + (f": {tail}" if tail else ""))


class DeadlineError(TestbedError):
    """A remote step did not end in the time that it can need at most."""

    def __init__(self, host: str, step: str, deadline_s: float) -> None:
        self.host, self.step, self.deadline_s = host, step, deadline_s
        super().__init__(f"{host}: {step}: no answer within {deadline_s:g} s")


class CampaignError(SamovarError):
    """A results folder is not what a campaign leaves."""


class AnalysisError(SamovarError):
    """The R stage failed."""


class ReportError(SamovarError):
    """The bundle could not be set."""


class LabError(SamovarError):
    """The virtual lab could not be started, reached or stopped."""
