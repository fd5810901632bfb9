"""The output and the plans of commands are equal to the golden files, which tests/golden/regenerate.py writes."""

from __future__ import annotations

import pytest

from tests.golden.goldens import COMMANDS, difference, make_goldens

NAMES = sorted(
    str(path.relative_to(COMMANDS)) for kind in ("text", "values") for path in COMMANDS.glob(f"{kind}/*")
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return make_goldens(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", NAMES)
def test_the_output_of_a_command_is_equal_to_the_golden_file(name: str, outputs: dict[str, str]) -> None:
    found = difference((COMMANDS / name).read_text(), outputs.get(name, ""))
    if found:
        pytest.fail(found, pytrace=False)


def test_every_experiment_and_profile_has_golden_files(outputs: dict[str, str]) -> None:
    assert sorted(outputs) == NAMES
