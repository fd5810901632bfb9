"""Check that the documentation lists exactly the tested faults."""

from __future__ import annotations

import re
from pathlib import Path

from tests.faults.matrix import FAULTS
from tests.faults.test_analysis_faults import ALL as ANALYSIS_FAULTS
from tests.faults.test_ten_faults import NAME as TEN_FAULTS


def test_the_documentation_lists_exactly_the_tested_faults(root: Path) -> None:
    text = (root / "docs" / "explanation" / "reliability.md").read_text(encoding="utf-8")
    table = text[text.index("| what happens | faults |") :].partition("\n\n")[0]
    named = re.findall(r"`([a-z0-9-]+)`", table)
    assert sorted(named) == sorted([*(fault.name for fault in FAULTS), *ANALYSIS_FAULTS, TEN_FAULTS])


def test_the_names_of_faults_are_unique() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
