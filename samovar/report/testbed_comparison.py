"""A table that compares the testbeds of one campaign: the same treatment, measured on each of them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

from samovar.report.campaign_data import Campaign, Json
from samovar.report.number_format import quantity

COMPARED_METRICS = ("throughput_bps", "goodput_bps", "rtt_median_ms", "loss_share")
"""Metrics in the table: the mean over a trial's flows, then over the trials of a treatment on a testbed."""
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantiles of Student's t distribution for 95 %, by degrees of freedom from 1."""
STUDENT_T_ABOVE = ((15, 2.131), (20, 2.086), (30, 2.042), (60, 2.0))
"""The same from so many degrees of freedom on; at most 2 % too large in between."""
CAPTION = (
    "The same treatments on each testbed: mean over trials ± half of its 95 % confidence interval (number of "
    "trials). Testbeds differ if their intervals do not overlap; in a long table a few may do so by chance."
)
Samples = Mapping[tuple[str, str], Mapping[str, list[float]]]
"""Values by treatment and metric, then by testbed."""


@dataclass(frozen=True)
class Interval:
    """A mean over trials with half of its 95 % interval; a single trial has no interval."""

    mean: float
    half: float | None
    trials: int

    @classmethod
    def of(cls, values: list[float]) -> Interval:
        """Compute the interval of one value per trial."""
        trials = len(values)
        half = student_t(trials - 1) * stdev(values) / sqrt(trials) if trials > 1 else None
        return cls(mean(values), half, trials)

    def is_disjoint(self, other: Interval) -> bool | None:
        """Return whether two intervals do not overlap; None if one of them is unknown."""
        if self.half is None or other.half is None:
            return None
        return abs(self.mean - other.mean) > self.half + other.half

    def text(self, unit: str) -> str:
        """Return the mean with its interval, its unit and the number of trials."""
        half = f" ± {quantity(self.half, unit)}" if self.half is not None else ""
        return f"{quantity(self.mean, unit)}{half} ({self.trials})"


def student_t(freedom: int) -> float:
    """Return the quantile of Student's t distribution for 95 % and some degrees of freedom."""
    if freedom <= len(STUDENT_T):
        return STUDENT_T[freedom - 1]
    return [STUDENT_T[-1], *(value for least, value in STUDENT_T_ABOVE if least <= freedom)][-1]


def compare_testbeds(campaign: Campaign) -> list[Json]:
    """Return the table; none if the campaign ran on one testbed."""
    testbeds = {id_: str(one.get("testbed") or "") for id_, one in campaign.manifests.items()}
    names = sorted(set(testbeds.values()))
    file = campaign.folder / "tables" / "metrics.csv"
    if len(names) < 2 or not file.is_file():
        return []
    units, samples = read_metrics(file, testbeds)
    rows = list(comparison_rows(names, units, samples))
    columns = [{"name": name, "align": "left"} for name in ("treatment", "metric", *names, "differ")]
    table = {"name": "testbeds", "title": "Testbeds compared", "caption": CAPTION, "trials": ""}
    return [{**table, "columns": columns, "rows": rows}] if rows else []


def read_metrics(file: Path, testbeds: Mapping[str, str]) -> tuple[Mapping[str, str], Samples]:
    """Return the units of the metrics, and one value per trial and metric."""
    units: dict[str, str] = {}
    trials: dict[tuple[str, str], tuple[str, list[float]]] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            trial, metric = row["trial"], row["metric"]
            if metric in COMPARED_METRICS and trial in testbeds and row["value"] not in ("", "NA"):
                units[metric] = row["unit"]
                trials.setdefault((trial, metric), (_treatment(row), []))[1].append(float(row["value"]))
    samples: dict[tuple[str, str], dict[str, list[float]]] = {}
    for (trial, metric), (treatment, values) in trials.items():
        samples.setdefault((treatment, metric), {}).setdefault(testbeds[trial], []).append(mean(values))
    return units, samples


def _treatment(row: Mapping[str, str]) -> str:
    """Return part (unless it is `main`) and levels of a row of metrics.csv."""
    names = list(row)
    levels = [row[name] for name in names[names.index("part") + 1 : names.index("replicate")]]
    part = [] if row["part"] == "main" else [row["part"]]
    return " ".join([*part, *(level for level in levels if level)]) or "all"


def comparison_rows(names: list[str], units: Mapping[str, str], samples: Samples) -> Iterator[list[str]]:
    """Yield a row per treatment and metric that was measured on several testbeds."""
    for (treatment, metric), by_testbed in samples.items():
        if len(by_testbed) > 1:
            found = {name: Interval.of(values) for name, values in by_testbed.items()}
            cells = [found[name].text(units[metric]) if name in found else "" for name in names]
            yield [treatment, metric, *cells, _differ(found.values())]


def _differ(intervals: Iterable[Interval]) -> str:
    every = list(intervals)
    pairs = [one.is_disjoint(other) for place, one in enumerate(every) for other in every[place + 1 :]]
    return "yes" if any(pairs) else "unknown" if None in pairs else "no"
