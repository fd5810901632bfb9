"""Shards of a run: options that are refused before anything starts, output of shards, and their end by a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from samovar.cli.cluster_jobs import run_processes
from samovar.cli.commands import run_commands
from samovar.cli.controller import Controller

ROOT = Path(__file__).parents[3]
EXPERIMENT = """
experiment: mine
title: Mine
testbed: lab
path: {rate: 10Mbit, rtt: 4ms, aqm: pfifo, buffer: 40packets}
duration: 2s
replicates: 4
traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver}]
captures: [{at: sender}]
factors: {cc: [cubic]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.yaml").write_text(EXPERIMENT)
    (tmp_path / "hosts").mkdir()
    text = (ROOT / "hosts" / "lab.yaml").read_text()
    (tmp_path / "hosts" / "lab.yaml").write_text(text)
    (tmp_path / "hosts" / "large.yaml").write_text(
        text.replace("testbed: lab", "testbed: large").replace("lab:", "lab: {memory: 500GB}  #", 1)
    )
    (tmp_path / "config.yaml").write_text("testbed: lab\n")
    return tmp_path


def test_labs_of_shards_on_two_nodes_of_a_cluster_have_different_folders(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = []
    for node in ("one", "two", "one"):
        monkeypatch.setenv("SLURMD_NODENAME", node)
        folders.append(Controller(project).connections.lab_folder("lab", "1/4"))
    assert folders[0] == folders[2] != folders[1]


INVALID_OPTIONS = [
    (["--shards", "5"], "mine can be divided into at most 4 shards", 1),
    (["--shards", "0"], "0 is not in the range x>=1", 2),
    (["--shards", "2", "--shard", "1/2"], "--shards runs all trials", 2),
    (["--shards", "2", "--only", "cc=cubic"], "--shards runs all trials", 2),
    (["--shards", "2", "--events", "-"], "--shards runs all trials", 2),
    (["--on", "slurm"], "--on needs --shards, such as --shards 4", 2),
    (["--shard", "3/2"], "not a shard; must be NUMBER/SHARDS, counted from 1, such as 2/4", 1),
    (["--shards", "2", "--testbed", "example-linux"], "has real hosts, which run one trial at a time", 1),
    (["--shards", "2", "--testbed", "large"], "2 labs need 1000.0 GB of memory, but only", 1),
]


@pytest.mark.parametrize(("options", "message", "code"), INVALID_OPTIONS, ids=lambda one: str(one)[:40])
def test_invalid_options_of_shards_are_refused_before_anything_starts(
    project: Path, options: list[str], message: str, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_commands(["run", "mine", *options], project) == code
    assert message in " ".join(capfd.readouterr().err.split())
    assert not (project / "results").exists()
    assert not (project / ".lab").exists()


def test_merging_an_experiment_without_shards_prints_the_command_that_makes_one(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "results" / "mine").mkdir(parents=True)
    assert run_commands(["merge", "mine"], project) == 1
    assert "no shard; `fab run mine --shard 1/2` makes the first of two" in capfd.readouterr().err


SHARDS = """
from pathlib import Path
from samovar.cli.cluster_jobs import run_processes
script = ["sh", "-c", "echo started; exec sleep 60"]
run_processes({"1/2": script, "2/2": script}, Path("."), "again")
"""


def test_sigterm_ends_a_command_with_shards_even_if_it_ignores_sigint() -> None:
    """Commands that a shell script starts in the background ignore SIGINT, and so do their child processes."""
    with subprocess.Popen(
        [sys.executable, "-c", SHARDS],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as command:
        assert command.stdout
        started = [command.stdout.readline() for _ in range(2)]
        command.send_signal(signal.SIGTERM)
        try:
            assert command.wait(20) != 0
        finally:
            command.kill()
    assert sorted(started) == ["1/2  started\n", "2/2  started\n"]


def test_lines_that_shards_print_at_the_same_time_are_not_mixed(capfd: pytest.CaptureFixture[str]) -> None:
    script = ["sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo line; i=$((i + 1)); done"]
    run_processes({"1/2": script, "2/2": script}, ROOT, "again")
    lines = capfd.readouterr().out.splitlines()
    assert (len(lines), set(lines)) == (6000, {"1/2  line", "2/2  line"})
