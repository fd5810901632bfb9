"""Compose the content of a campaign's report as one JSON value, from which Typst templates make the PDF."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from statistics import mean, median
from typing import Any

from samovar import __version__
from samovar.campaign.collection import sha256_of
from samovar.errors import ReportError
from samovar.report.campaign_data import Campaign, Json, read_json
from samovar.report.number_format import quantity, span
from samovar.report.overview import omissions, overview, path_settings, testbed_text, treatments
from samovar.report.path_drawing import draw_path
from samovar.report.provenance import commands, hosts, provenance, software
from samovar.report.scorecard import REPRODUCED, VERDICTS, Result, treatment_text
from samovar.units import counted

OUTPUT_DEFAULTS: Json = {
    "title": "",
    "caption": "",
    "file": "",
    "data": "",
    "width_in": 6.3,
    "rows": [],
    "columns": [],
    "ids": [],
    "reason": "",
}
LINES_ON_COVER = 12
COMPARED_METRICS = ("throughput_bps", "goodput_bps", "rtt_median_ms", "loss_share")
"""The metrics in the table that compares testbeds. A trial's value is the mean over its flows."""
COMPARISON_CAPTION = (
    "The same treatments on each {kind}: median over trials, smallest and largest value, number of trials."
)
SUMMARY_FILES = {
    "metrics.csv": "every metric of every trial and flow",
    "summary.csv": "every metric of every treatment, over replicates",
    "flows.csv": "every metric of every flow and treatment, over replicates",
}


def compose(campaign: Campaign, results: Sequence[Result]) -> Json:
    """Return the content of the report except the list of data files.

    Raises ReportError if a file of the analysis is missing.
    """
    return {
        **overview(campaign),
        "samovar": __version__,
        **path_section([campaign]),
        "treatments": treatments(campaign),
        "scorecard": scorecard_section(results, campaign.part),
        "figures": _figures(campaign),
        "tables": _tables(campaign),
        "omissions": omissions(campaign),
        "provenance": provenance(campaign),
        "software": software(campaign.analysis),
        "regenerate": [campaign.analyse_command, f"fab report {campaign.label}"],
        "note": f"\n{campaign.part}\n" if campaign.part else "",
        "commands": commands(campaign),
    }


def path_section(campaigns: Sequence[Campaign]) -> Json:
    """Return a text about the testbeds, the drawing of a path with label and caption, and the hosts.

    All campaigns are on the same testbeds. If there are several testbeds, the drawing shows the first one.
    """
    names, testbed = list(campaigns[0].testbeds), campaigns[0].testbed
    bottleneck = testbed.get("bottleneck") or {}
    where = f"link {bottleneck['link']}" if "link" in bottleneck else ""
    if "router" in bottleneck:
        where = f"{bottleneck['router']}, egress of {bottleneck['to']}"
    settings = " · ".join(path_settings(trial for one in campaigns for trial in one.plan.trials))
    drawn = f"The path of testbed {names[0]}" if len(names) > 1 else "The path"
    return {
        "testbed": testbed_text(campaigns),
        "path": draw_path(testbed),
        "hosts": hosts(campaigns),
        "callout": f"queue at {where}: {settings}" if settings else f"queue at {where}",
        "path_caption": f"{drawn}: hosts, links with their interfaces and addresses"
        + (f", and the queue of the bottleneck at {where}." if where else "."),
    }


def scorecard_section(results: Sequence[Result], part: str = "") -> Json:
    """Return the lines of the scorecard, the number of lines with each verdict, a headline, and brief lines.

    The cover shows the brief lines: all lines, or none if they do not fit. `part`, which says how much of the
    plan is shown, is added to the headline unless it is empty.
    """
    counts = {word: sum(one.verdict == word for one in results) for word in VERDICTS}
    lines = [_scorecard_line(one) for one in results]
    return {
        "lines": lines,
        "brief": lines if len(lines) <= LINES_ON_COVER else [],
        "counts": [{"verdict": word, "amount": amount} for word, amount in counts.items() if amount],
        "headline": f"{counts[REPRODUCED]} of {len(results)} expectations reproduced"
        + (f": {part}" if part else ""),
    }


