"""`samovar render` prints the scripts of trials, and a shell can parse each of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from samovar.campaign import policy_of, render_trial
from samovar.cli.project import Project, Request
from tests.unit.cli.test_commands import ROOT, SAMOVAR, run

HEADING = re.compile(r"^# ==== trial (\S+), ([^,]+), host (\w+)(?: \((.*)\))?$", re.MULTILINE)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine") / "project"
    assert run(folder.parent, "init", "project")[0] == 0
    return folder


def test_the_scripts_of_a_trial_are_rendered_in_the_order_in_which_a_run_executes_them(project: Path) -> None:
    code, out, err = run(project, "render", "first", "--trial", "cubic-r1")
    assert (code, err) == (0, "")
    found = [match.groups() for match in HEADING.finditer(out)]
    phases = list(dict.fromkeys(phase for _, phase, _, _ in found))
    assert phases == ["read", "guard", "set", "arm", "clock", "traffic", "restore", "stop"]
    assert [host for _, phase, host, _ in found if phase == "read"] == ["src", "rtr", "dst"]
    assert [host for _, phase, host, _ in found if phase == "clock"] == ["src", "dst"]
    assert "# must print: cc=cubic" in out.splitlines()
    assert "dir='/tmp/samovar/<campaign>/cubic-r1-" in out
    assert "at '<start, in ns>'" in out.splitlines()
    assert "'<tcp_wmem.low as found>" in out


def test_only_one_host_and_only_picked_trials_are_rendered(project: Path) -> None:
    code, out, _ = run(project, "render", "first", "--only", "cc=cubic", "--first", "2", "--host", "dst")
    assert code == 0
    assert out.startswith("# first (full) on lab: the scripts of 2 of 6 trials, in order\n")
    assert {match[3] for match in HEADING.finditer(out)} == {"dst"}
    assert len({match[1] for match in HEADING.finditer(out)}) == 2
    assert run(project, "render", "first", "--host", "dts")[::2] == (
        1,
        "--host dts: unknown host 'dts'; did you mean 'dst'? known: dst, rtr, src\n",
    )


@pytest.mark.parametrize("shell", ["sh", "bash", "busybox sh"])
def test_the_whole_output_and_each_script_have_valid_shell_syntax(project: Path, shell: str) -> None:
    program = shell.split()
    if shutil.which(program[0]) is None:
        pytest.skip(f"no {shell}")
    _, out, _ = run(project, "render", "demo")
    texts = [out]
    planned = Project(ROOT).plan(Request("demo"))
    policy = policy_of(planned.experiment, planned.testbed, Project(ROOT).config)
    for trial in (planned.plan.trials[0], planned.plan.trials[-1]):
        texts += [one.text for one in render_trial(trial, Project(ROOT).catalogue, policy)]
    for text in texts:
        done = subprocess.run([*program, "-n"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_pipe_ends_render_without_an_error(project: Path) -> None:
    words = " ".join((*SAMOVAR, "--project", str(project), "render", "demo"))
    command = ["bash", "-o", "pipefail", "-c", f"{words} | head -1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_in_a_recipe_of_the_project_is_reported_before_results_or_a_lab_are_created(
    project: Path,
) -> None:
    folder = project / "templates" / "linux" / "aqm"
    folder.mkdir(parents=True)
    text = (ROOT / "templates" / "linux" / "aqm" / "pfifo.sh.j2").read_text()
    (folder / "pfifo.sh.j2").write_text(text.replace("{{ buffer_packets }}", "{{ bufer_packets }}"))
    for command in ("plan", "render", "run"):
        code, _, err = run(project, command, "first")
        assert code == 1
        assert re.search(
            r"aqm/pfifo\.sh\.j2:\d+:\d+: unknown name in block qdisc 'bufer_packets'; did you mean", err
        )
        assert not (project / "results").exists()
        assert not (project / ".lab").exists()
    (folder / "pfifo.sh.j2").unlink()
