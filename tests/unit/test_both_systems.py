"""All shipped experiments on FreeBSD, and on testbeds whose ends and router have different systems."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from samovar.campaign.availability import find_missing, unsupported_paths
from samovar.campaign.policy import Policy
from samovar.experiment import LoadOptions, Testbed, load_experiment, load_testbed, package_outputs, yaml_tree
from samovar.hosts import HostFacts
from samovar.hosts.fact_parsers import parse_cc_available, parse_cc_parameters, parse_dmesg_rings
from samovar.plan import Plan, Trial, make_plan
from samovar.recipes import Catalogue, TrialScripts
from tests.unit.recipes.freebsd_sample import recorded_output

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
CATALOGUE = Catalogue(ROOT / "templates")
ONLY_FOR_LINUX = {"flow-domination"}
"""Experiments whose factors are settings that only Linux has."""
NAMES = sorted(set(yaml_tree.yaml_names(EXPERIMENTS)) - ONLY_FOR_LINUX)
MIXES: Mapping[str, Set[str]] = {
    "FreeBSD": {"sender", "receiver", "router"},
    "FreeBSD ends": {"sender", "receiver"},
    "FreeBSD router": {"router"},
}
"""The roles whose hosts run FreeBSD; the others run Linux."""
PORTS = {"iperf", "nttcp", "nuttcp", "python3"}
"""Programs that are not in FreeBSD's base system, without iperf3, which the recorded hosts had."""
PROGRAMS = {
    **dict.fromkeys(("iperf", "iperf-udp"), "iperf"),
    **dict.fromkeys(("dash", "game", "http", "incast", "voip"), "python3"),
    "nuttcp": "nuttcp",
}
"""The programs among PORTS that generators of shipped experiments need."""
LINUX_PARAMETER = "the congestion control cdg has no parameter backoff_"
"""A finding about the WLAN studies, which set a parameter by the name that it has in Linux."""


@cache
def own_testbed(name: str) -> Path:
    return ROOT / "hosts" / f"{load_experiment(EXPERIMENTS / f'{name}.yaml', CATALOGUE).testbed.name}.yaml"


def mixed_testbed(name: str, freebsd: Set[str], folder: Path) -> Testbed:
    """Return the testbed of an experiment, but not as a lab, and with FreeBSD 14 on the hosts of some roles."""
    made: Any = yaml_tree.plain(yaml_tree.read_yaml(own_testbed(name))[0])
    del made["lab"]
    made.pop("settings", None)  # settings of the WLAN that the lab simulates
    for host in made["hosts"].values():
        host |= {"os": "freebsd", "release": "14.0"} if host["role"] in freebsd else {}
        host["interfaces"] = {key.replace("eth", "em"): one for key, one in host["interfaces"].items()}
    if "from" in made["bottleneck"]:
        made["bottleneck"] |= {key: made["bottleneck"][key].replace("eth", "em") for key in ("from", "to")}
    path = folder / f"{made['testbed']}.yaml"
    path.write_text(yaml.safe_dump(made))
    return load_testbed(path)


def plan_on(name: str, mix: str, folder: Path) -> Plan:
    path = EXPERIMENTS / f"{name}.yaml"
    text: Any = yaml_tree.plain(yaml_tree.read_yaml(path)[0])
    options = LoadOptions("quick" if "quick" in text.get("profiles", {}) else None)
    own = load_experiment(path, CATALOGUE, mixed_testbed(name, MIXES[mix], folder), options)
    return make_plan(own, CATALOGUE)


def scripts_of(trial: Trial, host: str) -> list[str]:
    """Return the scripts of a trial that read the state of a host, start its loggers and start its traffic."""
    scripts = TrialScripts(trial, CATALOGUE, "both")
    return [text for text in (scripts.read(host), scripts.arm(host), scripts.traffic(host, 10**18)) if text]


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_experiment_can_be_planned_on_freebsd_and_on_mixed_systems(
    name: str, mix: str, tmp_path: Path
) -> None:
    plan = plan_on(name, mix, tmp_path)
    sources = package_outputs().quantities["tcp-state"].sources
    parts = {trial.part: trial for trial in plan.trials}
    for trial in parts.values():
        hosts = trial.resolved.hosts
        for logger in trial.resolved.loggers:
            system = hosts[logger.host].system
            assert logger.logger in CATALOGUE.names("logger", system)
            if logger.logger in sources:
                assert logger.logger == ("siftr" if system == "freebsd-14" else "tcp-info")
                assert (logger.interval_s is None) == (logger.logger == "siftr")
        assert all(scripts_of(trial, host) for host in hosts)
    assert not [warning for warning in plan.warnings if "no trial records" in warning]
    assert unsupported_paths(plan, CATALOGUE) == []


def facts_of_freebsd(plan: Plan, host: str) -> HostFacts:
    """Return the facts of the recorded host with FreeBSD 14.0: its base system, all modules, and iperf3."""
    recipes = [
        CATALOGUE.header(kind, name, "freebsd-14")
        for kind in ("setting", "aqm", "generator", "logger", "step")
        for name in CATALOGUE.names(kind, "freebsd-14")
    ]
    programs = {
        name for one in recipes for name in (*one.needs, *one.needs_of("client"), *one.needs_of("server"))
    }
    oids = "\n".join(
        line.partition(":")[0] for line in recorded_output("14.0", "sysctl net.inet.tcp.cc", 1).splitlines()
    )
    modules = [file.removesuffix(".ko") for file in recorded_output("14.0", "ls /boot/kernel").split()]
    rings = parse_dmesg_rings(recorded_output("14.0", "dmesg"))
    return HostFacts(
        host,
        tools=dict.fromkeys(programs - PORTS, ""),
        cc_offered=parse_cc_available(recorded_output("14.0", "sysctl -n net.inet.tcp.cc.available", 1)),
        cc_parameters=parse_cc_parameters(oids),
        qdiscs=(*modules, "codel", "pie", "fq_codel"),  # the AQMs are in dummynet
        rings=tuple(rings),
        pauses=plan.trials[0].resolved.hosts[host].interfaces,
        disk_free_bytes=10**12,
    )


@pytest.mark.parametrize("name", NAMES)
def test_freebsd_s_base_system_lacks_only_programs_of_generators_and_each_finding_has_a_remedy(
    name: str, tmp_path: Path
) -> None:
    plan = plan_on(name, "FreeBSD", tmp_path)
    facts = {host: facts_of_freebsd(plan, host) for host in plan.trials[0].resolved.hosts}
    generators = {flow.generator for trial in plan.trials for flow in trial.resolved.flows}
    lacking = set[str]()
    for finding in find_missing(plan, CATALOGUE, facts, Policy(calibrate=True)):
        if name.startswith("cdg-wlan") and LINUX_PARAMETER in finding.what:
            continue
        program = finding.what.removeprefix("no program ")
        assert program in PORTS, str(finding)
        assert "install it: `pkg install " in finding.remedy
        if program in ("nuttcp", "iperf"):
            udp = any(flow.generator == "iperf-udp" for flow in plan.trials[0].resolved.flows)
            other = "iperf3-udp" if udp else "iperf3 or scp"
            assert finding.remedy.startswith(f"use generator {other}, which the host can run, or install it")
        lacking.add(program)
    assert lacking == {PROGRAMS[generator] for generator in generators if generator in PROGRAMS}
