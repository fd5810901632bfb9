"""What `fab run`, `fab restore` and `fab list` print."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.campaign.journal import Entry
from samovar.campaign.recovery import Restored
from samovar.campaign.run import Summary
from samovar.cli.plan_commands import menu_lines
from samovar.cli.project import Project
from samovar.cli.run_commands import complete_lines, restored_lines, summary_lines
from samovar.cli.text import clock
from samovar.plan import Plan, Trial
from tests.unit.plan_values import shared_trials
from tests.unit.trials import RESOLVED, TRIAL

ROOT = Path(__file__).parents[3]
SECOND = Trial(
    id="newreno-9999KB-600-r2-abc123", part="main", treatment={}, replicate=2, block=2, resolved=RESOLVED
)
PLAN = Plan(
    experiment="x",
    title="A title",
    source="",
    description="",
    profile="quick",
    testbed="lab",
    seed=1,
    order="sequential",
    parts=(),
    figures=(),
    tables=(),
    trials=shared_trials((TRIAL, SECOND)),
)
STARTED = Entry(1.0, "trial-started", {"id": TRIAL.id, "attempt": 1})
FINISHED = Entry(
    9.0,
    "trial-finished",
    {"id": TRIAL.id, "outcome": "completed", "verdict": "valid", "reasons": [], "overhead_s": 2.0},
)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (42.4, "0:42"), (725, "12:05"), (12_000, "3:20:00")]
)
def test_a_duration_is_written_as_a_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_a_summary_counts_trials_that_cannot_run() -> None:
    summary = Summary(Path("results/x/quick-1"), 3, 1, {}, {"a": ("src: no cdg",), "b": ("src: no cdg",)})
    assert list(summary_lines(summary, "fab run x")) == [
        "1 of 3 trials done: results/x/quick-1",
        "  − 2 trials cannot run: src: no cdg",
    ]


def test_a_complete_campaign_shows_where_its_report_is(tmp_path: Path) -> None:
    summary = Summary(tmp_path, 140, 140, {})
    assert list(complete_lines(summary, "x", "fab run x --new")) == [
        f"all 140 trials are done: {tmp_path}",
        "no report yet: run `fab analyse`, then `fab report`",
        "to measure everything again: fab run x --new",
    ]
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "x.pdf").touch()
    assert f"report: {tmp_path / 'bundle' / 'x.pdf'}" in complete_lines(summary, "x", "fab run x --new")


def test_a_summary_has_failed_trials_with_reasons_and_the_command_that_repeats_them() -> None:
    summary = Summary(Path("results/x/quick-1"), 2, 1, {SECOND.id: ("src: gone",)})
    assert list(summary_lines(summary, "fab run x --profile quick")) == [
        "1 of 2 trials done: results/x/quick-1",
        f"  ✗ {SECOND.id}: src: gone",
        "to run the missing trials: fab run x --profile quick",
    ]


def test_the_list_has_experiments_recipes_and_figures() -> None:
    lines = list(menu_lines(Project(ROOT)))
    assert any(line.split()[:1] == ["demo"] for line in lines)
    assert any(line.split()[:2] == ["iperf3", "linux"] for line in lines)
    assert any(line.split()[:1] == ["buffer-cdf"] for line in lines)


def test_restore_shows_restored_hosts_and_problems() -> None:
    restored = Restored({"full-1": ("src", "rtr"), "full-2": ()}, ["dst: no answer"])
    assert list(restored_lines("lab", restored)) == [
        "✓ full-1: src, rtr restored",
        "✗ dst: no answer",
    ]
    assert "nothing to restore" in "".join(restored_lines("lab", Restored()))