def _scorecard_line(result: Result) -> Json:
    """Return a line of the scorecard for the template: metric and treatments, value, sample size."""
    value, _, sample = result.observed.partition(" (")
    kinds = (("part", result.part), ("flow", result.flow), ("from", result.source))
    part, flow, source = (f"{kind} {name}" if name else "" for kind, name in kinds)
    about = "; ".join(filter(None, [result.metric, part, flow, treatment_text(result.where), source]))
    texts = {"value": value, "sample": sample.removesuffix(")"), "glance": value.partition(" [")[0]}
    return {**vars(result), "about": about, **texts}


def _figures(campaign: Campaign) -> list[Json]:
    """Return the figures in the plan's order.

    Raises ReportError if a planned figure or its file is missing.
    """
    found = _outputs(campaign, "figure")
    for file in (campaign.bundle / str(figure["file"]) for figure in found if not figure["reason"]):
        if not file.is_file():
            raise ReportError(f"{file}: no such figure; run `{campaign.analyse_command}` again")
    return found


def _tables(campaign: Campaign) -> list[Json]:
    """Return the tables in the plan's order. Raises ReportError if a planned table is missing."""
    found = [table for table in _outputs(campaign, "table") if table["columns"] or table["reason"]]
    for table in found:
        table["rows"] = [["" if cell is None else str(cell) for cell in row] for row in table["rows"]]
    return found + [OUTPUT_DEFAULTS | table for table in compare_places(campaign)]


def _outputs(campaign: Campaign, kind: str) -> list[Json]:
    """Return the entries of figures.json or tables.json in the plan's order.

    Outputs that could not be made are included with the reason. Raises ReportError if a planned output is
    missing without a reason.
    """
    found = read_json(campaign.bundle / f"{kind}s.json", list)
    plan = campaign.plan
    planned = plan.figures if kind == "figure" else plan.tables
    others = output_names(plan.tables, "table") if kind == "figure" else output_names(plan.figures, "figure")
    names = tuple(str(one[kind]) for one in planned)
    unmade = campaign.analysis.get("figures_left_out") or []
    found += [one for one in unmade if str(one["name"]).startswith(names) and one["name"] not in others]
    for name in names:
        if not any(str(one["name"]).startswith(name) for one in found):
            command = f"run `{campaign.analyse_command}` to make it"
            raise ReportError(f"{campaign.bundle}: no {kind} {name}; {command}")
    for one in found:
        trials = one.get("trials")
        one["ids"] = trials if isinstance(trials, list) else []
        amount = len(trials) if isinstance(trials, list) else trials
        states = map(campaign.trial_state, one["ids"])
        one["trials"] = "" if amount is None else trials_shown(int(amount), states)
    places = {name: place for place, name in enumerate(output_names(planned, kind))}
    found.sort(key=lambda one: places.get(str(one["name"]), len(places)))
    return [OUTPUT_DEFAULTS | one for one in found]


def trials_shown(number: int, states: Iterable[str]) -> str:
    """Return the number of trials that a figure or table shows as a text, such as `4 trials (2 suspect)`."""
    suspect = sum(state == "suspect" for state in states)
    return counted(number, "trial") + (f" ({suspect} suspect)" if suspect else "")


def output_names(planned: Iterable[Mapping[str, Any]], kind: str) -> list[str]:
    """Return the names of the files of planned outputs.

    If the options give several outputs the same name, the later ones end in -2, -3 and so on. entry_names()
    of the R package makes the same names.
    """
    names: list[str] = []
    for one in planned:
        plain = _plain_name(one, kind)
        candidates = chain([plain], (f"{plain}-{number}" for number in count(2)))
        names.append(next(name for name in candidates if name not in names))
    return names


