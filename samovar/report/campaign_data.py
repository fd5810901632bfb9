"""A recorded campaign as the report needs it: plan, journal, manifests, provenance, testbed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
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
    """What is recorded of a campaign; `manifests` has those of planned trials, by trial id."""

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
        """Name of the campaign: that of its folder."""
        return self.folder.name

    @property
    def label(self) -> str:
        """Experiment and campaign as the commands take them."""
        return f"{self.experiment}/{self.name}"

    @property
    def bundle(self) -> Path:
        """Folder of the bundle."""
        return self.folder / "bundle"

    @property
    def trials(self) -> list[Json]:
        """Planned trials in order, each in full."""
        return list(self.plan["trials"])

    @property
    def ids(self) -> list[str]:
        """Ids of the planned trials, in order."""
        return [str(trial["id"]) for trial in self.trials]

    @property
    def is_finished(self) -> bool:
        """Whether the last run of the campaign ended regularly."""
        marks = [entry.event for entry in self.journal if entry.event in (*STARTS, "campaign-finished")]
        return marks[-1:] == ["campaign-finished"]

    @property
    def start_s(self) -> float:
        """Epoch seconds of the first event."""
        return self.journal[0].t_s if self.journal else 0.0

    @property
    def end_s(self) -> float:
        """Epoch seconds of the last event."""
        return self.journal[-1].t_s if self.journal else 0.0

    def trial_state(self, trial: str) -> str:
        """Return the verdict of a planned trial if it completed, else its last outcome or `not run`."""
        manifest = self.manifests.get(trial)
        if manifest is not None:
            outcome = str(manifest.get("outcome", COMPLETED))
            return str(manifest.get("verdict") or "valid") if outcome == COMPLETED else outcome
        journaled = self.state.trials.get(trial)
        return journaled.status if journaled and journaled.status in ("failed", "interrupted") else NOT_RUN

    @property
    def run_command(self) -> str:
        """The command that runs the whole campaign again."""
        profile = f" --profile {self.plan['profile']}" if self.plan.get("profile") else ""
        overrides = (f"{key}={value}" for key, value in self.plan.get("overrides", {}).items())
        return f"fab run {self.experiment}{profile}" + "".join(
            f" --set {shlex.quote(one)}" for one in overrides
        )

    @property
    def analyse_command(self) -> str:
        """The command that makes figures and tables."""
        return f"fab analyse --campaign {self.label}"


def read_campaign(folder: Path) -> Campaign:
    """Read a campaign folder; raises ReportError, PlanError or CampaignError if it is not one."""
    folder = folder.resolve()
    if not (folder / "plan.json").is_file():
        raise ReportError(f"{folder}: no plan.json; a campaign folder is results/<experiment>/<campaign>")
    plan = read_plan(folder).as_json()
    journal = read_journal(folder / "journal.jsonl")
    manifests = {
        str(trial["id"]): folder / "trials" / str(trial["id"]) / "manifest.json" for trial in plan["trials"]
    }
    testbed = folder / "testbed.yaml"
    return Campaign(
        folder=folder,
        plan=plan,
        journal=tuple(journal),
        state=fold(journal),
        provenance=read_json_object(folder / "provenance.json", optional=True),
        testbed=cast(Json, plain(read_yaml(testbed)[0])) if testbed.exists() else {},
        manifests={trial: read_json_object(file) for trial, file in manifests.items() if file.is_file()},
    )


def read_json_object(file: Path, optional: bool = False) -> Json:
    """Read a JSON object; raises ReportError. An optional file that is missing counts as empty."""
    if optional and not file.exists():
        return {}
    value = read_json(file)
    if not isinstance(value, dict):
        raise ReportError(f"{file}: expected a JSON object, not {type(value).__name__}")
    return value


def read_json(file: Path) -> Any:
    """Read a JSON file; raises ReportError if it is missing or malformed."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ReportError(f"{file}: no such file") from error
    except (ValueError, OSError) as error:
        raise ReportError(f"{file}: not JSON: {error}") from error
