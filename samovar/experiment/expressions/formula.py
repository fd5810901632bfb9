"""Parse formulas such as `1 BDP`, `2 * BDP + 10packets`, `max(1 BDP, 50KB)`, and check their dimensions.

sum     := product (("+" | "-") product)*
product := factor (("*" | "/") factor)*
factor  := number [name] | quantity | name | "(" sum ")" | ("min" | "max") "(" sum ("," sum)* ")"

Arithmetic is exact (fractions); packets become bytes, and bytes packets, through the MTU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from samovar import units
from samovar.experiment.expressions.dimension import (
    BYTES,
    NAMES,
    NUMBER,
    PACKETS,
    RATE,
    SECONDS,
    SHARE,
    Dimension,
    common,
    dimension_of,
    known_names,
    product,
    quotient,
)
from samovar.experiment.nearest import nearest, unknown
from samovar.units import UnitError

LONGEST = 200
DEEPEST = 20
_TOKEN = re.compile(
    r"(?P<quantity>[0-9]+(?:\.[0-9]+)?(?:[A-Za-zµ%]+(?:/s)?)?)"
    r"|(?P<name>traffic\.[A-Za-z0-9._-]*[A-Za-z0-9_]|[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)"
    r"|(?P<mark>[-+*/(),])"
)
_CAPITALS = re.compile("[A-Z]{2,}")
_FOLDED = frozenset(name.upper() for name in NAMES)
_PLAIN = tuple(name for name in NAMES if "." not in name)
_UNITS = tuple(unit for kind in units.KINDS for unit in kind.scales)
_DIMENSIONS = {
    units.SIZE: BYTES,
    units.RATE: RATE,
    units.DURATION: SECONDS,
    units.PACKETS: PACKETS,
    units.SHARE: SHARE,
}
_SCALES = {units.RATE: Fraction(1, 8), units.DURATION: Fraction(1, 10**9), units.SHARE: Fraction(1, 100)}


class Constant(NamedTuple):
    """A number in bytes, seconds, bytes per second, packets or as a fraction, with its dimension."""

    number: Fraction
    dimension: Dimension


Lookup = Callable[[str], Fraction]


@dataclass(frozen=True)
class Literal:
    """A number or quantity."""

    value: Constant

    @property
    def dimension(self) -> Dimension:
        """Its dimension."""
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
        """Return its value in the treatment."""
        return lookup(self.text)


@dataclass(frozen=True)
class Operation:
    """An operation on two or more terms: one of + - * / min max."""

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
        """Return a term's number, in bytes if the sum is in bytes."""
        number = term.number(lookup)
        if self.sign in "*/" or term.dimension == self.dimension:
            return number
        return number * lookup("MTU") ** term.dimension.packets


Term = Literal | Name | Operation

_COMBINED: Mapping[str, Callable[[Dimension, Dimension], Dimension]] = {
    "+": common,
    "-": common,
    "min": common,
    "max": common,
    "*": product,
    "/": quotient,
}


def operation(sign: str, terms: tuple[Term, ...], column: int) -> Operation:
    """Return an operation on terms; raises UnitError when their dimensions do not fit."""
    dimension = terms[0].dimension
    for term in terms[1:]:
        try:
            dimension = _COMBINED[sign](dimension, term.dimension)
        except UnitError as error:
            raise UnitError(f"{error} ('{sign}' at column {column})") from None
    return Operation(sign, terms, column, dimension)


def names_of(term: Term) -> Iterator[str]:
    """Yield the names in a term, as often as they occur."""
    if isinstance(term, Name):
        yield term.text
    elif isinstance(term, Operation):
        for one in term.terms:
            yield from names_of(one)


class Token(NamedTuple):
    """A token of a formula; columns count from 1."""

    kind: str
    text: str
    column: int


