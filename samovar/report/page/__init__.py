"""The report of a campaign as a page for browsers, with the content of the PDF; an index of campaigns."""

from __future__ import annotations

from samovar.report.campaign_data import Campaign, Json
from samovar.report.page.campaign_index import PAGE as PAGE
from samovar.report.page.campaign_index import write_index as write_index
from samovar.report.page.figure_curves import TableRow, read_curves
from samovar.report.page.html_page import data_url, packed, render
from samovar.report.page.trial_table import trial_details, trial_table
from samovar.report.typeset import draw_pictures

SCRIPTS = ("uPlot", "elements.js", "figures.js", "trials.js")


def make_page(campaign: Campaign, document: Json) -> bytes:
    """Return the page of a report: the document that the PDF shows, its figures as curves, and the trials.

    The same campaign always gives the same bytes. Raises ReportError if a picture cannot be drawn.
    """
    table = trial_table(campaign)
    known = {
        row["id"]: TableRow(place, [row["part"], *row["levels"], f"replicate {row['replicate']}"])
        for place, row in enumerate(table["rows"])
    }
    pictures = {name: data_url(one) for name, one in draw_pictures(document, campaign.bundle).items()}
    curves = {str(one["name"]): read_curves(one, campaign.bundle, known) for one in document["figures"]}
    values = {
        **document,
        "pdf": f"{campaign.plan.experiment}.pdf",
        "trial_table": table,
    }
    drawn = {
        "pictures": pictures,
        "curves": {name: one for name, one in curves.items() if one},
        "details": packed(trial_details(campaign)),
    }
    return render("report.html.j2", values, SCRIPTS, drawn)
