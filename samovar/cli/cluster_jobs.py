"""Run shards of a campaign, or measure its trials, as jobs of a cluster (Snakemake) or as processes here."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread

from samovar.analyse import AnalysedPart, measure_commands, unmeasured
from samovar.atomic_files import write_json
from samovar.campaign import Interrupts, shards_of
from samovar.cli.controller import Controller
from samovar.cli.options import LOCAL
from samovar.cli.program import event_display, show
from samovar.cli.project import Request
from samovar.errors import AnalysisError, CampaignError, TestbedError
from samovar.installation import PACKAGE, TEMPLATES
from samovar.lab import available_memory, lab_memory_bytes
from samovar.plan import Shard
from samovar.units import counted

SLURM = "slurm"
SNAKEFILE = TEMPLATES / "cluster" / "Snakefile"
LAST_LINES = 15
"""The number of lines that are shown again from the end of a failed job's output."""
FOLLOW_S = 2.0
"""The interval at which the output of running jobs is read, in seconds."""
JOBS = 8
"""The number of jobs if the option --jobs is missing."""
PROCESSES = 2
"""How many trials a job measures at the same time."""
BASE_MB, MEMORY_PER_BYTE = 1000, 10
"""Memory of a job: a fixed part, and for each process a multiple of the largest trial's compressed size."""
BASE_MINUTES, BYTES_PER_MINUTE = 30, 60_000_000
"""Time limit of a job: a fixed part, and a minute for each BYTES_PER_MINUTE of compressed files."""
SPARE_MINUTES, SPARE_MB = 30, 1000
"""Minutes added to twice a job's estimated time, and megabytes added to the memory of its lab."""


@dataclass(frozen=True)
class Jobs:
    """Jobs of one kind: a shell command for each, and the memory and time that each may use.

    `rule` is the name of the Snakemake rule. `files` are written to the folder in which the jobs start.
    """

    rule: str
    commands: Sequence[str]
    memory_mb: int
    minutes: int
    files: Mapping[str, object]


def run_jobs(jobs: Jobs, on: str, results: Path, again: str) -> list[int]:
    """Run jobs with Snakemake, and show their output; return the numbers of the failed jobs, counted from 1.

    If Snakemake fails although every job succeeded, all numbers are returned. `on` is `slurm`, or the folder
    of a Snakemake profile. `again` is the command that is shown after Ctrl-C.
    """
    results.mkdir(parents=True, exist_ok=True)
    executor = _slurm_words() if on == SLURM else ["--profile", str(Path(on).absolute())]
    # The jobs' folder is in the results folder, because all nodes share that.
    with TemporaryDirectory(prefix=".jobs-", dir=results) as name:
        folder = Path(name)
        for file, content in jobs.files.items():
            write_json(folder / file, content)
        names = ("rule", "commands", "memory_mb", "minutes")
        write_json(folder / "config.json", {name: getattr(jobs, name) for name in names})
        words = ["--snakefile", str(SNAKEFILE), "--directory", str(folder), "--jobs", str(len(jobs.commands))]
        words += ["--configfile", str(folder / "config.json"), "--keep-going", *executor]
        words += ["--quiet", "host", "rules", "reason"]
        numbers = range(1, len(jobs.commands) + 1)
        logs = {f"{number}/{len(numbers)}": folder / f"{jobs.rule}-{number}.log" for number in numbers}
        with _growing_files_shown(logs):
            (code,) = run_processes({on: [sys.executable, "-m", "snakemake", *words]}, folder, again)
        failed = [number for number in numbers if not (folder / f"{jobs.rule}-{number}").exists()]
        not_run = f"the job has not run, or its node does not have {results}, which all nodes must share"
        for number in failed:
            name = f"{number}/{len(numbers)}"
            lines = logs[name].read_text(errors="replace").splitlines() if logs[name].exists() else []
            show(f"{name}  {line}" for line in lines[-LAST_LINES:] or [not_run])
    return failed or list(numbers) * bool(code)


