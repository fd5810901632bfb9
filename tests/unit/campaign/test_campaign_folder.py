"""The folder of a campaign: which campaign a plan resumes, and how a changed plan is adopted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from samovar.campaign.folder import (
    PLAN,
    begin_campaign,
    find_resume_point,
    newest_campaign,
    point_latest,
    read_plan,
    read_plans,
    read_state,
    replace_plan,
)
from samovar.campaign.journal import JOURNAL, Journal, fold, read_journal
from samovar.campaign.past_campaigns import find_campaign
from samovar.campaign.run import adopt_plan
from samovar.errors import CampaignError, PlanError
from samovar.events import Event, silent
from samovar.plan import Pick, Plan
from tests.unit.plan_values import lasting, plan_of, trial

FIRST = plan_of([trial("cubic"), trial("cdg")])
LONGER = plan_of([trial("cubic", 1, lasting(12)), trial("cdg", 1, lasting(12))])
MORE = plan_of([trial(label, replicate) for replicate in (1, 2) for label in ("cubic", "cdg")])


def _begin(results: Path, plan: Plan = FIRST, stamp: str = "20260101-000000") -> Path:
    """Begin a campaign, and give its folder this time stamp: campaigns of one second would share a name."""
    folder = begin_campaign(plan, results, {}, silent)
    return folder.rename(folder.with_name(f"{plan.profile or 'full'}-{stamp}"))


def _run(folder: Path, *ids: str, verdict: str = "valid", outcome: str = "completed") -> None:
    with Journal(folder / JOURNAL) as journal:
        for id_ in ids:
            journal.append("trial-started", 1.0, id=id_, attempt=1)
            journal.append("trial-finished", 2.0, id=id_, outcome=outcome, verdict=verdict, reasons=[])


def _replace(folder: Path, plan: Plan, sources: dict[str, bytes] | None = None) -> bool:
    with Journal(folder / JOURNAL) as journal:

        def note(event: str, **values: object) -> None:
            journal.append(event, 3.0, **values)

        return replace_plan(folder, plan, sources or {}, note, fold(journal.entries))


def test_a_new_campaign_has_its_plan_and_the_link_latest_points_to_it(tmp_path: Path) -> None:
    events: list[Event] = []
    sources = {"experiment.yaml": b"experiment: x\n", "fragments/lan.yaml": b"path: {}\n"}
    folder = begin_campaign(FIRST, tmp_path, sources, events.append)
    assert [event.name for event in events] == ["campaign-created"]
    assert read_plan(folder).to_json() == FIRST.to_json()
    assert {name: (folder / name).read_bytes() for name in sources} == sources
    assert (tmp_path / "x" / "latest").resolve() == folder


def test_without_the_link_latest_the_last_used_campaign_of_an_experiment_is_found(
    tmp_path: Path,
) -> None:
    used, other = (_begin(tmp_path, stamp=f"2026010{day}-000000") for day in (1, 2))
    shard = begin_campaign(FIRST.model_copy(update={"shard": "1/2"}), tmp_path, {}, silent)
    for age_s, folder in enumerate((shard, used, other)):
        os.utime(folder / PLAN, (1_000_000_000 - age_s, 1_000_000_000 - age_s))
    (tmp_path / "x" / "latest").unlink()
    assert find_campaign(tmp_path, "x") == used
    with pytest.raises(CampaignError, match=r"no campaign 'y' in .*; known: x/full-"):
        find_campaign(tmp_path, "y")


def test_a_changed_plan_resumes_the_newest_campaign_of_its_experiment(tmp_path: Path) -> None:
    _begin(tmp_path, stamp="20260101-000000")
    newest = _begin(tmp_path, stamp="20260102-000000")
    assert newest_campaign(LONGER, tmp_path) == newest
    assert find_resume_point(LONGER, tmp_path).folder == newest


def test_of_two_campaigns_in_an_hour_that_autumn_repeats_the_one_begun_last_is_the_newest(
    tmp_path: Path,
) -> None:
    _begin(tmp_path, stamp="20261025-023000")
    newest = _begin(tmp_path, stamp="20261025-021500")
    point_latest(newest)
    assert newest_campaign(FIRST, tmp_path) == newest


@pytest.mark.parametrize(
    "other", [{"profile": "quick"}, {"testbed": "dumbbell"}, {"overrides": {"duration": "10s"}}]
)
def test_a_plan_with_another_profile_testbed_or_override_does_not_resume_the_campaign(
    tmp_path: Path, other: dict[str, object]
) -> None:
    _begin(tmp_path)
    assert newest_campaign(plan_of(FIRST.trials, **other), tmp_path) is None


def test_the_same_overrides_resume_the_campaign(tmp_path: Path) -> None:
    folder = _begin(tmp_path, plan_of(FIRST.trials, overrides={"duration": "10s"}))
    assert newest_campaign(plan_of(LONGER.trials, overrides={"duration": "10s"}), tmp_path) == folder
    assert newest_campaign(FIRST, tmp_path) is None


def test_the_option_new_ignores_campaigns_that_could_be_resumed(tmp_path: Path) -> None:
    _run(_begin(tmp_path), "cubic-r1-6")
    resume = find_resume_point(FIRST, tmp_path, new=True)
    assert resume.folder is None
    assert list(resume.comparison.runs.values()) == ["new", "new"]


@pytest.mark.parametrize("text", ['{"schema": 1, "experiment": "x"}', "{", "[]", ""])
def test_a_campaign_whose_plan_file_is_damaged_or_of_another_version_is_not_resumed(
    tmp_path: Path, text: str
) -> None:
    folder = _begin(tmp_path)
    (folder / "plan.json").write_text(text)
    assert newest_campaign(FIRST, tmp_path) is None


def test_there_is_nothing_to_do_when_all_trials_are_done_and_all_hosts_restored(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    assert not find_resume_point(FIRST, tmp_path).nothing_to_do
    _run(folder, "cubic-r1-6", "cdg-r1-6")
    assert find_resume_point(FIRST, tmp_path).nothing_to_do
    with Journal(folder / JOURNAL) as journal:
        journal.append("state-read", 3.0, id="cubic-r1-6", host="src", state={})
    assert not find_resume_point(FIRST, tmp_path).nothing_to_do


@pytest.mark.parametrize(
    ("outcome", "verdict", "why"),
    [
        ("completed", "invalid", "invalid"),
        ("failed", "invalid", "failed"),
        ("interrupted", "invalid", "interrupted"),
    ],
)
def test_a_trial_without_a_valid_result_runs_again(
    tmp_path: Path, outcome: str, verdict: str, why: str
) -> None:
    _run(_begin(tmp_path), "cubic-r1-6", outcome=outcome, verdict=verdict)
    assert find_resume_point(FIRST, tmp_path).comparison.runs == {"cubic-r1-6": why, "cdg-r1-6": "new"}


def test_a_changed_plan_replaces_the_earlier_plan_which_is_kept_and_listed_in_the_journal(
    tmp_path: Path,
) -> None:
    folder = _begin(tmp_path)
    before = (folder / "plan.json").read_bytes()
    _run(folder, "cubic-r1-6", "cdg-r1-6")
    assert _replace(folder, LONGER)
    assert (folder / "plans" / "1" / "plan.json").read_bytes() == before
    assert read_plan(folder).to_json() == LONGER.to_json()
    (change,) = (entry for entry in read_journal(folder / JOURNAL) if entry.event == "plan-changed")
    assert change.values["kept"] == "plans/1"
    assert change.values["runs"] == {"stale": 2}
    assert change.values["stale"] == [
        {"changes": ["duration_s 6 -> 12"], "results": ["cubic-r1-6", "cdg-r1-6"]}
    ]


def test_an_unchanged_plan_is_not_replaced(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    assert not _replace(folder, FIRST)
    assert not (folder / "plans").exists()


def test_every_replaced_plan_is_kept_and_can_be_read(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    for plan in (LONGER, MORE, FIRST):
        assert _replace(folder, plan)
    assert sorted(kept.name for kept in (folder / "plans").iterdir()) == ["1", "2", "3"]
    wanted = [plan.to_json() for plan in (FIRST, MORE, LONGER, FIRST)]
    assert [plan.to_json() for plan in read_plans(folder)] == wanted


def test_a_repeated_plan_replacement_after_an_interrupt_keeps_the_old_plan_once(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    assert _replace(folder, LONGER)
    (folder / "plan.json").write_bytes((folder / "plans" / "1" / "plan.json").read_bytes())
    assert _replace(folder, LONGER)
    assert [kept.name for kept in (folder / "plans").iterdir()] == ["1"]


def test_an_edited_comment_is_adopted_without_running_a_trial(tmp_path: Path) -> None:
    before, after = {"experiment.yaml": b"experiment: x\n"}, {"experiment.yaml": b"experiment: x  # a word\n"}
    folder = begin_campaign(FIRST, tmp_path, before, silent)
    _run(folder, "cubic-r1-6", "cdg-r1-6")
    assert adopt_plan(folder, FIRST, after, Pick().of(FIRST)).complete
    assert (folder / "experiment.yaml").read_bytes() == after["experiment.yaml"]
    assert (folder / "plans" / "1" / "experiment.yaml").read_bytes() == before["experiment.yaml"]
    assert not (folder / "plans" / "1" / "plan.json").exists()
    assert read_state(folder).last_event == "campaign-finished"


def test_adopting_an_unchanged_plan_writes_nothing(tmp_path: Path) -> None:
    folder = _begin(tmp_path)
    _run(folder, "cubic-r1-6", "cdg-r1-6")
    before = (folder / JOURNAL).read_bytes()
    assert adopt_plan(folder, FIRST, {}, Pick().of(FIRST)).done == 2
    assert (folder / JOURNAL).read_bytes() == before


def test_a_missing_or_truncated_plan_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"plan\.json is missing; use a folder that `fab run` made"):
        read_plan(tmp_path)
    (tmp_path / "plan.json").write_bytes(FIRST.to_json()[:200])
    with pytest.raises(PlanError, match=r"plan\.json: .*expected a plan written by samovar"):
        read_plan(tmp_path)


def test_the_plan_file_of_a_campaign_is_json(tmp_path: Path) -> None:
    assert json.loads((_begin(tmp_path) / "plan.json").read_bytes())["experiment"] == "x"