@dataclass(frozen=True)
class Formula:
    """A formula in place of a value: its text, the kind of value that its key takes, and its parsed term."""

    text: str
    kind: str
    term: Term = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it uses, each once, in order."""
        return tuple(dict.fromkeys(names_of(self.term)))


def read_formula(text: str, kind: str) -> Formula:
    """Read a formula for a key that takes a kind of quantity, one of formula_values.KINDS.

    Raises UnitError with the column, also for unknown names and for dimensions that do not fit.
    """
    if len(text) > LONGEST:
        raise UnitError(f"a formula of {len(text)} characters; expected at most {LONGEST}")
    try:
        term = _Parser(list(_tokens(text))).formula()
    except UnitError as error:
        raise UnitError(f"'{text}': {error}") from None
    return Formula(text, kind, term)


def is_formula(text: str) -> bool:
    """Return whether a text is meant as a formula rather than as one quantity, valid or not."""
    if re.match(r"[+-]", text):
        return False
    counted = re.fullmatch(r"(?:[0-9]+(?:\.[0-9]+)? *)?([A-Za-z%µ/]+)", text)
    if counted:
        return _is_meant(counted[1])
    words = re.findall(r"[A-Za-z_][A-Za-z0-9_.]*", text)
    return bool(re.search(r"[-+*/()]", text)) or any(word.upper() in _FOLDED or "." in word for word in words)


def _is_meant(word: str) -> bool:
    """Return whether a word is meant as a name: it is one, or is similar to one and not a unit (BPD)."""
    if word.upper() in _FOLDED:
        return True
    if any(kind.unit(word) or kind.suggest(word) for kind in units.KINDS):
        return False
    return _CAPITALS.fullmatch(word) is not None or nearest(word, [*_PLAIN, *_UNITS]) in _PLAIN


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        if text[at] == " ":
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise UnitError(
                f"'{text[at]}' at column {at + 1}; expected numbers, names, + - * / ( ) min and max"
            )
        yield Token(match.lastgroup or "", match[0], at + 1)
        at = match.end()
    yield Token("end", "", len(text) + 1)


class _Parser:
    """Recursive descent over the tokens; `depth` bounds what parentheses may hold."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def formula(self) -> Term:
        term = self._sum()
        if self._here.kind != "end":
            raise _unexpected(self._here, "an operator or the end")
        return term

    @property
    def _here(self) -> Token:
        return self.tokens[self.at]

    def _next(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _sum(self) -> Term:
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnitError(f"parentheses nested more than {DEEPEST} deep at column {self._here.column}")
        term = self._chain(self._product, "+-")
        self.depth -= 1
        return term

    def _product(self) -> Term:
        return self._chain(self._factor, "*/")

    def _chain(self, part: Callable[[], Term], signs: str) -> Term:
        term = part()
        while self._here.kind == "mark" and self._here.text in signs:
            sign = self._next()
            term = operation(sign.text, (term, part()), sign.column)
        return term

    def _factor(self) -> Term:
        token = self._next()
        if token.kind == "quantity":
            return self._counted(token)
        if token.kind == "name":
            return self._called(token) if token.text in ("min", "max") else _name(token)
        if token.text == "(":
            term = self._sum()
            self._expect(")")
            return term
        raise _unexpected(token, "a number, a name or '('")

    def _counted(self, token: Token) -> Term:
        """Read a number, and the name that it multiplies: 20 RTT."""
        literal = _literal(token)
        if literal.dimension == NUMBER and self._here.kind == "name":
            name = self._next()
            quantity = units.split_quantity(token.text + name.text)
            if quantity and quantity[2]:
                raise UnitError(f"a space before the unit at column {name.column}; "
                                f"did you mean {token.text}{name.text}?")  # fmt: skip
            return operation("*", (literal, _name(name)), name.column)
        return literal

    def _called(self, token: Token) -> Term:
        self._expect("(")
        terms = [self._sum()]
        while self._here.text == ",":
            self._next()
            terms.append(self._sum())
        self._expect(")")
        return operation(token.text, tuple(terms), token.column)

    def _expect(self, mark: str) -> None:
        if self._here.text != mark:
            raise _unexpected(self._here, f"'{mark}'")
        self._next()


def _unexpected(token: Token, expected: str) -> UnitError:
    what = f"'{token.text}' at column {token.column}" if token.text else "it ends too early"
    return UnitError(f"{what}; expected {expected}")


def _literal(token: Token) -> Term:
    split = units.split_quantity(token.text)
    if split is None:
        return _joined(token)
    number, unit, kind = split
    if kind is None:
        return Literal(Constant(Fraction(number), NUMBER))
    scale = kind.scales[kind.unit(unit) or unit] * _SCALES.get(kind, Fraction(1))
    return Literal(Constant(Fraction(number) * scale, _DIMENSIONS[kind]))


def _joined(token: Token) -> Term:
    """Read 2BDP as 2 BDP; anything else behind a number is an unknown unit."""
    match = re.fullmatch(r"([0-9.]{1,38})([A-Za-z]+)", token.text)
    if match and match[2] in NAMES and (split := units.split_quantity(match[1])):
        number = Literal(Constant(Fraction(split[0]), NUMBER))
        return operation(
            "*", (number, _name(Token("name", match[2], token.column + len(match[1])))), token.column
        )
    raise UnitError(f"'{token.text}' at column {token.column} is not a quantity; "
                    "expected one such as 50KB, 40Mbit, 5ms, 10packets or 2%")  # fmt: skip


def _name(token: Token) -> Name:
    dimension = dimension_of(token.text)
    if dimension is None:
        known = unknown("name", token.text, known_names()).partition(";")[2]
        raise UnitError(f"unknown name '{token.text}' at column {token.column};{known}")
    return Name(token.text, dimension)
