"""The scorecard: what an experiment expects, line by line, against what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from samovar.experiment import Expect
from samovar.experiment.metrics import METRICS
from samovar.report.number_format import count, listed, number, quantity, scale, span
from samovar.report.summary_csv import SummaryRow

REPRODUCED, DIFFERS, NO_DATA = "reproduced", "differs", "no data"
VERDICTS = (REPRODUCED, DIFFERS, NO_DATA)
EXIT_STATUS = {REPRODUCED: 0, DIFFERS: 1, NO_DATA: 2}
# Two decimal texts of one number may differ in the last bit once they went through arithmetic.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Observation:
    """What one treatment showed: the median, or its ratio to another treatment's; None when not measured."""

    value: float | None
    n: int
    lo: float | None = None
    hi: float | None = None


@dataclass(frozen=True)
class Result:
    """One judged line of the scorecard."""

    say: str
    metric: str
    part: str
    flow: str
    where: Mapping[str, str | Sequence[str]]
    expected: str
    observed: str
    verdict: str
    source: str
    why: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the line as scorecard.json holds it."""
        return dict(vars(self))


def score(expectations: Iterable[Expect], summary: Sequence[SummaryRow]) -> tuple[Result, ...]:
    """Judge every expect line against the summary table."""
    return tuple(judge(expectation, summary) for expectation in expectations)


def exit_status(verdicts: Iterable[str]) -> int:
    """Return 0 when all lines are reproduced, 1 when one differs, 2 when the worst is a line without data."""
    worst = set(verdicts) & {DIFFERS} or set(verdicts) & {NO_DATA} or {REPRODUCED}
    return EXIT_STATUS[worst.pop()]


def judge(line: Expect, summary: Sequence[SummaryRow]) -> Result:
    """Judge one expect line: every treatment that it selects must hold."""
    rows = [row for row in summary if selects(line, row)]
    unit = "×" if line.relative_to else next((row.unit for row in rows), METRICS[line.metric].unit)
    observations = [observe(line, row, summary) for row in rows]
    judged = verdict(line, observations)
    return Result(
        say=line.say,
        metric=line.metric,
        part=line.part or "",
        flow=line.flow or "",
        where=dict(line.where),
        expected=expected_words(line, unit),
        observed=observed_words(observations, unit),
        verdict=judged,
        source=line.source or "",
        why=line.differs or "" if judged == DIFFERS else "",
    )


def selects(line: Expect, row: SummaryRow) -> bool:
    """Say whether the row is one of those that the line speaks of."""
    in_part = line.part is None or row.part == line.part
    of_flow = row.flow == (line.flow or "")
    return in_part and of_flow and row.metric == line.metric and has_levels(row, line.where)


def has_levels(row: SummaryRow, levels: Mapping[str, str | Sequence[str]]) -> bool:
    """Say whether the row's treatment has these levels; a list of levels means any of them."""
    wanted = {factor: (level,) if isinstance(level, str) else level for factor, level in levels.items()}
    return all(row.levels.get(factor) in accepted for factor, accepted in wanted.items())


def observe(line: Expect, row: SummaryRow, summary: Sequence[SummaryRow]) -> Observation:
    """Return the row's median, or its ratio to the treatment that the line is relative to."""
    if line.relative_to is None:
        return Observation(row.median, row.n, row.lo, row.hi)
    base = counterpart(line.relative_to, row, summary)
    if base is None or row.median is None or not base.median:
        return Observation(None, row.n)
    return Observation(row.median / base.median, min(row.n, base.n))


def counterpart(
    levels: Mapping[str, str], row: SummaryRow, summary: Sequence[SummaryRow]
) -> SummaryRow | None:
    """Find the treatment that is the row's own but for the given levels."""
    sought = {**row.levels, **levels}
    alike = (row.part, row.flow, row.metric)
    same = (other for other in summary if (other.part, other.flow, other.metric) == alike)
    return next((other for other in same if dict(other.levels) == sought), None)


def verdict(line: Expect, observations: Sequence[Observation]) -> str:
    """Return differs as soon as one treatment does, no data when one was not measured."""
    values = [observation.value for observation in observations]
    if any(value is not None and not holds(line, value) for value in values):
        return DIFFERS
    return REPRODUCED if values and None not in values else NO_DATA


def holds(line: Expect, value: float) -> bool:
    """Say whether a value satisfies every relation of the line."""
    below = line.below is None or value < line.below
    above = line.above is None or value > line.above
    between = line.between is None or line.between[0] <= value <= line.between[1]
    equal = line.equals is None or abs(value - line.equals) <= tolerance(line.equals, line.within)
    return below and above and between and equal


def tolerance(target: float, within: str | None) -> float:
    """Return the allowed distance from the target in the target's unit: a share of it, or an absolute."""
    slack = ROUNDING * abs(target)
    if within is None:
        return slack
    text = within.strip()
    return slack + (abs(target) * float(text[:-1]) / 100 if text.endswith("%") else float(text))


def expected_words(line: Expect, unit: str) -> str:
    """Say what the line asks for, in words."""
    words = []
    if line.equals is not None:
        words.append(equals_words(line.equals, line.within, unit))
    if line.between is not None:
        words.append("between " + span(*line.between, unit).replace("–", " and "))
    if line.above is not None:
        words.append(f"above {quantity(line.above, unit)}")
    if line.below is not None:
        words.append(f"below {quantity(line.below, unit)}")
    relative = f" that of {treatment_words(line.relative_to)}" if line.relative_to else ""
    return listed(words) + relative


def equals_words(target: float, within: str | None, unit: str) -> str:
    """Say a target and its tolerance: 546 packets ± 2 %."""
    words = quantity(target, unit)
    if within is None:
        return words
    if within.strip().endswith("%"):
        return f"{words} ± {within.strip()[:-1].strip()} %"
    divisor, symbol = scale((target,), unit)
    return f"{words} ± {number(float(within) / divisor)} {symbol}".rstrip()


def observed_words(observations: Sequence[Observation], unit: str) -> str:
    """Say what was measured: a value with its interval, or the range over treatments, of how many trials."""
    seen = [(one.value, one) for one in observations if one.value is not None]
    if not seen:
        return "not measured"
    values = [value for value, _ in seen]
    words = span(min(values), max(values), unit)
    if len(observations) == 1:
        return f"{words}{interval_words(seen[0][1], unit)} ({trials_words(observations)})"
    unseen = len(observations) - len(seen)
    gap = f", {unseen} not measured" if unseen else ""
    return f"{words} ({count(len(observations), 'treatment')}{gap}, {trials_words(observations)})"


def interval_words(observation: Observation, unit: str) -> str:
    """Say the 95 % interval where there is one."""
    if observation.lo is None or observation.hi is None:
        return ""
    divisor, _ = scale((observation.value or 0.0,), unit)
    return f" [{number(observation.lo / divisor)}, {number(observation.hi / divisor)}]"


def trials_words(observations: Sequence[Observation]) -> str:
    """Say of how many trials each value is the median."""
    low, high = min(one.n for one in observations), max(one.n for one in observations)
    return f"n = {low}" if low == high else f"n = {low}–{high}"


def treatment_words(levels: Mapping[str, str | Sequence[str]]) -> str:
    """Say a treatment: cc cdg, rwnd 9999KB."""
    return ", ".join(f"{factor} {level_words(level)}" for factor, level in levels.items())


def level_words(level: str | Sequence[str]) -> str:
    """Say a level, or several of which each will do."""
    return level if isinstance(level, str) else listed(level, "or")
