"""Quarantine of hosts after repeated failures, and the hosts that a trial cannot run without."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from samovar.errors import TestbedError
from samovar.hosts import HostsError
from samovar.plan import CapturePlan, FlowPlan, LoggerPlan, PathPlan, Plan, Resolved, Trial, View


@dataclass(frozen=True)
class Health:
    """The health of a testbed's hosts; methods return the new health.

    A host is quarantined after `bound` failed trials in a row that blame it. They must be of two treatments
    if the plan has more than one `treatments`: a treatment that runs nowhere is not the fault of a host. A
    host on `probation`, which was quarantined when the campaign last ran, is quarantined by one failure.
    `failures` maps hosts to the treatments of the failed trials in a row that blame them.
    """

    bound: int
    treatments: int = 1
    probation: frozenset[str] = frozenset()
    failures: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)

    def failed(self, trial: Trial, blamed: Mapping[str, str]) -> Health:
        """Return the health after a trial has failed for good and blames hosts, each with a reason."""
        health = self
        for host, reason in blamed.items():
            health = health._failed(trial, host, reason)
        return health

    def _failed(self, trial: Trial, host: str, reason: str) -> Health:
        if host in self.quarantined:
            return self
        treatment = (trial.part, *sorted(trial.treatment.items()))
        failed = (*self.failures.get(host, ()), treatment)
        health = replace(self, failures={**self.failures, host: failed})
        if host in self.probation:
            return health.without(host, f"failed again as in the previous run: {reason}")
        if len(failed) >= self.bound and len(set(failed)) >= min(2, self.treatments):
            return health.without(host, f"{len(failed)} trials in a row: {reason}")
        return health

    def served(self, hosts: Iterable[str]) -> Health:
        """Return the health after a trial has completed on some hosts: their failures are forgotten."""
        clean = frozenset(hosts)
        failures = {host: failed for host, failed in self.failures.items() if host not in clean}
        return replace(self, failures=failures, probation=self.probation - clean)

    def without(self, host: str, reason: str) -> Health:
        """Return the health after a host is quarantined."""
        return replace(self, quarantined={**self.quarantined, host: reason})


def blamed(error: BaseException) -> dict[str, str]:
    """Return the hosts that an error is about, each with the reason."""
    if isinstance(error, HostsError):
        return {host: str(one) for host, one in error.errors.items()}
    host = error.host if isinstance(error, TestbedError) else ""
    return {host: str(error)} if host else {}


def needed_hosts(resolved: Resolved) -> frozenset[str]:
    """Return the hosts that a trial needs: the ends of flows, routers, and hosts with captures or loggers.

    Other hosts of the testbed only get the settings of the experiment, and may be missing.
    """
    recorded = _hosts_of((*resolved.captures, *resolved.loggers))
    routers = {name for name, host in resolved.hosts.items() if host.role == "router"}
    named = _ends(resolved.flows) | recorded | routers | {_router(resolved.path)}
    return frozenset(named & resolved.hosts.keys())


def needed_hosts_by_trial(plan: Plan) -> Mapping[str, frozenset[str]]:
    """Return the hosts that each trial of a plan needs, by its id."""
    view: View = {"path": _router, "flows": _ends, "captures": _hosts_of, "loggers": _hosts_of}
    hosts: dict[str, frozenset[str]] = {}
    for group in plan.groups(view):
        hosts |= dict.fromkeys(group.trials, needed_hosts(group.resolved))
    return hosts


def _router(path: PathPlan | None) -> str:
    return path.router if path else ""


def _ends(flows: Sequence[FlowPlan]) -> frozenset[str]:
    return frozenset(host for flow in flows for host in (flow.from_host, flow.to_host))


def _hosts_of(entries: Sequence[CapturePlan | LoggerPlan]) -> frozenset[str]:
    return frozenset(one.host for one in entries)


def without_hosts(trial: Trial, gone: Collection[str]) -> Trial:
    """Return a trial without some hosts of its testbed, with the same id."""
    resolved = trial.resolved
    if not set(gone) & resolved.hosts.keys():
        return trial
    hosts = {name: host for name, host in resolved.hosts.items() if name not in gone}
    return trial.model_copy(update={"resolved": resolved.model_copy(update={"hosts": hosts})})
