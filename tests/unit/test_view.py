"""What people see of plans, campaigns and progress."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from samovar.command import Catalogue
from samovar.events import Event
from samovar.journal import Entry, fold
from samovar.plan import Plan, Trial
from samovar.runner.campaign import Summary
from samovar.runner.recovery import Restored
from samovar.view import text
from samovar.view.progress import Eta, Show
from samovar.view.words import clock
from tests.unit.plan_values import plan_of, trial
from tests.unit.trials import RESOLVED, TRIAL

ROOT = Path(__file__).parents[2]
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
    assert clock(seconds) == shown


def test_a_status_counts_what_is_done_and_says_what_is_left() -> None:
    lines = list(text.status_lines(Path("results/x/quick-1"), PLAN, fold([STARTED, FINISHED])))
    assert lines[2].startswith(f"✓  {TRIAL.id}  completed  2.0 s beyond traffic")
    assert lines[3].startswith(f"·  {SECOND.id}  open")
    assert lines[-1] == "1 of 2 trials done, about 0:06 left"


def test_a_status_of_many_trials_shows_those_that_a_reader_looks_for() -> None:
    plan = plan_of(trial("cubic", replicate) for replicate in range(1, 201))
    odd = {"outcome": "completed", "verdict": "suspect", "reasons": ["clock"], "overhead_s": 2.0}
    entries = [STARTED, FINISHED]
    for one, values in ((plan.trials[0], FINISHED.values), (plan.trials[1], odd)):
        entries.append(Entry(1.0, "trial-started", {"id": one.id, "attempt": 1}))
        entries.append(Entry(2.0, "trial-finished", {**values, "id": one.id}))
    lines = list(text.status_lines(Path("results/x/quick-1"), plan, fold(entries)))
    assert lines[2] == "?  cubic-r2-6  completed  clock"
    assert lines[3] == "… 199 more (--all shows them)"
    assert lines[-2] == "2 of 200 trials done, about 19:48 left"
    assert lines[-1] == "1 result of earlier plans kept, not analysed"
    every = list(text.status_lines(Path("results/x/quick-1"), plan, fold(entries), every=True))
    assert len(every) == 2 + 200 + 3


def test_a_status_says_what_cannot_run() -> None:
    blocked = {"blocked": [{"reasons": ["src: no congestion control cdg"], "trials": [SECOND.id]}]}
    state = fold([STARTED, FINISHED, Entry(9.0, "trials-blocked", blocked)])
    lines = list(text.status_lines(Path("results/x/quick-1"), PLAN, state))
    assert lines[3] == f"·  {SECOND.id}  cannot run  src: no congestion control cdg"
    assert lines[-2:] == ["1 of 2 trials done", "1 cannot run on lab"]


def test_a_summary_says_what_cannot_run_and_does_not_ask_to_run_it() -> None:
    summary = Summary(Path("results/x/quick-1"), 3, 1, {}, {"a": ("src: no cdg",), "b": ("src: no cdg",)})
    assert list(text.summary_lines(summary, "fab run x")) == [
        "1 of 3 trials done: results/x/quick-1",
        "  · 2 trials cannot run: src: no cdg",
    ]


def test_a_campaign_that_is_whole_says_so_and_where_its_bundle_is(tmp_path: Path) -> None:
    summary = Summary(tmp_path, 140, 140, {})
    assert list(text.settled_lines(summary, "x", "fab run x --new")) == [
        f"all 140 trials stand: {tmp_path}",
        "no bundle yet: `fab analyse`, then `fab report`",
        "to measure all anew: fab run x --new",
    ]
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "x.pdf").touch()
    assert f"bundle: {tmp_path / 'bundle' / 'x.pdf'}" in text.settled_lines(summary, "x", "fab run x --new")


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


def test_a_trial_that_is_run_again_is_counted_once_and_one_not_started_says_why() -> None:
    out = io.StringIO()
    show = Show(Console(file=out, width=200))
    finished = {"id": "a", "outcome": "completed", "overhead_s": 1.0, "reasons": ["too late"], "phases": {}}
    for name, values in (
        ("trials-open", {"asked": 2, "open": 2, "seconds": [5.0, 5.0]}),
        ("trial-started", {"id": "a", "attempt": 1, "seconds": 5.0}),
        ("path-measured", {"trial": "a", "seconds": 1.25, "missed": ["a miss"], "left_out": []}),
        ("trial-finished", {**finished, "verdict": "invalid"}),
        ("trial-again", {"id": "a", "attempt": 2, "of": 3, "seconds": 5.0}),
        ("trial-started", {"id": "a", "attempt": 2, "seconds": 5.0}),
        ("trial-finished", {**finished, "verdict": "valid", "reasons": []}),
        ("trial-refused", {"id": "b", "reasons": ["its path is another"]}),
    ):
        show(Event(name, values))
    said = out.getvalue()
    assert " 1/2 a: invalid" in said
    assert "↻ a: again, attempt 2 of 3" in said
    assert "✓ 1/2 a: valid" in said
    assert "✗ b: not started (its path is another)" in said
    assert "path of a measured in 1.2 s: a miss" in said


def test_restoring_says_which_hosts_are_as_before_and_what_could_not_be() -> None:
    restored = Restored({"full-1": ("src", "rtr"), "full-2": ()}, ["dst: no answer"])
    assert list(text.restored_lines("lab", restored)) == [
        "✓ full-1: src, rtr as before",
        "✗ dst: no answer",
    ]
    assert "no journal names a host" in "".join(text.restored_lines("lab", Restored()))
