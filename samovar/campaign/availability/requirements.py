"""Derive from recipe headers what a plan needs on each host, and find what the hosts lack."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from samovar.campaign.availability.disk_space import full_disks
from samovar.campaign.availability.findings import Finding
from samovar.campaign.availability.root_access import ROOT_COMMAND, ROOT_LOGIN, refusal, root_needs
from samovar.campaign.policy import Policy
from samovar.experiment import keys
from samovar.hosts import HostFacts
from samovar.plan import Group, HostPlan, Plan, Trial, View
from samovar.recipes import Catalogue, Header, Recipe, TrialScripts, calibration_needs

PARAMETER = "parameter of "
FEATURE = "kernel feature"
"""The kind of a need for a queue discipline or another kernel module, as listed in a header's `modules`."""
INTERFACES = {"ring": "transmit ring (for txd) at", "pause": "adjustable flow control at"}
SET_CLOCK = "set the clocks by hand or with chrony or ntpd before a campaign"


class Need(NamedTuple):
    """Something that trials need on a host: its kind (such as "program" or "congestion control") and name."""

    what: str
    name: str


class Alternative(NamedTuple):
    """A recipe with which the user may replace a recipe that a host cannot run.

    `kind` is "generator" or "logger". `needs` is what the replacement needs on the host.
    """

    kind: str
    name: str
    needs: frozenset[Need]


@dataclass(frozen=True)
class HostNeeds:
    """What a plan needs on one host.

    `trials` maps each need to the ids of the trials that have it. `notes` maps kernel features to the
    explanation to show if they are missing. `alternatives` maps each need of a generator or logger to
    replacement recipes that do not have this need.
    """

    system: str
    interfaces: Sequence[str]
    trials: Mapping[Need, tuple[str, ...]]
    notes: Mapping[Need, str]
    alternatives: Mapping[Need, Collection[Alternative]]

    def names(self, what: str) -> frozenset[str]:
        """Return the names of all needs of one kind."""
        return frozenset(need.name for need in self.trials if need.what == what)

    @property
    def probed_programs(self) -> frozenset[str]:
        """The programs to look for on the host: those that trials or their replacement recipes need."""
        others = {need for every in self.alternatives.values() for one in every for need in one.needs}
        return self.names("program") | {need.name for need in others if need.what == "program"}


def host_needs(plan: Plan, catalogue: Catalogue, calibrates: bool = False) -> dict[str, HostNeeds]:
    """Return what a plan's recipes need on each host.

    With `calibrates`, the result includes what the recipes that calibrate paths need.
    """
    return {host: _host_needs(plan, host, catalogue, calibrates) for host in _hosts(plan)}


def _hosts(plan: Plan) -> Mapping[str, HostPlan]:
    return plan.trials[0].resolved.hosts if len(plan.trials) else {}


def _examples(plan: Plan, host: str, catalogue: Catalogue) -> Iterator[tuple[Group, TrialScripts]]:
    """Yield each group of trials with equal needs on a host, and the scripts of one trial of the group."""
    for group in plan.groups(recipes_view(host)):
        example = Trial(id="", part=group.part, treatment={}, replicate=1, block=1, source=group.resolved)
        yield group, TrialScripts(example, catalogue, "preflight")


def _host_needs(plan: Plan, host: str, catalogue: Catalogue, calibrates: bool) -> HostNeeds:
    found: dict[Need, dict[int, Group]] = {}
    notes: dict[Need, str] = {}
    alternatives: dict[Need, dict[Alternative, None]] = {}
    interfaces: Sequence[str] = ()
    for number, (group, scripts) in enumerate(_examples(plan, host, catalogue)):
        interfaces = interfaces or scripts.resolved.hosts[host].interfaces
        for need in _needs(scripts, host):
            found.setdefault(need, {})[number] = group
        for header in (recipe.header for recipe in recipes_at(scripts, host)):
            notes |= dict.fromkeys(
                (Need(FEATURE, name) for name in header.modules), header.modules_note or ""
            )
        for need, other in _alternatives(scripts, host):
            alternatives.setdefault(need, {})[other] = None
        for name in calibration_needs(scripts.resolved, host, catalogue) if calibrates else ():
            found.setdefault(Need("program", name), {})[number] = group
    trials = {need: plan.trials_of(groups.values()) for need, groups in found.items()}
    return HostNeeds(_hosts(plan)[host].system, interfaces, trials, notes, alternatives)


