"""Commands that run, restore and list: their output and exit codes, and the campaigns and labs they act on."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from samovar.campaign.availability import Finding, HostSurvey
from samovar.campaign.folder import ResumePoint
from samovar.campaign.journal import JOURNAL, Journal, fold
from samovar.campaign.policy import ONE_ATTEMPT
from samovar.campaign.recovery import Restored, changed_campaigns, restore_campaign
from samovar.campaign.run import Summary
from samovar.cli import controller
from samovar.cli.campaign_commands import comparison_name
from samovar.cli.commands import run_commands
from samovar.cli.project import Project, Request, RunRequest
from samovar.cli.show_project import menu_lines
from samovar.cli.show_status import complete_lines, restored_lines, summary_lines
from samovar.errors import CampaignError, TestbedError
from samovar.events import Emit, Event, silent
from samovar.hosts import Sessions
from samovar.plan import DONE, Cost, Pick, Plan, Trial, compare, estimate_cost
from samovar.units import clock
from tests.unit.plan_values import shared_trials
from tests.unit.plans import CATALOGUE
from tests.unit.trials import RESOLVED, TRIAL

ROOT = Path(__file__).parents[3]
SECOND = Trial(
    id="newreno-9999KB-600-r2-abc123", part="main", treatment={}, replicate=2, block=2, source=RESOLVED
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


class FakeController:
    """A stand-in for the controller of `fab run`; its run completes one of two trials."""

    def __init__(self, folder: Path) -> None:
        resume = ResumePoint(None, compare(PLAN, None, {}), fold(()), Pick().of(PLAN))
        planned = SimpleNamespace(plan=PLAN)
        self.project = SimpleNamespace(
            plan=lambda *arguments: planned, resume_point=lambda *arguments: resume
        )
        self.summary = Summary(folder, 2, 1, {SECOND.id: ("src: gone",)})

    def cost(self, planned: object, resume: ResumePoint) -> Cost:
        return estimate_cost(PLAN, CATALOGUE)

    def run(self, request: RunRequest, emit: Emit) -> Summary:
        emit(Event("trials-open", {"asked": 2, "open": 2, "seconds": [6.0, 6.0]}))
        return self.summary


@pytest.mark.parametrize("to_stdout", [False, True])
def test_run_shows_events_and_summary_and_returns_1_if_trials_are_missing(
    to_stdout: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(controller, "Controller", FakeController)
    events = tmp_path / "events.jsonl"
    where = "-" if to_stdout else str(events)
    code = run_commands(["run", "x", "--profile", "quick", "--set", "rwnd=1MB", "--events", where], tmp_path)
    out, err = capfd.readouterr()
    for_people, for_programs = (err, out) if to_stdout else (out, events.read_text())
    assert code == 1
    assert "2 of 2 trials to run, about " in for_people
    assert f"  ✗ {SECOND.id}: src: gone\n" in for_people
    assert for_people.endswith("to run the missing trials: fab run x --profile quick --testbed lab\n")
    assert [json.loads(line)["event"] for line in for_programs.splitlines()] == ["trials-open"]


@pytest.mark.parametrize("again", [[], ["--again", "suspect"]])
def test_a_run_without_open_trials_prints_messages_to_stderr_if_events_go_to_stdout(
    again: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class FinishedController(FakeController):
        def __init__(self, root: Path) -> None:
            super().__init__(root)
            done = compare(PLAN, PLAN, dict.fromkeys(PLAN.ids, DONE))
            picked = Pick(again=tuple(again[1:])).of(PLAN)
            resume = ResumePoint(tmp_path, done, fold(()), picked)
            planned = SimpleNamespace(plan=PLAN, sources={})
            self.project = SimpleNamespace(plan=lambda _: planned, resume_point=lambda *_: resume)

    (tmp_path / "plan.json").write_bytes(PLAN.to_json())
    monkeypatch.setattr(controller, "Controller", FinishedController)
    run_commands(["run", "x", *again, "--events", "-"], tmp_path)
    out, err = capfd.readouterr()
    assert out == ""
    assert "2 trials are done" in err or err.startswith("nothing to run again")


class InterruptedController(FakeController):
    """A controller that is interrupted in its first trial."""

    def run(self, request: RunRequest, emit: Emit) -> Summary:
        raise KeyboardInterrupt


@pytest.mark.parametrize("new", [False, True])
def test_an_interrupted_run_prints_the_command_that_resumes_it(
    new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(controller, "Controller", InterruptedController)
    options = ["--only", "rwnd=1MB", *(["--new"] if new else ["--again", "suspect"]), "--fail-fast"]
    code = run_commands(["run", "x", *options], tmp_path)
    shown = "fab run x --profile quick --testbed lab --only rwnd=1MB"
    shown += f"{'' if new else ' --again suspect'} --fail-fast"
    assert (code, capfd.readouterr().err) == (130, f"interrupted; to resume: {shown}\n")


def test_a_missing_congestion_control_blocks_only_trials_that_are_not_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = controller.Controller(ROOT)
    planned = runner.project.plan(Request("demo"))
    first, *others = planned.plan.ids
    lacks = Finding("src", "no congestion control turbo", "", True, (first,))
    monkeypatch.setattr(runner, "compare", lambda *arguments: [lacks])

    def resumed(done: Sequence[str]) -> ResumePoint:
        comparison = compare(planned.plan, planned.plan, dict.fromkeys(done, DONE))
        return ResumePoint(Path("x"), comparison, fold(()), Pick().of(planned.plan))

    def blocked(done: Sequence[str], allow_partial: bool = False) -> list[str]:
        request = RunRequest(planned, resumed(done), allow_partial)
        (setup,) = runner._testbeds(request, [Sessions([])], [HostSurvey()])
        return list(setup.blocked)

    assert blocked([first]) == []
    with pytest.raises(TestbedError, match="no congestion control turbo"):
        blocked(others)
    assert blocked(others, allow_partial=True) == [first]

    monkeypatch.setattr(runner.project, "resume_point", lambda *arguments: resumed([first]))
    preview = runner.preview(planned, new_campaign=False)
    assert preview.state(first) == "stands"
    assert not preview.blocked


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (42.4, "0:42"), (725, "12:05"), (12_000, "3:20:00")]
)
def test_a_duration_is_printed_in_hours_minutes_and_seconds(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_a_summary_counts_trials_that_cannot_run() -> None:
    summary = Summary(Path("results/x/quick-1"), 3, 1, {}, {"a": ("src: no cdg",), "b": ("src: no cdg",)})
    assert list(summary_lines(summary, "fab run x")) == [
        "1 of 3 trials done: results/x/quick-1",
        "  − 2 trials cannot run: src: no cdg",
    ]


def test_a_run_of_a_complete_campaign_prints_the_path_of_its_report_or_how_to_make_one(
    tmp_path: Path,
) -> None:
    summary = Summary(tmp_path, 140, 140, {})
    assert list(complete_lines(summary, "x", "fab run x --new")) == [
        f"all 140 trials are done: {tmp_path}",
        "no report yet: run `fab analyse`, then `fab report`",
        "to measure everything again: fab run x --new",
    ]
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "x.pdf").touch()
    assert f"report: {tmp_path / 'bundle' / 'x.pdf'}" in complete_lines(summary, "x", "fab run x --new")


def test_a_summary_lists_failed_trials_with_reasons_and_the_command_that_runs_them_again() -> None:
    summary = Summary(Path("results/x/quick-1"), 2, 1, {SECOND.id: ("src: gone",)})
    assert list(summary_lines(summary, "fab run x --profile quick")) == [
        "1 of 2 trials done: results/x/quick-1",
        f"  ✗ {SECOND.id}: src: gone",
        "to run the missing trials: fab run x --profile quick",
    ]


def test_fab_list_shows_experiments_recipes_and_figures() -> None:
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


def test_lab_down_also_stops_the_labs_of_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").touch()
    node = os.uname().nodename
    shards = [f"lab-1of2-{node}", f"lab-2of2-{node}"]
    for name in (*shards, "lab-roof", "lab-1of2-elsewhere", f"wlan-1of2-{node}"):
        (tmp_path / ".lab" / name).mkdir(parents=True)
    stopped: list[str] = []

    def down(folder: Path, emit: Emit) -> bool:
        stopped.append(folder.name)
        return folder.name == shards[1]

    monkeypatch.setattr("samovar.lab.down", down)
    assert run_commands(["lab", "down", "--testbed", "lab"], tmp_path) == 0
    assert stopped == ["lab", *shards]
    assert "was not running" not in capsys.readouterr().out


def write_interrupted_campaign(results: Path, campaign: str, testbed: str, hosts: tuple[str, ...]) -> Path:
    """Write the folder of a campaign whose controller was killed after it had changed some hosts."""
    folder = results / campaign
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps({"testbed": testbed}))
    with Journal(folder / JOURNAL) as journal:
        journal.append("campaign-started", 1.0)
        for host in hosts:
            marks = {"testbed": testbed.split(",")[0]} if "," in testbed else {}
            journal.append("state-read", 2.0, id="cubic-r1-1", host=host, state={"cc": "x"}, **marks)
    return folder


def test_restore_without_a_testbed_restores_the_hosts_of_every_interrupted_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "hosts", tmp_path / "hosts")
    shutil.copytree(ROOT / "templates", tmp_path / "templates")
    fbsd = write_interrupted_campaign(
        tmp_path / "results", "x/full-20260101-000000", "example-freebsd", ("src", "dst")
    )
    write_interrupted_campaign(tmp_path / "results", "x/full-20260102-000000", "lab", ())
    write_interrupted_campaign(tmp_path / "results", "x/full-20260103-000000", "gone", ("src",))
    running = write_interrupted_campaign(
        tmp_path / "results", "x/full-20260104-000000", "dumbbell,lab", ("src",)
    )
    (tmp_path / "config.yaml").write_text("step_timeout: 7s\n")
    restored_campaigns: list[tuple[Path, str, float]] = []

    def restore(folder: Path, testbed: str, *values: Any) -> None:
        *_, config, restored, _ = values
        restored_campaigns.append((folder, testbed, config.step_timeout_s))
        restored.hosts |= {folder.name: ("src", "dst")}

    monkeypatch.setattr("samovar.campaign.restore_campaign", restore, raising=False)
    with Journal(running / JOURNAL):
        assert run_commands(["restore"], tmp_path) == 1
    assert restored_campaigns == [(fbsd, "example-freebsd", 7)]
    printed = capsys.readouterr().out
    assert "✓ full-20260101-000000: src, dst restored" in printed
    assert "✗ hosts/: unknown testbed 'gone'" in printed


def test_restore_of_one_testbed_ignores_campaigns_of_other_testbeds(tmp_path: Path) -> None:
    fbsd = write_interrupted_campaign(tmp_path, "x/full-20260101-000000", "freebsd", ("src",))
    write_interrupted_campaign(tmp_path, "x/full-20260102-000000", "dumbbell", ("src",))
    assert changed_campaigns(tmp_path, "freebsd") == [("freebsd", fbsd)]
    assert changed_campaigns(tmp_path, "lab") == []
    assert {testbed for testbed, _ in changed_campaigns(tmp_path)} == {"freebsd", "dumbbell"}


def test_a_campaign_with_a_damaged_journal_is_listed_for_restore_and_the_error_names_the_line(
    tmp_path: Path,
) -> None:
    intact = write_interrupted_campaign(tmp_path, "x/full-20260101-000000", "freebsd", ("src",))
    damaged = write_interrupted_campaign(tmp_path, "x/full-20260102-000000", "freebsd", ("src",))
    (damaged / JOURNAL).write_text("{}\n\n{}\n")
    assert sorted(changed_campaigns(tmp_path)) == [("freebsd", intact), ("freebsd", damaged)]
    with pytest.raises(CampaignError, match=r"journal.jsonl:1: not an event"):
        restore_campaign(damaged, "freebsd", Sessions([]), CATALOGUE, {}, silent, ONE_ATTEMPT, Restored())


def test_comparisons_of_equally_named_campaigns_of_different_projects_have_different_folders(
    tmp_path: Path,
) -> None:
    one, two, three = (tmp_path / name / "results" for name in ("one", "two", "three"))
    names = [comparison_name(one, results / "mine" / "first", None) for results in (one, two, three)]
    assert names[0] == "mine-first"
    assert len(set(names)) == 3
    assert all(re.fullmatch("mine-first-[0-9a-f]{6}", name) for name in names[1:])
