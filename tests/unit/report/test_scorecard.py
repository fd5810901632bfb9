"""The scorecard: expect lines compared with rows of summary.csv."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from samovar.errors import ReportError
from samovar.experiment.keys.experiment_file import Expect
from samovar.report.scorecard import (
    DIFFERS,
    NO_DATA,
    REPRODUCED,
    SummaryRow,
    exit_status,
    judge,
    read_results,
    read_summary,
)
from tests.unit.report.report_sample import EXPERIMENT, Sample, write_campaign

HEADER = "part,cc,rwnd,metric,unit,median,mean,lo,hi,n\n"


def row(
    median: float | None, cc: str = "cdg", rwnd: str = "50KB", metric: str = "rtt_median_ms", n: int = 5
) -> SummaryRow:
    unit = {"rtt_median_ms": "ms", "throughput_bps": "bps"}.get(metric, "packets")
    return SummaryRow("window", {"cc": cc, "rwnd": rwnd}, metric, unit, median, None, None, n)


def expect(**keys: object) -> Expect:
    return Expect.model_validate({"say": "a claim", "metric": "rtt_median_ms", "part": "window", **keys})


@pytest.mark.parametrize(
    ("relation", "median", "verdict"),
    [
        ({"below": "20"}, 19.9, REPRODUCED),
        ({"below": "20"}, 20.0, DIFFERS),
        ({"above": "5"}, 5.1, REPRODUCED),
        ({"above": "5"}, 5.0, DIFFERS),
        ({"between": ["10", "12"]}, 12.0, REPRODUCED),
        ({"between": ["10", "12"]}, 12.1, DIFFERS),
        ({"equals": "546", "within": "2%"}, 535.1, REPRODUCED),
        ({"equals": "546", "within": "2%"}, 535.0, DIFFERS),
        ({"equals": "546", "within": "3"}, 549.0, REPRODUCED),
        ({"equals": "546", "within": "3"}, 549.1, DIFFERS),
        ({"equals": "0.3"}, 0.1 + 0.2, REPRODUCED),
        ({"equals": "0.3"}, 0.31, DIFFERS),
        ({"above": "5", "below": "20"}, 21.0, DIFFERS),
    ],
)
def test_each_relation_of_an_expectation_holds_up_to_its_bound(
    relation: dict[str, object], median: float, verdict: str
) -> None:
    assert judge(expect(**relation), [row(median)]).verdict == verdict


def test_one_treatment_out_of_bounds_makes_the_expectation_differ() -> None:
    rows = [row(8.0, rwnd="50KB"), row(21.0, rwnd="9999KB")]
    result = judge(expect(where={"cc": "cdg"}, below="20"), rows)
    assert (result.verdict, result.observed) == (DIFFERS, "8–21 ms (2 treatments, n = 5)")


def test_an_expectation_selects_rows_by_part_metric_and_levels() -> None:
    rows = [row(8.0), row(150.0, cc="newreno"), row(1e6, metric="throughput_bps")]
    assert judge(expect(where={"cc": "cdg"}, below="20"), rows).verdict == REPRODUCED
    assert judge(expect(where={"cc": ["cdg", "newreno"]}, below="20"), rows).verdict == DIFFERS
    assert judge(expect(part="buffer", below="20"), rows).verdict == NO_DATA


def test_the_scorecard_has_one_level_of_the_key_where_as_text_and_several_levels_as_a_list() -> None:
    result = judge(expect(where={"cc": "cdg", "rwnd": ["50KB", "1MB"]}, below="20"), [row(8.0)])
    assert result.where == {"cc": "cdg", "rwnd": ("50KB", "1MB")}


def test_a_level_that_was_not_run_has_the_verdict_no_data() -> None:
    result = judge(expect(where={"cc": "vegas"}, below="20"), [row(8.0)])
    assert (result.verdict, result.expected, result.observed) == (NO_DATA, "below 20 ms", "not measured")


def test_a_treatment_without_a_median_gives_the_verdict_no_data_unless_another_treatment_differs() -> None:
    missing = row(None, rwnd="50KB", n=0)
    assert judge(expect(below="20"), [missing, row(8.0, rwnd="1MB")]).verdict == NO_DATA
    assert judge(expect(below="20"), [missing, row(80.0, rwnd="1MB")]).verdict == DIFFERS


def test_a_ratio_compares_medians_of_treatments_that_differ_only_in_the_named_levels() -> None:
    rows = [
        row(100.0, "newreno", "50KB"),
        row(150.0, "newreno", "1MB"),
        row(10.0, "cdg", "50KB"),
        row(25.0, "cdg", "1MB"),
    ]
    result = judge(expect(where={"cc": "newreno"}, relative_to={"cc": "cdg"}, above="5"), rows)
    assert (result.verdict, result.observed) == (REPRODUCED, "6–10 × (2 treatments, n = 5)")
    assert result.expected == "above 5 × that of cc cdg"


def test_an_expectation_about_a_flow_uses_only_the_rows_of_this_flow() -> None:
    rows = [replace(row(value, cc), flow=flow) for cc, flow, value in (
        ("newreno", "", 90.0), ("newreno", "voip", 170.0), ("cdg", "", 60.0), ("cdg", "voip", 65.0),
    )]  # fmt: skip
    ratio = {"where": {"cc": "newreno"}, "relative_to": {"cc": "cdg"}, "above": "2"}
    assert judge(expect(flow="voip", **ratio), rows).observed == "2.615 × (n = 5)"
    assert judge(expect(**ratio), rows).observed == "1.5 × (n = 5)"
    assert judge(expect(flow="bulk", below="1"), rows).verdict == NO_DATA


def test_flows_csv_is_read_with_the_labels_of_flows(tmp_path: Path) -> None:
    file = tmp_path / "flows.csv"
    file.write_text(
        "part,cc,flow,metric,unit,median,mean,lo,hi,n\nwindow,cdg,voip-2,rtt_median_ms,ms,8,8,NA,NA,2\n"
    )
    assert [(one.flow, dict(one.levels)) for one in read_summary(file, ["cc"])] == [("voip-2", {"cc": "cdg"})]


def test_a_missing_flows_csv_is_reported_with_the_command_that_makes_it(tmp_path: Path) -> None:
    of_a_flow = EXPERIMENT.replace("metric: rtt_median_ms", "flow: bulk, metric: rtt_median_ms", 1)
    campaign = write_campaign(tmp_path, Sample(experiment=of_a_flow))
    with pytest.raises(ReportError, match=r"no tables/flows\.csv; run `fab analyse .*` first"):
        read_results(campaign)


@pytest.mark.parametrize("base", [[], [row(None)], [row(0.0)]])
def test_a_ratio_without_a_median_to_compare_with_has_the_verdict_no_data(base: list[SummaryRow]) -> None:
    line = expect(where={"cc": "newreno"}, relative_to={"cc": "cdg"}, above="5")
    assert judge(line, [row(100.0, "newreno"), *base]).verdict == NO_DATA


def test_a_single_treatment_is_shown_with_interval_and_trials() -> None:
    one = SummaryRow(
        "window", {"cc": "cdg"}, "throughput_bps", "bps", 35.881e6, 35.1e6, 36.2e6, 8, "", 0.9921875
    )
    result = judge(expect(metric="throughput_bps", between=["35000000", "40000000"]), [one])
    assert result.observed == "35.88 Mbit/s [35.1, 36.2] (n = 8, 99.22 % interval)"
    assert result.expected == "between 35 and 40 Mbit/s"


def test_a_target_is_shown_with_its_tolerance() -> None:
    packets = row(546.0, metric="buffer_method1_packets")
    shared = judge(expect(metric="buffer_method1_packets", equals="546", within="2%"), [packets])
    absolute = judge(expect(metric="buffer_method1_packets", equals="546", within="3"), [packets])
    assert (shared.expected, absolute.expected) == ("546 packets ± 2 %", "546 packets ± 3 packets")
    loss = SummaryRow("window", {}, "loss_share", "share", 0.05, None, None, 5)
    relative, points = (
        judge(expect(metric="loss_share", equals="0.05", within=within), [loss]) for within in ("1%", "0.01")
    )
    assert (relative.expected, points.expected) == ("5 % ± 1 % of it", "5 % ± 1 %")


def test_both_ends_of_a_narrow_range_are_shown() -> None:
    time = SummaryRow("window", {}, "completion_s", "s", 1.00002, None, None, 5)
    narrow = judge(expect(metric="completion_s", between=["1.00001", "1.00004"]), [time])
    assert narrow.expected == "between 1.00001 and 1.00004 s"


def test_the_exit_status_is_that_of_the_worst_verdict() -> None:
    assert exit_status([]) == 0
    assert exit_status([REPRODUCED, REPRODUCED]) == 0
    assert exit_status([REPRODUCED, NO_DATA]) == 2
    assert exit_status([NO_DATA, DIFFERS, REPRODUCED]) == 1


def test_a_summary_row_with_an_empty_level_lacks_this_factor(tmp_path: Path) -> None:
    file = tmp_path / "summary.csv"
    file.write_text(HEADER + "window,cdg,,rtt_rwnd_linearity_r2,,0.991,0.991,NA,NA,4\n")
    rows = read_summary(file, ["cc", "rwnd"])
    assert rows[0].levels == {"cc": "cdg"}
    line = Expect.model_validate({"say": "linear", "metric": "rtt_rwnd_linearity_r2", "above": "0.98"})
    assert judge(line, rows).observed == "0.991 (n = 4)"


def test_a_factor_may_have_the_name_of_a_column_of_an_older_analysis(tmp_path: Path) -> None:
    file = tmp_path / "summary.csv"
    file.write_text("part,seed,metric,unit,median,mean,lo,hi,n\nwindow,7,rtt_median_ms,ms,8,8,NA,NA,2\n")
    assert [row.levels for row in read_summary(file, ["seed"])] == [{"seed": "7"}]


@pytest.mark.parametrize(
    "text",
    [
        "part,metric,unit,median,n\nwindow,rtt_median_ms,ms,7,2\n",
        HEADER + "window,cdg,50KB,rtt_median_ms,ms,7,7,NA\n",
        HEADER + "window,\udcff\n",
        HEADER + "window,cdg,50KB,rtt_median_ms,ms,fast,1,NA,NA,4\n",
    ],
)
def test_a_damaged_summary_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "summary.csv"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ReportError, match=r"summary\.csv: damaged"):
        read_summary(file, ["cc", "rwnd"])


def test_the_stated_reason_of_a_difference_is_shown_only_if_the_expectation_differs() -> None:
    line = expect(below="20", differs="this kernel halves its window")
    assert judge(line, [row(21.0)]).why == "this kernel halves its window"
    assert judge(line, [row(19.0)]).why == ""
    assert judge(line, []).why == ""
