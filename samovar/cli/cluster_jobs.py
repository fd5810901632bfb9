"""Run commands as jobs of a cluster with Snakemake, or as processes beside each other."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from samovar.atomic_files import write_json
from samovar.campaign import Interrupts
from samovar.cli.program import show
from samovar.errors import CampaignError
from samovar.installation import TEMPLATES

LOCAL, SLURM = "local", "slurm"
SNAKEFILE = TEMPLATES / "cluster" / "Snakefile"
LAST_LINES = 15
"""How many lines are shown from the end of a failed job's output."""


@dataclass(frozen=True)
class Jobs:
    """Jobs of one kind: a shell command for each, and the memory and time that each may use.

    `rule` is the name of the kind in Snakemake. `files` are written to the folder in which the jobs start.
    """

    rule: str
    commands: Sequence[str]
    memory_mb: int
    minutes: int
    files: Mapping[str, object]


def run_jobs(jobs: Jobs, on: str, results: Path, again: str) -> list[int]:
    """Run jobs with Snakemake; return the numbers of the failed jobs, counted from 1.

    `on` is `slurm`, or the folder of a Snakemake profile. `again` is the command that is shown after Ctrl-C.
    """
    results.mkdir(parents=True, exist_ok=True)
    executor = _slurm_words() if on == SLURM else ["--profile", str(Path(on).absolute())]
    # In the results folder, because all nodes share it.
    with TemporaryDirectory(prefix=".jobs-", dir=results) as name:
        folder = Path(name)
        for file, content in jobs.files.items():
            write_json(folder / file, content)
        names = ("rule", "commands", "memory_mb", "minutes")
        write_json(folder / "config.json", {name: getattr(jobs, name) for name in names})
        words = ["--snakefile", str(SNAKEFILE), "--directory", str(folder), "--jobs", str(len(jobs.commands))]
        words += ["--configfile", str(folder / "config.json"), "--keep-going", *executor]
        (code,) = run_processes({on: [sys.executable, "-m", "snakemake", *words]}, folder, again)
        numbers = range(1, len(jobs.commands) + 1)
        failed = [number for number in numbers if not (folder / f"{jobs.rule}-{number}").exists()]
        for number in failed:
            lines = _last_lines(folder / f"{jobs.rule}-{number}.log", results)
            show(f"{number}/{len(numbers)}  {line}" for line in lines)
    return failed or list(numbers) * bool(code)


def _last_lines(log: Path, results: Path) -> list[str]:
    """Return the last lines of a failed job's output, whose first line names the node."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    not_run = f"the job has not run, or its node does not have {results}, which all nodes must share"
    return lines[-LAST_LINES:] or [not_run]


def run_processes(commands: Mapping[str, Sequence[str]], folder: Path, again: str) -> list[int]:
    """Run commands as processes at the same time in a folder, and return their exit codes.

    The lines that a process prints are shown with the name of its command before each. `again` is the command
    that is shown after Ctrl-C.
    """
    processes = [_start(command, folder) for command in commands.values()]
    readers = [Thread(target=_show_output, args=named) for named in zip(commands, processes, strict=True)]
    for reader in readers:
        reader.start()
    codes = _wait(processes, again)
    for reader in readers:
        reader.join()
    return codes


def _start(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start a process in a session of its own, so that only `_wait` passes Ctrl-C to it, and only once."""
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _show_output(name: str, process: subprocess.Popen[str]) -> None:
    """Show the lines that a process prints, with a name before each."""
    assert process.stdout
    with process.stdout as lines:
        show(f"{name}  {line.rstrip()}" for line in lines)


def _wait(processes: Sequence[subprocess.Popen[str]], again: str) -> list[int]:
    """Wait for processes, and return their exit codes.

    A Ctrl-C is passed on to the processes. After the second one, they are not waited for any more.
    """

    def interrupt() -> None:
        for process in processes:
            process.send_signal(signal.SIGINT)

    try:
        with Interrupts(interrupt):
            try:
                return [process.wait() for process in processes]
            except KeyboardInterrupt:
                interrupt()
                for process in processes:
                    process.wait()
                raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(again) from None


def _slurm_words() -> list[str]:
    """Return Snakemake's options for Slurm: without accounting, `sacct` fails, and `squeue` replaces it.

    Snakemake asks for the states of jobs after 10 s, and less often while none ends. Its default of 40 s
    delays each job that waits for another.
    """
    words = ["--executor", SLURM, "--slurm-init-seconds-before-status-checks", "10"]
    try:
        subprocess.run(["sacct", "--noheader"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return [*words, "--slurm-status-command", "squeue"]
    return words


def require_snakemake(on: str) -> None:
    """Raise CampaignError if Snakemake, Slurm, or the profile is missing."""
    modules = ("snakemake", "snakemake_executor_plugin_slurm") if on == SLURM else ("snakemake",)
    if missing := [name for name in modules if find_spec(name) is None]:
        raise CampaignError(
            f"--on {on}: {missing[0]} is not installed; `pip install 'samovar[cluster]'` installs it"
        )
    if on == SLURM and shutil.which("sbatch") is None:
        raise CampaignError(
            "--on slurm: sbatch is missing; run the command on a computer of the cluster, or use --on local"
        )
    if on != SLURM and not Path(on).is_dir():
        raise CampaignError(
            f"--on {on}: no such folder; must be local, slurm, or the folder of a Snakemake profile"
        )
