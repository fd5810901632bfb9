"""Impossible combinations of levels: a plan is valid if its exclude lines leave them all out."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.errors import DefinitionError
from samovar.experiment import load_experiment
from samovar.plan import Plan, make_plan
from samovar.recipes import Catalogue

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")
TEXT = """\
experiment: study
testbed: lab
path: {rate: 20Mbit, rtt: 20ms, buffer: 100packets}
duration: 20s
traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver}]
"""


def planned(folder: Path, design: str, head: str = TEXT) -> Plan:
    """Plan the study above with some factors."""
    (folder / "study.yaml").write_text(head + design)
    study = load_experiment(folder / "study.yaml", CATALOGUE, ROOT / "hosts" / "lab.yaml")
    return make_plan(study, CATALOGUE)


def queues(plan: Plan) -> list[tuple[str, ...]]:
    """Return the queue discipline of each treatment with its parameters."""
    paths = [trial.resolved.path for trial in plan.trials]
    return sorted((str(path.down.aqm), *map(str, path.down.aqm_parameters.items())) for path in paths if path)


@pytest.mark.parametrize(
    ("factors", "lines"),
    [
        ("{path.ecn: [on, off], path.aqm: [pfifo, codel]}", "[{path.aqm: pfifo, path.ecn: on}]"),
        (
            "{path.ecn: [on, off], path.aqm: [pfifo, codel], cc: [cubic]}",
            "[{path.aqm: pfifo, path.ecn: on, cc: cubic}]",
        ),
        (
            "{ecn: [{path.ecn: on, tcp.ecn: on, label: on}, {path.ecn: off, tcp.ecn: off, label: off}], "
            "path.aqm: [pfifo, codel]}",
            "[{path.aqm: pfifo, ecn: on}]",
        ),
    ],
)
def test_ecn_may_be_a_factor_if_its_combination_with_a_queue_discipline_without_ecn_is_excluded(
    tmp_path: Path, factors: str, lines: str
) -> None:
    plan = planned(tmp_path, f"factors: {factors}\nexclude: {lines}\n")
    assert queues(plan) == [("codel", "('ecn', 'off')"), ("codel", "('ecn', 'on')"), ("pfifo",)]


def test_an_included_treatment_is_not_combined_with_other_levels(tmp_path: Path) -> None:
    more = "factors: {path.ecn: [on], path.aqm: [codel]}\ninclude: [{path.aqm: pfifo, path.ecn: off}]\n"
    assert queues(planned(tmp_path, more)) == [("codel", "('ecn', 'on')"), ("pfifo",)]


def test_a_switch_of_the_path_that_is_off_is_left_out_for_a_queue_discipline_without_it(
    tmp_path: Path,
) -> None:
    head = TEXT.replace("100packets", "100packets, ecn: off")
    assert queues(planned(tmp_path, "factors: {path.aqm: [pfifo, codel]}\n", head)) == [
        ("codel", "('ecn', 'off')"),
        ("pfifo",),
    ]


def test_an_impossible_combination_that_is_excluded_for_some_other_levels_only_is_refused(
    tmp_path: Path,
) -> None:
    factors = "factors: {path.ecn: [on, off], path.aqm: [pfifo, codel], cc: [cubic, newreno]}\n"
    with pytest.raises(DefinitionError) as caught:
        planned(tmp_path, factors + "exclude: [{path.aqm: pfifo, path.ecn: on, cc: cubic}]\n")
    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        "study.yaml:6:22: main: path.ecn: aqm pfifo does not take ecn; "
        "aqms that take it: choke, codel, fq_codel, fq_pie, pie, red; "
        "choose another aqm, or exclude the combination, where path.ecn is on, path.aqm is pfifo"
    )
