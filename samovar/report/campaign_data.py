"""Read what the report needs from a campaign: plan, journal, manifests, provenance, testbed, analysis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from samovar.campaign import TESTBEDS, read_plan
from samovar.campaign.collection import sha256_of
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
    """The records of a campaign.

    `testbeds` maps the name of each testbed to the content of its file; several testbeds can share a
    campaign. `manifests` maps the ids of planned trials to their manifests.
    """

    folder: Path
    plan: Plan
    journal: tuple[Entry, ...]
    state: CampaignState
    provenance: Json
    testbeds: Mapping[str, Json]
    manifests: Mapping[str, Json]
    analysis: Json

    @property
    def label(self) -> str:
        """The name EXPERIMENT/CAMPAIGN, which commands accept."""
        return f"{self.plan.experiment}/{self.folder.name}"

    @property
    def testbed(self) -> Json:
        """The content of the file of the first testbed."""
        return next(iter(self.testbeds.values()))

    def recorded(self, testbed: str) -> Json:
        """Return what provenance.json has about a testbed: the keys `lab` and `hosts`, or none of them."""
        own = self.provenance.get("testbed")
        others: Json = self.provenance.get("others") or {}
        first = own if own in self.testbeds else next(iter(self.testbeds))
        return self.provenance if testbed == first else others.get(testbed) or {}

    @property
    def hosts(self) -> dict[str, tuple[Json, Json]]:
        """Each host's entry in its testbed's file, and the facts recorded about it.

        If several testbeds share the campaign, hosts are named HOST@TESTBED.
        """
        found: dict[str, tuple[Json, Json]] = {}
        for testbed, file in self.testbeds.items():
            declared, recorded = (one.get("hosts") or {} for one in (file, self.recorded(testbed)))
            end = f"@{testbed}" if len(self.testbeds) > 1 else ""
            for name in declared | recorded:
                found[name + end] = declared.get(name) or {}, recorded.get(name) or {}
        return found

    @property
    def bundle(self) -> Path:
        """The folder of the bundle."""
        return self.folder / "bundle"

    @property
    def is_finished(self) -> bool:
        """Whether the last run of the campaign ended without being interrupted or killed."""
        marks = [entry.event for entry in self.journal if entry.event in (*STARTS, "campaign-finished")]
        return marks[-1:] == ["campaign-finished"]

    @property
    def start_s(self) -> float:
        """The time of the journal's first event in seconds since the epoch; 0 if it has no event."""
        return self.journal[0].t_s if self.journal else 0.0

    @property
    def end_s(self) -> float:
        """The time in seconds since the epoch at which the last attempt of a trial ended.

        If no trial has ended, it is the time of the journal's last event; 0 if it has no event. Later runs
        that found no trial to run do not count.
        """
        ends = [entry.t_s for entry in self.journal if entry.event == "trial-finished"]
        return (ends or [entry.t_s for entry in self.journal] or [0.0])[-1]

    def trial_state(self, trial: str) -> str:
        """Return the state of a planned trial: its verdict, or how it failed, or why it has not run."""
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
        """The command that repeats the analysis of the campaign, with the same picked trials."""
        return f"fab analyse {self.label} {self.shown.get('options', '')}".rstrip()

    @property
    def shown(self) -> Json:
        """The part of the trials that was analysed and that figures show; empty if they show all trials."""
        part: Json = self.analysis.get("part") or {}
        return part

    @property
    def inputs_sha256(self) -> str:
        """The SHA-256 of the lines with the SHA-256 of plan.json and of each analysed trial's manifest.

        inputs_sha256() of the R package records the same value in analysis.json.
        """
        ids = self.shown.get("trials") or self.plan.ids
        names = ["plan.json", *(f"trials/{id_}/manifest.json" for id_ in ids)]
        files = [self.folder / name for name in names]
        return sha256("\n".join(sha256_of(file) for file in files if file.exists()).encode()).hexdigest()

    @property
    def part(self) -> str:
        """How many trials of the plan have run, and how many are shown.

        The text is empty if all trials have run and all are shown.
        """
        run, of = self.state.part_text(self.plan.ids), counted(len(self.plan.ids), "trial")
        shown = (
            f"{len(self.shown['trials'])} of {of} are shown (picked: {self.shown['picked']})"
            if self.shown
            else ""
        )
        return "; ".join(filter(None, [run, shown if not run or self.shown.get("options") else ""]))


def read_campaign(folder: Path) -> Campaign:
    """Read a campaign's folder.

    Raises ReportError, PlanError or CampaignError if a file is missing or invalid.
    """
    folder = folder.resolve()
    plan, journal = read_plan(folder), read_journal(folder / "journal.jsonl")
    manifests = {id_: folder / "trials" / id_ / "manifest.json" for id_ in plan.ids}
    first, *others = plan.testbed.split(",")
    testbeds = {first: folder} | {name: folder / TESTBEDS / name for name in others}
    return Campaign(
        folder=folder,
        plan=plan,
        journal=tuple(journal),
        state=fold(journal),
        provenance=read_json(folder / "provenance.json", dict, optional=True),
        testbeds={name: _read_testbed(home / "testbed.yaml") for name, home in testbeds.items()},
        manifests={id_: read_json(file, dict) for id_, file in manifests.items() if file.is_file()},
        analysis=read_json(folder / "bundle" / "analysis.json", dict, optional=True),
    )


def _read_testbed(file: Path) -> Json:
    return cast(Json, yaml_tree.plain(yaml_tree.read_yaml(file)[0])) if file.exists() else {}


def read_json(file: Path, kind: type[Value], optional: bool = False) -> Value:
    """Return the JSON object or list in a file. Raises ReportError if the file is missing or not JSON.

    If `optional` is true, a missing file gives an empty object or list.
    """
    if optional and not file.exists():
        return kind()
    try:
        return cast(Value, json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, OSError) as error:
        raise ReportError(f"{file}: not JSON: {error}") from error
