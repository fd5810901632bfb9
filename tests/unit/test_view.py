"""What people see of plans, campaigns and progress."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from samovar.command import Catalogue
from samovar.events import Event
from samovar.journal import Entry, fold
from samovar.plan import Plan, estimate_cost
from samovar.runner.campaign import Summary
from samovar.view import text
from samovar.view.progress import Eta, Show
from tests.unit.trials import TRIAL

ROOT = Path(__file__).parents[2]
SECOND = TRIAL.model_copy(update={"id": "newreno-9999KB-600-r2-abc123", "replicate": 2})
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
    warnings=("main: 2 replicates; an interval needs at least 3",),
    trials=(TRIAL, SECOND),
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
def test_a_length_of_time_reads_as_people_write_it(seconds: float, shown: str) -> None:
    assert text.clock(seconds) == shown


def test_a_plan_shows_trials_in_order_cost_warnings_and_what_cannot_run() -> None:
    lines = list(text.plan_lines(PLAN, estimate_cost(PLAN), {SECOND.id: ["src: no program iperf3"]}))
    assert lines[0] == "x (quick) on lab: A title"
    assert lines[2] == f"1  {TRIAL.id}  0:06"
    assert lines[3] == f"2  {SECOND.id}  0:06  src: no program iperf3"
    assert any(
        line.startswith("2 trials, 0.00 h (traffic 0:12, beyond traffic 0:05), 0 reboots") for line in lines
    )
    assert "1 of 2 trials cannot run on lab" in lines
    assert lines[-1] == "warning: main: 2 replicates; an interval needs at least 3"


def test_a_plan_for_machines_has_the_plan_its_cost_and_what_cannot_run() -> None:
    value = json.loads(json.dumps(text.plan_json(PLAN, estimate_cost(PLAN), {SECOND.id: ["why"]})))
    assert [trial["id"] for trial in value["trials"]] == [TRIAL.id, SECOND.id]
    assert value["cost"]["trials"] == 2
    assert value["cannot_run"] == {SECOND.id: ["why"]}


def test_a_status_counts_what_is_done_and_says_what_is_left() -> None:
    lines = list(text.status_lines(Path("results/x/quick-1"), PLAN, fold([STARTED, FINISHED])))
    assert lines[2].startswith(f"✓  {TRIAL.id}  completed  2.0 s beyond traffic")
    assert lines[3].startswith(f"·  {SECOND.id}  open")
    assert lines[-1] == "1 of 2 trials done, about 0:06 left"


def test_a_summary_names_what_failed_why_and_the_command_that_tries_again() -> None:
    summary = Summary(Path("results/x/quick-1"), 2, 1, {SECOND.id: ("src: gone",)})
    assert list(text.summary_lines(summary, "fab run x --profile quick")) == [
        "1 of 2 trials done: results/x/quick-1",
        f"  ✗ {SECOND.id}: src: gone",
        "run what is missing: fab run x --profile quick",
    ]


def test_the_menu_has_what_stands_in_the_folders() -> None:
    controller = Catalogue(ROOT / "templates")
    lines = list(text.menu_lines(ROOT, [ROOT / "experiments" / "demo.yaml"], [], controller))
    assert any(line.split()[:1] == ["demo"] for line in lines)
    assert any(line.split()[:2] == ["iperf3", "linux"] for line in lines)
    assert any(line.split()[:1] == ["buffer-cdf"] for line in lines)


def test_the_time_left_is_planned_traffic_and_measured_overhead() -> None:
    eta = Eta([10.0, 20.0, 30.0])
    eta.finished(4.0)
    assert eta.left_s == 20 + 30 + 2 * 4
    eta.finished(2.0)
    assert eta.left_s == 30 + 3


def test_without_a_terminal_there_is_a_plain_line_per_event() -> None:
    out = io.StringIO()
    with Show(Console(file=out, force_terminal=False, width=200)) as show:
        show(Event("trials-open", {"asked": 2, "open": 2, "seconds": [6.0, 6.0]}))
        show(Event("trial-started", {"id": TRIAL.id}))
        show(Event("phase", {"id": TRIAL.id, "phase": "set"}))
        show(Event("trial-finished", {**FINISHED.values, "phases": {}}))
        show(Event("nobody-knows-this-one"))
    assert out.getvalue().splitlines() == [
        "2 of 2 trials to run, about 0:18",
        f"✓ 1/2 {TRIAL.id}: valid, 2.0 s beyond traffic, ETA 0:08",
    ]
    assert "\x1b" not in out.getvalue()
