"""Measure the overhead of a short trial by phase, in a lab of three hosts on each kernel.

Run by `make bench`:

    python benchmarks/bench_overhead.py [--kernels uml,native] [--uml .bin/uml/sid] [--append FILE]

For each phase, print the wall time, and two CPU times that depend little on what else the machine does: the
CPU time of all processes of the lab, and the CPU time of the controller. In user-mode Linux the lab's kernel
is one of the processes of the lab. `traffic` includes the lead time before the traffic starts (`start` in
manifests).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from samovar import lab  # noqa: E402
from samovar.campaign.verdict import NOT_OVERHEAD  # noqa: E402
from samovar.cli.controller import Controller  # noqa: E402
from samovar.cli.project import Request, RunRequest  # noqa: E402
from samovar.events import Event, silent  # noqa: E402
from samovar.experiment import load_testbed  # noqa: E402

PATHS = {
    "uml": "path: {rate: 20Mbit, rtt: 4ms, aqm: pfifo, buffer: 100packets}\nsettings: {rwnd: 600KB}",
    "native": "settings: {shaper.rate: {src: 20Mbit, rtr: 20Mbit}}",
}
"""The rate limit of the experiment by kernel: the machine's own kernel may lack netem, which a path needs."""
EXPERIMENT = """\
experiment: overhead
title: Short trials
testbed: lab
{path}
duration: 2s
replicates: {replicates}
traffic: [{{flow: bulk, generator: nuttcp, from: sender, to: receiver}}]
captures: [{{at: sender}}, {{at: receiver}}]
loggers: [{{logger: tcp-info, at: sender, interval: 5ms}}, {{logger: queue, at: router, interval: 5ms}}]
factors: {{cc: [newreno, cubic]}}
"""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
Row = tuple[float, float, float]
"""Seconds: wall time, CPU time of the lab, CPU time of the controller."""


def lab_cpu_s(first: int) -> float:
    """Return the CPU time of a process and its descendants, including children that they have waited for."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for pid, parent, spent in _stats():
        ticks[pid] = spent
        children.setdefault(parent, []).append(pid)
    below = [first]
    for pid in below:
        below += children.get(pid, [])
    return sum(ticks.get(pid, 0) for pid in below) * TICK_S


def _stats() -> Iterator[tuple[int, int, int]]:
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has just ended
        yield int(file.parent.name), int(words[1]), sum(map(int, words[11:15]))


@dataclass
class Meter:
    """Measures the wall and CPU times of each phase of each trial, from the events of a campaign."""

    first: int
    trials: list[dict[str, Row]] = field(default_factory=list)
    _phase: str = ""
    _since: Row = (0.0, 0.0, 0.0)

    def hear(self, event: Event) -> None:
        """Record the times of the phase that an event ends, and note the phase that the event begins."""
        if event.name not in ("phase", "trial-started", "trial-finished"):
            return
        now = (time.monotonic(), lab_cpu_s(self.first), time.process_time())
        if self.trials and self._phase:
            self.trials[-1][self._phase] = tuple(b - a for a, b in zip(self._since, now, strict=True))  # type: ignore[assignment]
        if event.name == "trial-started":
            self.trials.append({})
        self._phase = str(event.values.get("phase", ""))
        self._since = now


def measure(kernel: str, replicates: int, uml: Path | None) -> list[str]:
    """Run trials on a kernel; return the lines of its table."""
    with tempfile.TemporaryDirectory(prefix="samovar-bench-") as name:
        folder = Path(name)
        controller = create_project(folder, kernel, replicates, uml)
        controller.connections.lab_up(load_testbed(folder / "hosts" / "lab.yaml"), None, silent)
        try:
            access = lab.read_access(controller.connections.lab_folder("lab"))
            assert access
            meter = Meter(access.process.pid)
            study = controller.project.plan(Request("overhead"))
            resume = controller.project.resume_point(study, new=True)
            summary = controller.run(RunRequest(study, resume), meter.hear)
            overheads_s = [float(manifest["overhead_s"]) for manifest in manifests(summary.folder)]
        finally:
            lab.down(controller.connections.lab_folder("lab"), silent)
    # The first trial is left out, because it also connects to hosts, takes the first readings of their
    # clocks, and calibrates the path.
    return lines_of(f"{kernel} {access.release}", meter.trials[1:], overheads_s)


def create_project(folder: Path, kernel: str, replicates: int, uml: Path | None) -> Controller:
    """Create a project with this repository's recipes and lab, and the experiment of the benchmark."""
    (folder / "templates").symlink_to(ROOT / "templates")
    for place in ("hosts", "experiments"):
        (folder / place).mkdir()
    testbed = (ROOT / "hosts" / "lab.yaml").read_text().replace("kernel: auto", f"kernel: {kernel}")
    (folder / "hosts" / "lab.yaml").write_text(testbed)
    labs = f"lab: {{uml: {{program: {uml}/linux.uml, modules: {uml}/modules}}}}\n" if uml else ""
    (folder / "config.yaml").write_text(f"retries: 0\n{labs}")
    experiment = EXPERIMENT.format(path=PATHS[kernel], replicates=replicates)
    (folder / "experiments" / "overhead.yaml").write_text(experiment)
    return Controller(folder)


