"""Measure how long the analysis of a campaign takes: in parallel, and repeated after no change or one change.

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
"""Time limit of a command: one that takes longer is killed, and the benchmark ends with an error."""


@dataclass(frozen=True)
class Usage:
    """A command's wall and CPU time in seconds, the memory of its largest process in MB, and its output."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    output: str

    def row(self, what: str) -> str:
        """Return a row of the table."""
        return f"| {what} | {self.wall_s:.1f} | {self.cpu_s:.1f} | {self.peak_mb:.0f} |"

    def inner_s(self) -> float:
        """Return the wall time between the instants that the command printed as `began` and `ended`."""
        instants = dict(
            line.split() for line in self.output.splitlines() if line.startswith(("began", "ended"))
        )
        return float(instants["ended"]) - float(instants["began"])


def spend(what: str, command: Sequence[str]) -> Usage:
    """Run a command; raises SystemExit with the command's output if it fails or takes too long."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
    environment = {"R_LIBS": str(ROOT / ".rlib"), **os.environ, "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryFile("w+", errors="replace") as captured:
        began_s = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=captured, stderr=captured, cwd=ROOT, env=environment, start_new_session=True
        )
        with _time_limit(process.pid):
            _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        captured.seek(0)
        output = captured.read()
    if process.returncode:
        raise SystemExit(f"{what}: exit status {process.returncode} after {wall_s:.0f} s: {output[-2000:]}")
    return Usage(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, output)


@contextmanager
def _time_limit(group: int) -> Iterator[None]:
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


def run_r(what: str, expression: str, folder: Path) -> Usage:
    """Run an expression of R on a campaign."""
    return spend(what, ["Rscript", "--vanilla", HEAP, "-e", expression, str(folder)])


def analyse(what: str, folder: Path, cores: int, figures: str = "NULL") -> Usage:
    """Analyse a campaign in R, without `fab`."""
    return run_r(what, ANALYSE.format(cores=cores, figures=figures), folder)


def measure(what: str, folder: Path, cores: int) -> Usage:
    """Measure the trials of a campaign, without tables and figures; the wall time excludes the start of R."""
    spent = run_r(what, MEASURE.format(cores=cores), folder)
    return Usage(spent.inner_s(), spent.cpu_s, spent.peak_mb, spent.output)


def without_results(folder: Path) -> Path:
    """Remove the tables and the bundle of earlier analyses, and return the folder."""
    for name in ("tables", "bundle"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return folder


class Division(Enum):
    """How trials are divided among processes; a single process decodes with one thread per processor."""

    ALONE = "one processor"
    THREADS = "two processors, one process"
    PROCESSES = "two processors, two processes"

    @property
    def processors(self) -> int:
        """Number of processors on which the analysis may run."""
        return 1 if self is Division.ALONE else 2

    @property
    def processes(self) -> int:
        """Number of processes that measure trials."""
        return 2 if self is Division.PROCESSES else 1


@contextmanager
def on_processors(processors: int) -> Iterator[None]:
    """Restrict this process and its new child processes to a number of processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:processors])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def loop_gain() -> float:
    """Return how much more work two processes do than one in the same time, for a loop that only computes."""
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
    """Time measuring and analysis in each Division, then again in reverse order; yield rows of the table."""
    for name, work in (("measuring alone", measure), ("whole analysis, with figures", analyse)):
        taken: dict[Division, list[Usage]] = {division: [] for division in Division}
        for division in (*Division, *reversed(Division)):
            with on_processors(division.processors):
                done = work(
                    f"{count} trials, {name}, {division.value}", without_results(folder), division.processes
                )
            taken[division].append(done)
        best = {division: min(runs, key=lambda run: run.wall_s) for division, runs in taken.items()}
        for division, run in best.items():
            gain = best[Division.ALONE].wall_s / run.wall_s
            yield run.row(f"{count} trials, {name}, {division.value}: {gain:.2f} times as fast as the first")
    yield f"| a plain loop, for comparison: two processes do {loop_gain():.2f} times as much as one | | | |"


def repeated_rows(folder: Path, count: int) -> Iterator[str]:
    """Time the first analysis of a campaign and repeated analyses; yield rows of the table."""
    first = f"{count} trials, first analysis"
    yield analyse(first, folder, 2).row(first)
    again = "`fab analyse` again, nothing changed, from start to end"
    yield spend(again, [str(FAB), "analyse", str(folder)]).row(again)
    figure = "a new figure alone"
    yield analyse(figure, folder, 2, 'list("rtt-cdf")').row(figure)
    manifest = next((folder / "trials").glob("*/manifest.json"))
    manifest.write_text(manifest.read_text() + "\n")
    changed = "one trial changed: measured again, all figures drawn"
    yield analyse(changed, folder, 2).row(changed)


def main() -> None:
    """Run the benchmark, print the table and, with --append, append it to a file."""
    parser = argparse.ArgumentParser(description="Time the analysis of campaigns of many trials.")
    parser.add_argument("--append", type=Path, help="Markdown file that the results are added to")
    parser.add_argument("--from", dest="source", type=Path, default=SMALL, help="campaign with real traces")
    parser.add_argument("--parallel", type=int, default=160)
    parser.add_argument("--trials", type=int, default=500)
    options = parser.parse_args()
    machine = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before"
    table = ["| | wall (s) | CPU (s) | largest process (MB) |", "|---|---|---|---|"]
    for trials, rows in ((options.parallel, parallel_rows), (options.trials, repeated_rows)):
        with tempfile.TemporaryDirectory(prefix="campaign-") as place:
            campaign = Path(place) / "campaign"
            arguments = [str(options.source.resolve()), str(campaign), str(trials)]
            spend(f"copying {trials} trials", [sys.executable, str(MULTIPLY), *arguments])
            table += rows(campaign, trials)
    text = "\n".join([f"## Analysing a campaign, {time.strftime('%Y-%m-%d')}, {machine}", "", *table, ""])
    print(text)
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")


if __name__ == "__main__":
    main()