def _plain_name(planned: Mapping[str, Any], kind: str) -> str:
    options = (value for key, value in planned.items() if key not in (kind, "title", "published"))
    lists = (value if isinstance(value, list | tuple) else [value] for value in options)
    texts = (str(one) for value in lists for one in value)
    return re.sub("[^A-Za-z0-9.]+", "-", "-".join([str(planned[kind]), *texts]))


def compare_places(campaign: Campaign) -> list[Json]:
    """Return tables that compare a campaign's testbeds, and the nodes that controlled its trials.

    A table that would have only one testbed or node is left out.
    """
    testbeds = {id_: str(one.get("testbed") or "") for id_, one in campaign.manifests.items()}
    trials = campaign.state.trials
    nodes = {id_: trials[id_].node if id_ in trials else "" for id_ in campaign.manifests}
    file = campaign.folder / "tables" / "metrics.csv"
    found = []
    for kind, recorded in (("testbed", testbeds), ("node", nodes)):
        places = {id_: name for id_, name in recorded.items() if name}
        names = sorted(set(places.values()))
        rows = list(comparison_rows(file, places)) if len(names) > 1 and file.is_file() else []
        columns = [{"name": name, "align": "left"} for name in ("treatment", "metric", *names)]
        table = {"name": f"{kind}s", "title": f"{kind.capitalize()}s compared", "trials": ""}
        caption = COMPARISON_CAPTION.format(kind=kind)
        found += [{**table, "caption": caption, "columns": columns, "rows": rows}] if rows else []
    return found


def comparison_rows(file: Path, places: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield a row per treatment and metric in metrics.csv, with a cell for each testbed or node.

    `places` maps trials to testbeds or nodes. Treatments that ran in only one place are left out.
    """
    flows: dict[tuple[str, str, str], dict[str, dict[str, list[float]]]] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        names = list(reader.fieldnames or ())
        factors = names[names.index("part") + 1 : names.index("replicate")]
        for row in reader:
            trial, metric = row["trial"], row["metric"]
            if metric in COMPARED_METRICS and trial in places and row["value"] not in ("", "NA"):
                levels = ["" if row["part"] == "main" else row["part"], *(row[name] for name in factors)]
                key = (" ".join(filter(None, levels)) or "all", metric, row["unit"])
                trials = flows.setdefault(key, {}).setdefault(places[trial], {})
                trials.setdefault(trial, []).append(float(row["value"]))
    for (treatment, metric, unit), by_place in flows.items():
        samples = {name: list(map(mean, trials.values())) for name, trials in by_place.items()}
        if len(samples) > 1:
            cells = [_measured_text(samples.get(name, ()), unit) for name in sorted(set(places.values()))]
            yield [treatment, metric, *cells]


def _measured_text(values: Sequence[float], unit: str) -> str:
    if not values:
        return ""
    return f"{quantity(median(values), unit)} [{span(min(values), max(values), unit)}] ({len(values)})"


def data_files(bundle: Path, outputs: list[Json]) -> list[Json]:
    """Return a row per CSV file of the bundle: content, number of rows, first digits of its SHA-256."""
    titles: dict[str, dict[str, None]] = {}
    for one in outputs:
        titles.setdefault(one["data"], {})[str(one["title"] or one["name"])] = None
    rows = []
    for file in sorted((bundle / "data").rglob("*.csv")):
        with file.open(newline="", encoding="utf-8", errors="replace") as lines:
            number = sum(1 for _ in csv.reader(lines)) - 1
        name = file.relative_to(bundle).as_posix()
        content = "; ".join(titles.get(name, {})) or SUMMARY_FILES.get(file.name, "")
        row = {"file": name, "holds": content, "rows": max(0, number)}
        rows.append({**row, "sha256": sha256_of(file)[:12]})
    return rows
