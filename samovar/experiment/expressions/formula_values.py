"""Evaluate formulas in a treatment, and type their values as their keys need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar

from samovar.experiment.expressions.dimension import (
    BYTES,
    FREQUENCY,
    PACKETS,
    RATE,
    SECONDS,
    SHARE,
    Dimension,
    canonical,
    dimension_of,
)
from samovar.experiment.expressions.formula import Formula, is_formula, read_formula
from samovar.experiment.expressions.values import Buffer, Distribution
from samovar.units import ETHERNET_MTU_BYTES, LARGEST, UnitError, format_duration, format_share

T = TypeVar("T")


@dataclass(frozen=True)
class FormulaKind:
    """A kind of value that a formula can give: its dimensions, and how a number becomes a value."""

    expected: str
    dimensions: tuple[Dimension, ...]
    typed: Callable[[Fraction], int | float]
    may_be_zero: bool = False


def _whole(number: Fraction) -> int:
    return int(number + Fraction(1, 2))  # half up; negative numbers are refused before


def _seconds(number: Fraction) -> float:
    return float(Fraction(_whole(number * 10**9), 10**9))


KINDS: Mapping[str, FormulaKind] = {
    "size": FormulaKind("a size such as 1 BDP", (BYTES,), _whole),
    "rate": FormulaKind("a rate such as path.rate / 2", (RATE,), lambda number: _whole(number * 8)),
    "duration": FormulaKind("a time such as 20 RTT", (SECONDS,), _seconds),
    "delay": FormulaKind("a time such as 20 RTT", (SECONDS,), _seconds, may_be_zero=True),
    "packets": FormulaKind("a count of packets such as 10packets", (PACKETS,), _whole),
    "frequency": FormulaKind("a frequency such as RATE / 1MB", (FREQUENCY,), float),
    "share": FormulaKind("a share such as path.loss / 2", (SHARE,), float, may_be_zero=True),
    "buffer": FormulaKind("a size or a count of packets such as 1 BDP", (PACKETS, BYTES), _whole),
}
"""The kinds of values that formulas can give, by name."""


def read_amount(text: str, kind: str, parse: Callable[[str], T]) -> T | Formula:
    """Read a quantity, or a formula for one; raises UnitError."""
    if not is_formula(text):
        return parse(text)
    formula = read_formula(text, kind)
    _fitting(formula)
    if not formula.names:
        Scope({}).value(formula)  # it is constant: errors are reported at once
    return formula


class Lookup(Protocol):
    """Values by their canonical names, each found on demand."""

    def get(self, name: str, /) -> object:
        """Return a value, or None."""


class Scope:
    """The values of one treatment by their canonical names; formulas among them are evaluated on demand.

    Canonical names are those of dimension.canonical: path.rate.down, path.rtt, mtu, traffic.bulk.size.
    Values are numbers in bytes, bit/s and seconds, shares as fractions, Buffers, Formulas, or None.
    """

    def __init__(self, values: Lookup) -> None:
        self._values = values
        self._open: list[str] = []

    def value(self, amount: object) -> object:
        """Return the typed value of a formula, and any other amount unchanged; raises UnitError.

        A distribution is returned with its formulas evaluated.
        """
        if isinstance(amount, Distribution):
            return amount.computed(self.value)
        return self._typed(amount) if isinstance(amount, Formula) else amount

    def _typed(self, formula: Formula) -> int | float | Buffer:
        kind = KINDS[formula.kind]
        try:
            number, dimension = self._fitted(formula)
            _check_range(number, kind)
            return self._buffer(number, dimension) if formula.kind == "buffer" else kind.typed(number)
        except UnitError as error:
            text = f"'{formula.text}': "
            raise UnitError(str(error) if str(error).startswith(text) else text + str(error)) from None

    def _buffer(self, number: Fraction, dimension: Dimension) -> Buffer:
        """Return a queue's size in packets and in bytes: a queue discipline counts one of them."""
        packets = number if dimension == PACKETS else number / self.number("MTU")
        size = number if dimension == BYTES else number * self.number("MTU")
        return Buffer(max(_whole(packets), 1), _whole(size))

    def _fitted(self, formula: Formula) -> tuple[Fraction, Dimension]:
        """Return the number in the dimension that the key takes."""
        number, wanted = formula.term.number(self.number), _fitting(formula)
        power = wanted.bytes - formula.term.dimension.bytes
        return number * self.number("MTU") ** power if power else number, wanted

    def number(self, name: str) -> Fraction:
        """Return the value of a name in bytes, seconds, bytes per second or as a fraction.

        Raises UnitError for a name without a value, and for a value that depends on itself.
        """
        name = canonical(name)
        if name in self._open:
            cycle = " -> ".join([*self._open[self._open.index(name) :], name])
            raise UnitError(f"the value depends on itself ({cycle})")
        self._open.append(name)
        try:
            return self._number(name)
        finally:
            self._open.pop()

    def _number(self, name: str) -> Fraction:
        if name.startswith("BDP."):
            direction = name.removeprefix("BDP.")
            return self.number(f"path.rate.{direction}") * self.number("path.rtt")
        value = self._values.get(name)
        if value is None:
            return self._absent(name)
        typed = self.value(value)
        if isinstance(typed, Buffer):
            packets = Fraction(typed.packets or 0)
            return packets * self.number("MTU") if typed.bytes is None else Fraction(typed.bytes)
        if isinstance(typed, Distribution):
            return Fraction(typed.mean)
        number = Fraction(str(typed))
        return number / 8 if dimension_of(name) == RATE else number

    def _absent(self, name: str) -> Fraction:
        if name == "mtu":
            return Fraction(ETHERNET_MTU_BYTES)
        if name == "path.rtt" and self._values.get("path.delay.down") is not None:
            return self.number("path.delay.down") + self.number("path.delay.up")
        raise UnitError(f"{name} has no value here; expected one, as a value or a factor")