def recipes_view(host: str) -> View:
    """Return a view in which trials are equal only if they need the same recipes and features on a host."""
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
    settings = tuple((recipe, tuple(parameters)) for recipe, parameters in plan.settings.items())
    absent = tuple(value is None for value in (plan.txd, plan.mtu_bytes, plan.rwnd_bytes))
    return plan.system, plan.cc, tuple(plan.cc_parameters), plan.interfaces, settings, absent


def _needs(scripts: TrialScripts, host: str) -> Iterator[Need]:
    plan = scripts.resolved.hosts[host]
    for recipe in recipes_at(scripts, host):
        header = recipe.header
        yield from _own_needs(header)
        yield from (Need(*need) for need in root_needs(recipe))
        yield from (Need(INTERFACES[kind], at) for kind in header.interfaces_need for at in plan.interfaces)
    for program in scripts.processes(host):
        header = scripts.recipe_of(host, program).header
        yield from (Need("program", name) for name in header.needs_of(program.end))
    ccs = [*(flow.cc for flow in scripts.resolved.flows if flow.from_host == host), plan.cc]
    yield from (Need("congestion control", cc) for cc in dict.fromkeys(ccs) if cc is not None)
    yield from (Need(f"{PARAMETER}{plan.cc}", one) for one in plan.cc_parameters if plan.cc is not None)


def _own_needs(header: Header, end: str | None = None) -> Iterator[Need]:
    """Yield the programs, tracepoints and kernel features that a recipe needs.

    With `end`, the programs that a generator needs at this end of a flow are included.
    """
    yield from (Need("program", name) for name in (*header.needs, *header.needs_of(end)))
    yield from (Need("tracepoint", name) for name in header.tracepoints)
    yield from (Need(FEATURE, name) for name in header.modules)


def _alternatives(scripts: TrialScripts, host: str) -> Iterator[tuple[Need, Alternative]]:
    """Yield each need of the generators and loggers on a host, with each recipe that avoids the need.

    Such a recipe can replace the recipe of the generator or logger, and does not have the need itself.
    """
    system, catalogue = scripts.resolved.hosts[host].system, scripts.catalogue
    for program in scripts.processes(host):
        header = scripts.recipe_of(host, program).header
        kind = "generator" if program.kind == "generator" else "logger"
        recorders = catalogue.quantities(system).get(header.records or "", ())
        for name in header.alternatives if kind == "generator" else recorders:
            other = frozenset(_own_needs(catalogue.header(kind, name, system), program.end))
            for need in _own_needs(header, program.end):
                if name != program.recipe and need not in other:
                    yield need, Alternative(kind, name, other)


def recipes_at(scripts: TrialScripts, host: str) -> Iterator[Recipe]:
    """Yield the recipes from which a trial's scripts for a host are rendered."""
    system, catalogue, path = scripts.resolved.hosts[host].system, scripts.catalogue, scripts.resolved.path
    steps = ("prelude", "listening", "sweep", "clock", "watch")
    for step in (*steps, "reboot") if scripts.settings(host, True) else steps:
        yield catalogue.recipe("step", step, system)
    yield from (setting.recipe for setting in scripts.settings(host))
    yield from (scripts.recipe_of(host, program) for program in scripts.processes(host))
    aqms = (path.down.aqm, path.up.aqm) if path is not None and path.router == host else ()
    yield from (catalogue.recipe("aqm", aqm, system) for aqm in dict.fromkeys(aqms) if aqm is not None)


def used_recipes(plan: Plan, catalogue: Catalogue) -> Iterator[Recipe]:
    """Yield the recipes that trials of a plan use, some more than once.

    Raises RecipeError, DefinitionError.
    """
    for host in _hosts(plan):
        for _, scripts in _examples(plan, host, catalogue):
            yield from recipes_at(scripts, host)


def check_recipes(plan: Plan, catalogue: Catalogue) -> None:
    """Read every recipe that a run of a plan may use. Raises RecipeError, DefinitionError."""
    for _ in used_recipes(plan, catalogue):
        pass
    for system in {host.system for host in _hosts(plan).values()}:
        for kind in ("step", "fact"):
            for name in sorted(catalogue.names(kind, system)):
                catalogue.recipe(kind, name, system)


