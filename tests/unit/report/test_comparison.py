"""`samovar compare`: recorded campaigns against copies with known differences, limits, JUnit XML, errors."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import shutil
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from samovar.cli.commands import run_commands
from samovar.errors import ReportError
from samovar.experiment import package_outputs
from samovar.report.campaign_data import read_campaign
from samovar.report.comparison import FAILED, NO_DATA, PASSED, Change, Side, _differences, parse_limit
from tests.golden.campaign import unpack
from tests.unit.report.page_text import Text, words_only_in_pdf
from tests.unit.report.report_sample import share_between_testbeds, write_campaign

STRETCH = 1.25
"""Factor of all times in captures of the slow copy: its rates are 20 % lower, and its RTTs 25 % longer."""
RATES = ("throughput_bps", "goodput_bps", "throughput_link_bps")


class Answer(NamedTuple):
    """The exit code and output of a command, and the folder of the files that it wrote."""

    code: int
    lines: list[str]
    errors: str
    to: Path

    def changes(self) -> dict[tuple[str, str], dict[str, str]]:
        """Return the rows of changes.csv by metric and treatment."""
        with (self.to / "data" / "changes.csv").open(newline="") as lines:
            return {(row["metric"], row["treatment"]): row for row in csv.DictReader(lines)}

    def cases(self) -> Mapping[tuple[str, str], str]:
        """Return the result of each case of junit.xml by metric and name: a tag, or empty if it passed."""
        cases = ElementTree.parse(self.to / "junit.xml").iter("testcase")
        return {
            (case.attrib["classname"], case.attrib["name"]): next(
                (child.tag for child in case if child.tag != "system-out"), ""
            )
            for case in cases
        }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with the recorded campaign, an equal copy, and a slow copy on another kernel."""
    root = tmp_path_factory.mktemp("project")
    (root / "experiments").mkdir()
    recorded = root / "results" / "recorded"
    recorded.mkdir(parents=True)
    unpack(root / "unpacked").rename(recorded / "first")
    for name in ("equal", "slow"):
        shutil.copytree(recorded / "first", recorded / name)
    for trial in (recorded / "slow" / "trials").iterdir():
        _stretch(trial)
    facts = recorded / "slow" / "provenance.json"
    facts.write_text(facts.read_text().replace("Linux 6.1.176 x86_64", "Linux 6.12.9 x86_64"))
    return root


def _stretch(trial: Path) -> None:
    """Stretch the times in a trial's captures, counted from the first packet of all captures."""
    manifest = json.loads((trial / "manifest.json").read_text())
    captures = [one for one in manifest["files"] if one["kind"] == "capture"]
    contents = [bytearray(gzip.decompress((trial / one["path"]).read_bytes())) for one in captures]
    first_ns = min(_time_ns(content, 24) for content in contents)
    for file, content in zip(captures, contents, strict=True):
        at = 24
        while at < len(content):
            time_ns = first_ns + round((_time_ns(content, at) - first_ns) * STRETCH)
            struct.pack_into("<II", content, at, *divmod(time_ns, 10**9))
            at += 16 + struct.unpack_from("<I", content, at + 8)[0]
        data = gzip.compress(content)
        (trial / file["path"]).write_bytes(data)
        file |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (trial / "manifest.json").write_text(json.dumps(manifest))


def _time_ns(capture: bytearray, at: int) -> int:
    seconds, nanoseconds = struct.unpack_from("<II", capture, at)
    return int(seconds * 10**9 + nanoseconds)


def _compare(root: Path, capsys: pytest.CaptureFixture[str], to: str, *arguments: str) -> Answer:
    code = run_commands(["compare", *arguments, "--to", str(root / to)], root)
    printed = capsys.readouterr()
    return Answer(code, printed.out.splitlines(), printed.err, root / to)


