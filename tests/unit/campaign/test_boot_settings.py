"""What takes a reboot lasts over the trials of a plot: it is set, read and put back apart from the rest."""

from __future__ import annotations

from collections import defaultdict

from samovar.campaign.journal import Entry, SavedState, fold
from samovar.experiment import load_testbed
from samovar.experiment.keys.testbed_file import Testbed
from samovar.recipes import TrialScripts
from tests.unit.plans import CATALOGUE, ROOT, planned, study

OLD = load_testbed(ROOT / "hosts" / "example-freebsd-11.yaml")
NEW = load_testbed(ROOT / "hosts" / "example-freebsd.yaml")
FACTORS = "factors: {cc: [newreno], txd: [256]}\n"
EDITS = ">/boot/loader.conf.samovar"
WAS = {"txd.em1": "1024", "planned.txd.em1": "unset"}


def scripts(testbed: Testbed = OLD) -> TrialScripts:
    plan = planned(study(FACTORS), testbed, CATALOGUE)
    return TrialScripts(plan.trials[0], CATALOGUE, "rings-1")


def test_a_trial_reads_back_what_lasts_and_changes_it_in_no_script_of_its_own() -> None:
    made = scripts()
    was = {**WAS, **dict.fromkeys(("cc", "cc.available"), "newreno")}
    assert EDITS not in made.set("alpha", was)
    assert EDITS not in made.restore_body("alpha", was)
    assert "planned.txd.em1" in made.set("alpha", was)
    assert "planned.txd.em1" not in made.read("alpha")
    assert "txd.em1=256" in made.wanted("alpha")


def test_what_lasts_is_set_and_put_back_by_scripts_that_touch_nothing_else() -> None:
    made = scripts()
    for text in (made.set("alpha", WAS, lasting=True), made.restore_lasting("alpha", WAS)):
        assert EDITS in text
        assert "tcp.cc.algorithm" not in text
    assert made.wanted("alpha", lasting=True) == ("planned.txd.em1=256", "txd.em1=256")


def test_every_value_in_force_after_a_reboot_is_planned_before() -> None:
    wanted = {line.partition("=")[0] for line in scripts().wanted("alpha", lasting=True)}
    assert wanted == {f"{planned}{key}" for key in ("txd.em1",) for planned in ("", "planned.")}


def test_nothing_lasts_where_a_level_takes_no_reboot() -> None:
    made = scripts(NEW)
    assert all(not made.settings(host, lasting=True) for host in made.resolved.hosts)


def test_a_host_that_loses_its_controller_restores_after_it_has_swept() -> None:
    made = scripts()
    read: defaultdict[str, str] = defaultdict(lambda: "1")  # what was read matters to no assertion
    text = made.on_loss("alpha", read, made.restore_body("alpha", WAS, lasting=True))
    lines = text.splitlines()
    assert lines.count("exit 0") == 1
    assert lines[-1] == "exit 0"
    assert text.index('rm -rf -- "$dir"') < text.index(EDITS)


def _entry(event: str, id_: str, **values: object) -> Entry:
    return Entry(1.0, event, {"id": id_, "host": "alpha", **values})


def test_what_lasts_stays_to_be_restored_when_the_trial_that_set_it_is() -> None:
    read = _entry("state-read", "a", state=WAS, lasting=True)
    journal = [read, _entry("state-read", "a", state={"cc": "cubic"}), _entry("state-restored", "a")]
    journal += [_entry("state-read", "b", state={"cc": "cubic"})]
    lasts = SavedState("a", "alpha", WAS, lasting=True)
    assert fold(journal).unrestored["alpha"] == (lasts, SavedState("b", "alpha", {"cc": "cubic"}))
    journal += [_entry("state-restored", "b")]
    assert fold(journal).unrestored["alpha"] == (lasts,)
    journal += [_entry("state-restored", "a", lasting=True)]
    assert fold(journal).clean
