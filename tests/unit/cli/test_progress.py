"""Progress and status of a campaign: as lines of text, as events for programs, and on a real terminal."""

from __future__ import annotations

import ast
import io
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len
from rich.console import Console, Group

from samovar.campaign.collection.verify import FileProblem, Verification
from samovar.campaign.journal import Entry, fold
from samovar.cli.progress import CampaignProgress, EventDisplay, open_event_stream, styled
from samovar.cli.show_status import (
    CampaignStatus,
    grid_lines,
    grid_of,
    legend,
    status_json,
    status_lines,
    trial_states,
    verification_lines,
)
from samovar.errors import CampaignError
from samovar.events import SCHEMA, STREAM_EVENTS, Event, line_schema
from samovar.plan import PartPlan, Plan, Trial
from tests.unit.plan_values import lasting, plan_of, trial

ROOT = Path(__file__).parents[3]


def grid_trial(cc: str, rwnd: str, replicate: int) -> Trial:
    return Trial(
        id=f"{cc}-{rwnd}-r{replicate}-abc123",
        part="main",
        treatment={"cc": cc, "rwnd": rwnd, "mtu": "1500"},
        replicate=replicate,
        block=replicate,
        source=lasting(10.0),
    )


FACTORS = {"cc": ("newreno", "cubic"), "rwnd": ("40KB", "600KB"), "mtu": ("1500",)}
PLAN = plan_of(
    [grid_trial(cc, rwnd, r) for r in (1, 2, 3) for cc in FACTORS["cc"] for rwnd in FACTORS["rwnd"]],
    parts=(PartPlan(name="main", title="", factors=FACTORS, replicates=3),),
)
IDS = [trial.id for trial in PLAN.trials]


def trial_finished(
    id_: str, outcome: str = "completed", verdict: str = "valid", *reasons: str
) -> dict[str, object]:
    return {"id": id_, "outcome": outcome, "verdict": verdict, "reasons": list(reasons), "overhead_s": 2.0}


JOURNALED = [
    Entry(100.0, "campaign-started", {"trials": 12}),
    Entry(101.0, "trial-started", {"id": IDS[0], "attempt": 1}),
    Entry(113.0, "trial-finished", trial_finished(IDS[0])),
    Entry(113.0, "trial-started", {"id": IDS[1], "attempt": 1}),
    Entry(125.0, "trial-finished", trial_finished(IDS[1], "completed", "suspect", "clock")),
    Entry(125.0, "trial-started", {"id": IDS[2], "attempt": 1}),
    Entry(
        126.0, "trial-finished", trial_finished(IDS[2], "failed", "invalid", "src: no answer\nsecond line")
    ),
    Entry(126.0, "trial-started", {"id": IDS[3], "attempt": 1}),
    Entry(127.0, "phase", {"id": IDS[3], "phase": "arm", "seconds": 0.5}),
]


def status(running: bool, entries: Sequence[Entry] = JOURNALED, plan: Plan = PLAN) -> CampaignStatus:
    return CampaignStatus(Path("results/x/full-1"), plan, fold(entries), 130.0, running)


def test_the_status_of_a_running_campaign_has_a_grid_and_lists_running_and_failed_trials() -> None:
    assert list(status_lines(status(True), 60)) == [
        f"{PLAN.experiment} (full) on lab in results/x/full-1",
        "running; last event phase, 0:03 ago",
        "",
        "newreno 40KB  ✓··  cubic 40KB    ✗··",
        "newreno 600KB ?··  cubic 600KB   »··",
        "✓ 1 valid  ? 1 suspect  ✗ 1 failed  » 1 running  · 8 open",
        "» cubic-600KB-r1-abc123: running, started 0:04 ago, phase arm done",
        "✗ cubic-40KB-r1-abc123: failed",
        "    src: no answer second line",
        "? newreno-600KB-r1-abc123: suspect",
        "    clock",
        "",
        "2 of 12 trials done, about 2:00 remaining",
    ]


