"""Completion in zsh and fish: a real shell completes command lines of `samovar`."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from samovar.cli.commands import run_commands
from tests.unit.plan_values import plan_of, trial

ROOT = Path(__file__).parents[3]
PLAN = plan_of([trial("cubic"), trial("cdg")])
CAMPAIGN = "full-20260101-000000"
WITHIN_S = 60
ZSHRC = """\
unsetopt beep
PS1='ready> '
eval "$(samovar completion zsh)"
show-line() { print -r -- "$BUFFER" >line; exit }
zle -N show-line
bindkey '^T' show-line
"""
COMPLETIONS = {
    "command": ("samovar pla", "samovar plan"),
    "experiment": ("samovar plan fi", "samovar plan first"),
    "testbed": ("samovar plan first --testbed wlan-", "samovar plan first --testbed wlan-wired"),
    "host": ("samovar lab shell ds", "samovar lab shell dst"),
    "campaign": ("samovar analyse mi", "samovar analyse mine"),
    "folder of a campaign": ("samovar analyse mine/fu", f"samovar analyse mine/{CAMPAIGN}"),
    "trial": ("samovar analyse mine --trial cu", "samovar analyse mine --trial cubic-r1-6"),
    "level": ("samovar run first --set cc=cu", "samovar run first --set cc=cubic"),
    "second level": ("samovar plan demo --only cc=cubic,cd", "samovar plan demo --only cc=cubic,cdg"),
    "second factor": (
        "samovar plan demo --only 'cc=cubic mtu=12",
        "samovar plan demo --only 'cc=cubic mtu=1200'",
    ),
    "level after --only=": ("samovar run first --only=cc=cu", "samovar run first --only=cc=cubic"),
    "file": ("samovar import teacup tpc", "samovar import teacup tpconf.py"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with a campaign; the folder above contains the program `samovar` and .zshrc."""
    home = tmp_path_factory.mktemp("home")
    (home / "samovar").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m samovar "$@"\n')
    (home / "samovar").chmod(0o755)
    (home / ".zshrc").write_text(ZSHRC)
    project = home / "project"
    assert run_commands(["init", str(project)], home) == 0
    (project / "results" / "mine" / CAMPAIGN).mkdir(parents=True)
    (project / "results" / "mine" / CAMPAIGN / "plan.json").write_bytes(PLAN.to_json())
    (project / "tpconf.py").touch()
    return project


def environment(project: Path) -> dict[str, str]:
    path = f"{project.parent}:{os.environ['PATH']}"
    return {"HOME": str(project.parent), "PATH": path, "TERM": "xterm", "LC_ALL": "C.UTF-8"}


def read(terminal: int) -> bytes:
    """Return the next output of a shell; empty if the shell has ended."""
    assert select.select([terminal], [], [], WITHIN_S)[0], f"the shell printed nothing for {WITHIN_S} s"
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@pytest.mark.parametrize(("typed", "completed"), COMPLETIONS.values(), ids=COMPLETIONS)
def test_zsh_completes_the_line(typed: str, completed: str, project: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project)
        os.execvpe("zsh", ["zsh", "-i"], environment(project))
    shown = b""
    while b"ready> " not in shown:
        shown += read(terminal)
    os.write(terminal, f"{typed}\t\x14".encode())  # Tab, then Ctrl-T
    while read(terminal):
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    assert (project / "line").read_text().rstrip() == completed
    (project / "line").unlink()


@pytest.mark.parametrize(("typed", "completed"), COMPLETIONS.values(), ids=COMPLETIONS)
def test_fish_offers_the_completed_last_word(typed: str, completed: str, project: Path) -> None:
    done = subprocess.run(
        ["fish", "--no-config", "-c", "samovar completion fish | source; complete -C $argv[1]", typed],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        check=True,
    )
    offered = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert (offered, done.stderr) == (shlex.split(completed)[-1:], "")
