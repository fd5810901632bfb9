"""Campaigns in which only picked trials were run: resuming, the journal, and running the other trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.campaign.availability.findings import Finding, findings_of, require_runnable
from samovar.campaign.folder import begin_campaign, find_resume_point, read_state
from samovar.campaign.journal import JOURNAL, Journal, fold, is_open, read_journal
from samovar.campaign.policy import ONE_ATTEMPT, Policy
from samovar.campaign.retries import TestbedSetup
from samovar.campaign.run import CampaignRun, adopt_plan, note_pick, summarise
from samovar.cli.show_status import CampaignStatus, status_json, status_lines, trial_states
from samovar.errors import CampaignError, TestbedError
from samovar.events import silent
from samovar.plan import Pick
from tests.unit.campaign.answering_hosts import CATALOGUE, AnsweringSessions, unchanged_answer
from tests.unit.plan_values import plan_of, trial

PLAN = plan_of([trial(cc, replicate) for replicate in (1, 2) for cc in ("cubic", "cdg", "newreno")])
CUBIC = ("cubic-r1-6", "cubic-r2-6")
ONLY_CUBIC = Pick(only=("cc=cubic",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return begin_campaign(PLAN, tmp_path, {}, silent)


def run(folder: Path, pick: Pick | None, *ids: str, verdict: str = "valid") -> None:
    """Write the journal of a run of picked trials which completed the trials `ids`."""
    picked = find_resume_point(PLAN, folder.parent.parent, pick=pick).picked
    with Journal(folder / JOURNAL) as journal:
        state = fold(journal.entries)
        journal.append("campaign-resumed" if state.controllers else "campaign-started", 1.0, trials=6)
        note_pick(picked, state, journal.note)
        for id_ in ids:
            journal.append("trial-started", 1.0, id=id_, attempt=1)
            ended = {"outcome": "completed", "verdict": verdict, "reasons": [], "overhead_s": 1.0}
            journal.append("trial-finished", 2.0, id=id_, **ended)
        journal.append("campaign-finished", 3.0, completed=len(ids), failed=[])


def test_only_picked_trials_are_missing_in_a_run_with_a_pick(folder: Path) -> None:
    results = folder.parent.parent
    assert list(find_resume_point(PLAN, results, pick=ONLY_CUBIC).comparison.runs) == list(CUBIC)
    run(folder, ONLY_CUBIC, "cubic-r1-6")
    assert list(find_resume_point(PLAN, results, pick=ONLY_CUBIC).comparison.runs) == ["cubic-r2-6"]
    run(folder, ONLY_CUBIC, "cubic-r2-6")
    assert find_resume_point(PLAN, results, pick=ONLY_CUBIC).nothing_to_do
    assert len(find_resume_point(PLAN, results).comparison.runs) == 4


def test_trials_that_were_not_picked_are_not_failures_and_the_status_shows_the_pick(folder: Path) -> None:
    run(folder, ONLY_CUBIC, *CUBIC)
    state = read_state(folder)
    text = "2 of 6 trials were run (picked: cc=cubic)"
    assert state.part_text(PLAN.ids) == text
    assert [id_ for id_, word in trial_states(PLAN, state).items() if word == "not picked"] == [
        id_ for id_ in PLAN.ids if id_ not in CUBIC
    ]
    status = CampaignStatus(folder, PLAN, state, 10.0)
    lines = list(status_lines(status, 100))
    assert lines[-2:] == ["2 of 6 trials done", f"{text}; to run the others: fab run x --testbed lab"]
    assert "✓ 2 valid  ○ 4 not picked" in lines
    assert status_json(status)["picked"] == ["cc=cubic"]
    assert status_json(status)["trials_left"] == 0
    picked = ONLY_CUBIC.of(PLAN)
    summary = summarise(folder, PLAN, state, picked.ids)
    assert (summary.done, summary.trials, summary.complete, summary.part) == (2, 2, True, text)


def test_trials_of_several_picks_add_up_until_the_campaign_is_complete(folder: Path) -> None:
    run(folder, ONLY_CUBIC, *CUBIC)
    run(folder, Pick(only=("cc=cdg",)), "cdg-r1-6", "cdg-r2-6")
    text = "4 of 6 trials were run (picked: cc=cubic; cc=cdg)"
    assert read_state(folder).part_text(PLAN.ids) == text
    run(folder, Pick(only=("cc=newreno",)), "newreno-r1-6", "newreno-r2-6")
    assert read_state(folder).part_text(PLAN.ids) == ""
    assert find_resume_point(PLAN, folder.parent.parent).nothing_to_do


def test_after_a_run_of_the_whole_plan_all_trials_that_have_not_run_are_missing(folder: Path) -> None:
    run(folder, ONLY_CUBIC, *CUBIC)
    run(folder, None, "cdg-r1-6")
    state = read_state(folder)
    assert (state.picks, state.part_text(PLAN.ids)) == ((), "")
    assert len(CampaignStatus(folder, PLAN, state, 10.0).open) == 3


def test_the_same_pick_is_recorded_once(folder: Path) -> None:
    for _ in range(2):
        run(folder, ONLY_CUBIC, *CUBIC)
    picks = [entry.values for entry in read_journal(folder / JOURNAL) if entry.event == "trials-picked"]
    assert picks == [{"pick": "cc=cubic", "trials": list(CUBIC)}]
    before = (folder / JOURNAL).read_bytes()
    adopt_plan(folder, PLAN, {}, ONLY_CUBIC.of(PLAN))
    assert (folder / JOURNAL).read_bytes() == before


def test_picked_suspect_trials_run_again_although_they_are_done(folder: Path) -> None:
    run(folder, None, *PLAN.ids[1:])
    run(folder, None, PLAN.ids[0], verdict="suspect")
    results = folder.parent.parent
    assert find_resume_point(PLAN, results).nothing_to_do
    again = find_resume_point(PLAN, results, pick=Pick(again=("suspect",)))
    assert again.comparison.runs == {PLAN.ids[0]: "suspect"}
    assert find_resume_point(PLAN, results, pick=Pick(again=("failed",))).nothing_to_do
    assert not read_state(folder).picks


def test_a_suspect_trial_that_should_run_again_but_did_not_is_missing(folder: Path) -> None:
    run(folder, None, *PLAN.ids[1:])
    run(folder, None, PLAN.ids[0], verdict="suspect")
    picked = find_resume_point(PLAN, folder.parent.parent, pick=Pick(again=("suspect",))).picked
    sessions = AnsweringSessions(unchanged_answer)
    policy = Policy(ONE_ATTEMPT.model_copy(update={"free_space": 10**18}))  # more than any disk has
    setup = TestbedSetup("lab", PLAN, sessions, policy=policy)
    campaign = CampaignRun(folder, PLAN, {}, picked, [setup], CATALOGUE, silent)
    summary = campaign.run({"testbed": "lab", "hosts": {}})
    assert summary.stopped
    assert (summary.done, summary.trials, summary.failed) == (0, 1, {PLAN.ids[0]: ()})


@pytest.mark.parametrize("end", ["crash", "interrupt"])
def test_an_interrupted_repetition_is_resumed_by_the_same_pick(folder: Path, end: str) -> None:
    run(folder, None, *PLAN.ids[2:])
    run(folder, None, *PLAN.ids[:2], verdict="suspect")
    with Journal(folder / JOURNAL) as journal:
        journal.append("trial-reopened", 4.0, id=PLAN.ids[0])
        journal.append("trial-set-aside", 4.0, id=PLAN.ids[0], folder="set-aside/x")
        journal.append("trial-started", 4.0, id=PLAN.ids[0], attempt=2)
        if end == "interrupt":
            ended = {"outcome": "interrupted", "verdict": "invalid", "reasons": [], "overhead_s": 1.0}
            journal.append("trial-finished", 5.0, id=PLAN.ids[0], **ended)
    results = folder.parent.parent
    again = find_resume_point(PLAN, results, pick=Pick(again=("suspect",)))
    assert list(again.comparison.runs) == list(PLAN.ids[:2])
    run(folder, None, PLAN.ids[0], verdict="valid")
    again = find_resume_point(PLAN, results, pick=Pick(again=("suspect",)))
    assert list(again.comparison.runs) == [PLAN.ids[1]]


def test_a_reopened_trial_is_open_before_it_starts_again(folder: Path) -> None:
    run(folder, None, *PLAN.ids)
    with Journal(folder / JOURNAL) as journal:
        journal.append("trial-reopened", 4.0, id=PLAN.ids[0])
    state = read_state(folder)
    assert is_open(state.trials[PLAN.ids[0]])
    assert list(find_resume_point(PLAN, folder.parent.parent).comparison.runs) == [PLAN.ids[0]]


def test_a_request_to_run_trials_again_is_refused_without_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="x has no campaign, so no trial can run again; `fab run x"):
        find_resume_point(PLAN, tmp_path, pick=Pick(again=("failed",)))


def test_a_testbed_has_to_meet_only_the_requirements_of_the_picked_trials() -> None:
    no_cdg = Finding("src", "no congestion control cdg", "", True, ("cdg-r1-6", "cdg-r2-6"))
    with pytest.raises(TestbedError, match="the other 4 of 6 trials can run"):
        require_runnable(PLAN, {"lab": [no_cdg]}, False, PLAN.ids)
    assert require_runnable(PLAN, {"lab": findings_of([no_cdg], CUBIC)}, False, CUBIC) == [{}]
    no_route = Finding("src", "no route", "", True)
    with pytest.raises(TestbedError, match="no route"):
        require_runnable(PLAN, {"lab": findings_of([no_route], CUBIC)}, False, CUBIC)
