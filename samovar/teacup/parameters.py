"""TEACUP's V_ variables: which values of an experiment they change, as factors of linked levels.

Every value is computed for each combination of the parameters that it depends on. What depends on one
parameter becomes a level of a factor of that name; parameters on which a value depends together become one
factor, whose levels are their combinations. So any arithmetic with variables is translated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import keys
from samovar.teacup.static_python import UnreadableError

MOST_COMBINATIONS = 20_000
Value = Any
Names = Mapping[str, Value]
Row = tuple[int, ...]


class NoCounterpartError(Exception):
    """A value of TEACUP cannot be said here; the message says why."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that is varied: its name in test ids, the variables that it sets, its labels and levels."""

    name: str
    variables: frozenset[str]
    labels: tuple[str, ...]
    levels: tuple[Names, ...]


@dataclass(frozen=True)
class Target:
    """A key here, the V_ variables that it depends on, and its value, None if it is not set.

    A `required` key needs a value beside the factor that sets it.
    """

    key: str
    variables: frozenset[str]
    value: Callable[[Names], Value]
    required: bool = False


@dataclass
class Spread:
    """The values that are constant, by key, the factors with their levels, and notes on what was lost."""

    constant: dict[str, Value] = field(default_factory=dict)
    factors: dict[str, list[Value]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    treatments: int = 1


Table = tuple[Row, dict[Row, Value]]
"""The numbers of the parameters that a value depends on, and the value for each row of their levels."""


def spread(targets: Sequence[Target], parameters: Sequence[Parameter], names: Names) -> Spread:
    """Divide targets into constant ones and levels of factors; raises PlanError for too many combinations."""
    found, tables = Spread(), dict[str, Table]()
    for target in targets:
        numbers, values = _table(target, parameters, names)
        if numbers:
            tables[target.key] = numbers, values
        first = next(iter(values.values()))
        if isinstance(first, NoCounterpartError) and not numbers:
            found.notes.append(f"{target.key}: {first}")
        elif (
            first is not None
            and not isinstance(first, NoCounterpartError)
            and (target.required or not numbers)
        ):
            found.constant[target.key] = first
    for group in _groups(len(parameters), [numbers for numbers, _ in tables.values()]):
        _add_factor(found, [parameters[one] for one in group], group, tables)
    return found


def _table(target: Target, parameters: Sequence[Parameter], names: Names) -> Table:
    numbers = tuple(n for n, one in enumerate(parameters) if one.variables & target.variables)
    rows = list(_rows(parameters, numbers))
    values = {row: _value(target, _names(parameters, numbers, row, names)) for row in rows}
    for number in reversed(numbers):  # without the parameters that make no difference
        at = numbers.index(number)
        without: dict[Row, list[Value]] = {}
        for row, value in values.items():
            without.setdefault((*row[:at], *row[at + 1 :]), []).append(value)
        if all(str(one) == str(several[0]) for several in without.values() for one in several):
            numbers, values = (
                (*numbers[:at], *numbers[at + 1 :]),
                {row: one[0] for row, one in without.items()},
            )
    return numbers, values


def _rows(parameters: Sequence[Parameter], numbers: Row) -> Iterator[Row]:
    many = 1
    for number in numbers:
        many *= len(parameters[number].levels)
    if many > MOST_COMBINATIONS:
        names = ", ".join(parameters[number].name for number in numbers)
        raise PlanError(f"one value depends on {many} combinations of {names}; at most {MOST_COMBINATIONS}")
    return product(*(range(len(parameters[number].levels)) for number in numbers))


def _names(parameters: Sequence[Parameter], numbers: Row, row: Row, names: Names) -> Names:
    levels = (parameters[number].levels[level] for number, level in zip(numbers, row, strict=True))
    return {**names, **{name: value for level in levels for name, value in level.items()}}


def _value(target: Target, names: Names) -> Value:
    try:
        return target.value(names)
    except (NoCounterpartError, UnreadableError) as error:
        return NoCounterpartError(str(error))


def _groups(number: int, together: Sequence[Row]) -> list[Row]:
    """Return the parameters in groups: those that some value depends on together."""
    group_of = {one: {one} for one in range(number)}
    for numbers in together:
        merged = set[int]().union(*(group_of[one] for one in numbers))
        group_of.update(dict.fromkeys(merged, merged))
    return list(dict.fromkeys(tuple(sorted(one)) for one in group_of.values()))


def _add_factor(found: Spread, group: Sequence[Parameter], numbers: Row, tables: Mapping[str, Table]) -> None:
    name = "-".join(one.name for one in group)
    own = {key: table for key, table in tables.items() if set(table[0]) <= set(numbers)}
    if not own and all(len(one.levels) == 1 for one in group):
        return
    if not own:
        found.notes.append(f"{name}: changes nothing that could be translated; it is left out")
        return
    levels: dict[str, dict[str, Value]] = {}
    for row in product(*(range(len(one.levels)) for one in group)):
        label = "-".join(one.labels[level] for one, level in zip(group, row, strict=True))
        level, why = _level(own, dict(zip(numbers, row, strict=True)))
        same = next((other for other, one in levels.items() if one == level), None)
        if why or same is not None:
            found.notes.append(f"{name} {label}: {why or f'the same as {same} here'}; this level is left out")
        else:
            levels[label] = level
    if len(levels) > keys.MOST_LEVELS:
        raise PlanError(f"{name}: {len(levels)} combinations; at most {keys.MOST_LEVELS} levels are possible")
    if not levels:
        found.notes.append(f"{name}: none of its levels can be said here")
        return
    found.treatments *= len(levels)
    targets = {key for level in levels.values() for key in level}
    if len(targets) == 1 and all(level for level in levels.values()):
        found.factors[targets.pop()] = [next(iter(level.values())) for level in levels.values()]
    else:
        free = f"{name}-levels" if name in keys.PLAIN_FACTORS else name.replace(".", "-")
        found.factors[free] = [{**level, "label": label} for label, level in levels.items()]


def _level(own: Mapping[str, Table], row: Mapping[int, int]) -> tuple[dict[str, Value], str]:
    """Return what a level sets, and why it cannot be said here."""
    level: dict[str, Value] = {}
    for key, (numbers, values) in own.items():
        value = values[tuple(row[one] for one in numbers)]
        if isinstance(value, NoCounterpartError):
            return {}, f"{key}: {value}"
        if value is not None:
            level[key] = value
    return level, ""
