"""Write the comparison of two campaigns: PDF and page with the same content, and JUnit XML for CI servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from samovar import __version__
from samovar.atomic_files import write_whole
from samovar.events import Emit
from samovar.report.campaign_data import Json
from samovar.report.comparison import (
    FAILED,
    NO_DATA,
    CampaignComparison,
    Change,
    Limit,
    Side,
    compare_campaigns,
)
from samovar.report.document import OUTPUT_DEFAULTS
from samovar.report.overview import pairs, when
from samovar.report.page import ListedCampaign, write_report
from samovar.report.provenance import report_software
from samovar.units import counted

COMPARISON_PDF, JUNIT = "comparison.pdf", "junit.xml"
ELEMENTS = {FAILED: "failure", NO_DATA: "error"}
"""The element in a test case for each verdict that does not pass."""


def make_comparison(
    sides: tuple[Side, Side], by: Sequence[str], limits: Sequence[Limit], root: Path, to: Path, emit: Emit
) -> CampaignComparison:
    """Compare two campaigns; write PDF, page, junit.xml, figures and changes.csv into a folder.

    Raises AnalysisError if the campaigns have nothing in common, ReportError for a limit on a metric that
    was not measured or if the PDF cannot be made.
    """
    comparison = compare_campaigns(sides, by, limits, root, to, emit)
    write_whole(to / JUNIT, junit_xml(comparison))
    t_s = max(side.campaign.end_s for side in sides)
    listed = [ListedCampaign(name, one.campaign, one.ids) for name, one in zip("AB", sides, strict=True)]
    write_report("comparison", compose_comparison(comparison), to / COMPARISON_PDF, t_s, listed)
    return comparison


def compose_comparison(comparison: CampaignComparison) -> Json:
    """Return the document of the PDF and the page."""
    first, second = (side.campaign for side in comparison.sides)
    facts = {
        **{name: side.name for name, side in zip("AB", comparison.sides, strict=True)},
        "A ran": when(first),
        "B ran": when(second),
        "Matched": comparison.notes[0],
    }
    result = comparison.result
    figures = [
        one | {"ids": one["trials"], "trials": counted(len(one["trials"]), "trial")}
        for one in result["figures"]
    ]
    return {
        "title": f"{first.plan.title or first.plan.experiment}: comparison",
        "experiment": first.plan.experiment,
        "campaign": f"{first.folder.name} and {second.folder.name}",
        "description": "",
        "notice": "",
        "samovar": __version__,
        "facts": pairs(facts),
        "notes": comparison.notes[1:],
        "limits": [_limits_table(comparison)] if comparison.judged else [],
        "changes": list(_change_tables(comparison)),
        "differences": list(comparison.differences),
        "figures": [OUTPUT_DEFAULTS | one for one in [*figures, *result["unmade"]]],
        "left_out": [f"{one['campaign']}: {one['id']}: {one['reason']}" for one in result["left_out"]],
        "software": pairs({**report_software(), "R": result["r_version"]}),
    }


def _limits_table(comparison: CampaignComparison) -> Json:
    rows = [
        [limit.text, one.treatment, limit.text_of(one), one.sample, how]
        for limit, one, how in comparison.judged
    ]
    caption = "A treatment fails if its change is beyond the limit and its interval excludes zero change."
    names = ("Fails if", "Treatment", "Change", "Pairs", "Verdict")
    return _table("limits", "Limits", caption, names, rows)


def _change_tables(comparison: CampaignComparison) -> Iterator[Json]:
    """Yield the table of changes, and the table of metrics that are the same in all treatments."""
    names = ("Metric", "Treatment", "A", "B", "Change of B against A", "Pairs")
    caption = (
        "Medians over pairs of trials, and the median change within a pair with its interval (order"
        " statistics) and the interval’s confidence. ~: the interval includes zero change, or is missing."
    )
    for title, same in (("Metrics that changed", False), ("Metrics without a change", True)):
        rows = [
            [metric if place == 0 else "", one.treatment, *one.values(), one.text, one.sample]
            for metric, ones in comparison.by_metric.items()
            if (metric in comparison.unchanged) == same
            for place, one in enumerate(ones)
        ]
        if rows:
            yield _table("changes", title, caption, names, rows)


def _table(name: str, title: str, caption: str, names: Iterable[str], rows: list[list[str]]) -> Json:
    columns = [{"name": one, "align": "left"} for one in names]
    return OUTPUT_DEFAULTS | {
        "name": name,
        "title": title,
        "caption": caption,
        "columns": columns,
        "rows": rows,
        "trials": "",
    }


def junit_xml(comparison: CampaignComparison) -> bytes:
    """Return the XML: a failure for a treatment beyond a limit, an error for one that cannot be judged.

    Without limits, no test case fails, and the cases only report the changes.
    """
    root = ElementTree.Element("testsuites", name=" → ".join(side.name for side in comparison.sides))
    verdicts: dict[Change, list[tuple[str, str]]] = {}
    for judged, change, verdict in comparison.judged:
        verdicts.setdefault(change, []).append((judged.text, verdict))
    for metric in dict.fromkeys(change.metric for change in comparison.changes):
        suite = ElementTree.SubElement(root, "testsuite", name=metric)
        counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
        for change in (one for one in comparison.changes if one.metric == metric):
            for limit, verdict in verdicts.get(change, [("", "")]):
                name = f"{change.treatment}: {limit}" if limit else change.treatment
                case = ElementTree.SubElement(suite, "testcase", classname=metric, name=name)
                text = f"{change.text} ({', '.join(change.values())}, {change.sample})"
                kind = ELEMENTS.get(verdict, "" if limit or change.changed is not None else "skipped")
                counts["tests"] += 1
                if kind:
                    ElementTree.SubElement(case, kind, message=text)
                    counts[kind if kind == "skipped" else f"{kind}s"] += 1
                ElementTree.SubElement(case, "system-out").text = text
        for key, amount in counts.items():
            suite.set(key, str(amount))
    xml: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml
