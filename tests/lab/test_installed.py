"""samovar installed by pip, outside any checkout: a new project, its first campaign in the lab, the PDF."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 1500


def call(*words: str | Path, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing of the checkout in its environment."""
    environment = {"HOME": str(home), "PATH": os.defpath, "LC_ALL": "C.UTF-8"}
    if "PIP_INDEX_URL" in os.environ:
        environment["PIP_INDEX_URL"] = os.environ["PIP_INDEX_URL"]
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder with a virtual environment into which the checkout was installed as a wheel."""
    folder = tmp_path_factory.mktemp("installed")
    assert call(sys.executable, "-m", "venv", folder / "venv", cwd=folder, home=folder).returncode == 0
    done = call(folder / "venv" / "bin" / "pip", "install", "-q", ROOT, cwd=folder, home=folder)
    assert done.returncode == 0, done.stderr
    yield folder


@pytest.mark.lab
@pytest.mark.proof
def test_a_new_project_of_an_installed_samovar_runs_the_demo_and_makes_its_pdf(installed: Path) -> None:
    def samovar(*words: str, cwd: Path = installed / "mine") -> str:
        done = call(installed / "venv" / "bin" / "samovar", *words, cwd=cwd, home=installed)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    samovar("init", "mine", cwd=installed)
    assert "6 trials" in samovar("plan", "first")
    assert (installed / "mine" / ".schema" / "experiment.json").is_file()
    out = samovar("demo")
    assert "8 of 8 trials done" in out
    assert "6 reproduced" in out
    assert out.splitlines()[-1].endswith("bundle/demo.pdf")
    assert Path(out.splitlines()[-1]).read_bytes().startswith(b"%PDF")
    assert "unchanged since it was recorded" in samovar("verify")
    (cache,) = (installed / ".cache" / "samovar").iterdir()
    assert (cache / ".rlib" / "samovar").is_dir()
