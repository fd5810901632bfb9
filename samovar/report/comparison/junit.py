"""A comparison as JUnit XML, which CI servers show: a suite per metric, a case per treatment and limit."""

from __future__ import annotations

from xml.etree import ElementTree

from samovar.report.comparison.changes import FAILED, NO_DATA, Change
from samovar.report.comparison.compare import CampaignComparison

ELEMENTS = {FAILED: "failure", NO_DATA: "error"}
"""The element in a test case for each verdict that does not pass."""


def junit_xml(comparison: CampaignComparison) -> bytes:
    """Return the XML: a failure for a treatment beyond a limit, an error for one that cannot be judged.

    Without limits, no test case fails, and the cases only report the changes.
    """
    root = ElementTree.Element("testsuites", name=" → ".join(comparison.names))
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
