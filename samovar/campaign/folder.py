"""Create the folder of a campaign, find the campaign that a plan resumes, and read or replace its plan."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from samovar.atomic_files import write_whole
from samovar.campaign.journal import JOURNAL, CampaignState, Note, fold, is_open, read_journal
from samovar.errors import CampaignError, PlanError
from samovar.events import Emit, Event
from samovar.plan import DONE, Comparison, Pick, Picked, Plan, compare

LATEST = "latest"
PLAN = "plan.json"
EARLIER = "plans"
TESTBEDS = "testbeds"
TIME_FORMAT = "%Y%m%d-%H%M%S"
IDENTITY = ("schema", "experiment", "profile", "testbed", "overrides", "shard")
"""Keys of plan.json that identify a campaign. A plan resumes a campaign if these keys are equal in both, even
if their trials differ."""


@dataclass(frozen=True)
class ResumePoint:
    """The campaign that a plan resumes, and the trials that are left to run.

    `folder` is None if the plan starts a new campaign. `comparison` has only the `picked` trials of the plan.
    """

    folder: Path | None
    comparison: Comparison
    state: CampaignState
    picked: Picked

    @property
    def nothing_to_do(self) -> bool:
        """Whether all trials have run and all hosts are restored."""
        return self.folder is not None and not self.comparison.runs and self.state.clean


def find_resume_point(plan: Plan, results: Path, new: bool = False, pick: Pick | None = None) -> ResumePoint:
    """Return the newest campaign that a plan can resume, and the trials that are left to run in it.

    With `new`, or if there is no such campaign, the run begins a new campaign.

    Raises DefinitionError or PlanError if `pick` selects trials that are not in the plan. Raises
    CampaignError if trials are to run again and no campaign exists.
    """
    folder = None if new else newest_campaign(plan, results)
    pick = pick or Pick()
    if pick.again and folder is None:
        raise CampaignError(
            f"{plan.experiment} has no campaign, so no trial can run again; `{run_command(plan)}` starts one"
        )
    state = read_state(folder) if folder else fold(())
    statuses = trial_statuses(state)
    picked = pick.of(plan, {id_: one.last_result for id_, one in state.trials.items()})
    if picked.again:
        statuses |= {id_: state.trials[id_].result for id_ in picked.ids}
    else:
        state.pick(picked.text, picked.ids)
    comparison = compare(plan, read_plan(folder) if folder else None, statuses)
    ids = set(picked.ids)
    stands = tuple(id_ for id_ in comparison.stands if id_ in ids)
    runs = {id_: why for id_, why in comparison.runs.items() if id_ in ids}
    return ResumePoint(folder, replace(comparison, stands=stands, runs=runs), state, picked)


def newest_campaign(plan: Plan, results: Path) -> Path | None:
    """Return the newest campaign of the same experiment, profile, testbed, overrides and shard, or None."""
    own, home = plan.head(), results / plan.experiment
    # Names end with the local time. Clocks repeat an hour in autumn, so the link `latest` counts first.
    latest = home / LATEST
    newest = latest.readlink().name if latest.is_symlink() else ""
    times = {
        folder: (folder.name == newest, folder.name[-len("YYYYMMDD-HHMMSS") :])
        for folder in home.glob(f"{plan.profile or 'full'}-*/")
    }
    for folder in sorted(times, key=times.__getitem__, reverse=True):
        head = read_json(folder / PLAN)
        if all((head.get(key) or None) == (own.get(key) or None) for key in IDENTITY):
            return folder
    return None


def read_json(file: Path) -> Mapping[str, object]:
    """Return the JSON object in a file, such as a plan.json of any schema version; empty if it has none."""
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def begin_campaign(plan: Plan, results: Path, sources: Mapping[str, bytes], emit: Emit) -> Path:
    """Create the folder of a new campaign with its plan and definition files, and return it.

    `sources` maps names of definition files in the folder to their content. Raises CampaignError if the
    folder exists because another campaign of this experiment and profile was created in the same second.
    """
    folder = new_folder(plan, results)
    try:
        (folder / "trials").mkdir(parents=True)
    except FileExistsError:
        why = "was created just now by another process; run the command again"
        raise CampaignError(f"{folder}: {why}") from None
    for name, content in sources.items():
        write_whole(folder / name, content)
    write_whole(folder / PLAN, plan.to_json())
    point_latest(folder)
    emit(Event("campaign-created", {"folder": str(folder)}))
    return folder


def new_folder(plan: Plan, results: Path) -> Path:
    """Return the path of the folder of a campaign that starts now."""
    time = f"{datetime.now(UTC).astimezone():{TIME_FORMAT}}"
    parts = plan.profile or "full", plan.shard.replace("/", "of"), time
    return results / plan.experiment / "-".join(filter(None, parts))


def point_latest(folder: Path) -> None:
    """Make the symbolic link `latest`, which is beside the campaign's folder, point to this campaign.

    The link never points to the campaign of a shard, which has only a part of the results.
    """
    if shard_of(folder):
        return
    fresh = folder.parent / f".{LATEST}-{folder.name}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder.name)
    fresh.replace(folder.parent / LATEST)


def read_plan(folder: Path) -> Plan:
    """Return the plan of a campaign.

    Raises CampaignError if the folder has no plan, and PlanError if the plan cannot be read.
    """
    file = folder / PLAN
    if not file.is_file():
        raise CampaignError(
            f"{folder}: not a campaign: plan.json is missing; use a folder that `fab run` made"
        )
    return _read_plan(file)


def _read_plan(file: Path) -> Plan:
    try:
        return Plan.from_json(file.read_bytes())
    except PlanError as error:
        raise PlanError(f"{file.parent}: {error}") from error


def testbeds_of(names: str) -> tuple[str, ...]:
    """Split the value of a plan's key `testbed` at commas; return the names of the testbeds."""
    return tuple(names.split(","))


