"""Run trials on fake hosts that only print states: the journal, and the restoration of hosts after failures."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from samovar.campaign.calibration import Calibration, cache
from samovar.campaign.collection import fetch
from samovar.campaign.context import CampaignContext, ScriptRecorder
from samovar.campaign.folder import begin_campaign, read_state
from samovar.campaign.journal import JOURNAL, Journal, read_journal
from samovar.campaign.policy import ONE_ATTEMPT, Policy
from samovar.campaign.recovery import Restored, restore_campaign
from samovar.campaign.retries import TestbedSetup
from samovar.campaign.run import CampaignRun, Summary
from samovar.campaign.trial import BootSettings, TrialRun, read_result, trial_run
from samovar.campaign.trial.traffic import Traffic
from samovar.campaign.trial.trial_run import LEAD_S
from samovar.campaign.verdict import TrafficFailure
from samovar.errors import CampaignError, DeadlineError, RecipeError, RemoteError
from samovar.events import Event, silent
from samovar.experiment import keys
from samovar.hosts import ScriptResult, Session
from samovar.plan import Pick
from samovar.recipes import TrialScripts
from tests.unit.campaign.answering_hosts import (
    CATALOGUE,
    Answer,
    AnsweringSession,
    AnsweringSessions,
    full_state,
    unchanged_answer,
)
from tests.unit.plan_values import plan_of, trial
from tests.unit.trials import TRIAL

PLAN = plan_of([trial("cubic")])
(ID,) = PLAN.ids


def no_scripts(id_: str) -> TrialScripts:
    raise AssertionError(id_)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return begin_campaign(PLAN, tmp_path, {}, silent)


def run(folder: Path, sessions: AnsweringSessions) -> Summary:
    setup = TestbedSetup("lab", PLAN, sessions, policy=Policy(ONE_ATTEMPT))
    campaign = CampaignRun(folder, PLAN, {}, Pick().of(PLAN), [setup], CATALOGUE, silent)
    return campaign.run({"testbed": "lab", "hosts": {}})


def test_a_state_that_was_not_read_completely_is_not_recorded(folder: Path) -> None:
    def answer(host: str, step: str) -> str:
        return "" if (host, step) == ("dst", "read") else unchanged_answer(host, step)

    for _ in range(2):
        (reasons,) = run(folder, AnsweringSessions(answer)).failed.values()
        assert "dst: its state was not read completely" in reasons[0]
        assert read_state(folder).clean


def test_a_recorded_state_that_recipes_cannot_restore_is_a_problem_of_its_host_only(folder: Path) -> None:
    with Journal(folder / JOURNAL) as journal:
        journal.append("campaign-started", 1.0)
        for host, state in (("src", {}), ("dst", full_state("dst"))):
            journal.append("state-read", 1.0, id=ID, host=host, state=state)
    restored = Restored()
    sessions = AnsweringSessions(unchanged_answer)
    restore_campaign(folder, "lab", sessions, CATALOGUE, {}, silent, ONE_ATTEMPT, restored)
    assert list(restored.hosts.values()) == [("dst",)]
    (problem,) = restored.problems
    assert problem.startswith(f"src: its state before trial {ID} cannot be restored: ")
    summary = run(folder, AnsweringSessions(unchanged_answer))
    assert list(summary.quarantined) == ["src"]


def run_three_trials(results: Path, sessions: AnsweringSessions) -> Summary:
    """Run a campaign of three trials of two treatments; a second failed trial quarantines its host."""
    plan = plan_of([trial("cubic"), trial("cdg"), trial("cubic", 2)])
    policy = Policy(ONE_ATTEMPT.model_copy(update={"quarantine": 2}))
    setup = TestbedSetup("lab", plan, sessions, policy=policy)
    folder = begin_campaign(plan, results, {}, silent)
    campaign = CampaignRun(folder, plan, {}, Pick().of(plan), [setup], CATALOGUE, silent)
    return campaign.run({"testbed": "lab", "hosts": {}})


def test_a_host_whose_settings_repeatedly_differ_from_the_requested_ones_is_quarantined(
    tmp_path: Path,
) -> None:
    sessions = AnsweringSessions(unchanged_answer)
    summary = run_three_trials(tmp_path, sessions)
    beginning = (
        "2 failed trials in a row: src: does not have the requested settings:\noffload.eth1.tso: wanted"
    )
    assert summary.quarantined["src"].startswith(beginning)
    assert sessions.steps.count(("src", "set")) == 2


@pytest.mark.parametrize(
    ("word", "text", "quarantined"),
    [
        ("disk", "12MB are free in /tmp", ["src"]),
        ("clock", "stepped by 3600000 ms", ["src"]),
        ("lost", "src-tcp-info ended by itself after 0.4 s with exit code 1", ["src"]),
        ("failed", "bulk-client ended with exit code 1", []),
    ],
)
def test_a_host_that_ends_the_traffic_of_trial_after_trial_is_quarantined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, text: str, quarantined: list[str]
) -> None:
    def end_early(run: TrialRun) -> None:
        run.evidence.failures = [TrafficFailure(word, "src", text)]

    monkeypatch.setattr(TrialRun, "_run_traffic", end_early)
    monkeypatch.setattr(trial_run, "collect", lambda *args, **options: [])
    for phase in ("_set", "_read_clocks", "_restore"):
        monkeypatch.setattr(TrialRun, phase, lambda run: None)
    summary = run_three_trials(tmp_path, AnsweringSessions(unchanged_answer))
    assert list(summary.quarantined) == quarantined
    assert all(text in reason for reason in summary.quarantined.values())


def test_a_trial_that_is_aborted_after_its_traffic_had_failed_names_both_reasons(tmp_path: Path) -> None:
    context = CampaignContext(
        tmp_path, AnsweringSessions(unchanged_answer), CATALOGUE, lambda *_, **__: None, silent
    )
    one = TrialRun(context, PLAN.trials[0], 1, BootSettings(context, no_scripts), Calibration(context))
    one.folder.mkdir(parents=True)
    one.evidence.failures = [TrafficFailure("disk", "dst", "12MB are free in /tmp")]
    result = one._abort("failed", RemoteError("src", "stop", 1, "no"), time.monotonic())
    assert result.reasons == (
        "disk during the traffic at dst: requested at least 50MB free, observed 12MB are free in /tmp",
        "src: stop: exit code 1: no",
    )
    assert list(result.blamed) == ["dst", "src"]


def test_a_trial_whose_controller_was_killed_ends_on_the_testbed_on_which_it_ran(tmp_path: Path) -> None:
    plan = plan_of([trial("cubic"), trial("cdg")]).model_copy(update={"testbed": "left,right"})
    folder = begin_campaign(plan, tmp_path, {}, silent)
    with Journal(folder / JOURNAL) as journal:
        journal.append("campaign-started", 1.0)
        journal.append("trial-started", 2.0, id=plan.ids[0], attempt=1, testbed="right")
    (folder / "in-progress" / plan.ids[0]).mkdir(parents=True)
    setups = [
        TestbedSetup(name, plan, AnsweringSessions(unchanged_answer), {id_: ["no"] for id_ in plan.ids})
        for name in ("left", "right")
    ]
    CampaignRun(folder, plan, {}, Pick().of(plan), setups, CATALOGUE, silent).run(
        {"testbed": "left", "hosts": {}}
    )
    entries = read_journal(folder / JOURNAL)
    ends = [entry for entry in entries if entry.event in ("trial-set-aside", "trial-finished")]
    assert [(one.event, one.values["testbed"]) for one in ends] == [
        ("trial-set-aside", "right"),
        ("trial-finished", "right"),
    ]


def failing_in(step: str, error: Callable[[str], BaseException]) -> Answer:
    """Return the answers of hosts whose states never change, except that this step at src raises the error."""

    def answer(host: str, now: str) -> str | BaseException:
        if host == "src" and now == "look":
            return "src-eth1.pcap.gz\n"
        if host == "src" and now == "pack":
            return f"{'0' * 64}  src-eth1.pcap.gz\n100000 src-eth1.pcap.gz\n"
        return error(host) if (host, now) == ("src", step) else unchanged_answer(host, now)

    return answer


def test_a_full_disk_at_the_end_of_an_interrupted_trial_leaves_no_host_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "free_here", lambda folder: 1_000)
    sessions = AnsweringSessions(failing_in("set", lambda host: KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run(folder, sessions)
    assert ("src", "pack") in sessions.steps
    assert read_state(folder).clean


def test_an_interrupt_while_hosts_of_an_earlier_run_are_restored_is_recorded(folder: Path) -> None:
    with Journal(folder / JOURNAL) as journal:
        journal.append("campaign-started", 1.0)
        journal.append("state-read", 1.0, id=ID, host="src", state=full_state("src"))
    with pytest.raises(KeyboardInterrupt):
        run(folder, AnsweringSessions(failing_in("restore", lambda host: KeyboardInterrupt())))
    assert read_state(folder).ended


def test_an_interrupt_during_the_clean_up_of_a_failed_trial_leaves_no_host_changed(folder: Path) -> None:
    interrupts = iter([KeyboardInterrupt()])

    def answer(host: str, step: str) -> str | BaseException:
        if (host, step) == ("src", "set"):
            return RemoteError(host, "set", 1, "no")
        if (host, step) == ("dst", "sweep") and (interrupt := next(interrupts, None)):
            return interrupt
        return unchanged_answer(host, step)

    with pytest.raises(KeyboardInterrupt):
        run(folder, AnsweringSessions(answer))
    state = read_state(folder)
    assert state.trials[ID].status == "interrupted"
    assert state.clean


def test_a_disk_that_becomes_full_while_hosts_are_cleared_leaves_no_host_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(recorder: ScriptRecorder, done: ScriptResult) -> None:
        if done.step == "sweep":
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ScriptRecorder, "__call__", record)
    summary = run(
        folder, AnsweringSessions(failing_in("set", lambda host: RemoteError(host, "set", 1, "no")))
    )
    assert summary.failed == {ID: ("src: set: exit code 1: no",)}
    assert "No space left on device" in summary.stopped
    assert read_state(folder).clean


def test_a_recipe_that_cannot_be_rendered_in_a_trial_fails_only_this_trial(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = "linux/setting/mine.sh.j2: block wanted: list index out of range"

    def wanted(scripts: TrialScripts, host: str) -> tuple[str, ...]:
        raise RecipeError(problem)

    monkeypatch.setattr(TrialScripts, "wanted", wanted)
    assert run(folder, AnsweringSessions(unchanged_answer)).failed == {ID: (problem,)}
    assert read_state(folder).clean


@pytest.mark.parametrize("error", [RecipeError("list index out of range"), OSError(errno.ENOSPC, "full")])
def test_an_error_when_the_traffic_starts_stops_the_other_hosts(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, stopped_in_time = threading.Event(), list[bool]()

    def answer(host: str, step: str) -> str | BaseException:
        # The script of a host watches its programs until it is ordered to stop.
        stopped_in_time.append(stopped.wait(20))
        return "" if stopped_in_time[-1] else DeadlineError(host, step, 20)

    def traffic(scripts: TrialScripts, host: str, *rest: object) -> str:
        if host == "src":
            raise error
        return ""

    monkeypatch.setattr(AnsweringSession, "order", lambda session, text: stopped.set())
    monkeypatch.setattr(TrialScripts, "traffic", traffic)
    scripts = TrialScripts(PLAN.trials[0], CATALOGUE, "campaign")
    with pytest.raises(type(error)):
        Traffic(scripts, AnsweringSessions(answer), {}, keys.Thresholds()).run(60.0)
    assert set(stopped_in_time) == {True}


def test_the_traffic_starts_a_full_lead_time_after_the_event_of_its_phase_is_emitted(tmp_path: Path) -> None:
    emitted_s: list[float] = []

    def emit(event: Event) -> None:
        emitted_s.append(time.time())

    sessions = AnsweringSessions(failing_in("traffic", lambda host: RemoteError(host, "traffic", 1, "no")))
    context = CampaignContext(tmp_path, sessions, CATALOGUE, lambda *_, **__: None, emit)
    one = TrialRun(context, PLAN.trials[0], 1, BootSettings(context, no_scripts), Calibration(context))
    with pytest.raises(RemoteError):
        one._run_traffic()
    assert one.evidence.t_start_s >= emitted_s[0] + LEAD_S


def test_the_traffic_of_a_failed_trial_does_not_count_as_overhead(tmp_path: Path) -> None:
    sessions = AnsweringSessions(unchanged_answer)
    context = CampaignContext(tmp_path, sessions, CATALOGUE, lambda *_, **__: None, silent)
    one = TrialRun(context, PLAN.trials[0], 1, BootSettings(context, no_scripts), Calibration(context))
    one.folder.mkdir(parents=True)
    one.evidence.phases.append(("traffic", 3600.0))
    result = one._abort("failed", RemoteError("src", "stop", 1, "no"), time.monotonic() - 3600.0)
    assert result.overhead_s < 3600.0


def test_a_damaged_manifest_is_reported_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "trials" / ID).mkdir(parents=True)
    (tmp_path / "trials" / ID / "manifest.json").write_text('{"outcome": "comp')
    with pytest.raises(
        CampaignError, match=r"manifest\.json: is damaged: .*; move the trial's folder out of"
    ):
        read_result(tmp_path / "trials" / ID)


def test_a_damaged_calibration_is_measured_again(tmp_path: Path) -> None:
    context = CampaignContext(
        tmp_path, AnsweringSessions(unchanged_answer), CATALOGUE, lambda *_, **__: None, silent
    )
    cache.write_result(context, "key", {"ratio": 1})
    assert cache.read_result(context, "key") == {"schema": 1, "ratio": 1}
    (tmp_path / cache.FOLDER / "key.json").write_text("")
    assert cache.read_result(context, "key") is None


def test_the_threshold_duration_determines_how_long_a_flow_must_last(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, scripts = iter(["ended bulk-client\n", "idle\n"]), list[str]()
    sessions = AnsweringSessions(lambda host, step: next(answers))
    sessions["src"].record = lambda done: scripts.append(done.script)
    monkeypatch.setattr(Session, "order", lambda self, text: None)
    limits = keys.Thresholds.model_validate({"duration": "50%"})
    traffic = Traffic(TrialScripts(TRIAL, CATALOGUE, "c"), sessions, {"src": 0}, limits)
    traffic._hosts = ("src",)
    traffic.run(30.0)
    assert len(scripts) == 2
    assert all("bulk-client) due_ns=3000000000 ;;" in script for script in scripts)
