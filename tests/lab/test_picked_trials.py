"""One campaign in three runs: picked trials, the other trials, and a trial that runs again."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from samovar.campaign.collection import verify
from samovar.events import silent
from tests.lab.campaigns import BUSY, Checkout, make_checkout

pytestmark = pytest.mark.proof  # boots a lab and runs three campaigns

NAME = "picked"
STRICT = "{cpu: 0.01%, late: 60s, rate: 90%}"
"""Thresholds with which every trial is suspect, because its hosts use more CPU time than 0.01 %."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = make_checkout(tmp_path_factory.mktemp("checkout"), retries=2)
    made.define(NAME, "{cc: [newreno, cubic]}", replicates=2)
    with made.running_lab():
        yield made


def started(checkout: Checkout) -> list[str]:
    """Return the level and replicate of the trial of each attempt, in the order of the attempts."""
    events = checkout.journal(NAME)
    return [one.values["id"].rpartition("-")[0] for one in events if one.event == "trial-started"]


def judge_by(checkout: Checkout, verdict: str) -> None:
    """Change the thresholds of the verdict, which are not part of the plan."""
    (checkout.folder / "config.yaml").write_text(f"retries: 2\nverdict: {verdict}\n")


def test_picked_trials_the_other_trials_and_a_repeated_trial_share_one_campaign(checkout: Checkout) -> None:
    judge_by(checkout, STRICT)
    code, said = checkout.run(NAME, "only=cc=cubic")
    assert code == 0, said
    assert "2 of 2 trials done" in said
    part = "2 of 4 trials were run (picked: cc=cubic)"
    assert f"{part}; to run the others: fab run picked --testbed lab" in said
    assert set(started(checkout)) == {"cubic-r1", "cubic-r2"}
    campaign = checkout.campaign(NAME)
    assert len(json.loads((campaign / "plan.json").read_bytes())["trials"]) == 4
    first = checkout.manifests(NAME)
    assert {one["verdict"] for one in first.values()} == {"suspect"}

    judge_by(checkout, BUSY)
    code, said = checkout.run(NAME)
    assert code == 0, said
    assert "were run (picked" not in said
    assert checkout.campaign(NAME) == campaign
    whole = checkout.manifests(NAME)
    assert len(whole) == 4
    assert {id_: whole[id_] for id_ in first} == first

    suspect = next(iter(first))
    attempts = len(started(checkout))
    code, said = checkout.run(NAME, "again=failed")
    assert (code, "nothing to run again" in said) == (0, True), said
    assert len(started(checkout)) == attempts
    code, said = checkout.run(NAME, "again=suspect", f"trial={suspect}")
    assert code == 0, said
    assert set(started(checkout)[attempts:]) == {suspect.rpartition("-")[0]}
    again = checkout.manifests(NAME)
    assert again[suspect]["attempt"] > first[suspect]["attempt"]
    assert {id_: one for id_, one in again.items() if id_ != suspect} == {
        id_: one for id_, one in whole.items() if id_ != suspect
    }
    kept = json.loads((campaign / "set-aside" / f"{suspect}-1" / "manifest.json").read_bytes())
    assert kept == first[suspect]
    assert not verify(campaign, silent).findings
