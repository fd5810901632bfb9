"""Formulas such as `1 BDP`, `2 * BDP + 10packets`, `max(1 BDP, 50KB)`: parse, check dimensions, evaluate.

A formula has numbers, quantities, names, `+ - * /`, parentheses, `min` and `max`; a number before a name
multiplies the name's value. Python's parser reads formulas, but Python syntax that is not in this list is
refused. Arithmetic is exact (fractions). Packets and bytes are converted with the MTU.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple, TypeVar

from samovar import units
from samovar.errors import unknown
from samovar.experiment.values import Buffer, Distribution
from samovar.units import ETHERNET_MTU_BYTES, LARGEST, UnitError, format_duration, format_share

T = TypeVar("T")
LONGEST = 200
"""Longest formula in characters, to limit the work of parsing."""


class Dimension(NamedTuple):
    """Exponents of bytes, seconds and packets; `share` marks a number that was written with %."""

    bytes: int = 0
    seconds: int = 0
    packets: int = 0
    share: bool = False

    def in_bytes(self) -> Dimension:
        """Return the dimension after packets are converted to bytes."""
        return Dimension(self.bytes + self.packets, self.seconds, 0, self.share)

    def plus(self, other: Dimension) -> Dimension:
        """Return the dimension of a sum. Packets are converted to bytes if the other operand is in bytes."""
        if self != other and self.in_bytes() != other.in_bytes():
            raise UnitError(f"{self} and {other} cannot be added or compared")
        return self if self == other else self.in_bytes()

    def times(self, other: Dimension, power: int = 1) -> Dimension:
        """Return the dimension of a product, or of a quotient (power -1). A share times bytes gives bytes."""
        bytes, seconds, packets = (a + power * b for a, b in zip(self[:3], other[:3], strict=True))
        share = self.share + power * other.share > 0 and not any((*self[:3], *other[:3]))
        return Dimension(bytes, seconds, packets, share)

    def __str__(self) -> str:
        named = zip(("bytes", "seconds", "packets"), self[:3], strict=True)
        powers = [name if power == 1 else f"{name}^{power}" for name, power in named if power]
        return _DIMENSION_NAMES.get(self) or f"a quantity in {' * '.join(powers)}"


NUMBER = Dimension()
BYTES = Dimension(bytes=1)
SECONDS = Dimension(seconds=1)
PACKETS = Dimension(packets=1)
SHARE = Dimension(share=True)
RATE = Dimension(bytes=1, seconds=-1)
FREQUENCY = Dimension(seconds=-1)

_DIMENSIONS: Mapping[units.Kind | None, tuple[Dimension, Fraction]] = {
    None: (NUMBER, Fraction(1)),
    units.SIZE: (BYTES, Fraction(1)),
    units.RATE: (RATE, Fraction(1, 8)),
    units.DURATION: (SECONDS, Fraction(1, 10**9)),
    units.PACKETS: (PACKETS, Fraction(1)),
    units.SHARE: (SHARE, Fraction(1, 100)),
}
"""The dimension of each kind of quantity, and the size of its smallest unit (1 bit/s is 1/8 byte/s)."""
_DIMENSION_NAMES = {FREQUENCY: "a frequency"} | {
    dimension: f"a {kind.name if kind else 'number'}" for kind, (dimension, _) in _DIMENSIONS.items()
}

KEYS_OF_PATH = {
    "rate": RATE,
    "buffer": BYTES,
    "delay": SECONDS,
    "jitter": SECONDS,
    "loss": SHARE,
    "loss_burst": PACKETS,
    "reorder": SHARE,
    "duplicate": SHARE,
}
KEYS_OF_FLOW = {
    "start": SECONDS,
    "size": BYTES,
    "duration": SECONDS,
    "rwnd": BYTES,
    "count": NUMBER,
    "every": SECONDS,
}
_FULL_NAMES = {"RATE": "path.rate", "BUFFER": "path.buffer", "RTT": "path.rtt", "MTU": "mtu"}
_OF_DIRECTIONS = {"BDP": BYTES, "RATE": RATE, "BUFFER": BYTES} | {
    f"path.{key}": dimension for key, dimension in KEYS_OF_PATH.items()
}
"""Names that may be followed by .down or .up."""
NAMES: Mapping[str, Dimension] = {
    "RTT": SECONDS,
    "MTU": BYTES,
    "path.rtt": SECONDS,
    "rwnd": BYTES,
    "mtu": BYTES,
    "txd": NUMBER,
    "duration": SECONDS,
    **{
        f"{name}{direction}": dimension
        for direction in ("", ".down", ".up")
        for name, dimension in _OF_DIRECTIONS.items()
        if f"{name}{direction}" != "path.delay"
    },
}
"""Names that formulas of every experiment may use. RATE, without a direction, means RATE.down."""


def canonical(name: str) -> str:
    """Return the full name of a value: path.rate.down for RATE, BDP.down for BDP."""
    stem = name.removesuffix(".down").removesuffix(".up")
    if stem not in _OF_DIRECTIONS:
        return _FULL_NAMES.get(name, name)
    return _FULL_NAMES.get(stem, stem) + (name.removeprefix(stem) or ".down")


def dimension_of(name: str) -> Dimension | None:
    """Return the dimension of a name, or None if formulas have no such name."""
    if name in NAMES:
        return NAMES[name]
    owner, _, key = name.rpartition(".")
    return KEYS_OF_FLOW.get(key) if owner.startswith("traffic.") and owner != "traffic." else None


ValueOf = Callable[[str], Fraction]


class Term(NamedTuple):
    """A subexpression of a formula: its dimension, and a function that computes its number.

    Numbers are in bytes, seconds, bytes per second or packets; shares are fractions.
    """

    dimension: Dimension
    number: Callable[[ValueOf], Fraction]

    def counted_in(self, dimension: Dimension) -> Callable[[ValueOf], Fraction]:
        """Return a function that computes the term's number and converts it to `dimension`."""
        power = self.dimension.packets - dimension.packets
        if not power:
            return self.number
        return lambda value_of: self.number(value_of) * value_of("MTU") ** power


