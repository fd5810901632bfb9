"""Time the planning of 10,000 and 100,000 trials, compared with a plain script that enumerates as many.

Run by `make bench`. Each case runs in a process of its own, so that its peak memory is measured separately:

    python benchmarks/bench_plan.py [--append benchmarks/results.md]

The naive script only enumerates trials: it uses itertools.product, makes a dictionary for each trial
with the SHA-256 of its JSON as id, and shuffles each block once. It resolves nothing: no hosts,
addresses, ports, deadlines or formulas.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
T = TypeVar("T")

CCS = ["newreno", "cubic", "cdg", "htcp", "vegas", "westwood", "bbr", "dctcp", "illinois", "bic"]
STUDY = "100,000: a study of 10,000 x 10"
SHAPES = {
    "10,000: 1,000 treatments x 10": ((5, 10, 1, 5, 4, 1), 10),
    "10,000: 10,000 treatments x 1": ((5, 10, 2, 5, 5, 4), 1),
    "100,000: 10,000 treatments x 10": ((5, 10, 2, 5, 5, 4), 10),
    "100,000: 100,000 treatments x 1": ((5, 20, 4, 10, 5, 5), 1),
    STUDY: ((10, 10, 10, 10, 1, 1), 10),
}
HEAD = """\
experiment: bench
testbed: lab
path: {rate: 8Mbit, rtt: 10ms, buffer: 50packets}
duration: 30s
order: {kind: blocked, seed: 1}
traffic: [{flow: bulk, generator: nuttcp, from: sender, to: receiver}]
captures: [{at: sender}, {at: receiver, snaplen: 128}]
loggers: [{logger: tcp-info, at: sender}, {logger: queue, at: router, interval: 5ms}]
"""
STUDY_HEAD = """\
experiment: bench
testbed: example-freebsd
path: {rate: 8Mbit, rtt: 10ms, buffer: 2 BDP}
duration: 30s + 100 RTT
order: {kind: blocked, seed: 1}
traffic:
  - {flow: bulk, generator: iperf, from: sender, to: receiver}
  - {flow: other, generator: iperf-udp, from: sender, to: receiver, rate: 1Mbit, duration: 10s}
captures: [{at: sender}, {at: receiver, snaplen: 128}]
loggers: [{logger: siftr, at: sender}, {logger: queue, at: router, interval: 5ms}]
exclude: [{txd: "80"}]
"""
"""A study with FreeBSD hosts, formulas and an exclusion; study_of() adds linked levels and expectations."""


def study_of(replicates: int) -> str:
    """Return a study with this number of replicates and with everything that makes planning slow."""
    homes = [
        {
            "label": f"home{n}",
            "path.rate": f"{5 * n}Mbit",
            "path.rtt": f"{3 * n}ms",
            "path.buffer": f"{n} BDP",
        }
        for n in range(1, 11)
    ]
    rings = [str(80 + 16 * n) for n in range(11)]
    factors = {
        "home": homes,
        "path.loss": [f"0.{n}%" for n in range(10)],
        "txd": rings,
        "traffic.bulk.cc": CCS,
    }
    metric = {"metric": "goodput_bps", "above": "1000000"}
    expect = [{"say": f"Of {txd}", "where": {"txd": txd}, **metric} for txd in rings[1:]]
    made = {"replicates": str(replicates), "factors": factors, "expect": expect}
    return STUDY_HEAD + "".join(f"{key}: {json.dumps(value)}\n" for key, value in made.items())


def crossed_experiment(sizes: tuple[int, ...], replicates: int) -> str:
    """Return an experiment that crosses all factors; `sizes` has the number of levels of each factor."""
    return f"{HEAD}replicates: {replicates}\nfactors: {json.dumps(levels_of(sizes))}\n"


def levels_of(sizes: tuple[int, ...]) -> dict[str, list[str]]:
    """Return the factors of the benchmark's experiment; `sizes` has the number of levels of each factor."""
    cc, rwnd, mtu, rate, rtt, buffer = sizes
    return {
        "cc": CCS[:cc],
        "rwnd": [f"{10 * (n + 1)}KB" for n in range(rwnd)],
        "mtu": [str(600 + 100 * n) for n in range(mtu)],
        "path.rate": [f"{5 * (n + 1)}Mbit" for n in range(rate)],
        "path.rtt": [f"{5 * (n + 1)}ms" for n in range(rtt)],
        "path.buffer": [f"{0.5 * (n + 1):g} BDP" for n in range(buffer)],
    }


