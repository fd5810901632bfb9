"""Ranges of levels: {from: 50KB, to: 1MB, step: 50KB}, {from: 0.5 BDP, to: 4 BDP, step: 0.5 BDP}."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from samovar import units
from samovar.experiment.expressions.formula import is_formula
from samovar.experiment.expressions.formula_names import dimension_of
from samovar.experiment.expressions.values import Mistakes
from samovar.experiment.nearest import unknown
from samovar.units import UnitError

KEYS = ("from", "to", "step")
REMOVED = ("points", "scale")  # of samovar 0.1
EXAMPLE = "{from: 50KB, to: 1MB, step: 50KB}"
MOST_LEVELS = 1000


class _Quantity(NamedTuple):
    """An end or the step of a range; a name that formulas know counts as a unit: 0.5 BDP."""

    number: Fraction
    unit: str
    kind: units.Kind | None

    @property
    def scale(self) -> int:
        """The factor from the written unit to the base unit of its kind."""
        return self.kind.scales[self.kind.unit(self.unit) or self.unit] if self.kind else 1

    @property
    def scaled(self) -> Fraction:
        return self.number * self.scale

    def is_comparable(self, other: _Quantity) -> bool:
        return (self.kind or self.unit) == (other.kind or other.unit)


def is_range(written: Mapping[str, object]) -> bool:
    """Return whether a mapping is meant as a range of levels."""
    return bool({"step", *REMOVED} & written.keys()) or {"from", "to"} <= written.keys()


def read_range(written: Mapping[str, object]) -> tuple[str, ...]:
    """Return the levels of a range as texts, both ends included, all in the unit of `from`.

    Raises ValueError, or pydantic's ValidationError with the places of the errors.
    """
    mistakes = Mistakes()
    for key, value in written.items():
        if key not in KEYS:
            hint = "; list the levels if they are not evenly spaced" if key in REMOVED else ""
            mistakes.add((key,), f"{unknown('key of a range', key, KEYS)}{hint}", key=True)
        elif not isinstance(value, str):
            mistakes.add((key,), "expected one value")
    mistakes.raise_any()
    missing = next((key for key in KEYS if key not in written), None)
    if missing:
        raise ValueError(f"key '{missing}' is missing; expected a range such as {EXAMPLE}")
    ends = {key: mistakes.within((key,), _quantity, str(written[key])) for key in ("from", "to")}
    mistakes.raise_any()
    start, stop = ends["from"], ends["to"]
    if not start.is_comparable(stop):
        mistakes.add(("to",), f"'{written['to']}' is a different quantity than '{written['from']}'")
    elif start.scaled >= stop.scaled:
        mistakes.add(("to",), f"'{written['to']}' must be above '{written['from']}'")
    mistakes.raise_any()
    levels = mistakes.within(("step",), _levels, str(written["step"]), str(written["to"]), start, stop)
    mistakes.raise_any()
    return tuple(levels)


def _levels(text: str, last: str, start: _Quantity, stop: _Quantity) -> list[str]:
    step = _quantity(text)
    if not step.is_comparable(start) or step.scaled <= 0:
        raise UnitError(
            f"'{text}' is not a step for this range; expected one above zero, of the same quantity"
        )
    count = (stop.scaled - start.scaled) / step.scaled
    if count != int(count):
        end = _text((start.scaled + int(count) * step.scaled) / start.scale, start.unit)
        raise UnitError(f"steps of {text} end at {end}, not at {last}; expected a step that reaches it")
    if count >= MOST_LEVELS:
        raise UnitError(f"the range has {int(count) + 1} levels; expected at most {MOST_LEVELS}")
    values = (start.scaled + index * step.scaled for index in range(int(count) + 1))
    return [_text(value / start.scale, start.unit) for value in values]


def _quantity(text: str) -> _Quantity:
    split = units.split_quantity(text)
    if split is not None:
        return _Quantity(Fraction(split[0]), split[1], split[2])
    named = re.fullmatch(r"(?:([0-9]{1,9}(?:\.[0-9]{1,9})?) *)?([A-Za-z][A-Za-z0-9._-]*)", text)
    if named and dimension_of(named[2]) is not None:
        return _Quantity(Fraction(named[1] or 1), f" {named[2]}", None)
    if is_formula(text):
        raise UnitError(f"'{text}' is a formula; a range takes a quantity or a multiple such as 0.5 BDP")
    raise UnitError(f"'{text}' is not a quantity; expected one such as 50KB, 40Mbit, 5ms, 10packets or 2%")


def _text(number: Fraction, unit: str) -> str:
    value = Decimal(number.numerator) / Decimal(number.denominator)
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + unit
