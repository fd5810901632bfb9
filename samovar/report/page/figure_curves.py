"""Read the data of a report's figures as curves, which the page draws so that readers can zoom into them."""

from __future__ import annotations

import csv
import math
import sys
from array import array
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from samovar.report.campaign_data import Json

Columns = dict[str, list[str]]
UNITS = {"ms": "ms", "us": "µs", "s": "s", "bytes": "bytes", "packets": "packets", "mbps": "Mbit/s"}
"""Units by the end of the name of a column."""
NAMES = {"rtt": "RTT", "srtt": "srtt", "rto": "RTO", "cwnd": "cwnd", "ssthresh": "ssthresh", "t": "Time"}
LEVEL_TEXTS = ("rwnd", "label", "level")
"""Columns with the level of a factor as the plan has it."""


class CurveForm(NamedTuple):
    """How the curves of a figure are drawn, and the columns of their data: x, y, and the ends of a band."""

    kind: str
    x: str
    y: str
    low: str = ""
    high: str = ""


class TableRow(NamedTuple):
    """The place of a trial in the table of trials; its part, levels and replicate as texts."""

    place: int
    texts: Sequence[str]


def read_curves(figure: Json, bundle: Path, trials: Mapping[str, TableRow]) -> Json | None:
    """Return the panels and curves of a figure; None if its data are not curves. `trials` has them by id."""
    file = bundle / str(figure["data"])
    columns = _read_columns(file) if figure["data"] and file.is_file() else {}
    form = _form(columns)
    if form is None:
        return None
    texts = columns[form.x]
    levels = [] if _is_numeric(texts) else list(dict.fromkeys(texts))
    places = {level: float(place) for place, level in enumerate(levels)}
    values = {"x": [places[one] for one in texts] if levels else _numbers(texts)}
    for name, column in (("y", form.y), ("low", form.low), ("high", form.high)):
        if column in columns:
            values[name] = _numbers(columns[column])
    groups: dict[str, dict[str, list[int]]] = {}
    for row, (panel, label) in enumerate(zip(_panels(columns), _labels(columns, trials), strict=True)):
        groups.setdefault(panel, {}).setdefault(label, []).append(row)
    panels = [
        {
            "title": panel,
            "curves": [_curve(label, rows, values, columns, trials) for label, rows in own.items()],
        }
        for panel, own in groups.items()
    ]
    return {
        "kind": form.kind,
        "x": {**_axis(figure, "x", form.x), "column": form.x, "levels": levels},
        "y": _axis(figure, "y", form.y),
        "panels": panels,
        "trials": [trials[one].place for one in figure["ids"] if one in trials],
    }


def _axis(figure: Json, name: str, column: str) -> Json:
    """Return the title of an axis and whether it is logarithmic, as the analysis recorded them, if it has."""
    recorded = (figure.get("axes") or {}).get(name) or {}
    return {"title": recorded.get("title") or _title(column), "log": bool(recorded.get("log"))}


def _read_columns(file: Path) -> Columns:
    """Return the columns of a CSV file by name; none if it has no row."""
    with file.open(newline="", encoding="utf-8", errors="replace") as lines:
        reader = csv.reader(lines)
        names = next(reader, [])
        return dict(zip(names, map(list, zip(*reader, strict=False)), strict=False))


def _form(columns: Columns) -> CurveForm | None:
    """Return how data are drawn: over time, as cumulative shares, or as medians against levels."""
    if "t_s" in columns:
        y = next((name for name in ("mid", "value") if name in columns), "")
        return (
            CurveForm("line", "t_s", y, "low", "high") if y and {"quantity", "unit"} <= set(columns) else None
        )
    if "curve" not in columns:
        return None
    if "median" in columns:
        x = next((name for name in ("rwnd_bytes", "level") if name in columns), "")
        return CurveForm("points", x, "median", "lo", "hi") if x else None
    value = next((name for name in columns if name not in ("curve", "share", "quantity", "unit")), "")
    if not value or not _is_numeric(columns[value]):
        return None
    if "share" not in columns and "trial" in columns:  # one row per sample
        columns["share"] = list(map(str, _shares(columns["curve"], _numbers(columns[value]))))
    return CurveForm("step", value, "share") if "share" in columns else None