def testbeds_in(folder: Path) -> tuple[str, ...]:
    """Return the names of a campaign's testbeds. Plans of earlier schema versions are accepted too."""
    return testbeds_of(str(read_json(folder / PLAN).get("testbed", "")))


def shard_of(folder: Path) -> str:
    """Return the shard of the plan, such as `2/4`, that a campaign runs; empty for the whole plan."""
    return str(read_json(folder / PLAN).get("shard") or "")


def run_command(plan: Plan) -> str:
    """Return the command that runs the trials of a plan, or resumes its campaign."""
    words = ["fab", "run", plan.experiment]
    words += ["--profile", plan.profile] if plan.profile else []
    words += ["--testbed", plan.testbed]
    for key, value in plan.overrides.items():
        words += ["--set", f"{key}={value}"]
    words += ["--shard", plan.shard] if plan.shard else []
    return shlex.join(words)


def read_plans(folder: Path, testbed: str = "") -> Iterator[Plan]:
    """Yield the present plan of a campaign and then its earlier plans, newest first.

    If several testbeds share the campaign, `testbed` selects the one whose plans are read.
    """
    name = f"{TESTBEDS}/{testbed}/{PLAN}" if testbed else PLAN
    numbers = sorted(_earlier_numbers(folder), reverse=True)
    for home in (folder, *(folder / EARLIER / str(number) for number in numbers)):
        if (home / name).is_file():
            yield _read_plan(home / name)


def read_state(folder: Path) -> CampaignState:
    """Return the state of a campaign as its journal records it. Without a journal, no trial has run."""
    journal = folder / JOURNAL
    return fold(read_journal(journal)) if journal.exists() else fold(())


def trial_statuses(state: CampaignState) -> dict[str, str]:
    """Return the status of each trial that has run, by id: DONE, or how the last attempt ended.

    A trial is DONE if it completed and its verdict is not invalid.
    """
    return {
        id_: ("interrupted" if trial.status == "in flight" else trial.result) if is_open(trial) else DONE
        for id_, trial in state.trials.items()
    }


def replace_plan(
    folder: Path, plan: Plan, sources: Mapping[str, bytes], note: Note, state: CampaignState
) -> bool:
    """Replace the plan and definition files of a campaign; return whether any file differed.

    The folder plans/N keeps the previous version of each changed file, and the provenance.json of the trials
    that were run with the previous plan. The journal records how many results remain valid and how many
    trials must run. The plan is written last, so that after a crash the old plan is still in force.
    """
    fresh = {**sources, PLAN: plan.to_json()}
    differing = {name: data for name, data in fresh.items() if _content(folder / name) != data}
    if not differing:
        return False
    comparison = compare(plan, read_plan(folder), trial_statuses(state))
    number = max(_earlier_numbers(folder), default=0)
    # If an earlier controller crashed before it replaced the plan, its folder plans/N is used again.
    if not number or _content(folder / EARLIER / str(number) / PLAN) != _content(folder / PLAN):
        number += 1
    kept = f"{EARLIER}/{number}"
    for name in (*differing, "provenance.json"):
        content = _content(folder / name)
        if content is not None:
            write_whole(folder / kept / name, content)
    note(
        "plan-changed",
        kept=kept,
        stands=len(comparison.stands),
        runs=comparison.counts,
        stale=[{"changes": one.changes, "results": one.results} for one in comparison.stale],
        orphans=comparison.orphans,
    )
    for name in sorted(differing, key=lambda name: name == PLAN):
        write_whole(folder / name, differing[name])
    return True


def _earlier_numbers(folder: Path) -> list[int]:
    return [int(one.name) for one in (folder / EARLIER).glob("*") if one.name.isdecimal()]


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
