"""Show the comparison of two campaigns: a table of the changes of metrics, each with its interval."""

from __future__ import annotations

from collections.abc import Iterator

from samovar.cli.text import columns, first_lines
from samovar.report import CampaignComparison, split_by_change

MOST_DIFFERENCES = 12


def comparison_lines(comparison: CampaignComparison, every_metric: bool) -> Iterator[str]:
    """Yield the names of two campaigns, their differences, the changes by metric, and a verdict per limit."""
    yield from columns(zip("AB", comparison.names, strict=True))
    yield from (f"  {text}" for text in first_lines(comparison.differences, MOST_DIFFERENCES))
    yield from comparison.notes
    changed, same = split_by_change(comparison.by_metric)
    shown = comparison.by_metric if every_metric else changed
    rows = [("", "A", "B", "B against A", "")]
    for metric, ones in shown.items():
        rows.append((metric, "", "", "", ""))
        rows += [(f"  {one.treatment}", *one.values(), one.text, one.sample) for one in ones]
    if shown:
        yield ""
        yield from columns(rows)
    if same and not every_metric:
        yield f"~ {', '.join(same)}"
    for limit, change, verdict in comparison.judged:
        mark = {"failed": "✗", "passed": "✓"}.get(verdict, "?")
        yield f"{mark} {limit.text}: {change.treatment}: {verdict}: {limit.text_of(change)} ({change.sample})"
