"""Trials as a table: values held once, columns of numbers; a trial is put together when it is asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Protocol, overload

from samovar.plan.model import Resolved, Trial
from samovar.plan.pool import HOST, Pool, resolved_of
from samovar.plan.product import Column, Levels


class LevelColumns(Protocol):
    """The levels of treatments, as their numbers."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Levels:
        """Return the levels of one treatment."""

    def column(self, factor: int) -> Column:
        """Return the level of one factor for all treatments."""


@dataclass(frozen=True)
class Columns:
    """The levels of treatments as columns, one for each factor."""

    columns: tuple[Column, ...]
    length: int

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: int) -> Levels:
        return tuple(column[number] for column in self.columns)

    def column(self, factor: int) -> Column:
        """Return the level of one factor for all treatments."""
        return self.columns[factor]


@dataclass(frozen=True)
class Treatments:
    """The treatments of one part: the levels of each, and the number in the pool of each component's value.

    A component has one column, or one for each replicate where random draws make replicates differ.
    """

    part: str
    factors: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    levels: LevelColumns
    components: tuple[str, ...]
    columns: tuple[tuple[Column, ...], ...]

    def __len__(self) -> int:
        return len(self.levels)

    def treatment(self, number: int) -> dict[str, str]:
        """Return the levels of a treatment as they are written, by factor."""
        levels = self.levels[number]
        return {name: self.labels[i][levels[i]] for i, name in enumerate(self.factors)}

    def values(self, number: int, replicate: int) -> tuple[int, ...]:
        """Return the numbers of a trial's values, in the order of the components."""
        return tuple(column[(replicate - 1) % len(column)][number] for column in self.columns)

    @property
    def drawn(self) -> int:
        """How many replicates are held apart; 1 where all are alike."""
        return max((len(column) for column in self.columns), default=1)

    def columns_of(self, replicate: int) -> list[Column]:
        """Return the column of every component for a replicate."""
        return [column[(replicate - 1) % len(column)] for column in self.columns]

    def rows(self, components: Sequence[str], replicate: int) -> Iterator[tuple[int, ...]]:
        """Yield, for each treatment, the numbers of some components' values (`hosts` means all hosts')."""
        chosen = [
            column
            for name, column in zip(self.components, self.columns_of(replicate), strict=True)
            if name in components or (name.startswith(HOST) and "hosts" in components)
        ]
        return zip(*chosen, strict=True) if chosen else iter([()] * len(self))


@dataclass(frozen=True)
class Order:
    """Columns of equal length: the treatment of each trial (counted through all parts), replicate, block."""

    treatments: Column
    replicates: Column
    blocks: Column


class Table(Sequence[Trial]):
    """The trials of a plan in order."""

    def __init__(self, pool: Pool, groups: Sequence[Treatments], ids: Sequence[str], order: Order) -> None:
        self.pool, self.groups, self.ids, self.order = pool, tuple(groups), ids, order
        self._ends = list(accumulate(len(group) for group in self.groups))
        self._resolved = lru_cache(maxsize=1024)(self._put_together)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        if isinstance(index, slice):
            return [self._trial(one) for one in range(*index.indices(len(self)))]
        return self._trial(range(len(self))[index])

    def __iter__(self) -> Iterator[Trial]:
        return map(self._trial, range(len(self)))

    def treatments(self) -> Iterator[tuple[Trial, int]]:
        """Yield the first trial of every treatment, in the order of the file, and how many trials it has."""
        first = self._first
        counts = Counter(self.order.treatments)
        for number in range(self._ends[-1] if self._ends else 0):
            if counts[number]:
                yield self._trial(first[number]), counts[number]

    def alike(self, *components: str) -> Iterator[tuple[Trial, int]]:
        """Yield one trial for each set of trials with the same values of some components, and their number.

        Components are run, path, hosts, flows, captures and loggers. What depends on them alone need be
        worked out only for these, which are few where trials are many.
        """
        counts = Counter(self.order.treatments)
        for place, group in enumerate(self.groups):
            begin = self._ends[place] - len(group)
            for replicate in range(1, group.drawn + 1):
                found: dict[tuple[int, ...], list[int]] = {}
                for number, row in enumerate(group.rows(components, replicate)):
                    entry = found.setdefault(row, [number, 0])
                    entry[1] += counts[begin + number] // group.drawn
                for number, trials in found.values():
                    yield self._example(place, number, replicate), trials

    def _example(self, place: int, number: int, replicate: int) -> Trial:
        group = self.groups[place]
        if group.drawn == 1:
            return self._trial(self._first[self._ends[place] - len(group) + number])
        values = group.values(number, replicate)
        return Trial(
            id="",
            part=group.part,
            treatment=group.treatment(number),
            replicate=replicate,
            block=replicate,
            resolved=lambda: self._resolved(place, values),
        )

    @cached_property
    def _first(self) -> dict[int, int]:
        """The first trial of each treatment."""
        backwards = zip(reversed(self.order.treatments), range(len(self) - 1, -1, -1), strict=True)
        return dict(backwards)

    def _trial(self, number: int) -> Trial:
        treatment, replicate = self.order.treatments[number], self.order.replicates[number]
        place = bisect_right(self._ends, treatment)
        group = self.groups[place]
        local = treatment - (self._ends[place] - len(group))
        return Trial(
            id=self.ids[number],
            part=group.part,
            treatment=group.treatment(local),
            replicate=replicate,
            block=self.order.blocks[number],
            resolved=lambda: self._resolved(place, group.values(local, replicate)),
        )

    def _put_together(self, place: int, values: tuple[int, ...]) -> Resolved:
        components = self.groups[place].components
        return resolved_of(dict(zip(components, map(self.pool.value, values), strict=True)))
