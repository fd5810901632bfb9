"""The commands print and plan what they did when the golden files were made; see tests/golden/regenerate.py."""

from __future__ import annotations

import pytest

from tests.golden.goldens import COMMANDS, difference, make_goldens

NAMES = sorted(
    str(path.relative_to(COMMANDS)) for kind in ("text", "values") for path in COMMANDS.glob(f"{kind}/*")
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return make_goldens(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", NAMES)
def test_a_command_s_output_equals_the_golden_file(name: str, made: dict[str, str]) -> None:
    found = difference((COMMANDS / name).read_text(), made.get(name, ""))
    if found:
        pytest.fail(found, pytrace=False)


def test_every_experiment_and_profile_has_golden_files(made: dict[str, str]) -> None:
    assert sorted(made) == NAMES
