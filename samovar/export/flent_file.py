"""Write a data file of Flent 2 for each trial, from the exported tables of series and metrics.

The files have version 4 of Flent's format. Flent can only plot results of its own tests, so each trial is
presented as a result of its test `tcp_nup`. TCP flows become numbered uploads of `tcp_nup`; Flent itself
computes sums and averages over the uploads.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from samovar.events import Emit, Event

PING = "Ping (ms) ICMP"
SOCKET_KEYS = {"cwnd": "tcp_cwnd", "srtt": "tcp_rtt"}
"""Maps quantities to Flent's keys for the raw values of an upload; Flent's plots of sockets read these
keys."""
FURTHEST_S = 5.0
"""The longest time to the next sample over which values are interpolated; Flent calls it `max_distance`."""
TCP_METRICS = {"goodput_bps", "rwnd_max_bytes"}
"""Metrics that only TCP flows have. A flow that has one of these metrics is a TCP flow."""
Points = list[tuple[float, float, float, float]]
"""The samples of one series, each with the seconds since the start of traffic, and the smallest value, the
median and the largest value at this time."""


def write_flent_files(folder: Path, campaign: Path, about: Mapping[str, str], emit: Emit) -> None:
    """Write a data file for each trial in the tables of a folder.

    A trial is left out with a warning if none of its flows has a throughput series.
    """
    metrics: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in _rows(folder / "metrics.csv"):
        metrics[row["trial"]][row["flow"]][row["metric"]] = float(row["value"])
    written = set()
    for done, (trial, rows) in enumerate(groupby(_rows(folder / "series.csv"), itemgetter("trial")), 1):
        manifest = json.loads((campaign / "trials" / trial / "manifest.json").read_bytes())
        data = flent_data(manifest, rows, metrics[trial], about)
        if data["x_values"]:
            text = json.dumps(data, ensure_ascii=False, allow_nan=False)
            (folder / f"{trial}.flent.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
            written.add(trial)
        emit(Event("exported", {"file": trial, "done": done, "of": len(metrics)}))
    for trial in (one for one in metrics if one not in written):
        emit(Event("warning", {"text": f"{trial}: not exported: no flow has a throughput series"}))


def _rows(table: Path) -> Iterator[dict[str, str]]:
    if table.exists():  # a table without rows has no file
        with table.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)


def flent_data(
    manifest: Mapping[str, Any],
    series: Iterable[Mapping[str, str]],
    metrics: Mapping[str, Mapping[str, float]],
    about: Mapping[str, str],
) -> dict[str, Any]:
    """Return the content of a trial's data file.

    `series` has the trial's rows of the table `series`; `metrics` has the trial's metrics by flow.
    """
    flows, start_s = manifest["resolved"]["flows"], round(manifest["t_start_s"], 6)
    samples: dict[tuple[str, str, str], Points] = defaultdict(list)
    for row in series:
        point = (float(row["t_s"]), float(row["low"]), float(row["mid"]), float(row["high"]))
        samples[row["flow"], row["quantity"], row["unit"]].append(point)
    grid = sorted({t_s for key, points in samples.items() if key[1] == "throughput" for t_s, *_ in points})
    names = flow_names(flows, metrics)
    # Query times belong to all flows of an entry `incast` together. They become series of its first flow.
    queries = {flow.get("group"): names[flow["label"]] for flow in reversed(flows)}
    results: dict[str, list[float | None]] = {}
    raw: dict[str, list[dict[str, float]]] = defaultdict(list)
    meta: dict[str, dict[str, Any]] = {}
    for (flow, quantity, unit), points in samples.items():
        name = names.get(flow) or queries.get(flow, "Router")
        if quantity != ("rtt" if name.startswith(PING) else "throughput"):  # not the flow's main quantity
            name += f"::{SOCKET_KEYS.get(quantity, quantity)}"
        also = [PING] if quantity == "rtt" and PING not in {*names.values(), *results} else []
        for one in (name, *also):
            results[one] = on_grid(points, grid)
            raw[one] += [{"t": start_s + t, "val": mid, "min": lo, "max": hi} for t, lo, mid, hi in points]
            meta[one] = {"UNITS": unit.replace("Mbit/s", "Mbits/s"), "FLOW": flow, "QUANTITY": quantity}
        if quantity == "throughput":
            meta[name]["METRICS"] = metrics[flow]
        if quantity in SOCKET_KEYS:
            raw[names[flow]] += [{"t": start_s + t, SOCKET_KEYS[quantity]: mid} for t, _, mid, _ in points]
    uploads = sum(name.startswith("TCP") for name in names.values())
    started = datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    treatment = ", ".join(f"{factor} {level}" for factor, level in manifest["treatment"].items())
    return {
        "version": 4,
        "metadata": {
            "NAME": "tcp_nup",
            "TITLE": manifest["id"],
            "NOTE": f"{about['title']}: {treatment}; {manifest['verdict']}",
            "TIME": started,
            "T0": started,
            "HOST": flows[0]["to_address"],
            "HOSTS": sorted({flow["to_address"] for flow in flows}),
            "LOCAL_HOST": flows[0]["from"],
            "IP_VERSION": 6 if ":" in flows[0]["to_address"] else 4,
            "LENGTH": math.ceil(manifest["resolved"]["duration_s"]),
            "STEP_SIZE": round(min((b - a for a, b in pairwise(grid)), default=1.0), 6),
            "TEST_PARAMETERS": {"upload_streams": str(uploads)},
            "BATCH_NAME": about["campaign"],
            "DATA_FILENAME": f"{manifest['id']}.flent.gz",
            "SERIES_META": meta,
            "SAMOVAR": {**about, **{key: manifest[key] for key in ("id", "part", "treatment", "replicate")}},
        },
        "x_values": grid,
        "results": results,
        "raw_values": raw,
    }


def flow_names(
    flows: Sequence[Mapping[str, Any]], metrics: Mapping[str, Mapping[str, float]]
) -> dict[str, str]:
    """Return the name of each flow in Flent's files, such as `TCP upload::1`.

    A flow whose generator is `ping` is exported as a ping series. Any other flow is exported as TCP if it has
    a metric of TCP_METRICS, otherwise as UDP.
    """
    numbers = {kind: count(1) for kind in ("TCP", "UDP", "ping")}
    names = {}
    for flow in flows:
        measured = metrics.get(flow["label"], {}).keys()
        kind = "ping" if flow["generator"] == "ping" else "TCP" if TCP_METRICS & measured else "UDP"
        number = next(numbers[kind])
        ping = PING if number == 1 else f"{PING}::{number}"
        names[flow["label"]] = ping if kind == "ping" else f"{kind} upload::{number}"
    return names


def on_grid(points: Points, grid: Sequence[float]) -> list[float | None]:
    """Return the values at the times of a grid, interpolated linearly between samples as in Flent.

    The value is None before the first sample, after the last one, and where the next sample is more than
    FURTHEST_S away.
    """
    times_s = [point[0] for point in points]

    def value(t_s: float) -> float | None:
        i = bisect_left(times_s, t_s)
        if i == len(points) or times_s[i] - t_s > FURTHEST_S or (i == 0 and times_s[0] > t_s):
            return None
        (after_s, _, after, _), (before_s, _, before, _) = points[i], points[max(i - 1, 0)]
        if after_s == t_s:
            return after
        return before + (after - before) * (t_s - before_s) / (after_s - before_s)

    return [value(t_s) for t_s in grid]
