"""Quarantine, disk space, pauses, the queue of trials and notifications."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from samovar.campaign import host_pool
from samovar.campaign.availability.disk_space import RESERVE, DiskReserve, is_disk_error, shortage
from samovar.campaign.availability.needed_hosts import (
    needed_hosts,
    needed_hosts_by_trial,
    without_hosts,
)
from samovar.campaign.context import CampaignContext
from samovar.campaign.host_pool import HostPool
from samovar.campaign.journal import Entry, fold
from samovar.campaign.notifier import Notifier
from samovar.campaign.policy import ONE_ATTEMPT, Policy
from samovar.campaign.recovery import Recovery
from samovar.campaign.retries import TestbedRunner, TestbedSetup, _count_levels
from samovar.campaign.trial import BootSettings, TrialResult
from samovar.campaign.trial_queue import TrialQueue, treatment_of
from samovar.campaign.verdict import Verdict
from samovar.errors import CampaignError, RemoteError, TestbedError
from samovar.events import Event, silent
from samovar.experiment import Config, Power
from samovar.hosts import ConnectionLostError, HostsError, Machine
from samovar.plan import Resolved, Trial
from samovar.recipes import Catalogue, TrialScripts
from tests.unit.campaign.answering_hosts import (
    CATALOGUE,
    Answer,
    AnsweringSessions,
    full_state,
    unchanged_answer,
)
from tests.unit.plan_values import plan_of, trial
from tests.unit.trials import RESOLVED, TRIAL, host

CUBIC, CDG = trial("cubic"), trial("cdg")
CUBIC_2 = trial("cubic", 2)
GB = 1_000_000_000


def pool(bound: int, levels: int, *probation: str, **of_factors: int) -> HostPool:
    """Make the host pool of a testbed without connections; hosts on probation were quarantined before.

    `levels` is the number of levels of `cc`; `of_factors` has the numbers of levels of other factors.
    """
    sessions: Any = SimpleNamespace(hosts=(), abandon=lambda host: None)
    policy = Policy(ONE_ATTEMPT.model_copy(update={"quarantine": bound}))
    catalogue = Catalogue(Path("templates"))
    entries = [
        Entry(1.0, "campaign-started"),
        *(Entry(2.0, "host-quarantined", {"host": host, "reason": "no answer"}) for host in probation),
        Entry(3.0, "campaign-resumed"),
    ]

    def note(event: str, **values: object) -> None:
        entries.append(Entry(4.0, event, values))

    context = CampaignContext(
        Path(), sessions, catalogue, note, silent, policy=policy, entries=lambda: entries
    )
    counts = {"part": 1, "cc": levels, **of_factors}
    hosts = HostPool(context, Recovery(context, no_scripts), BootSettings(context, no_scripts), counts)
    hosts.restore_all({})
    return hosts


def answering_pool(
    answer: Answer,
    events: list[str],
    policy: Policy,
    scripts_of: Callable[[str], TrialScripts],
    **of_context: Any,
) -> HostPool:
    """Make a pool of hosts that answer each step with a text or an error; `events` gets the names of its events."""

    def note(event: str, **values: object) -> None:
        events.append(event)

    sessions = AnsweringSessions(answer)
    context = CampaignContext(Path(), sessions, CATALOGUE, note, silent, policy=policy, **of_context)
    return HostPool(context, Recovery(context, scripts_of), BootSettings(context, scripts_of), {})


def no_scripts(id_: str) -> TrialScripts:
    raise AssertionError(id_)


def test_a_host_is_quarantined_after_too_many_failed_trials_in_a_row() -> None:
    hosts = pool(2, 2)
    hosts.trial_failed(CUBIC, {"rtr": "no answer"})
    assert not hosts.quarantined
    hosts.trial_failed(CDG, {"rtr": "no answer"})
    assert hosts.quarantined == {"rtr": "2 failed trials in a row: no answer"}


def test_failures_of_one_of_several_treatments_do_not_quarantine_a_host() -> None:
    hosts, only = pool(2, 2), pool(2, 1)
    for trial_ in (CUBIC, CUBIC_2):
        hosts.trial_failed(trial_, {"rtr": "x"})
        only.trial_failed(trial_, {"rtr": "x"})
    assert not hosts.quarantined
    hosts.trial_failed(CDG, {"rtr": "x"})
    assert hosts.quarantined
    assert only.quarantined


def test_levels_that_come_first_and_always_fail_do_not_cost_the_host() -> None:
    hosts = pool(3, 4, rate=2)
    for label in ("bad", "worse"):
        for rate in ("1Mbit", "10Mbit"):
            for replicate in (1, 2):
                one = replace(trial(label, replicate), treatment={"cc": label, "rate": rate})
                hosts.trial_failed(one, {"rtr": "x"})
    assert not hosts.quarantined
    hosts.trial_failed(replace(CUBIC, treatment={"cc": "cubic", "rate": "1Mbit"}), {"rtr": "x"})
    assert hosts.quarantined == {"rtr": "9 failed trials in a row: x"}


def test_the_parts_of_a_plan_and_the_levels_of_its_factors_are_counted() -> None:
    plan = plan_of([CUBIC])
    (main,) = plan.parts
    parts = tuple(main.model_copy(update={"name": name}) for name in ("main", "other"))
    assert _count_levels(plan.model_copy(update={"parts": parts})) == {"part": 2, "cc": 1}


def test_a_completed_trial_clears_the_failures_of_its_hosts() -> None:
    hosts = pool(2, 2)
    hosts.trial_failed(CUBIC, {"rtr": "x", "src": "y"})
    hosts.trial_completed(["rtr", "dst"])
    hosts.trial_failed(CDG, {"rtr": "x", "src": "y"})
    assert hosts.quarantined == {"src": "2 failed trials in a row: y"}


def test_a_host_on_probation_is_quarantined_by_its_next_failure_or_released_by_a_completed_trial() -> None:
    hosts = pool(3, 2, "rtr")
    hosts.trial_failed(CUBIC, {"rtr": "x"})
    assert "failed again" in hosts.quarantined["rtr"]
    hosts = pool(3, 2, "rtr")
    hosts.trial_completed(["rtr"])
    hosts.trial_failed(CUBIC, {"rtr": "x"})
    assert not hosts.quarantined


@pytest.mark.parametrize("trials", [(CUBIC, CDG), (CUBIC,)])
def test_a_host_that_was_not_restored_after_a_suspect_trial_is_restored_before_the_next_trial_or_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: tuple[Trial, ...]
) -> None:
    entries, plan, sessions = list[Entry](), plan_of(trials), AnsweringSessions(unchanged_answer)

    def note(event: str, **values: object) -> None:
        entries.append(Entry(1.0, event, values))

    def run_once(runner: TestbedRunner, one: Trial, attempt: int) -> TrialResult:
        assert not runner.context.unrestored_hosts()
        note("trial-started", id=one.id, attempt=attempt)
        if one.id == CUBIC.id:
            note("state-read", id=one.id, host="dst", state=full_state("dst"))
            note("restore-failed", id=one.id, host="dst", differences=["tcp_rmem"])
        verdict: Verdict = "suspect" if one.id == CUBIC.id else "valid"
        note("trial-finished", id=one.id, outcome="completed", verdict=verdict)
        return TrialResult("completed", verdict, (), 0.0)

    monkeypatch.setattr(TestbedRunner, "_run_once", run_once)
    policy = Policy(ONE_ATTEMPT)
    context = CampaignContext(
        tmp_path, sessions, CATALOGUE, note, silent, policy=policy, entries=lambda: entries
    )
    runner = TestbedRunner(context, TestbedSetup("lab", plan, sessions, policy=policy))
    queue = TrialQueue(plan.trials, {"lab": runner.can_run}, {})
    runner.run_trials(queue)
    state = fold(entries)
    assert len(state.with_status("completed")) == len(trials)
    assert not state.unrestored
    assert ("dst", "restore") in sessions.steps


def test_a_host_that_reboots_is_awaited_although_another_was_quarantined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_pool, "POLL_S", 0.0)
    booting = iter(range(3))

    def answer(host: str, step: str) -> str | BaseException:
        if (host, step) == ("dst", "probe") and next(booting, None) is not None:
            return ConnectionLostError("dst: no route to host")
        return unchanged_answer(host, step)

    entries, events = [Entry(1.0, "campaign-started")], list[str]()
    policy = Policy(ONE_ATTEMPT.model_copy(update={"quarantine": 1}))
    hosts = answering_pool(answer, events, policy, no_scripts, entries=lambda: entries)
    hosts.check_before_next_trial({"rtr": "rtr: lost", "dst": "dst: lost"})
    hosts.trial_failed(CUBIC, {"rtr": "rtr: lost"})
    hosts.make_ready({})
    assert list(hosts.quarantined) == ["rtr"]
    assert events == ["host-quarantined", "host-lost", "host-back"]


def test_a_host_that_is_lost_again_while_it_is_restored_is_still_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = iter([ConnectionLostError("dst: the connection was lost")] * 4)

    def answer(host: str, step: str) -> str | BaseException:
        return unchanged_answer(host, step) if step == "probe" else next(lost, unchanged_answer(host, step))

    monkeypatch.setattr(host_pool, "POLL_S", 0.0)
    events, read = list[str](), {"id": TRIAL.id, "host": "dst", "state": full_state("dst")}
    scripts = TrialScripts(TRIAL, CATALOGUE, "campaign")
    entries = [Entry(1.0, "state-read", read)]
    hosts = answering_pool(answer, events, Policy(ONE_ATTEMPT), lambda _: scripts, entries=lambda: entries)
    hosts.check_before_next_trial({"dst": "dst: lost"})
    hosts.repair()
    assert not hosts.quarantined
    assert events[-1] == "state-restored"


def test_a_power_cycle_does_not_shorten_the_wait_for_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count()

    def answer(host: str, step: str) -> str | BaseException:
        if step == "probe" and next(clock) < 80:
            return ConnectionLostError("dst: no route to host")
        return unchanged_answer(host, step)

    monkeypatch.setattr(host_pool, "POLL_S", 0.0)
    monkeypatch.setattr(host_pool, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    events = list[str]()
    machines = {"dst": Machine("dst", "dst", 1.0, Power.model_validate({"cycle": ["true"]}))}
    policy = Policy(ONE_ATTEMPT.model_copy(update={"host_wait_s": 100.0}))
    hosts = answering_pool(answer, events, policy, no_scripts, machines=machines)
    hosts.check_before_next_trial({"dst": "dst: lost"})
    hosts.repair()
    assert events == ["host-lost", "host-power-cycled", "host-back"]


def test_an_error_lists_the_hosts_that_caused_it_with_their_messages() -> None:
    one, other = RemoteError("src", "set", 1, "no"), TestbedError("dst: no answer")
    assert one.blamed == {"src": "src: set: exit code 1: no"}
    assert HostsError({"src": one, "dst": other}).blamed == {"src": str(one), "dst": "dst: no answer"}
    assert TestbedError("nobody in particular").blamed == {}


def _with_idle() -> Resolved:
    return RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "idle": host("sender", ("eth1",))}})


def test_a_trial_needs_the_hosts_of_its_flows_and_captures_and_its_routers() -> None:
    assert needed_hosts(_with_idle()) == {"src", "rtr", "dst"}
    captured = _with_idle().captures[0].model_copy(update={"host": "idle"})
    assert "idle" in needed_hosts(_with_idle().model_copy(update={"captures": (captured,)}))


def test_a_trial_without_an_idle_host_keeps_its_id_and_its_other_hosts() -> None:
    whole = replace(TRIAL, source=_with_idle())
    left = without_hosts(whole, {"idle": "gone"})
    assert (left.id, set(left.resolved.hosts)) == (whole.id, {"src", "rtr", "dst"})
    assert without_hosts(whole, {"elsewhere": "gone"}) is whole


def test_the_needed_hosts_of_each_trial_of_a_plan_are_returned() -> None:
    plan = plan_of([CUBIC, CDG])
    needs = needed_hosts_by_trial(plan)
    assert [needs[one.id] for one in plan.trials] == [needed_hosts(one.resolved) for one in plan.trials]


def test_pauses_before_retries_double_up_to_their_limit() -> None:
    policy = Policy(ONE_ATTEMPT.model_copy(update={"backoff_s": 5.0, "backoff_most_s": 30.0}))
    assert [policy.pause_s(number) for number in (1, 2, 3, 4, 5000)] == [5.0, 10.0, 20.0, 30.0, 30.0]
    assert Policy().pause_s(3) == 0.0


def test_disk_space_is_short_if_the_next_trial_would_leave_less_than_the_reserved_space() -> None:
    assert shortage(3 * GB, GB, 2 * GB) == ""
    assert "the disk has 2.99GB free" in shortage(3 * GB - 10_000_000, GB, 2 * GB)


def test_a_full_disk_is_a_disk_error_and_a_lost_connection_is_not() -> None:
    assert is_disk_error(OSError(errno.ENOSPC, "No space left on device"))
    assert is_disk_error(CampaignError("journal.jsonl: phase cannot be written"))
    assert not is_disk_error(ConnectionResetError(errno.ECONNRESET, "reset"))


def test_the_disk_reserve_is_freed_when_writing_fails(tmp_path: Path) -> None:
    reserve = DiskReserve()
    reserve.hold(tmp_path)
    assert (tmp_path / RESERVE).stat().st_size > 0
    reserve.fail(OSError(errno.ENOSPC, "No space left on device"))
    reserve.fail(OSError(errno.EIO, "Input/output error"))
    assert not (tmp_path / RESERVE).exists()
    assert "No space left" in reserve.lost


def test_a_quarantine_ends_with_the_run_and_its_host_is_on_probation_until_it_is_released() -> None:
    events = [
        Entry(1.0, "campaign-started"),
        Entry(2.0, "host-quarantined", {"host": "rtr", "reason": "no answer"}),
    ]
    state = fold(events)
    assert (state.quarantined, state.probation) == ({"rtr": "no answer"}, frozenset())
    events.append(Entry(3.0, "campaign-resumed"))
    assert not fold(events).quarantined
    assert fold(events).probation == {"rtr"}
    events.append(Entry(4.0, "host-released", {"host": "rtr"}))
    assert fold(events).probation == frozenset()


def test_the_reason_for_which_a_run_stopped_is_kept_until_the_next_run() -> None:
    events = [Entry(1.0, "campaign-started"), Entry(2.0, "campaign-stopped", {"reason": "the disk is full"})]
    assert fold(events).stopped == "the disk is full"
    assert fold([*events, Entry(3.0, "campaign-resumed")]).stopped == ""


def test_hosts_of_the_same_name_on_two_testbeds_are_distinguished() -> None:
    reads = [
        Entry(float(n), "state-read", {"id": f"t{n}", "host": "src", "state": {"a": str(n)}, "testbed": name})
        for n, name in enumerate(["lab", "twin"])
    ]
    state = fold([*reads, Entry(3.0, "state-restored", {"id": "t0", "host": "src", "testbed": "lab"})])
    assert list(state.unrestored) == ["src@twin"]
    assert state.on("lab").unrestored == {}
    assert [read.id for read in state.on("twin").unrestored["src"]] == ["t1"]


def can_run_every_trial(_: Trial) -> bool:
    return True


def test_one_testbed_takes_the_trials_in_their_order_and_leaves_those_that_it_cannot_run() -> None:
    queue = TrialQueue([CUBIC, CDG, CUBIC_2], {"lab": lambda one: one is not CDG}, {})
    taken = []
    while one := queue.take("lab"):
        taken.append(one.id)
        queue.finish("lab", one, "done")
    assert taken == [CUBIC.id, CUBIC_2.id]
    assert not queue.stopped


def test_attempts_of_earlier_runs_are_counted() -> None:
    queue = TrialQueue([CUBIC], {}, {CUBIC.id: 4})
    assert [queue.count_attempt(CUBIC), queue.count_attempt(CUBIC), queue.count_attempt(CDG)] == [5, 6, 1]


@pytest.mark.parametrize(("fail_fast", "left"), [(True, None), (False, CDG.id)])
def test_the_first_failed_trial_ends_a_campaign_only_with_fail_fast(
    fail_fast: bool, left: str | None
) -> None:
    queue = TrialQueue([CUBIC, CDG], {"lab": can_run_every_trial}, {}, fail_fast=fail_fast)
    first = queue.take("lab")
    assert first is not None
    queue.finish("lab", first, "failed")
    following = queue.take("lab")
    assert (following.id if following else None) == left
    assert bool(queue.stopped) is fail_fast


def test_a_trial_that_one_testbed_returns_to_the_queue_runs_on_another_testbed() -> None:
    queue = TrialQueue([CUBIC], {"lab": can_run_every_trial, "twin": can_run_every_trial}, {})
    first = queue.take("lab")
    assert first is not None
    waiting: list[str] = []
    thread = threading.Thread(target=lambda: waiting.extend(one.id for one in [queue.take("twin")] if one))
    thread.start()
    queue.finish("lab", first, "returned")
    thread.join(10)
    assert waiting == [CUBIC.id]


def test_two_testbeds_that_take_turns_get_every_treatment() -> None:
    block = [trial(label, replicate) for replicate in (1, 2, 3, 4) for label in ("cubic", "cdg")]
    queue = TrialQueue(block, {"lab": can_run_every_trial, "twin": can_run_every_trial}, {})
    ran: Counter[tuple[str, object]] = Counter()
    for _ in range(4):
        for name in ("lab", "twin"):
            one = queue.take(name)
            assert one is not None
            ran[name, treatment_of(one)] += 1
            queue.finish(name, one, "done")
    assert set(ran.values()) == {2}


def test_a_testbed_gets_the_treatment_that_it_lacks_from_the_end_of_a_long_block() -> None:
    block = [*(replace(trial("cubic", number), block=1) for number in range(1, 101)), CDG]
    queue = TrialQueue(block, {"lab": can_run_every_trial, "twin": can_run_every_trial}, {})
    first = queue.take("lab")
    assert first == block[0]
    queue.finish("lab", first, "done")
    assert queue.take("lab") == CDG


def _notifier(tmp_path: Path, command: str, emitted: list[Event], **more: object) -> Notifier:
    notify = Config.model_validate({"notify": {"command": [sys.executable, "-c", command], **more}}).notify
    return Notifier(notify, tmp_path / "exp" / "full-1", emitted.append)


WRITE = (
    "import os,sys; open(os.environ['OUT'],'a').write(sys.stdin.read()+os.environ['SAMOVAR_TEXT']+chr(10))"
)


def test_the_notification_command_gets_the_message_on_its_input_and_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, emitted = tmp_path / "out", list[Event]()
    monkeypatch.setenv("OUT", str(out))
    notifier = _notifier(tmp_path, WRITE, emitted)
    notifier(Event("host-quarantined", {"host": "rtr", "reason": "$(touch pwned); `x`"}))
    notifier(Event("trial-started", {"id": "t"}))
    notifier.end(3, 4, 1)
    text = out.read_text()
    assert text.count("rtr is not used any more: $(touch pwned); `x`") == 2
    assert "samovar: exp: 3 of 4 trials done, 1 failed or not run" in text
    assert [event.name for event in emitted] == ["host-quarantined", "trial-started"]


def test_only_the_first_failed_trial_of_a_run_causes_a_notification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, emitted = tmp_path / "out", list[Event]()
    monkeypatch.setenv("OUT", str(out))
    notifier = _notifier(tmp_path, WRITE, emitted)
    for id_ in ("first", "second"):
        notifier(Event("trial-failed", {"id": id_, "reason": "no answer"}))
    assert "first failed" in out.read_text()
    assert "second" not in out.read_text()


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("import sys; print('no route'); sys.exit(3)", "exit code 3: no route"),
        ("import time; time.sleep(60)", "did not end within 0.2 s"),
        ("import os; os.close(0)", ""),
    ],
)
def test_a_failed_notification_command_causes_a_warning_and_one_that_ignores_its_input_does_not(
    tmp_path: Path, command: str, complaint: str
) -> None:
    emitted: list[Event] = []
    _notifier(tmp_path, command, emitted, timeout="200ms" if "sleep" in command else "20s").end(1, 1, 0)
    warnings = [str(event.values["text"]) for event in emitted if event.name == "warning"]
    assert [complaint in warning for warning in warnings] == ([True] if complaint else [])


def test_a_missing_notification_command_causes_a_warning_and_only_on_the_configured_events(
    tmp_path: Path,
) -> None:
    emitted: list[Event] = []
    notify = Config.model_validate({"notify": {"command": str(tmp_path / "none"), "on": ["end"]}}).notify
    notifier = Notifier(notify, tmp_path, emitted.append)
    notifier(Event("campaign-stopped", {"reason": "x"}))
    assert [event.name for event in emitted] == ["campaign-stopped"]
    notifier.end(1, 1, 0)
    assert emitted[-1].name == "warning"
    assert os.strerror(errno.ENOENT) in str(emitted[-1].values["text"])
