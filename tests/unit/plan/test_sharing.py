"""Treatments share components: every trial equals the same trial planned alone, and plans are reproducible."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samovar.experiment import load_experiment
from samovar.plan import Plan, make_plan
from tests.unit.plans import CATALOGUE, DUMBBELL, LAB, ROOT, experiment_of, planned, study, treatments_alone

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
    """Draw an experiment with some factors, exclusions and an order."""
    names = draw(st.lists(st.sampled_from(sorted(FORMS)), max_size=4, unique=True))
    lines = [f"  {name}: {draw(st.sampled_from(FORMS[name]))}\n" for name in names]
    factors = "factors:\n" + "".join(lines) if lines else ""
    excluded = "[cubic," in factors and draw(st.booleans())
    exclude = "exclude: [{cc: cubic}]\n" if excluded else ""
    traffic = f"traffic:\n  - {draw(st.sampled_from(TRAFFIC))}\n  - {draw(st.sampled_from(OTHERS))}\n"
    order = draw(st.sampled_from(["sequential", "shuffled", "blocked"]))
    more = f"replicates: {draw(st.integers(1, 3))}\norder: {{kind: {order}, seed: 7}}\n"
    record = "captures: [{at: sender}]\nloggers: [{logger: queue, at: router, interval: 5ms}]\n"
    return study(factors + exclude + more + record, traffic)


@settings(max_examples=30)
@given(experiments())
def test_every_trial_equals_the_trial_of_its_treatment_planned_alone(text: str) -> None:
    plan = planned(text, DUMBBELL, CATALOGUE)
    assert {trial.id: trial.resolved for trial in plan.trials} == dict(
        treatments_alone(experiment_of(text), DUMBBELL)
    )


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_trial_of_a_shipped_experiment_equals_the_trial_of_its_treatment_planned_alone(
    path: Path,
) -> None:
    one = load_experiment(path, CATALOGUE)
    fast = {trial.id: trial.resolved for trial in make_plan(one, CATALOGUE).trials}
    assert fast == dict(treatments_alone(one.experiment, one.testbed))


@settings(max_examples=15)
@given(experiments())
def test_a_plan_of_any_experiment_is_read_back_as_it_was_written(text: str) -> None:
    plan = planned(text, DUMBBELL, CATALOGUE)
    read = Plan.from_json(plan.to_json())
    assert read.to_json() == plan.to_json()
    assert [trial.as_json() for trial in read.trials] == [trial.as_json() for trial in plan.trials]


PRINT_HASH = """
import hashlib
from tests.unit.plan.test_sharing import hash_of_plans
print(hash_of_plans())
"""


def hash_of_plans() -> str:
    """Return the hash of the plans of all shipped experiments and of one with random starts."""
    random_starts = study(
        "replicates: 3\nfactors: {cc: [cubic, cdg], mtu: [600, 1500]}\n", f"traffic: [{TRAFFIC[1]}]\n"
    )
    plans = [planned(random_starts, DUMBBELL, CATALOGUE)]
    plans += [make_plan(one, CATALOGUE) for one in (load_experiment(p, CATALOGUE) for p in EXPERIMENTS)]
    return hashlib.sha256(b"".join(plan.to_json() for plan in plans)).hexdigest()


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_the_bytes_of_a_plan_do_not_depend_on_the_process(seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PRINT_HASH],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == hash_of_plans(), done.stderr


@settings(max_examples=10)
@given(experiments())
def test_the_same_experiment_gives_the_same_bytes(text: str) -> None:
    assert planned(text, DUMBBELL, CATALOGUE).to_json() == planned(text, DUMBBELL, CATALOGUE).to_json()


def test_treatments_are_grouped_by_the_components_in_a_view() -> None:
    text = study("replicates: 4\nfactors: {cc: [cubic, cdg], mtu: [600, 1500], path.rate: [8Mbit, 9Mbit]}\n")
    plan = planned(text, LAB)
    slow, fast = plan.groups({"path": None})
    assert [len(group.trials) for group in (slow, fast)] == [16, 16]
    assert [group.treatments for group in (slow, fast)] == [4, 4]
    assert (slow.levels, fast.levels["path.rate"]) == (plan.groups({})[0].levels, "9Mbit")
    assert {one.id for one in plan.trials if one.treatment["path.rate"] == "9Mbit"} == set(fast.trials)
    assert fast.resolved.path is not None and fast.resolved.path.down.rate_bps == 9_000_000
    assert [len(plan.groups({name: None})) for name in ("hosts", "flows", "captures")] == [4, 1, 1]
    assert len(plan.groups({"hosts": lambda host: host.mtu_bytes})) == 2
    assert len(plan.groups({"hosts.dst": lambda host: host.cc})) == 1
    assert plan.trials_of([slow, fast]) == tuple(plan.ids)
