"""The scorecard: each expectation of an experiment compared with the measured medians of its treatments."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import ReportError
from samovar.experiment import Expect, package_outputs, read_experiment
from samovar.report.campaign_data import Campaign, read_campaign
from samovar.report.number_format import count, listed, number, quantity, scale, span

REPRODUCED, DIFFERS, NO_DATA = "reproduced", "differs", "no data"
VERDICTS = (REPRODUCED, DIFFERS, NO_DATA)
EXIT_STATUS = {REPRODUCED: 0, DIFFERS: 1, NO_DATA: 2}
ROUNDING = 1e-9
"""Relative tolerance of `equals`, for arithmetic on decimal numbers."""
ANALYSIS_FILES = ("bundle/figures.json", "bundle/tables.json", "bundle/analysis.json", "tables/summary.csv")
"""Files of the analysis that the report needs."""
REQUIRED_COLUMNS = ("part", "metric", "unit", "median", "lo", "hi", "n")
OTHER_COLUMNS = (
    "mean",
    "valid",
    "suspect",
    "min",
    "p25",
    "p75",
    "p90",
    "max",
    "mean_lo",
    "mean_hi",
    "seed",
    "flow",
)
"""Columns of summary.csv and flows.csv; any further column is a factor."""

Levels = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class SummaryRow:
    """A metric of one treatment: the median over n trials and its interval from lo to hi, if there is one."""

    part: str
    levels: Mapping[str, str]
    metric: str
    unit: str
    median: float | None
    lo: float | None
    hi: float | None
    n: int
    flow: str = ""


@dataclass(frozen=True)
class Observation:
    """The median of one treatment, or its ratio to that of another treatment; None if not measured."""

    value: float | None
    n: int
    lo: float | None = None
    hi: float | None = None


@dataclass(frozen=True)
class Result:
    """One line of the scorecard; scorecard.json has these fields."""

    say: str
    metric: str
    part: str
    flow: str
    where: Levels
    expected: str
    observed: str
    verdict: str
    source: str
    why: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the line as scorecard.json has it."""
        return dict(vars(self))


def read_results(folder: Path) -> tuple[Campaign, tuple[Result, ...]]:
    """Read an analysed campaign and judge the expectations of its experiment.

    Raises ReportError if it is not analysed, DefinitionError if its experiment.yaml is broken.
    """
    campaign = read_campaign(folder)
    missing = [name for name in ANALYSIS_FILES if not (campaign.folder / name).is_file()]
    if missing:
        files = ", ".join(missing)
        raise ReportError(
            f"{campaign.folder}: not analysed, no {files}; run `{campaign.analyse_command}` first"
        )
    expected = read_experiment(folder / "experiment.yaml", campaign.plan.get("overrides", {})).expect
    rows = read_summary(folder / "tables" / "summary.csv")
    if any(line.flow for line in expected):
        flows = folder / "tables" / "flows.csv"
        if not flows.is_file():  # analysed by a version that did not write it
            command = campaign.analyse_command
            raise ReportError(f"{flows}: no such file, but `expect` names a flow; run `{command}` first")
        rows += read_summary(flows)
    return campaign, tuple(judge(line, rows) for line in expected)


def read_summary(file: Path) -> tuple[SummaryRow, ...]:
    """Read summary.csv or flows.csv; raises ReportError if a column is missing or has a bad number."""
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        missing = set(REQUIRED_COLUMNS) - set(reader.fieldnames or ())
        if missing:
            columns = ", ".join(REQUIRED_COLUMNS)
            raise ReportError(f"{file}: no column {', '.join(sorted(missing))}; needed: {columns}")
        return tuple(_summary_row(file, reader.line_num, row) for row in reader)


def _summary_row(file: Path, line: int, row: Mapping[str, str]) -> SummaryRow:
    fixed = (*REQUIRED_COLUMNS, *OTHER_COLUMNS)
    levels = {name: text for name, text in row.items() if name not in fixed and text not in ("", "NA", None)}
    try:
        median, lo, hi = (_number_or_none(row[name]) for name in ("median", "lo", "hi"))
        key = (row["part"], levels, row["metric"], row["unit"])
        return SummaryRow(*key, median, lo, hi, int(row["n"] or 0), flow=row.get("flow") or "")
    except (ValueError, TypeError) as error:
        raise ReportError(f"{file}:{line}: {error}; median, lo, hi and n must be numbers or NA") from error


def _number_or_none(text: str) -> float | None:
    value = math.nan if text in ("", "NA", "NaN") else float(text)
    return value if math.isfinite(value) else None


def exit_status(verdicts: Iterable[str]) -> int:
    """Return 0 if all lines are reproduced, 1 if one differs, else 2: a line has no data."""
    worst = set(verdicts) & {DIFFERS} or set(verdicts) & {NO_DATA} or {REPRODUCED}
    return EXIT_STATUS[worst.pop()]


