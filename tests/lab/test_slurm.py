"""Commands as jobs of a real Slurm: failed jobs are reported with their last lines of output."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.slurm import NODES, Cluster, new_cluster

# The third job uses more memory than it may, and sleeps until Slurm, which samples memory every second, ends it.
FAILING = (
    "sleep 600",
    "scancel $SLURM_JOB_ID; sleep 600",
    """python3 -c 'b = b"x" * 1_500_000_000; import time; time.sleep(20)'""",
    "head -c 9M /dev/zero >full/file",
)
RUN = "import json, sys; from samovar.cli.cluster_jobs import Jobs, run_jobs; from pathlib import Path"
RUN += "; print('failed', run_jobs(Jobs('shard', json.loads(sys.argv[1]), 1000, 4, {}), 'slurm', Path(sys.argv[2]), ''))"


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    pytest.importorskip("snakemake", reason="needs .venv/bin/pip install '.[cluster]'")
    if os.geteuid():
        pytest.skip("Slurm's daemons need root")
    with new_cluster() as made:
        yield made


def run_in_slurm(slurm: Cluster, results: Path, commands: list[str], *before: str) -> str:
    """Run commands as jobs with a time limit of four minutes and 1000 MB; return the output, with the failed jobs."""
    words = [*slurm.inside, *before, sys.executable, "-c", RUN, json.dumps(commands), str(results)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    return done.stdout


def test_jobs_run_on_both_nodes_and_a_failed_job_is_reported(slurm: Cluster) -> None:
    results = slurm.folder / "results"
    said = run_in_slurm(slurm, results, ["sleep 1", "echo no such trial; exit 3", "sleep 1"])
    assert "failed [2]" in said, said
    assert "2/3  no such trial" in said
    assert set(re.findall(r"NodeList=(\S+)", (slurm.folder / "completed").read_text())) == set(NODES)
    assert list(results.iterdir()) == []


@pytest.mark.proof
def test_nodes_that_do_not_share_the_results_folder_are_reported(slurm: Cluster) -> None:
    results = slurm.folder / "not-shared"
    results.mkdir()
    mount = f'mount -t tmpfs none {results} && exec "$@"'
    said = run_in_slurm(slurm, results, ["true"], "unshare", "--mount", "sh", "-c", mount, "sh")
    assert (
        f"1/1  the job has not run, or its node does not have {results}, which all nodes must share" in said
    ), said
    assert "failed [1]" in said, said


@pytest.mark.proof
def test_jobs_that_slurm_ends_or_whose_disk_is_full_are_reported(slurm: Cluster) -> None:
    """Four jobs fail: by the time limit, a cancellation, too much memory and a full disk; two others succeed."""
    full = slurm.folder / "full"
    full.mkdir()
    subprocess.run([*slurm.inside, "mount", "-t", "tmpfs", "-o", "size=1m", "none", full], check=True)
    results = slurm.folder / "results"
    commands = ["true", *(one.replace("full/", f"{full}/") for one in FAILING), "true"]
    said = run_in_slurm(slurm, results, commands)
    assert "failed [2, 3, 4, 5]" in said, said
    assert f"2/6  on {socket.gethostname()}" in said
    assert "5/6  head: error writing 'standard output': No space left on device" in said
    assert list(results.iterdir()) == []
