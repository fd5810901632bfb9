"""Amounts drawn at random for each flow: {uniform: [0s, 5s]}, {exponential: 100KB, most: 1MB}."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from samovar import units
from samovar.experiment.keys.value_errors import Mistakes
from samovar.experiment.keys.values import Drawing
from samovar.experiment.nearest import unknown
from samovar.units import UnitError

LAWS: Mapping[str, str] = {
    "uniform": "Between two amounts, each as likely, such as [0s, 5s].",
    "exponential": "As independent events follow each other, by the mean, such as 100KB.",
    "lognormal": "By the median, such as 20KB, and sigma, the standard deviation of its logarithm.",
    "pareto": "By the least amount, such as 4KB, and shape: the smaller, the heavier the tail.",
    "choice": "One of a list, each as likely; what stands there twice is twice as likely.",
}
"""How an amount may be drawn, and what is said of it."""
PARAMETER = {"lognormal": "sigma", "pareto": "shape"}
BESIDE = ("most", "step")

Parse = Callable[[str], Any]


@dataclass(frozen=True)
class Drawn:
    """A law that an amount is drawn by, in the unit of its field; its formulas are computed later.

    `parameter` is the sigma of a lognormal law or the shape of Pareto's; a draw above `most` is cut to it,
    one between two multiples of `step` is the nearer of these.
    """

    law: str
    amounts: tuple[Any, ...]
    parameter: float = 0.0
    most: Any = None
    step: Any = None

    @property
    def every(self) -> tuple[Any, ...]:
        """Its amounts, numbers or formulas."""
        return tuple(one for one in (*self.amounts, self.most, self.step) if one is not None)

    def computed(self, compute: Callable[[Any], Any]) -> Drawn:
        """Return the law with its formulas computed; raises UnitError where they do not go together."""
        most, step = (None if one is None else compute(one) for one in (self.most, self.step))
        return replace(self, amounts=tuple(map(compute, self.amounts)), most=most, step=step).checked()

    def checked(self) -> Drawn:
        """Return the law; raises UnitError for bounds in the wrong order, where they are numbers already."""
        numbers = all(isinstance(one, int | float) for one in (*self.amounts, self.most or 0))
        if numbers and self.law == "uniform" and self.amounts[0] >= self.amounts[1]:
            raise UnitError("the second is not above the first; expected the smaller one first")
        if numbers and self.most is not None and self.most <= min(self.amounts):
            raise UnitError("most is not above the law's own amount; expected more")
        return self

    def value(self, share: float) -> float:
        """Return the amount of which a share of all draws is less; the share is from 0 up to 1, without 1."""
        drawn = self._value(share)
        drawn = drawn if self.most is None else min(drawn, float(self.most))
        return drawn if self.step is None else round(drawn / self.step) * float(self.step)

    def _value(self, share: float) -> float:
        first = float(self.amounts[0])
        if self.law == "uniform":
            return first + (float(self.amounts[1]) - first) * share
        if self.law == "exponential":
            return -math.log(1.0 - share) * first
        if self.law == "lognormal":
            return first * math.exp(self.parameter * NormalDist().inv_cdf(max(share, 2.0**-53)))
        if self.law == "pareto":
            return float(first / (1.0 - share) ** (1.0 / self.parameter))
        return float(self.amounts[int(share * len(self.amounts))])

    @property
    def mean(self) -> float:
        """The mean of all draws, without regard to `step`; infinite for a heavy tail without `most`."""
        first = float(self.amounts[0])
        most = math.inf if self.most is None else float(self.most)
        if self.law == "uniform":
            return _uniform_mean(first, float(self.amounts[1]), most)
        if self.law == "choice":
            return math.fsum(min(float(one), most) for one in self.amounts) / len(self.amounts)
        of = {"exponential": _exponential_mean, "lognormal": _lognormal_mean, "pareto": _pareto_mean}
        return of[self.law](first, self.parameter, most)


def _uniform_mean(low: float, high: float, most: float) -> float:
    if most >= high:
        return (low + high) / 2
    below = (most - low) / (high - low)
    return below * (low + most) / 2 + (1 - below) * most


def _exponential_mean(mean: float, _: float, most: float) -> float:
    return mean * -math.expm1(-most / mean)


def _lognormal_mean(median: float, sigma: float, most: float) -> float:
    whole = median * math.exp(sigma**2 / 2)
    if math.isinf(most):
        return whole
    normal, at = NormalDist(), math.log(most / median) / sigma
    return whole * normal.cdf(at - sigma) + most * (1 - normal.cdf(at))


def _pareto_mean(least: float, shape: float, most: float) -> float:
    if math.isinf(most):
        return math.inf if shape <= 1 else least * shape / (shape - 1)
    if shape == 1:
        return least * (1 + math.log(most / least))
    return least + least * (float((most / least) ** (1 - shape)) - 1) / (1 - shape)


def is_drawing(written: object) -> bool:
    """Say whether a mapping is meant as a law to draw by."""
    return isinstance(written, Mapping) and bool(LAWS.keys() & written.keys())


def read_drawn(written: Mapping[str, object], parse: Parse) -> Drawn:
    """Read a law whose amounts `parse` reads; raises ValueError or pydantic's ValidationError with places."""
    mistakes = Mistakes()
    law = next((key for key in written if key in LAWS), None)
    parameter = PARAMETER.get(law or "", "")
    known = (*LAWS, *BESIDE) if law is None else (law, *([parameter] if parameter else []), *BESIDE)
    for key in written:
        if key not in known:
            mistakes.add((key,), unknown("key of a random amount", key, known), key=True)
    mistakes.raise_any()
    if law is None:
        raise ValueError(f"expected a law to draw by, such as {_example('uniform', parse)}")
    if parameter and parameter not in written:
        raise ValueError(f"{law} without {parameter}; expected {_example(law, parse)}")
    amounts = mistakes.within((law,), _amounts, law, written[law], parse)
    number = mistakes.within((parameter,), _parameter, written[parameter]) if parameter else 0.0
    beside = {key: mistakes.within((key,), _one, written[key], parse) for key in BESIDE if key in written}
    mistakes.raise_any()
    return Drawn(law, amounts, number, **beside).checked()


