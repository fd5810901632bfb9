"""Run the R analysis: its events, the files that it replaces, and errors with the message of R."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from samovar.analyse import analyse
from samovar.errors import AnalysisError, InstallationError
from samovar.events import Event, silent


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "analysis" / "inst").mkdir(parents=True)
    (tmp_path / ".rlib" / "samovar").mkdir(parents=True)
    (tmp_path / ".stamps").mkdir()
    (tmp_path / "analysis" / "DESCRIPTION").touch()
    stamp = ["R version 4.2.2", "", f"{sha256().hexdigest()}  analysis/DESCRIPTION", ""]
    (tmp_path / ".stamps" / "rlib").write_text("\n".join(stamp))
    monkeypatch.setattr("samovar.analyse.SHIPPED", tmp_path)
    monkeypatch.setattr("samovar.installation.CHECKOUT", tmp_path)
    (tmp_path / "campaign").mkdir()
    return tmp_path


DONE = """
folder <- commandArgs(TRUE)[1]
dir.create(file.path(folder, "bundle"))
left_out <- '{"figures_left_out": [{"name": "rtt-cdf", "reason": "no trial lasts 5 s"}]}'
writeLines(left_out, file.path(folder, "bundle/analysis.json"))
"""


def _script(checkout: Path, code: str) -> None:
    (checkout / "analysis" / "inst" / "analyse.R").write_text(code)


def test_lines_of_json_in_the_output_are_events_and_other_lines_are_ignored(checkout: Path) -> None:
    _script(checkout, DONE + 'cat("a word\\n"); cat(\'{"event":"analysed","trial":"a","done":1,"of":2}\\n\')')
    events: list[Event] = []
    unmade = analyse(checkout / "campaign", checkout, events.append)
    assert unmade == ["rtt-cdf: no trial lasts 5 s"]
    assert events == [
        Event("analysis-started", {"trials": 0}),
        Event("analysed", {"trial": "a", "done": 1, "of": 2}),
    ]


def test_an_analysis_that_ends_early_with_exit_code_0_is_an_error(checkout: Path) -> None:
    _script(checkout, "quit(status = 0)")
    with pytest.raises(AnalysisError, match=r"ended without finishing the analysis: .*bundle/analysis.json"):
        analyse(checkout / "campaign", checkout, silent)


def test_parquet_tables_of_an_earlier_analysis_are_removed(checkout: Path) -> None:
    _script(checkout, DONE)
    earlier = checkout / "campaign" / "tables" / "metrics.parquet"
    earlier.parent.mkdir()
    earlier.write_text("values that differ from the new CSV file")
    analyse(checkout / "campaign", checkout, silent)
    assert not earlier.exists()


def test_checksums_of_an_earlier_report_are_removed(checkout: Path) -> None:
    _script(checkout, DONE)
    sums = checkout / "campaign" / "bundle" / "SHA256SUMS"
    sums.parent.mkdir()
    sums.touch()
    analyse(checkout / "campaign", checkout, silent)
    assert not sums.exists()


def test_the_message_of_r_is_part_of_the_error(checkout: Path) -> None:
    _script(checkout, 'for (i in 1:5000) message("much to say before"); stop("no such trial")')
    with pytest.raises(AnalysisError, match=r"(?s)R ended with code 1:.*no such trial"):
        analyse(checkout / "campaign", checkout, silent)


def test_a_missing_r_package_is_reported_with_the_remedy(checkout: Path) -> None:
    (checkout / ".rlib" / "samovar").rmdir()
    with pytest.raises(InstallationError, match=r"R package must be compiled, .*; run `make install` in "):
        analyse(checkout, checkout, silent)


def test_an_r_package_compiled_from_other_sources_is_reported_with_the_remedy(checkout: Path) -> None:
    (checkout / "analysis" / "DESCRIPTION").write_text("changed by git pull")
    with pytest.raises(InstallationError, match=r"R package must be compiled, .*; run `make install` in "):
        analyse(checkout, checkout, silent)


def test_a_missing_rscript_is_reported_with_the_remedy(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "sha256sum").symlink_to(str(shutil.which("sha256sum")))
    monkeypatch.setitem(os.environ, "PATH", str(checkout))
    with pytest.raises(AnalysisError, match="Rscript is not installed; run `make install`"):
        analyse(checkout / "campaign", checkout, silent)


def test_the_analysis_gets_the_folder_of_a_project_with_outputs_of_its_own(checkout: Path) -> None:
    _script(checkout, DONE + 'writeLines(commandArgs(TRUE), file.path(folder, "arguments"))')
    (checkout / "analysis" / "outputs.yaml").write_text("figures: {own: {what: Mine}}\n")
    analyse(checkout / "campaign", checkout, silent)
    arguments = (checkout / "campaign" / "arguments").read_text().splitlines()
    assert arguments == [str(checkout / "campaign"), str(checkout / "analysis")]
