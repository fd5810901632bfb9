"""Values that are not a single number or text: buffers, values per direction or host, random quantities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import InitErrorDetails

from samovar.errors import unknown
from samovar.units import UnitError

T = TypeVar("T")


@dataclass(frozen=True)
class Buffer:
    """The size of a queue in packets or bytes, whichever the file gives. A size from a formula has both."""

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


# Last item of the place of an error that concerns the key, not its value. Such a message does not begin with
# the key.
_AT_KEY = ("[key]", 10**9)


def errors_of(error: ValueError) -> Iterator[tuple[tuple[int | str, ...], str, bool]]:
    """Yield each error in a value: its place within the value, its message, and whether it is about a key."""
    if not isinstance(error, ValidationError):
        yield (), str(error), False
        return
    for one in error.errors(include_url=False):
        at_key = "[key]" in one["loc"]
        loc = one["loc"][: one["loc"].index("[key]")] if at_key else one["loc"]
        yield loc, str(one.get("ctx", {}).get("error", one["msg"])), at_key


class ErrorCollector:
    """Collects the errors within one value, to raise them together."""

    def __init__(self) -> None:
        self._details: list[InitErrorDetails] = []

    def add(self, loc: tuple[int | str, ...], message: str, *, key: bool = False) -> None:
        """Add an error about the value at a place or, if `key` is true, about the key at that place."""
        place = (*loc, *_AT_KEY) if key else loc
        error: Any = ValueError(message)
        self._details.append(
            InitErrorDetails(type="value_error", loc=place, input=None, ctx={"error": error})
        )

    def within(self, loc: tuple[int | str, ...], read: Callable[..., Any], *arguments: object) -> Any:
        """Return read(*arguments).

        If this raises ValueError, add its errors at places within `loc`, and return None.
        """
        try:
            return read(*arguments)
        except ValueError as error:
            for place, message, at_key in errors_of(error):
                self.add((*loc, *place), message, key=at_key)
        return None

    def raise_any(self) -> None:
        """Raise the errors, if there are any; pydantic puts the place of the value before their places."""
        if self._details:
            raise ValidationError.from_exception_data("value", self._details)


DISTRIBUTIONS = ("uniform", "exponential")

Parse = Callable[[str], Any]


@dataclass(frozen=True)
class Distribution:
    """The distribution of a random quantity, in the unit of its key.

    `amounts` are the two bounds of a uniform distribution or the mean of an exponential one. They may be
    formulas; `computed` evaluates these. Raises UnitError if the first bound is not below the second.
    """

    name: str
    amounts: tuple[Any, ...]

    def __post_init__(self) -> None:
        numbers = all(isinstance(one, int | float) for one in self.amounts)
        if numbers and self.name == "uniform" and self.amounts[0] >= self.amounts[1]:
            raise UnitError("the first bound must be below the second")

    def computed(self, compute: Callable[[Any], Any]) -> Distribution:
        """Return the distribution with formulas evaluated by `compute`; raises UnitError if LOW >= HIGH."""
        return replace(self, amounts=tuple(map(compute, self.amounts)))

    def quantile(self, share: float) -> float:
        """Return the value below which a draw lies with probability `share` (0 <= share < 1)."""
        first = float(self.amounts[0])
        if self.name == "uniform":
            return first + (float(self.amounts[1]) - first) * share
        return -math.log(1.0 - share) * first

    @property
    def mean(self) -> float:
        """The mean of the distribution."""
        return math.fsum(self.amounts) / len(self.amounts)


def read_distribution(written: Mapping[str, object], parse: Parse) -> Distribution:
    """Read a distribution such as {uniform: [LOW, HIGH]}; `parse` reads its amounts. Raises ValueError."""
    errors = ErrorCollector()
    for key in written:
        if key not in DISTRIBUTIONS:
            errors.add((key,), unknown("key of a random amount", key, DISTRIBUTIONS), key=True)
    errors.raise_any()
    if len(written) != 1:
        raise ValueError("expected one distribution, such as {uniform: [LOW, HIGH]}")
    [(name, bounds)] = written.items()

    def amount(one: object) -> Any:
        if not isinstance(one, str):
            raise ValueError("expected one value")
        return parse(str(one))

    if name == "exponential":
        amounts = [errors.within((name,), amount, bounds)]
    else:
        places = enumerate(bounds if isinstance(bounds, list) else ())
        amounts = [errors.within((name, index), amount, one) for index, one in places]
        if len(amounts) != 2:
            errors.add((name,), "expected two values, [LOW, HIGH]")
    errors.raise_any()
    return Distribution(name, tuple(amounts))
