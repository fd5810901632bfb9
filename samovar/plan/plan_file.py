"""The trials of plan.json: written a line each, read back with every number checked."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic import ValidationError

from samovar.errors import PlanError
from samovar.plan.model import Trial
from samovar.plan.pool import KINDS, Pool, components_of, kind_of
from samovar.plan.product import Column, Levels
from samovar.plan.table import Columns, Order, Table, Treatments

KEYS = ("values", "treatments", "trials")
EXPECTED = "expected a plan written by samovar"


def texts_of(table: Table) -> Iterator[str]:
    """Yield the text of the keys values, treatments and trials of plan.json."""
    yield ',\n "values": [\n'
    yield ",\n".join(table.pool.texts)
    yield '\n ],\n "treatments": [\n'
    yield ",\n".join(map(_group_text, table.groups))
    yield '\n ],\n "trials": [\n'
    order = table.order
    rows = zip(table.ids, order.treatments, order.replicates, order.blocks, strict=True)
    yield ",\n".join(
        f'["{id_}",{treatment},{replicate},{block}]' for id_, treatment, replicate, block in rows
    )
    yield "\n ]"


def _group_text(group: Treatments) -> str:
    """Write the treatments of a part, each column a line."""
    factors = dict(zip(group.factors, group.labels, strict=True))
    levels = {name: _text(group.levels.column(number)) for number, name in enumerate(group.factors)}
    values = {name: _texts(column) for name, column in zip(group.components, group.columns, strict=True)}
    head = f'{{"part": {_dumps(group.part)}, "number": {len(group)}, "factors": {_dumps(factors)}'
    return f'{head},\n "levels": {{{_lines(levels)}}},\n "resolved": {{{_lines(values)}}}}}'


def _lines(columns: Mapping[str, str]) -> str:
    return ",".join(f"\n  {_dumps(name)}: {text}" for name, text in columns.items())


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _texts(column: tuple[Column, ...]) -> str:
    """Write a column, or one for each replicate."""
    return _text(column[0]) if len(column) == 1 else f"[{','.join(map(_text, column))}]"


def _text(column: Column) -> str:
    return f"[{','.join(map(str, column))}]"


def read_trials(tree: Mapping[str, Any]) -> Table:
    """Read what texts_of wrote, of the mapping that plan.json is; raises PlanError."""
    try:
        groups = [_Group(one) for one in tree["treatments"]]
        pool, numbers = _read_pool(tree["values"], groups)
        ids, *columns = zip(*tree["trials"], strict=True) if tree["trials"] else ((), (), (), ())
        treatments, replicates, blocks = (array("I", column) for column in columns)
        table = Table(pool, [one.read(numbers) for one in groups], ids, Order(treatments, replicates, blocks))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise PlanError(f"plan.json: its trials cannot be read ({error!r}); {EXPECTED}") from error
    if not all(isinstance(id_, str) for id_ in ids) or max(treatments, default=-1) >= sum(
        map(len, table.groups)
    ):
        raise PlanError(f"plan.json: its trials name treatments that it has not; {EXPECTED}")
    return table


class _Group:
    """The treatments of one part as they stand in the file."""

    def __init__(self, tree: Mapping[str, Any]) -> None:
        self.part, self.number = str(tree["part"]), int(tree["number"])
        self.factors = {str(name): tuple(map(str, labels)) for name, labels in tree["factors"].items()}
        self.levels = [self._level_column(name, tree["levels"][name]) for name in self.factors]
        self.columns = {str(name): self._columns(one) for name, one in tree["resolved"].items()}

    def _level_column(self, factor: str, values: Sequence[int]) -> Column:
        column = self._column(values)
        if max(column, default=-1) >= len(self.factors[factor]):
            raise ValueError(f"{self.part}: a level of {factor} beyond its {len(self.factors[factor])}")
        return column

    def _columns(self, values: Sequence[Any]) -> tuple[Column, ...]:
        if values and isinstance(values[0], list):
            return tuple(map(self._column, values))
        return (self._column(values),)

    def _column(self, values: Sequence[int]) -> Column:
        if len(values) != self.number:
            raise ValueError(f"{self.part}: a column of {len(values)} for {self.number} treatments")
        return array("I", values)

    def read(self, numbers: Mapping[tuple[str, int], int]) -> Treatments:
        """Return the treatments with the numbers that values have in the pool."""
        columns = [
            tuple(_renumbered(column, kind_of(component), numbers) for column in columns)
            for component, columns in self.columns.items()
        ]
        return Treatments(
            part=self.part,
            factors=tuple(self.factors),
            labels=tuple(self.factors.values()),
            levels=Columns(tuple(self.levels), self.number),
            components=tuple(self.columns),
            columns=tuple(columns),
        )


def _renumbered(column: Column, kind: str, numbers: Mapping[tuple[str, int], int]) -> Column:
    known = {one: numbers[kind, one] for one in set(column)}
    return array("I", map(known.__getitem__, column))


def _read_pool(values: Sequence[Any], groups: Sequence[_Group]) -> tuple[Pool, Mapping[tuple[str, int], int]]:
    """Read each value once as each kind that it is used as."""
    pool, numbers = Pool(), {}
    for number, kind in sorted(_used(groups)):
        try:
            numbers[kind, number] = pool.add(kind, KINDS[kind].validate_python(values[number]))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, ("values", number, *first["loc"])))
            raise PlanError(f"plan.json: {where}: {first['msg'].lower()}; {EXPECTED}") from error
    return pool, numbers


def _used(groups: Sequence[_Group]) -> set[tuple[int, str]]:
    return {
        (number, kind_of(component))
        for group in groups
        for component, columns in group.columns.items()
        for number in set(chain.from_iterable(columns))
    }


def table_of(trials: Iterable[Trial]) -> Table:
    """Return trials of any sequence as a table: for plans that were not made here."""
    pool, groups = Pool(), dict[str, _Gathered]()
    ids, places = list[str](), list[tuple[str, int, int, int]]()
    for trial in trials:
        group = groups.setdefault(trial.part, _Gathered(trial))
        ids.append(trial.id)
        places.append((trial.part, group.add(trial, pool), trial.replicate, trial.block))
    begins, end = {}, 0
    for part, group in groups.items():
        begins[part], end = end, end + len(group.rows)
    order = Order(
        array("I", [begins[part] + number for part, number, _, _ in places]),
        array("I", [replicate for _, _, replicate, _ in places]),
        array("I", [block for _, _, _, block in places]),
    )
    return Table(pool, [group.treatments() for group in groups.values()], ids, order)


class _Gathered:
    """The treatments of one part, as they are met."""

    def __init__(self, trial: Trial) -> None:
        self.part, self.factors = trial.part, tuple(trial.treatment)
        self.labels: list[dict[str, int]] = [{} for _ in self.factors]
        self.components = tuple(components_of(trial.resolved))
        self.rows: dict[tuple[Levels, tuple[int, ...]], int] = {}

    def add(self, trial: Trial, pool: Pool) -> int:
        """Return the number of a trial's treatment."""
        levels = tuple(
            known.setdefault(trial.treatment[name], len(known))
            for name, known in zip(self.factors, self.labels, strict=True)
        )
        found = components_of(trial.resolved)
        values = tuple(pool.add(name, found[name]) for name in self.components)
        return self.rows.setdefault((levels, values), len(self.rows))

    def treatments(self) -> Treatments:
        """Return the treatments as a part of the table."""
        levels = [levels for levels, _ in self.rows]
        columns = zip(*(values for _, values in self.rows), strict=True)
        return Treatments(
            part=self.part,
            factors=self.factors,
            labels=tuple(tuple(known) for known in self.labels),
            levels=Columns(tuple(map(_array, zip(*levels, strict=True))), len(levels)),
            components=self.components,
            columns=tuple((_array(column),) for column in columns),
        )


def _array(numbers: Iterable[int]) -> Column:
    return array("I", numbers)