def test_an_equal_copy_of_a_campaign_has_no_change_in_any_metric(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ("--fail-if", "goodput_bps<0%", "--fail-if", "rtt_median_ms>0", "--only", "cc=cubic")
    answer = _compare(project, capsys, "equal", "recorded/first", "recorded/equal", "--by", "cc", *limits)
    assert (answer.code, answer.errors) == (0, "")
    changes = answer.changes()
    assert {row["distinct"] for row in changes.values()} == {"FALSE"}
    assert {row["difference"] for row in changes.values()} == {"0"}
    assert changes["goodput_bps", "cubic"]["n"] == "4"
    assert changes["goodput_bps", "cubic"]["confidence"] == "0.875"
    assert any(line.startswith("~ ") and "goodput_bps" in line for line in answer.lines)
    assert set(answer.cases().values()) <= {"", "skipped"}
    page = answer.to / "report.html"
    assert words_only_in_pdf(answer.to / "comparison.pdf", page) == set()
    assert re.search(r"(\d+) trials \(\d suspect\)", " ".join(Text(page.read_text()).words))
    trials = [one for one in Text(page.read_text()).links if one.endswith("manifest.json")]
    assert len(trials) == len(set(trials)) > 0, "the page links to each trial of A and B once"
    assert all((answer.to / one).is_file() for one in trials)


def test_changed_metrics_and_the_other_kernel_of_a_slower_copy_are_reported(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ("--fail-if", "goodput_bps<-5%", "--fail-if", "goodput_bps<-30%")
    answer = _compare(project, capsys, "slow", "recorded/first", "recorded/slow", "--by", "cc", *limits)
    assert answer.code == 1
    changes = answer.changes()
    for metric in RATES:
        assert float(changes[metric, "cubic"]["ratio"]) == pytest.approx(1 / STRETCH, rel=1e-2)
        assert changes[metric, "cubic"]["distinct"] == "TRUE"
    assert float(changes["rtt_median_ms", "cubic"]["ratio"]) == pytest.approx(STRETCH, rel=1e-2)
    assert changes["rwnd_max_bytes", "cubic"]["distinct"] == "FALSE"
    cases = answer.cases()
    assert cases["goodput_bps", "cubic: goodput_bps<-5%"] == "failure"
    assert cases["goodput_bps", "cubic: goodput_bps<-30%"] == ""
    assert cases["goodput_bps", "newreno: goodput_bps<-5%"] == "error"  # two pairs have no interval
    assert cases["loss_share", "newreno"] == "skipped"
    for suite in ElementTree.parse(answer.to / "junit.xml").iter("testsuite"):
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[key]) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase")) > 0
    shown = "\n".join(answer.lines)
    assert "src, rtr, dst: kernel Linux 6.1.176 x86_64 -> Linux 6.12.9 x86_64" in shown
    assert "✗ goodput_bps<-5%: cubic: failed: -20.1 % [-20.3, -20] (n = 4, 87.5 %)" in shown
    with (answer.to / "data" / "rtt-cdf-window.csv").open(newline="") as lines:
        assert {row["curve"].rpartition(", ")[2] for row in csv.DictReader(lines)} == {"A", "B"}


def test_two_picked_parts_of_one_campaign_can_be_compared(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ("--only-a", "part=window cc=newreno", "--only-b", "part=window cc=cubic")
    answer = _compare(project, capsys, "parts", "recorded/first", *parts)
    assert answer.code == 0
    assert answer.changes()["rtt_median_ms", "all"]["n"] == "2"
    assert "A  recorded/first (part=window cc=newreno)" in answer.lines
    assert any("Trials are paired by block" in line for line in answer.lines)
    assert {"  cc newreno -> cubic", "  rwnd 20KB -> 400KB"} <= set(answer.lines)


def test_a_treatment_that_one_campaign_lacks_cannot_pass_a_limit(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("recorded/first", "recorded/equal", "--by", "cc", "--only-b", "cc=cubic")
    answer = _compare(project, capsys, "lacking", *arguments, "--fail-if", "goodput_bps<-5%")
    assert answer.code == 2
    assert "in one campaign only: newreno" in answer.lines
    assert answer.cases()["goodput_bps", "newreno: goodput_bps<-5%"] == "error"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "mtu"), 'Not a factor of both campaigns: "mtu"; did you mean'),
        (
            ("--by", "cc", "--only-a", "cc=newreno", "--only-b", "cc=cubic"),
            "cc has no level in common (A has newreno; B has cubic); --by accepts part",
        ),
        (
            ("--only-a", "rwnd=20KB", "--only-b", "part=window rwnd=400KB", "--by", "rwnd"),
            "rwnd has no level in common (A has 20KB; B has 400KB); --by accepts part",
        ),
        (
            ("--only-a", "replicate=1", "--only-b", "replicate=2"),
            "no trial of A (3 trials) has the same levels and replicate as a trial of B (3 trials)",
        ),
        (("--fail-if", "goodput<-5%"), "unknown metric 'goodput'; did you mean 'goodput_bps'?"),
        (("--fail-if", "goodput_bps"), "not a limit; write METRIC<-5% or METRIC>+5%"),
        (("--fail-if", "goodput_bps<5%"), "even an unchanged metric would be beyond this limit"),
        (("--fail-if", "pause_frames<-5%"), "unknown metric 'pause_frames'"),
        (("--only-a", "cc=vegas"), "unknown level of cc 'vegas'"),
    ],
)
def test_a_wrong_option_is_refused_with_the_values_that_would_be_accepted(
    arguments: tuple[str, ...], message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _compare(project, capsys, "wrong", "recorded/first", "recorded/equal", *arguments)
    assert answer.code == 1
    assert message in " ".join(answer.errors.split())
    assert "Traceback" not in answer.errors
    assert "R ended" not in answer.errors


def test_differences_are_reported_for_each_testbed_of_two_campaigns(tmp_path: Path) -> None:
    folders = [write_campaign(tmp_path / name) for name in "AB"]
    for folder in folders:
        share_between_testbeds(folder)
    facts = folders[1] / "provenance.json"
    facts.write_text(facts.read_text().replace("6.12.9", "6.18.1").replace("native", "auto"))
    a, b = (Side(read_campaign(folder), None) for folder in folders)
    assert list(_differences(a, b, ())) == [
        "lab.twin.kernel native -> auto",
        "src@twin, rtr@twin, dst@twin: kernel Linux 6.12.9 -> Linux 6.18.1",
    ]


def test_a_comparison_needs_a_second_campaign_or_parts_of_the_first(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _compare(project, capsys, "wrong", "recorded/first")
    assert answer.code == 2
    assert "name a second campaign, or parts of the first with --only-a and --only-b" in answer.errors


LOWER = Change(
    *("goodput_bps", "bit/s", "cubic", 10e6, 9e6),
    difference=(-1e6, -1.2e6, -0.8e6),
    ratio=(0.9, 0.88, 0.92),
    n=6,
    confidence=0.96875,
    changed=True,
)


@pytest.mark.parametrize(
    ("limit", "change", "verdict"),
    [
        ("goodput_bps<-5%", LOWER, FAILED),
        ("goodput_bps < -15 %", LOWER, PASSED),
        ("goodput_bps>5%", LOWER, PASSED),
        ("goodput_bps<-9e5", LOWER, FAILED),
        ("goodput_bps<-2000000", LOWER, PASSED),
        ("goodput_bps<-5%", replace(LOWER, changed=False), PASSED),
        ("goodput_bps<-5%", replace(LOWER, changed=None), NO_DATA),
        ("goodput_bps<-5%", replace(LOWER, ratio=None), NO_DATA),
        ("goodput_bps<-1", replace(LOWER, ratio=None), FAILED),
    ],
)
def test_a_limit_is_judged_by_the_change_and_its_interval(limit: str, change: Change, verdict: str) -> None:
    assert parse_limit(limit, package_outputs()).judge(change) == verdict


@pytest.mark.parametrize("text", ["", "goodput_bps<=-5%", "goodput_bps<-5%%", "<5", "goodput_bps<x"])
def test_text_that_is_not_a_limit_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(ReportError, match="write METRIC<-5%"):
        parse_limit(text, package_outputs())


def test_a_change_is_shown_in_percent_or_in_the_unit_of_the_metric_if_campaign_a_is_not_positive() -> None:
    assert LOWER.text == "-10 % [-12, -8]"
    assert replace(LOWER, ratio=None).text == "-1 Mbit/s [-1.2, -0.8]"
    assert replace(LOWER, changed=False).text == "~ [-12, -8] %"
    assert replace(LOWER, changed=None).text == "~"
    loss = replace(LOWER, unit="share", difference=(0.005, 0.004, 0.006), ratio=(1.5, 1.4, 1.6))
    assert loss.text == "+50 % [+40, +60]"
    assert replace(loss, ratio=None).text == "+0.5 points [+0.4, +0.6]"
