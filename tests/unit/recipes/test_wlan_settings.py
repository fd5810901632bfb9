"""Settings of a lab's WLAN, from the testbed and the settings of its hosts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from samovar.experiment import load_testbed
from samovar.plan import Trial
from samovar.recipes.fill_settings import fill_settings
from tests.unit.plans import BULK, CATALOGUE, ROOT, planned

WLAN = load_testbed(ROOT / "hosts" / "wlan-wired.yaml")


def trials(settings: str, factors: str = "{cc: [newreno]}", replicates: int = 1) -> list[Trial]:
    head = f"experiment: study\ntestbed: wlan-wired\nduration: 9s\nreplicates: {replicates}\n"
    text = f"{head}settings: {{{settings}}}\n{BULK}factors: {factors}\n"
    return list(planned(text, WLAN, CATALOGUE).trials)


def keys_of(trial: Trial) -> Mapping[str, str]:
    """Return the keys of the WLAN's only setting, which is at the access point."""
    settings = {
        host: [one for one in fill_settings(host, trial.resolved, CATALOGUE) if one.recipe.name == "air"]
        for host in trial.resolved.hosts
    }
    assert {host for host, found in settings.items() if found} == {"router1"}
    (setting,) = settings["router1"]
    keys = setting.values["keys"]
    assert isinstance(keys, dict)
    return keys


def test_default_settings_of_a_wlan_come_from_the_testbed_and_the_recipe() -> None:
    (trial,) = trials("")
    keys = keys_of(trial)
    assert (keys["standard"], keys["tries"], keys["rts_bytes"], keys["basic_mbit"]) == (
        "1",
        "7",
        "65536",
        "24",
    )
    assert {keys[f"rate_mbit@{port}"] for port in range(9)} == {"54"}
    assert {keys[f"adaptation@{port}"] for port in range(9)} == {"0"}
    assert "rate_mbit@9" not in keys, "the WLAN has one access point and eight stations"


def test_wlan_settings_of_a_host_are_set_for_its_port() -> None:
    (trial,) = trials("air.snr: {sta2: 12.5}, wlan.rate: {sta1: 5.5Mbit}, air.queue: {router1: 100packets}")
    keys = keys_of(trial)
    assert [keys[f"snr_db@{port}"] for port in range(4)] == ["50", "50", "12.5", "50"]
    assert [keys[f"rate_mbit@{port}"] for port in range(3)] == ["54", "5.5", "54"]
    assert [keys[f"queue_frames@{port}"] for port in range(2)] == ["100", "36"]


@pytest.mark.parametrize(("adaptation", "number"), [("arf", "1"), ("sampling", "2")])
def test_a_station_without_a_fixed_rate_adapts_its_rate(adaptation: str, number: str) -> None:
    (trial,) = trials(f"wlan.rate: {{sta1: auto}}, air.adaptation: {adaptation}")
    keys = keys_of(trial)
    assert [keys[f"adaptation@{port}"] for port in range(3)] == ["0", number, "0"]


def test_levels_for_the_whole_wlan_are_set_at_its_access_point() -> None:
    factors = "{air.protection: [off, on], air.standard: [802.11g, 802.11a], air.rts: [500B]}"
    found = {
        (trial.treatment["air.standard"], trial.treatment["air.protection"]): keys_of(trial)
        for trial in trials("", factors)
    }
    assert {levels: (keys["standard"], keys["protection"]) for levels, keys in found.items()} == {
        ("802.11g", "off"): ("1", "0"),
        ("802.11g", "on"): ("1", "1"),
        ("802.11a", "off"): ("2", "0"),
        ("802.11a", "on"): ("2", "1"),
    }
    assert {keys["rts_bytes"] for keys in found.values()} == {"500"}


def test_edca_is_off_unless_it_is_set() -> None:
    found = {
        trial.treatment["air.edca"]: keys_of(trial)["edca"] for trial in trials("", "{air.edca: [off, on]}")
    }
    (trial,) = trials("")
    assert (keys_of(trial)["edca"], found) == ("0", {"off": "0", "on": "1"})


def test_each_replicate_of_a_wlan_trial_has_its_own_seed() -> None:
    assert len({keys_of(trial)["seed"] for trial in trials("", replicates=3)}) == 3


def test_a_radio_of_a_lab_is_not_set_with_iw() -> None:
    (trial,) = trials("wlan.rate: 11Mbit")
    recipes = {
        one.recipe.name
        for host in trial.resolved.hosts
        for one in fill_settings(host, trial.resolved, CATALOGUE)
    }
    assert "wlan" not in recipes


@pytest.mark.parametrize(("system", "free", "fixed"), [("linux", "0xfff", "0x8"), ("freebsd", "NONE", "11")])
def test_a_wlan_rate_that_the_owner_of_the_host_fixed_is_neither_changed_nor_removed(
    system: str, free: str, fixed: str
) -> None:
    recipe = CATALOGUE.recipe("setting", "wlan", system)
    values = {"interfaces": ("wlan0",), "rate": "54Mbit"}
    assert not recipe.render("set", {**values, "was": {"wlan.rates": free}}).startswith("fail ")
    assert "wlan0" in recipe.render("restore", {**values, "was": {"wlan.rates": free}})
    refused = {**values, "was": {"wlan.rates": fixed}}
    assert recipe.render("set", refused).startswith("fail ")
    assert "wlan0" not in recipe.render("restore", refused)


def test_the_logger_of_the_medium_runs_at_the_access_point() -> None:
    (trial,) = trials("")
    (logger,) = [one for one in trial.resolved.loggers if one.logger == "air"]
    assert (logger.host, logger.interface, logger.parameters) == ("router1", "eth1", {"link": "air1"})