def test_the_status_shows_overrides_of_the_command_line() -> None:
    changed = PLAN.model_copy(update={"overrides": {"duration": "4s", "cc": "[cubic]"}})
    assert list(status_lines(status(True, plan=changed), 60))[1] == "set: duration=4s, cc=[cubic]"


def test_the_status_of_a_killed_campaign_has_the_command_that_resumes_it() -> None:
    lines = list(status_lines(status(False), 60))
    assert lines[1] == "not running: the controller was killed; last event phase, 0:03 ago"
    assert "✓ 1 valid  ? 1 suspect  ✗ 1 failed  / 1 interrupted  · 8 open" in lines
    assert "/ cubic-600KB-r1-abc123: cut off, started 0:04 ago, phase arm done" in lines
    assert lines[-1] == f"to run the missing trials: fab run {PLAN.experiment} --testbed lab"


@pytest.mark.parametrize("end", ["campaign-finished", "campaign-interrupted"])
def test_a_campaign_whose_hosts_were_restored_after_its_end_was_not_killed(end: str) -> None:
    restored = Entry(127.0, "state-restored", {"id": IDS[3], "host": "src"})
    entries = [*JOURNALED, Entry(127.0, end, {"completed": 2, "failed": []}), restored]
    ended = list(status_lines(status(False, entries), 60))
    assert ended[1] == "not running; last event state-restored, 0:03 ago"
    resumed = [*entries, Entry(127.0, "campaign-resumed", {"trials": 12})]
    assert "the controller was killed" in list(status_lines(status(False, resumed), 60))[1]


def test_the_status_says_why_a_run_stopped_early() -> None:
    stopped = Entry(127.0, "campaign-stopped", {"reason": "the disk is almost full"})
    ended = [*JOURNALED, stopped, Entry(127.0, "campaign-finished", {"completed": 2, "failed": IDS[4:]})]
    assert list(status_lines(status(False, ended), 60))[2] == "stopped: the disk is almost full"


def test_the_status_says_if_the_clock_of_the_controller_is_ahead_of_the_local_clock() -> None:
    started = Entry(133.0, "trial-started", {"id": IDS[4], "attempt": 1})
    lines = list(status_lines(status(True, [*JOURNALED, started]), 60))
    ahead = "0:03 ahead of this computer's clock"
    assert lines[1] == f"running; last event trial-started, {ahead}"
    assert f"» {IDS[4]}: running, started {ahead}, no phase done yet" in lines


def test_the_status_of_all_trials_has_a_row_per_trial() -> None:
    lines = list(status_lines(status(True), 60, every_trial=True))
    row = lines.index("✗  cubic-40KB-r1-abc123     failed   2.0 s overhead")
    assert lines[row + 1] == "    src: no answer second line"
    assert sum(id_ in line for id_ in IDS for line in lines) >= len(IDS)


def test_the_reasons_of_many_trials_are_counted_and_the_option_all_lists_each_of_them() -> None:
    late = [f"start of flow {n} at src: requested on time, observed {n} s late" for n in range(8)]
    ended = [
        Entry(100.0, name, values)
        for id_ in IDS
        for name, values in (
            ("trial-started", {"id": id_, "attempt": 1}),
            ("trial-finished", trial_finished(id_, "completed", "suspect", *late)),
        )
    ]
    lines = list(status_lines(status(False, ended), 80))
    assert lines.count("  … 3 more (--all shows them)") == 10, "ten trials show five of their eight reasons"
    folded = lines.index("  … 2 more trials (--all shows them):")
    assert lines[folded + 1] == "      2 × start of flow 0 at src"
    assert lines[folded + 6] == "  … 3 more"
    every = list(status_lines(status(False, ended), 80, every_trial=True))
    assert sum(line == f"    {late[7]}" for line in every) == len(IDS)
    assert not any("more" in line for line in every)


