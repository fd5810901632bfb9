"""The command `compare`: a table of the changes of metrics between two campaigns, each with its interval."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from samovar.cli.campaign_commands import COMPARISONS, part_of
from samovar.cli.program import command, event_display, open_controller, show
from samovar.cli.text import columns, first_lines
from samovar.plan import Pick
from samovar.report import (
    COMPARISON_PDF,
    PAGE,
    CampaignComparison,
    Side,
    make_comparison,
    parse_limit,
    split_by_change,
)

MOST_DIFFERENCES = 12


@command
def compare(
    root: Path,
    a: str,
    b: str,
    picks: tuple[Pick, Pick],
    by: str = "",
    limits: Sequence[str] = (),
    to: Path | None = None,
    every_metric: bool = False,
) -> int:
    """Compare campaigns A and B, or the trials picked of each.

    The exit code is 0, or 1 if a change is beyond a limit, or 2 if a limit cannot be judged.
    """
    project = open_controller(root).project
    parsed = [parse_limit(text, project.outputs) for text in limits]
    folders = [project.campaign(name) for name in (a, b or a)]
    first, second = (Side(one, part_of(one, pick)) for one, pick in zip(folders, picks, strict=True))
    to = to or project.results / COMPARISONS / _folder_name(first, second)
    names = [one for name in by.split(",") if (one := name.strip())]
    with event_display(root) as display:
        comparison = make_comparison((first, second), names, parsed, root, to, display)
    show(comparison_lines(comparison, every_metric))
    show([str(to / PAGE), str(to / COMPARISON_PDF)])
    return comparison.exit_code


def _folder_name(first: Side, second: Side) -> str:
    """Return the folder name of a comparison: the campaigns' names and the options that pick their trials."""
    names = (
        f"{one.folder.parent.name}-{one.folder.name} {one.part.options if one.part else ''}"
        for one in (first, second)
    )
    return "-vs-".join(re.sub("[^A-Za-z0-9.]+", "-", name).strip("-") for name in names)


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
