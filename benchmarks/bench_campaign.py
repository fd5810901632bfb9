"""Measure how long the analysis of a campaign takes: in parallel, and again after no change or one change.

Run by `make bench`, on copies of the trials of a real campaign:

    python benchmarks/bench_campaign.py [--append FILE] [--from CAMPAIGN] [--parallel N] [--trials N]

All cases are measured in one run. Each case has its own R process, except one case, which is `fab analyse`
from start to end. The current step is printed on standard error. If other programs keep the machine busy, as
the printed load shows, only CPU time is meaningful, because wall time then depends on those programs. To show
how much two processes can gain at all, a plain loop is timed too: by itself, and in two processes at once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from samovar.analyse import HEAP  # noqa: E402

MULTIPLY = ROOT / "benchmarks" / "multiply_campaign.py"
SMALL = ROOT / "analysis" / "tests" / "traces" / "campaign-small"
FAB = Path(sys.executable).with_name("fab")
MEASURE = """
campaign <- samovar::read_campaign(commandArgs(TRUE))
cat(sprintf("began %.6f\\n", as.double(Sys.time())))
invisible(samovar:::measure_all(campaign, {cores}L))
cat(sprintf("ended %.6f\\n", as.double(Sys.time())))
"""
ANALYSE = "samovar::analyse_campaign(commandArgs(TRUE), cores = {cores}L, value = FALSE, figures = {figures})"

LOOP = "x = 0\nfor i in range(10_000_000): x += i * i & 7"

LONGEST_S = 300.0
"""A command that takes longer is ended, and the benchmark with it."""


@dataclass(frozen=True)
class Spent:
    """A command's wall and CPU time in seconds, the memory of its largest process in MB, and its output."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    said: str

    def row(self, what: str) -> str:
        """Return a row of the table."""
        return f"| {what} | {self.wall_s:.1f} | {self.cpu_s:.1f} | {self.peak_mb:.0f} |"

    def inner_s(self) -> float:
        """Return the wall time between the instants that the command printed as `began` and `ended`."""
        told = dict(line.split() for line in self.said.splitlines() if line.startswith(("began", "ended")))
        return float(told["ended"]) - float(told["began"])


def spend(what: str, command: Sequence[str]) -> Spent:
    """Run a command; raises SystemExit with the command's output if it fails or takes too long."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
    environment = {"R_LIBS": str(ROOT / ".rlib"), **os.environ, "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryFile("w+", errors="replace") as words:
        began_s = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=words, stderr=words, cwd=ROOT, env=environment, start_new_session=True
        )
        with _at_most(process.pid):
            _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        words.seek(0)
        said = words.read()
    if process.returncode:
        raise SystemExit(f"{what}: exit status {process.returncode} after {wall_s:.0f} s: {said[-2000:]}")
    return Spent(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, said)


@contextmanager
def _at_most(group: int) -> Iterator[None]:
    """Kill a process group if it takes too long, or if the benchmark is interrupted."""
    timer = threading.Timer(LONGEST_S, os.killpg, (group, signal.SIGKILL))
    timer.start()
    try:
        yield
    except BaseException:
        os.killpg(group, signal.SIGKILL)
        raise
    finally:
        timer.cancel()


def r_does(what: str, expression: str, folder: Path) -> Spent:
    """Run an expression of R on a campaign."""
    return spend(what, ["Rscript", "--vanilla", HEAP, "-e", expression, str(folder)])


def analysed(what: str, folder: Path, cores: int, figures: str = "NULL") -> Spent:
    """Analyse a campaign by R alone."""
    return r_does(what, ANALYSE.format(cores=cores, figures=figures), folder)


def measured(what: str, folder: Path, cores: int) -> Spent:
    """Only measure a campaign's trials; the wall time excludes the start of R."""
    spent = r_does(what, MEASURE.format(cores=cores), folder)
    return Spent(spent.inner_s(), spent.cpu_s, spent.peak_mb, spent.said)


