"""Errors in formulas have a position in the file with the formula: testbed, configuration or experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.errors import DefinitionError
from samovar.experiment import LoadOptions, load_config, load_testbed, resolve_experiment
from samovar.plan import make_plan
from tests.unit.plans import BULK, CATALOGUE, LAB, ROOT, experiment_of

EXPERIMENT = f"experiment: study\ntestbed: lab\nduration: 5s\n{BULK}"  # without a path, BDP has no value


def test_an_error_in_a_formula_of_a_testbed_has_its_position(tmp_path: Path) -> None:
    lab = (ROOT / "hosts" / "lab.yaml").read_text().rstrip("\n")
    file = tmp_path / "lab.yaml"
    file.write_text(f"{lab}\nsettings: {{rwnd: 2 BDP}}\n")
    line = len(file.read_text().splitlines())
    with pytest.raises(
        DefinitionError, match=rf"lab\.yaml:{line}:18: main: rwnd of dst: '2 BDP': path\.rate"
    ):
        make_plan(resolve_experiment(experiment_of(EXPERIMENT), load_testbed(file)), CATALOGUE)


def test_an_error_in_a_formula_of_the_configuration_has_its_position(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("settings: {rwnd: 3 BDP}\n")
    options = LoadOptions(config=load_config(file))
    with pytest.raises(DefinitionError, match=r"config\.yaml:1:18: main: rwnd of dst: '3 BDP'"):
        make_plan(resolve_experiment(experiment_of(EXPERIMENT), LAB, options), CATALOGUE)


@pytest.mark.parametrize(
    ("size", "column", "error"),
    [
        ("{exponential: 1 BDP}", 91, "'1 BDP': path.rate"),
        ("{uniform: [2 * RATE * 1s, 1KB]}", 88, "'2 \\* RATE \\* 1s': path.rate"),
    ],
)
def test_an_error_in_a_formula_of_a_random_value_has_its_position(size: str, column: int, error: str) -> None:
    traffic = BULK.replace("receiver}", f"receiver, size: {size}}}")
    with pytest.raises(DefinitionError, match=rf"study\.yaml:4:{column}: main: flow bulk: size: {error}"):
        make_plan(resolve_experiment(experiment_of(EXPERIMENT.replace(BULK, traffic)), LAB), CATALOGUE)
