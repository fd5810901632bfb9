"""Values that are not a single number or text: buffers, values per direction or host, random quantities."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from samovar.errors import unknown
from samovar.units import UnitError

T = TypeVar("T")


@dataclass(frozen=True)
class Buffer:
    """The size of a queue. A file gives packets or bytes, and the other is None; a formula gives both."""

    packets: int | None
    bytes: int | None


@dataclass(frozen=True)
class Directional(Generic[T]):
    """One value for each direction: `down` leads from bottleneck.from to bottleneck.to, `up` leads back.

    None means that the direction has no value.
    """

    down: T | None = None
    up: T | None = None


@dataclass(frozen=True)
class PerHost(Generic[T]):
    """Values by host or role, such as {sender: cdg, sender2: cubic}."""

    hosts: Mapping[str, T]


Written = str | Mapping[str, Any]
"""A level's value as the file has it: text, {down: 1Mbit, up: 1Mbit}, {sender: cdg}, {uniform: [0s, 5s]}."""


UNKNOWN_KEY = "unknown_key"
"""Type of an error about a key that is not accepted at all; other errors are about the key's value."""


def errors_of(error: ValueError) -> Iterator[tuple[tuple[int | str, ...], str, bool]]:
    """Yield each error in a value: its place within the value, its message, and whether it is about a key."""
    if not isinstance(error, ValidationError):
        yield (), str(error), False
        return
    for one in error.errors(include_url=False):
        yield one["loc"], str(one.get("ctx", {}).get("error", one["msg"])), one["type"] == UNKNOWN_KEY


def read_each(
    written: Mapping[Any, Any], read: Callable[[Any], T], what: str = "", known: Collection[str] | None = None
) -> dict[Any, T]:
    """Return a mapping with each value converted by `read`. If `known` is given, it has the accepted keys.

    `what` is the word for a key in messages. Raises ValidationError with the errors of all keys and values,
    each with its place in the mapping; pydantic prepends the place of the mapping.
    """
    found, details = {}, list[InitErrorDetails]()

    def add(place: tuple[int | str, ...], kind: str, message: str) -> None:
        error = PydanticCustomError(kind, "{message}", {"message": message})
        details.append(InitErrorDetails(type=error, loc=place, input=None))

    for key, value in written.items():
        if known is not None and key not in known:
            add((key,), UNKNOWN_KEY, unknown(what, key, known))
            continue
        try:
            found[key] = read(value)
        except ValueError as error:
            for place, message, at_key in errors_of(error):
                add((key, *place), UNKNOWN_KEY if at_key else "value_error", message)
    if details:
        raise ValidationError.from_exception_data("value", details)
    return found


DISTRIBUTIONS = ("uniform", "exponential")


@dataclass(frozen=True)
class Distribution:
    """The distribution of a random quantity, in the unit of its key.

    `amounts` are the two bounds of a uniform distribution or the mean of an exponential one. They may be
    formulas. Raises UnitError if the first bound is not below the second.
    """

    name: str
    amounts: tuple[Any, ...]

    def __post_init__(self) -> None:
        numbers = all(isinstance(one, int | float) for one in self.amounts)
        if numbers and self.name == "uniform" and self.amounts[0] >= self.amounts[1]:
            raise UnitError("the first bound must be below the second")

    def quantile(self, share: float) -> float:
        """Return the quantile of the distribution at the probability `share` (0 <= share < 1)."""
        first = float(self.amounts[0])
        if self.name == "uniform":
            return first + (float(self.amounts[1]) - first) * share
        return -math.log(1.0 - share) * first

    @property
    def mean(self) -> float:
        """The mean of the distribution."""
        return math.fsum(self.amounts) / len(self.amounts)


def read_distribution(written: Mapping[str, object], read: Callable[[Any], Any]) -> Distribution:
    """Read a distribution such as {uniform: [LOW, HIGH]}; `read` parses each amount. Raises ValueError."""

    def amounts(distribution: tuple[str, object]) -> tuple[Any, ...]:
        name, bounds = distribution
        if name == "exponential":
            return (read(bounds),)
        if not isinstance(bounds, list) or len(bounds) != 2:
            raise ValueError("expected two values, [LOW, HIGH]")
        return tuple(read_each(dict(enumerate(bounds)), read).values())

    named = {name: (name, bounds) for name, bounds in written.items()}
    found = read_each(named, amounts, "key of a random amount", DISTRIBUTIONS)
    if len(found) != 1:
        raise ValueError("expected one distribution, such as {uniform: [LOW, HIGH]}")
    return Distribution(*found.popitem())
