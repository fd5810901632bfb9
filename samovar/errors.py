"""The exceptions of samovar, one for each kind of failure, and the message for an unknown name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Self

from rich.cells import cell_len, set_cell_size

from samovar.units import quoted

MOST_LISTED = 40
_LINE_NUMBER_WIDTH = 6


class SamovarError(Exception):
    """The base class of all exceptions whose message is printed for the user without a traceback."""


@dataclass(frozen=True)
class Problem:
    """An error at one place of a file.

    `text` is the content of the line. Line and column count from 1; 0 means unknown.
    """

    file: str
    line: int
    column: int
    message: str
    text: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        """Return the error as file:line:column: message, the format from which editors jump to the place."""
        if not self.line:
            return f"{self.file}: {self.message}"
        return f"{self.file}:{self.line}:{self.column}: {self.message}"

    def excerpt(self, width: int = 100) -> tuple[str, str] | None:
        """Return the line of the error and a line with a caret under the column; None if either is unknown.

        Both lines are cut to `width` terminal cells. A tab is shown as a space; an unprintable character is
        shown as a dot.
        """
        if not self.text or not self.column:
            return None
        line = "".join(c if c.isprintable() else "·" for c in self.text.replace("\t", " "))
        at = min(self.column, len(line) + 1) - 1
        first = max(0, at - width // 3) if cell_len(line) > width else 0  # a character has at most two cells
        before, after = ("…" if first else "") + line[first:at], line[at:]
        if cell_len(before + after) > width:
            after = set_cell_size(after, width - cell_len(before) - 1) + "…"
        return before + after, " " * cell_len(before) + "^"


class DefinitionError(SamovarError):
    """The errors in definition files, such as experiment or testbed files, sorted by place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line, p.column, p.message)))
        super().__init__("\n".join(str(p) for p in self.problems))

    @classmethod
    def at(cls, place: object, message: str) -> Self:
        """Return the error about a whole file, or about an option of the command line."""
        return cls([Problem(str(place), 0, 0, message)])

    def lines(self, width: int = 100) -> Iterator[tuple[str, str]]:
        """Yield the lines to print as (kind, text).

        Each error has its message (kind `message`). If its place is known, the line of the file (kind `line`)
        and a caret below the column (kind `caret`) follow.
        """
        for problem in self.problems:
            yield "message", str(problem)
            excerpt = problem.excerpt(width - _LINE_NUMBER_WIDTH - 3)
            if excerpt is not None:
                yield "line", f"{problem.line or '':>{_LINE_NUMBER_WIDTH}} | {excerpt[0]}"
                yield "caret", f"{'':>{_LINE_NUMBER_WIDTH}} | {excerpt[1]}"


class PlanError(SamovarError):
    """A valid experiment cannot be planned, or a requested trial is not in the plan."""


class RecipeError(SamovarError):
    """A recipe is invalid or missing, or does not accept a value; `accepted` says what it would accept."""

    def __init__(self, what: str, accepted: str = "") -> None:
        self.what, self.accepted = what, accepted
        super().__init__(f"{what}; accepted: {accepted}" if accepted else what)


class TestbedError(SamovarError):
    """A host cannot be reached, or is not in the required state.

    `host` is its name; it is empty if the error is about no host or about several.
    """

    def __init__(self, message: str, host: str = "") -> None:
        super().__init__(message)
        self.host = host

    @property
    def by_host(self) -> Mapping[str, TestbedError]:
        """The error of each host that caused this error; empty if this error names no host."""
        return {self.host: self} if self.host else {}

    @property
    def blamed(self) -> dict[str, str]:
        """The hosts that caused this error, each with the message of its own error."""
        return {host: str(error) for host, error in self.by_host.items()}


class RemoteError(TestbedError):
    """A script on a host ended with a non-zero exit code."""

    def __init__(self, host: str, step: str, exit_code: int, output: str) -> None:
        self.step, self.exit_code, self.output = step, exit_code, output
        tail = output.strip()[-2000:]
        super().__init__(f"{host}: {step}: exit code {exit_code}" + (f": {tail}" if tail else ""), host)


class DeadlineError(TestbedError):
    """A script or transfer on a host did not end before its deadline."""

    def __init__(self, host: str, step: str, deadline_s: float) -> None:
        self.step, self.deadline_s = step, deadline_s
        super().__init__(f"{host}: {step}: no answer within {deadline_s:g} s", host)


class CampaignError(SamovarError):
    """A campaign's folder is missing, damaged, in use or not writable."""


class AnalysisError(SamovarError):
    """The analysis in R failed."""


class ExportError(SamovarError):
    """Results cannot be exported."""


class ReportError(SamovarError):
    """The bundle could not be made."""


class ProjectError(SamovarError):
    """There is no project folder, or it cannot be made."""


class InstallationError(SamovarError):
    """Something that samovar needs on this machine is missing or cannot be compiled."""


class LabError(SamovarError):
    """The virtual lab could not be started, reached or stopped."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant; None if no known name resembles `name`.

    The most similar known name is returned. If no name is similar, the result is a known name that ends with
    a dot and `name`, such as path.rate for rate.
    """
    names = sorted(set(known))
    folded = {one.lower(): one for one in names}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.65)
    ending = (one for one in names if one.endswith(f".{name}"))
    return folded[close[0]] if close else next(ending, None)


def unknown(what: str, name: str, known: Iterable[str], kinds: Iterable[str] | None = None) -> str:
    """Return the message for an unknown name, with the most similar known name and a list of known names.

    If `kinds` are given, they are listed in place of the known names.
    """
    near = nearest(name, known := set(known))
    hint = f"did you mean '{near}'? " if near else ""
    names = sorted(set(known if kinds is None else kinds), key=_by_number)
    listed = ", ".join(names[:MOST_LISTED]) + (", ..." if len(names) > MOST_LISTED else "")
    return f"unknown {what} {quoted(name)}; {hint}known: {listed or 'none'}"


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts 600 before 1200 and sta2 before sta10."""
    return [(int(piece), "") if piece.isdecimal() else (0, piece) for piece in re.split(r"(\d+)", name)]
