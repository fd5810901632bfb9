"""Compare plans: with what a campaign has already run, and between several testbeds.

A campaign on several testbeds has the plan of one of them, the first by name, and its ids. On another testbed
the same treatment is the same trial if all that it sets, runs and records is equal except for the names of
hosts and interfaces and the addresses. Hosts correspond by role, in the order of the testbeds' files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from samovar.errors import PlanError
from samovar.plan.model import Trial
from samovar.plan.plan import Plan
from samovar.plan.trials import ALL_COMPONENTS, HOST, Component, Treatments, Trials

DONE, NEW, STALE = "done", "new", "stale"
ABSENT = "nothing"
DIGITS = 15
"""So many digits distinguish any two numbers that were written differently."""
_HOSTS, _COUNTED = ("host", "router", "from", "to"), ("interfaces", "match")
_ADDRESSES = ("interface", "from_address", "to_address")
"""The keys of a plan that differ between testbeds: names of hosts, lists of names, names and addresses."""
_NAMES = (("label",), ("logger", "host"), ("host", "interface"), ("match",))
"""The keys that identify the entries of a list: flows, loggers, captures, classes of the path."""


@dataclass(frozen=True)
class Changed:
    """Results that an edit made stale: the differences, their trials, and the trials that replace them."""

    changes: tuple[str, ...]
    results: tuple[str, ...]
    trials: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """A plan compared with a campaign; every id is in one place only.

    `stands` are trials of the plan that are done. `runs` maps each other trial, in the plan's order, to the
    reason why it runs: new, stale (it replaces a result of the trial before an edit), or how the last attempt
    ended: failed, interrupted or invalid. `stale` and `orphans` are results that stay on disk but no longer
    count: those of edited trials, and those of trials that are no longer planned. `renamed` counts the new
    trials that set, run and record the same as an orphan: their part, factor or level has a new name.
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
    """Compare a plan with the plan of a campaign.

    `ended` maps the id of each trial that the campaign knows to `done`, or to how its last attempt ended.
    """
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
    """Count some trials of a plan by the JSON of all that they set, run and record."""
    found = Counter[str]()
    for group in plan.groups(ALL_COMPONENTS):
        if number := sum(id_ in only for id_ in group.trials):
            found[json.dumps(group.resolved.as_json(), sort_keys=True)] += number
    return found


def _stale(plan: Plan, before: Plan, results: set[str]) -> Iterator[Changed]:
    """Pair each result with the planned trial of the same part, levels and replicate, by what changed."""
    numbers = (number for number, id_ in enumerate(before.ids) if id_ in results)
    old = {_levels_of(trial): trial for trial in map(before.trials.__getitem__, numbers)}
    pairs: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    known: dict[object, tuple[str, ...]] = {}
    for now in plan.trials:
        was = old.get(_levels_of(now))
        if was is None:
            continue
        treatment = _levels_of(now)[:2]  # all replicates of a treatment differ in the same way
        if treatment not in known:
            known[treatment] = tuple(differences(was.resolved.as_json(), now.resolved.as_json()))
        pairs.setdefault(known[treatment], []).append((was.id, now.id))
    for changes, ids in pairs.items():
        yield Changed(changes, tuple(one for one, _ in ids), tuple(one for _, one in ids))


def _levels_of(trial: Trial) -> tuple[str, frozenset[tuple[str, str]], int]:
    return trial.part, frozenset(trial.treatment.items()), trial.replicate


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Yield the differences between two plain values: `path.down.buffer_packets 320 -> 640`."""
    if before == after:
        return
    old, new = _named(before), _named(after)
    if old is None or new is None:
        yield f"{where} {_text(before)} -> {_text(after)}"
        return
    for key in [*old, *(key for key in new if key not in old)]:
        yield from differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)


def _named(value: Any) -> Mapping[str, Any] | None:
    """Return a mapping, or a list of mappings by the names of its entries; None for any other value."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        keys = next((keys for keys in _NAMES if all(key in one for key in keys for one in value)), None)
        names = ["-".join(_text(one[key]) for key in keys) for one in value] if keys else []
        return dict(zip(names, value, strict=True)) if len(set(names)) == len(value) else None
    return None


def _text(value: Any) -> str:
    if value is None or value in ({}, []):
        return ABSENT
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_text(one)}" for key, one in value.items() if one not in (None, {}, []))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value))
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def on_testbed(reference: Plan, own: Plan) -> Plan:
    """Return the trials of a reference plan on another testbed: the ids of the first, the hosts of the other.

    Raises PlanError if the experiment differs between the testbeds in more than names and addresses.
    """
    first, second = reference.trials, own.trials
    both = f"testbeds {reference.testbed} and {own.testbed}"
    roles, other_roles = _roles(reference), _roles(own)
    if sorted(roles.values()) != sorted(other_roles.values()):
        hosts, other_hosts = ", ".join(roles.values()), ", ".join(other_roles.values())
        message = f"hosts {hosts} and {other_hosts}; use testbeds with as many hosts of each role"
        raise PlanError(f"{both} cannot share a campaign of {reference.experiment}: {message}")
    if list(map(len, first.parts)) != list(map(len, second.parts)):
        raise PlanError(
            f"{both} have different treatments of {reference.experiment}; use the same design on both"
        )
    for part, other in zip(first.parts, second.parts, strict=True):
        columns, other_columns = _by_role(part, roles), _by_role(other, other_roles)
        for name, column in columns.items():
            pairs: dict[tuple[Component, Component], int] = {}
            for number, pair in enumerate(zip(column, other_columns[name], strict=True)):
                pairs.setdefault(pair, number % len(part))
            for (one, two), treatment in pairs.items():
                values = _neutral(json.loads(one.text), roles), _neutral(json.loads(two.text), other_roles)
                for difference in differences(*values, name):
                    levels = " ".join(part.labels(treatment).values()) or part.part
                    message = f"{difference} in {levels}; only names and addresses may differ"
                    raise PlanError(f"{both} cannot share a campaign of {reference.experiment}: {message}")
    ids = {slot[:2]: id_ for slot, id_ in zip(first.slots, first.ids, strict=True)}
    trials = Trials(second.parts, [ids[slot[:2]] for slot in second.slots], second.slots)
    return own.model_copy(update={"trials": trials})


def _roles(plan: Plan) -> Mapping[str, str]:
    """Return what each host is called on any testbed: its role and a number, such as `sender 1`."""
    counts, found = Counter[str](), dict[str, str]()
    for name, host in plan.trials[0].resolved.hosts.items():
        counts[host.role] += 1
        found[name] = f"{host.role} {counts[host.role]}"
    return found


def _by_role(part: Treatments, roles: Mapping[str, str]) -> Mapping[str, list[Component]]:
    """Return the component of each treatment in each replicate, by name with a role in place of the host."""
    return {
        f"{HOST}{roles[name.removeprefix(HOST)]}" if name.startswith(HOST) else name: list(chain(*columns))
        for name, columns in part.components.items()
    }


def _neutral(value: Any, roles: Mapping[str, str]) -> Any:
    """Return plain values with roles in place of hosts, and without names of interfaces and addresses."""
    if isinstance(value, list):
        return [_neutral(one, roles) for one in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, one in value.items():
        if key in _COUNTED:
            found[key] = len(one)
        elif key in _HOSTS:
            found[key] = roles.get(one, one)
        elif key not in _ADDRESSES:
            found[key] = _neutral(one, roles)
    return found
