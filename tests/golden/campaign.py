"""Golden outputs for the campaign in tests/campaigns: status, verification, analysis and report of recorded trials.

Measured values are compared with the tables and the bundle that the recording version left in the campaign.
`campaign/values.json` has all other output for programs, and `campaign/text.txt` has the output for people.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.goldens import HERE, ROOT, Answer, ask, make_checkout, transcript

ARCHIVE = ROOT / "tests" / "campaigns" / "v0.1.tar.xz"
GOLDEN = HERE / "campaign"
NAME = "full-20261122-224346"
FOLDER = f"results/recorded/{NAME}"
EXPERIMENT = "experiments/recorded.yaml"
MEASURED = ("tables", "bundle")
RELATIVE_ERROR = 1e-9
"""How much a number in a table may differ from the recorded one."""
EDITS = (
    ("replicates: 2", "replicates: 3"),
    ("rate: 2Mbit", "rate: 3Mbit"),
    ("include: [{cc: cubic, rwnd: 400KB}]", "include: [{cc: cdg, rwnd: 400KB}]"),
)
"""Edits of the experiment; after each, `fab plan` compares the edited experiment with the campaign."""
DAMAGED = f"{FOLDER}/trials/mixed-cubic-r1-dcfcff/facts/rtr-set.json"
COMMANDS = (
    ["fab", "status"],
    ["fab", "status", "--all"],
    ["fab", "status", "--json"],
    ["fab", "verify"],
    ["fab", "report"],
    ["fab", "plan", "recorded"],
    ["fab", "plan", "recorded", "--json"],
    *(
        step
        for old, new in EDITS
        for step in (
            ["edit", EXPERIMENT, old, new],
            ["fab", "plan", "recorded"],
            ["fab", "plan", "recorded", "--json"],
            ["undo"],
        )
    ),
    ["edit", DAMAGED, "{", "{ "],
    ["fab", "verify"],
    ["undo"],
    ["fab", "analyse"],
    ["fab", "report"],
    ["fab", "verify"],
)
OF_A_PLAN = ("campaign", "cost", "left")
"""Keys of `fab plan --json` that depend on the campaign."""


@dataclass(frozen=True)
class Made:
    """The copy of the campaign after the commands, the recorded campaign, and the outputs to compare with golden files."""

    campaign: Path
    recorded: Path
    values: str
    text: str


def unpack(folder: Path) -> Path:
    """Unpack the recorded campaign; return its folder."""
    folder.mkdir()
    subprocess.run(["tar", "-xJf", ARCHIVE, "-C", folder], check=True)
    return folder / NAME


def make_campaign(folder: Path) -> Made:
    """Run the commands on a copy of the recorded campaign without its tables and its bundle."""
    recorded = unpack(folder / "recorded")
    (folder / "checkout").mkdir()
    checkout = make_checkout(folder / "checkout")
    for name in (".rlib", ".stamps"):
        (checkout / name).symlink_to(ROOT / name)
    campaign = checkout / FOLDER
    shutil.copytree(recorded, campaign, ignore=lambda at, _: MEASURED if Path(at) == recorded else ())
    shutil.copy(recorded / "experiment.yaml", checkout / EXPERIMENT)
    (campaign.parent / "latest").symlink_to(NAME)
    pairs = list(zip([list(command) for command in COMMANDS], ask(checkout, COMMANDS), strict=True))
    values = json.dumps(values_of(campaign, pairs), indent=1, ensure_ascii=False) + "\n"
    return Made(campaign, recorded, values, text_of(campaign, pairs))


def values_of(campaign: Path, pairs: list[tuple[list[str], Answer]]) -> dict[str, Any]:
    """Return the output for programs: states of trials, comparisons of plans, exit codes, the number of pages."""
    printed = [json.loads(answer["stdout"]) for request, answer in pairs if request[-1] == "--json"]
    status, *plans = printed
    pages = re.search(r"^Pages: +(\d+)", pdf(campaign, "pdfinfo"), re.MULTILINE)
    return {
        "exit codes": [
            [" ".join(request), answer["code"]] for request, answer in pairs if request[0] == "fab"
        ],
        "status": status,
        "plans": [plan_values(plan) for plan in plans],
        "bundle": sorted(str(path.relative_to(campaign)) for path in (campaign / "bundle").rglob("*.*")),
        "pages": int(pages[1]) if pages else None,
    }


def plan_values(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a plan compares with the campaign, without changed recipes, since a new comment also changes a recipe."""
    campaign = {key: value for key, value in plan["campaign"].items() if key != "recipes_changed"}
    return {**chosen(plan, OF_A_PLAN), "campaign": campaign}