@dataclass(frozen=True)
class Formula:
    """A formula that a file has in place of a value. `kind` is the kind of value that it computes."""

    text: str
    kind: str
    term: Term = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def fitting(self) -> Dimension:
        """The dimension in which the formula is computed.

        The result is the formula's own dimension if the key accepts it. Otherwise the result is a dimension
        that the key accepts, and that equals the formula's own after packets are converted to bytes. Raises
        UnitError if there is none.
        """
        kind, own = KINDS[self.kind], self.term.dimension
        fitting = [one for one in kind.dimensions if one.in_bytes() == own.in_bytes()]
        if not fitting:
            raise UnitError(f"'{self.text}' is {own}; expected {kind.expected}")
        return own if own in fitting else fitting[0]


_OPERATORS: Mapping[str, tuple[Callable[..., Fraction], Callable[[Dimension, Dimension], Dimension]]] = {
    "Add": (operator.add, Dimension.plus),
    "Sub": (operator.sub, Dimension.plus),
    "min": (min, Dimension.plus),
    "max": (max, Dimension.plus),
    "Mult": (operator.mul, Dimension.times),
    "Div": (operator.truediv, lambda left, right: left.times(right, -1)),
}
_NAME = r"traffic\.[A-Za-z0-9._-]*[A-Za-z0-9_]|[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*"
_TOKEN = re.compile(
    rf"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>[A-Za-zµ%]+(?:/s)?)?(?: +(?P<factor>{_NAME}))?"
    rf"|(?P<name>{_NAME})|(?P<mark>[-+*/(),])|(?P<other>[^ ])"
)
_WIDTH = 5
_ACCEPTED = "numbers, quantities, names, + - * / ( ) min and max"


