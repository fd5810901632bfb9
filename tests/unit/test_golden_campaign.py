"""A campaign recorded by version 0.1 is read, compared, verified, analysed and reported with unchanged results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.campaign import GOLDEN, Made, make_campaign, outputs, table_differences
from tests.golden.goldens import difference

TABLES = ("tables/*.csv", "bundle/data/*.csv")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_campaign(tmp_path_factory.mktemp("campaign"))


def test_states_of_trials_exit_codes_and_comparisons_of_plans_are_unchanged(result: Made) -> None:
    _compare_with_golden("values.json", result.values)


def test_the_output_of_commands_and_the_text_of_the_report_are_unchanged(result: Made) -> None:
    _compare_with_golden("text.txt", result.text)


def _compare_with_golden(name: str, result: str) -> None:
    found = difference((GOLDEN / name).read_text(), result)
    if found:
        pytest.fail(found, pytrace=False)


@pytest.mark.parametrize("pattern", TABLES)
def test_measured_tables_are_unchanged(pattern: str, result: Made) -> None:
    names = [_names(folder, pattern) for folder in (result.recorded, result.campaign)]
    assert names[0] == names[1] != []
    differences = {
        name: list(table_differences(result.recorded / name, result.campaign / name))[:5] for name in names[0]
    }
    assert {name: found for name, found in differences.items() if found} == {}


def _names(folder: Path, pattern: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))


def test_the_scorecard_figures_and_tables_are_unchanged(result: Made) -> None:
    assert outputs(result.campaign) == outputs(result.recorded)
