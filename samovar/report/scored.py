"""A campaign that was analysed, and what its expectations came to."""

from __future__ import annotations

from pathlib import Path

from samovar.definition.load import read_experiment
from samovar.report.campaign import Campaign, read_campaign
from samovar.report.document import analyse_command
from samovar.report.exhibits import require_analysis
from samovar.report.scorecard import Result, score
from samovar.report.summary import read_summary


def read_scored(folder: Path) -> tuple[Campaign, tuple[Result, ...]]:
    """Read a campaign and compare its summary with what its experiment expects.

    Raises ReportError where it is not analysed, DefinitionError where its experiment is broken.
    """
    campaign = read_campaign(folder)
    require_analysis(campaign, analyse_command(campaign))
    expected = read_experiment(folder / "experiment.yaml", campaign.plan.get("overrides", {})).expect
    return campaign, tuple(score(expected, read_summary(folder / "tables" / "summary.csv")))
