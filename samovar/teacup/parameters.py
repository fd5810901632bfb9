"""Convert TEACUP's V_ variables to factors, and find which values of the experiment each of them changes.

Every value is computed for each combination of the parameters that it depends on, so any arithmetic with
variables is translated. A parameter on which one key depends becomes a factor with the name of the key. If
several keys depend on the parameter, the factor has the parameter's name, and its levels set these keys. If a
value depends on several parameters, these become one factor, whose levels are their combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import keys
from samovar.teacup.static_python import UnreadableError

Value = Any
Names = Mapping[str, Value]
Row = tuple[int, ...]


class NoCounterpartError(Exception):
    """A value of TEACUP has no counterpart in samovar; the message says why."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that is varied: its name in test ids, the variables that it sets, its labels and levels.

    `extras` are values that variables have at all its levels.
    """

    name: str
    variables: frozenset[str]
    labels: tuple[str, ...]
    levels: tuple[Names, ...]
    extras: Names


@dataclass(frozen=True)
class Target:
    """A key of samovar, the V_ variables of TEACUP that set it, and a function that returns its value.

    The value is None if the key is not set. A `required` key needs a constant value even if a factor sets it.
    """

    key: str
    variables: frozenset[str]
    value: Callable[[Names], Value]
    required: bool = False


@dataclass
class Spread:
    """Constant values by key, factors with their levels, and notes on what is left out."""

    constant: dict[str, Value] = field(default_factory=dict)
    factors: dict[str, list[Value]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Table:
    """The indices of the parameters that a value depends on, and the value for each row of levels."""

    numbers: Row
    values: Mapping[Row, Value]

    def without(self, number: int) -> Table:
        """Return the table without the given parameter, or this table if a value depends on the parameter."""
        at = self.numbers.index(number)
        values: dict[Row, Value] = {}
        for row, value in self.values.items():
            if str(values.setdefault((*row[:at], *row[at + 1 :]), value)) != str(value):
                return self
        return Table((*self.numbers[:at], *self.numbers[at + 1 :]), values)


def spread(targets: Iterable[Target], parameters: Sequence[Parameter], names: Names) -> Spread:
    """Separate constant keys from keys that vary as factors; raises PlanError for too many combinations."""
    found, tables = Spread(), dict[str, Table]()
    for target in targets:
        table = _table(target, parameters, names)
        first = next(iter(table.values.values()))
        if table.numbers:
            tables[target.key] = table
        if isinstance(first, NoCounterpartError):
            found.notes += [] if table.numbers else [f"{target.key}: {first}"]
        elif first is not None and (target.required or not table.numbers):
            found.constant[target.key] = first
    for group in _groups(len(parameters), [table.numbers for table in tables.values()]):
        own = {key: table for key, table in tables.items() if set(table.numbers) <= set(group)}
        _add_factor(found, parameters, group, own)
    return found


def _table(target: Target, parameters: Sequence[Parameter], names: Names) -> Table:
    """Return a target's value for each combination of the parameters that it depends on."""
    numbers = tuple(n for n, one in enumerate(parameters) if one.variables & target.variables)
    values: dict[Row, Value] = {}
    for row in product(*(range(len(parameters[number].levels)) for number in numbers)):
        levels = {
            n: v
            for number, at in zip(numbers, row, strict=True)
            for n, v in parameters[number].levels[at].items()
        }
        try:
            values[row] = target.value({**names, **levels})
        except (NoCounterpartError, UnreadableError) as error:
            values[row] = NoCounterpartError(str(error))
    table = Table(numbers, values)
    for number in numbers:
        table = table.without(number)
    return table


def _groups(number: int, together: Sequence[Row]) -> list[Row]:
    """Return groups of parameters: the parameters that one value depends on are in the same group."""
    group_of = {one: {one} for one in range(number)}
    for numbers in together:
        merged = set[int]().union(*(group_of[one] for one in numbers))
        group_of.update(dict.fromkeys(merged, merged))
    return list(dict.fromkeys(tuple(sorted(one)) for one in group_of.values()))


def _add_factor(
    found: Spread, parameters: Sequence[Parameter], group: Row, tables: Mapping[str, Table]
) -> None:
    """Add the factor of a group of parameters, with one level per distinct combination of their values."""
    several = [parameters[number] for number in group]
    name = "-".join(one.name for one in several)
    if not tables:
        if any(len(one.levels) > 1 for one in several):
            found.notes.append(f"{name}: changes nothing that could be translated; it is left out")
        return
    levels: dict[str, dict[str, Value]] = {}
    for row in product(*(range(len(one.levels)) for one in several)):
        label = "-".join(one.labels[at] for one, at in zip(several, row, strict=True)) or "default"
        at = dict(zip(group, row, strict=True))
        values = {key: table.values[tuple(at[n] for n in table.numbers)] for key, table in tables.items()}
        level = {key: value for key, value in values.items() if value is not None}
        lost = [f"{key}: {value}" for key, value in level.items() if isinstance(value, NoCounterpartError)]
        same = [f"the same as {other} in samovar" for other, one in levels.items() if one == level]
        empty = [] if level else ["it sets no value, but a level in samovar must set one"]
        if why := (lost or same or empty)[:1]:
            found.notes.append(f"{name} {label}: {why[0]}; this level is left out")
        else:
            levels[label] = level
    if len(levels) > keys.MOST_LEVELS:
        raise PlanError(f"{name}: {len(levels)} combinations; at most {keys.MOST_LEVELS} levels are possible")
    if not levels:
        found.notes.append(f"{name}: none of its levels has a counterpart in samovar; it is left out")
        return
    targets = {key for level in levels.values() for key in level}
    if len(targets) == 1:
        found.factors[targets.pop()] = [next(iter(level.values())) for level in levels.values()]
    else:
        is_taken = name in (*keys.PLAIN_FACTORS, *keys.TABLE_COLUMNS)
        free = f"{name}-levels" if is_taken else name.replace(".", "-")
        found.factors[free] = [{**level, "label": label} for label, level in levels.items()]
