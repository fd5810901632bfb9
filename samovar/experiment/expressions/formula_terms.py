"""The terms of formulas: numbers, names and operations, each with its dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from samovar.experiment.expressions.dimension import Dimension, alike, product, quotient
from samovar.units import UnitError


class Value(NamedTuple):
    """A number in bytes, seconds, bytes per second, packets, or as a fraction, and what it is."""

    number: Fraction
    dimension: Dimension


Lookup = Callable[[str], Fraction]


@dataclass(frozen=True)
class Literal:
    """A number or quantity as it is written."""

    value: Value

    @property
    def dimension(self) -> Dimension:
        """What it is."""
        return self.value.dimension

    def number(self, lookup: Lookup) -> Fraction:
        """Return its number."""
        return self.value.number


@dataclass(frozen=True)
class Name:
    """A value of the treatment, such as RTT or path.rate."""

    text: str
    dimension: Dimension

    def number(self, lookup: Lookup) -> Fraction:
        """Return what the treatment has for it."""
        return lookup(self.text)


@dataclass(frozen=True)
class Operation:
    """Two or more terms put together: one of + - * / min max."""

    sign: str
    terms: tuple[Term, ...]
    column: int
    dimension: Dimension

    def number(self, lookup: Lookup) -> Fraction:
        """Compute it; raises UnitError for a division by zero."""
        numbers = [self._fitted(term, lookup) for term in self.terms]
        if self.sign in ("min", "max"):
            return min(numbers) if self.sign == "min" else max(numbers)
        left, right = numbers
        if self.sign == "/" and right == 0:
            raise UnitError(f"a division by zero at column {self.column}")
        if self.sign in "*/":
            return left * right if self.sign == "*" else left / right
        return left + right if self.sign == "+" else left - right

    def _fitted(self, term: Term, lookup: Lookup) -> Fraction:
        """Return a term's number, in bytes where the others of a sum are."""
        number = term.number(lookup)
        if self.sign in "*/" or term.dimension == self.dimension:
            return number
        return number * lookup("MTU") ** term.dimension.packets


Term = Literal | Name | Operation

_COMBINED: Mapping[str, Callable[[Dimension, Dimension], Dimension]] = {
    "+": alike,
    "-": alike,
    "min": alike,
    "max": alike,
    "*": product,
    "/": quotient,
}


def operation(sign: str, terms: tuple[Term, ...], column: int) -> Operation:
    """Put terms together; raises UnitError when their dimensions do not go together."""
    dimension = terms[0].dimension
    for term in terms[1:]:
        try:
            dimension = _COMBINED[sign](dimension, term.dimension)
        except UnitError as error:
            raise UnitError(f"{error} ('{sign}' at column {column})") from None
    return Operation(sign, terms, column, dimension)


def names_of(term: Term) -> Iterator[str]:
    """Yield the names in a term as often as they stand there."""
    if isinstance(term, Name):
        yield term.text
    elif isinstance(term, Operation):
        for one in term.terms:
            yield from names_of(one)
