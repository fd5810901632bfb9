"""A campaign's folder: found or begun; its plan read, replaced (the earlier is kept), set against another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from samovar.atomic_files import write_whole
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import CampaignState, TrialState, fold, is_open, read_journal
from samovar.errors import CampaignError, PlanError
from samovar.events import Emit, Event
from samovar.plan import Plan
from samovar.plan.diff import DONE, Comparison, compare

LATEST = "latest"
PLAN = "plan.json"
EARLIER = "plans"
TESTBEDS = "testbeds"
STAMP = "%Y%m%d-%H%M%S"
IDENTITY = ("schema", "experiment", "profile", "testbed", "overrides")
"""What campaigns are told apart by: with these alike, a changed plan goes on in the campaign there is."""


@dataclass(frozen=True)
class ResumePoint:
    """The campaign that a plan resumes, and what it lacks of it; `folder` is None for a new campaign."""

    folder: Path | None
    comparison: Comparison
    state: CampaignState

    @property
    def nothing_to_do(self) -> bool:
        """Whether there is no trial to run and no host to restore."""
        return self.folder is not None and not self.comparison.runs and self.state.clean


def find_resume_point(plan: Plan, results: Path, new: bool = False) -> ResumePoint:
    """Compare a plan with the newest campaign that it can resume; `new` ignores existing campaigns."""
    folder = None if new else find_campaign(plan, results)
    if folder is None:
        return ResumePoint(None, compare(plan, None, {}), fold(()))
    state = read_state(folder)
    return ResumePoint(folder, compare(plan, read_plan(folder), trial_statuses(state)), state)


def find_campaign(plan: Plan, results: Path) -> Path | None:
    """Find the newest campaign of the same experiment, profile, testbed and overrides."""
    home = results / plan.experiment
    wanted = _identity(_head_of(plan))
    for folder in sorted(home.glob(f"{plan.profile or 'full'}-*/"), key=_begun, reverse=True):
        if _identity(read_head(folder / PLAN)) == wanted:
            return folder
    return None


def _head_of(plan: Plan) -> Mapping[str, object]:
    return {
        "schema": plan.schema_version,
        "experiment": plan.experiment,
        "profile": plan.profile,
        "testbed": plan.testbed,
        "overrides": dict(plan.overrides),
    }


def _begun(folder: Path) -> str:
    return folder.name[-len("YYYYMMDD-HHMMSS") :]


def _identity(head: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(head.get(key) or None for key in IDENTITY)


def read_head(file: Path) -> Mapping[str, object]:
    """Read a plan.json as plain values, also one of another schema; empty when it is none."""
    try:
        head = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return head if isinstance(head, dict) else {}


def begin_campaign(plan: Plan, results: Path, sources: Mapping[str, bytes], emit: Emit) -> Path:
    """Begin a campaign with its plan and the definition files, by the name that they get there.

    Raises CampaignError when there is one of this second.
    """
    home = results / plan.experiment
    folder = home / f"{plan.profile or 'full'}-{datetime.now(UTC).astimezone():{STAMP}}"
    try:
        (folder / "trials").mkdir(parents=True)
    except FileExistsError:
        raise CampaignError(f"{folder}: exists already; start again in a second") from None
    for name, content in sources.items():
        write_whole(folder / name, content)
    write_whole(folder / PLAN, plan.to_json())
    point_latest(folder)
    emit(Event("campaign-created", {"folder": str(folder)}))
    return folder


def point_latest(folder: Path) -> None:
    """Let `latest` name the campaign that was worked on last."""
    fresh = folder.parent / f".{LATEST}-{folder.name}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder.name)
    fresh.replace(folder.parent / LATEST)


def read_plan(folder: Path) -> Plan:
    """Read the plan of a campaign; raises CampaignError when the folder has none."""
    file = folder / PLAN
    if not file.is_file():
        raise CampaignError(
            f"{folder}: no campaign: it has no plan.json; accepted: a folder that `fab run` made"
        )
    return _read_plan(file)


def _read_plan(file: Path) -> Plan:
    try:
        return Plan.from_json(file.read_bytes())
    except PlanError as error:
        raise PlanError(f"{file.parent}: {error}") from error


def testbeds_of(names: str) -> tuple[str, ...]:
    """Return the testbeds of a plan's key `testbed`, which has commas between several."""
    return tuple(names.split(","))


def join_testbeds(names: Iterable[str]) -> str:
    """Return the key `testbed` of a plan for one or several testbeds."""
    return ",".join(names)


def plan_name(testbed: str = "") -> str:
    """Name the file that has a campaign's plan, or its trials as they are on one of its testbeds."""
    return f"{TESTBEDS}/{testbed}/{PLAN}" if testbed else PLAN


def read_plans(folder: Path, testbed: str = "") -> Iterator[Plan]:
    """Read the plan of a campaign, or of one of its testbeds, then the earlier ones, newest first."""
    name = plan_name(testbed)
    if not testbed:
        yield read_plan(folder)
    elif (folder / name).is_file():
        yield _read_plan(folder / name)
    for number in sorted(_kept_numbers(folder), reverse=True):
        file = folder / EARLIER / str(number) / name
        if file.is_file():
            yield _read_plan(file)


def read_state(folder: Path) -> CampaignState:
    """Read what a campaign's journal says of it; one that has none has not started."""
    journal = folder / JOURNAL
    return fold(read_journal(journal)) if journal.exists() else fold(())


def trial_statuses(state: CampaignState) -> dict[str, str]:
    """Say of each trial that a journal knows whether it is done, else how its last attempt ended."""
    return {id_: DONE if not is_open(trial) else _ended(trial) for id_, trial in state.trials.items()}


def _ended(trial: TrialState) -> str:
    return {"completed": "invalid", "in flight": "interrupted"}.get(trial.status, trial.status)


@dataclass(frozen=True)
class Replacement:
    """Files of a campaign that are to be others; what they were is kept in plans/<number>/."""

    folder: Path
    fresh: Mapping[str, bytes]
    number: int

    @property
    def kept(self) -> str:
        """Name the folder that keeps the files as they were."""
        return f"{EARLIER}/{self.number}"

    def keep(self) -> None:
        """Copy each file as it is, and what trials were made with, to its place among the earlier ones."""
        for name in (*self.fresh, "provenance.json"):
            content = _bytes(self.folder / name)
            if content is not None:
                write_whole(self.folder / self.kept / name, content)

    def write(self) -> None:
        """Put the fresh files in place, the plan last: with it the campaign is another."""
        for name in sorted(self.fresh, key=lambda name: name == PLAN):
            write_whole(self.folder / name, self.fresh[name])


def replacement_of(folder: Path, plan: Plan, sources: Mapping[str, bytes]) -> Replacement | None:
    """Find which of a campaign's files a plan and its definition would make others; None when none."""
    fresh = {**sources, PLAN: plan.to_json()}
    differing = {name: data for name, data in fresh.items() if _bytes(folder / name) != data}
    return Replacement(folder, differing, _next_number(folder)) if differing else None


def _next_number(folder: Path) -> int:
    """Number what is to be kept: as before where a crash came between keeping and replacing."""
    last = max(_kept_numbers(folder), default=0)
    same = last and _bytes(folder / EARLIER / str(last) / PLAN) == _bytes(folder / PLAN)
    return last if same else last + 1


def _kept_numbers(folder: Path) -> list[int]:
    return [int(one.name) for one in (folder / EARLIER).glob("*") if one.name.isdecimal()]


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
