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


def refusals(tmp_path: Path, more: str) -> list[str]:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "hosts").symlink_to(ROOT / "hosts")
    path = tmp_path / "experiments" / "study.yaml"
    path.write_text(HEAD + BULK + more)
    try:
        load_study(path, CATALOGUE, asked=Asked(exhibits=KNOWN))
    except DefinitionError as error:
        return [f"{one.line}:{one.column}: {one.message}" for one in error.problems]
    return []


def test_an_option_that_a_figure_does_not_have_is_refused_at_its_place(tmp_path: Path) -> None:
    more = "figures: [{figure: buffer-cdf, metod: 1}]\nprofiles: {quick: {tables: [{table: left-out, method: 1}]}}\n"
    first, second = refusals(tmp_path, more)
    assert first.startswith("6:32: unknown option of buffer-cdf 'metod'; did you mean 'method'? known: ")
    assert second.startswith("7:47: unknown option of left-out 'method'; known: part, title, trial")


def test_options_of_a_figure_are_its_own_those_of_all_and_the_factors_of_the_experiment(
    tmp_path: Path,
) -> None:
    more = """\
factors: {cc: [cubic, newreno]}
profiles: {deep: {factors: {path.loss: [0%, 1%]}}}
figures:
  - {figure: jitter-cdf, flow: bulk, cc: cubic, title: Jitter}
  - {figure: rtt-cdf, axis: log, part: main, path.loss: 1%}
tables: [{table: crossed, metric: throughput_bps, rows: cc, columns: path.loss, published: {cubic: 3}}]
"""
    assert refusals(tmp_path, more) == []


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
