"""Preflight: what a plan needs of each host against what the hosts have; nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from samovar.command import Catalogue, Header, Recipe
from samovar.command.scripts import TrialScripts
from samovar.plan import Plan, Trial, estimate_cost
from samovar.plan.cost import COMPRESSION
from samovar.runner.judge import LINUX_NAME
from samovar.testbed import HostFacts
from samovar.units import format_bytes

FAR_CLOCK = "the clocks are set by hand or by chrony/ntpd before a campaign"


@dataclass(frozen=True)
class Finding:
    """One thing that a host lacks or does differently; `stops` means that the trials cannot run."""

    host: str
    what: str
    remedy: str
    stops: bool
    trials: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say it in words."""
        many = f" ({len(self.trials)} trial{'s' * (len(self.trials) > 1)})" if self.trials else ""
        return f"{self.host}: {self.what}{many}; {self.remedy}"


@dataclass
class HostNeeds:
    """What a plan asks of one host, each with the trials that ask it."""

    programs: dict[str, list[str]] = field(default_factory=dict)
    congestion_controls: dict[str, list[str]] = field(default_factory=dict)
    qdiscs: dict[str, list[str]] = field(default_factory=dict)
    cc_parameters: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    tracepoints: dict[str, list[str]] = field(default_factory=dict)
    ring: dict[str, list[str]] = field(default_factory=dict)
    pause: dict[str, list[str]] = field(default_factory=dict)


def host_needs(plan: Plan, catalogue: Catalogue) -> dict[str, HostNeeds]:
    """Collect what a plan asks of each host, from the headers of the recipes that it uses."""
    needs: dict[str, HostNeeds] = {}
    for trial in plan.trials:
        scripts = TrialScripts(trial, catalogue, "preflight")
        for host in trial.resolved.hosts:
            _add(needs.setdefault(host, HostNeeds()), trial, host, scripts)
    return needs


def _add(needs: HostNeeds, trial: Trial, host: str, scripts: TrialScripts) -> None:
    plan = trial.resolved.hosts[host]
    for recipe in _recipes(trial, host, scripts):
        _add_header(needs, recipe.header, plan.interfaces, trial.id)
    if plan.cc is not None:
        cc = LINUX_NAME.get(plan.cc, plan.cc)
        needs.congestion_controls.setdefault(cc, []).append(trial.id)
        for parameter in plan.cc_parameters:
            needs.cc_parameters.setdefault((cc, parameter), []).append(trial.id)
    for qdisc in _qdiscs(trial, host, scripts):
        needs.qdiscs.setdefault(qdisc, []).append(trial.id)


def _add_header(needs: HostNeeds, header: Header, interfaces: Iterable[str], trial: str) -> None:
    for program in header.needs:
        needs.programs.setdefault(program, []).append(trial)
    for tracepoint in header.tracepoints:
        needs.tracepoints.setdefault(tracepoint, []).append(trial)
    for kind in header.interfaces_need:
        for interface in interfaces:
            (needs.ring if kind == "ring" else needs.pause).setdefault(interface, []).append(trial)


def _recipes(trial: Trial, host: str, scripts: TrialScripts) -> Iterator[Recipe]:
    os, catalogue = trial.resolved.hosts[host].system, scripts.catalogue
    yield catalogue.recipe("step", "prelude", os)
    yield catalogue.recipe("step", "sweep", os)
    for setting in scripts.settings(host):
        yield catalogue.recipe("setting", setting.recipe, os)
    for process in scripts.processes(host):
        yield catalogue.recipe("generator" if process.kind == "generator" else "logger", process.recipe, os)


def _qdiscs(trial: Trial, host: str, scripts: TrialScripts) -> Iterator[str]:
    path = trial.resolved.path
    if path is None or path.router != host:
        return
    system = trial.resolved.hosts[host].system
    yield from scripts.catalogue.header("setting", "bottleneck", system).modules
    for aqm in dict.fromkeys(way.aqm for way in (path.down, path.up) if way.aqm is not None):
        yield from scripts.catalogue.header("aqm", aqm, system).modules


def needs_of(plan: Plan, catalogue: Catalogue) -> tuple[frozenset[str], frozenset[str]]:
    """Name the congestion controls and queue disciplines that a plan asks of any host's kernel."""
    needs = host_needs(plan, catalogue).values()
    return (
        frozenset(name for need in needs for name in need.congestion_controls),
        frozenset(name for need in needs for name in need.qdiscs),
    )


def examine(
    plan: Plan, catalogue: Catalogue, facts: Mapping[str, HostFacts], clock_tolerance_s: float
) -> Sequence[Finding]:
    """List what each host lacks for a plan, what stops a trial first."""
    found = [
        finding
        for host, needs in host_needs(plan, catalogue).items()
        if host in facts
        for finding in (
            *_examine(host, needs, facts[host], clock_tolerance_s),
            *_space(host, plan, facts[host]),
        )
    ]
    return sorted(found, key=lambda finding: not finding.stops)


def _examine(host: str, needs: HostNeeds, facts: HostFacts, clock_tolerance_s: float) -> Iterator[Finding]:
    offered = (
        ("program", needs.programs, facts.tools),
        ("congestion control", needs.congestion_controls, facts.cc_offered),
        ("queue discipline", needs.qdiscs, facts.qdiscs),
        ("tracepoint", needs.tracepoints, facts.tracepoints),
        ("transmit ring, so no txd, at", needs.ring, facts.rings),
        ("flow control to set at", needs.pause, facts.pauses),
    )
    for what, asked, there in offered:
        for name, trials in asked.items():
            if name not in there:
                known = f"known there: {', '.join(sorted(there)) or 'none'}"
                yield Finding(host, f"no {what} {name}", known, True, tuple(trials))
    for (cc, parameter), trials in needs.cc_parameters.items():
        named = facts.cc_parameters.get(cc)  # of a module that is not loaded nobody knows
        if named is not None and parameter not in named:
            what = f"the congestion control {cc} has no parameter {parameter}"
            yield Finding(host, what, f"it has: {', '.join(named)}", True, tuple(trials))
    if abs(facts.clock_offset_s) > clock_tolerance_s:
        yield Finding(host, f"its clock is {facts.clock_offset_s:+.3f} s from this one's", FAR_CLOCK, False)


def _space(host: str, plan: Plan, facts: HostFacts) -> Iterator[Finding]:
    """Compare the largest trial's traces, compressed as they are written, with the disk that is free."""
    needed_bytes = estimate_cost(plan).host_bytes // COMPRESSION
    if facts.disk_free_bytes < needed_bytes:
        what = f"the disk has {format_bytes(facts.disk_free_bytes, 3)} free"
        remedy = f"a trial needs up to {format_bytes(needed_bytes, 3)}"
        yield Finding(host, what, remedy, True, tuple(trial.id for trial in plan.trials))


def blocked_trials(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Say for each trial that cannot run why not."""
    blocked: dict[str, list[str]] = {}
    for finding in findings:
        if finding.stops:
            for trial in finding.trials:
                blocked.setdefault(trial, []).append(f"{finding.host}: {finding.what}")
    return blocked
