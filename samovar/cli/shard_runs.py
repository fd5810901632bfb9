"""Run all shards of a campaign at the same time, on this computer or as jobs of a cluster."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from samovar.atomic_files import write_json
from samovar.campaign import Interrupts, shards_of
from samovar.cli.controller import Controller
from samovar.cli.program import open_controller, show
from samovar.cli.project import PlannedExperiment, Request
from samovar.errors import CampaignError, TestbedError
from samovar.installation import PACKAGE, TEMPLATES
from samovar.lab import available_memory

LOCAL, SLURM = "local", "slurm"
SNAKEFILE = TEMPLATES / "cluster" / "Snakefile"
LAST_LINES = 15
"""How many lines are shown from the end of a failed job's output."""
SPARE_MINUTES, SPARE_MB = 30, 1000
"""Minutes added to twice a job's estimated time, and megabytes added to the memory of its lab."""


def run_shards(root: Path, request: Request, of: int, on: str, options: Sequence[str]) -> list[Path]:
    """Run all shards of an experiment, and return their campaigns.

    `on` is `local`, `slurm`, or the folder of a Snakemake profile. `options` are further options for each
    `samovar run`. Raises CampaignError if a shard is incomplete; the message gives the command that runs the
    missing trials. On Ctrl-C, the shards end in good order, and then KeyboardInterrupt is raised.
    """
    controller = open_controller(root)
    project = controller.project
    planned = project.plan(request._replace(shard=f"1/{of}"))
    _require_testbeds(planned, of)
    words = _run_words(request)
    again = shlex.join(
        ["fab", *words, "--shards", str(of), "--on", on, *(one for one in options if one != "--new")]
    )
    command = [sys.executable, "-m", "samovar", "--project", str(root), *words, *options]
    if on == LOCAL:
        _require_memory(planned, of)
        failed = _run_here(command, of, again)
    else:
        failed = _run_jobs(controller, planned, command, of, on, again)
    if failed:
        listed = ", ".join(f"{number}/{of}" for number in failed)
        raise CampaignError(f"incomplete: shard {listed}; to run the missing trials: {again}")
    return shards_of(planned.plan, project.results, of)


def _run_words(request: Request) -> list[str]:
    path = Path(request.experiment)
    words = ["run", str(path.absolute()) if path.suffix == ".yaml" and path.exists() else request.experiment]
    words += ["--profile", request.profile] if request.profile else []
    words += ["--testbed", request.testbed] if request.testbed else []
    return words + [word for one in request.overrides for word in ("--set", one)]


def _require_testbeds(planned: PlannedExperiment, of: int) -> None:
    """Raise TestbedError if two shards would use the same real hosts at the same time."""
    real = [one.testbed.name for one in planned.every if one.testbed.lab is None]
    if real and of > len(planned.every):
        raise TestbedError(
            f"--shards {of}: testbed {real[0]} has real hosts, which run one trial at a time; "
            f"use a testbed with a lab, or --testbed with {of} testbeds"
        )


def _lab_memory_bytes(planned: PlannedExperiment) -> int:
    """Return how much memory the lab of any shard needs at most, for kernel and virtual machines."""
    needs = [0]
    for one in planned.every:
        if one.testbed.lab is not None:
            machines = sum(bool(host.image) for host in one.testbed.hosts.values())
            needs.append(one.testbed.lab.memory_bytes * (1 + machines))
    return max(needs)


def _require_memory(planned: PlannedExperiment, of: int) -> None:
    each, there = _lab_memory_bytes(planned), available_memory()
    if each * of > there:
        raise TestbedError(
            f"--shards {of}: {of} labs need {each / 1e9:.1f} GB of memory each, but {there / 1e9:.1f} GB are "
            f"free; use at most {max(1, there // each)} shards, or a smaller `memory` of the lab"
        )


def _run_here(command: Sequence[str], of: int, again: str) -> list[int]:
    """Run each shard as a process, all at the same time; return the numbers of the incomplete shards."""
    processes = [
        _start([*command, "--shard", f"{number}/{of}"], PACKAGE.parent) for number in range(1, of + 1)
    ]
    readers = [
        Thread(target=_show_output, args=(f"{number}/{of}", process))
        for number, process in enumerate(processes, 1)
    ]
    for reader in readers:
        reader.start()
    codes = _wait(processes, again)
    for reader in readers:
        reader.join()
    return [number for number, code in enumerate(codes, 1) if code]


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
    assert process.stdout
    for line in process.stdout:
        show([f"{name}  {line.rstrip()}"])


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


def _run_jobs(
    controller: Controller, planned: PlannedExperiment, command: Sequence[str], of: int, on: str, again: str
) -> list[int]:
    """Run the shards as jobs of Snakemake; return the numbers of the incomplete shards."""
    _require_snakemake(on)
    results = controller.project.results
    results.mkdir(parents=True, exist_ok=True)
    total_s = controller.preflight.cost(planned).total_s
    executor = _slurm_words() if on == SLURM else ["--profile", str(Path(on).absolute())]
    # In the results folder, because all nodes share it.
    with TemporaryDirectory(prefix=".shards-", dir=results) as name:
        folder = Path(name)
        config = {
            "command": shlex.join(["cd", str(PACKAGE.parent)]) + " && " + shlex.join(command),
            "shards": of,
            "memory_mb": SPARE_MB + _lab_memory_bytes(planned) // 1_000_000,
            "minutes": SPARE_MINUTES + int(2 * total_s / of / 60),
        }
        write_json(folder / "config.json", config)
        words = ["--snakefile", str(SNAKEFILE), "--directory", str(folder), "--jobs", str(of)]
        words += ["--configfile", str(folder / "config.json"), "--keep-going", *executor]
        process = _start([sys.executable, "-m", "snakemake", *words], folder)
        reader = Thread(target=_show_output, args=(on, process))
        reader.start()
        codes = _wait([process], again)
        reader.join()
        failed = [number for number in range(1, of + 1) if not (folder / f"shard-{number}").exists()]
        for number in failed:
            log = folder / f"shard-{number}.log"
            lines = log.read_text(errors="replace").splitlines() if log.exists() else ["the job has not run"]
            show(f"{number}/{of}  {line}" for line in lines[-LAST_LINES:])
    return failed or list(range(1, of + 1)) * bool(codes[0])


def _slurm_words() -> list[str]:
    """Return Snakemake's options for Slurm: without accounting, `sacct` fails, and `squeue` replaces it."""
    asked = subprocess.run(["sacct", "--noheader"], capture_output=True, timeout=60, check=False)
    status = ["--slurm-status-command", "squeue"] if asked.returncode else []
    return ["--executor", SLURM, *status]


def _require_snakemake(on: str) -> None:
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
