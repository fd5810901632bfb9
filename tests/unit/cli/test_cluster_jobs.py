"""Jobs of Snakemake: errors before anything starts, output of jobs, and a recorded campaign measured in jobs."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from samovar.cli.cluster_jobs import Jobs, require_snakemake, run_jobs
from samovar.cli.commands import run_commands
from samovar.errors import CampaignError
from tests.golden.campaign import NAME, unpack

needs_snakemake = pytest.mark.skipif(
    not find_spec("snakemake"), reason="needs .venv/bin/pip install '.[cluster]'"
)
TABLES = ("tables/*.csv", "bundle/data/*.csv", "bundle/*.json")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "config.yaml").write_text("executor: local\n")
    return tmp_path / "profile"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("results", "experiments", "hosts"):
        (root / name).mkdir(parents=True)
    (root / "config.yaml").write_text("testbed: lab\n")
    unpack(root / "results" / "recorded")
    return root


@pytest.mark.skipif(bool(find_spec("snakemake")), reason="Snakemake is installed")
def test_analyse_on_slurm_reports_that_snakemake_is_missing(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_commands(["analyse", f"recorded/{NAME}", "--on", "slurm"], project) == 1
    assert "snakemake is not installed; `pip install 'samovar[cluster]'`" in capfd.readouterr().err


@needs_snakemake
def test_a_missing_sbatch_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CampaignError, match=r"--on slurm: sbatch is missing; run the command on a computer"):
        require_snakemake("slurm")


def test_an_unknown_value_of_on_is_reported_before_a_missing_snakemake() -> None:
    with pytest.raises(
        CampaignError, match=r"--on x: no such folder; must be local, slurm, or the folder of a"
    ):
        require_snakemake("x")


@needs_snakemake
def test_the_output_of_jobs_is_shown_and_the_last_lines_of_failed_jobs_are_repeated(
    tmp_path: Path, profile: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = ["true", "seq 100; exit 3", "cat given.json && false"]
    jobs = Jobs("shard", commands, memory_mb=100, minutes=1, files={"given.json": "a word"})
    results = tmp_path / "results of mine"
    assert run_jobs(jobs, str(profile), results, "fab again") == [2, 3]
    out = capfd.readouterr().out
    assert out.count("\n2/3  100\n") == 2
    assert out.count("\n2/3  85\n") == 1
    assert out.count("\n1/3  on ") == 1
    assert '3/3  "a word"' in out
    assert list(results.iterdir()) == []


@needs_snakemake
def test_a_line_of_a_job_is_shown_while_the_job_runs(tmp_path: Path, profile: Path) -> None:
    go_on = tmp_path / "go-on"
    jobs = f"Jobs('shard', ['echo ready; until [ -e {go_on} ]; do sleep 0.1; done'], 100, 1, {{}})"
    code = "from samovar.cli.cluster_jobs import *; "
    code += f"run_jobs({jobs}, {str(profile)!r}, Path({str(tmp_path / 'results')!r}), 'fab again')"
    with subprocess.Popen([sys.executable, "-uc", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            assert "1/1  ready\n" in iter(process.stdout.readline, "")
        finally:
            go_on.touch()
        process.stdout.read()
        assert process.wait(60) == 0


@needs_snakemake
def test_a_campaign_measured_in_jobs_has_the_same_tables_as_one_measured_without_jobs(
    project: Path, profile: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    campaign, copy = project / "results" / "recorded" / NAME, tmp_path / "copy"
    subprocess.run(["cp", "-a", project, copy], check=True)
    assert run_commands(["analyse", f"recorded/{NAME}"], copy) == 0
    assert run_commands(["analyse", f"recorded/{NAME}", "--on", str(profile), "--jobs", "2"], project) == 0
    assert "6 trials to measure in 2 jobs" in capfd.readouterr().out
    reference = copy / campaign.relative_to(project)
    tables = [path.relative_to(campaign) for pattern in TABLES for path in campaign.glob(pattern)]
    assert tables
    assert [
        path for path in tables if (campaign / path).read_bytes() != (reference / path).read_bytes()
    ] == []

    assert run_commands(["analyse", f"recorded/{NAME}", "--on", str(profile)], project) == 0
    assert "to measure" not in capfd.readouterr().out
