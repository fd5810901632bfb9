"""A campaign folder as the report needs it: read once, then only looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from samovar.campaign import read_plan
from samovar.campaign.journal import CampaignState, Entry, fold, read_journal
from samovar.errors import ReportError
from samovar.experiment import plain, read_yaml

Json = dict[str, Any]

COMPLETED, NOT_RUN = "completed", "not run"
STARTS = ("campaign-started", "campaign-resumed")


@dataclass(frozen=True)
class Campaign:
    """What a campaign left behind: the plan, the journal, the manifests by trial id, where it ran."""

    folder: Path
    plan: Json
    journal: tuple[Entry, ...]
    state: CampaignState
    provenance: Json
    testbed: Json
    manifests: Mapping[str, Json]

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return str(self.plan["experiment"])

    @property
    def name(self) -> str:
        """Name of the campaign: the folder's."""
        return self.folder.name

    @property
    def bundle(self) -> Path:
        """Folder of the bundle."""
        return self.folder / "bundle"

    @property
    def trials(self) -> list[Json]:
        """Planned trials in order, each in full."""
        return list(self.plan["trials"])

    @property
    def finished(self) -> bool:
        """Whether the last start or resumption of the campaign came to its end."""
        marks = [entry.event for entry in self.journal if entry.event in (*STARTS, "campaign-finished")]
        return marks[-1:] == ["campaign-finished"]


def read_campaign(folder: Path) -> Campaign:
    """Read a campaign folder; raises ReportError, PlanError or CampaignError where it is not one."""
    folder = folder.resolve()
    if not (folder / "plan.json").is_file():
        raise ReportError(f"{folder}: no plan.json; a campaign folder is results/<experiment>/<campaign>")
    plan = read_plan(folder).as_json()
    journal = read_journal(folder / "journal.jsonl")
    return Campaign(
        folder=folder,
        plan=plan,
        journal=tuple(journal),
        state=fold(journal),
        provenance=read_json(folder / "provenance.json", optional=True),
        testbed=read_testbed(folder / "testbed.yaml"),
        manifests=read_manifests(folder, [str(trial["id"]) for trial in plan["trials"]]),
    )


def read_json(file: Path, optional: bool = False) -> Json:
    """Read one JSON object; an optional file that is absent counts as empty."""
    if optional and not file.exists():
        return {}
    value = read_any_json(file)
    if not isinstance(value, dict):
        raise ReportError(f"{file}: {type(value).__name__}; an object was expected")
    return value


def read_any_json(file: Path) -> Any:
    """Read a JSON file; raises ReportError where it is absent or malformed."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ReportError(f"{file}: no such file") from error
    except (ValueError, OSError) as error:
        raise ReportError(f"{file}: {error}; JSON was expected") from error


def read_testbed(file: Path) -> Json:
    """Read the testbed as the campaign kept it: already validated, so its scalars stay text here."""
    if not file.exists():
        return {}
    tree, _ = read_yaml(file)
    return cast(Json, plain(tree))


def read_manifests(folder: Path, ids: list[str]) -> dict[str, Json]:
    """Read the manifests of the planned trials that have one."""
    files = {trial: folder / "trials" / trial / "manifest.json" for trial in ids}
    return {trial: read_json(file) for trial, file in files.items() if file.is_file()}


def ids(campaign: Campaign) -> list[str]:
    """Return the ids of the planned trials, in order."""
    return [str(trial["id"]) for trial in campaign.trials]


def standing(campaign: Campaign, trial: str) -> str:
    """Say how a planned trial stands: its verdict when completed, else its last outcome, or not run."""
    manifest = campaign.manifests.get(trial)
    if manifest is not None:
        outcome = str(manifest.get("outcome", COMPLETED))
        return str(manifest.get("verdict") or "valid") if outcome == COMPLETED else outcome
    told = campaign.state.trials.get(trial)
    return told.status if told is not None and told.status in ("failed", "interrupted") else NOT_RUN


def campaign_time_s(campaign: Campaign) -> float:
    """Return when the campaign began, epoch seconds: from its journal, else its name, else its trials."""
    if campaign.journal:
        return campaign.journal[0].t_s
    stamp = re.search(r"(\d{8}-\d{6})$", campaign.name)
    if stamp:
        return datetime.strptime(stamp[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    starts = [float(one["t_start_s"]) for one in campaign.manifests.values() if "t_start_s" in one]
    return min(starts, default=0.0)


def campaign_end_s(campaign: Campaign) -> float:
    """Return when the campaign's last event happened, epoch seconds."""
    ends = [float(one["t_end_s"]) for one in campaign.manifests.values() if one.get("t_end_s") is not None]
    return max([campaign_time_s(campaign), campaign.state.t_last_s, *ends])
