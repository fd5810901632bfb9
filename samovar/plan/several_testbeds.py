"""Whether testbeds serve an experiment alike, and its trials as they are on each of them.

A campaign on several testbeds has the plan of one of them, the first by name, and its ids. On another the
same treatment is the same trial when all that it sets, runs and records is the same but for names of hosts
and interfaces and for addresses: hosts stand for each other by role, in the order of the testbeds' files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from samovar.errors import PlanError
from samovar.plan.model import CapturePlan, FlowPlan, HostPlan, LoggerPlan, PathPlan
from samovar.plan.plan import Plan
from samovar.plan.table import Table, Treatments

HOST = "hosts."
ADDRESSES = ("from_address", "to_address")


@dataclass(frozen=True)
class _Names:
    """The hosts of one testbed by what stands for them on any: sender 1, router 1."""

    hosts: Mapping[str, str]

    @classmethod
    def of(cls, plan: Plan) -> _Names:
        counts: dict[str, int] = {}
        names: dict[str, str] = {}
        for name, host in plan.trials[0].resolved.hosts.items():
            counts[host.role] = counts.get(host.role, 0) + 1
            names[name] = f"{host.role} {counts[host.role]}"
        return cls(names)

    def component(self, name: str) -> str:
        """Name a component of trials as it is on any testbed."""
        return f"{HOST}{self.hosts[name.removeprefix(HOST)]}" if name.startswith(HOST) else name

    def plain(self, value: object) -> Any:
        """Return a component's value with hosts as they stand for each other, and without addresses."""
        if isinstance(value, tuple):
            return [self.plain(one) for one in value]
        if isinstance(value, PathPlan):
            return self._path(value)
        if isinstance(value, HostPlan):
            return {**value.as_json(), "interfaces": len(value.interfaces)}
        if isinstance(value, FlowPlan):
            told = {key: one for key, one in value.as_json().items() if key not in ADDRESSES}
            return {**told, "from": self._host(value.from_host), "to": self._host(value.to_host)}
        if isinstance(value, CapturePlan | LoggerPlan):
            told = {key: one for key, one in value.as_json().items() if key != "interface"}
            return {**told, "host": self._host(value.host)}
        return value.as_json() if hasattr(value, "as_json") else value

    def _host(self, name: str) -> str:
        return self.hosts.get(name, name)

    def _path(self, path: PathPlan) -> Any:
        told = path.as_json()
        for way in ("down", "up"):
            told[way] = {key: one for key, one in told[way].items() if key != "interface"}
        classes = [{**one, "match": len(one["match"])} for one in told["classes"]]
        return {**told, "router": self._host(path.router), "classes": classes}


def on_testbed(reference: Plan, own: Plan) -> Plan:
    """Return the trials of a reference plan as they are on another testbed: its ids, the other's hosts.

    Raises PlanError where the testbeds do not serve the experiment alike.
    """
    _compare(reference, own)
    order, theirs = reference.table.order, own.table.order
    ids = dict(zip(zip(order.treatments, order.replicates, strict=True), reference.table.ids, strict=True))
    pairs = zip(theirs.treatments, theirs.replicates, strict=True)
    table = Table(own.table.pool, own.table.groups, [ids[pair] for pair in pairs], theirs)
    return own.model_copy(update={"trials": table})


def _compare(reference: Plan, own: Plan) -> None:
    both = f"testbeds {reference.testbed} and {own.testbed} do not serve {reference.experiment} alike"
    names, their_names = _Names.of(reference), _Names.of(own)
    if sorted(names.hosts.values()) != sorted(their_names.hosts.values()):
        found = ", ".join(names.hosts.values()), ", ".join(their_names.hosts.values())
        raise PlanError(f"{both}: hosts {found[0]} and {found[1]}; accepted: the same number of each role")
    groups = list(zip(reference.table.groups, own.table.groups, strict=False))
    if [len(one) for one in reference.table.groups] != [len(one) for one in own.table.groups]:
        raise PlanError(f"{both}: not the same treatments; accepted: the same design on both")
    for one, other in groups:
        for difference in _differences((reference, names, one), (own, their_names, other)):
            raise PlanError(f"{both}: {difference}; accepted: other names and addresses, all else the same")


def _differences(
    one: tuple[Plan, _Names, Treatments], other: tuple[Plan, _Names, Treatments]
) -> Iterator[str]:
    columns, theirs = _columns(*one), _columns(*other)
    for component, column in columns.items():
        for number, (value, their) in enumerate(zip(column, theirs.get(component, ()), strict=True)):
            if value != their:
                treatment = " ".join(one[2].treatment(number % len(one[2])).values())
                where, values = _apart(json.loads(value), json.loads(their))
                yield f"{component}{where} of {treatment or one[2].part} is {values}"


def _columns(plan: Plan, names: _Names, group: Treatments) -> Mapping[str, list[str]]:
    """Return what each component of each treatment comes to, with each different value looked at once."""
    found: dict[str, list[str]] = {}
    for component, columns in zip(group.components, group.columns, strict=True):
        plain = {
            number: json.dumps(names.plain(plan.table.pool.value(number)), sort_keys=True)
            for column in columns
            for number in set(column)
        }
        found[names.component(component)] = [plain[number] for column in columns for number in column]
    return found


def _apart(one: Any, other: Any) -> tuple[str, str]:
    """Find the first place where two values differ: its keys, and what stands there."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        key = next(key for key in one if one[key] != other[key])
        below, words = _apart(one[key], other[key])
        return f".{key}{below}", words
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        number = next(number for number in range(len(one)) if one[number] != other[number])
        below, words = _apart(one[number], other[number])
        return f"[{number + 1}]{below}", words
    return "", f"{one} and {other}"
