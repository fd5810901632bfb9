"""Trials as a table: values held once, columns of numbers; a trial is put together when it is asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Protocol, overload

from samovar.plan.model import Resolved, Trial
from samovar.plan.pool import Pool, resolved_of
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

    @cached_property
    def different(self) -> tuple[frozenset[int], ...]:
        """The numbers of the values that each component has, in the first replicate."""
        return tuple(frozenset(column[0]) for column in self.columns)

    def columns_of(self, replicate: int) -> list[Column]:
        """Return the column of every component for a replicate."""
        return [column[(replicate - 1) % len(column)] for column in self.columns]


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
        self.seen: dict[object, Column | None] = {}  # what groups.Kinds works out, for the next who asks
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
