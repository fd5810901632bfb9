"""Which hosts are not used any more, and which trials depend on them: values in, decisions out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from samovar.errors import TestbedError
from samovar.hosts import HostsError
from samovar.plan import CapturePlan, FlowPlan, LoggerPlan, PathPlan, Plan, Resolved, Trial, View


@dataclass(frozen=True)
class Record:
    """The trials in a row that failed and named one host, with the treatments that they were of."""

    trials: tuple[str, ...] = ()
    treatments: frozenset[Hashable] = frozenset()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Health:
    """What is known of the hosts of a testbed.

    A host is quarantined after `bound` trials in a row that failed naming it, of two `treatments` at least
    where the plan has more than one: a treatment that nothing can run is not a host's fault. One on
    `probation`, which was quarantined when the campaign last ran, is quarantined by its next failure.
    """

    bound: int
    treatments: int = 1
    probation: frozenset[str] = frozenset()
    records: Mapping[str, Record] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)

    def failed(self, trial: Trial, blamed: Mapping[str, str]) -> Health:
        """Return what is known once a trial has failed for good, naming hosts with a reason each."""
        known = self
        for host, reason in blamed.items():
            known = known._failed(trial, host, reason)
        return known

    def _failed(self, trial: Trial, host: str, reason: str) -> Health:
        if host in self.quarantined:
            return self
        before = self.records.get(host, Record())
        record = Record(
            (*before.trials, trial.id),
            before.treatments | {(trial.part, *sorted(trial.treatment.items()))},
            (*before.reasons, reason),
        )
        known = replace(self, records={**self.records, host: record})
        if host in self.probation:
            return known.without(host, f"failed again as in the run before: {reason}")
        many = len(record.trials) >= self.bound and len(record.treatments) >= min(2, self.treatments)
        return known.without(host, f"{len(record.trials)} trials in a row: {reason}") if many else known

    def served(self, hosts: Iterable[str]) -> Health:
        """Return what is known once a trial has completed on some hosts: their failures are forgotten."""
        clean = frozenset(hosts)
        records = {host: record for host, record in self.records.items() if host not in clean}
        return replace(self, records=records, probation=self.probation - clean)

    def without(self, host: str, reason: str) -> Health:
        """Return what is known once a host is put in quarantine."""
        return replace(self, quarantined={**self.quarantined, host: reason})


def blamed(error: BaseException) -> dict[str, str]:
    """Say which hosts an error names, with the reason of each."""
    if isinstance(error, HostsError):
        return {host: str(one) for host, one in error.errors.items()}
    host = error.host if isinstance(error, TestbedError) else ""
    return {host: str(error)} if host else {}


def needed_hosts(resolved: Resolved) -> frozenset[str]:
    """Name the hosts that a trial cannot do without: where flows end, what routes them, what records.

    Every other host of the testbed is only set to what the experiment says, and may be absent.
    """
    recorded = _hosts_of((*resolved.captures, *resolved.loggers))
    routers = {name for name, host in resolved.hosts.items() if host.role == "router"}
    named = _ends(resolved.flows) | recorded | routers | {_router(resolved.path)}
    return frozenset(named & resolved.hosts.keys())


Needs = Callable[[Trial], frozenset[str]]


def needs_by_trial(plan: Plan) -> Needs:
    """Work out which hosts each trial of a plan needs, once for all trials of a kind."""
    view: View = {"path": _router, "flows": _ends, "captures": _hosts_of, "loggers": _hosts_of}
    by_id: dict[str, frozenset[str]] = {}
    for group in plan.groups(view):
        by_id |= dict.fromkeys(group.trials, needed_hosts(group.resolved))
    return lambda trial: by_id[trial.id]


def _router(path: PathPlan | None) -> str:
    return path.router if path else ""


def _ends(flows: Sequence[FlowPlan]) -> frozenset[str]:
    return frozenset(host for flow in flows for host in (flow.from_host, flow.to_host))


def _hosts_of(entries: Sequence[CapturePlan | LoggerPlan]) -> frozenset[str]:
    return frozenset(one.host for one in entries)


def without_hosts(trial: Trial, gone: Collection[str]) -> Trial:
    """Return a trial that leaves some hosts of its testbed alone; its id is that of the whole one."""
    resolved = trial.resolved
    if not set(gone) & resolved.hosts.keys():
        return trial
    hosts = {name: host for name, host in resolved.hosts.items() if name not in gone}
    return trial.model_copy(update={"resolved": resolved.model_copy(update={"hosts": hosts})})
