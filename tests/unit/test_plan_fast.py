"""The fast way to plan gives what the plain one gives, and the same bytes every time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samovar.experiment import load_experiment
from samovar.plan import Plan, make_plan
from samovar.plan.groups import Kinds
from samovar.plan.product import Combinations
from tests.unit.plans import CATALOGUE, DUMBBELL, LAB, ROOT, experiment_of, plain_plan, planned, study

EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))

FORMS = {
    "cc": ["[cubic, cdg, newreno]", "[{sender: cubic, sender2: cdg}, htcp]"],
    "rwnd": ["[50KB, 1MB]", "[2 BDP, 10 BDP, 1GB]", "[{receiver: 80KB}]"],
    "mtu": ["[600, 1500]"],
    "txd": ["[64, 256]"],
    "path.rate": ["[8Mbit, 40Mbit]", "[{down: 9Mbit, up: 3Mbit}, 5Mbit]", "[{up: 2Mbit}]"],
    "path.buffer": ["[50packets, 64KB, 3 BDP]", "[{down: 20packets, up: 40packets}]", "[20packets + 1 BDP]"],
    "path.loss": ["[0%, 1%]", "[{up: 2%}]"],
    "path.rtt": ["[2ms, 20ms]"],
    "duration": ["[5s, 200 RTT]"],
    "traffic.bulk.count": ["[2, 3]"],
    "traffic.bulk.every": ["[1s, 3 RTT]"],
    "traffic.bulk.length": ["[1KB, 8KB]"],
    "traffic.other.size": ["[1MB, 4 BDP]"],
    "tcp.sack": ["[on, off]"],
    "home": ["[{path.jitter: 1ms, traffic.bulk.start: 2s, label: near}, {path.jitter: 0ms, label: far}]"],
}
TRAFFIC = [
    "{flow: bulk, generator: nuttcp, from: sender, to: receiver, count: 2}",
    "{flow: bulk, generator: nuttcp, from: senders, to: receivers, start: {uniform: [0s, 5s]}}",
]
OTHERS = [
    "{flow: other, generator: nuttcp, from: sender2, to: receiver2, size: 5MB}",
    "{flow: other, generator: nuttcp, from: receiver, to: sender, duration: 2s, arrivals: {poisson: 1/s, until: 5s}}",
]


@st.composite
def experiments(draw: st.DrawFn) -> str:
    """Write an experiment with some factors, exclusions and an order."""
    names = draw(st.lists(st.sampled_from(sorted(FORMS)), max_size=4, unique=True))
    lines = [f"  {name}: {draw(st.sampled_from(FORMS[name]))}\n" for name in names]
    factors = "factors:\n" + "".join(lines) if lines else ""
    gone = "[cubic," in factors and draw(st.booleans())
    exclude = "exclude: [{cc: cubic}]\n" if gone else ""
    traffic = f"traffic:\n  - {draw(st.sampled_from(TRAFFIC))}\n  - {draw(st.sampled_from(OTHERS))}\n"
    order = draw(st.sampled_from(["sequential", "shuffled", "blocked"]))
    more = f"replicates: {draw(st.integers(1, 3))}\norder: {{kind: {order}, seed: 7}}\n"
    record = "captures: [{at: sender}]\nloggers: [{logger: queue, at: router, interval: 5ms}]\n"
    return study(factors + exclude + more + record, traffic)


@settings(max_examples=30, deadline=None)
@given(experiments())
def test_every_trial_is_what_working_it_out_by_itself_gives(text: str) -> None:
    plan = planned(text, DUMBBELL, CATALOGUE)
    fast = {trial.id: trial.resolved for trial in plan.trials}
    assert fast == dict(plain_plan(experiment_of(text), DUMBBELL))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_shipped_experiment_is_planned_as_the_plain_way_does(path: Path) -> None:
    one = load_experiment(path, CATALOGUE)
    fast = {trial.id: trial.resolved for trial in make_plan(one).trials}
    assert fast == dict(plain_plan(one.experiment, one.testbed))


@settings(max_examples=15, deadline=None)
@given(experiments())
def test_a_plan_of_any_experiment_is_read_back_as_it_was_written(text: str) -> None:
    plan = planned(text, DUMBBELL, CATALOGUE)
    read = Plan.from_json(plan.to_json())
    assert read.to_json() == plan.to_json()
    assert list(read.trials) == list(plan.trials)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.data(),
)
def test_combinations_by_number_are_those_of_itertools(sizes: list[int], data: st.DataObject) -> None:
    crossed = tuple(sizes)
    line = [data.draw(st.lists(st.sampled_from(range(size)), unique=True)) for size in sizes]
    some = Combinations(crossed, crossed).without(line)
    expected = [
        levels
        for levels in product(*map(range, sizes))
        if not all(level in gone for level, gone in zip(levels, line, strict=True))
    ]
    assert [some[number] for number in range(len(some))] == expected
    assert [some.holds(levels) for levels in product(*map(range, sizes))] == [
        levels in set(expected) for levels in product(*map(range, sizes))
    ]
    factors = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True))
    keys = some.keys(factors)
    assert [tuple(some.levels_of(key, factors)[f] for f in factors) for key in keys] == [
        tuple(levels[f] for f in factors) for levels in expected
    ]


ALL = """
import hashlib
from tests.unit.test_plan_fast import digests
print(digests())
"""


def digests() -> str:
    """Hash the plans of all shipped experiments, and one with everything random."""
    drawn = study(
        "replicates: 3\nfactors: {cc: [cubic, cdg], mtu: [600, 1500]}\n", f"traffic: [{TRAFFIC[1]}]\n"
    )
    plans = [planned(drawn, DUMBBELL, CATALOGUE)]
    plans += [make_plan(one) for one in (load_experiment(p, CATALOGUE) for p in EXPERIMENTS)]
    return hashlib.sha256(b"".join(plan.to_json() for plan in plans)).hexdigest()


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_the_bytes_of_a_plan_do_not_depend_on_the_process(seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", ALL], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == digests(), done.stderr


@settings(max_examples=10, deadline=None)
@given(experiments())
def test_the_same_experiment_gives_the_same_bytes(text: str) -> None:
    assert planned(text, DUMBBELL, CATALOGUE).to_json() == planned(text, DUMBBELL, CATALOGUE).to_json()


def test_treatments_that_share_components_are_found_without_walking_their_trials() -> None:
    text = study("replicates: 4\nfactors: {cc: [cubic, cdg], mtu: [600, 1500], path.rate: [8Mbit, 9Mbit]}\n")
    table = planned(text, LAB).table
    paths = Kinds(table, {"path": None})
    assert (len(paths), dict(paths.trials())) == (2, {0: 16, 1: 16})
    found = [paths.resolved(kind).path for kind in range(2)]
    assert [path.down.rate_bps for path in found if path] == [8_000_000, 9_000_000]
    assert [len(Kinds(table, {look: None})) for look in ("hosts", "flows", "captures")] == [4, 1, 1]
