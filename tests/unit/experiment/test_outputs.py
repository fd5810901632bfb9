"""The manifest of outputs: an experiment may name the metrics, figures and tables in it, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samovar.errors import DefinitionError
from samovar.experiment import LoadOptions, keys, load_experiment, package_outputs, project_outputs
from samovar.plan import make_plan
from tests.unit.plans import BULK, CATALOGUE, HEAD, ROOT

OUTPUTS = package_outputs()
R_CODE = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "analysis" / "R").glob("*.R")))


def test_every_metric_figure_and_table_of_the_manifest_has_an_r_function_and_the_reverse() -> None:
    defined = set(re.findall(r"^(\w+) <- function", R_CODE, re.M))
    assert {metric.function for metric in OUTPUTS.metrics.values()} <= defined
    for kind, known in OUTPUTS.kinds.items():
        names = {
            name.removeprefix(f"{kind}_").replace("_", "-") for name in defined if name.startswith(f"{kind}_")
        }
        assert names == set(known)


def test_figures_and_tables_show_only_metrics_of_the_manifest() -> None:
    for known in OUTPUTS.kinds.values():
        for output in known.values():
            assert {metric for group in output.shows for metric in group} <= set(OUTPUTS.metrics)


def problems_of_study(tmp_path: Path, more: str) -> list[str]:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "hosts").symlink_to(ROOT / "hosts")
    path = tmp_path / "experiments" / "study.yaml"
    path.write_text(HEAD + BULK + more)
    try:
        load_experiment(path, CATALOGUE)
    except DefinitionError as error:
        return [f"{one.line}:{one.column}: {one.message}" for one in error.problems]
    return []


def test_a_figure_takes_its_own_options_the_common_options_and_the_factors_of_the_experiment(
    tmp_path: Path,
) -> None:
    more = """\
factors: {cc: [cubic, newreno], path.loss: [0%, 1%]}
figures:
  - {figure: jitter-cdf, flow: bulk, cc: cubic, title: Jitter}
  - {figure: rtt-cdf, axis: log, part: main, path.loss: 1%}
