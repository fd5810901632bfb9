"""Compare a plan with the trials that a campaign has run, and plans of several testbeds with each other.

A campaign on several testbeds uses the plan and the trial ids of the testbed whose name comes first in
alphabetical order. A trial can run on another testbed if all that it sets, runs and records is equal there,
except names of hosts, names of interfaces and addresses. Hosts of two testbeds correspond by role, in the
order of the testbeds' files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from samovar.errors import PlanError
from samovar.plan.model import Trial
from samovar.plan.plan import Plan
from samovar.plan.trials import ALL_COMPONENTS, Trials

DONE, NEW, STALE = "done", "new", "stale"
_HOSTS, _COUNTED = ("host", "router", "from", "to"), ("interfaces", "match")
_ADDRESSES = ("interface", "from_address", "to_address")
"""Keys whose values may differ between testbeds. For lists (_COUNTED), only the length must be equal."""
_NAMES = ("label", "logger", "host", "interface")
"""Keys that name an entry in a list of flows, loggers or captures."""


@dataclass(frozen=True)
class Changed:
    """Results that an edit made stale.

    `changes` says what was edited, `results` has the ids of the results, and `trials` has the ids of the
    trials that replace them.
    """

    changes: tuple[str, ...]
    results: tuple[str, ...]
    trials: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """A plan compared with a campaign. Every id is in one field only.

    `stands`: the trials of the plan that are done. `runs`: all other trials of the plan in its order, each
    with the reason why it runs (new, stale, failed, interrupted, invalid or suspect). `stale`: results of
    trials whose settings have changed since they ran. `orphans`: results of trials that are not in the plan
    any more. Stale and orphaned results stay on disk, but are not analysed. `renamed`: the number of new
    trials that equal an orphan except for the name of a part, factor or level.
    """

    stands: tuple[str, ...]
    runs: Mapping[str, str]
    stale: tuple[Changed, ...] = ()
    orphans: tuple[str, ...] = ()
    renamed: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of trials to run for each reason."""
        return dict(Counter(self.runs.values()))


def compare(plan: Plan, before: Plan | None, ended: Mapping[str, str]) -> Comparison:
    """Compare a plan with a campaign's plan `before`; `ended` says how the campaign's trials ended."""
    planned = dict.fromkeys(plan.ids)
    results = {id_ for id_, how in ended.items() if how == DONE and id_ not in planned}
    stale = tuple(_stale(plan, before, results)) if before is not None and results else ()
    replacing = {id_ for changed in stale for id_ in changed.trials}
    runs = {
        id_: STALE if id_ in replacing else ended.get(id_, NEW) for id_ in planned if ended.get(id_) != DONE
    }
    orphans = results - {id_ for changed in stale for id_ in changed.results}
    renamed = 0
    if before is not None and orphans:
        old = _count_by_value(before, orphans)
        new = _count_by_value(plan, {id_ for id_, reason in runs.items() if reason == NEW})
        renamed = (old & new).total()
    return Comparison(
        stands=tuple(id_ for id_ in planned if ended.get(id_) == DONE),
        runs=runs,
        stale=stale,
        orphans=tuple(id_ for id_ in ended if id_ in orphans),
        renamed=renamed,
    )


def _count_by_value(plan: Plan, only: Collection[str]) -> Counter[str]:
    """Count equal trials of a plan; the key is the JSON of everything that a trial sets, runs and records."""
    found = Counter[str]()
    for group in plan.groups(ALL_COMPONENTS):
        if number := sum(id_ in only for id_ in group.trials):
            found[json.dumps(group.resolved.as_json(), sort_keys=True)] += number
    return found


def _stale(plan: Plan, before: Plan, results: set[str]) -> Iterator[Changed]:
    """Yield the stale results, grouped by equal changes.

    Each result is compared with the planned trial of the same part, levels and replicate.
    """
    old = {_levels_of(trial): trial for trial in before.trials if trial.id in results}
    found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    known: dict[object, tuple[str, ...]] = {}  # all replicates of a treatment differ in the same way
    for now in plan.trials:
        was = old.get(_levels_of(now))
        if was is not None:
            treatment = _levels_of(now)[:2]
            if treatment not in known:
                known[treatment] = tuple(differences(was.resolved.as_json(), now.resolved.as_json()))
            found.setdefault(known[treatment], []).append((was.id, now.id))
    for changes, pairs in found.items():
        yield Changed(changes, *zip(*pairs, strict=True))


