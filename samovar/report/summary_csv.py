"""tables/summary.csv, and flows.csv with flows apart: a row per treatment and metric, over its replicates."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import ReportError

FIXED = ("part", "metric", "unit", "median", "mean", "lo", "hi", "n")
SPREAD = ("valid", "suspect", "min", "p25", "p75", "p90", "max", "mean_lo", "mean_hi", "seed")
"""Columns that say more of the same values; the columns that are neither are factors, or the flow."""


@dataclass(frozen=True)
class SummaryRow:
    """A metric of one treatment: its median over n trials, lo to hi the interval where there is one."""

    part: str
    levels: Mapping[str, str]
    metric: str
    unit: str
    median: float | None
    lo: float | None
    hi: float | None
    n: int
    flow: str = ""


def read_summary(file: Path) -> tuple[SummaryRow, ...]:
    """Read the summary table; raises ReportError where a column is missing or holds no number."""
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        missing = set(FIXED) - {"mean"} - set(reader.fieldnames or ())
        if missing:
            raise ReportError(f"{file}: no column {', '.join(sorted(missing))}; columns: {', '.join(FIXED)}")
        return tuple(summary_row(file, reader.line_num, row) for row in reader)


def summary_row(file: Path, line: int, row: Mapping[str, str]) -> SummaryRow:
    """Type one line of the table."""
    told = (*FIXED, *SPREAD, "flow")
    levels = {name: text for name, text in row.items() if name not in told and text not in ("", "NA", None)}
    try:
        median, lo, hi = (optional_number(row[name]) for name in ("median", "lo", "hi"))
        known = (row["part"], levels, row["metric"], row["unit"], median, lo, hi, int(row["n"] or 0))
        return SummaryRow(*known, flow=row.get("flow") or "")
    except (ValueError, TypeError) as error:
        raise ReportError(f"{file}:{line}: {error}; median, lo, hi and n are numbers or NA") from error


def optional_number(text: str) -> float | None:
    """Type a cell that may say that there is no value."""
    if text in ("", "NA", "NaN"):
        return None
    value = float(text)
    return value if math.isfinite(value) else None
