"""Reports as pages for browsers, with the content of their PDFs; an index of campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from samovar.report.campaign_data import Json
from samovar.report.page.campaign_index import PAGE as PAGE
from samovar.report.page.campaign_index import write_index as write_index
from samovar.report.page.figure_curves import TableRow, read_curves
from samovar.report.page.html_page import data_url, packed, render
from samovar.report.page.trial_table import ListedCampaign as ListedCampaign
from samovar.report.page.trial_table import trial_details, trial_table
from samovar.report.typeset import draw_pictures

SCRIPTS = ("uPlot", "elements.js", "figures.js", "trials.js")


def make_page(document: Json, pdf: Path, campaigns: Sequence[ListedCampaign], template: str) -> bytes:
    """Return the page of a report: the document that the PDF shows, its figures as curves, and the trials.

    A figure is about the trials of the campaign that it names with the key `of`. Otherwise it is about those
    of all campaigns, whose ids follow the name of their campaign. The same campaigns in the same folders
    always give the same bytes. Raises ReportError if a picture cannot be drawn.
    """
    folder = pdf.parent
    table = trial_table(campaigns, folder)
    known: dict[str, dict[str, TableRow]] = {"": {}}
    for place, row in enumerate(table["rows"]):
        texts = [row["campaign"], row["part"], *row["levels"], f"replicate {row['replicate']}"]
        found = TableRow(place, texts)
        known[""][f"{row['campaign']}:{row['id']}"] = found
        known.setdefault(row["campaign"], {})[row["id"]] = found
    testbeds = document.get("testbeds") or ([document] if "path" in document else [])
    pictures = {name: data_url(one) for name, one in draw_pictures(document, testbeds, folder).items()}
    curves = {
        one["file"]: read_curves(one, folder, known[one.get("of", "")])
        for one in document["figures"]
        if one["file"]
    }
    drawn = {
        "pictures": pictures,
        "curves": {file: one for file, one in curves.items() if one},
        "details": packed(trial_details(campaigns)),
    }
    return render(template, {**document, "pdf": pdf.name, "trial_table": table}, SCRIPTS, drawn)
