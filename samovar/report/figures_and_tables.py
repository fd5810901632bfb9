"""Figures, tables and the data behind them, as the analysis left them in the bundle."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from samovar.campaign.collection import sha256_of
from samovar.errors import ReportError
from samovar.report.campaign_data import Campaign, Json, read_any_json, read_json
from samovar.report.number_format import count

# What the analysis leaves and the report cannot do without.
LEAVINGS = ("bundle/figures.json", "bundle/tables.json", "bundle/analysis.json", "tables/summary.csv")
KNOWN_DATA = {
    "metrics.csv": "every metric of every trial and flow",
    "summary.csv": "every metric of every treatment, over its replicates",
    "flows.csv": "the same of each flow apart",
}


def require_analysis(campaign: Campaign, command: str) -> None:
    """Raise ReportError, with the command to run, where the analysis has not left all that it should."""
    missing = [name for name in LEAVINGS if not (campaign.folder / name).is_file()]
    if missing:
        raise ReportError(f"{campaign.folder}: not analysed, no {', '.join(missing)}; run `{command}` first")


def figures(campaign: Campaign, command: str) -> list[Json]:
    """Return the figures in order; raises ReportError where a file or a planned figure is missing."""
    found = [exhibit(entry) for entry in listing(campaign.bundle / "figures.json")]
    require_planned(campaign, "figure", found, command)
    for figure in found:
        figure["file"] = figure_file(campaign.bundle, figure, command)
    return found


def figure_file(bundle: Path, figure: Json, command: str) -> str:
    """Return a figure's file as a path inside the bundle."""
    name = str(figure.get("file") or f"figures/{figure['name']}.pdf")
    for candidate in (name, f"figures/{name}"):
        if (bundle / candidate).is_file() and (bundle / candidate).resolve().is_relative_to(bundle.resolve()):
            return candidate
    raise ReportError(f"{bundle / name}: no such figure; run `{command}` again")


def tables(campaign: Campaign, command: str) -> list[Json]:
    """Return the tables in order, rows as long as the heading; raises ReportError where one is missing."""
    found = [exhibit(entry) for entry in listing(campaign.bundle / "tables.json")]
    require_planned(campaign, "table", found, command)
    for table in found:
        width = len(table.get("columns") or [])
        table["rows"] = [cells(row, width) for row in table.get("rows") or []]
    return [table for table in found if table.get("columns")]


def require_planned(campaign: Campaign, kind: str, found: list[Json], command: str) -> None:
    """Raise ReportError where the plan asks for an exhibit that was neither made nor explained."""
    explained = read_json(campaign.bundle / "analysis.json", optional=True).get("figures_left_out") or []
    names = [str(one.get("name", "")) for one in [*found, *explained]]
    for planned in campaign.plan.get(f"{kind}s") or []:
        wanted = str(planned.get(kind, "") if isinstance(planned, dict) else planned)
        if not any(name.startswith(wanted) for name in names):
            raise ReportError(f"{campaign.bundle}: no {kind} {wanted}; run `{command}` to make it")


def listing(file: Path) -> list[Json]:
    """Read a list of exhibits."""
    value: Any = read_any_json(file)
    if not isinstance(value, list) or not all(isinstance(one, dict) and "name" in one for one in value):
        raise ReportError(f"{file}: not a list of objects with a name; run the analysis again")
    return value


def exhibit(entry: Json) -> Json:
    """Return an exhibit with its trials counted."""
    trials = entry.get("trials")
    amount = len(trials) if isinstance(trials, list) else trials
    return {**entry, "trials": count(int(amount), "trial") if amount is not None else ""}


def cells(row: list[object], width: int) -> list[str]:
    """Write a row's cells, as many as the table has columns."""
    texts = ["" if value is None else str(value) for value in row]
    return [*texts, *[""] * width][:width]


def data_index(bundle: Path, exhibits: list[Json]) -> list[Json]:
    """Return a row per CSV file: what it holds, how many rows, the first digits of its sha256."""
    holds: dict[str, list[str]] = {}
    for one in exhibits:
        if one.get("data"):
            holds.setdefault(Path(str(one["data"])).name, []).append(str(one.get("title") or one["name"]))
    return [data_row(bundle, file, holds) for file in sorted((bundle / "data").rglob("*.csv"))]


def data_row(bundle: Path, file: Path, holds: dict[str, list[str]]) -> Json:
    """Describe one CSV file."""
    with file.open(newline="", encoding="utf-8", errors="replace") as lines:
        rows = sum(1 for _ in csv.reader(lines)) - 1
    about = "; ".join(holds.get(file.name, [])) or KNOWN_DATA.get(file.name, "")
    name = file.relative_to(bundle).as_posix()
    return {"file": name, "holds": about, "rows": max(0, rows), "sha256": sha256_of(file)[:12]}