def test_the_status_reports_that_a_campaign_has_not_started_or_that_trials_cannot_run() -> None:
    assert list(status_lines(status(False, ()), 60))[1] == "not started"
    blocked = {"blocked": [{"reasons": ["src: no cdg"], "trials": IDS[4:]}]}
    lines = list(status_lines(status(False, [*JOURNALED, Entry(9.0, "trials-blocked", blocked)]), 60))
    assert "✓ 1 valid  ? 1 suspect  ✗ 1 failed  / 1 interrupted  − 8 cannot run" in lines
    assert "8 cannot run on lab" in lines


def test_the_json_status_has_every_trial_and_the_command_that_resumes() -> None:
    values = json.loads(json.dumps(status_json(status(False))))
    assert [trial["state"] for trial in values["trials"][:5]] == [
        "valid",
        "suspect",
        "failed",
        "interrupted",
        "open",
    ]
    assert (values["trials_left"], values["controller_at_work"]) == (10, False)
    assert values["seconds_left"] == 120.0
    assert values["again"].startswith("fab run ")


ROWS = {f"cc{n} {n}KB": ("valid", "invalid", "open") for n in range(8)}


@pytest.mark.parametrize(
    ("width", "first"),
    [
        (20, "cc0 0KB ✓!·"),
        (40, "cc0 0KB ✓!·  cc3 3KB ✓!·  cc6 6KB ✓!·"),
        (80, "cc0 0KB ✓!·  cc2 2KB ✓!·  cc4 4KB ✓!·  cc6 6KB ✓!·"),
    ],
)
def test_a_grid_uses_the_available_width(width: int, first: str) -> None:
    lines = list(grid_lines(ROWS, width, 20))
    assert lines[0] == first
    assert all(cell_len(line) <= max(width, cell_len(legend(ROWS["cc0 0KB"] * 8))) for line in lines)


def test_a_grid_without_room_for_all_rows_keeps_the_rows_with_a_trial_that_is_not_valid() -> None:
    done = {f"done{n}": ("valid",) for n in range(50)}
    lines = list(grid_lines({**done, "odd": ("suspect",)}, 12, 6))
    assert lines[-3].split() == ["odd", "?"]
    assert lines[-2] == "… 47 more treatments"


def test_replicates_are_counted_if_there_is_no_room_for_a_symbol_each() -> None:
    states = ("valid",) * 90 + ("invalid",) * 3 + ("open",) * 7
    assert next(grid_lines({"a": states}, 40, 9)) == "a 90✓ 3! 7·"


def test_a_factor_with_one_level_is_not_in_the_grid() -> None:
    assert set(grid_of(PLAN, trial_states(PLAN, fold(())))) == {
        f"{cc} {rwnd}" for cc in ("newreno", "cubic") for rwnd in ("40KB", "600KB")
    }


OPEN = {"asked": 12, "open": 12, "seconds": [10.0] * 12, "testbeds": 2}


def progress_on_two_testbeds() -> CampaignProgress:
    """Return the progress of a campaign on two testbeds: two trials are running, and one has failed."""
    progress = CampaignProgress()
    progress.expect(PLAN, fold(()))
    progress.update(Event("trials-open", OPEN), 0.0)
    for id_, testbed in ((IDS[0], "a"), (IDS[1], "b"), (IDS[2], "a")):
        progress.update(
            Event("trial-started", {"id": id_, "attempt": 1, "seconds": 10.0, "testbed": testbed}), 1.0
        )
    progress.update(Event("phase", {"id": IDS[0], "phase": "traffic"}), 2.0)
    progress.update(Event("throughput", {"id": IDS[0], "received_bps": {"dst": 9_612_345.0}}), 4.0)
    progress.update(Event("phase", {"id": IDS[1], "phase": "collect"}), 3.0)
    progress.update(Event("trial-finished", trial_finished(IDS[2], "failed", "invalid", "rtr: gone")), 5.0)
    return progress