def drawing_of(written: Mapping[str, object]) -> Drawing:
    """Return a law as texts, as a level holds it; raises ValueError for what is neither text nor a list."""
    texts: dict[str, str | tuple[str, ...]] = {}
    for key, value in written.items():
        if isinstance(value, str):
            texts[key] = str(value)
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            texts[key] = tuple(str(one) for one in value)
        else:
            raise ValueError(f"{key}: expected one value, or a list of values")
    return Drawing(texts)


def read_drawing(drawing: Drawing, parse: Parse) -> Drawn:
    """Read a level's law; raises UnitError."""
    plain = {key: list(one) if isinstance(one, tuple) else one for key, one in drawing.keys.items()}
    try:
        return read_drawn(plain, parse)
    except ValueError as error:
        said = getattr(error, "errors", None)
        first = said(include_url=False)[0] if said else None
        raise UnitError(str(first["ctx"]["error"]) if first else str(error)) from error


def _amounts(law: str, written: object, parse: Parse) -> tuple[Any, ...]:
    if law not in ("uniform", "choice"):
        return (_one(written, parse),)
    many = written if isinstance(written, list) else []
    if (law == "uniform" and len(many) != 2) or not many:
        many_said = "two values" if law == "uniform" else "a list of values"
        raise ValueError(f"expected {many_said}, such as {_example(law, parse)}")
    mistakes = Mistakes()
    found = [mistakes.within((index,), _one, one, parse) for index, one in enumerate(many)]
    mistakes.raise_any()
    return tuple(found)


def _example(law: str, parse: Parse) -> str:
    """Write a law in the units of the field, which its parser knows."""
    try:
        parse("1s")
        low, high = "1s", "5s"
    except UnitError:
        low, high = "4KB", "1MB"
    text = f"[{low}, {high}]" if law in ("uniform", "choice") else low
    beside = {"lognormal": ", sigma: 1.5", "pareto": ", shape: 1.2"}.get(law, "")
    return f"{{{law}: {text}{beside}}}"


def _one(written: object, parse: Parse) -> Any:
    if not isinstance(written, str):
        raise ValueError(f"expected one value, not {'a mapping' if isinstance(written, dict) else 'a list'}")
    return parse(str(written))


def _parameter(written: object) -> float:
    number = float(_one(written, units.parse_number))
    if not 0.1 <= number <= 10:
        raise UnitError(f"'{written}' is out of range; expected a number from 0.1 to 10, such as 1.5")
    return number