def judge(line: Expect, summary: Sequence[SummaryRow]) -> Result:
    """Return the result of one expect line: every treatment that it selects must satisfy it."""
    rows = [row for row in summary if _selects(line, row)]
    known = package_outputs().metrics.get(line.metric)
    unit = "×" if line.relative_to else next((row.unit for row in rows), known.unit if known else "")
    observations = [_observe(line, row, summary) for row in rows]
    verdict = _verdict(line, observations)
    return Result(
        say=line.say,
        metric=line.metric,
        part=line.part or "",
        flow=line.flow or "",
        where=dict(line.where),
        expected=_expected_text(line, unit),
        observed=_observed_text(observations, unit),
        verdict=verdict,
        source=line.source or "",
        why=line.differs or "" if verdict == DIFFERS else "",
    )


def _selects(line: Expect, row: SummaryRow) -> bool:
    """Return whether a line is about the treatment of a row; a list of levels means any of them."""
    if row.metric != line.metric or row.flow != (line.flow or "") or line.part not in (None, row.part):
        return False
    wanted = {factor: (level,) if isinstance(level, str) else level for factor, level in line.where.items()}
    return all(row.levels.get(factor) in accepted for factor, accepted in wanted.items())


def _observe(line: Expect, row: SummaryRow, summary: Sequence[SummaryRow]) -> Observation:
    """Return the median of a row, or its ratio to that of the treatment in `relative_to`."""
    if line.relative_to is None:
        return Observation(row.median, row.n, row.lo, row.hi)
    levels, key = {**row.levels, **line.relative_to}, (row.part, row.flow, row.metric)
    others = (other for other in summary if (other.part, other.flow, other.metric) == key)
    base = next((other for other in others if dict(other.levels) == levels), None)
    if base is None or row.median is None or not base.median:
        return Observation(None, row.n)
    return Observation(row.median / base.median, min(row.n, base.n))


def _verdict(line: Expect, observations: Sequence[Observation]) -> str:
    values = [observation.value for observation in observations]
    if any(value is not None and not _satisfies(line, value) for value in values):
        return DIFFERS
    return REPRODUCED if values and None not in values else NO_DATA


def _satisfies(line: Expect, value: float) -> bool:
    return (
        (line.below is None or value < line.below)
        and (line.above is None or value > line.above)
        and (line.between is None or line.between[0] <= value <= line.between[1])
        and (line.equals is None or abs(value - line.equals) <= _tolerance(line.equals, line.within))
    )


def _tolerance(target: float, within: str | None) -> float:
    """Return the allowed distance from a target, given as a share of it or in its unit."""
    text = (within or "0").strip()
    given = abs(target) * float(text[:-1]) / 100 if text.endswith("%") else float(text)
    return ROUNDING * abs(target) + given


def _expected_text(line: Expect, unit: str) -> str:
    texts = []
    if line.equals is not None:
        texts.append(_target_text(line.equals, line.within, unit))
    if line.between is not None:
        texts.append("between " + span(*line.between, unit).replace("–", " and "))
    if line.above is not None:
        texts.append(f"above {quantity(line.above, unit)}")
    if line.below is not None:
        texts.append(f"below {quantity(line.below, unit)}")
    return listed(texts) + (f" that of {treatment_text(line.relative_to)}" if line.relative_to else "")


def _target_text(target: float, within: str | None, unit: str) -> str:
    """Return a target with its tolerance: 546 packets ± 2 %."""
    text = quantity(target, unit)
    if within is None:
        return text
    if within.strip().endswith("%"):
        return f"{text} ± {within.strip()[:-1].strip()} %"
    divisor, symbol = scale((target,), unit)
    return f"{text} ± {number(float(within) / divisor)} {symbol}".rstrip()


def _observed_text(observations: Sequence[Observation], unit: str) -> str:
    """Return the value with its interval, or the range over treatments, and the number of trials."""
    measured = [(one.value, one) for one in observations if one.value is not None]
    if not measured:
        return "not measured"
    values = [value for value, _ in measured]
    text = span(min(values), max(values), unit)
    low, high = min(one.n for one in observations), max(one.n for one in observations)
    trials = f"n = {low}" if low == high else f"n = {low}–{high}"
    if len(observations) == 1:
        return f"{text}{_interval_text(measured[0][1], unit)} ({trials})"
    missing = len(observations) - len(measured)
    gap = f", {missing} not measured" if missing else ""
    return f"{text} ({count(len(observations), 'treatment')}{gap}, {trials})"


def _interval_text(observation: Observation, unit: str) -> str:
    if observation.lo is None or observation.hi is None:
        return ""
    divisor, _ = scale((observation.value or 0.0,), unit)
    return f" [{number(observation.lo / divisor)}, {number(observation.hi / divisor)}]"


def treatment_text(levels: Levels) -> str:
    """Return levels as text, alternatives joined by `or`: cc cdg or cubic, rwnd 9999KB."""
    texts = {
        factor: level if isinstance(level, str) else listed(level, "or") for factor, level in levels.items()
    }
    return ", ".join(f"{factor} {text}" for factor, text in texts.items())
