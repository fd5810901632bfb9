"""The comparison of two campaigns: changes, limits, PDF, page and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from samovar.atomic_files import write_whole
from samovar.events import Emit
from samovar.report.comparison.changes import Limit as Limit
from samovar.report.comparison.changes import parse_limit as parse_limit
from samovar.report.comparison.compare import CampaignComparison as CampaignComparison
from samovar.report.comparison.compare import Side as Side
from samovar.report.comparison.compare import compare_campaigns
from samovar.report.comparison.compare import split_by_change as split_by_change
from samovar.report.comparison.comparison_document import compose_comparison
from samovar.report.comparison.junit import junit_xml
from samovar.report.page import PAGE, ListedCampaign, make_page
from samovar.report.typeset import typeset

COMPARISON_PDF, JUNIT = "comparison.pdf", "junit.xml"
TEMPLATE, PAGE_TEMPLATE = "comparison.typ", "comparison.html.j2"


def make_comparison(
    sides: tuple[Side, Side], by: Sequence[str], limits: Sequence[Limit], root: Path, to: Path, emit: Emit
) -> CampaignComparison:
    """Compare two campaigns; write PDF, page, junit.xml, figures and changes.csv into a folder.

    Raises AnalysisError if the campaigns have nothing in common, ReportError for a limit on a metric that
    was not measured or if the PDF cannot be made.
    """
    comparison = compare_campaigns(sides, by, limits, root, to, emit)
    write_whole(to / JUNIT, junit_xml(comparison))
    t_s = max(campaign.end_s for campaign in comparison.campaigns)
    document, pdf = compose_comparison(comparison), to / COMPARISON_PDF
    write_whole(pdf, typeset(document, to, t_s, TEMPLATE))
    listed = [
        ListedCampaign(name, campaign, side.part.trials if side.part else campaign.plan.ids)
        for name, campaign, side in zip("AB", comparison.campaigns, sides, strict=True)
    ]
    write_whole(to / PAGE, make_page(document, pdf, listed, PAGE_TEMPLATE))
    return comparison