def _shares(curves: Sequence[str], values: Sequence[float]) -> list[float]:
    """Return the share of the samples of a sample's curve that are not above it."""
    shares = [0.0] * len(values)
    for curve in set(curves):
        rows = sorted((row for row, one in enumerate(curves) if one == curve), key=values.__getitem__)
        for place, row in enumerate(rows, 1):
            shares[row] = place / len(rows)
    return shares


def _panels(columns: Columns) -> Iterable[str]:
    """Return the title of the panel of each row: its quantity with the unit."""
    if "quantity" not in columns:
        return [""] * len(next(iter(columns.values())))
    pairs = list(zip(columns["quantity"], columns["unit"], strict=True))
    titles = {(name, unit): f"{_words(name)} ({unit})" for name, unit in set(pairs)}
    return [titles[pair] for pair in pairs]


def _labels(columns: Columns, trials: Mapping[str, TableRow]) -> Iterator[str]:
    """Yield the curve of each row: as the data name it, or what distinguishes its trial, and its flow."""
    if "curve" in columns:
        yield from columns["curve"]
        return
    ids = columns.get("trial", [""] * len(columns["t_s"]))
    flows = columns.get("flow", [""] * len(ids))
    shown = [trials[one].texts for one in dict.fromkeys(ids) if one in trials]
    varying = [place for place, texts in enumerate(zip(*shown, strict=True)) if len(set(texts)) > 1]
    several = len(set(flows) - {"", "queue"}) > 1
    for trial, flow in zip(ids, flows, strict=True):
        texts = [trials[trial].texts[place] for place in varying] if trial in trials else [trial]
        yield ", ".join(filter(None, [*texts, flow if several or not varying else ""])) or trial


def _curve(
    label: str,
    rows: list[int],
    values: Mapping[str, Sequence[float]],
    columns: Columns,
    trials: Mapping[str, TableRow],
) -> Json:
    """Return a curve: its values in the order of x, and for each of them the trial or the level, if known."""
    x = values["x"]
    rows = sorted((row for row in rows if not math.isnan(x[row])), key=x.__getitem__)
    curve: Json = {
        "label": label,
        **{name: encoded([own[row] for row in rows]) for name, own in values.items()},
    }
    if "trial" in columns:
        own = [trials[one].place if (one := columns["trial"][row]) in trials else -1 for row in rows]
        curve["at"] = own[:1] if len(set(own)) == 1 else own
    elif text := next((name for name in LEVEL_TEXTS if name in columns), ""):
        curve["levels"] = [columns[text][row] for row in rows]
    return curve


def encoded(values: Sequence[float]) -> Json:
    """Return numbers as their least value and, in Base64, 32-bit floats to add to it.

    Rounding moves a value by at most a 16-millionth of the range of all values, much less than a pixel.
    """
    base = min((one for one in values if not math.isnan(one)), default=0.0)
    floats = array("f", (one - base for one in values))
    if sys.byteorder == "big":
        floats.byteswap()
    return {"base": base, "floats": b64encode(floats.tobytes()).decode()}


def _numbers(texts: Iterable[str]) -> list[float]:
    """Return the numbers in texts, and NaN for a text that is not a number, such as NA."""
    return [float(text) if _is_number(text) else math.nan for text in texts]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_numeric(texts: Iterable[str]) -> bool:
    return all(text in ("", "NA") or _is_number(text) for text in texts)


def _title(column: str) -> str:
    """Return the name of a column as the title of an axis: `RTT (ms)` of rtt_ms."""
    name, _, unit = column.rpartition("_")
    return f"{_words(name)} ({UNITS[unit]})" if name and unit in UNITS else _words(column)


def _words(name: str) -> str:
    text = name.replace("_", " ").replace("-", " ")
    return NAMES.get(name) or text[:1].upper() + text[1:]
