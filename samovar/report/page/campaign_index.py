"""Make an index of a project's campaigns as a page: states of trials, scorecards, links to their reports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from samovar.atomic_files import write_whole
from samovar.campaign import read_plan
from samovar.campaign.journal import fold, read_journal
from samovar.errors import SamovarError
from samovar.report.campaign_data import NOT_RUN, Json, read_json
from samovar.report.number_format import moment
from samovar.report.page.html_page import render
from samovar.report.scorecard import VERDICTS

INDEX, PAGE = "index.html", "report.html"


def write_index(results: Path, campaigns: Sequence[Path], others: Iterable[Path]) -> tuple[Path, list[str]]:
    """Write index.html into a results folder; return its path, and a line for each unreadable campaign.

    `campaigns` are folders in the order of the index, `others` those of studies and comparisons. All links
    are relative, so that the results folder can be moved.
    """
    rows: list[Json] = []
    unread: list[str] = []
    for folder in campaigns:
        try:
            rows.append(_row(folder, results))
        except (SamovarError, OSError) as error:
            unread.append(f"{folder}: {error}")
    linked = [{"name": _link(one, results), "reports": _reports(one, results)} for one in others]
    values = {"rows": rows, "others": linked, "unread": unread, "folder": results.resolve().parent.name}
    write_whole(results / INDEX, render("index.html.j2", values, ("index.js",)))
    return results / INDEX, unread


def _link(path: Path, results: Path) -> str:
    """Return the path of a file or folder relative to the results folder."""
    return Path(os.path.relpath(path.resolve(), results.resolve())).as_posix()


def _row(folder: Path, results: Path) -> Json:
    """Return a campaign's row."""
    plan, journal = read_plan(folder), read_journal(folder / "journal.jsonl")
    state = fold(journal)
    states = Counter(state.trials[one].result if one in state.trials else NOT_RUN for one in plan.ids)
    bundle = folder / "bundle"
    verdicts = Counter(
        str(one.get("verdict", "")) for one in read_json(bundle / "scorecard.json", list, optional=True)
    )
    return {
        "experiment": plan.experiment,
        "campaign": folder.name,
        "title": plan.title,
        "testbed": plan.testbed,
        "when": moment(journal[0].t_s) if journal else "",
        "trials": len(plan.ids),
        "states": [{"state": word, "amount": amount} for word, amount in states.items()],
        "verdicts": [{"verdict": word, "amount": verdicts[word]} for word in VERDICTS if verdicts[word]],
        "folder": _link(folder, results),
        "reports": _reports(bundle, results),
    }


def _reports(folder: Path, results: Path) -> list[Json]:
    """Return links to the report's page and to the PDFs that exist in a folder."""
    files = [("page", folder / PAGE), *(("PDF", pdf) for pdf in sorted(folder.glob("*.pdf")))]
    return [{"name": name, "link": _link(file, results)} for name, file in files if file.is_file()]
