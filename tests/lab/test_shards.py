"""Shards of a campaign in labs side by side, and as jobs of a real Slurm with a node that is lost."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from samovar.campaign import read_state
from samovar.campaign.collection import verify
from samovar.campaign.journal import read_journal
from tests.lab.campaigns import SAMOVAR, Checkout, make_checkout
from tests.lab.slurm import Cluster, cluster

pytestmark = pytest.mark.proof  # boots several labs at the same time

NAME = "shared"
TRIALS = 8


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "checkout").mkdir()
    made = make_checkout(tmp_path / "checkout", retries=1)
    made.define(NAME, "{cc: [newreno, cubic]}", replicates=4)
    return made


@pytest.fixture
def slurm() -> Iterator[Cluster]:
    pytest.importorskip("snakemake", reason="needs .venv/bin/pip install '.[cluster]'")
    # Not in tmp_path, which only root can enter, but munged has a user of its own.
    with TemporaryDirectory(prefix="slurm-") as name:
        Path(name).chmod(0o755)
        with cluster(Path(name) / "cluster") as made:
            yield made


def started(checkout: Checkout) -> Counter[str]:
    """Return how many attempts at each trial the journals of all shards have."""
    journals = (checkout.folder / "results" / NAME).glob("*of*/journal.jsonl")
    events = (entry for file in journals for entry in read_journal(file))
    return Counter(str(entry.values["id"]) for entry in events if entry.event == "trial-started")


def completed(checkout: Checkout) -> dict[str, str]:
    """Return the node on which each complete trial of the shards was run."""
    folders = (file.parent for file in (checkout.folder / "results" / NAME).glob("*of*/journal.jsonl"))
    trials = (trial for folder in folders for trial in read_state(folder).with_status("completed"))
    return {trial.id: trial.node for trial in trials}


def wait_for(checkout: Checkout, number: int, process: subprocess.Popen[str], limit_s: float = 900) -> None:
    """Wait until so many trials of the shards are complete."""
    deadline_s = time.monotonic() + limit_s
    while len(completed(checkout)) < number:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline_s, f"{started(checkout)} started"
        time.sleep(0.5)


def run_command(checkout: Checkout, *options: str) -> list[str]:
    return [*SAMOVAR, str(checkout.folder), "run", NAME, "--shards", "2", *options]


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["env", "--default-signal=HUP,INT,TERM", *command],
        cwd=Path(__file__).parents[2],
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def assert_merged(checkout: Checkout, said: str) -> None:
    """Check that the last command has made one campaign of all trials."""
    assert f"{TRIALS} of {TRIALS} trials done" in said, said
    campaign = checkout.campaign(NAME)
    assert not re.search("[0-9]of[0-9]", campaign.name)
    assert not verify(campaign).findings
    assert len(checkout.manifests(NAME)) == TRIALS
    assert not list((checkout.folder / "results").glob(".shards-*"))


def test_labs_run_side_by_side_and_after_an_interrupt_only_what_is_missing_runs(checkout: Checkout) -> None:
    first = start(run_command(checkout))
    wait_for(checkout, 2, first)
    first.send_signal(signal.SIGINT)
    said, _ = first.communicate(timeout=300)
    assert first.returncode == 130, said
    assert f"to resume: fab run {NAME} --shards 2" in said
    done = completed(checkout)
    assert 2 <= len(done) < TRIALS
    before = started(checkout)

    second = start(run_command(checkout))
    said, _ = second.communicate(timeout=900)
    assert second.returncode == 0, said
    assert_merged(checkout, said)
    assert {id_: started(checkout)[id_] for id_ in done} == {id_: before[id_] for id_ in done}
    assert re.search("^1/2  ", said, re.MULTILINE)
    assert re.search("^2/2  ", said, re.MULTILINE)


def test_a_node_that_is_lost_under_slurm_costs_its_unfinished_trials_only(
    checkout: Checkout, slurm: Cluster
) -> None:
    command = [*slurm.inside, *run_command(checkout, "--on", "slurm")]
    first = start(command)
    wait_for(checkout, 2, first)
    lost = next(iter(completed(checkout).values()))
    slurm.kill_node(lost)
    said, _ = first.communicate(timeout=900)
    assert first.returncode == 1, said
    assert f"; to run the missing trials: fab run {NAME} --shards 2 --on slurm" in said
    done, before = completed(checkout), started(checkout)
    assert 2 <= len(done) < TRIALS

    slurm.start_node(lost)
    slurm.wait_for_nodes()
    second = start(command)
    said, _ = second.communicate(timeout=900)
    assert second.returncode == 0, said
    assert_merged(checkout, said)
    assert {id_: started(checkout)[id_] for id_ in done} == {id_: before[id_] for id_ in done}
    trials = read_state(checkout.campaign(NAME)).trials
    assert {trial.node for trial in trials.values()} == {"n1", "n2"}
    assert {id_: trials[id_].node for id_ in done} == done
