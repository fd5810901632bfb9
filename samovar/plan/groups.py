"""Treatments by what is seen of them: what holds for one of a kind holds for all, and is worked out once."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
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
            seen = (self._seen(group, number, look) for number, look in _columns(group, looks))
            self._add(group, [column for column in seen if column is not None])

    def __len__(self) -> int:
        return len(self._examples)

    def _seen(self, group: Treatments, number: int, look: Look) -> Column | None:
        """Return what is seen of a component, as numbers by treatment; None where all look the same."""
        key = (group.part, number, look)
        if key not in self._table.seen:
            self._table.seen[key] = self._look(group, number, look)
        return self._table.seen[key]

    def _look(self, group: Treatments, number: int, look: Look) -> Column | None:
        column, values = group.columns_of(1)[number], group.different[number]
        if look is None or len(values) == 1:
            return column if len(values) > 1 else None
        known: dict[Hashable, int] = {}
        value = self._table.pool.value
        seen = {one: known.setdefault(look(value(one)), len(known)) for one in values}
        return array("I", map(seen.__getitem__, column)) if len(known) > 1 else None

    def _add(self, group: Treatments, columns: list[Column]) -> None:
        """Number the kinds of a part by what is seen of its treatments."""
        length, known = len(group), len(self._examples)
        columns = list({column.tobytes(): column for column in columns}.values())  # hosts are often alike
        if not columns:
            self._examples += [(group, 0)] * bool(length)
            self.numbers.extend(array("I", [known]) * length)
            return
        alone = columns[0] if len(columns) == 1 else None
        backwards = reversed(alone) if alone else zip(*map(reversed, columns), strict=True)
        first = dict(zip(backwards, range(length - 1, -1, -1), strict=True))
        ordered = sorted(first.items(), key=lambda item: item[1])
        kinds: dict[Any, int] = {row: known + index for index, (row, _) in enumerate(ordered)}
        self._examples += [(group, number) for _, number in ordered]
        self.numbers.extend(array("I", map(kinds.__getitem__, alone or zip(*columns, strict=True))))

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


def durations_s(table: Table) -> Sequence[float]:
    """Return how long the traffic of each treatment lasts, in seconds, by its first replicate."""
    kinds = Kinds(table, {"run": lambda run: run.duration_s})
    known = [kinds.resolved(kind).duration_s for kind in range(len(kinds))]
    return [known[kind] for kind in kinds.numbers]


def _columns(group: Treatments, looks: Looks) -> list[tuple[int, Look]]:
    """Return the numbers of the components that are looked at."""
    return [
        (number, looks[key])
        for number, name in enumerate(group.components)
        for key in dict.fromkeys((name, kind_of(name)))
        if key in looks
    ]
