"""Check that a campaign with ten faults gives the same tables as one without faults."""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import pytest

from samovar.analyse import analyse
from samovar.events import silent
from tests.faults import judge
from tests.faults.fault import Fault
from tests.faults.hosts import wait_for
from tests.faults.matrix import FAULTS, await_hosts
from tests.faults.moment import Moment
from tests.faults.scene import END_S, Bench, Scene, bench

pytestmark = [pytest.mark.lab, pytest.mark.proof]
SEED = 20120914
TRIALS = 200
STRIKES = 10
REPLICATES = 50
NAME = f"ten-in-{TRIALS}-trials"
RETRIES = 2
LIMIT_S = 15.0 * TRIALS
ROUNDS = 4
"""The largest number of runs of the command that the campaign may need after the last fault."""
STUDY = """\
experiment: {name}
title: Many short trials
testbed: lab
settings: {{shaper.rate: {{src: 10Mbit, rtr: 10Mbit}}}}
duration: 1s
replicates: {replicates}
order: {{kind: blocked, seed: 7}}
traffic: [{{flow: bulk, generator: iperf3, from: sender, to: receiver}}]
captures: [{{at: sender}}, {{at: receiver}}]
loggers: [{{logger: tcp-info, at: sender, interval: 10ms}}]
factors: {{cc: [cubic, newreno], mtu: [1000, 1400]}}
"""
Key = tuple[str, ...]
METRICS_OF_SOME_FLOWS = ("buffer_", "ssthresh_")
"""Beginnings of metrics that a flow of one second has only if its window was reduced or went through a complete cycle. They are
compared only if at least half of the replicates have them, because fewer values do not show how much replicates differ."""
KEYS = ("trial", "part", "cc", "mtu", "replicate", "flow", "metric", "unit")