def computed_text(text: str, scope: Scope) -> str:
    """Return a parameter's text, or the value of a formula as text: 10ms for `RTT / 2`.

    A text that is not a valid formula is returned unchanged. Raises UnitError when a formula has no value.
    """
    if not is_formula(text):
        return text
    try:
        dimension = read_formula(text, "").term.dimension
    except UnitError:
        return text  # such as a word with a hyphen
    kind = next((kind for kind in _WRITTEN if KINDS[kind].dimensions == (dimension,)), None)
    return text if kind is None else _WRITTEN[kind](scope.value(read_formula(text, kind)))


_WRITTEN: Mapping[str, Callable[[object], str]] = {
    "size": lambda value: f"{value}B",
    "rate": lambda value: f"{value}bit",
    "delay": lambda value: format_duration(float(str(value))),
    "packets": lambda value: f"{value}packets",
    "share": lambda value: format_share(float(str(value))),
}


def _check_range(number: Fraction, kind: FormulaKind) -> None:
    if number < 0 or (number == 0 and not kind.may_be_zero):
        raise UnitError(f"is {'zero' if number == 0 else 'negative'}; expected {kind.expected}")
    if number > LARGEST:
        raise UnitError(f"is too large; expected {kind.expected}")
    if kind.dimensions == (SHARE,) and number > 1:
        raise UnitError("is more than 100%; expected 0% to 100%")
    if not kind.may_be_zero and not kind.typed(number):
        raise UnitError(f"is less than one; expected {kind.expected}")


def _fitting(formula: Formula) -> Dimension:
    """Return the dimension of the key that a formula fits; raises UnitError if it fits none."""
    kind, own = KINDS[formula.kind], formula.term.dimension
    for wanted in kind.dimensions:
        if own == wanted:
            return wanted
    for wanted in kind.dimensions:
        if own.in_bytes() == wanted.in_bytes():
            return wanted
    raise UnitError(f"'{formula.text}' is {own}; expected {kind.expected}")
