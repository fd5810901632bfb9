"""Figures and tables: an experiment may name those that the analysis draws, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.definition import Asked, load_study
from samovar.definition.exhibits import read_exhibits
from samovar.errors import DefinitionError
from tests.unit.plans import BULK, CATALOGUE, HEAD, ROOT

KNOWN = read_exhibits(ROOT / "analysis" / "R")


def test_the_analysis_draws_the_figures_and_tables_that_shipped_experiments_name() -> None:
    assert {"buffer-cdf", "rtt-by-rwnd", "design"} <= set(KNOWN["figure"])
    assert {"buffer-estimates", "cc-comparison"} <= set(KNOWN["table"])


def test_a_figure_or_table_that_nothing_draws_is_refused_at_its_name(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "hosts").symlink_to(ROOT / "hosts")
    more = (
        "figures: [{figure: buffer-cdff, part: main}, design]\nprofiles: {quick: {tables: [cc-comparisn]}}\n"
    )
    (tmp_path / "experiments" / "study.yaml").write_text(HEAD + BULK + more)
    with pytest.raises(DefinitionError) as caught:
        load_study(tmp_path / "experiments" / "study.yaml", CATALOGUE, asked=Asked(exhibits=KNOWN))
    first, second = caught.value.problems
    assert (first.line, first.column, second.line, second.column) == (6, 20, 7, 29)
    assert first.message.startswith("unknown figure 'buffer-cdff'; did you mean 'buffer-cdf'? known: ")
    assert second.message.startswith("unknown table 'cc-comparisn'; did you mean 'cc-comparison'? known: ")
