"""Run all shards of a campaign at the same time, on this computer or as jobs of a cluster."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from samovar.campaign import shards_of
from samovar.cli.cluster_jobs import LOCAL, Jobs, require_snakemake, run_jobs, run_processes
from samovar.cli.controller import Controller
from samovar.cli.program import open_controller
from samovar.cli.project import PlannedExperiment, Request
from samovar.errors import CampaignError, TestbedError
from samovar.installation import PACKAGE
from samovar.lab import available_memory, lab_memory_bytes

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
        require_snakemake(on)
        failed = run_jobs(_jobs(controller, planned, command, of), on, project.results, again)
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
    """Return the memory in bytes that the largest lab of any shard needs."""
    return max(lab_memory_bytes(one.testbed) for one in planned.every)


def _require_memory(planned: PlannedExperiment, of: int) -> None:
    each, there = _lab_memory_bytes(planned), available_memory()
    if each * of > there:
        raise TestbedError(
            f"--shards {of}: {of} labs need {each / 1e9:.1f} GB of memory each, but {there / 1e9:.1f} GB are "
            f"free; use at most {max(1, there // each)} shards, or a smaller `memory` of the lab"
        )


def _run_here(command: Sequence[str], of: int, again: str) -> list[int]:
    """Run each shard as a process, all at the same time; return the numbers of the incomplete shards."""
    names = [f"{number}/{of}" for number in range(1, of + 1)]
    commands = {name: [*command, "--shard", name] for name in names}
    codes = run_processes(commands, PACKAGE.parent, again)
    return [number for number, code in enumerate(codes, 1) if code]


def _jobs(controller: Controller, planned: PlannedExperiment, command: Sequence[str], of: int) -> Jobs:
    total_s = controller.preflight.cost(planned).total_s
    begin = shlex.join(["cd", str(PACKAGE.parent)]) + " && " + shlex.join(command)
    return Jobs(
        rule="shard",
        commands=[f"{begin} --shard {number}/{of}" for number in range(1, of + 1)],
        memory_mb=SPARE_MB + _lab_memory_bytes(planned) // 1_000_000,
        minutes=SPARE_MINUTES + int(2 * total_s / of / 60),
        files={},
    )