def forgotten(folder: Path) -> Path:
    """Remove what earlier analyses derived."""
    for name in ("tables", "bundle"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return folder


class Way(Enum):
    """How trials are divided among processes; a single process decodes with one thread per processor."""

    ALONE = "one processor"
    THREADS = "two processors, one process"
    PROCESSES = "two processors, two processes"

    @property
    def processors(self) -> int:
        """Number of processors on which the analysis may run."""
        return 1 if self is Way.ALONE else 2

    @property
    def processes(self) -> int:
        """How many trials are measured at a time."""
        return 2 if self is Way.PROCESSES else 1


@contextmanager
def held_to(processors: int) -> Iterator[None]:
    """Restrict this process, and those that it starts meanwhile, to this number of processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:processors])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def loop_gain() -> float:
    """Return the speed-up of two processes over one, for a loop that only computes."""
    print(f"{time.strftime('%H:%M:%S')} a plain loop", file=sys.stderr, flush=True)
    taken_s: dict[int, list[float]] = {1: [], 2: []}
    for count in (1, 2, 2, 1):
        began_s = time.perf_counter()
        loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(count)]
        for loop in loops:
            loop.wait(LONGEST_S)
        taken_s[count].append(time.perf_counter() - began_s)
    return 2 * min(taken_s[1]) / min(taken_s[2])


def parallel_rows(folder: Path, count: int) -> Iterator[str]:
    """Measure and analyse a campaign twice in each Way, in order and then in reverse order; yield rows."""
    for name, work in (("measuring alone", measured), ("whole analysis, with figures", analysed)):
        taken: dict[Way, list[Spent]] = {way: [] for way in Way}
        for way in (*Way, *reversed(Way)):
            with held_to(way.processors):
                done = work(f"{count} trials, {name}, {way.value}", forgotten(folder), way.processes)
            taken[way].append(done)
        best = {way: min(runs, key=lambda run: run.wall_s) for way, runs in taken.items()}
        for way, run in best.items():
            gain = best[Way.ALONE].wall_s / run.wall_s
            yield run.row(f"{count} trials, {name}, {way.value}: {gain:.2f} times as fast as the first")
    yield f"| a plain loop, for comparison: two processes do {loop_gain():.2f} times as much as one | | | |"


def again_rows(folder: Path, count: int) -> Iterator[str]:
    """Measure a campaign's first analysis and those after it; yield rows."""
    first = f"{count} trials, first analysis"
    yield analysed(first, folder, 2).row(first)
    again = "`fab analyse` again, nothing changed, from start to end"
    yield spend(again, [str(FAB), "analyse", str(folder)]).row(again)
    figure = "a new figure alone"
    yield analysed(figure, folder, 2, 'list("rtt-cdf")').row(figure)
    manifest = next((folder / "trials").glob("*/manifest.json"))
    manifest.write_text(manifest.read_text() + "\n")
    changed = "one trial changed: measured again, all figures drawn"
    yield analysed(changed, folder, 2).row(changed)


def main() -> None:
    """Measure, print the table and, if asked, append it to a file."""
    parser = argparse.ArgumentParser(description="Analyse campaigns of many trials.")
    parser.add_argument("--append", type=Path, help="Markdown file that the results are added to")
    parser.add_argument("--from", dest="source", type=Path, default=SMALL, help="campaign with real traces")
    parser.add_argument("--parallel", type=int, default=160)
    parser.add_argument("--trials", type=int, default=500)
    asked = parser.parse_args()
    machine = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before"
    table = ["| | wall (s) | CPU (s) | largest process (MB) |", "|---|---|---|---|"]
    for trials, rows in ((asked.parallel, parallel_rows), (asked.trials, again_rows)):
        with tempfile.TemporaryDirectory(prefix="campaign-") as place:
            campaign = Path(place) / "campaign"
            arguments = [str(asked.source.resolve()), str(campaign), str(trials)]
            spend(f"copying {trials} trials", [sys.executable, str(MULTIPLY), *arguments])
            table += rows(campaign, trials)
    text = "\n".join([f"## Analysing a campaign, {time.strftime('%Y-%m-%d')}, {machine}", "", *table, ""])
    print(text)
    if asked.append:
        with asked.append.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")


if __name__ == "__main__":
    main()
