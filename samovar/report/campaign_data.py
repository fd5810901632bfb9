"""A recorded campaign as the report needs it: plan, journal, manifests, provenance, testbed, analysis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from samovar.campaign import read_plan
from samovar.campaign.journal import STARTS, CampaignState, Entry, fold, read_journal
from samovar.errors import ReportError
from samovar.experiment import yaml_tree
from samovar.plan import Plan
from samovar.units import counted

Json = dict[str, Any]
Value = TypeVar("Value", dict[str, Any], list[Any])

COMPLETED, NOT_RUN, NOT_PICKED = "completed", "not run", "not picked"


@dataclass(frozen=True)
class Campaign:
    """The records of a campaign. `manifests` maps the ids of planned trials to their manifests."""

    folder: Path
    plan: Plan
    journal: tuple[Entry, ...]
    state: CampaignState
    provenance: Json
    testbed: Json
    manifests: Mapping[str, Json]
    analysis: Json

    @property
    def label(self) -> str:
        """EXPERIMENT/CAMPAIGN, as commands accept it."""
        return f"{self.plan.experiment}/{self.folder.name}"

    @property
    def bundle(self) -> Path:
        """Folder of the bundle."""
        return self.folder / "bundle"

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
        """Return the verdict of a planned trial if it completed, else its outcome, or why it has none."""
        manifest = self.manifests.get(trial)
        if manifest is not None:
            outcome = str(manifest.get("outcome", COMPLETED))
            return str(manifest.get("verdict") or "valid") if outcome == COMPLETED else outcome
        if self.state.is_left_for_later(trial):
            return NOT_PICKED
        journaled = self.state.trials.get(trial)
        return journaled.status if journaled and journaled.status in ("failed", "interrupted") else NOT_RUN

    @property
    def analyse_command(self) -> str:
        """The command that makes figures and tables, of the same part of the trials."""
        return f"fab analyse {self.label} {self.shown.get('options', '')}".rstrip()

    @property
    def shown(self) -> Json:
        """The part of the trials that figures and tables show; empty if they show all."""
        part: Json = self.analysis.get("part") or {}
        return part

    @property
    def part(self) -> str:
        """How much of the plan has run and is shown, if either is a part of it; empty for the whole plan."""
        run, of = self.state.part_text(self.plan.ids), counted(len(self.plan.ids), "trial")
        shown = (
            f"{len(self.shown['trials'])} of {of} are shown (picked: {self.shown['picked']})"
            if self.shown
            else ""
        )
        return "; ".join(filter(None, [run, shown if not run or self.shown.get("options") else ""]))


def read_campaign(folder: Path) -> Campaign:
    """Read a campaign folder. Raises ReportError, PlanError or CampaignError for any other folder."""
    folder = folder.resolve()
    plan, journal = read_plan(folder), read_journal(folder / "journal.jsonl")
    manifests = {id_: folder / "trials" / id_ / "manifest.json" for id_ in plan.ids}
    testbed = folder / "testbed.yaml"
    return Campaign(
        folder=folder,
        plan=plan,
        journal=tuple(journal),
        state=fold(journal),
        provenance=read_json(folder / "provenance.json", dict, optional=True),
        testbed=cast(Json, yaml_tree.plain(yaml_tree.read_yaml(testbed)[0])) if testbed.exists() else {},
        manifests={id_: read_json(file, dict) for id_, file in manifests.items() if file.is_file()},
        analysis=read_json(folder / "bundle" / "analysis.json", dict, optional=True),
    )


def shown_part(folder: Path) -> str:
    """Return how much of a campaign's plan has run and is analysed; empty if that is all of it."""
    return read_campaign(folder).part


def read_json(file: Path, kind: type[Value], optional: bool = False) -> Value:
    """Read a JSON object or list. Raises ReportError; a missing optional file counts as empty."""
    if optional and not file.exists():
        return kind()
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ReportError(f"{file}: not JSON: {error}") from error
    if not isinstance(value, kind):
        name = "object" if kind is dict else "list"
        raise ReportError(f"{file}: expected a JSON {name}, not {type(value).__name__}")
    return value