def test_the_remaining_time_uses_the_assumed_overhead_until_an_overhead_is_measured() -> None:
    progress = CampaignProgress()
    progress.expect(PLAN, fold(()), overhead_s=20.0)
    progress.update(Event("trials-open", {**OPEN, "testbeds": 1}), 0.0)
    assert progress.remaining_s == 12 * (10.0 + 20.0)
    progress.update(
        Event("trial-started", {"id": IDS[0], "attempt": 1, "seconds": 10.0, "testbed": "a"}), 1.0
    )
    progress.update(Event("trial-finished", trial_finished(IDS[0], "completed", "valid")), 15.0)
    assert progress.remaining_s == 11 * (10.0 + 2.0)


def test_the_live_view_has_the_phase_and_remaining_time_of_each_running_trial() -> None:
    assert list(progress_on_two_testbeds().lines(6.0, 110, 24)) == [
        f"0 of 12 trials done · 1:09 remaining · {PLAN.experiment} (full) on lab",
        f"» {IDS[0]} on a: traffic 0:04 of 0:10 · 9.61Mbit/s into dst",
        f"» {IDS[1]} on b: collect 0:03",
        f"✗ {IDS[2]}: rtr: gone",
        "newreno 40KB  »··  newreno 600KB »··  cubic 40KB    ✗··  cubic 600KB   ···",
        "✗ 1 failed  » 2 running  · 9 open",
    ]


def test_the_remaining_time_is_the_sum_of_planned_traffic_and_measured_overhead() -> None:
    progress = CampaignProgress()
    progress.update(Event("trials-open", {"asked": 3, "open": 3, "seconds": [10.0, 20.0, 30.0]}), 0.0)
    assert progress.remaining_s == 60 + 3 * 2.5
    progress.update(Event("trial-started", {"id": "a", "seconds": 10.0}), 0.0)
    progress.update(Event("trial-finished", trial_finished("a")), 0.0)
    assert progress.remaining_s == 50 + 2 * 2
    progress.update(Event("trial-again", {"id": "a", "attempt": 2, "of": 2, "seconds": 10.0}), 0.0)
    assert progress.remaining_s == 60 + 3 * 2


def test_the_remaining_time_is_divided_by_the_testbeds_but_is_at_least_that_of_the_longest_trial() -> None:
    progress = CampaignProgress()
    progress.update(
        Event("trials-open", {"asked": 3, "open": 3, "seconds": [10.0, 20.0, 60.0], "testbeds": 2}), 0.0
    )
    assert progress.remaining_s == 60 + 2.5, "the longest trial runs on one testbed"
    progress.update(Event("trial-started", {"id": "a", "seconds": 60.0}), 0.0)
    progress.update(Event("trial-finished", trial_finished("a")), 0.0)
    assert progress.remaining_s == 20 + 2, "two trials run at the same time on two testbeds"
    progress.update(Event("testbed-idle", {"testbed": "b"}), 0.0)
    assert progress.remaining_s == 30 + 2 * 2, "two trials run after each other on one testbed"


def test_the_status_divides_the_remaining_time_by_the_testbeds() -> None:
    shared = PLAN.model_copy(update={"testbed": "a,b"})
    assert (
        list(status_lines(status(True, plan=shared), 60))[-1] == "2 of 12 trials done, about 1:00 remaining"
    )
    ended = [*JOURNALED, Entry(127.0, "testbed-idle", {"testbed": "b"})]
    assert (
        list(status_lines(status(True, ended, shared), 60))[-1] == "2 of 12 trials done, about 2:00 remaining"
    )


