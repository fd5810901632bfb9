"""Computed values: `1 BDP`, `2 * BDP + 10packets`, `max(1 BDP, 50KB)`, with their dimensions checked.

sum     := product (("+" | "-") product)*
product := factor (("*" | "/") factor)*
factor  := number [name] | quantity | name | "(" sum ")" | ("min" | "max") "(" sum ("," sum)* ")"

Arithmetic is exact (fractions); packets become bytes, and bytes packets, through the MTU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from samovar import units
from samovar.experiment.expressions.dimension import BYTES, NUMBER, PACKETS, RATE, SECONDS, SHARE
from samovar.experiment.expressions.formula_names import NAMES, dimension_of, known_names
from samovar.experiment.expressions.formula_terms import Literal, Name, Term, Value, names_of, operation
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


class Token(NamedTuple):
    """A word of a formula; columns count from 1."""

    kind: str
    text: str
    column: int


@dataclass(frozen=True)
class Formula:
    """A computed value of a field: its text, what the field takes, and what the text says."""

    text: str
    kind: str
    term: Term = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def names(self) -> tuple[str, ...]:
        """The names it needs values of, each once, in their order."""
        return tuple(dict.fromkeys(names_of(self.term)))


def read_formula(text: str, kind: str) -> Formula:
    """Read a formula for a field that takes a kind of quantity, one of formula_values.KINDS.

    Raises UnitError with the column, for unknown names, and when the dimension is not the field's.
    """
    if len(text) > LONGEST:
        raise UnitError(f"a formula of {len(text)} characters; expected at most {LONGEST}")
    try:
        term = _Parser(list(_tokens(text))).formula()
    except UnitError as error:
        raise UnitError(f"'{text}': {error}") from None
    return Formula(text, kind, term)


def is_formula(text: str) -> bool:
    """Say whether a text is meant as a formula rather than as one quantity, sound or not."""
    if re.match(r"[+-]", text):
        return False
    counted = re.fullmatch(r"(?:[0-9]+(?:\.[0-9]+)? *)?([A-Za-z%µ/]+)", text)
    if counted:
        return _is_meant(counted[1])
    words = re.findall(r"[A-Za-z_][A-Za-z0-9_.]*", text)
    return bool(re.search(r"[-+*/()]", text)) or any(word.upper() in _FOLDED or "." in word for word in words)


def _is_meant(word: str) -> bool:
    """Say whether a word is a name, or no unit and written like a name or near to one: BPD, RTTs."""
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
            raise UnitError(
                f"more than {DEEPEST} parentheses within each other at column {self._here.column}"
            )
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
        """Read a number, and the name that it counts: 20 RTT."""
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
        return Literal(Value(Fraction(number), NUMBER))
    scale = kind.scales[kind.unit(unit) or unit] * _SCALES.get(kind, Fraction(1))
    return Literal(Value(Fraction(number) * scale, _DIMENSIONS[kind]))


def _joined(token: Token) -> Term:
    """Read 2BDP as 2 BDP; anything else after a number is no unit."""
    match = re.fullmatch(r"([0-9.]{1,38})([A-Za-z]+)", token.text)
    if match and match[2] in NAMES and (split := units.split_quantity(match[1])):
        number = Literal(Value(Fraction(split[0]), NUMBER))
        return operation(
            "*", (number, _name(Token("name", match[2], token.column + len(match[1])))), token.column
        )
    raise UnitError(f"'{token.text}' at column {token.column} is no quantity; "
                    "expected one such as 50KB, 40Mbit, 5ms, 10packets or 2%")  # fmt: skip


def _name(token: Token) -> Name:
    dimension = dimension_of(token.text)
    if dimension is None:
        known = unknown("name", token.text, known_names()).partition(";")[2]
        raise UnitError(f"unknown name '{token.text}' at column {token.column};{known}")
    return Name(token.text, dimension)
