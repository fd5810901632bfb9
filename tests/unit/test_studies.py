"""The studies that are shipped: each can be planned without its testbed, as large as its report says it was."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from samovar.command import Catalogue
from samovar.definition import Config, apply_profile, list_experiments, load_study
from samovar.definition.explain import explain
from samovar.definition.explain_keys import Subject
from samovar.definition.load import Study
from samovar.definition.metrics import METRICS
from samovar.errors import LabError
from samovar.lab import lacking, require_devices
from samovar.plan import Plan, make_plan

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
CATALOGUE = Catalogue(ROOT / "templates")
OF_THE_PROJECT = {"demo", "other-path"}

TRIALS: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "cdg-wlan": {
        "full": {"contention": 3 * 3 * 10, "adaptation": 3 * 2 * 10, "voip": 3 * 10},
        "quick": {"contention": 3 * 2, "adaptation": 3 * 2, "voip": 3},
    },
    "cdg-wlan-direction": {
        "full": {"download": 3 * 10, "upload": 3 * 10, "voip": 3 * 10},
        "quick": {"download": 3, "upload": 3, "voip": 3},
    },
    "insufficient-rwnd": {
        "full": {"capped": 1, "down-first": 3, "up-first": 2},
        "quick": {"capped": 1, "down-first": 3, "up-first": 2},
    },
    "netgear-buffer": {"full": {"main": 480}, "quick": {"main": 2 * 3 * 2}, "brisk": {"main": 2 * 3 * 2}},
    "netgear-flows": {"full": {"main": 2 * 4 * 6}, "quick": {"main": 2 * 4}, "brisk": {"main": 2 * 4 * 2}},
    "netgear-lan": {"full": {"main": 28 * 5}, "quick": {"main": 2 * 2}, "brisk": {"main": 2 * 2}},
    "netgear-txd": {"full": {"main": 5 * 6}, "quick": {"main": 5 * 2}, "brisk": {"main": 5 * 3}},
    "netgear-window": {
        "full": {"rooms": 28 * 6, "powerboard": 28 * 6},
        "quick": {"rooms": 4 * 3, "powerboard": 3},
        "brisk": {"rooms": 4 * 3, "powerboard": 4 * 2},
    },
    "spp-scp": {"full": {"scp": 11, "shaper": 11}, "quick": {"scp": 3, "shaper": 3}},
    "spp-udp": {
        "full": {"alone": 1, "pings": 3 * 2, "rates": 21},
        "quick": {"alone": 1, "pings": 3 * 2, "rates": 4},
    },
    "tplink-buffer": {
        "full": {"buffer": 3 * 8, "window": 21 * 5},
        "quick": {"buffer": 3, "window": 3 * 4},
    },
}
"""What the reports ran: combinations times repeats, and what a few minutes show of it."""

LONGEST_QUICK_S = 15 * 60


@cache
def study(name: str) -> Study:
    return load_study(EXPERIMENTS / f"{name}.yaml", CATALOGUE)


@cache
def plan(name: str, profile: str) -> Plan:
    own = study(name)
    return make_plan(own.experiment, own.testbed, None if profile == "full" else profile)


NAMES = pytest.mark.parametrize("name", sorted(TRIALS))
PROFILES = pytest.mark.parametrize(
    ("name", "profile"), [(name, profile) for name, profiles in TRIALS.items() for profile in profiles]
)


def test_every_shipped_experiment_is_a_study_of_a_report_or_the_project_s_own() -> None:
    assert set(list_experiments(EXPERIMENTS)) == TRIALS.keys() | OF_THE_PROJECT


@PROFILES
def test_a_study_is_planned_with_the_number_of_trials_that_its_report_states(name: str, profile: str) -> None:
    assert Counter(trial.part for trial in plan(name, profile).trials) == TRIALS[name][profile]


@NAMES
def test_every_profile_of_a_study_is_counted_here(name: str) -> None:
    assert {"full", *study(name).experiment.profiles} == TRIALS[name].keys()


@NAMES
def test_a_quick_profile_s_traffic_takes_minutes(name: str) -> None:
    flowing = (trial.resolved.duration_s for trial in plan(name, "quick").trials)
    assert sum(flowing) < LONGEST_QUICK_S


@NAMES
def test_a_study_names_its_report_and_what_it_expects_of_it(name: str) -> None:
    experiment = study(name).experiment
    assert experiment.source.startswith("CAIA-TR-")
    assert experiment.title
    assert experiment.description
    assert experiment.figures or experiment.tables
    assert experiment.expect
    assert all(line.source and line.metric in METRICS for line in experiment.expect)


@NAMES
def test_a_study_warns_of_expectations_that_nothing_measures_yet(name: str) -> None:
    asked = {line.metric for line in study(name).experiment.expect}
    unmeasured = {metric for metric in asked if not METRICS[metric].written}
    told = [warning for warning in plan(name, "full").warnings if warning.startswith("expect: ")]
    assert sorted(told) == sorted(
        f"expect: no analysis writes {metric} yet; the scorecard will say no data" for metric in unmeasured
    )


@NAMES
def test_a_study_s_rate_and_factors_can_be_explained(name: str) -> None:
    own = study(name)
    experiment = apply_profile(own.experiment, None)
    subject = Subject(experiment, own.testbed, CATALOGUE, Config())
    factors = {factor for part in experiment.parts.values() for factor in part.factors}
    for key in ("path.rate", *sorted(factors)):
        found = explain(subject, key)
        assert any(one.chain or one.inside for one in found), key


@cache
def drawn() -> frozenset[str]:
    """Return the figures and tables that there is a function for, by their names."""
    code = "".join(path.read_text() for path in (ROOT / "analysis" / "R").glob("*.R"))
    names = re.findall(r"^(?:figure|table)_(\w+) <- function", code, flags=re.MULTILINE)
    return frozenset(name.replace("_", "-") for name in names)


@NAMES
def test_figures_and_tables_of_a_study_are_ones_that_the_analysis_draws(name: str) -> None:
    experiment = study(name).experiment
    figures = {str(entry["figure"]) for entry in experiment.figures}
    assert figures | {str(entry["table"]) for entry in experiment.tables} <= drawn()


def test_a_lab_that_no_device_can_stand_for_yet_is_refused_in_a_sentence() -> None:
    testbeds = list({study(name).testbed.name: study(name).testbed for name in TRIALS}.values())
    for testbed in testbeds:
        if not lacking(testbed):
            require_devices(testbed)
            continue
        with pytest.raises(LabError) as caught:
            require_devices(testbed, testbeds)
        assert "which a lab cannot be yet; accepted: testbeds dumbbell, lab, powerline, or real ones" in str(
            caught.value
        )
    assert {testbed.name for testbed in testbeds if lacking(testbed)} == {"wlan", "wlan-wired"}


def test_the_path_of_a_link_is_the_adapter_s_with_what_the_experiment_says() -> None:
    path = plan("netgear-window", "quick").trials[0].resolved.path
    assert path is not None
    assert (path.router, path.link, path.down.interface) == ("", "powerline", "")
    assert path.down.rate_bps == path.up.rate_bps
    assert (path.down.buffer_packets, path.down.aqm) == (2720, None)
    assert path.device is not None
    assert (path.device.medium, path.device.flow_control, path.device.pause_quanta) == (
        "simplex",
        True,
        65535,
    )


def test_staggered_flows_begin_ten_seconds_apart_and_the_last_goes_the_other_way() -> None:
    trial = next(trial for trial in plan("insufficient-rwnd", "full").trials if trial.part == "down-first")
    starts = {flow.label: flow.start_s for flow in trial.resolved.flows}
    assert starts == {"down-1": 0, "down-2": 10, "down-3": 20, "up": 30}
    last = trial.resolved.flows[-1]
    assert (last.from_host, last.to_host) == ("dst4", "src4")
    assert trial.resolved.stop is not None
    assert trial.resolved.stop.after_s == trial.resolved.duration_s == 90


def test_a_fragmented_ping_is_larger_than_a_packet() -> None:
    pings = [trial for trial in plan("spp-udp", "full").trials if trial.part == "pings"]
    sizes = {trial.treatment["size"]: trial.resolved.flows[-1].parameters["length"] for trial in pings}
    assert sizes == {"512B": "504B", "1024B": "1016B", "2048B": "2040B"}


def test_udp_fills_packets_of_every_mtu() -> None:
    floods = {
        trial.treatment["mtu"]: trial.resolved.flows[0].parameters["length"]
        for trial in plan("netgear-buffer", "quick").trials
    }
    assert floods == {"600": "572B", "1200": "1172B", "1500": "1472B"}


def test_a_transfer_may_take_as_long_as_its_rate_limit_makes_it() -> None:
    trials = plan("spp-scp", "full").trials
    slow = [trial for trial in trials if "1Mbit" in trial.treatment.values()]
    assert {trial.part for trial in slow} == {"scp", "shaper"}
    assert all(trial.resolved.deadline_s > 600 * 8 for trial in slow)
