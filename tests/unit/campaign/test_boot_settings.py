"""Settings that need a reboot are applied, read and restored by scripts of their own."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from samovar.campaign.context import CampaignContext
from samovar.campaign.journal import Entry, SavedState, fold
from samovar.campaign.retries import TestbedRunner, TestbedSetup
from samovar.campaign.trial import boot_settings
from samovar.errors import TestbedError
from samovar.events import silent
from samovar.experiment import Power, load_testbed
from samovar.experiment.keys.testbed_file import Testbed
from samovar.hosts import ConnectionLostError, Machine
from samovar.recipes import TrialScripts
from tests.unit.campaign.answering_hosts import AnsweringSession, AnsweringSessions
from tests.unit.plans import CATALOGUE, ROOT, planned, study

FREEBSD_11 = load_testbed(ROOT / "hosts" / "example-freebsd-11.yaml")
FREEBSD_14 = load_testbed(ROOT / "hosts" / "example-freebsd.yaml")
FACTORS = "factors: {cc: [newreno], txd: [256]}\n"
EDITS = ">/boot/loader.conf.samovar"
STATE_BEFORE = {"txd.em1": "1024", "planned.txd.em1": "unset"}


def scripts(testbed: Testbed = FREEBSD_11) -> TrialScripts:
    plan = planned(study(FACTORS), testbed, CATALOGUE)
    return TrialScripts(plan.trials[0], CATALOGUE, "rings-1")


def test_the_scripts_of_a_trial_read_its_boot_settings_but_do_not_change_them() -> None:
    made = scripts()
    was = {**STATE_BEFORE, **dict.fromkeys(("cc", "cc.available"), "newreno")}
    assert EDITS not in made.set("alpha", was)
    assert EDITS not in made.restore_body("alpha", was)
    assert "planned.txd.em1" in made.set("alpha", was)
    assert "planned.txd.em1" not in made.read("alpha")
    assert "txd.em1=256" in made.wanted("alpha")


def test_the_scripts_of_boot_settings_change_nothing_else() -> None:
    made = scripts()
    for text in (
        made.set("alpha", STATE_BEFORE, lasting=True),
        made.restore("alpha", STATE_BEFORE, lasting=True),
    ):
        assert EDITS in text
        assert "tcp.cc.algorithm" not in text
    assert made.wanted("alpha", lasting=True) == ("planned.txd.em1=256", "txd.em1=256")


def test_every_boot_setting_has_a_current_value_and_a_value_planned_for_the_next_boot() -> None:
    wanted = {line.partition("=")[0] for line in scripts().wanted("alpha", lasting=True)}
    assert wanted == {f"{planned}{key}" for key in ("txd.em1",) for planned in ("", "planned.")}


def test_a_setting_that_needs_no_reboot_is_not_a_boot_setting() -> None:
    made = scripts(FREEBSD_14)
    assert all(not made.settings(host, lasting=True) for host in made.resolved.hosts)


def test_a_host_that_loses_its_controller_ends_programs_before_it_restores_boot_settings() -> None:
    made = scripts()
    read: defaultdict[str, str] = defaultdict(lambda: "1")  # no assertion depends on these values
    text = made.on_loss("alpha", read, made.restore_body("alpha", STATE_BEFORE, lasting=True))
    lines = text.splitlines()
    assert lines.count("exit 0") == 1
    assert lines[-1] == "exit 0"
    assert text.index('rm -rf -- "$dir"') < text.index(EDITS)


def _entry(event: str, id_: str, **values: object) -> Entry:
    return Entry(1.0, event, {"id": id_, "host": "alpha", **values})


def test_boot_settings_stay_unrestored_when_the_other_settings_of_their_trial_are_restored() -> None:
    read = _entry("state-read", "a", state=STATE_BEFORE, lasting=True)
    journal = [read, _entry("state-read", "a", state={"cc": "cubic"}), _entry("state-restored", "a")]
    journal += [_entry("state-read", "b", state={"cc": "cubic"})]
    lasts = SavedState("a", "alpha", STATE_BEFORE, lasting=True)
    assert fold(journal).unrestored["alpha"] == (lasts, SavedState("b", "alpha", {"cc": "cubic"}))
    journal += [_entry("state-restored", "b")]
    assert fold(journal).unrestored["alpha"] == (lasts,)
    journal += [_entry("state-restored", "a", lasting=True)]
    assert fold(journal).clean


def test_an_unreachable_host_does_not_prevent_a_reboot_that_restores_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, entries, booted = scripts(), list[Entry](), list[str]()

    def answer(host: str, step: str) -> str | BaseException:
        if host == "omega":
            return ConnectionLostError("omega: no answer")
        if step == "reboot":
            booted.append(host)
        if step == "boot id":
            return f"=fact= boot_id\nboot {len(booted)} of {host}\n"
        state = STATE_BEFORE if booted else {**STATE_BEFORE, "txd.em1": "256"}
        return "".join(f"{key}={value}\n" for key, value in state.items())

    def set_on_loss(session: AnsweringSession, script: str | None) -> None:
        session.run("", step="on loss", deadline_s=1.0)

    def note(event: str, **values: object) -> None:
        entries.append(Entry(1.0, event, values))

    monkeypatch.setattr(AnsweringSession, "set_on_loss", set_on_loss)
    sessions = AnsweringSessions(answer, made.resolved.hosts)
    context = CampaignContext(tmp_path, sessions, CATALOGUE, note, silent, entries=lambda: entries)
    saved = SavedState(made.trial.id, "alpha", STATE_BEFORE, lasting=True)
    note("state-read", id=saved.id, host="alpha", state=STATE_BEFORE, lasting=True)
    settings = boot_settings.BootSettings(context, lambda _: made)
    settings.adopt([saved])
    settings.restore()
    assert booted == ["alpha"]
    assert fold(entries).clean


def test_boot_settings_are_restored_on_other_hosts_if_they_cannot_be_restored_on_one(tmp_path: Path) -> None:
    made, entries = scripts(), list[Entry]()

    def answer(host: str, step: str) -> str:
        state = STATE_BEFORE if host == "omega" else {**STATE_BEFORE, "planned.txd.em1": "256"}
        return "".join(f"{key}={value}\n" for key, value in state.items())

    def note(event: str, **values: object) -> None:
        entries.append(Entry(1.0, event, values))

    sessions = AnsweringSessions(answer, made.resolved.hosts)
    context = CampaignContext(tmp_path, sessions, CATALOGUE, note, silent, entries=lambda: entries)
    settings = boot_settings.BootSettings(context, lambda _: made)
    for host in ("alpha", "omega"):
        note("state-read", id=made.trial.id, host=host, state=STATE_BEFORE, lasting=True)
        settings.adopt([SavedState(made.trial.id, host, STATE_BEFORE, lasting=True)])
    with pytest.raises(TestbedError, match="alpha: settings that need a reboot cannot be restored"):
        settings.restore()
    assert list(fold(entries).unrestored) == ["alpha"]


def test_an_interrupt_request_ends_the_wait_for_a_reboot_but_not_in_the_final_restoration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a campaign runs on several testbeds, the thread of each testbed gets Ctrl-C as a request."""
    monkeypatch.setattr(boot_settings, "POLL_S", 0.0)
    plan = planned(study(FACTORS), FREEBSD_11, CATALOGUE)
    made, entries, booted = scripts(), list[Entry](), list[str]()
    silent_polls = 0

    def answer(host: str, step: str) -> str:
        nonlocal silent_polls
        if step == "reboot":
            booted.append(host)
            if len(booted) == 1:
                context.interrupt.requested.set()
        if step == "boot id":
            silent_polls += len(booted) == 2
            return f"=fact= boot_id\n{'second' if silent_polls > 3 else 'first'}\n"
        if step == "restore lasting":
            return "txd.em1=256\nplanned.txd.em1=unset\n"
        return "".join(f"{key}={value}\n" for key, value in STATE_BEFORE.items())

    def note(event: str, **values: object) -> None:
        entries.append(Entry(1.0, event, values))

    power = Power.model_validate({"cycle": ["false"]})
    machines = {"alpha": Machine("alpha", "alpha", 10.0, power)}
    sessions = AnsweringSessions(answer, made.resolved.hosts)
    context = CampaignContext(
        tmp_path, sessions, CATALOGUE, note, silent, machines=machines, entries=lambda: entries
    )
    runner = TestbedRunner(context, TestbedSetup("lab", plan, sessions))
    note("state-read", id=made.trial.id, host="alpha", state=STATE_BEFORE, lasting=True)
    runner.boot_settings.adopt([SavedState(made.trial.id, "alpha", STATE_BEFORE, lasting=True)])
    with pytest.raises(TestbedError, match="not back"):
        runner.boot_settings.restore()
    assert "host-power-cycled" not in [entry.event for entry in entries]
    runner.restore_boot_settings(tmp_path / "commands")
    assert booted == ["alpha", "alpha"]
    assert fold(entries).clean