@contextmanager
def _growing_files_shown(files: Mapping[str, Path]) -> Iterator[None]:
    """Show each line that is appended to the files, after the file's name, while the context is active.

    Each reading opens the file again, because NFS shows new data from other nodes only after an open.
    """
    ended = Event()

    def follow() -> None:
        shown_bytes = dict.fromkeys(files, 0)
        is_last = False
        while not is_last:
            is_last = ended.wait(FOLLOW_S)
            for name, path in files.items():
                if not path.exists():
                    continue
                with path.open("rb") as file:
                    file.seek(shown_bytes[name])
                    new = file.read()
                shown = new if is_last else new[: new.rfind(b"\n") + 1]
                shown_bytes[name] += len(shown)
                show(f"{name}  {line}" for line in shown.decode(errors="replace").splitlines())

    follower = Thread(target=follow)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()


def run_processes(commands: Mapping[str, Sequence[str]], folder: Path, again: str) -> list[int]:
    """Run commands as processes at the same time in a folder, and return their exit codes.

    Each line that a process prints is shown after the name of its command. The first Ctrl-C is passed on to
    the processes; after the second one, this function no longer waits for them. `again` is the command that
    is shown after Ctrl-C.
    """
    # If this command ignores SIGINT, as in the background of a script, its processes must not ignore it too.
    processes = [
        subprocess.Popen(
            ["env", "--default-signal=INT", *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches the process only from here, and only once
        )
        for command in commands.values()
    ]

    one_line = Lock()  # print() writes a line and its end separately

    def show_output(name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        with process.stdout as lines:
            for line in lines:
                with one_line:
                    show([f"{name}  {line.rstrip()}"])

    def interrupt() -> None:
        for process in processes:
            process.send_signal(signal.SIGINT)  # on SIGTERM, Snakemake would wait for its jobs

    readers = [Thread(target=show_output, args=named) for named in zip(commands, processes, strict=True)]
    for reader in readers:
        reader.start()
    try:
        with Interrupts(interrupt):
            try:
                codes = [process.wait() for process in processes]
            except KeyboardInterrupt:
                interrupt()
                for process in processes:
                    process.wait()
                raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(again) from None
    for reader in readers:
        reader.join()
    return codes


def _slurm_words() -> list[str]:
    """Return Snakemake's options for Slurm. If Slurm has no accounting, `sacct` fails, and `squeue` is used.

    With these options, Snakemake first asks for the states of jobs after 10 s, and then at growing intervals
    while no job ends. Snakemake's default of 40 s would delay each job that waits for another.
    """
    words = ["--executor", SLURM, "--slurm-init-seconds-before-status-checks", "10"]
    try:
        subprocess.run(["sacct", "--noheader"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return [*words, "--slurm-status-command", "squeue"]
    return words


def require_snakemake(on: str) -> None:
    """Raise CampaignError if Snakemake, Slurm, or the profile is missing."""
    if on != SLURM and not Path(on).is_dir():
        raise CampaignError(
            f"--on {on}: no such folder; must be local, slurm, or the folder of a Snakemake profile"
        )
    modules = ("snakemake", "snakemake_executor_plugin_slurm") if on == SLURM else ("snakemake",)
    if missing := [name for name in modules if find_spec(name) is None]:
        raise CampaignError(
            f"--on {on}: {missing[0]} is not installed; `pip install 'samovar[cluster]'` installs it"
        )
    if on == SLURM and shutil.which("sbatch") is None:
        raise CampaignError(
            "--on slurm: sbatch is missing; run the command on a computer of the cluster, or use --on local"
        )


def run_shards(
    controller: Controller, request: Request, of: int, on: str, options: Sequence[str]
) -> list[Path]:
    """Run all shards of an experiment, and return their campaigns.

    `on` is `local`, `slurm`, or the folder of a Snakemake profile. `options` are further options for each
    `samovar run`. Raises CampaignError if a shard is incomplete; the message gives the command that runs the
    missing trials. On Ctrl-C, the shards end cleanly, and then KeyboardInterrupt is raised.
    """
    project = controller.project
    planned = project.plan(request._replace(shard=f"1/{of}"))
    real = [one.testbed.name for one in planned.every if one.testbed.lab is None]
    if real and of > len(planned.every):
        raise TestbedError(
            f"--shards {of}: testbed {real[0]} has real hosts, which run one trial at a time; "
            f"use a testbed with a lab, or --testbed with {of} testbeds"
        )
    path = Path(request.experiment)
    words = ["run", str(path.absolute()) if path.suffix == ".yaml" and path.exists() else request.experiment]
    words += ["--profile", request.profile] if request.profile else []
    words += ["--testbed", request.testbed] if request.testbed else []
    words += [word for one in request.overrides for word in ("--set", one)]
    again = shlex.join(
        ["fab", *words, "--shards", str(of), "--on", on, *(one for one in options if one != "--new")]
    )
    command = [sys.executable, "-m", "samovar", "--project", str(project.root), *words, *options]
    shards = [str(shard) for shard in Shard.all_of(of)]
    lab_bytes = max(lab_memory_bytes(one.testbed) for one in planned.every)
    if on == LOCAL:
        free_bytes = available_memory()
        if lab_bytes * of > free_bytes:
            raise TestbedError(
                f"--shards {of}: {of} labs need {of * lab_bytes / 1e9:.1f} GB of memory, but only "
                f"{free_bytes / 1e9:.1f} GB are free; use at most {max(1, free_bytes // lab_bytes)} shards, "
                "or a smaller `memory` of the lab"
            )
        commands = {shard: [*command, "--shard", shard] for shard in shards}
        codes = run_processes(commands, PACKAGE.parent, again)
        failed = [number for number, code in enumerate(codes, 1) if code]
    else:
        require_snakemake(on)
        begin = shlex.join(["cd", str(PACKAGE.parent)]) + " && " + shlex.join(command)
        jobs = Jobs(
            rule="shard",
            commands=[f"{begin} --shard {shard}" for shard in shards],
            memory_mb=SPARE_MB + lab_bytes // 1_000_000,
            minutes=SPARE_MINUTES + int(2 * controller.cost(planned).total_s / of / 60),
            files={},
        )
        failed = run_jobs(jobs, on, project.results, again)
    if failed:
        listed = ", ".join(f"{number}/{of}" for number in failed)
        raise CampaignError(f"incomplete: shard {listed}; to run the missing trials: {again}")
    return shards_of(planned.plan, project.results, of)


def measure_in_jobs(
    controller: Controller, campaign: Path, part: AnalysedPart | None, on: str, jobs: int | None, again: str
) -> None:
    """Divide the unmeasured trials of a campaign among jobs, which measure them and cache the measurements.

    Raises CampaignError if Snakemake or a scheduler is missing. Raises AnalysisError if a job fails; the
    message gives the command that measures the missing trials.
    """
    require_snakemake(on)
    root = controller.project.root
    with event_display(controller) as display:
        left = unmeasured(campaign, root, display, part)
    of = min(jobs or JOBS, len(left.trials))
    if of == 0:
        return
    # Trials are assigned to the jobs in turn, the largest first, so that the jobs take about the same time.
    files = {f"trials-{number + 1}.json": {"trials": left.trials[number::of]} for number in range(of)}
    identity = {"code": left.code, "versions": left.versions}
    measure = Jobs(
        rule="measure",
        commands=measure_commands(campaign, root, files),
        memory_mb=BASE_MB + int(PROCESSES * MEMORY_PER_BYTE * left.bytes[0] / 1e6),
        minutes=BASE_MINUTES + int(sum(left.bytes[::of]) / BYTES_PER_MINUTE),
        files={name: content | identity for name, content in files.items()},
    )
    show([f"{counted(len(left.trials), 'trial')} to measure in {counted(of, 'job')}"])
    if failed := run_jobs(measure, on, campaign.parent, again):
        listed = ", ".join(f"{number}/{of}" for number in failed)
        raise AnalysisError(f"incomplete: job {listed}; to measure the missing trials: {again}")
