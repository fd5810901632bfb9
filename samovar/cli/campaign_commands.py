"""Commands for recorded campaigns: status, verify, analyse, report; and the generated reference files."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from samovar import schema as generated_files
from samovar.analyse import analyse as run_analysis
from samovar.campaign import read_plan
from samovar.campaign.collection import verify as verify_campaign
from samovar.campaign.journal import NAME, fold, holder, read_journal
from samovar.cli.program import command, event_display, open_controller, show, show_json
from samovar.cli.show_status import (
    CampaignStatus,
    lease_lines,
    status_json,
    status_lines,
    verification_lines,
)
from samovar.experiment import STUDIES
from samovar.report import exit_status, make_bundle, make_study, read_verdicts


@command
def status(root: Path, campaign: str = "", every_trial: bool = False, as_json: bool = False) -> None:
    """Show the progress of a campaign from its journal, also while another process runs it."""
    folder = open_controller(root).project.campaign(campaign)
    journal = folder / NAME
    entries = read_journal(journal) if journal.exists() else []
    is_running = holder(journal) is not None
    state = CampaignStatus(folder, read_plan(folder), fold(entries), time.time(), is_running)
    if as_json:
        show_json(status_json(state))
    else:
        width = shutil.get_terminal_size().columns
        show([*status_lines(state, width, every_trial), *lease_lines(entries)])


@command
def verify(root: Path, campaign: str = "") -> int:
    """Compare every file of a campaign with its recorded checksum; the exit code is 1 for a difference."""
    folder = open_controller(root).project.campaign(campaign)
    with event_display(root) as display:
        found = verify_campaign(folder, display)
    show(verification_lines(folder, found))
    return int(bool(found.findings))


@command
def analyse(root: Path, campaign: str = "") -> None:
    """Measure the trials of a campaign and make its figures and tables."""
    analyse_campaign(root, open_controller(root).project.campaign(campaign))


def analyse_campaign(root: Path, folder: Path) -> None:
    """Run the R analysis of a campaign folder and show where its results are."""
    with event_display(root) as display:
        run_analysis(folder, root, display)
    show([f"figures and tables: {folder / 'bundle'}"])


@command
def report(root: Path, campaign: str = "", study: str = "") -> int:
    """Make the PDF of a campaign or of a study.

    The exit code is 0 when all expectations are reproduced, 1 when one differs, 2 when one has no data.
    """
    if study:
        return exit_status(make_study_report(root, study))
    return exit_status(make_campaign_report(root, open_controller(root).project.campaign(campaign)))


def make_campaign_report(root: Path, folder: Path) -> list[str]:
    """Make the bundle of a campaign, show its scorecard, and return the verdict of each expectation."""
    with event_display(root) as display:
        pdf = make_bundle(folder, display, open_controller(root).project.outputs)
    verdicts = read_verdicts(folder)
    _show_scorecard(verdicts, pdf)
    return verdicts


def make_study_report(root: Path, name: str) -> list[str]:
    """Make the report of a study, show its scorecard, and return the verdict of each expectation."""
    controller = open_controller(root)
    study = controller.project.study_report(name)
    folder = controller.project.results / STUDIES / study.study
    with event_display(root) as display:
        pdf, verdicts = make_study(
            study, controller.project.campaign, folder, display, controller.project.outputs
        )
    _show_scorecard(verdicts, pdf)
    return verdicts


def _show_scorecard(verdicts: list[str], pdf: Path) -> None:
    counts = {verdict: verdicts.count(verdict) for verdict in ("reproduced", "differs", "no data")}
    show([f"scorecard: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}", str(pdf)])


@command
def schema(root: Path) -> None:
    """Write the editor schemas and the generated reference pages again."""
    changed = generated_files.write(root)
    show([f"written: {path}" for path in changed] or ["all generated files are current"])
