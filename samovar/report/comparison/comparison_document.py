"""The content of a comparison's PDF and page as one JSON value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from samovar import __version__
from samovar.report.campaign_data import Json
from samovar.report.comparison.compare import CampaignComparison, split_by_change
from samovar.report.document import OUTPUT_DEFAULTS
from samovar.report.overview import pairs, when
from samovar.report.provenance import report_software
from samovar.units import counted


def compose_comparison(comparison: CampaignComparison) -> Json:
    """Return the document of the PDF and the page."""
    first, second = comparison.campaigns
    facts = {
        "A": comparison.names[0],
        "B": comparison.names[1],
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
    changed, same = split_by_change(comparison.by_metric)
    caption = (
        "Medians over pairs of trials, and the median change within a pair with its interval (order"
        " statistics) and the interval’s confidence. ~: the interval includes zero change, or is missing."
    )
    for title, metrics in (("Metrics that changed", changed), ("Metrics without a change", same)):
        rows = [
            [metric if place == 0 else "", one.treatment, *one.values(), one.text, one.sample]
            for metric, ones in metrics.items()
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
