"""Read the CSV file of a figure as curves, or as cells of a heat map (tiles), for the report's HTML page."""

from __future__ import annotations

import csv
import math
import sys
from array import array
from base64 import b64encode
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from samovar.report.campaign_data import Json
from samovar.report.number_format import number

Columns = dict[str, list[str]]
NAMES = {"rtt": "RTT", "srtt": "srtt", "rto": "RTO", "cwnd": "cwnd", "ssthresh": "ssthresh"}
ROWS_AT_ONCE = 10_000
MISSING = ("", "NA", "NaN", "Inf", "-Inf")
"""Entries of a numeric column that are not drawn."""
KINDS = ("line", "step", "points", "segments", "bars", "boxes")
"""Kinds of layouts that are drawn as curves."""
OVER_LEVELS = ("bars", "boxes")
"""Kinds whose x axis has levels, even if these are numbers."""
LEVEL_TEXTS = ("rwnd", "label", "level")
"""Columns that have the level of a factor, written as in the plan."""


class CurveForm(NamedTuple):
    """How figures.json describes the curves of a figure: their form, and the columns of their data.

    `low` and `high` are the columns with the bounds of a band. Rows with the same value in `curve` form a
    curve; without this column, rows of the same trial and flow form a curve. Each combination of values of
    `facets` has a panel.
    """

    kind: str
    x: str
    y: str
    low: str = ""
    high: str = ""
    curve: str = ""
    facets: tuple[str, ...] = ()


class TableRow(NamedTuple):
    """A trial: its index in the table of trials (`place`); its part, levels and replicate as texts."""

    place: int
    texts: Sequence[str]


def read_curves(figure: Json, bundle: Path, trials: Mapping[str, TableRow]) -> Json | None:
    """Return the curves or tiles of each panel of a figure, or None if the page shows the figure's picture.

    `trials` maps the id of a trial to its row in the table of trials.
    """
    file, layout = bundle / str(figure["data"]), figure.get("layout") or {}
    columns = _read_columns(file) if figure["data"] and file.is_file() else {}
    if layout.get("kind") == "tiles":
        return _read_tiles(figure, layout, columns, trials)
    form = _form_of_layout(layout, columns)
    if form is None:
        return None
    texts = columns[form.x]
    numbers = list(map(_number, texts))
    is_text = any(math.isnan(one) and text not in MISSING for one, text in zip(numbers, texts, strict=True))
    levels = list(dict.fromkeys(texts)) if form.kind in OVER_LEVELS or is_text else []
    places = {level: float(place) for place, level in enumerate(levels)}
    values = {"x": [places[one] for one in texts] if levels else numbers}
    for name, column in (("y", form.y), ("low", form.low), ("high", form.high)):
        if column in columns:
            values[name] = list(map(_number, columns[column]))
    groups: dict[str, dict[str, list[int]]] = {}
    labels = columns[form.curve] if form.curve else _labels(columns, trials)
    for row, (panel, label) in enumerate(zip(_panels(form, columns), labels, strict=True)):
        groups.setdefault(panel, {}).setdefault(label, []).append(row)
    quantities = columns["quantity"] if "quantity" in form.facets else [""] * len(texts)
    panels = [
        {
            "title": panel,
            "quantity": quantities[next(iter(own.values()))[0]],
            "curves": [_curve(label, rows, values, columns, trials) for label, rows in own.items()],
        }
        for panel, own in groups.items()
    ]
    y_axis = _axis(figure, "y", form.y)
    if "quantity" in form.facets:  # the titles of panels name the quantity
        y_axis["title"] = "" if len(panels) > 1 else panels[0]["title"]
    return {
        "kind": form.kind,
        "cumulative": form.y == "share",
        "ellipses": bool(layout.get("ellipses")),
        "x": {
            **_axis(figure, "x", form.x),
            "column": form.x,
            "levels": levels,
            "reversed": "x" in (layout.get("reversed") or ""),
        },
        "y": y_axis,
        "panels": panels,
        "trials": _places(figure, trials),
    }


def _read_tiles(figure: Json, layout: Json, columns: Columns, trials: Mapping[str, TableRow]) -> Json | None:
    """Return the panels of a heat map: levels of its rows and columns, and text and share of each cell.

    The share is a cell's value scaled from 0 (the figure's smallest value) to 1 (its largest value).
    """
    names = [str(layout.get(name)) for name in ("x", "y", "value", "low", "high")]
    facets = tuple(str(one) for one in layout.get("facets") or [])
    if not {*names, *facets} <= set(columns):
        return None
    values = list(map(_number, columns[names[2]]))
    known = [one for one in values if not math.isnan(one)]
    least, range_ = min(known, default=0.0), max(known, default=0.0) - min(known, default=0.0)
    across, down, *_ = (columns[name] for name in names)
    panels: dict[str, dict[str, Json]] = {}
    for row, panel in enumerate(_panels(CurveForm("tiles", names[0], names[1], facets=facets), columns)):
        low, high = (columns[name][row] for name in names[3:])
        interval = "" if low == "NA" else f"[{number(float(low), 3)}, {number(float(high), 3)}]"
        if not math.isnan(values[row]):
            share = (values[row] - least) / range_ if range_ else 0.0
            tile = {"text": number(values[row], 3), "interval": interval, "share": round(share, 3)}
            panels.setdefault(panel, {}).setdefault(down[row], {})[across[row]] = tile
    return {
        "kind": "tiles",
        "x": {**_axis(figure, "x", names[0]), "levels": list(dict.fromkeys(across))},
        "y": {**_axis(figure, "y", names[1]), "levels": list(dict.fromkeys(down))},
        "panels": [{"title": panel, "rows": rows} for panel, rows in panels.items()],
        "trials": _places(figure, trials),
    }


