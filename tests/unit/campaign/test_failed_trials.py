"""Trials that fail or are interrupted: hosts are restored, and nothing is recorded that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.campaign.folder import begin_campaign, read_state
from samovar.campaign.journal import JOURNAL, Journal
from samovar.campaign.policy import ONE_ATTEMPT, Policy
from samovar.campaign.recovery import Restored, Restorer
from samovar.campaign.retries import TestbedSetup
from samovar.campaign.run import CampaignRun, Summary
from samovar.events import silent
from samovar.plan import Pick
from tests.unit.campaign.answering_hosts import CATALOGUE, AnsweringSessions, as_before, full_state
from tests.unit.plan_values import plan_of, trial

PLAN = plan_of([trial("cubic")])
(ID,) = PLAN.ids


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return begin_campaign(PLAN, tmp_path, {}, silent)


def run(folder: Path, sessions: AnsweringSessions) -> Summary:
    setup = TestbedSetup("lab", PLAN, sessions, policy=Policy(ONE_ATTEMPT))
    campaign = CampaignRun(folder, PLAN, {}, Pick().of(PLAN), [setup], CATALOGUE, silent)
    return campaign.run({"testbed": "lab", "hosts": {}})


def test_a_state_that_was_not_read_completely_is_not_recorded(folder: Path) -> None:
    def answer(host: str, step: str) -> str:
        return "" if (host, step) == ("dst", "read") else as_before(host, step)

    for _ in range(2):
        (reasons,) = run(folder, AnsweringSessions(answer)).failed.values()
        assert "dst: its state was not read completely" in reasons[0]
        assert read_state(folder).clean


def test_a_recorded_state_that_recipes_cannot_restore_is_a_problem_of_its_host_only(folder: Path) -> None:
    with Journal(folder / JOURNAL) as journal:
        journal.append("campaign-started", 1.0)
        for host, state in (("src", {}), ("dst", full_state("dst"))):
            journal.append("state-read", 1.0, id=ID, host=host, state=state)
    restored = Restored()
    Restorer("lab", AnsweringSessions(as_before), CATALOGUE, {}, silent, ONE_ATTEMPT).run([folder], restored)
    assert list(restored.hosts.values()) == [("dst",)]
    (problem,) = restored.problems
    assert problem.startswith(f"src: its state before trial {ID} cannot be restored: ")
    summary = run(folder, AnsweringSessions(as_before))
    assert list(summary.quarantined) == ["src"]