def _levels_of(trial: Trial) -> tuple[str, frozenset[tuple[str, str]], int]:
    return trial.part, frozenset(trial.treatment.items()), trial.replicate


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Yield the differences between two JSON values: `path.down.rate_bps 2 -> 3`, `flows.web added`."""
    if before == after:
        return
    old, new = _entries(before), _entries(after)
    if (old or new) and None not in (before, after):
        for key in old | new:
            yield from differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif old or new:
        yield f"{where} {'removed' if old else 'added'}"
    else:
        yield f"{where} {_text(before)} -> {_text(after)}"


def _entries(value: Any) -> dict[str, Any]:
    """Return the entries of a list by name or number; return a mapping unchanged.

    The result is empty for a value that is neither a list nor a mapping.
    """
    if not isinstance(value, list):
        return value if isinstance(value, dict) else {}
    entries = {}
    for number, one in enumerate(value, start=1):
        names = [str(one[key]) for key in _NAMES if key in one] if isinstance(one, dict) else []
        entries["-".join(names) or str(number)] = one
    return entries


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"  # distinguishes any two numbers that were written differently
    return "nothing" if value is None else str(value)


def on_testbed(reference: Plan, own: Plan) -> Plan:
    """Return `own`, the plan of another testbed, with the trial ids of the reference plan.

    Raises PlanError if the experiment differs between the testbeds in more than names of hosts, names of
    interfaces and addresses.
    """
    first, second = reference.trials, own.trials
    both = f"testbeds {reference.testbed} and {own.testbed}"
    refused = f"{both} cannot share a campaign of {reference.experiment}"
    roles, other_roles = _roles(reference), _roles(own)
    if sorted(roles.values()) != sorted(other_roles.values()):
        hosts, other_hosts = ", ".join(roles.values()), ", ".join(other_roles.values())
        raise PlanError(
            f"{refused}: hosts {hosts} and {other_hosts}; use equal numbers of hosts of each role"
        )
    if list(map(len, first.parts)) != list(map(len, second.parts)):
        raise PlanError(f"{refused}: the treatments differ; use the same design on both")
    for part, other in zip(first.parts, second.parts, strict=True):
        for treatment in range(len(part)):
            here = _neutral(part.resolved(treatment).as_json(), roles)
            there = _neutral(other.resolved(treatment).as_json(), other_roles)
            for difference in differences(here, there):
                levels = " ".join(part.labels(treatment).values()) or part.part
                equal = "only addresses and the names of hosts and interfaces may differ"
                raise PlanError(f"{refused}: {difference} in {levels}; {equal}")
    ids = {slot[:2]: id_ for slot, id_ in zip(first.slots, first.ids, strict=True)}
    trials = Trials(second.parts, [ids[slot[:2]] for slot in second.slots], second.slots)
    return own.model_copy(update={"trials": trials})


def _roles(plan: Plan) -> Mapping[str, str]:
    """Return a name for each host, such that corresponding hosts of different testbeds have the same name.

    The name is the role and a number, such as `sender 1`.
    """
    counts, found = Counter[str](), dict[str, str]()
    for name, host in plan.trials[0].resolved.hosts.items():
        counts[host.role] += 1
        found[name] = f"{host.role} {counts[host.role]}"
    return found


def _neutral(value: Any, roles: Mapping[str, str]) -> Any:
    """Return JSON values with roles in place of hosts, and without addresses and interface names."""
    if isinstance(value, list):
        return [_neutral(one, roles) for one in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, one in value.items():
        if key == "hosts" and isinstance(one, list):  # the hosts of a WLAN
            found[key] = [roles[name] for name in one]
        elif key == "hosts":
            found[key] = {roles[name]: _neutral(host, roles) for name, host in one.items()}
        elif key in _COUNTED:
            found[key] = len(one)
        elif key in _HOSTS:
            found[key] = roles.get(one, one)
        elif key not in _ADDRESSES:
            found[key] = _neutral(one, roles)
    return found
