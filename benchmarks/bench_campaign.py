"""How a campaign is analysed: trials in parallel, and again when nothing or one thing has changed.

Run by `make bench`, on copies of the trials of a real campaign:

    python benchmarks/bench_campaign.py [--append FILE] [--from CAMPAIGN] [--parallel N] [--trials N]

All is measured in one run, each case by an R process of its own, one by `fab analyse` from start to end.
Processor time counts where the machine is busy: the wall clock then measures the others.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

MULTIPLY = ROOT / "benchmarks" / "multiply_campaign.py"
SMALL = ROOT / "analysis" / "tests" / "traces" / "campaign-small"
ANALYSE = "samovar::analyse_campaign(commandArgs(TRUE), cores = {cores}L, value = FALSE, figures = {figures})"


@dataclass(frozen=True)
class Spent:
    """What a command took: wall and CPU in seconds, its largest process in MB."""

    wall_s: float
    cpu_s: float
    peak_mb: float

    def row(self, what: str) -> str:
        """Return a row of the table."""
        return f"| {what} | {self.wall_s:.1f} | {self.cpu_s:.1f} | {self.peak_mb:.0f} |"


def spend(command: Sequence[str]) -> Spent:
    """Run a command; raises SystemExit with its words when it fails."""
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    words = process.communicate()[0]
    wall_s, after = time.perf_counter() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {words[-2000:]}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The largest of all children so far: cases are measured from the small to the large.
    return Spent(wall_s, cpu_s, after.ru_maxrss * 1024 / 1e6)


def analysed(folder: Path, cores: int, figures: str = "NULL") -> Spent:
    """Analyse a campaign by R alone."""
    return spend(["Rscript", "--vanilla", "-e", ANALYSE.format(cores=cores, figures=figures), str(folder)])


def forgotten(folder: Path) -> Path:
    """Remove what earlier analyses derived."""
    for name in ("tables", "bundle"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return folder


def parallel_rows(folder: Path) -> Iterator[str]:
    """Measure a campaign with one process and with two, twice in turn; yield rows."""
    taken: dict[int, list[Spent]] = {1: [], 2: []}
    for cores in (1, 2, 2, 1):
        taken[cores].append(analysed(forgotten(folder), cores, "list()"))
    best = {cores: min(runs, key=lambda run: run.wall_s) for cores, runs in taken.items()}
    count = len(list((folder / "trials").iterdir()))
    yield best[1].row(f"{count} trials, one process")
    yield best[2].row(f"{count} trials, two processes ({best[1].wall_s / best[2].wall_s:.2f} times as fast)")


def again_rows(folder: Path) -> Iterator[str]:
    """Measure a campaign's first analysis and those after it; yield rows."""
    count = len(list((folder / "trials").iterdir()))
    yield analysed(folder, 2).row(f"{count} trials, first analysis")
    fab = [str(Path(sys.executable).with_name("fab")), "analyse", "--campaign", str(folder)]
    yield spend(fab).row("`fab analyse` again, nothing changed")
    yield analysed(folder, 2, 'list("rtt-cdf")').row("a new figure")
    manifest = next((folder / "trials").glob("*/manifest.json"))
    manifest.write_text(manifest.read_text() + "\n")
    yield analysed(folder, 2).row("one trial changed")


def cpus() -> str:
    """Say how many processors there are and how busy they were."""
    return f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"


def main() -> None:
    """Measure, print the table and, if asked, append it to a file."""
    parser = argparse.ArgumentParser(description="Analyse campaigns of many trials.")
    parser.add_argument("--append", type=Path, help="Markdown file that the results are added to")
    parser.add_argument("--from", dest="source", type=Path, default=SMALL, help="campaign with real traces")
    parser.add_argument("--parallel", type=int, default=40)
    parser.add_argument("--trials", type=int, default=500)
    asked = parser.parse_args()
    cases: list[tuple[int, Callable[[Path], Iterator[str]]]] = [
        (asked.parallel, parallel_rows),
        (asked.trials, again_rows),
    ]
    table = ["| | wall (s) | CPU (s) | largest process (MB) |", "|---|---|---|---|"]
    for trials, rows in cases:
        with tempfile.TemporaryDirectory(prefix="campaign-") as place:
            campaign = Path(place) / "campaign"
            spend([sys.executable, str(MULTIPLY), str(asked.source), str(campaign), str(trials)])
            table += rows(campaign)
    text = "\n".join([f"## Analysing a campaign, {time.strftime('%Y-%m-%d')}, {cpus()}", "", *table, ""])
    print(text)
    if asked.append:
        with asked.append.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")


if __name__ == "__main__":
    main()
