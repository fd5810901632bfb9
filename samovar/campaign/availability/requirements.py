"""Requirements: what a plan needs of each host, by the headers of its recipes, and which of it is missing."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from samovar.campaign.availability.findings import HERE, Finding
from samovar.campaign.availability.root_access import (
    ROOT_COMMAND,
    ROOT_LOGIN,
    granted,
    refusal,
    root_needs,
)
from samovar.campaign.verdict import LINUX_CC_NAMES
from samovar.hosts import HostFacts
from samovar.plan import TRAFFIC_AND_RECORDING, Cost, Group, HostPlan, Plan, Trial, View, host_bytes
from samovar.recipes import Catalogue, Recipe, TrialScripts, calibration_needs
from samovar.units import format_bytes

PARAMETER = "parameter of "
FEATURE = "kernel feature"
"""Queue disciplines and other kernel modules, by their names in the headers of recipes."""
KERNEL = ("congestion control", FEATURE)
INTERFACES = {"ring": "transmit ring (for txd) at", "pause": "adjustable flow control at"}
LESS = "record less: shorter trials, a smaller snaplen, fewer captures"
SET_CLOCK = "set the clocks by hand or with chrony or ntpd before a campaign"


class Need(NamedTuple):
    """Something that trials need of a host: a program, a congestion control, a kernel feature, a ring."""

    what: str
    name: str


@dataclass(frozen=True)
class HostNeeds:
    """What a plan needs of one host: each need with the ids of the trials that have it."""

    interfaces: Sequence[str]
    trials: Mapping[Need, tuple[str, ...]]

    def names(self, what: str) -> frozenset[str]:
        """Return the names of all needs of one kind."""
        return frozenset(need.name for need in self.trials if need.what == what)


def host_needs(plan: Plan, catalogue: Catalogue, calibrates: bool = False) -> dict[str, HostNeeds]:
    """Return what a plan needs of each host, by the headers of the recipes that it uses.

    With `calibrates`, this includes what measuring paths needs.
    """
    hosts = plan.trials[0].resolved.hosts if len(plan.trials) else {}
    return {host: _host_needs(plan, host, catalogue, calibrates) for host in hosts}


def _host_needs(plan: Plan, host: str, catalogue: Catalogue, calibrates: bool) -> HostNeeds:
    found: dict[Need, dict[int, Group]] = {}
    interfaces: Sequence[str] = ()
    for number, group in enumerate(plan.groups(recipes_view(host))):
        resolved = group.resolved
        interfaces = interfaces or resolved.hosts[host].interfaces
        example = Trial(id="", part=group.part, treatment={}, replicate=1, block=1, resolved=resolved)
        for need in _needs(TrialScripts(example, catalogue, "preflight"), host):
            found.setdefault(need, {})[number] = group
        for name in calibration_needs(resolved, host, catalogue) if calibrates else ():
            found.setdefault(Need("program", name), {})[number] = group
    return HostNeeds(interfaces, {need: plan.trials_of(groups.values()) for need, groups in found.items()})


def recipes_view(host: str) -> View:
    """Return the view of trials that decides which recipes and features a host needs; not sizes and times."""
    return {
        "path": lambda path: path and (path.router, path.router == host and (path.down.aqm, path.up.aqm)),
        f"hosts.{host}": _host_kind,
        "flows": lambda flows: tuple(
            (flow.generator, flow.from_host, flow.to_host, flow.cc) for flow in flows
        ),
        "captures": lambda captures: any(capture.host == host for capture in captures),
        "loggers": lambda loggers: tuple(logger.logger for logger in loggers if logger.host == host),
    }


def _host_kind(plan: HostPlan) -> Hashable:
    values = (plan.txd, plan.mtu_bytes, plan.rwnd_bytes)
    settings = tuple((recipe, tuple(parameters)) for recipe, parameters in plan.settings.items())
    return (
        plan.system,
        plan.cc,
        tuple(plan.cc_parameters),
        plan.interfaces,
        settings,
        *(v is None for v in values),
    )


def _needs(scripts: TrialScripts, host: str) -> Iterator[Need]:
    plan = scripts.resolved.hosts[host]
    recipes = tuple(recipes_at(scripts, host))
    brought = {name for recipe in recipes for name in recipe.header.brings}
    for recipe in recipes:
        yield from (Need("program", name) for name in recipe.header.needs if name not in brought)
        yield from (Need("tracepoint", name) for name in recipe.header.tracepoints)
        yield from (Need(FEATURE, name) for name in recipe.header.modules)
        yield from (Need(*need) for need in root_needs(recipe))
        yield from (
            Need(INTERFACES[kind], at) for kind in recipe.header.interfaces_need for at in plan.interfaces
        )
    for program in scripts.processes(host):
        header = scripts.recipe_of(host, program).header
        ends = {"client": header.client_needs, "server": header.server_needs, None: ()}
        yield from (Need("program", name) for name in ends[program.end])
    for flow_cc in dict.fromkeys(flow.cc for flow in scripts.resolved.flows if flow.from_host == host):
        yield from _cc_needs(flow_cc, ())
    yield from _cc_needs(plan.cc, plan.cc_parameters)
    yield from (Need(FEATURE, name) for name in _aqm_features(scripts, host))


def _cc_needs(cc: str | None, parameters: Iterable[str]) -> Iterator[Need]:
    if cc is not None:
        yield Need("congestion control", cc)
        yield from (Need(f"{PARAMETER}{cc}", one) for one in parameters)


def recipes_at(scripts: TrialScripts, host: str) -> Iterator[Recipe]:
    """Yield the recipes that a host needs for a trial, except those of its queues."""
    system, catalogue = scripts.resolved.hosts[host].system, scripts.catalogue
    steps = ("prelude", "listening", "sweep", "clock", "watch")
    for step in (*steps, "reboot") if scripts.settings(host, True) else steps:
        yield catalogue.recipe("step", step, system)
    for setting in scripts.settings(host):
        yield catalogue.recipe("setting", setting.recipe, system)
    yield from (scripts.recipe_of(host, program) for program in scripts.processes(host))


def _aqm_features(scripts: TrialScripts, host: str) -> Iterator[str]:
    path = scripts.resolved.path
    if path is None or path.router != host:
        return
    system = scripts.resolved.hosts[host].system
    for aqm in dict.fromkeys(one.aqm for one in (path.down, path.up) if one.aqm is not None):
        yield from scripts.catalogue.header("aqm", aqm, system).modules


def needs_of(plan: Plan, catalogue: Catalogue) -> tuple[frozenset[str], frozenset[str]]:
    """Return the congestion controls, by Linux names, and the kernel features that a plan needs anywhere."""
    needs = host_needs(plan, catalogue).values()
    return (
        frozenset(_in_linux(name) for need in needs for name in need.names("congestion control")),
        frozenset(name for need in needs for name in need.names(FEATURE)),
    )


def find_missing(
    plan: Plan,
    catalogue: Catalogue,
    facts: Mapping[str, HostFacts],
    clock_tolerance_s: float,
    calibrates: bool = False,
    floor_bytes: int = 0,
) -> Sequence[Finding]:
    """Return what each host lacks for a plan, what stops trials first; `floor_bytes` of disks stay free."""
    found = [
        finding
        for host, needs in host_needs(plan, catalogue, calibrates).items()
        if host in facts
        for finding in _missing_on(host, needs, facts[host], clock_tolerance_s)
    ]
    found += _space(plan, catalogue, facts, floor_bytes)
    return sorted(found, key=lambda finding: not finding.stops)


def predict_missing(plan: Plan, catalogue: Catalogue, missing: Mapping[str, str]) -> Sequence[Finding]:
    """Predict what hosts lack without asking them; `missing` maps what their kernel lacks to evidence."""
    return [
        Finding(host, f"no {need.what} {need.name}", missing[_in_linux(need.name)], True, needs.trials[need])
        for host, needs in host_needs(plan, catalogue).items()
        for need in needs.trials
        if need.what in KERNEL and _in_linux(need.name) in missing
    ]


def _missing_on(host: str, needs: HostNeeds, facts: HostFacts, clock_tolerance_s: float) -> Iterator[Finding]:
    for need, trials in needs.trials.items():
        offered = _offered(need.what, facts)
        if offered is None or need.name in offered:
            continue
        what, remedy = f"no {need.what} {need.name}", f"it has: {', '.join(sorted(offered)) or 'none'}"
        if need.what in (ROOT_COMMAND, ROOT_LOGIN):
            what, remedy = refusal(*need, needs.interfaces, facts)
        elif need.what.startswith(PARAMETER):
            cc = need.what.removeprefix(PARAMETER)
            what = f"the congestion control {cc} has no parameter {need.name}"
        yield Finding(host, what, remedy, True, trials)
    if abs(facts.clock_offset_s) > clock_tolerance_s:
        what = f"its clock differs by {facts.clock_offset_s:+.3f} s from the controller's"
        yield Finding(host, what, SET_CLOCK, False)


def _in_linux(name: str) -> str:
    """Return the Linux name of a congestion control; other systems use the name itself."""
    return LINUX_CC_NAMES.get(name, name)


def _as_written(name: str) -> str:
    return next((written for written, linux in LINUX_CC_NAMES.items() if linux == name), name)


def _offered(what: str, facts: HostFacts) -> Collection[str] | None:
    """Return what a host has of one kind; None if it is unknown, as for a module that is not loaded."""
    if what.startswith(PARAMETER):
        cc = what.removeprefix(PARAMETER)
        return facts.cc_parameters.get(cc, facts.cc_parameters.get(_in_linux(cc)))
    if what in (ROOT_COMMAND, ROOT_LOGIN):
        return granted(what, facts)
    offered: Mapping[str, Collection[str]] = {
        "program": facts.tools,
        "congestion control": {*facts.cc_offered, *map(_as_written, facts.cc_offered)},
        FEATURE: facts.qdiscs,
        "tracepoint": facts.tracepoints,
        INTERFACES["ring"]: facts.rings,
        INTERFACES["pause"]: facts.pauses,
    }
    return offered[what]


def _space(
    plan: Plan, catalogue: Catalogue, facts: Mapping[str, HostFacts], floor_bytes: int
) -> Iterator[Finding]:
    """Compare what a trial writes on each host, until it is collected, with the free disk space there."""
    groups = plan.groups(TRAFFIC_AND_RECORDING)
    needed: dict[str, dict[int, int]] = {}
    for number, group in enumerate(groups):
        for host, size in host_bytes(group.resolved, catalogue).items():
            if host in facts and size > facts[host].disk_free_bytes - floor_bytes:
                needed.setdefault(host, {})[number] = size
    for host, sizes in needed.items():
        room, most = _room(facts[host].disk_free_bytes, floor_bytes), format_bytes(max(sizes.values()), 3)
        what = f"the disk has {room} and a trial writes up to {most}"
        yield Finding(host, what, LESS, True, plan.trials_of(groups[number] for number in sizes))


def _room(free_bytes: int, floor_bytes: int) -> str:
    free = f"{format_bytes(free_bytes, 3)} free"
    return f"{free}, of which free_space reserves {format_bytes(floor_bytes, 3)}," if floor_bytes else free


def space_here(cost: Cost, results: Path, floor_bytes: int = 0) -> Iterator[Finding]:
    """Compare what all trials write to the results folder with the free disk space there."""
    folder = next(folder for folder in (results, *results.parents) if folder.exists())
    disk = os.statvfs(folder)
    free_bytes = disk.f_bavail * disk.f_frsize
    if cost.controller_bytes and cost.controller_bytes > free_bytes - floor_bytes:
        needed, room = format_bytes(cost.controller_bytes, 3), _room(free_bytes, floor_bytes).rstrip(",")
        what = f"{cost.trials} trials write about {needed}, but the disk of {results} has {room}"
        yield Finding(HERE, what, f"free some, set `results` in config.yaml to another disk, or {LESS}", True)
