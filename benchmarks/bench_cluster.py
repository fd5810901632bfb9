"""Measure the time that Slurm and Snakemake add to jobs, on two and four nodes emulated on this computer.

    python benchmarks/bench_cluster.py [--append FILE] [--trials N]

Needs Debian's slurmctld, slurmd and munge, the extra `cluster`, and root. Jobs that only sleep show the
overhead of a job. The other jobs measure copies of a recorded campaign. The emulated
nodes share the processors of this computer, so more nodes than processors do not speed up jobs that compute.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.lab import slurm  # noqa: E402

MULTIPLY = ROOT / "benchmarks" / "multiply_campaign.py"
SMALL = ROOT / "analysis" / "tests" / "traces" / "campaign-small"
SLEEP_S = 20
JOBS_PER_NODE = 2
RUN = """
import json, sys
from pathlib import Path
from samovar.cli.cluster_jobs import Jobs, run_jobs
sys.exit(bool(run_jobs(Jobs("shard", json.loads(sys.argv[1]), 500, 10, {}), "slurm", Path(sys.argv[2]), "")))
"""


def spend(*command: str) -> float:
    """Run a command and return its wall time in seconds; raises SystemExit with its output if it fails."""
    print(f"{time.strftime('%H:%M:%S')} {' '.join(command)[:150]}", file=sys.stderr, flush=True)
    began_s = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode:
        raise SystemExit(f"{command[-1]}: exit code {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return time.perf_counter() - began_s


def times_of_completed_jobs(folder: Path) -> list[tuple[float, float, float]]:
    """Return when each completed job was submitted, started and ended, in whole seconds since 1970."""
    text = (folder / "completed").read_text() if (folder / "completed").exists() else ""
    times = re.compile(r"StartTime=(\S+) EndTime=(\S+).* SubmitTime=(\S+)")
    found = [times.search(line) for line in text.splitlines()]
    as_s = [[datetime.fromisoformat(one).timestamp() for one in match.groups()] for match in found if match]
    return [(submitted, started, ended) for started, ended, submitted in as_s]


def time_sleeping_jobs(cluster: slurm.Cluster, nodes: int) -> str:
    """Run jobs that sleep for a known time, and return a row of the table of overheads."""
    results = cluster.folder / "results"
    number, before = nodes * JOBS_PER_NODE, len(times_of_completed_jobs(cluster.folder))
    commands = json.dumps([f"sleep {SLEEP_S}"] * number)
    wall_s = spend(*cluster.inside, sys.executable, "-c", RUN, commands, str(results))
    ended_s = time.time()
    jobs = times_of_completed_jobs(cluster.folder)[before:]
    waited = [started - submitted for submitted, started, _ in sorted(jobs)[:nodes]]
    around = [ended - started - SLEEP_S for _, started, ended in jobs]
    detected_s = ended_s - max(ended for _, _, ended in jobs)
    ideal_s, in_job_s = JOBS_PER_NODE * SLEEP_S, sum(around) / len(around)
    added_s = (wall_s - ideal_s) / JOBS_PER_NODE
    times = (
        f"{ideal_s} | {wall_s:.0f} | {max(waited):.0f} | {in_job_s:.1f} | {detected_s:.0f} | {added_s:.0f}"
    )
    return f"| {nodes} | {number} | {times} |"


def time_analysis(cluster: slurm.Cluster | None, nodes: int, trials: int) -> str:
    """Analyse a new copy of the campaign twice, and return a row with the two wall times."""
    with TemporaryDirectory(prefix="cluster-") as place:
        campaign = Path(place) / "results" / "copies" / "campaign"
        campaign.parent.mkdir(parents=True)
        spend(sys.executable, str(MULTIPLY), str(SMALL), str(campaign), str(trials))
        on = ["--on", "slurm", "--jobs", str(nodes)] if cluster else ["--on", "local"]
        inside = cluster.inside if cluster else ()
        wall_s = spend(*inside, sys.executable, "-m", "samovar", "analyse", str(campaign), *on)
        again_s = spend(sys.executable, "-m", "samovar", "analyse", str(campaign))
    where = f"Slurm, {nodes} nodes, {nodes} jobs" if cluster else "local, two processes"
    return f"| {where} | {wall_s:.0f} | {again_s:.1f} |"


def rows(trials: int) -> Iterator[str]:
    """Run all measurements, and yield the lines of the report."""
    yield f"Jobs that sleep for {SLEEP_S} s, {JOBS_PER_NODE} for each node."
    yield ""
    yield (
        "| nodes | jobs | least possible (s) | took (s) | submitted to started (s) "
        "| in the job beside its command (s) | last end to detection (s) | added for each job of a node (s) |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    analysed = [time_analysis(None, 1, trials)]
    for nodes in (2, 4):
        slurm.NODES = tuple(f"n{number + 1}" for number in range(nodes))
        with slurm.new_cluster() as cluster:
            yield time_sleeping_jobs(cluster, nodes)
            analysed.append(time_analysis(cluster, nodes, trials))
    yield from ("", f"`fab analyse` of {trials} trials of a recorded campaign, measured in jobs.", "")
    yield from ("| measured by | took (s) | again, nothing changed (s) |", "|---|---|---|", *analysed)


def main() -> None:
    """Run the benchmark, print the tables and, with --append, append them to a file."""
    parser = argparse.ArgumentParser(description="Measure the cost of jobs on an emulated cluster.")
    parser.add_argument("--append", type=Path, help="Markdown file that the results are added to")
    parser.add_argument("--trials", type=int, default=480)
    options = parser.parse_args()
    machine = f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    text = "\n".join([f"## Jobs of a cluster, {machine}", "", *rows(options.trials), ""])
    print(text)
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")


if __name__ == "__main__":
    main()
