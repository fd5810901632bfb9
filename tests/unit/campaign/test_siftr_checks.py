"""Check SIFTR logs: the complete log of a trial on FreeBSD 14.0, and some lines of a log of FreeBSD 13.2."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest

from samovar.campaign.clocks import ClockOffset
from samovar.campaign.verdict.siftr_checks import check_siftr_log, read_siftr
from tests.unit.campaign.evidence_sample import evidence_of
from tests.unit.recipes.freebsd_sample import TRACES
from tests.unit.trials import RESOLVED

WHOLE = lzma.decompress((TRACES / "siftr-14.0.log.xz").read_bytes()).decode().splitlines(keepends=True)
CUT = (TRACES / "siftr-13.2-cut.log").read_text().splitlines(keepends=True)
DISABLED_S = read_siftr(WHOLE).disabled_s
CLOCK = {"src": ClockOffset("src", -2.0, 0.2)}


def failed(lines: list[str], folder: Path, **options: int) -> list[str]:
    trace = folder / "src-siftr.csv.gz"
    trace.write_bytes(gzip.compress("".join(lines).encode()))
    checks = check_siftr_log(evidence_of(), "src", trace, **options)
    return [check.reason for check in checks if not check.ok]


def test_a_whole_log_has_a_line_for_every_packet_of_a_socket(tmp_path: Path) -> None:
    log = read_siftr(WHOLE)
    assert (log.version, sorted(log.columns), log.lost) == ("1.3.0", [27], 0)
    assert log.lines == log.due == len(WHOLE) - 2
    assert failed(WHOLE, tmp_path) == []


def test_the_two_formats_with_27_and_28_columns_are_distinguished_by_the_header() -> None:
    log = read_siftr(CUT)
    assert (log.version, sorted(log.columns), log.header["hz"]) == ("1.2.4", [28], "1000")
    assert log.windows == {("10.0.2.15", "10.0.2.2", "40134"): 65535}
    assert "hz" not in read_siftr(WHOLE).header


def test_windows_count_only_after_a_connection_is_established() -> None:
    """While a connection is being established, its state is below 4 and windows in SYN segments are not scaled."""
    first = CUT[1].split(",")
    shut = ",".join([*first[:14], "3", *first[15:]])
    assert read_siftr([CUT[0], shut]).windows == {}
    larger = ",".join([*first[:10], "70000", *first[11:]])
    assert read_siftr([CUT[0], CUT[1], larger, CUT[2]]).windows == {("10.0.2.15", "10.0.2.2", "40134"): 70000}
    assert read_siftr([CUT[0], CUT[1][:40]]).windows == {}, "the line is cut off"


def test_a_log_that_was_cut_off_has_no_footer(tmp_path: Path) -> None:
    assert failed(WHOLE[:-1], tmp_path) == ["SIFTR log at src: requested complete, observed without footer"]
    assert failed(WHOLE[1:], tmp_path)[0] == "SIFTR log at src: requested complete, observed without header"


def test_missing_lines_of_a_log_are_counted(tmp_path: Path) -> None:
    assert failed(CUT, tmp_path) == ["lines of the SIFTR log at src: requested 102867, observed 11"]
    assert failed(CUT, tmp_path, packets_per_line=10) == []


def total(footer: str) -> str:
    return read_siftr([footer]).footer["total_tcp_pkts"]


@pytest.mark.parametrize(
    ("old", "new"), [("siftrver=1.3.0", "siftrver=2.5"), ("siftrver=1.3.0", "siftrver=1.3.0\trec_fmt=b")]
)
def test_a_log_of_an_unknown_version_is_reported_and_one_with_a_further_header_field_is_not(
    old: str, new: str, tmp_path: Path
) -> None:
    found = failed([WHOLE[0].replace(old, new), *WHOLE[1:]], tmp_path)
    assert found == (
        []
        if "rec_fmt" in new
        else ["format of the SIFTR log at src: requested a known version, observed 27 columns, version 2.5"]
    )


def test_packets_skipped_for_lack_of_memory_are_lost_and_packets_without_a_socket_are_not(
    tmp_path: Path,
) -> None:
    assert "num_inbound_skipped_pkts_inpcb=0" not in WHOLE[-1]
    footer = WHOLE[-1].replace("skipped_pkts_malloc=0", "skipped_pkts_malloc=3", 1)
    assert failed([*WHOLE[:-1], footer], tmp_path) == [
        "packets lost by SIFTR at src: requested 0, observed 3"
    ]


def test_a_log_that_is_not_gzip_is_reported_as_unreadable(tmp_path: Path) -> None:
    trace = tmp_path / "src-siftr.csv.gz"
    trace.write_text("x")
    assert [check.ok for check in check_siftr_log(evidence_of(), "src", trace)] == [False]


@pytest.mark.parametrize("damaged", ["x25509", ""])
def test_a_log_with_a_damaged_footer_is_reported_as_unreadable(damaged: str, tmp_path: Path) -> None:
    footer = WHOLE[-1].replace(f"total_tcp_pkts={total(WHOLE[-1])}", f"total_tcp_pkts={damaged}")
    assert failed([*WHOLE[:-1], footer], tmp_path) == [
        "trace src-siftr.csv.gz at src: requested readable, observed "
        f"ValueError: invalid literal for int() with base 10: '{damaged}'"
    ]


@pytest.mark.parametrize(
    ("rwnd_bytes", "size_bytes", "wrong"),
    [
        (None, None, []),
        (1_600_000, None, []),
        (1_500_000, None, ["at most 1500000 B"]),
        (9_999_000, None, ["at least 90% of 9999000 B"]),
        (9_999_000, 30_000, []),  # too little data to open the window
    ],
)
def test_the_largest_window_in_the_log_of_a_sender_is_compared_with_the_requested_one(
    rwnd_bytes: int | None, size_bytes: int | None, wrong: list[str], tmp_path: Path
) -> None:
    values = {"port": 5201, "rwnd_bytes": rwnd_bytes, "size_bytes": size_bytes}
    flow = RESOLVED.flows[0].model_copy(update=values)
    hosts = {**RESOLVED.hosts, "dst": RESOLVED.hosts["dst"].model_copy(update={"rwnd_bytes": None})}
    resolved = RESOLVED.model_copy(update={"flows": (flow,), "hosts": hosts})
    trace = tmp_path / "src-siftr.csv.gz"
    trace.write_bytes(gzip.compress("".join(WHOLE).encode()))
    bad = [check for check in check_siftr_log(evidence_of(resolved=resolved), "src", trace) if not check.ok]
    assert [(check.requested, check.observed) for check in bad] == [(text, "1500928 B") for text in wrong]


@pytest.mark.parametrize(
    ("fields", "observed"),
    [
        ({"traffic_over": {"src": DISABLED_S - 0.35}}, "after the traffic"),
        ({"traffic_over": {"src": DISABLED_S + 7.28}}, "disabled 7.28 s before the end of the traffic"),
        # Without the host's own time, the controller's clock is used, and the error of its offset is tolerated.
        ({"t_end_s": DISABLED_S + 2.1, "clocks": CLOCK}, "after the traffic"),
        ({"t_end_s": DISABLED_S + 9, "clocks": CLOCK}, "disabled 7.00 s before the end of the traffic"),
        ({}, "unknown: the clock of this host was not read"),
    ],
)
def test_siftr_must_be_enabled_until_the_traffic_is_over(
    tmp_path: Path, fields: dict[str, Any], observed: str
) -> None:
    """FreeBSD 14.0-STABLE once switched SIFTR off 7.28 s early, and its log was consistent nevertheless."""
    trace = tmp_path / "src-siftr.csv.gz"
    trace.write_bytes(gzip.compress("".join(WHOLE).encode()))
    checks = {one.name: one for one in check_siftr_log(evidence_of(**fields), "src", trace)}
    check = checks["end of the SIFTR log"]
    assert (check.observed, check.ok, check.severity) == (observed, "before" not in observed, "invalid")


def test_an_end_of_the_traffic_in_whole_seconds_may_have_been_rounded_up(tmp_path: Path) -> None:
    trace = tmp_path / "src-siftr.csv.gz"
    trace.write_bytes(gzip.compress("".join(WHOLE).encode()))
    over_s = float(int(DISABLED_S)) + 1
    checks = check_siftr_log(evidence_of(traffic_over={"src": over_s}), "src", trace)
    assert all(check.ok for check in checks)
