"""Treatments by what is seen of them: what holds for one of a kind holds for all, and is worked out once."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

from samovar.plan.model import Resolved
from samovar.plan.pool import kind_of, resolved_of
from samovar.plan.product import Column
from samovar.plan.table import Table, Treatments

Look = Callable[[Any], Hashable] | None
"""What is looked at of a component's value; None is all of it."""
Looks = Mapping[str, Look]
"""By component: run, path, hosts (all of them) or hosts.NAME, flows, captures, loggers."""
EVERYTHING: Looks = dict.fromkeys(("run", "path", "hosts", "flows", "captures", "loggers"))
RECORDED: Looks = dict.fromkeys(("run", "path", "flows", "captures", "loggers"))
"""What decides how long a trial takes and what it leaves."""


class Kinds:
    """The treatments of a plan in kinds that look the same; of replicates that differ the first counts.

    `numbers` holds the kind of each treatment, counted through all parts; kinds are numbered as they come.
    """

    def __init__(self, table: Table, looks: Looks) -> None:
        self._table = table
        self.numbers: Column = array("I")
        self._examples: list[tuple[Treatments, int]] = []
        for group in table.groups:
            self._add(group, [self._seen(column, look) for column, look in _columns(group, looks)])

    def __len__(self) -> int:
        return len(self._examples)

    def _seen(self, column: Column, look: Look) -> Column:
        if look is None:
            return column
        known: dict[Hashable, int] = {}
        value = self._table.pool.value
        seen = {number: known.setdefault(look(value(number)), len(known)) for number in set(column)}
        return array("I", map(seen.__getitem__, column))

    def _add(self, group: Treatments, columns: list[Column]) -> None:
        length = len(group)
        if not columns:
            columns = [array("I", [0]) * length]
        backwards = zip(zip(*map(reversed, columns), strict=True), range(length - 1, -1, -1), strict=True)
        first = sorted(dict(backwards).items(), key=lambda item: item[1])
        kinds = {row: len(self._examples) + index for index, (row, _) in enumerate(first)}
        self._examples += [(group, number) for _, number in first]
        self.numbers.extend(map(kinds.__getitem__, zip(*columns, strict=True)))

    def treatments(self) -> Mapping[int, int]:
        """Count the treatments of each kind."""
        return Counter(self.numbers)

    def trials(self, only: Collection[str] | None = None) -> Mapping[int, int]:
        """Count the trials of each kind, or some of them by id."""
        treatments, ids = self._table.order.treatments, self._table.ids
        chosen = (
            treatments if only is None else (t for t, id_ in zip(treatments, ids, strict=True) if id_ in only)
        )
        return Counter(map(self.numbers.__getitem__, chosen))

    def ids(self, kinds: Collection[int]) -> list[str]:
        """Return the ids of all trials of some kinds, in the plan's order."""
        numbers = map(self.numbers.__getitem__, self._table.order.treatments)
        return [id_ for id_, kind in zip(self._table.ids, numbers, strict=True) if kind in kinds]

    def part(self, kind: int) -> str:
        """Name the part of a kind."""
        return self._examples[kind][0].part

    def levels(self, kind: int) -> dict[str, str]:
        """Return the levels of the first treatment of a kind."""
        group, number = self._examples[kind]
        return group.treatment(number)

    def resolved(self, kind: int) -> Resolved:
        """Return what the first treatment of a kind comes to."""
        group, number = self._examples[kind]
        values = map(self._table.pool.value, group.values(number, 1))
        return resolved_of(dict(zip(group.components, values, strict=True)))


def _columns(group: Treatments, looks: Looks) -> list[tuple[Column, Look]]:
    named = zip(group.components, group.columns_of(1), strict=True)
    return [
        (column, looks[key])
        for name, column in named
        for key in dict.fromkeys((name, kind_of(name)))
        if key in looks
    ]
