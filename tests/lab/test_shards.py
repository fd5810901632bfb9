"""Shards of a campaign: in several labs at once, and as jobs of a real Slurm that loses a node."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from samovar.campaign import read_state
from samovar.campaign.collection import verify
from samovar.campaign.journal import read_journal
from tests.lab.campaigns import SAMOVAR, Checkout, make_checkout
from tests.lab.slurm import Cluster, new_cluster

pytestmark = pytest.mark.proof  # boots several labs at the same time

NAME = "shared"
TRIALS = 8
COMPARED = ("throughput_bps", "rtt_median_ms")
RATE = 0.04
"""The rate of a valid trial's bottleneck deviates by at most this share from the requested rate."""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "checkout").mkdir()
    made = make_checkout(tmp_path / "checkout", retries=3, verdict=f"{{rate: {RATE:.0%}}}")
    made.define(NAME, "{cc: [newreno, cubic]}", replicates=4)
    return made


@pytest.fixture
def slurm() -> Iterator[Cluster]:
    pytest.importorskip("snakemake", reason="needs .venv/bin/pip install '.[cluster]'")
    with new_cluster() as made:
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
    """Wait until `number` trials of the shards are complete."""
    deadline_s = time.monotonic() + limit_s
    while len(completed(checkout)) < number:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline_s, f"{started(checkout)} started"
        time.sleep(0.5)


def run_command(checkout: Checkout, shards: int, *options: str) -> list[str]:
    return [*SAMOVAR, str(checkout.folder), "run", NAME, "--shards", str(shards), *options]


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["env", "--default-signal=HUP,INT,TERM", *command],
        cwd=Path(__file__).parents[2],
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def assert_merged(checkout: Checkout, said: str, of: int) -> None:
    """Check that the last command has merged all trials into one campaign."""
    assert f"{of} of {of} trials done" in said, said
    campaign = checkout.campaign(NAME)
    assert not re.search("[0-9]of[0-9]", campaign.name)
    assert not verify(campaign).findings
    assert len(checkout.manifests(NAME)) == of
    assert not list((checkout.folder / "results").glob(".jobs-*"))


def test_shards_run_in_two_labs_and_after_an_interrupt_only_the_missing_trials_run(
    checkout: Checkout,
) -> None:
    first = start(run_command(checkout, 2))
    wait_for(checkout, 2, first)
    first.send_signal(signal.SIGINT)
    said, _ = first.communicate(timeout=300)
    assert first.returncode == 130, said
    assert f"to resume: fab run {NAME} --shards 2" in said
    done = completed(checkout)
    assert 2 <= len(done) < TRIALS
    before = started(checkout)

    second = start(run_command(checkout, 2))
    said, _ = second.communicate(timeout=900)
    assert second.returncode == 0, said
    assert_merged(checkout, said, TRIALS)
    assert {id_: started(checkout)[id_] for id_ in done} == {id_: before[id_] for id_ in done}
    assert re.search("^1/2  ", said, re.MULTILINE)
    assert re.search("^2/2  ", said, re.MULTILINE)


def test_a_node_that_slurm_loses_leaves_only_its_unfinished_trials_missing(
    checkout: Checkout, slurm: Cluster
) -> None:
    checkout.define(NAME, "{cc: [newreno, cubic]}", replicates=12)
    command = [*slurm.inside, *run_command(checkout, 4, "--on", "slurm")]
    first = start(command)
    wait_for(checkout, 8, first)
    lost = next(iter(reversed(completed(checkout).values())))
    slurm.kill_node(lost)
    said, _ = first.communicate(timeout=1800)
    assert first.returncode == 1, said
    assert f"; to run the missing trials: fab run {NAME} --shards 4 --on slurm" in said
    done, before = completed(checkout), started(checkout)
    assert 8 <= len(done) < 24

    slurm.start_node(lost)
    slurm.wait_for_nodes()
    second = start(command)
    said, _ = second.communicate(timeout=1800)
    assert second.returncode == 0, said
    assert_merged(checkout, said, 24)
    assert {id_: started(checkout)[id_] for id_ in done} == {id_: before[id_] for id_ in done}
    merged = checkout.campaign(NAME)
    trials = read_state(merged).trials
    assert {trial.node for trial in trials.values()} == {"n1", "n2"}
    assert {id_: trials[id_].node for id_ in done} == done

    analyse(checkout, merged, *slurm.inside, on="slurm")
    in_shards = checkout.manifests(NAME)
    alone = start([*SAMOVAR, str(checkout.folder), "run", NAME, "--new"])
    said, _ = alone.communicate(timeout=1800)
    assert alone.returncode == 0, said
    analyse(checkout, checkout.campaign(NAME))
    in_one_lab = checkout.manifests(NAME)
    assert in_shards.keys() == in_one_lab.keys()
    valid = {id_ for id_ in in_shards if in_shards[id_]["verdict"] == in_one_lab[id_]["verdict"] == "valid"}
    print(f"{len(valid)} of 24 trials are valid in both campaigns")
    assert len(valid) >= 12
    assert_same_within_spread(metrics(merged), metrics(checkout.campaign(NAME)), valid)


def analyse(checkout: Checkout, campaign: Path, *inside: str, on: str = "local") -> None:
    process = start([*inside, *SAMOVAR, str(checkout.folder), "analyse", str(campaign), "--on", on])
    said, _ = process.communicate(timeout=900)
    assert process.returncode == 0, said


def metrics(campaign: Path) -> dict[str, dict[tuple[str, str], float]]:
    """Return the value of each compared metric by congestion control and trial."""
    found: dict[str, dict[tuple[str, str], float]] = {name: {} for name in COMPARED}
    with (campaign / "tables" / "metrics.csv").open() as file:
        for row in csv.DictReader(file):
            if row["metric"] in COMPARED and row["flow"] == "bulk":
                found[row["metric"]][row["cc"], row["trial"]] = float(row["value"])
    return found


def assert_same_within_spread(
    shards: dict[str, dict[tuple[str, str], float]],
    alone: dict[str, dict[tuple[str, str], float]],
    valid: set[str],
) -> None:
    """Check that no valid trial of the shards differs more from the same trial of one lab than trials may vary.

    Because trials vary between replicates, a difference of up to twice the range of a treatment's valid replicates in
    one lab is allowed.
    A throughput may also differ by the tolerance of the verdict for the rate of the bottleneck.
    """
    for metric, values in alone.items():
        assert shards[metric].keys() == values.keys()
        for cc in ("newreno", "cubic"):
            of_cc = {trial: value for (name, trial), value in values.items() if name == cc and trial in valid}
            least, most = min(of_cc.values()), max(of_cc.values())
            allowed = max(2 * (most - least), RATE * most if metric == "throughput_bps" else 0)
            apart = max(abs(shards[metric][cc, trial] - value) for trial, value in of_cc.items())
            print(f"{metric} {cc}: {least:g} to {most:g} in one lab, trials of shards within {apart:g}")
            assert apart <= allowed, metric
