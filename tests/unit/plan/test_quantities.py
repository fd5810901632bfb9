"""Loggers that name a quantity: the recipe on each host, its parameters, and their explanation."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.cli.show_project import explanation_lines
from samovar.errors import RecipeError
from samovar.experiment import Testbed, explain_key, load_experiment, load_testbed
from samovar.plan import LoggerPlan, Plan, explain_trial, make_plan
from samovar.recipes import Catalogue
from tests.unit.plans import BULK, CATALOGUE, HEAD, planned, study

HOST = "{{os: {os}, role: {role}, address: 10.0.0.{number}, interfaces: {{em1: {{address: 172.16.{net}/24, link: {link}}}}}}}"
MIXED = f"""\
testbed: mixed
hosts:
  src: {HOST.format(os='freebsd, release: "14.0"', role="sender", number=1, net="10.2", link="left")}
  rtr:
    os: linux
    role: router
    address: 10.0.0.2
    interfaces: {{eth1: {{address: 172.16.10.1/24, link: left}}, eth2: {{address: 172.16.11.1/24, link: right}}}}
  dst: {HOST.format(os="linux", role="receiver", number=3, net="11.2", link="right")}
bottleneck: {{router: rtr, from: eth1, to: eth2}}
"""


@pytest.fixture
def mixed(tmp_path: Path) -> Testbed:
    (tmp_path / "mixed.yaml").write_text(MIXED)
    return load_testbed(tmp_path / "mixed.yaml")


def loggers(plan: Plan) -> tuple[LoggerPlan, ...]:
    return plan.trials[0].resolved.loggers


def test_a_logger_that_names_a_quantity_gives_the_same_plan_as_one_that_names_its_recipe() -> None:
    text = study("loggers: [{logger: tcp-info, at: sender, interval: 5ms}, {logger: queue, at: router}]\n")
    assert planned(text.replace("tcp-info", "tcp-state")).to_json() == planned(text).to_json()


def test_a_quantity_is_resolved_for_each_host_to_a_recipe_with_the_parameters_that_it_takes(
    mixed: Testbed,
) -> None:
    text = "loggers: [{logger: tcp-state, at: [sender, receiver], interval: 5ms, packets_per_line: 10}]\n"
    assert loggers(planned(study(text), mixed)) == (
        LoggerPlan(
            logger="siftr",
            host="src",
            interface="em1",
            interval_s=None,
            parameters={"packets_per_line": "10"},
        ),
        LoggerPlan(logger="tcp-info", host="dst", interface="em1", interval_s=0.005),
    )


def test_a_preferred_recipe_is_used_on_the_hosts_that_have_it(mixed: Testbed) -> None:
    text = "loggers: [{logger: tcp-state, at: [sender, receiver], prefer: tcp-probe, buffer_kib: 100}]\n"
    assert [(one.logger, one.parameters) for one in loggers(planned(study(text), mixed))] == [
        ("siftr", {}),
        ("tcp-probe", {"buffer_kib": "100"}),
    ]


def test_an_explanation_names_the_recipe_of_each_host(mixed: Testbed, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        HEAD.replace("testbed: lab", "testbed: mixed")
        + BULK
        + "loggers: [{logger: tcp-state, at: [sender, receiver]}]\n"
    )
    own = load_experiment(path, CATALOGUE, mixed)
    key = "loggers.tcp-state.logger"
    lines = list(explanation_lines(explain_key(own, CATALOGUE, key)))
    assert lines[0] == f"{key} = siftr at src; tcp-info at dst"
    assert " ".join(lines[1].split()) == "» siftr at src; tcp-info at dst recipe records tcp-state"
    plan = make_plan(own, CATALOGUE)
    (found,) = explain_trial(own, CATALOGUE, plan, key, plan.trials[0].id)
    assert found.in_trial == (("src", "logger", "siftr"), ("dst", "logger", "tcp-info"))


def test_of_two_recipes_that_record_one_quantity_one_must_be_an_alternative_to_the_other(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "linux" / "logger"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        (folder / f"{name}.sh.j2").write_text("{#---\nsummary: A logger.\nrecords: load\n---#}\n")
    with pytest.raises(
        RecipeError, match="one and two record load; all but one of them need `alternative_to`"
    ):
        Catalogue(tmp_path).quantities("linux")
    (folder / "one.sh.j2").write_text(
        "{#---\nsummary: A logger.\nrecords: load\nalternative_to: two\n---#}\n"
    )
    assert Catalogue(tmp_path).quantities("linux") == {"load": ("two", "one")}