def manifests(campaign: Path) -> list[Mapping[str, Any]]:
    """Return the manifests of a campaign's trials."""
    return [json.loads(file.read_bytes()) for file in sorted(campaign.glob("trials/*/manifest.json"))]


def lines_of(kernel: str, trials: Sequence[Mapping[str, Row]], overheads_s: Sequence[float]) -> list[str]:
    """Return a table's lines: the median of each phase, and of the sum of the phases that are overhead."""
    phases = {phase: None for trial in trials for phase in trial}
    rows = {phase: [trial[phase] for trial in trials if phase in trial] for phase in phases}
    beside = [[row for phase, row in trial.items() if phase not in NOT_OVERHEAD] for trial in trials]
    rows["all but traffic"] = [_sum(found) for found in beside]
    lines = [f"| {kernel} | {phase} | {' | '.join(_medians(found))} |" for phase, found in rows.items()]
    overhead = f"{median(overheads_s):.2f} ({min(overheads_s):.2f} to {max(overheads_s):.2f})"
    return [*lines, f"| {kernel} | by the manifests | {overhead} | | |"]


def _sum(rows: Iterable[Row]) -> Row:
    wall, of_lab, of_controller = zip(*rows, strict=True)
    return sum(wall), sum(of_lab), sum(of_controller)


def _medians(rows: Iterable[Row]) -> list[str]:
    return [f"{median(column):.2f}" for column in zip(*rows, strict=True)]


def _folder(name: str) -> Path:
    return Path(name).absolute()


def main() -> None:
    """Run the benchmark, print the table and, with --append, append it to a file."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--kernels", default="uml,native")
    parser.add_argument("--replicates", type=int, default=4, help="of two treatments of 2 s")
    parser.add_argument(
        "--uml", type=_folder, help="folder of another user-mode kernel, made by make lab-kernel"
    )
    parser.add_argument("--append", type=Path)
    options = parser.parse_args()
    machine = f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} processors"
    head = [
        f"## A trial's overhead, {time.strftime('%Y-%m-%d')}, {machine}, load {os.getloadavg()[0]:.1f}",
        "",
        f"Medians of {2 * options.replicates - 1} trials of 2 s: 3 hosts, a flow, 2 captures, 2 samplers.",
        "",
        "| kernel | phase | wall (s) | CPU of the lab (s) | CPU of the controller (s) |",
        "|---|---|---|---|---|",
    ]
    rows = [
        line
        for kernel in options.kernels.split(",")
        for line in measure(kernel, options.replicates, options.uml)
    ]
    text = "\n".join([*head, *rows]) + "\n"
    print(text)
    if options.append:
        with options.append.open("a") as results:
            results.write(f"\n{text}")


if __name__ == "__main__":
    main()
