"""Ranges of levels: {from: 50KB, to: 1MB, step: 50KB}, {from: 0.5 BDP, to: 4 BDP, points: 4, scale: log}."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from samovar import units
from samovar.experiment.expressions.formula import is_formula
from samovar.experiment.expressions.formula_names import dimension_of
from samovar.experiment.keys.value_errors import Mistakes
from samovar.experiment.nearest import unknown
from samovar.units import UnitError

KEYS = ("from", "to", "step", "points", "scale")
SCALES = ("linear", "log")
MOST_LEVELS = 1000
# Units of which a level holds no part: the smallest ones, and IEC units, whose parts are no whole bytes.
_WHOLE = ("packets", "packet", "B", "bit", "ns", "KiB", "MiB", "GiB", "TiB")


class _End(NamedTuple):
    """An end or a step as it is written; a name that a formula knows counts as a unit: 0.5 BDP."""

    number: Fraction
    unit: str
    kind: units.Kind | None

    @property
    def of(self) -> object:
        """What both ends and the step must have in common."""
        return self.kind or self.unit

    @property
    def scaled(self) -> Fraction:
        return self.number * (self.kind.scales[self.kind.unit(self.unit) or self.unit] if self.kind else 1)


def is_range(written: Mapping[str, object]) -> bool:
    """Say whether a mapping is meant as a range of levels."""
    return bool({"step", "points", "scale"} & written.keys()) or {"from", "to"} <= written.keys()


def read_range(written: Mapping[str, object]) -> tuple[str, ...]:
    """Return the levels of a range as texts, its ends included, all in the unit of `from`.

    Raises ValueError or pydantic's ValidationError, with the place of the mistake.
    """
    mistakes = Mistakes()
    for key, value in written.items():
        if key not in KEYS:
            mistakes.add((key,), unknown("key of a range", key, KEYS), key=True)
        elif not isinstance(value, str):
            mistakes.add((key,), "expected one value")
    mistakes.raise_any()
    missing = [key for key in ("from", "to") if key not in written]
    if missing or ("step" in written) == ("points" in written):
        what = f"key '{missing[0]}' is missing" if missing else "a range has either step or points"
        raise ValueError(
            f"{what}; expected {{from: 50KB, to: 1MB, step: 50KB}} or points: 7 in place of step"
        )
    return _levels({key: str(value) for key, value in written.items()})


def _levels(written: Mapping[str, str]) -> tuple[str, ...]:
    mistakes = Mistakes()
    start = mistakes.within(("from",), _end, written["from"])
    stop = mistakes.within(("to",), _end, written["to"])
    mistakes.raise_any()
    if start.of != stop.of:
        mistakes.add(
            ("to",), f"'{written['to']}' is of another kind than '{written['from']}'; expected both alike"
        )
    elif start.scaled >= stop.scaled:
        mistakes.add(("to",), f"'{written['to']}' is not above '{written['from']}'; expected more")
    scale = written.get("scale", "linear")
    if scale not in SCALES:
        mistakes.add(("scale",), unknown("scale", scale, SCALES))
    mistakes.raise_any()
    key, levels = ("step", _by_step) if "step" in written else ("points", _by_points)
    found = mistakes.within((key,), levels, written, start, stop)
    mistakes.raise_any()
    return tuple(found)


def _end(text: str) -> _End:
    split = units.split_quantity(text)
    named = re.fullmatch(r"(?:([0-9]{1,9}(?:\.[0-9]{1,9})?) *)?([A-Za-z][A-Za-z0-9._-]*)", text)
    if split is None and named and dimension_of(named[2]) is not None:
        return _End(Fraction(named[1] or 1), f" {named[2]}", None)
    if split is None and is_formula(text):
        raise UnitError(
            f"'{text}' is computed; expected a quantity, a number of one name such as 0.5 BDP, or a list"
        )
    if split is None:
        raise UnitError(f"'{text}' is no quantity; expected one such as 50KB, 40Mbit, 5ms, 10packets or 2%")
    return _End(Fraction(split[0]), split[1], split[2])


def _by_step(written: Mapping[str, str], start: _End, stop: _End) -> list[str]:
    if written.get("scale") == "log":
        raise UnitError("a logarithmic range has no step; expected points")
    step = _end(written["step"])
    if step.of != start.of or step.scaled <= 0:
        raise UnitError(
            f"'{written['step']}' is no step from '{written['from']}'; expected one above zero, alike"
        )
    count = (stop.scaled - start.scaled) / step.scaled
    if count != int(count):
        last = _text(_in_unit(start, start.scaled + int(count) * step.scaled), start.unit)
        raise UnitError(f"steps of {written['step']} end at {last}, not at {written['to']}; "
                        "expected a step that leads there, or points")  # fmt: skip
    if count >= MOST_LEVELS:
        raise UnitError(f"the range has {int(count) + 1} levels; expected at most {MOST_LEVELS}")
    values = (start.scaled + index * step.scaled for index in range(int(count) + 1))
    return [_text(_in_unit(start, value), start.unit) for value in values]


def _by_points(written: Mapping[str, str], start: _End, stop: _End) -> list[str]:
    points = units.parse_count(written["points"], least=2, most=MOST_LEVELS, what="number of points")
    log = written.get("scale") == "log"
    if log and start.scaled == 0:
        raise UnitError("a logarithmic range cannot begin at zero; expected from: above it")
    first, last = start.number, _in_unit(start, stop.scaled)
    middle = [_point(first, last, Fraction(index, points - 1), log) for index in range(1, points - 1)]
    texts = [_text(first, start.unit), *_rounded(middle, start, last), _text(last, start.unit)]
    if len(set(texts)) < points:
        raise UnitError(f"{points} points from {written['from']} to {written['to']} are not all different; "
                        "expected fewer")  # fmt: skip
    return texts


def _point(first: Fraction, last: Fraction, share: Fraction, log: bool) -> Fraction:
    if not log:
        return first + (last - first) * share
    return Fraction(float(first) * (float(last) / float(first)) ** float(share))


def _rounded(numbers: list[Fraction], start: _End, last: Fraction) -> list[str]:
    """Write points with three digits, or as many as keep them apart."""
    whole = start.unit in _WHOLE or (not start.unit and start.number.denominator == last.denominator == 1)
    for digits in (3, 4, 5, 6, 9):
        texts = [_text(Fraction(_round(number, digits, whole)), start.unit) for number in numbers]
        if len(set(texts)) == len(texts):
            break
    return texts if numbers else []


def _round(number: Fraction, digits: int, whole: bool) -> Decimal:
    value = Decimal(number.numerator) / Decimal(number.denominator)
    places = 0 if whole else max(digits - 1 - value.adjusted(), 0)
    return value.quantize(Decimal(1).scaleb(-places))


def _in_unit(start: _End, scaled: Fraction) -> Fraction:
    return (
        scaled / (start.scaled / start.number)
        if start.number
        else scaled / _End(Fraction(1), *start[1:]).scaled
    )


def _text(number: Fraction, unit: str) -> str:
    value = Decimal(number.numerator) / Decimal(number.denominator)
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + unit