def _places(figure: Json, trials: Mapping[str, TableRow]) -> list[int]:
    """Return the places of a figure's trials in the table of trials."""
    return [trials[one].place for one in figure["ids"] if one in trials]


def _axis(figure: Json, name: str, column: str) -> Json:
    """Return an axis's recorded title (default: the column's name) and whether the axis is logarithmic."""
    recorded = (figure.get("axes") or {}).get(name) or {}
    return {"title": recorded.get("title") or _words(column), "log": bool(recorded.get("log"))}


def _read_columns(file: Path) -> Columns:
    """Return the columns of a CSV file by name, or an empty mapping if the file has no rows."""
    with file.open(newline="", encoding="utf-8", errors="replace") as lines:
        reader = csv.reader(lines)
        names = next(reader, [])
        columns: list[list[str]] = [[] for _ in names]
        while rows := list(islice(reader, ROWS_AT_ONCE)):
            for column, texts in zip(columns, zip(*rows, strict=False), strict=False):
                column.extend(texts)
    return {name: column for name, column in zip(names, columns, strict=True) if column}


def _form_of_layout(layout: Json, columns: Columns) -> CurveForm | None:
    """Return how figures.json describes the curves; None if it has no curves, or if a column is missing.

    If the PDF has a panel for each trial, the page shows these trials as curves of one panel, for comparison.
    A figure of kind `segments` keeps a panel for each trial, because its curves already stand for the
    segments, ACKs and other events of one trial.
    """
    names = {name: str(layout.get(name) or "") for name in ("kind", "x", "y", "low", "high", "curve")}
    facets = tuple(str(one) for one in layout.get("facets") or [])
    names["y"] = names["y"] or names["high"]
    if "trial" in facets and names["kind"] != "segments":
        names["curve"], facets = "", tuple(one for one in facets if one != "trial")
    form = CurveForm(**names, facets=facets)
    used = {form.x, form.y, form.curve or form.x, *facets}
    return form if form.kind in KINDS and used <= set(columns) else None


def _panels(form: CurveForm, columns: Columns) -> list[str]:
    """Return each row's panel title: the values of the row's facets, and for a quantity also its unit."""
    units = columns.get("unit") or [""] * len(columns[form.x])
    rows = list(zip(units, *(columns[one] for one in form.facets), strict=True))
    titles = {row: _panel_title(form, *row) for row in set(rows)}
    return [titles[row] for row in rows]


def _panel_title(form: CurveForm, unit: str, *values: str) -> str:
    texts = dict(zip(form.facets, values, strict=True))
    if "quantity" in texts:
        texts["quantity"] = f"{_words(texts['quantity'])} ({unit})".removesuffix(" ()")
    return " · ".join(texts.values())


def _labels(columns: Columns, trials: Mapping[str, TableRow]) -> list[str]:
    """Return the label of each row's curve: levels that distinguish its trial, and its flow if needed."""
    ids = columns.get("trial", [""] * len(next(iter(columns.values()))))
    flows = columns.get("flow", [""] * len(ids))
    shown = [trials[one].texts for one in dict.fromkeys(ids) if one in trials]
    varying = [place for place, texts in enumerate(zip(*shown, strict=True)) if len(set(texts)) > 1]
    several = len(set(flows) - {"", "queue"}) > 1
    pairs = list(zip(ids, flows, strict=True))
    names = {}
    for trial, flow in set(pairs):
        texts = [trials[trial].texts[place] for place in varying] if trial in trials else [trial]
        names[trial, flow] = (
            ", ".join(filter(None, [*texts, flow if several or not varying else ""])) or trial
        )
    return [names[pair] for pair in pairs]


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
    """Return the least of the numbers, and their differences from it as 32-bit floats in Base64.

    Rounding moves a value by at most a 16-millionth of the range of all values, much less than a pixel.
    """
    base = min((one for one in values if not math.isnan(one)), default=0.0)
    floats = array("f", (one - base for one in values))
    if sys.byteorder == "big":
        floats.byteswap()
    return {"base": base, "floats": b64encode(floats.tobytes()).decode()}


def _number(text: str) -> float:
    """Return the number in a text, or NaN if the text (such as NA) is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _words(name: str) -> str:
    text = name.replace("_", " ").replace("-", " ")
    return NAMES.get(name) or text[:1].upper() + text[1:]
