"""SIFTR logs as FreeBSD 13.2 and 14.0 wrote them: the whole one of a trial, and lines of another."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from samovar.runner.siftr import check_siftr, read_siftr
from tests.unit.freebsd_sample import TRACES
from tests.unit.trials import RESOLVED

WHOLE = lzma.decompress((TRACES / "siftr-14.0.log.xz").read_bytes()).decode().splitlines(keepends=True)
CUT = (TRACES / "siftr-13.2-cut.log").read_text().splitlines(keepends=True)


def failed(lines: list[str], folder: Path, packets_per_line: int = 1) -> list[str]:
    trace = folder / "src-siftr.csv.gz"
    trace.write_bytes(gzip.compress("".join(lines).encode()))
    return [str(check) for check in check_siftr(RESOLVED, "src", trace, packets_per_line) if not check.ok]


def test_a_whole_log_has_a_line_for_every_packet_of_a_socket(tmp_path: Path) -> None:
    log = read_siftr(WHOLE)
    assert (log.version, sorted(log.columns), log.lost) == ("1.3.0", [27], 0)
    assert log.lines == log.due == len(WHOLE) - 2
    assert failed(WHOLE, tmp_path) == []


def test_the_two_forms_with_27_and_28_columns_are_told_apart_by_the_header() -> None:
    log = read_siftr(CUT)
    assert (log.version, sorted(log.columns), log.header["hz"]) == ("1.2.4", [28], "1000")
    assert log.windows == {("10.0.2.15", "10.0.2.2", "40134"): 65535}
    assert "hz" not in read_siftr(WHOLE).header


def test_a_log_that_was_cut_off_has_no_footer(tmp_path: Path) -> None:
    assert failed(WHOLE[:-1], tmp_path) == ["SIFTR log at src: requested whole, observed without footer"]
    assert failed(WHOLE[1:], tmp_path)[0] == "SIFTR log at src: requested whole, observed without header"


def test_lines_that_are_missing_are_counted(tmp_path: Path) -> None:
    assert failed(CUT, tmp_path) == ["lines of the SIFTR log at src: requested 102867, observed 11"]
    assert failed(CUT, tmp_path, packets_per_line=10) == []


@pytest.mark.parametrize(
    ("old", "new"), [("siftrver=1.3.0", "siftrver=2.5"), ("siftrver=1.3.0", "siftrver=1.3.0\trec_fmt=b")]
)
def test_a_log_of_an_unknown_version_is_not_taken_for_another(old: str, new: str, tmp_path: Path) -> None:
    found = failed([WHOLE[0].replace(old, new), *WHOLE[1:]], tmp_path)
    assert found == (
        []
        if "rec_fmt" in new
        else [
            "form of the SIFTR log at src: requested those of a known version columns, observed 27 columns, version 2.5"
        ]
    )


def test_packets_without_memory_are_lost_and_those_without_a_socket_are_not(tmp_path: Path) -> None:
    assert "num_inbound_skipped_pkts_inpcb=0" not in WHOLE[-1]
    footer = WHOLE[-1].replace("skipped_pkts_malloc=0", "skipped_pkts_malloc=3", 1)
    assert failed([*WHOLE[:-1], footer], tmp_path) == [
        "packets that SIFTR lost at src: requested 0, observed 3"
    ]


def test_a_log_that_is_no_gzip_is_said_to_be_unreadable(tmp_path: Path) -> None:
    trace = tmp_path / "src-siftr.csv.gz"
    trace.write_text("x")
    assert [check.ok for check in check_siftr(RESOLVED, "src", trace)] == [False]


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        (None, []),
        (1_600_000, []),
        (1_500_000, ["at most 1500000 B"]),
        (9_999_000, ["at least 90% of 9999000 B"]),
    ],
)
def test_the_largest_window_that_a_sender_saw_is_held_against_what_was_asked(
    asked: int | None, wrong: list[str], tmp_path: Path
) -> None:
    flow = RESOLVED.flows[0].model_copy(update={"port": 5201, "rwnd_bytes": asked})
    hosts = {**RESOLVED.hosts, "dst": RESOLVED.hosts["dst"].model_copy(update={"rwnd_bytes": None})}
    resolved = RESOLVED.model_copy(update={"flows": (flow,), "hosts": hosts})
    trace = tmp_path / "src-siftr.csv.gz"
    trace.write_bytes(gzip.compress("".join(WHOLE).encode()))
    bad = [check for check in check_siftr(resolved, "src", trace) if not check.ok]
    assert [(check.requested, check.observed) for check in bad] == [(text, "1500928 B") for text in wrong]