def plan_with_samovar(sizes: tuple[int, ...], replicates: int) -> Mapping[str, float]:
    """Time samovar: make a plan, write it and read it back. The YAML is read before the clock starts."""
    from samovar.experiment import Experiment, load_testbed, resolve_experiment
    from samovar.experiment.layers.merge import merge_layers
    from samovar.experiment.yaml_tree import parse_yaml
    from samovar.plan import Plan, make_plan
    from samovar.recipes import Catalogue

    study = (sizes, replicates) == SHAPES[STUDY]
    tree, _ = parse_yaml(
        study_of(replicates) if study else crossed_experiment(sizes, replicates), "bench.yaml"
    )
    whole = merge_layers([tree], [])
    experiment = Experiment.model_validate(whole).with_tree(whole)
    testbed = load_testbed(ROOT / "hosts" / ("example-freebsd.yaml" if study else "lab.yaml"))
    catalogue = Catalogue(ROOT / "templates")
    resolved = resolve_experiment(experiment, testbed)
    plan, planned = measure_call(lambda: make_plan(resolved, catalogue))
    peak_mb = peak()
    data, written = measure_call(plan.to_json)
    count = len(plan.trials)
    del plan
    read, took = measure_call(lambda: Plan.from_json(data))
    if len(read.trials) != count or len(set(read.ids)) != count:
        raise SystemExit("the plan was not read back as it was written")
    return {
        **planned,
        "trials": count,
        "peak_mb": peak_mb,
        "write_s": written["cpu_s"],
        "read_s": took["cpu_s"],
        "file_mb": len(data) / 1e6,
        "peak_all_mb": peak(),
    }


def enumerate_trials(sizes: tuple[int, ...], replicates: int) -> Mapping[str, float]:
    """Time a plain script that makes a dictionary, and a hash of its JSON, for each trial."""
    factors = levels_of(sizes)

    def make() -> list[dict[str, object]]:
        trials: list[dict[str, object]] = []
        for block in range(1, replicates + 1):
            rows: list[dict[str, object]] = []
            for levels in itertools.product(*factors.values()):
                trial: dict[str, object] = {**dict(zip(factors, levels, strict=True)), "replicate": block}
                text = json.dumps(trial, sort_keys=True)
                trial["id"] = "-".join(levels) + "-" + hashlib.sha256(text.encode()).hexdigest()[:6]
                rows.append(trial)
            random.Random(block).shuffle(rows)
            trials += rows
        return trials

    trials, took = measure_call(make)
    return {**took, "trials": len(trials), "peak_mb": peak()}


def measure_call(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """Call a function; return its result, and its wall and CPU time in seconds."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    found = work()
    return found, {"wall_s": time.perf_counter() - wall_s, "cpu_s": time.process_time() - cpu_s}


def peak() -> float:
    """Return the largest resident size so far, in MB (getrusage counts KiB on Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


MAKERS = {"samovar": plan_with_samovar, "naive": enumerate_trials}


def in_process(maker: str, shape: str) -> Mapping[str, float]:
    """Run one case in a fresh process."""
    command = [sys.executable, __file__, "--one", maker, shape]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    if done.returncode:
        raise SystemExit(f"{maker}, {shape}: {done.stderr}")
    found: Mapping[str, float] = json.loads(done.stdout)
    return found


def lines_of(shape: str) -> list[str]:
    """Plan a shape with samovar, then with the naive script, and return the rows of the table."""
    own, other = (in_process(maker, shape) for maker in MAKERS)
    ratio = own["cpu_s"] / other["cpu_s"]
    files = f"{own['write_s']:.2f} | {own['read_s']:.2f} | {own['file_mb']:.0f} | {own['peak_all_mb']:.0f}"
    return [
        f"| {shape} | samovar | {time_and_memory_cells(own)} | {ratio:.2f} | {files} |",
        f"| {shape} | naive | {time_and_memory_cells(other)} | 1 | | | | |",
    ]


def time_and_memory_cells(found: Mapping[str, float]) -> str:
    """Return the table cells with the wall time, the CPU time and the peak memory of a case."""
    return f"{found['wall_s']:.2f} | {found['cpu_s']:.2f} | {found['peak_mb']:.0f}"


def main() -> None:
    """Run every case, print the table and, with --append, append it to a file."""
    parser = argparse.ArgumentParser(description="Plan 10,000 and 100,000 trials.")
    parser.add_argument("--append", type=Path, help="Markdown file that the results are added to")
    parser.add_argument("--one", nargs=2, metavar=("MAKER", "SHAPE"), help="one case, in this process")
    options = parser.parse_args()
    if options.one:
        maker, shape = options.one
        print(json.dumps(MAKERS[maker](*SHAPES[shape])))
        return
    table = [HEADINGS, "|".join(["", *(["---"] * (HEADINGS.count("|") - 1)), ""])]
    table += [line for shape in SHAPES for line in lines_of(shape)]
    python = f"Python {platform.python_version()} on {platform.machine()}"
    heading = f"## Planning, {time.strftime('%Y-%m-%d')}, {python}, {cpus()}"
    text = "\n".join([heading, "", NAIVE, "", *table, ""])
    print(text)
    if options.append:
        with options.append.open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")


def cpus() -> str:
    """Return the number of processors and their load, which are needed to interpret the wall time."""
    return f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"


NAIVE = (
    "`naive` is a plain script: itertools.product, a dictionary per trial with the SHA-256 of its JSON as "
    "id, one shuffle per block. It resolves nothing."
)
HEADINGS = (
    "| trials | made by | wall (s) | CPU (s) | peak (MB) | CPU, naive = 1 | write plan.json (s) | read (s) | "
    "file (MB) | peak with both (MB) |"
)

if __name__ == "__main__":
    main()