def chosen() -> list[tuple[int, Fault]]:
    """Choose faults at random, each with the number of trials since the fault before it."""
    dice = random.Random(SEED)
    candidates = [fault for fault in FAULTS if fault.kernel == "native" and not fault.damages]
    candidates = [fault for fault in candidates if fault.name not in ("file-changed-afterwards",)]
    candidates = [
        fault for fault in candidates if "disk-full" not in fault.name and "read-only" not in fault.name
    ]
    gap = TRIALS // (STRIKES + 1)
    return [(dice.randint(2, gap), fault) for fault in dice.sample(candidates, STRIKES)]


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A checkout with its lab."""
    with bench("native", tmp_path_factory.mktemp("ten-faults")) as made:
        made.configure(RETRIES)
        yield made


def _campaign(native: Bench, name: str) -> Scene:
    native.checkout.write(name, STUDY.format(name=name, replicates=REPLICATES))
    return Scene(native, name, limit_s=LIMIT_S)


def strike_all(scene: Scene, faults: list[tuple[int, Fault]]) -> None:
    """Cause one fault after another; run the same command again whenever a fault has ended it."""
    for number, (_, fault) in enumerate(faults):
        if scene.process is None or scene.process.poll() is not None:
            scene.start(*_moments(faults[number:]))
        scene.catch()
        _strike(scene, fault)


def _moments(faults: list[tuple[int, Fault]]) -> Iterator[Moment]:
    trial = 0
    for gap, fault in faults:
        trial += gap
        yield from (Moment(trial, phase) for phase in (fault.phase, *fault.then))


def _strike(scene: Scene, fault: Fault) -> None:
    victim = scene.victim
    attempt = len(judge.endings(scene.journal(), victim))
    try:
        fault.strike(scene)
        wait_for("the end of the trial", lambda: _over(scene, victim, attempt), END_S)
    finally:
        fault.mend(scene)
    if scene.controller.poll() is not None:
        scene.end()


def _over(scene: Scene, victim: str, attempt: int) -> bool:
    ended = judge.endings(scene.journal(), victim)[attempt - 1] != "cut"
    return ended or scene.controller.poll() is not None


def _finish(scene: Scene) -> None:
    if scene.process and scene.process.poll() is None:
        scene.end()
    for _ in range(ROUNDS):
        said = scene.again()
        if said.code == 0:
            return
    raise AssertionError(said.text)


def test_a_campaign_with_ten_random_faults_has_the_same_tables_as_one_without_faults(
    native: Bench, record_property: Callable[[str, object], None]
) -> None:
    record_property("fault", NAME)
    undisturbed, disturbed = _campaign(native, "undisturbed"), _campaign(native, "disturbed")
    faults = chosen()
    try:
        _finish(undisturbed)
        strike_all(disturbed, faults)
        _finish(disturbed)
    finally:
        undisturbed.abandon()
        disturbed.abandon()
    await_hosts(disturbed)
    _same_trials(undisturbed, disturbed)
    metrics = _same_tables(undisturbed, disturbed)
    names = ", ".join(fault.name for _, fault in faults)
    record_property("outcome", f"{TRIALS} trials, 0 lost, {metrics} metrics agree; seed {SEED}: {names}")


def _same_trials(undisturbed: Scene, disturbed: Scene) -> None:
    """Check that both campaigns have the same plan, the same trials and settings, and identical recorded host states.

    The files of the disturbed campaign must also be undamaged and consistent with its journal.
    """
    assert _plan(undisturbed) == _plan(disturbed)
    one, other = judge.complete_trials(undisturbed.campaign), judge.complete_trials(disturbed.campaign)
    assert len(one) == TRIALS
    assert one.keys() == other.keys()
    assert not [*judge.damaged_files(other), *judge.inconsistencies(disturbed.journal(), disturbed.campaign)]
    for id_, trial in one.items():
        assert trial.manifest["resolved"] == other[id_].manifest["resolved"]
        assert trial.counts and other[id_].counts
        facts = [name for name in trial.sums if name.startswith("facts/")]
        assert [trial.sums[name] for name in facts] == [other[id_].sums.get(name) for name in facts], id_
        assert {name.partition("/")[0] for name in trial.sums} == {
            n.partition("/")[0] for n in other[id_].sums
        }


def _plan(scene: Scene) -> bytes:
    return (scene.campaign / "plan.json").read_bytes().replace(scene.name.encode(), b"NAME")


def _same_tables(undisturbed: Scene, disturbed: Scene) -> int:
    """Check that both campaigns have the same metrics, and that their values agree within the scatter of the replicates."""
    one, other = _metrics(undisturbed), _metrics(disturbed)
    assert not sorted(_rows(one) ^ _rows(other), key=lambda row: row[6])
    assert {key[0] for key in one} == {path.name for path in (undisturbed.campaign / "trials").iterdir()}
    scatter, medians = _groups(one), _groups(other)
    assert {key for key in scatter if not _by_chance(key[3])} == {
        key for key in medians if not _by_chance(key[3])
    }
    for key in scatter.keys() & medians.keys():
        if key[3] == "overhead_s":  # depends on the machine that runs the test
            continue
        values, median = scatter[key], medians[key][len(medians[key]) // 2]
        assert values[0] <= median <= values[-1], f"{key}: {median} is not within {values[0]} to {values[-1]}"
    return len({key[6] for key in one})


def _rows(metrics: Mapping[Key, float | None]) -> set[Key]:
    return {key for key in metrics if not _by_chance(key[6])}


def _by_chance(metric: str) -> bool:
    return metric.startswith(METRICS_OF_SOME_FLOWS)


def _metrics(scene: Scene) -> dict[Key, float | None]:
    analyse(scene.campaign, scene.bench.checkout.folder, silent)
    with (scene.campaign / "tables" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {tuple(row[key] for key in KEYS): _number(row["value"]) for row in rows}


def _number(text: str) -> float | None:
    return None if text in ("", "NA", "NaN") else float(text)


def _groups(metrics: Mapping[Key, float | None]) -> dict[Key, list[float]]:
    """Return the sorted values of each metric, over the replicates of each treatment that have this metric."""
    groups: dict[Key, list[float]] = defaultdict(list)
    for key, value in metrics.items():
        if value is not None:
            groups[(*key[2:4], *key[5:7])].append(value)
    few = {key for key, values in groups.items() if _by_chance(key[3]) and 2 * len(values) < REPLICATES}
    return {key: sorted(values) for key, values in groups.items() if key not in few}
