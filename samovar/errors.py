"""The exceptions of samovar: every failure that a user can cause or meet is one of these, or a subclass."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_LINE_NUMBER_WIDTH = 6


class SamovarError(Exception):
    """Base of all failures whose message is meant for the user."""


@dataclass(frozen=True)
class Problem:
    """An error at one place of a file; line and column count from 1, and are 0 when unknown.

    `text` is the whole line, if that is known.
    """

    file: str
    line: int
    column: int
    message: str
    text: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        """Render as file:line:column: message, which editors can jump to."""
        if not self.line:
            return f"{self.file}: {self.message}"
        return f"{self.file}:{self.line}:{self.column}: {self.message}"

    def excerpt(self, width: int = 100) -> tuple[str, str] | None:
        """Return the line and a caret under the column, both cut to a width in terminal cells.

        None if the line is not known. A tab is shown as a space, unprintable characters as a dot.
        """
        if not self.text or not self.column:
            return None
        characters = self.text.replace("\t", " ")
        line = "".join(c if c.isprintable() or unicodedata.combining(c) else "·" for c in characters)
        at = min(self.column, len(line) + 1) - 1
        first, last = 0, len(line)
        excess = cells(line) - width
        if excess > 0:
            excess += 2  # an ellipsis on either side
        while excess > 0:
            if at - first > last - at:
                excess -= cells(line[first])
                first += 1
            else:
                last -= 1
                excess -= cells(line[last])
        left, right = ("…" if first else ""), ("…" if last < len(line) else "")
        return f"{left}{line[first:last]}{right}", " " * cells(left + line[first:at]) + "^"


def cells(text: str) -> int:
    """Return the width of a text in terminal cells (UAX 11; combining characters take none)."""
    shown = (character for character in text if not unicodedata.combining(character))
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in shown)


class DefinitionError(SamovarError):
    """All errors of the definition files, sorted by place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line, p.column, p.message)))
        super().__init__("\n".join(str(p) for p in self.problems))

    def lines(self, width: int = 100) -> Iterator[tuple[str, str]]:
        """Yield the lines to print as (kind, text): a message, then its line and caret if known."""
        for problem in self.problems:
            yield "message", str(problem)
            excerpt = problem.excerpt(width - _LINE_NUMBER_WIDTH - 3)
            if excerpt is not None:
                yield "line", f"{problem.line or '':>{_LINE_NUMBER_WIDTH}} | {excerpt[0]}"
                yield "caret", f"{'':>{_LINE_NUMBER_WIDTH}} | {excerpt[1]}"


class PlanError(SamovarError):
    """A valid experiment cannot be planned on this testbed."""


class RecipeError(SamovarError):
    """A recipe is invalid or missing, or refuses the values it was given; `accepted` says what it takes."""

    def __init__(self, what: str, accepted: str = "") -> None:
        self.what, self.accepted = what, accepted
        super().__init__(f"{what}; accepted: {accepted}" if accepted else what)


class TestbedError(SamovarError):
    """A host cannot be reached, or is not in the required state.

    `host` names it, and is empty if the error is about no host or several.
    """

    host: str = ""


class RemoteError(TestbedError):
    """A remote script ended with a non-zero exit code."""

    def __init__(self, host: str, step: str, exit_code: int, output: str) -> None:
        self.host, self.step, self.exit_code, self.output = host, step, exit_code, output
        tail = output.strip()[-2000:]
        super().__init__(f"{host}: {step}: exit code {exit_code}" + (f": {tail}" if tail else ""))


class DeadlineError(TestbedError):
    """A remote step did not end before its deadline."""

    def __init__(self, host: str, step: str, deadline_s: float) -> None:
        self.host, self.step, self.deadline_s = host, step, deadline_s
        super().__init__(f"{host}: {step}: no answer within {deadline_s:g} s")


class CampaignError(SamovarError):
    """A results folder is not that of a campaign, or is damaged."""


class AnalysisError(SamovarError):
    """The analysis in R failed."""


class ReportError(SamovarError):
    """The bundle could not be made."""


class LabError(SamovarError):
    """The virtual lab could not be started, reached or stopped."""
