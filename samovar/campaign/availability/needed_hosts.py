"""Find the hosts that a trial needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from samovar.plan import CapturePlan, FlowPlan, LoggerPlan, PathPlan, Plan, Resolved, Trial, View


def needed_hosts(resolved: Resolved) -> frozenset[str]:
    """Return the hosts that a trial needs: senders, receivers, routers, and hosts with captures or loggers.

    The testbed's other hosts only get the experiment's settings; the trial can run without them.
    """
    recorded = _hosts_of((*resolved.captures, *resolved.loggers))
    routers = {name for name, host in resolved.hosts.items() if host.role == "router"}
    named = _ends(resolved.flows) | recorded | routers | {_router(resolved.path)}
    return frozenset(named & resolved.hosts.keys())


def needed_hosts_by_trial(plan: Plan) -> Mapping[str, frozenset[str]]:
    """Return the hosts that each trial of a plan needs, by the id of the trial."""
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
    """Return a copy of a trial, with the same id, whose resolved values lack the hosts in `gone`."""
    resolved = trial.resolved
    if not set(gone) & resolved.hosts.keys():
        return trial
    hosts = {name: host for name, host in resolved.hosts.items() if name not in gone}
    return replace(trial, source=resolved.model_copy(update={"hosts": hosts}))
