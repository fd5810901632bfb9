"""Changes of metrics between two campaigns, and the limits (--fail-if) that these changes must not exceed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from samovar.errors import ReportError, unknown
from samovar.experiment import Outputs
from samovar.report.number_format import number, quantity, scale

FAILED, PASSED, NO_DATA = "failed", "passed", "no data"
LIMIT = re.compile(r"\s*(\w+)\s*([<>])\s*([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(%?)\s*")
LIMIT_FORM = "write METRIC<-5% or METRIC>+5%; a change without % is in the metric's unit"


@dataclass(frozen=True)
class Change:
    """A metric of one treatment in A and B: medians over `n` pairs, the change and its interval.

    `ratio` is None unless all values of A are positive. `changed` tells whether the interval excludes a ratio
    of 1, or a difference of 0 if there is no ratio. It is None without an interval, which needs at least
    three pairs.
    """

    metric: str
    unit: str
    treatment: str
    a: float | None
    b: float | None
    difference: tuple[float, float, float] | None
    ratio: tuple[float, float, float] | None
    n: int
    confidence: float | None
    changed: bool | None

    @property
    def text(self) -> str:
        """The change with its interval: `-9.1 % [-9.3, -8.9]`, or `~ [-0.4, +0.2] %` for no change."""
        if self.changed is None:
            return "~"
        values: Sequence[float] = self.difference or (0.0, 0.0, 0.0)
        divisor, symbol = scale(values, self.unit)
        if self.ratio:
            values, divisor, symbol = [100 * (one - 1) for one in self.ratio], 1.0, "%"
        middle, low, high = (_signed(one / divisor, 3) for one in values)
        text = f"{middle} {symbol} [{low}, {high}]" if self.changed else f"~ [{low}, {high}] {symbol}"
        return " ".join(text.split())

    @property
    def sample(self) -> str:
        """The number of pairs and the confidence of the interval as text."""
        confidence = f", {number(100 * self.confidence)} %" if self.confidence else ""
        return f"n = {self.n}{confidence}"

    def values(self) -> tuple[str, str]:
        """Return the medians of A and B as text."""
        first, second = ("–" if one is None else quantity(one, self.unit) for one in (self.a, self.b))
        return first, second


def _signed(value: float, digits: int) -> str:
    text = number(value, digits)
    return text if text.startswith("-") or text == "0" else f"+{text}"


@dataclass(frozen=True)
class Limit:
    """A change that fails the comparison, such as `goodput_bps<-5%`."""

    text: str
    metric: str
    above: bool
    bound: float
    relative: bool

    def text_of(self, change: Change) -> str:
        """Return a change in the unit of the bound: in percent, or in the metric's unit."""
        return change.text if self.relative else replace(change, ratio=None).text

    def judge(self, change: Change) -> str:
        """Return `failed` if the change is beyond the bound, and `no data` if the change has no interval."""
        found = change.ratio if self.relative else change.difference
        if change.changed is None or found is None:
            return NO_DATA
        value = 100 * (found[0] - 1) if self.relative else found[0]
        beyond = value > self.bound if self.above else value < self.bound
        return FAILED if change.changed and beyond else PASSED


def parse_limit(text: str, outputs: Outputs) -> Limit:
    """Return a limit of --fail-if; raises ReportError."""
    place = f"--fail-if '{text}'"
    match = LIMIT.fullmatch(text)
    if match is None:
        raise ReportError(f"{place}: not a limit; {LIMIT_FORM}")
    metric, sign, bound, percent = match.groups()
    if metric not in outputs.metrics:
        raise ReportError(f"{place}: {unknown('metric', metric, outputs.metrics)}")
    above, value = sign == ">", float(bound)
    if value < 0 if above else value > 0:
        raise ReportError(f"{place}: even an unchanged metric would be beyond this limit; {LIMIT_FORM}")
    return Limit(text, metric, above, value, bool(percent))


def change_of(row: Mapping[str, Any]) -> Change:
    """Return the change in a row of the changes that the R package has written."""

    def interval(name: str) -> tuple[float, float, float] | None:
        middle, low, high = (row.get(name + end) for end in ("", "_lo", "_hi"))
        return None if middle is None or low is None or high is None else (middle, low, high)

    confidence = row.get("confidence")
    return Change(
        metric=row["metric"],
        unit=row["unit"],
        treatment=row["treatment"],
        a=row.get("a"),
        b=row.get("b"),
        difference=interval("difference"),
        ratio=interval("ratio"),
        n=row["n"],
        confidence=confidence,
        changed=None if confidence is None else row["distinct"],
    )


def judged(limits: Sequence[Limit], changes: Sequence[Change]) -> Iterator[tuple[Limit, Change, str]]:
    """Yield the verdict of each limit on each treatment; raises ReportError for a metric without values."""
    measured = dict.fromkeys(change.metric for change in changes)
    for limit in limits:
        if limit.metric not in measured:
            known = ", ".join(measured)
            raise ReportError(f"--fail-if '{limit.text}': {limit.metric} was not measured; measured: {known}")
        yield from ((limit, one, limit.judge(one)) for one in changes if one.metric == limit.metric)
