"""Whether the testbeds of a campaign differ: the same treatment, measured on each."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

from samovar.report.campaign_data import Campaign, Json
from samovar.report.number_format import quantity

METRICS = ("throughput_bps", "goodput_bps", "rtt_median_ms", "loss_share")
"""What is compared: the mean over a trial's flows, then over the trials of a treatment on a testbed."""
QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t for 95 %, by degrees of freedom from 1; beyond, a value that is at most 2 % too wide."""
LARGE = ((15, 2.131), (20, 2.086), (30, 2.042), (60, 2.0))
Samples = Mapping[tuple[str, str], Mapping[str, list[float]]]
"""The values of a treatment's metric, by testbed."""


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval over trials; of one trial there is no interval."""

    mean: float
    half: float | None
    trials: int

    @classmethod
    def of(cls, values: list[float]) -> Interval:
        """Compute it from one value a trial."""
        number = len(values)
        if number < 2:
            return cls(mean(values), None, number)
        return cls(mean(values), quantile(number - 1) * stdev(values) / sqrt(number), number)

    def apart(self, other: Interval) -> bool | None:
        """Tell whether two intervals have nothing in common; None where one of them is not known."""
        if self.half is None or other.half is None:
            return None
        return abs(self.mean - other.mean) > self.half + other.half

    def words(self, unit: str) -> str:
        """Say it with its unit and the number of trials."""
        give = f" ± {quantity(self.half, unit)}" if self.half is not None else ""
        return f"{quantity(self.mean, unit)}{give} ({self.trials})"


def quantile(freedom: int) -> float:
    """Return Student's t for 95 % and some degrees of freedom."""
    if freedom <= len(QUANTILES):
        return QUANTILES[freedom - 1]
    known = [value for least, value in LARGE if least <= freedom]
    return known[-1] if known else QUANTILES[-1]


def table(campaign: Campaign) -> list[Json]:
    """Return the table of treatments that ran on several testbeds; none where there is only one."""
    ran = {id_: str(one.get("testbed") or "") for id_, one in campaign.manifests.items()}
    names = sorted(set(ran.values()))
    file = campaign.folder / "tables" / "metrics.csv"
    if len(names) < 2 or not file.is_file():
        return []
    units, samples = read(file, ran)
    rows = list(rows_of(names, units, samples))
    columns = [{"name": name, "align": "left"} for name in ("treatment", "metric", *names, "differ")]
    caption = (
        "The same treatments on each testbed: mean over trials, give or take a 95 % interval (number of "
        "trials). Testbeds differ where intervals have nothing in common; some of many lines may by chance."
    )
    entry = {"name": "testbeds", "title": "Testbeds compared", "caption": caption}
    return [{**entry, "columns": columns, "rows": rows, "trials": ""}] if rows else []


def read(file: Path, ran: Mapping[str, str]) -> tuple[Mapping[str, str], Samples]:
    """Read one value for each trial and metric, by treatment and testbed; and the metrics' units."""
    units: dict[str, str] = {}
    trials: dict[tuple[str, str], tuple[str, list[float]]] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["metric"] in METRICS and row["trial"] in ran and row["value"] not in ("", "NA"):
                units[row["metric"]] = row["unit"]
                key = (row["trial"], row["metric"])
                trials.setdefault(key, (treatment_of(row), []))[1].append(float(row["value"]))
    samples: dict[tuple[str, str], dict[str, list[float]]] = {}
    for (trial, metric), (treatment, values) in trials.items():
        samples.setdefault((treatment, metric), {}).setdefault(ran[trial], []).append(mean(values))
    return units, samples


def treatment_of(row: Mapping[str, str]) -> str:
    """Name the treatment of a row of metrics.csv: its part, unless that is the only one, and its levels."""
    names = list(row)
    levels = [row[name] for name in names[names.index("part") + 1 : names.index("replicate")]]
    part = [] if row["part"] == "main" else [row["part"]]
    return " ".join([*part, *(level for level in levels if level)]) or "all"


def rows_of(names: list[str], units: Mapping[str, str], samples: Samples) -> Iterator[list[str]]:
    """Write a line for each treatment and metric that several testbeds have."""
    for (treatment, metric), by_testbed in samples.items():
        if len(by_testbed) > 1:
            found = {name: Interval.of(values) for name, values in by_testbed.items()}
            told = [found[name].words(units[metric]) if name in found else "" for name in names]
            yield [treatment, metric, *told, verdict(found.values())]


def verdict(intervals: Iterable[Interval]) -> str:
    """Say whether any two testbeds differ."""
    every = list(intervals)
    pairs = [one.apart(other) for place, one in enumerate(every) for other in every[place + 1 :]]
    if any(pairs):
        return "yes"
    return "not known" if None in pairs else "no"