tables: [{table: crossed, metric: throughput_bps, rows: cc, columns: path.loss, published: {cubic: 3}}]
"""
    assert problems_of_study(tmp_path, more) == []


def test_an_unknown_figure_or_table_is_refused_at_its_name(tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "hosts").symlink_to(ROOT / "hosts")
    more = (
        "figures: [{figure: buffer-cdff, part: main}, design]\nprofiles: {quick: {tables: [cc-comparisn]}}\n"
    )
    (tmp_path / "experiments" / "study.yaml").write_text(HEAD + BULK + more)
    with pytest.raises(DefinitionError) as caught:
        load_experiment(tmp_path / "experiments" / "study.yaml", CATALOGUE)
    first, second = caught.value.problems
    assert (first.line, first.column, second.line, second.column) == (6, 20, 7, 29)
    assert first.message.startswith("unknown figure 'buffer-cdff'; did you mean 'buffer-cdf'? known: ")
    assert second.message.startswith("unknown table 'cc-comparisn'; did you mean 'cc-comparison'? known: ")


DEMO = (ROOT / "experiments" / "demo.yaml").read_text("utf-8")
OPTIONS = {
    "{figure: buffer-cdf, method: 3}": ["30: unknown method '3'; known: 1, 1-local, 2, 2-raw"],
    "{figure: buffer-cdf, methd: 2}": ["22: unknown option or factor 'methd'; did you mean 'method'? known: cc, method, mtu, part, rwnd, title, trial"],
    "{figure: design, x: 3}": ["18: unknown option or factor 'x'; known: cc, mtu, part, rwnd, title, trial"],
    "{figure: rtt-cdf, rwnd: 600kB}": ["25: unknown level of rwnd '600kB'; did you mean '600KB'? known: 40KB, 600KB, 9999KB"],
    "{figure: rtt-cdf, cc: [cdg, vegas]}": ["29: unknown level of cc 'vegas'; known: cdg, cubic, newreno"],
    "{figure: rtt-cdf, part: buffer, rwnd: 40KB}": ["39: unknown level of rwnd '40KB'; known: 9999KB"],
    "{figure: rtt-cdf, part: [buffer, windw], rwnd: 40KB}": ["34: unknown part 'windw'; did you mean 'window'? known: buffer, window", "48: unknown level of rwnd '40KB'; known: 9999KB"],
    "{figure: rtt-cdf, cc: [[cdg]]}": ["23: cc: must be a name or a list of names"],
    "{figure: rtt-cdf, part: []}": ["25: part: must be a name or a list of names"],
    "{figure: rtt-cdf, rwnd: {a: b}}": ["25: rwnd: must be a name or a list of names"],
    "{figure: rtt-cdf, part: {a: b}, cc: []}": ["25: part: must be a name or a list of names", "37: cc: must be a name or a list of names"],
    "{figure: rtt-cdf, txd: 256}": ["19: unknown option or factor 'txd'; known: axis, cc, flow, mtu, part, rwnd, title, trial"],
}  # fmt: skip


def problems_of_demo(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "hosts").symlink_to(ROOT / "hosts")
    (tmp_path / "experiments" / "demo.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError) as caught:
        load_experiment(tmp_path / "experiments" / "demo.yaml", CATALOGUE)
    return [f"{one.column}: {one.message}" for one in caught.value.problems]


@pytest.mark.parametrize("entry", OPTIONS)
def test_an_unknown_option_of_a_figure_or_an_unknown_value_is_refused_at_its_place(
    entry: str, tmp_path: Path
) -> None:
    head, _, rest = DEMO.partition("figures:\n")
    figures = f"figures: [\n{entry}]\n"
    assert problems_of_demo(tmp_path, head + figures + rest[rest.index("tables:") :]) == OPTIONS[entry]


def test_an_unknown_metric_or_factor_of_a_table_is_refused(tmp_path: Path) -> None:
    table = "tables: [{table: crossed, metric: rtt_mean_ms, rows: cc, columns: rwndd}]\n"
    first, second = problems_of_demo(tmp_path, DEMO[: DEMO.index("tables:")] + table)
    assert first.startswith("35: unknown metric 'rtt_mean_ms'; did you mean 'rtt_median_ms'? known: ")
    assert second == "67: unknown factor 'rwndd'; did you mean 'rwnd'? known: cc, mtu, rwnd"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{figure: rtt-cdf, title: [a, b]}", "26: title: must be a text"),
        ("{figure: rtt-cdf, part: [[a]]}", "25: part: must be a name or a list of names"),
        ("{figure: rtt-cdf, flow: blk}", "25: unknown flow 'blk'"),
        (
            "{figure: metric-by-factor, metric: rtt_median_ms, factor: ccc}",
            "59: unknown factor 'ccc'",
        ),
    ],
)
def test_an_invalid_title_part_flow_or_factor_of_a_figure_is_refused(
    entry: str, message: str, tmp_path: Path
) -> None:
    head, _, rest = DEMO.partition("figures:\n")
    found = problems_of_demo(tmp_path, f"{head}figures: [\n{entry}]\n{rest[rest.index('tables:') :]}")
    assert len(found) == 1 and found[0].startswith(message), found


PROJECT_MANIFEST = """\
metrics:
  jumbo_share: {what: share of jumbo frames, unit: share, needs: [capture], function: jumbo_share}
figures:
  jumbo-by-cc:
    what: Share of jumbo frames
    options: {flow: {what: Flow that is shown., type: flow}}
    shows: [jumbo_share]
