"""Figures and tables: an experiment may name those that the analysis draws, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from samovar.errors import DefinitionError
from samovar.experiment import LoadOptions, load_experiment
from samovar.experiment.metrics import METRICS
from samovar.experiment.outputs import read_exhibits
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
        load_experiment(path, CATALOGUE, options=LoadOptions(exhibits=KNOWN))
    except DefinitionError as error:
        return [f"{one.line}:{one.column}: {one.message}" for one in error.problems]
    return []


def test_options_of_a_figure_are_its_own_those_of_all_and_the_factors_of_the_experiment(
    tmp_path: Path,
) -> None:
    more = """\
factors: {cc: [cubic, newreno], path.loss: [0%, 1%]}
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
        load_experiment(
            tmp_path / "experiments" / "study.yaml", CATALOGUE, options=LoadOptions(exhibits=KNOWN)
        )
    first, second = caught.value.problems
    assert (first.line, first.column, second.line, second.column) == (6, 20, 7, 29)
    assert first.message.startswith("unknown figure 'buffer-cdff'; did you mean 'buffer-cdf'? known: ")
    assert second.message.startswith("unknown table 'cc-comparisn'; did you mean 'cc-comparison'? known: ")


DEMO = (ROOT / "experiments" / "demo.yaml").read_text("utf-8")
OPTIONS = {
    "{figure: buffer-cdf, method: 3}": ["30: method: unknown method '3'; known: 1, 1-local, 2, 2-raw"],
    "{figure: buffer-cdf, methd: 2}": ["22: unknown option or factor 'methd'; did you mean 'method'? known: cc, method, mtu, part, rwnd, title, trial"],
    "{figure: design, x: 3}": ["18: unknown option or factor 'x'; known: cc, mtu, part, rwnd, title, trial"],
    "{figure: rtt-cdf, rwnd: 600kB}": ["25: unknown level of rwnd '600kB'; did you mean '600KB'? known: 40KB, 600KB, 9999KB"],
    "{figure: rtt-cdf, cc: [cdg, vegas]}": ["29: unknown level of cc 'vegas'; known: cdg, cubic, newreno"],
    "{figure: rtt-cdf, part: buffer, rwnd: 40KB}": ["39: unknown level of rwnd '40KB'; known: 9999KB"],
    "{figure: rtt-cdf, part: [buffer, windw], rwnd: 40KB}": ["34: unknown part 'windw'; did you mean 'window'? known: buffer, window", "48: unknown level of rwnd '40KB'; known: 9999KB"],
    "{figure: rtt-cdf, cc: [[cdg]]}": ["24: unknown level of cc '['cdg']'; known: cdg, cubic, newreno"],
    "{figure: rtt-cdf, part: []}": ["25: part: must be a name or a list of names"],
    "{figure: rtt-cdf, rwnd: {a: b}}": ["25: rwnd: must be a name or a list of names"],
    "{figure: rtt-cdf, part: {a: b}, cc: []}": ["25: part: must be a name or a list of names", "37: cc: must be a name or a list of names"],
    "{figure: rtt-cdf, txd: 256}": ["19: unknown option or factor 'txd'; known: axis, cc, flow, mtu, part, rwnd, title, trial"],
}  # fmt: skip


def told(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "hosts").symlink_to(ROOT / "hosts")
    (tmp_path / "experiments" / "demo.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError) as caught:
        load_experiment(
            tmp_path / "experiments" / "demo.yaml", CATALOGUE, options=LoadOptions(exhibits=KNOWN)
        )
    return [f"{one.column}: {one.message}" for one in caught.value.problems]


@pytest.mark.parametrize("entry", OPTIONS)
def test_an_option_that_a_figure_has_not_is_refused_at_its_place(entry: str, tmp_path: Path) -> None:
    head, _, rest = DEMO.partition("figures:\n")
    figures = f"figures: [\n{entry}]\n"
    assert told(tmp_path, head + figures + rest[rest.index("tables:") :]) == OPTIONS[entry]


def test_a_table_of_one_metric_over_two_factors_names_them(tmp_path: Path) -> None:
    table = "tables: [{table: crossed, metric: rtt_mean_ms, rows: cc, columns: rwndd}]\n"
    first, second = told(tmp_path, DEMO[: DEMO.index("tables:")] + table)
    assert first.startswith("35: metric: unknown metric 'rtt_mean_ms'; did you mean 'rtt_median_ms'? known: ")
    assert second == "67: columns: unknown factor 'rwndd'; did you mean 'rwnd'? known: cc, mtu, rwnd"


def test_the_options_that_r_takes_are_those_that_its_code_reads() -> None:
    for file in sorted((ROOT / "analysis" / "R").glob("*.R")):
        for kind, name, body in re.findall(
            r"^(figure|table)_(\w+) <- function(.*?)^}", file.read_text("utf-8"), re.M | re.S
        ):
            exhibit = KNOWN[kind][name.replace("_", "-")]
            call = re.search(r"select_trials\(results, options(.*?)\)", body, re.S)
            taken = set(re.findall(r'"(\w+)"', call[1])) if call else set()
            assert taken <= exhibit.options.keys(), name
            assert all(metric in METRICS for group in exhibit.shows for metric in group), name


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{figure: rtt-cdf, title: [a, b]}", "26: title: must be a text"),
        ("{figure: rtt-cdf, part: [[a]]}", "26: part: must be a name"),
        ("{figure: rtt-cdf, flow: blk}", "25: flow: unknown flow 'blk'"),
        (
            "{figure: metric-by-factor, metric: rtt_median_ms, factor: ccc}",
            "59: factor: unknown factor 'ccc'",
        ),
    ],
)
def test_what_an_option_names_is_known(entry: str, said: str, tmp_path: Path) -> None:
    head, _, rest = DEMO.partition("figures:\n")
    found = told(tmp_path, f"{head}figures: [\n{entry}]\n{rest[rest.index('tables:') :]}")
    assert len(found) == 1 and found[0].startswith(said), found


def test_a_figure_that_tells_nothing_of_itself_has_no_options_and_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "plot.R").write_text("figure_own <- function(results, options) {\n}\n")
    own = read_exhibits(tmp_path)["figure"]["own"]
    assert (own.title, own.options, own.shows) == ("", {}, ())
