"""Make the scorecard: compare each expectation of an experiment with the measured medians of treatments."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from samovar.errors import ReportError, unknown
from samovar.experiment import Outputs, keys, package_outputs, read_expectations
from samovar.report.campaign_data import Campaign, read_campaign
from samovar.report.number_format import listed, number, quantity, scale, span
from samovar.units import counted

REPRODUCED, DIFFERS, NO_DATA = "reproduced", "differs", "no data"
VERDICTS = (REPRODUCED, DIFFERS, NO_DATA)
ROUNDING = 1e-9
"""The relative tolerance of `equals`, because floating-point numbers are rounded."""
EXPECTED_DIGITS = 12
"""The ends of a range are shown as they are written, with at most this many digits."""
ANALYSIS_FILES = ("bundle/figures.json", "bundle/tables.json", "bundle/analysis.json", "tables/summary.csv")
"""The files of the analysis that the report needs."""

Levels = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class SummaryRow:
    """A metric of one treatment: its median over `n` trials, with an interval from `lo` to `hi`.

    A value is None if it was not measured. `flow` is empty for a metric of the whole trial. `confidence` is
    the interval's confidence, or None for an older analysis.
    """

    part: str
    levels: Mapping[str, str]
    metric: str
    unit: str
    median: float | None
    lo: float | None
    hi: float | None
    n: int
    flow: str = ""
    confidence: float | None = None


@dataclass(frozen=True)
class Result:
    """The result of one expectation: one line of the scorecard. scorecard.json has the same fields."""

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


def read_results(folder: Path, outputs: Outputs | None = None) -> tuple[Campaign, tuple[Result, ...]]:
    """Read an analysed campaign, and judge the expectations of its experiment.

    Raises ReportError if the campaign is not analysed, has changed since its analysis, or has an expectation
    of a metric that is not in `outputs` (default: the outputs of the R package). Raises DefinitionError if
    the campaign's experiment.yaml is invalid.
    """
    campaign = read_campaign(folder)
    expected = read_expectations(folder / "experiment.yaml")
    # The analysis of early releases wrote no flows.csv.
    needed = [*ANALYSIS_FILES, *(["tables/flows.csv"] if any(line.flow for line in expected) else [])]
    missing = [name for name in needed if not (campaign.folder / name).is_file()]
    command = f"run `{campaign.analyse_command}` first"
    if missing:
        raise ReportError(f"{campaign.folder}: not analysed, no {', '.join(missing)}; {command}")
    recorded = campaign.analysis.get("inputs_sha256")  # the analysis of early releases did not record it
    if recorded not in (None, campaign.inputs_sha256):
        changed = "its plan or trials have changed since the analysis"
        raise ReportError(f"{campaign.folder}: {changed}; {command}")
    outputs = outputs or package_outputs()
    for line in expected:
        if line.metric not in outputs.metrics:
            message = unknown("metric", line.metric, outputs.metrics)
            raise ReportError(f"{campaign.folder / 'experiment.yaml'}: expect '{line.say}': {message}")
    tables = [name for name in needed if name.endswith(".csv")]
    factors = {factor for part in campaign.plan.parts for factor in part.factors}
    rows = [row for name in tables for row in read_summary(campaign.folder / name, factors)]
    return campaign, tuple(judge(line, rows, outputs) for line in expected)


def read_summary(file: Path, factors: Collection[str]) -> tuple[SummaryRow, ...]:
    """Return the rows of summary.csv or flows.csv, which have a column for each of the campaign's factors.

    Raises ReportError if the file is damaged.
    """
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            return tuple(_summary_row(row, factors) for row in csv.DictReader(lines))
    except (ValueError, TypeError, KeyError, csv.Error) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ReportError(f"{file}: damaged ({reason}); run `fab analyse` again") from error


def _summary_row(row: Mapping[str, str], factors: Collection[str]) -> SummaryRow:
    levels = {name: text for name, text in row.items() if name in factors and text not in ("", "NA")}
    texts = [row["median"], row["lo"], row["hi"], row.get("confidence", "NA")]
    numbers = [float("nan" if text in ("", "NA") else text) for text in texts]
    median, lo, hi, confidence = (value if math.isfinite(value) else None for value in numbers)
    key = (row["part"], levels, row["metric"], row["unit"])
    return SummaryRow(*key, median, lo, hi, int(row["n"]), row.get("flow", ""), confidence)


def exit_status(verdicts: Iterable[str]) -> int:
    """Return the exit code: 1 if a verdict is `differs`, otherwise 2 if one is `no data`, otherwise 0."""
    found = set(verdicts)
    return 1 if DIFFERS in found else 2 if NO_DATA in found else 0


def judge(line: keys.Expect, summary: Sequence[SummaryRow], outputs: Outputs | None = None) -> Result:
    """Return the result of one expectation. Every treatment that the expectation selects must satisfy it."""
    rows = [row for row in summary if _selects(line, row)]
    known = (outputs or package_outputs()).metrics.get(line.metric)
    unit = "×" if line.relative_to else next((row.unit for row in rows), known.unit if known else "")
    observed = [_ratio(row, line.relative_to, summary) if line.relative_to else row for row in rows]
    values = [row.median for row in observed]
    verdict = REPRODUCED if values and None not in values else NO_DATA
    if any(value is not None and not _satisfies(line, value) for value in values):
        verdict = DIFFERS
    return Result(
        say=line.say,
        metric=line.metric,
        part=line.part or "",
        flow=line.flow or "",
        where={factor: one if not more else (one, *more) for factor, (one, *more) in line.where.items()},
        expected=_expected_text(line, unit),
        observed=_observed_text(observed, unit),
        verdict=verdict,
        source=line.source or "",
        why=line.differs or "" if verdict == DIFFERS else "",
    )


def _selects(line: keys.Expect, row: SummaryRow) -> bool:
    """Return whether an expectation selects a row, by its metric, flow, part and levels."""
    if row.metric != line.metric or row.flow != (line.flow or "") or line.part not in (None, row.part):
        return False
    return all(row.levels.get(factor) in accepted for factor, accepted in line.where.items())


def _ratio(row: SummaryRow, base: Mapping[str, str], summary: Sequence[SummaryRow]) -> SummaryRow:
    """Return a row with its median divided by that of another treatment.

    `base` has the levels of the other treatment that differ from those of the row. The result's
    median is None if one of these two medians is missing, or if the other treatment's median is 0.
    """
    levels, key = {**row.levels, **base}, (row.part, row.flow, row.metric)
    others = (other for other in summary if (other.part, other.flow, other.metric) == key)
    other = next((other for other in others if dict(other.levels) == levels), None)
    if other is None or row.median is None or not other.median:
        return replace(row, median=None, lo=None, hi=None)
    return replace(row, median=row.median / other.median, lo=None, hi=None, n=min(row.n, other.n))


def _satisfies(line: keys.Expect, value: float) -> bool:
    within = (line.within or "0").strip()  # a percentage of the target, or a value in its unit
    target = abs(line.equals or 0)
    allowed = target * float(within[:-1]) / 100 if within.endswith("%") else float(within)
    return (
        (line.below is None or value < line.below)
        and (line.above is None or value > line.above)
        and (line.between is None or line.between[0] <= value <= line.between[1])
        and (line.equals is None or abs(value - line.equals) <= allowed + ROUNDING * target)
    )


def _expected_text(line: keys.Expect, unit: str) -> str:
    """Return the expected value as text, such as `546 packets ± 2 %` or `above 3 s and below 4 s`."""
    texts = []
    if line.equals is not None:
        texts.append(quantity(line.equals, unit))
        within = (line.within or "").strip()
        if within.endswith("%"):
            texts[0] += f" ± {within[:-1].strip()} %{' of it' if unit == 'share' else ''}"
        elif within:
            divisor, symbol = scale((line.equals,), unit)
            texts[0] += f" ± {number(float(within) / divisor)} {symbol}".rstrip()
    if line.between is not None:
        divisor, symbol = scale(line.between, unit)
        ends = [number(end / divisor, EXPECTED_DIGITS) for end in line.between]
        texts.append(f"between {listed(ends)} {symbol}".rstrip())
    bounds = (("above", line.above), ("below", line.below))
    texts += [f"{word} {quantity(bound, unit)}" for word, bound in bounds if bound is not None]
    return listed(texts) + (f" that of {treatment_text(line.relative_to)}" if line.relative_to else "")


def _observed_text(rows: Sequence[SummaryRow], unit: str) -> str:
    """Return the observed value with its interval (several treatments: range), and the number of trials."""
    values = [row.median for row in rows if row.median is not None]
    if not values:
        return "not measured"
    text = span(min(values), max(values), unit)
    sizes = [row.n for row in rows]
    trials = f"n = {span(min(sizes), max(sizes), '')}"
    if len(rows) > 1:
        missing = len(rows) - len(values)
        gap = f", {missing} not measured" if missing else ""
        return f"{text} ({counted(len(rows), 'treatment')}{gap}, {trials})"
    (row,), divisor = rows, scale(values, unit)[0]
    if row.lo is not None and row.hi is not None:
        text += f" [{number(row.lo / divisor)}, {number(row.hi / divisor)}]"
        trials += "" if row.confidence is None else f", {100 * row.confidence:.4g} % interval"
    return f"{text} ({trials})"


def treatment_text(levels: Levels) -> str:
    """Return levels as text, such as `cc cdg or cubic, rwnd 9999KB`."""
    texts = {
        factor: level if isinstance(level, str) else listed(level, "or") for factor, level in levels.items()
    }
    return ", ".join(f"{factor} {text}" for factor, text in texts.items())
