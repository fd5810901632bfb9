"""Show the comparison of two campaigns: a table of the changes of metrics, each with its interval."""

from __future__ import annotations

from collections.abc import Iterator

from samovar.cli.text import columns, first_lines
from samovar.report import CampaignComparison

MOST_DIFFERENCES = 12


def comparison_lines(comparison: CampaignComparison, every_metric: bool) -> Iterator[str]:
    """Yield the names of two campaigns, their differences, the changes by metric, and a verdict per limit."""
    yield from columns(("AB"[place], side.name) for place, side in enumerate(comparison.sides))
    yield from (f"  {text}" for text in first_lines(comparison.differences, MOST_DIFFERENCES))
    yield from comparison.notes
    same = [] if every_metric else comparison.unchanged
    shown = {metric: ones for metric, ones in comparison.by_metric.items() if metric not in same}
    rows = [("", "A", "B", "B against A", "")]
    for metric, ones in shown.items():
        rows.append((metric, "", "", "", ""))
        rows += [(f"  {one.treatment}", *one.values(), one.text, one.sample) for one in ones]
    if shown:
        yield ""
        yield from columns(rows)
    if same:
        yield f"~ {', '.join(same)}"
    for limit, change, verdict in comparison.judged:
        mark = {"failed": "✗", "passed": "✓"}.get(verdict, "?")
        yield f"{mark} {limit.text}: {change.treatment}: {verdict}: {limit.text_of(change)} ({change.sample})"