def test_the_status_assumes_an_overhead_for_the_number_of_lab_hosts_until_an_overhead_is_measured(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "x" / "full-1"
    folder.mkdir(parents=True)
    (folder / "provenance.json").write_text('{"testbed": "lab", "lab": {"kernel": "uml"}}')
    source = lasting(10.0)
    hosts = dict.fromkeys([f"host{number}" for number in range(20)], source.hosts["src"])
    plan = plan_of([trial("cubic", resolved=source.model_copy(update={"hosts": hosts}))])
    assert CampaignStatus(folder, plan, fold(()), 130.0).remaining_s == 10 + 20 * 0.8


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("height", [5, 24, 60])
def test_the_live_view_fits_the_terminal(width: int, height: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as output:
        console.print(Group(*map(styled, progress_on_two_testbeds().lines(6.0, width, height))))
    lines = output.get().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    assert len(lines) <= max(height, 9)


def test_an_analysis_has_a_progress_bar_without_terminal_escapes() -> None:
    display = EventDisplay(console=Console(file=io.StringIO(), force_terminal=True, width=100))
    display(Event("analysis-started", {"trials": 4}))
    display(Event("analysed", {"trial": "a\x1b[2J", "done": 1, "of": 4}))
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as output:
        console.print(display._draw())
    assert "25%" in output.get() and "[progress" not in output.get()
    assert output.get().rstrip().endswith("analysis a·[2J")


def printed_lines(*events: Event) -> list[str]:
    """Return the lines that are printed without a terminal; `@` stands for the time of a line."""
    out = io.StringIO()
    with EventDisplay(console=Console(file=out, force_terminal=False, width=200), now=lambda: 0.0) as show:
        for event in events:
            show(event)
    assert "\x1b" not in out.getvalue()
    return [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "@ ", line) for line in out.getvalue().splitlines()]


def test_without_a_terminal_events_are_printed_as_plain_lines_with_their_times() -> None:
    assert printed_lines(
        Event("trials-open", {"asked": 2, "open": 2, "seconds": [6.0, 6.0]}),
        Event("trial-started", {"id": "a", "attempt": 1, "seconds": 6.0}),
        Event("phase", {"id": "a", "phase": "set"}),
        Event("trial-finished", trial_finished("a", "completed", "invalid", "too late")),
        Event("trial-again", {"id": "a", "attempt": 2, "of": 3, "seconds": 6.0}),
        Event("trial-started", {"id": "a", "attempt": 2, "seconds": 6.0}),
        Event("trial-finished", trial_finished("a")),
        Event("trial-refused", {"id": "b", "reasons": ["its path is another"]}),
        Event("host-quarantined", {"host": "src", "reason": "three failures"}),
        Event("path-measured", {"trial": "a", "seconds": 1.25, "missed": ["a miss"], "left_out": []}),
        Event("unknown-event"),
    ) == [
        "@ 2 of 2 trials to run, about 0:17",
        "@ » a: started",
        "@ ! 0/2 a: invalid, 2.0 s overhead, 0:08 remaining (too late)",
        "@ ↻ a: attempt 2 of 3 follows",
        "@ » a: started, attempt 2",
        "@ ✓ 1/2 a: valid, 2.0 s overhead, 0:08 remaining",
        "@ ✗ b: not started (its path is another)",
        "@ ✗ src: quarantined: three failures",
        "@ path of a measured in 1.2 s: a miss",
    ]


# --- events for programs


def test_the_reference_of_events_states_the_schema_version_of_the_stream() -> None:
    page = (ROOT / "docs" / "reference" / "events.md").read_text()
    assert f"Each line has `schema` ({SCHEMA})," in page


def test_every_emitted_event_is_declared_in_the_schema_of_the_stream() -> None:
    names = set()
    for file in (ROOT / "samovar").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                if name == "Event" and isinstance(node.args[0].value, str):
                    names.add(node.args[0].value)
    assert len(names) > 10
    assert names - STREAM_EVENTS.keys() == set()


def test_the_schema_of_the_stream_accepts_only_declared_events_with_their_declared_values() -> None:
    line = Draft202012Validator(line_schema("stream", STREAM_EVENTS))
    assert line.is_valid({"t_s": 1.0, "event": "warning", "text": "x", "testbed": "lab"})
    assert not line.is_valid({"t_s": 1.0, "event": "warning"})
    assert not line.is_valid({"t_s": 1.0, "event": "warning", "text": "x", "words": "x"})
    assert not line.is_valid({"t_s": 1.0, "event": "nonsense"})


def test_an_event_stream_appends_a_line_of_json_as_soon_as_an_event_happens(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    for number in (1, 2):
        with open_event_stream(str(file), lambda: 5.0) as stream:
            stream(Event("warning", {"text": "ü\n"}))
            lines = file.read_text().splitlines()
            assert len(lines) == number
    assert json.loads(lines[0]) == {"schema": 1, "t_s": 5.0, "event": "warning", "text": "ü\n"}


def test_events_that_cannot_be_written_are_ignored_but_a_stream_that_cannot_be_opened_is_an_error(
    tmp_path: Path,
) -> None:
    with open_event_stream("/dev/full") as stream:
        stream(Event("warning", {"text": "x"}))
        stream(Event("warning", {"text": "y"}))
    with pytest.raises(CampaignError, match="events cannot be written"), open_event_stream(str(tmp_path)):
        pass


# --- a real terminal

SHOW = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from samovar.events import Event
from samovar.cli.progress import EventDisplay
from samovar.campaign.journal import fold
from tests.unit.cli.test_progress import PLAN, IDS, OPEN, trial_finished
with EventDisplay() as show:
    show.campaign.expect(PLAN, fold(()))
    show(Event("trials-open", OPEN))
    show(Event("trial-started", {"id": IDS[0], "attempt": 1, "seconds": 10.0}))
    for phase in ("read", "set", "traffic"):
        show(Event("phase", {"id": IDS[0], "phase": phase}))
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.05)
    show(Event("trial-finished", trial_finished(IDS[0])))
print("after")
"""


def on_a_terminal(tmp_path: Path, environment: dict[str, str]) -> str:
    """Run SHOW on a terminal of 100 x 30 characters; let it end once its live view appears; return its output."""
    pid, terminal = pty.fork()
    go = tmp_path / "go"
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", **environment})
        os.execv(sys.executable, [sys.executable, "-c", SHOW, str(ROOT), str(go)])
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    written, until = b"", time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # the program has ended
                break
            written += data
        if b": traffic 0:0" in written:
            go.touch()
    go.touch()  # the program must also end if its live view has never appeared
    os.waitpid(pid, 0)
    os.close(terminal)
    return written.decode()


def test_a_terminal_shows_a_live_view_and_restores_the_cursor_at_the_end(tmp_path: Path) -> None:
    written = on_a_terminal(tmp_path, {})
    assert f"» {IDS[0]}: traffic 0:0" in written
    assert "newreno 40KB  »··" in written
    assert "\x1b[32m✓" in written, "a terminal shows colours"
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1, (
        "the cursor is hidden once and shown again once"
    )
    last = written.rstrip().splitlines()[-1]
    assert last.endswith("after")
    assert "»" not in written[written.rindex("after") :]


def test_no_color_removes_the_colours_of_the_live_view_and_keeps_its_text(tmp_path: Path) -> None:
    written = on_a_terminal(tmp_path, {"NO_COLOR": "1"})
    assert re.search(r"\x1b\[[0-9;]*3[0-7]m", written) is None
    assert "newreno 40KB  »··" in written
    assert f"✓  1/12 {IDS[0]}: valid" in written


def test_a_verification_has_a_line_per_difference_and_a_summary() -> None:
    found = Verification([FileProblem("trials/a/x", "missing")], ["not all"], 12, 34_000_000, 1.5)
    assert list(verification_lines(Path("results/x/full-1"), found)) == [
        "✗ trials/a/x: missing",
        "? not all",
        "✗ results/x/full-1: 1 difference (12 files, 34MB, in 1.5 s)",
    ]
    assert list(verification_lines(Path("f"), Verification([], [], 1, 0, 0.0))) == [
        "✓ f: unchanged since it was recorded (1 file, 0B, in 0.0 s)"
    ]