"""


def project(tmp_path: Path, manifest: str) -> Path:
    (tmp_path / "analysis").mkdir()
    (tmp_path / "analysis" / "outputs.yaml").write_text(manifest)
    return tmp_path


def test_a_project_adds_metrics_and_figures_of_its_own(tmp_path: Path) -> None:
    outputs = project_outputs(project(tmp_path, PROJECT_MANIFEST))
    assert outputs.figures["jumbo-by-cc"].shows == (("jumbo_share",),)
    path = tmp_path / "study.yaml"
    more = "expect: [{say: a, metric: jumbo_share, below: 1}]\nfigures: [{figure: jumbo-by-cc, flow: bulk}]\n"
    path.write_text(HEAD + BULK + more)
    (tmp_path / "hosts").symlink_to(ROOT / "hosts")
    testbed = ROOT / "hosts" / "lab.yaml"
    assert load_experiment(path, CATALOGUE, testbed, LoadOptions(outputs=outputs)).experiment.figures
    with pytest.raises(DefinitionError, match="unknown metric 'jumbo_share'"):
        load_experiment(path, CATALOGUE, testbed)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (
            "figures: {own: {whta: a}}",
            "1:17: unknown key 'whta'; did you mean 'what'? known: options, shows, trials, what",
        ),
        (
            "metrics: {own: {unit: s, what: a}}",
            "1:16: key 'function' is missing; known keys: function, needs, scope, unit, what",
        ),
        (
            "metrics: {own: {what: a, unit: s, function: f, needs: [captur]}}",
            "1:56: unknown quantity 'captur'; did you mean 'capture'? known: beacons, ",
        ),
        (
            "metrics: {own: {what: a, unit: s, function: f, needs: jitter}}",
            "1:55: needs: must be a list, not 'jitter'",
        ),
        (
            "series: {own: {what: a, title: b, unit: s, sources: [rtt], function: f, scope: flows}}",
            "1:80: scope: must be 'flow', 'application', 'trial' or 'host', not 'flows'",
        ),
        ("figures: [", "1:11: a '[' or '{' before this is never closed; close the bracket"),
        ("- a", "1:1: the file is a list; it must be a mapping (key: value)"),
    ],
)
def test_an_error_in_the_manifest_of_a_project_has_its_place_and_names_the_key(
    tmp_path: Path, manifest: str, message: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        project_outputs(project(tmp_path, manifest))
    assert f"analysis/outputs.yaml:{message}" in str(caught.value)


def test_a_time_in_an_option_must_be_given_in_seconds(tmp_path: Path) -> None:
    more = "figures: [{figure: rtt-time, seconds: 6s}, {figure: throughput-cdf, window: 100ms}]\n"
    (found,) = problems_of_study(tmp_path, more)
    assert found.endswith("window: `100ms` is not a number of seconds such as 6s")


def test_metrics_need_known_quantities_and_each_quantity_lists_the_loggers_that_record_it() -> None:
    quantities = OUTPUTS.quantities
    assert {need for metric in OUTPUTS.metrics.values() for need in metric.needs} <= quantities.keys()
    for system in keys.OPERATING_SYSTEMS:
        for name, loggers in CATALOGUE.quantities(system).items():
            assert name not in quantities or {*loggers} <= {*quantities[name].sources}


# --- Figures of any quantity

QUANTITY_OPTIONS = {
    "{figure: time-series, show: cwdn}": ["29: unknown series 'cwdn'; did you mean 'cwnd'? known: "],
    "{figure: time-series}": ["10: figure time-series needs the option 'show': Quantity to show, or a list.; known: cwnd, "],
    "{figure: time-series, show: [cwnd, srttt]}": ["36: unknown series 'srttt'; did you mean 'srtt'? known: "],
    "{figure: time-series, show: cwnd, overlay: [cc, mtu]}": ["49: overlay: at most 1 value, not 2"],
    "{figure: time-series, show: cwnd, facet: ccc}": ["42: unknown factor 'ccc'"],
    "{figure: time-series, show: cwnd, from: 2 m}": ["41: from: `2 m` is not a number of seconds such as 6s"],
    "{figure: time-series, show: cwnd, from: 8s, to: 2s}": ["49: to: 2s is not after `from`, which is 8s"],
    "{figure: time-series, show: cwnd, mark: losses}": ["41: unknown mark 'losses'; known: reductions"],
    "{figure: distribution, show: rtt, kind: pie}": ["41: unknown kind 'pie'; known: box, ccdf, cdf, histogram, violin"],
    "{figure: distribution, show: rttt}": ["30: unknown metric or quantity 'rttt'; did you mean 'rtt'? known: "],
    "{figure: distribution, show: [rtt, cwnd]}": ["36: show: at most 1 value, not 2"],
    "{figure: bars, show: cwnd, by: cc}": ["22: unknown metric 'cwnd'"],
    "{figure: bars, show: goodput_bps}": ["10: figure bars needs the option 'by': Factor on the x axis."],
    "{figure: heatmap, show: goodput_bps, rows: cc, columns: [mtu, rwnd]}": ["63: columns: at most 1 value, not 2"],
    "{figure: scatter, x: goodput_bps}": ["10: figure scatter needs the option 'y'"],
    "{figure: tradeoff, x: rtt}": ["23: unknown metric 'rtt'"],
    "{figure: time-sequence, from: 3s, to: 3s}": ["39: to: 3s is not after `from`, which is 3s"],
    "{figure: metric-by-factor, factor: cc}": ["10: figure metric-by-factor needs the option 'metric'"],
}  # fmt: skip


@pytest.mark.parametrize("entry", QUANTITY_OPTIONS)
def test_an_invalid_option_of_a_figure_of_any_quantity_is_refused_at_its_place(
    entry: str, tmp_path: Path
) -> None:
    head, _, rest = DEMO.partition("figures:\n")
    found = problems_of_demo(tmp_path, f"{head}figures: [\n{entry}]\n{rest[rest.index('tables:') :]}")
    assert len(found) == len(QUANTITY_OPTIONS[entry]), found
    for message, expected in zip(found, QUANTITY_OPTIONS[entry], strict=True):
        assert message.startswith(expected)


def demo_with(tmp_path: Path, entry: str) -> keys.Experiment:
    (tmp_path / "experiments").mkdir(exist_ok=True)
    if not (tmp_path / "hosts").exists():
        (tmp_path / "hosts").symlink_to(ROOT / "hosts")
    head, _, rest = DEMO.partition("figures:\n")
    path = tmp_path / "experiments" / "demo.yaml"
    path.write_text(f"{head}figures: [{entry}]\n{rest[rest.index('tables:') :]}", encoding="utf-8")
    return load_experiment(path, CATALOGUE).experiment


@given(
    show=st.lists(st.sampled_from(sorted(OUTPUTS.series)), min_size=1, max_size=5, unique=True),
    overlay=st.sampled_from(["", "cc", "rwnd", "mtu"]),
    facet=st.lists(st.sampled_from(["cc", "rwnd", "mtu"]), max_size=2, unique=True),
    span=st.tuples(st.floats(0, 100), st.floats(0.001, 100)),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_time_series_accepts_any_quantities_factors_and_span_of_time(
    show: list[str], overlay: str, facet: list[str], span: tuple[float, float], tmp_path: Path
) -> None:
    options = f"show: [{', '.join(show)}], from: {span[0]:.3f}s, to: {span[0] + span[1]:.3f}s"
    options += f", overlay: {overlay}" if overlay else ""
    options += f", facet: [{', '.join(facet)}]" if facet else ""
    demo_with(tmp_path, f"{{figure: time-series, {options}}}")


@given(
    show=st.sampled_from([*OUTPUTS.series, *OUTPUTS.metrics]),
    kind=st.sampled_from(OUTPUTS.figures["distribution"].options["kind"].values),
    factors=st.permutations(["cc", "rwnd", "mtu"]),
    metrics=st.tuples(*[st.sampled_from(sorted(OUTPUTS.metrics))] * 2),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_figures_of_distributions_and_summaries_accept_any_metric(
    show: str, kind: str, factors: list[str], metrics: tuple[str, str], tmp_path: Path
) -> None:
    one, two, three = factors
    entries = (
        f"{{figure: distribution, show: {show}, kind: {kind}, overlay: {one}, facet: [{two}, {three}]}}",
        f"{{figure: bars, show: {metrics[0]}, by: {one}, overlay: {two}, facet: {three}}}",
        f"{{figure: heatmap, show: {metrics[0]}, rows: {one}, columns: {two}, facet: {three}}}",
        f"{{figure: scatter, x: {metrics[0]}, y: {metrics[1]}, overlay: {one}}}",
        f"{{figure: tradeoff, x: {metrics[0]}, y: {metrics[1]}, facet: {one}}}",
    )
    demo_with(tmp_path, ", ".join(entries))


def test_every_source_of_a_series_is_a_quantity_or_a_logger() -> None:
    loggers = {"capture", *CATALOGUE.names("logger", "linux"), *CATALOGUE.names("logger", "freebsd")}
    for series in OUTPUTS.series.values():
        assert {one for group in series.sources for one in group} <= loggers | set(OUTPUTS.quantities)
        assert series.function in set(re.findall(r"^(\w+) <- function", R_CODE, re.M))


def test_a_plan_warns_about_a_quantity_over_time_that_nothing_records(tmp_path: Path) -> None:
    demo_with(tmp_path, "{figure: time-series, show: [cwnd, owd, cpu]}")
    loaded = load_experiment(tmp_path / "experiments" / "demo.yaml", CATALOGUE)
    warnings = [one for one in make_plan(loaded, CATALOGUE).warnings if "time-series" in one]
    assert warnings == [
        "figure time-series shows owd, which needs captures at both ends of a flow and logger beacons at both ends of a flow; "
        "no trial records it",
        "figure time-series shows cpu, which needs logger cpu; no trial records it",
    ]
