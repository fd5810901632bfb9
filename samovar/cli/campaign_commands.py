"""Commands for recorded campaigns: status, verify, analyse, report; and the generated reference files."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from samovar import schema as generated_files
from samovar.analyse import analyse as run_analysis
from samovar.campaign import read_plan, read_state
from samovar.campaign.collection import verify as verify_campaign
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import holder
from samovar.cli.program import command, event_display, open_controller, show, show_json
from samovar.cli.show_status import CampaignStatus, status_json, status_lines, verification_lines
from samovar.experiment import STUDIES
from samovar.report import exit_status, make_bundle, make_study


@command
def status(root: Path, campaign: str = "", every_trial: bool = False, as_json: bool = False) -> None:
    """Show the progress of a campaign from its journal, also while another process runs it."""
    folder = open_controller(root).project.campaign(campaign)
    is_running = holder(folder / JOURNAL) is not None
    state = CampaignStatus(folder, read_plan(folder), read_state(folder), time.time(), is_running)
    if as_json:
        show_json(status_json(state))
    else:
        show(status_lines(state, shutil.get_terminal_size().columns, every_trial))


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
        made = make_bundle(folder, display, open_controller(root).project.outputs)
    return _show_report(*made)


def make_study_report(root: Path, name: str) -> list[str]:
    """Make the report of a study, show its scorecard, and return the verdict of each expectation."""
    project = open_controller(root).project
    study = project.study_report(name)
    folder = project.results / STUDIES / study.study
    with event_display(root) as display:
        made = make_study(study, project.campaign, folder, display, project.outputs)
    return _show_report(*made)


def _show_report(pdf: Path, verdicts: list[str]) -> list[str]:
    counts = (f"{verdicts.count(verdict)} {verdict}" for verdict in ("reproduced", "differs", "no data"))
    show([f"scorecard: {', '.join(counts)}", str(pdf)])
    return verdicts


@command
def schema(root: Path) -> None:
    """Write the editor schemas and the generated reference pages again."""
    changed = generated_files.write(root)
    show([f"written: {path}" for path in changed] or ["all generated files are current"])
