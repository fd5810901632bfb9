"""The R stage as the controller sees it: events while it works, R's own words when it fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from samovar.analyse import analyse
from samovar.errors import AnalysisError
from samovar.events import Event, silent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "analysis" / "inst").mkdir(parents=True)
    (tmp_path / ".rlib" / "samovar").mkdir(parents=True)
    (tmp_path / "campaign").mkdir()
    return tmp_path


DONE = 'dir.create(file.path(commandArgs(TRUE), "bundle")); file.create(file.path(commandArgs(TRUE), "bundle/analysis.json"));'


def _script(checkout: Path, code: str) -> None:
    (checkout / "analysis" / "inst" / "analyse.R").write_text(code)


def test_lines_of_json_are_events_and_other_lines_are_not(checkout: Path) -> None:
    _script(checkout, DONE + 'cat("a word\\n"); cat(\'{"event":"analysed","trial":"a","done":1,"of":2}\\n\')')
    events: list[Event] = []
    analyse(checkout / "campaign", checkout, events.append)
    assert events == [
        Event("analysis-started", {"trials": 0}),
        Event("analysed", {"trial": "a", "done": 1, "of": 2}),
    ]


def test_an_r_that_ends_before_its_work_is_done_is_told_from_one_that_did_it(checkout: Path) -> None:
    _script(checkout, "quit(status = 0)")
    with pytest.raises(AnalysisError, match=r"ended before its work was done: .*bundle/analysis.json"):
        analyse(checkout / "campaign", checkout, silent)


def test_what_r_complains_of_is_said(checkout: Path) -> None:
    _script(checkout, 'for (i in 1:5000) message("much to say before"); stop("no such trial")')
    with pytest.raises(AnalysisError, match=r"(?s)R ended with code 1:.*no such trial"):
        analyse(checkout / "campaign", checkout, silent)


def test_a_package_that_is_not_installed_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match="the R package is not installed there; `make install` does it"):
        analyse(tmp_path, tmp_path, silent)


def test_a_missing_rscript_is_named_with_the_remedy(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PATH", "/nowhere")
    with pytest.raises(AnalysisError, match="Rscript is not installed; `make install` does it"):
        analyse(checkout / "campaign", checkout, silent)
