"""Check the counts of trials, values, warnings and outputs of the shipped studies against their reports."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from samovar.experiment import (
    LoadOptions,
    ResolvedExperiment,
    explain_key,
    load_experiment,
    package_outputs,
    yaml_tree,
)
from samovar.plan import Plan, make_plan
from samovar.recipes import Catalogue
from samovar.units import parse_rate, parse_size

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
CATALOGUE = Catalogue(ROOT / "templates")
OWN_EXPERIMENTS = {"applications", "demo", "other-path"}

TRIALS: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "cdg-wlan": {
        "full": {"contention": 3 * 3 * 10, "adaptation": 3 * 2 * 10, "voip": 3 * 10, "gradient": 2 * 2 * 10},
        "quick": {"contention": 3 * 3, "adaptation": 3 * 2, "voip": 3, "gradient": 2 * 2},
    },
    "cdg-wlan-direction": {
        "full": {"download": 3 * 10, "upload": 3 * 10, "voip": 3 * 10},
        "quick": {"download": 3, "upload": 3, "voip": 3},
    },
    "flow-domination": {"full": {"main": 10 * 3}, "quick": {"main": 10}},
    "insufficient-rwnd": {
        "full": {"capped": 1, "down-first": 3, "up-first": 2},
        "quick": {"capped": 1, "down-first": 3, "up-first": 2},
    },
    "netgear-buffer": {"full": {"main": 480}, "quick": {"main": 2 * 3 * 2}, "brisk": {"main": 2 * 3 * 2}},
    "netgear-cycles": {"full": {"main": 2 * 6}, "quick": {"main": 2}, "brisk": {"main": 2}},
    "netgear-flows": {"full": {"main": 2 * 4 * 6}, "quick": {"main": 2 * 4}, "brisk": {"main": 2 * 4 * 2}},
    "netgear-lan": {"full": {"main": 28 * 5}, "quick": {"main": 2 * 2}, "brisk": {"main": 2 * 2}},
    "netgear-txd": {"full": {"main": 5 * 6}, "quick": {"main": 5 * 2}, "brisk": {"main": 5 * 3}},
    "netgear-window": {
        "full": {"rooms": 28 * 6, "powerboard": 28 * 6},
        "quick": {"rooms": 4 * 3, "powerboard": 3},
        "brisk": {"rooms": 4 * 3, "powerboard": 4 * 2},
    },
    "spp-scp": {"full": {"scp": 13, "shaper": 11}, "quick": {"scp": 7, "shaper": 7}},
    "spp-udp": {
        "full": {"pings": 1 + 3 * 2, "rates": 2 * 21},
        "quick": {"pings": 1 + 3 * 2, "rates": 5},
    },
    "tplink-buffer": {
        "full": {"buffer": 3 * 8, "window": 21 * 5},
        "quick": {"buffer": 3, "window": 3 * 4},
    },
}
"""Number of trials by profile and part: `full` has the combinations and repetitions of the report."""

LONGEST_QUICK_S = 15 * 60


@cache
def study(name: str, profile: str = "full") -> ResolvedExperiment:
    options = LoadOptions(None if profile == "full" else profile)
    return load_experiment(EXPERIMENTS / f"{name}.yaml", CATALOGUE, options=options)


@cache
def plan(name: str, profile: str) -> Plan:
    return make_plan(study(name, profile), CATALOGUE)


NAMES = pytest.mark.parametrize("name", sorted(TRIALS))
PROFILES = pytest.mark.parametrize(
    ("name", "profile"), [(name, profile) for name, profiles in TRIALS.items() for profile in profiles]
)


def test_every_shipped_experiment_is_a_study_of_a_report_or_the_project_s_own() -> None:
    assert set(yaml_tree.yaml_names(EXPERIMENTS)) == TRIALS.keys() | OWN_EXPERIMENTS


@PROFILES
def test_a_study_is_planned_with_the_number_of_trials_that_its_report_states(name: str, profile: str) -> None:
    assert Counter(trial.part for trial in plan(name, profile).trials) == TRIALS[name][profile]


@NAMES
def test_the_number_of_trials_is_listed_for_every_profile_of_a_study(name: str) -> None:
    assert {"full", *study(name).experiment.profiles} == TRIALS[name].keys()


@NAMES
def test_the_traffic_of_a_quick_profile_takes_less_than_fifteen_minutes(name: str) -> None:
    flowing = (trial.resolved.duration_s for trial in plan(name, "quick").trials)
    assert sum(flowing) < LONGEST_QUICK_S


@NAMES
def test_a_study_names_its_report_and_has_expectations_with_sources(name: str) -> None:
    experiment = study(name).experiment
    assert experiment.source.startswith("CAIA-TR-")
    assert experiment.title
    assert experiment.description
    assert experiment.figures or experiment.tables
    assert experiment.expect
    assert all(line.source and line.metric in package_outputs().metrics for line in experiment.expect)


@NAMES
def test_a_study_s_rate_and_factors_can_be_explained(name: str) -> None:
    own = study(name)
    experiment = own.experiment
    factors = {factor for part in experiment.parts.values() for factor in part.factors}
    for key in ("path.rate", *sorted(factors)):
        found = explain_key(own, CATALOGUE, key)
        assert any(one.values or one.keys for one in found), key


@cache
def drawable_outputs() -> frozenset[str]:
    """Return the names of the figures and tables for which the analysis has a function."""
    code = "".join(path.read_text() for path in (ROOT / "analysis" / "R").glob("*.R"))
    names = re.findall(r"^(?:figure|table)_(\w+) <- function", code, flags=re.MULTILINE)
    return frozenset(name.replace("_", "-") for name in names)


@NAMES
def test_the_analysis_can_make_all_figures_and_tables_of_a_study(name: str) -> None:
    experiment = study(name).experiment
    figures = {str(entry["figure"]) for entry in experiment.figures}
    assert figures | {str(entry["table"]) for entry in experiment.tables} <= drawable_outputs()


def test_the_path_of_netgear_window_has_the_values_of_the_powerline_adapter() -> None:
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


def test_staggered_flows_begin_ten_seconds_apart_and_the_last_has_the_opposite_direction() -> None:
    trial = next(trial for trial in plan("insufficient-rwnd", "full").trials if trial.part == "down-first")
    starts = {flow.label: flow.start_s for flow in trial.resolved.flows}
    assert starts == {"down-1": 0, "down-2": 10, "down-3": 20, "up": 30}
    last = trial.resolved.flows[-1]
    assert (last.from_host, last.to_host) == ("dst4", "src4")
    assert trial.resolved.stop is not None
    assert trial.resolved.stop.after_s == trial.resolved.duration_s == 90


def test_udp_is_sent_without_pings_and_with_the_six_kinds_of_pings_of_the_report() -> None:
    pings = [trial for trial in plan("spp-udp", "full").trials if trial.part == "pings"]
    sent = {
        trial.treatment["pings"]: [
            (flow.parameters["length"], flow.parameters["interval"])
            for flow in trial.resolved.flows
            if flow.generator == "ping"
        ]
        for trial in pings
    }
    assert sent == {
        "none": [],
        **{f"{size + 8}B-{pace}/s": [(f"{size}B", f"{1000 // pace}ms")]
           for size in (504, 1016, 2040) for pace in (50, 100)},
    }  # fmt: skip


def test_udp_is_sent_at_the_21_rates_of_table_x_with_and_without_pings() -> None:
    rates = [trial for trial in plan("spp-udp", "full").trials if trial.part == "rates"]
    levels = {(trial.treatment["pings"], trial.treatment["udp"]) for trial in rates}
    steps = [1, *range(5, 41, 5), *range(41, 51), 55, 60]
    assert levels == {(pings, f"{rate}Mbit") for pings in ("none", "512B-50/s") for rate in steps}
    assert {trial.resolved.flows[0].parameters["rate"] == trial.treatment["udp"] for trial in rates} == {True}


@pytest.mark.parametrize("part", ["scp", "shaper"])
def test_the_quick_profile_limits_a_copy_to_a_quarter_of_the_rate_that_its_level_names(part: str) -> None:
    for trial in (one for one in plan("spp-scp", "quick").trials if one.part == part):
        flow, sender = trial.resolved.flows[0], trial.resolved.hosts["src"]
        limit = flow.parameters.get("limit") or sender.settings["shaper"]["rate"]
        assert 4 * parse_rate(str(limit)) == parse_rate(trial.treatment["limit"])


def test_calls_have_ethernet_frames_of_200_bytes() -> None:
    calls = [
        flow
        for name in ("cdg-wlan", "cdg-wlan-direction")
        for trial in plan(name, "full").trials
        for flow in trial.resolved.flows
        if flow.generator == "voip"
    ]
    assert {parse_size(flow.parameters["length"]) + 8 + 20 + 14 for flow in calls} == {200}


def test_cdg_over_a_wlan_backs_off_to_half_except_where_its_parameters_are_factors() -> None:
    found = {
        (trial.treatment["tcp"], tuple(host.cc_parameters.items()))
        for trial in plan("cdg-wlan", "full").trials
        for host in trial.resolved.hosts.values()
        if host.cc is not None and trial.part != "gradient"
    }
    assert found == {("newreno", ()), ("cubic", ()), ("cdg", (("backoff_beta", "512"),))}


# Warnings that a report justifies: these studies have windows below the path's bandwidth-delay product on purpose.
JUSTIFIED: Mapping[str, frozenset[str]] = {
    "insufficient-rwnd": frozenset({"rwnd is below the path's bandwidth-delay product"}),
    "netgear-flows": frozenset({"rwnd is below the path's bandwidth-delay product"}),
    "netgear-window": frozenset({"rwnd is below the path's bandwidth-delay product"}),
}
SHORT = "duration is below 20 RTTs at a full buffer"


@PROFILES
def test_a_study_is_planned_without_a_warning_that_its_report_does_not_justify(
    name: str, profile: str
) -> None:
    warnings = {
        warning
        for warning in plan(name, profile).warnings
        if not re.search(r": \d+ replicates?( give|;)", warning)
        and not (profile != "full" and SHORT in warning)
    }
    assert {one for one in warnings if not any(why in one for why in JUSTIFIED.get(name, ()))} == set()


CHOICES = """
library(samovar, warn.conflicts = FALSE)
for (name in names(asNamespace("samovar"))) assign(name, get(name, asNamespace("samovar")))
for (folder in commandArgs(TRUE)) {
  plan <- read_plan(folder)
  factors <- unique(unlist(lapply(plan$parts, \\(p) names(p$factors))))
  rows <- lapply(plan$trials, \\(t) c(t[c("id", "part")], factor_row(t$treatment, factors), t["replicate"]))
  campaign <- list(plan = plan, factors = factors, trials = data.table::rbindlist(rows))
  entries <- c(lapply(plan$figures, as_entry, kind = "figure"), lapply(plan$tables, as_entry, kind = "table"))
  check_entries(campaign, entries)
  for (entry in entries) {
    chosen <- select_trials(list(campaign = campaign), entry)
    if ((entry$figure %||% "") %in% c("rtt-cdf", "trial-time-series", "rtt-time")) chosen <- at_largest_rwnd(campaign, chosen)
    but <- c(entry$factor, if (grepl("by-rwnd", entry$figure %||% "")) "rwnd", if (grepl("^pause-", entry$figure %||% "")) grep("^traffic", factors, value = TRUE))
    labels <- levels(curves_of(campaign, chosen, but)$labels)
    few <- if (grepl("time", entry$figure %||% "")) 4 else if (grepl("cdf|^metric|by-rwnd|^pause", entry$figure %||% "")) most_curves(labels) else Inf
    if (length(labels) > few) stop(folder, ": ", jsonlite::toJSON(entry, auto_unbox = TRUE), " has ", length(labels), " curves")
  }
}
"""


def test_each_figure_and_table_of_each_profile_has_known_options_and_distinguishable_curves(
    tmp_path: Path,
) -> None:
    folders = []
    for name, profiles in TRIALS.items():
        for profile in profiles:
            folder = tmp_path / f"{name}-{profile}"
            folder.mkdir()
            (folder / "plan.json").write_bytes(plan(name, profile).to_json())
            folders.append(str(folder))
    (tmp_path / "choices.R").write_text(CHOICES)
    environment = {**os.environ, "R_LIBS": str(ROOT / ".rlib"), "LC_ALL": "C.UTF-8"}
    command = ["Rscript", "--vanilla", str(tmp_path / "choices.R"), *folders]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""


def test_udp_datagrams_fill_packets_of_every_mtu() -> None:
    floods = {
        trial.treatment["mtu"]: trial.resolved.flows[0].parameters["length"]
        for trial in plan("netgear-buffer", "quick").trials
    }
    assert floods == {"600": "572B", "1200": "1172B", "1500": "1472B"}


def test_the_deadline_of_a_transfer_allows_for_its_rate_limit() -> None:
    trials = plan("spp-scp", "full").trials
    slow = [trial for trial in trials if "1Mbit" in trial.treatment.values()]
    assert {trial.part for trial in slow} == {"scp", "shaper"}
    assert all(trial.resolved.deadline_s > 600 * 8 for trial in slow)
