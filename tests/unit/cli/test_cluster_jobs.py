"""Jobs of Snakemake: what is refused before anything starts, and measuring a recorded campaign in jobs."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from samovar.cli.cluster_jobs import Jobs, require_snakemake, run_jobs
from samovar.cli.commands import run_commands
from samovar.errors import CampaignError
from tests.golden.campaign import NAME, unpack

has_snakemake = pytest.mark.skipif(
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
def test_without_snakemake_nothing_is_measured(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_commands(["analyse", f"recorded/{NAME}", "--on", "slurm"], project) == 1
    assert "snakemake is not installed; `pip install 'samovar[cluster]'`" in capfd.readouterr().err


@has_snakemake
def test_without_slurm_or_a_profile_nothing_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CampaignError, match=r"--on slurm: sbatch is missing; run the command on a computer"):
        require_snakemake("slurm")
    with pytest.raises(
        CampaignError, match=r"--on x: no such folder; must be local, slurm, or the folder of a"
    ):
        require_snakemake("x")


@has_snakemake
def test_the_numbers_and_last_lines_of_failed_jobs_are_shown(
    tmp_path: Path, profile: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = ["true", "seq 100; exit 3", "cat given.json && false"]
    jobs = Jobs("shard", commands, memory_mb=100, minutes=1, files={"given.json": "a word"})
    assert run_jobs(jobs, str(profile), tmp_path / "results", "fab again") == [2, 3]
    out = capfd.readouterr().out
    assert "\n2/3  100\n" in out
    assert "\n2/3  85\n" not in out
    assert '3/3  "a word"' in out
    assert list((tmp_path / "results").iterdir()) == []


@has_snakemake
def test_a_campaign_measured_in_jobs_has_the_same_tables(
    project: Path, profile: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    campaign, copy = project / "results" / "recorded" / NAME, tmp_path / "copy"
    subprocess.run(["cp", "-a", project, copy], check=True)
    assert run_commands(["analyse", f"recorded/{NAME}"], copy) == 0
    assert run_commands(["analyse", f"recorded/{NAME}", "--on", str(profile), "--jobs", "2"], project) == 0
    assert "6 trials to measure in 2 jobs" in capfd.readouterr().out
    alone = copy / campaign.relative_to(project)
    made = [path.relative_to(campaign) for pattern in TABLES for path in campaign.glob(pattern)]
    assert made
    assert [path for path in made if (campaign / path).read_bytes() != (alone / path).read_bytes()] == []

    assert run_commands(["analyse", f"recorded/{NAME}", "--on", str(profile)], project) == 0
    assert "to measure" not in capfd.readouterr().out