class FormulaReader:
    """Reads one formula with Python's parser.

    Before parsing, each token is replaced by a word of _WIDTH characters. A column that the parser reports,
    divided by _WIDTH, is then the index of a token.
    """

    def __init__(self, text: str) -> None:
        self.tokens = list(_TOKEN.finditer(text))

    def read(self) -> Term:
        """Return the term of the formula; raises UnitError."""
        words = (t["mark"] or ("?" if t["other"] else f"t{index}") for index, t in enumerate(self.tokens))
        try:
            return self._term(ast.parse("".join(f"{word:{_WIDTH}}" for word in words), mode="eval").body)
        except SyntaxError as error:
            raise self._unexpected(error.offset - 1 if error.offset else len(self.tokens) * _WIDTH) from None

    def _term(self, node: ast.expr) -> Term:
        token = self.tokens[node.col_offset // _WIDTH]
        match node:
            case ast.Name():
                return self._leaf(token)
            case ast.BinOp(left, op, right):
                return _combined(type(op).__name__, [self._term(left), self._term(right)])
            case ast.Call(ast.Name(), [_, *_] as arguments, []) if token[0] in ("min", "max"):
                return _combined(token[0], [self._term(one) for one in arguments])
        raise self._unexpected(node.col_offset)

    def _unexpected(self, offset: int) -> UnitError:
        index = offset // _WIDTH
        if index >= len(self.tokens):
            return UnitError(f"it ends too early; expected {_ACCEPTED}")
        token = self.tokens[index]
        return UnitError(f"cannot be read at '{token[0]}', column {token.start() + 1}; expected {_ACCEPTED}")

    def _leaf(self, token: re.Match[str]) -> Term:
        """Return the term of a quantity (50KB), a name (RTT), or a number before a name (2 RTT, 2BDP)."""
        number, unit, name = token["number"], token["unit"] or "", token["factor"] or token["name"]
        if unit in NAMES and not name:
            unit, name = "", unit
        terms = []
        if number:
            split = units.split_quantity(number + unit)
            if split is None or (unit and name):
                raise UnitError(f"'{token[0]}' at column {token.start() + 1} is not a quantity; "
                                "expected one such as 50KB, 40Mbit, 5ms, 10packets or 2%")  # fmt: skip
            if name and units.split_quantity(number + name):
                raise UnitError(f"a space before the unit in '{token[0]}'; did you mean {number}{name}?")
            terms.append(_constant(*split))
        if name:
            dimension = dimension_of(name)
            if dimension is None:
                short = [one for one in NAMES if not one.endswith((".down", ".up"))]
                flows = [f"traffic.<flow>.{key}" for key in KEYS_OF_FLOW]
                raise UnitError(unknown("name", name, [*short, "path.delay.down", *flows]))
            terms.append(Term(dimension, lambda value_of: value_of(name)))
        return _combined("Mult", terms)


def _constant(number: Decimal, unit: str, kind: units.Kind | None) -> Term:
    dimension, smallest = _DIMENSIONS[kind]
    value = Fraction(number) * smallest * (kind.scales[kind.unit(unit) or unit] if kind else 1)
    return Term(dimension, lambda _: value)


def _combined(sign: str, terms: Sequence[Term]) -> Term:
    """Return the term of an operation on terms. Raises UnitError for a sum of different dimensions."""
    compute, dimension_after = _OPERATORS[sign]
    dimension = reduce(dimension_after, (term.dimension for term in terms))
    if dimension_after == Dimension.plus:
        terms = [Term(dimension, term.counted_in(dimension)) for term in terms]
    return Term(dimension, lambda value_of: reduce(compute, (term.number(value_of) for term in terms)))


def read_amount(text: str, kind: str, parse: Callable[[str], T]) -> T | Formula:
    """Read a quantity with `parse`, or a formula that computes a quantity of `kind`, a key of KINDS.

    Raises UnitError, also for unknown names and dimensions that cannot be combined.
    """
    if not is_formula(text):
        return parse(text)
    if len(text) > LONGEST:
        raise UnitError(f"a formula of {len(text)} characters; expected at most {LONGEST}")
    try:
        formula = Formula(text, kind, FormulaReader(text).read())
    except UnitError as error:
        raise UnitError(f"'{text}': {error}") from None
    _ = formula.fitting
    with suppress(LookupError):  # names have no values yet
        Scope(dict[str, object]().__getitem__).value(formula)
    return formula


def is_formula(text: str) -> bool:
    """Return whether a text, valid or not, is meant as a formula rather than as a quantity."""
    if re.match(r"[+-]", text):
        return False
    counted = re.fullmatch(r"(?:[0-9]+(?:\.[0-9]+)? *)?([A-Za-z%µ/]+)", text)
    if counted:  # a word of capitals that is not a unit is a misspelt name, such as BPD
        is_unit = counted[1].upper() in {unit.upper() for kind in units.KINDS for unit in kind.scales}
        return counted[1].upper() in _FOLDED or (counted[1].isupper() and len(counted[1]) > 1 and not is_unit)
    words = re.findall(r"[A-Za-z_][A-Za-z0-9_.]*", text)
    return bool(re.search(r"[-+*/()]", text)) or any(word.upper() in _FOLDED or "." in word for word in words)


_FOLDED = frozenset(name.upper() for name in NAMES)


def _whole(number: Fraction) -> int:
    return int(number + Fraction(1, 2))  # rounds half up; FormulaKind.value has refused negative numbers


def _seconds(number: Fraction) -> float:
    return float(Fraction(_whole(number * 10**9), 10**9))


@dataclass(frozen=True)
class FormulaKind:
    """A kind of value that formulas can compute.

    `typed` converts a computed number to the value; `written` converts the value to text for a recipe.
    """

    expected: str
    dimensions: tuple[Dimension, ...]
    typed: Callable[[Fraction], int | float] = _whole
    written: Callable[[Any], str] = str
    may_be_zero: bool = False

    def value(self, number: Fraction) -> int | float:
        """Convert a number that a formula computed to a value of this kind.

        Raises UnitError for a number that is negative or too large, and for one that is or rounds to 0 if the
        kind does not allow 0.
        """
        most = 1 if self.dimensions == (SHARE,) else LARGEST
        value = self.typed(number) if 0 <= number <= most else None
        if value or (value is not None and self.may_be_zero):
            return value
        if number > most:
            problem = "more than 100%" if most == 1 else "too large"
        else:
            problem = "negative" if number < 0 else "less than one" if number else "zero"
        raise UnitError(f"is {problem}; expected {self.expected}")


_A_TIME = "a time such as 20 RTT"
KINDS: Mapping[str, FormulaKind] = {
    "size": FormulaKind("a size such as 1 BDP", (BYTES,), written="{}B".format),
    "rate": FormulaKind("a rate such as path.rate / 2", (RATE,), lambda one: _whole(one * 8), "{}bit".format),
    "duration": FormulaKind(_A_TIME, (SECONDS,), _seconds),
    "delay": FormulaKind(_A_TIME, (SECONDS,), _seconds, format_duration, may_be_zero=True),
    "packets": FormulaKind("a count of packets such as 10packets", (PACKETS,), written="{}packets".format),
    "frequency": FormulaKind("a frequency such as RATE / 1MB", (FREQUENCY,), float),
    "share": FormulaKind("a share such as path.loss / 2", (SHARE,), float, format_share, may_be_zero=True),
    "buffer": FormulaKind("a size or a count of packets such as 1 BDP", (PACKETS, BYTES)),
}
"""The kinds of values that formulas can compute, by name."""


class Scope:
    """Evaluates formulas with the values of one treatment.

    `find` returns the value of a canonical name, such as path.rate.down, mtu or traffic.bulk.size: a number
    in bytes, bit/s or seconds, a share as a fraction, a Buffer, a Formula, or None if the name has no value.
    """

    def __init__(self, find: Callable[[str], object]) -> None:
        self._find = find
        self._open: list[str] = []

    def value(self, amount: object) -> object:
        """Return a value with formulas evaluated, also within a distribution. Raises UnitError."""
        if isinstance(amount, Distribution):
            return replace(amount, amounts=tuple(map(self.value, amount.amounts)))
        if not isinstance(amount, Formula):
            return amount
        dimension = amount.fitting
        try:
            number = amount.term.counted_in(dimension)(self.number)
            value = KINDS[amount.kind].value(number)
            if amount.kind != "buffer":
                return value
            # both units, as some queue disciplines count packets and others bytes
            packets = number if dimension == PACKETS else number / self.number("MTU")
            return Buffer(max(_whole(packets), 1), _whole(packets * self.number("MTU")))
        except (UnitError, ZeroDivisionError) as error:
            problem = error if isinstance(error, UnitError) else "a division by zero"
            raise UnitError(f"'{amount.text}': {problem}") from None

    def number(self, name: str) -> Fraction:
        """Return the value of a name: in bytes, seconds or bytes per second, or a share as a fraction.

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
        value = self.value(self._find(name))
        if value is None and name == "mtu":
            return Fraction(ETHERNET_MTU_BYTES)
        if value is None and name == "path.rtt" and self._find("path.delay.down") is not None:
            return self.number("path.delay.down") + self.number("path.delay.up")
        if value is None:
            raise UnitError(f"{name} has no value here (set it, or make it a factor)")
        if isinstance(value, Buffer):
            in_packets = Fraction(value.packets or 0)
            return in_packets * self.number("MTU") if value.bytes is None else Fraction(value.bytes)
        if isinstance(value, Distribution):
            return Fraction(value.mean)
        number = Fraction(str(value))
        return number / 8 if dimension_of(name) == RATE else number


def formula_text(formula: Formula, scope: Scope) -> str:
    """Evaluate the formula of a recipe's parameter, and return text: 10ms for `RTT / 2`. Raises UnitError."""
    return KINDS[formula.kind].written(scope.value(formula))