def text_of(campaign: Path, pairs: list[tuple[list[str], Answer]]) -> str:
    """Return the output for people: the commands' output, and the text of the report."""
    text = transcript([(request, answer) for request, answer in pairs if request[-1] != "--json"])
    readme = (campaign / "bundle" / "README.txt").read_text()
    report = pdf(campaign, "pdftotext", "-")
    text = re.sub(r"(last event \S+), .* ago", r"\1, TIME ago", text)
    text = re.sub(r"in \d+\.\d s\)", "in TIME)", text)
    text = re.sub(r"(\d+ files), [\d.]+[kM]?B", r"\1, SIZE", text)
    text = re.sub(r"(recipes changed since then: ).*?;", r"\1RECIPES;", text)
    return f"{text}\n==== README.txt\n{readme}\n==== recorded.pdf\n{report}"


def pdf(campaign: Path, program: str, *more: str) -> str:
    """Return what a program of poppler prints about the report."""
    done = subprocess.run(
        [program, campaign / "bundle" / "recorded.pdf", *more], capture_output=True, check=True, timeout=60
    )
    return done.stdout.decode()


def table_differences(expected: Path, found: Path) -> Iterator[str]:
    """Yield the rows in which two tables differ. Texts must be equal; numbers may differ by RELATIVE_ERROR.

    Tables `throughput-*`, rows of RATES and columns INTERVALS are not compared, because their values have changed.
    Rows of metrics that the expected table lacks are left out, because the metrics were added after it was made.
    The order of rows is ignored, because the rows of figures have been reordered.
    """
    if expected.name.startswith("throughput-"):
        return
    rows, others = (
        [
            row
            for row in columns_since(csv.reader(path.read_text().splitlines()))
            if not RATES.intersection(row)
        ]
        for path in (expected, found)
    )
    if "metric" in rows[0]:
        column = rows[0].index("metric")
        known = {row[column] for row in rows}
        others = [row for row in others if row[column : column + 1] != [] and row[column] in known]
    rows, others = ([table[0], *sorted(table[1:], key=_texts_then_numbers)] for table in (rows, others))
    if len(rows) != len(others):
        yield f"{len(rows)} rows, found {len(others)}"
    for number, (row, other) in enumerate(zip(rows, others, strict=False), 1):
        if len(row) != len(other) or not all(map(equal, row, other)):
            yield f"row {number}: {row}, found {other}"


def _texts_then_numbers(row: list[str]) -> tuple[list[str], list[float]]:
    numbers = [cell for cell in row if re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", cell)]
    return [cell for cell in row if cell not in numbers], list(map(float, numbers))


RATES = {
    "throughput",
    "throughput_bps",
    "throughput_link_bps",
    "throughput_payload_bps",
    "throughput_total_bps",
    "goodput_bps",
    "link_utilisation_share",
    "domination_share",
    "fairness_jain",
}
"""Metrics and series that were taken over the whole life of a flow when the campaign was recorded, and are now taken over
the time for which it sends. Their values are in campaign/text.txt."""

INTERVALS = ("mean_lo", "mean_hi", "seed", "confidence")
"""Columns of tables that have changed since the campaign was recorded (docs/decisions/0034-intervals.md)."""


def columns_since(rows: Iterable[list[str]]) -> list[list[str]]:
    """Return the rows of a table without the columns INTERVALS."""
    head, *rest = rows
    left = [index for index, name in enumerate(head) if name not in INTERVALS]
    return [[row[index] for index in left] for row in (head, *rest)]


def equal(cell: str, other: str) -> bool:
    """Return whether two cells of a table are equal texts, or numbers that differ by at most RELATIVE_ERROR."""
    if cell == other:
        return True
    try:
        return math.isclose(float(cell), float(other), rel_tol=RELATIVE_ERROR)
    except ValueError:
        return False


OF_AN_EXPECTATION = ("metric", "part", "flow", "where", "verdict", "source")
OF_AN_OUTPUT = ("name", "file", "width_in", "height_in", "data", "trials")
OF_THE_ANALYSIS = ("trials_used", "trials_left_out")


def outputs(campaign: Path) -> dict[str, Any]:
    """Return the scorecard, the figures and the tables of a bundle, without texts for people."""
    bundle = campaign / "bundle"
    lists = {
        "scorecard.json": OF_AN_EXPECTATION,
        "figures.json": OF_AN_OUTPUT,
        "tables.json": OF_AN_OUTPUT,
    }
    found: dict[str, Any] = {
        name: [chosen(one, keys) for one in json.loads((bundle / name).read_text())]
        for name, keys in lists.items()
    }
    analysis = json.loads((bundle / "analysis.json").read_text())
    left_out = [one["name"] for one in analysis["figures_left_out"]]
    return {**found, "analysis.json": chosen(analysis, OF_THE_ANALYSIS), "figures left out": left_out}


def chosen(tree: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the entries of a mapping that have one of these keys."""
    return {key: tree[key] for key in keys if key in tree}
