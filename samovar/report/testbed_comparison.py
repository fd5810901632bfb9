"""A table that compares the testbeds of one campaign: the same treatment, measured on each of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, median

from samovar.report.campaign_data import Campaign, Json
from samovar.report.number_format import quantity, span

COMPARED_METRICS = ("throughput_bps", "goodput_bps", "rtt_median_ms", "loss_share")
"""Metrics in the table: the mean over a trial's flows."""
CAPTION = (
    "The same treatments on each testbed: median over trials, least and greatest value, number of trials."
)


def compare_testbeds(campaign: Campaign) -> list[Json]:
    """Return the table; none if the campaign ran on one testbed."""
    testbeds = {id_: str(one.get("testbed") or "") for id_, one in campaign.manifests.items()}
    names = sorted(set(testbeds.values()))
    file = campaign.folder / "tables" / "metrics.csv"
    rows = list(comparison_rows(file, testbeds)) if len(names) > 1 and file.is_file() else []
    columns = [{"name": name, "align": "left"} for name in ("treatment", "metric", *names)]
    table = {"name": "testbeds", "title": "Testbeds compared", "caption": CAPTION, "trials": ""}
    return [{**table, "columns": columns, "rows": rows}] if rows else []


def comparison_rows(file: Path, testbeds: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield a row per treatment and metric of metrics.csv that was measured on several testbeds.

    `testbeds` has the testbed of each trial. A row has a cell per testbed.
    """
    flows: dict[tuple[str, str, str], dict[str, dict[str, list[float]]]] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        names = list(reader.fieldnames or ())
        factors = names[names.index("part") + 1 : names.index("replicate")]
        for row in reader:
            trial, metric = row["trial"], row["metric"]
            if metric in COMPARED_METRICS and trial in testbeds and row["value"] not in ("", "NA"):
                levels = ["" if row["part"] == "main" else row["part"], *(row[name] for name in factors)]
                key = (" ".join(filter(None, levels)) or "all", metric, row["unit"])
                trials = flows.setdefault(key, {}).setdefault(testbeds[trial], {})
                trials.setdefault(trial, []).append(float(row["value"]))
    for (treatment, metric, unit), by_testbed in flows.items():
        samples = {name: list(map(mean, trials.values())) for name, trials in by_testbed.items()}
        if len(samples) > 1:
            cells = [_cell(samples.get(name, ()), unit) for name in sorted(set(testbeds.values()))]
            yield [treatment, metric, *cells]


def _cell(values: Sequence[float], unit: str) -> str:
    if not values:
        return ""
    return f"{quantity(median(values), unit)} [{span(min(values), max(values), unit)}] ({len(values)})"
