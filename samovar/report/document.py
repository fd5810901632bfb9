"""Everything that the pages say, as one JSON value; the templates give it its form."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from samovar import __version__
from samovar.report import figures_and_tables, testbed_comparison
from samovar.report.campaign_data import Campaign, Json, read_json
from samovar.report.omissions import omissions
from samovar.report.overhead import cost
from samovar.report.overview import overview, path_words, treatments
from samovar.report.path_drawing import draw
from samovar.report.provenance import hosts, provenance, software
from samovar.report.scorecard import REPRODUCED, VERDICTS, Result, treatment_words
from samovar.report.script_listing import commands

FIGURE_DEFAULTS: Json = {"title": "", "caption": "", "data": "", "trials": None, "width_in": 6.3}
TABLE_DEFAULTS: Json = {"title": "", "caption": "", "data": "", "trials": None, "rows": [], "columns": []}


def compose(campaign: Campaign, results: Sequence[Result]) -> Json:
    """Return the document; raises ReportError where the analysis has not left what it needs."""
    analysis = read_json(campaign.bundle / "analysis.json")
    figures = [
        FIGURE_DEFAULTS | one for one in figures_and_tables.figures(campaign, analyse_command(campaign))
    ]
    own = figures_and_tables.tables(campaign, analyse_command(campaign))
    tables = [TABLE_DEFAULTS | one for one in [*own, *testbed_comparison.table(campaign)]]
    return {
        **overview(campaign),
        "samovar": __version__,
        "path": draw(campaign.testbed),
        **path_captions(campaign),
        "hosts": hosts(campaign),
        "treatments": treatments(campaign),
        "scorecard": scorecard(results),
        "figures": figures,
        "tables": tables,
        "omissions": omissions(campaign, analysis),
        "cost": cost(campaign),
        "provenance": provenance(campaign, analysis),
        "software": software(analysis),
        "data": figures_and_tables.data_index(campaign.bundle, [*figures, *tables]),
        "regenerate": regenerate(campaign),
        "commands": commands(campaign),
    }


def path_captions(campaign: Campaign) -> Json:
    """Return what the diagram says of the bottleneck, in it and under it."""
    bottleneck = campaign.testbed.get("bottleneck") or {}
    settings = " · ".join(path_words(campaign.trials))
    router = f"{bottleneck['router']}, egress of {bottleneck['to']}" if "router" in bottleneck else ""
    where = router or (f"link {bottleneck['link']}" if "link" in bottleneck else "")
    return {
        "callout": f"queue at {where}: {settings}" if settings else f"queue at {where}",
        "path-caption": "The path: hosts, links with their interfaces and addresses"
        + (f", and the bottleneck’s queue at {where}." if where else "."),
    }


def scorecard(results: Sequence[Result]) -> Json:
    """Return the scorecard's lines, its counts and the sentence that sums it up."""
    counts = {word: sum(1 for one in results if one.verdict == word) for word in VERDICTS}
    return {
        "lines": [line(one) for one in results],
        "counts": [{"verdict": word, "amount": amount} for word, amount in counts.items() if amount],
        "headline": f"{counts[REPRODUCED]} of {len(results)} expectations reproduced",
    }


def line(result: Result) -> Json:
    """Return one line: the observed value apart from its sample, and at a glance without its interval."""
    value, _, sample = result.observed.partition(" (")
    words = {"value": value, "sample": sample.removesuffix(")"), "glance": value.partition(" [")[0]}
    return {**result.as_json(), "about": about(result), **words}


def about(result: Result) -> str:
    """Say which numbers a line is about, and where its target comes from."""
    where = treatment_words(result.where)
    of = [f"{kind} {name}" for kind, name in (("part", result.part), ("flow", result.flow)) if name]
    words = [result.metric, *of, where, f"from {result.source}"]
    return "; ".join(word for word in words if word and word != "from ")


def campaign_label(campaign: Campaign) -> str:
    """Name the campaign as the commands take it."""
    return f"{campaign.experiment}/{campaign.name}"


def analyse_command(campaign: Campaign) -> str:
    """Return the command that makes what the report needs."""
    return f"fab analyse --campaign {campaign_label(campaign)}"


def regenerate(campaign: Campaign) -> list[str]:
    """Return the commands that make the bundle again from the campaign's folder."""
    return [analyse_command(campaign), f"fab report --campaign {campaign_label(campaign)}"]


def rerun(campaign: Campaign) -> str:
    """Return the command that runs the whole campaign again."""
    profile = f" --profile {campaign.plan['profile']}" if campaign.plan.get("profile") else ""
    overrides = (f"{key}={value}" for key, value in campaign.plan.get("overrides", {}).items())
    sets = "".join(f" --set {shlex.quote(one)}" for one in overrides)
    return f"fab run {campaign.experiment}{profile}{sets}"
