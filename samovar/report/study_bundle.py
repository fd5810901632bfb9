"""Make the report of a study: its PDF, the figures and data of its campaigns, checksums."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from samovar.atomic_files import write_json, write_whole
from samovar.campaign.collection import write_sums
from samovar.events import Emit, Event
from samovar.experiment import StudyReport
from samovar.report.bundle import SCORECARD, files, tally
from samovar.report.campaign_data import campaign_end_s
from samovar.report.figures_and_tables import data_index
from samovar.report.scorecard import Result
from samovar.report.study_document import (
    Told,
    campaigns_json,
    compose_study,
    once_each,
    placed,
    read_sections,
)
from samovar.report.typeset import typeset

TEMPLATE = "study.typ.j2"
CAMPAIGNS = "campaigns.json"


def make_study(
    study: StudyReport, find: Callable[[str], Path], folder: Path, emit: Emit
) -> tuple[Path, list[str]]:
    """Make the report of a study in a folder of its own; return the path of its PDF and the verdicts.

    Of the same campaigns it is the same bytes. Emits `scorecard` and `bundle-made` as a campaign's report
    does. Raises ReportError and CampaignError where a campaign is missing, not analysed or cannot be set.
    """
    told = read_sections(study, find)
    document = compose_study(study, told)
    gather(told, folder)
    exhibits = [one for section in document["sections"] for one in (*section["figures"], *section["tables"])]
    document |= {
        "figures": [one for one in exhibits if one.get("file")],
        "data": data_index(folder, exhibits),
    }
    pdf = folder / f"{study.study}.pdf"
    latest_s = max(campaign_end_s(one.campaign) for one in told)
    write_whole(pdf, typeset(document, folder, latest_s, template=TEMPLATE))
    results = results_of(told)
    lines = [{"experiment": experiment, **result.as_json()} for experiment, result in results]
    write_json(folder / SCORECARD, lines)
    write_json(folder / CAMPAIGNS, campaigns_json(told))
    write_sums(folder)
    emit(Event("scorecard", tally([result for _, result in results])))
    emit(Event("bundle-made", {"pdf": str(pdf), "files": len(files(folder))}))
    return pdf, [result.verdict for _, result in results]


def gather(told: Sequence[Told], folder: Path) -> None:
    """Copy what the campaigns' bundles hold to where the study has it; what was there before goes."""
    for kind in ("figures", "data"):
        shutil.rmtree(folder / kind, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for one in told:
        found = [file for kind in ("figures", "data") for file in files(one.campaign.bundle / kind)]
        for file in found:
            target = folder / placed(one.campaign, file.relative_to(one.campaign.bundle).as_posix())
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def results_of(told: Sequence[Told]) -> list[tuple[str, Result]]:
    """Return the lines of all scorecards, each campaign's once, with the experiment."""
    return [(one.campaign.experiment, result) for one in once_each(told) for result in one.results]
