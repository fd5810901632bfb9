"""A campaign that was analysed, and what its expectations came to."""

from __future__ import annotations

from pathlib import Path

from samovar.errors import ReportError
from samovar.experiment import read_experiment
from samovar.report.campaign_data import Campaign, read_campaign
from samovar.report.document import analyse_command
from samovar.report.figures_and_tables import require_analysis
from samovar.report.scorecard import Result, score
from samovar.report.summary_csv import SummaryRow, read_summary


def read_scored(folder: Path) -> tuple[Campaign, tuple[Result, ...]]:
    """Read a campaign and compare its summary with what its experiment expects.

    Raises ReportError where it is not analysed, DefinitionError where its experiment is broken.
    """
    campaign = read_campaign(folder)
    command = analyse_command(campaign)
    require_analysis(campaign, command)
    expected = read_experiment(folder / "experiment.yaml", campaign.plan.get("overrides", {})).expect
    rows = read_summary(folder / "tables" / "summary.csv")
    if any(line.flow for line in expected):
        rows += read_flows(folder / "tables" / "flows.csv", command)
    return campaign, score(expected, rows)


def read_flows(file: Path, command: str) -> tuple[SummaryRow, ...]:
    """Read the table of flows apart; raises ReportError where an analysis of before it was kept left none."""
    if not file.is_file():
        raise ReportError(f"{file}: no such table, and expect lines name a flow; run `{command}` first")
    return read_summary(file)