def needs_of(plan: Plan, catalogue: Catalogue) -> tuple[frozenset[str], frozenset[str]]:
    """Return the congestion controls (Linux names) and the kernel features that a plan needs on any host."""
    needs = host_needs(plan, catalogue).values()
    return (
        frozenset(keys.canonical_cc(name) for need in needs for name in need.names("congestion control")),
        frozenset(name for need in needs for name in need.names(FEATURE)),
    )


def find_missing(
    plan: Plan, catalogue: Catalogue, facts: Mapping[str, HostFacts], policy: Policy
) -> Sequence[Finding]:
    """Return a finding for everything that a host lacks for a plan; findings that stop trials come first.

    A clock that differs too much from the controller's is a finding too.
    """
    found = [
        finding
        for host, needs in host_needs(plan, catalogue, policy.calibrate).items()
        if host in facts
        for finding in _missing_on(host, needs, facts[host], policy.config.clock_tolerance_s)
    ]
    found += mtus_beyond_limits(plan, facts)
    found += full_disks(plan, catalogue, facts, policy.config.free_space)
    return sorted(found, key=lambda finding: not finding.stops)


def mtus_beyond_limits(plan: Plan, facts: Mapping[str, HostFacts]) -> Iterator[Finding]:
    """Yield a finding for each MTU that an interface's driver refuses, with the trials that set the MTU."""
    for host, known in facts.items():
        limits = {one.name: one.max_mtu_bytes for one in known.interfaces if one.max_mtu_bytes is not None}
        for group in plan.groups({f"hosts.{host}": attrgetter("mtu_bytes", "interfaces")}):
            own = group.resolved.hosts.get(host)
            mtu_bytes = (own.mtu_bytes if own is not None else None) or 0
            for name in own.interfaces if own is not None else ():
                if mtu_bytes > limits.get(name, mtu_bytes):
                    what = f"mtu {mtu_bytes} is more than {name} accepts"
                    yield Finding(host, what, f"use {limits[name]} or less", True, tuple(group.trials))


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
            what = f"cc.{need.name}: the congestion control {cc} has no parameter {need.name}"
        elif note := needs.notes.get(need):
            remedy = f"{note.removesuffix('.')}; {remedy}"
        else:
            remedy = ", or ".join(_replacements(need, needs, facts)) or remedy
        yield Finding(host, what, remedy, True, trials)
    if abs(facts.clock_offset_s) > clock_tolerance_s:
        what = f"its clock differs by {facts.clock_offset_s:+.3f} s from the controller's"
        yield Finding(host, what, SET_CLOCK, False)


def _replacements(need: Need, needs: HostNeeds, facts: HostFacts) -> Iterator[str]:
    """Yield remedies for an unmet need: recipes to use in its place, and how to install a missing program."""
    usable: dict[str, dict[str, None]] = {}
    for one in needs.alternatives.get(need, ()):
        if all(other.name in (_offered(other.what, facts) or ()) for other in one.needs):
            usable.setdefault(one.kind, {})[one.name] = None
    yield from (f"use {kind} {' or '.join(names)}, which the host can run" for kind, names in usable.items())
    system = keys.OPERATING_SYSTEMS[needs.system.partition("-")[0]]
    if need.what == "program" and need.name in system.packages:
        yield f"install it: `{system.install} {system.packages[need.name]}`"


def _offered(what: str, facts: HostFacts) -> Collection[str] | None:
    """Return the names that a host offers for a kind of need; None if they are unknown.

    The parameters of a congestion control are unknown as long as its module is not loaded.
    """
    if what.startswith(PARAMETER):
        cc = what.removeprefix(PARAMETER)
        return facts.cc_parameters.get(cc, facts.cc_parameters.get(keys.canonical_cc(cc)))
    if what in (ROOT_COMMAND, ROOT_LOGIN):
        if facts.sudo is None:
            return None  # root may do everything
        return facts.sudo.allowed if what == ROOT_COMMAND else ()
    ccs = {*facts.cc_offered, "newreno"} if "reno" in facts.cc_offered else facts.cc_offered
    offered: Mapping[str, Collection[str]] = {
        "program": facts.tools,
        "congestion control": ccs,
        FEATURE: facts.qdiscs,
        "tracepoint": facts.tracepoints,
        INTERFACES["ring"]: facts.rings,
        INTERFACES["pause"]: facts.pauses,
    }
    return offered[what]
