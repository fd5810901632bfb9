"""A campaign recorded by version 0.1 is read, compared, verified, analysed and reported as it was then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.campaign import GOLDEN, Made, make_campaign, outputs, table_differences
from tests.golden.goldens import difference

TABLES = ("tables/*.csv", "bundle/data/*.csv")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_campaign(tmp_path_factory.mktemp("campaign"))


def test_its_trials_stand_and_plans_compare_with_it_as_they_did(made: Made) -> None:
    _compare("values.json", made.values)


def test_commands_and_the_report_say_what_they_said(made: Made) -> None:
    _compare("text.txt", made.text)


def _compare(name: str, made: str) -> None:
    found = difference((GOLDEN / name).read_text(), made)
    if found:
        pytest.fail(found, pytrace=False)


@pytest.mark.parametrize("pattern", TABLES)
def test_the_same_is_measured_of_it(pattern: str, made: Made) -> None:
    names = [_names(folder, pattern) for folder in (made.recorded, made.campaign)]
    assert names[0] == names[1] != []
    differences = {
        name: list(table_differences(made.recorded / name, made.campaign / name))[:5] for name in names[0]
    }
    assert {name: found for name, found in differences.items() if found} == {}


def _names(folder: Path, pattern: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))


def test_the_scorecard_figures_and_tables_are_the_same(made: Made) -> None:
    assert outputs(made.campaign) == outputs(made.recorded)
