"""Random amounts, drawn anew for each flow: {uniform: [0s, 5s]}, {exponential: 100KB}."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from samovar.experiment.expressions.values import DistributionText, Mistakes
from samovar.experiment.nearest import unknown
from samovar.units import UnitError

DISTRIBUTIONS: Mapping[str, str] = {
    "uniform": "Equally likely anywhere between two amounts, such as [0s, 5s].",
    "exponential": "Exponentially distributed with this mean, such as 100KB.",
}
STEP = "step"
REMOVED = ("lognormal", "sigma", "pareto", "shape", "choice", "most")

Parse = Callable[[str], Any]


@dataclass(frozen=True)
class Distribution:
    """A distribution of amounts in the unit of its key; formulas among them are computed later.

    `amounts` are the two bounds of a uniform distribution or the mean of an exponential one. A draw is
    rounded to a multiple of `step`.
    """

    name: str
    amounts: tuple[Any, ...]
    step: Any = None

    @property
    def parameters(self) -> tuple[Any, ...]:
        """All numbers and formulas that define the distribution."""
        return self.amounts if self.step is None else (*self.amounts, self.step)

    def computed(self, compute: Callable[[Any], Any]) -> Distribution:
        """Return the distribution with formulas computed; raises UnitError for bounds in the wrong order."""
        step = None if self.step is None else compute(self.step)
        return replace(self, amounts=tuple(map(compute, self.amounts)), step=step).checked()

    def checked(self) -> Distribution:
        """Return the distribution; raises UnitError if the first bound is not below the second."""
        numbers = all(isinstance(one, int | float) for one in self.amounts)
        if numbers and self.name == "uniform" and self.amounts[0] >= self.amounts[1]:
            raise UnitError("the first bound must be below the second")
        return self

    def quantile(self, share: float) -> float:
        """Return the amount that this share of all draws is below, 0 <= share < 1."""
        first = float(self.amounts[0])
        if self.name == "uniform":
            drawn = first + (float(self.amounts[1]) - first) * share
        else:
            drawn = -math.log(1.0 - share) * first
        return drawn if self.step is None else round(drawn / self.step) * float(self.step)

    @property
    def mean(self) -> float:
        """The mean of all draws, before they are rounded to `step`."""
        return math.fsum(self.amounts) / len(self.amounts)


def is_distribution(written: object) -> bool:
    """Return whether a mapping names a distribution."""
    return isinstance(written, Mapping) and bool(DISTRIBUTIONS.keys() & written.keys())


def read_distribution(written: Mapping[str, object], parse: Parse) -> Distribution:
    """Read a distribution whose amounts `parse` reads.

    Raises ValueError, or pydantic's ValidationError with the places of the errors.
    """
    mistakes = Mistakes()
    name = next((key for key in written if key in DISTRIBUTIONS), None)
    known = (*DISTRIBUTIONS, STEP) if name is None else (name, STEP)
    for key in written:
        if key not in known:
            hint = f"; {key} is no longer offered" if key in REMOVED else ""
            mistakes.add((key,), f"{unknown('key of a random amount', key, known)}{hint}", key=True)
    mistakes.raise_any()
    if name is None:
        raise ValueError(f"expected a distribution such as {_example('uniform', parse)}")
    amounts = mistakes.within((name,), _amounts, name, written[name], parse)
    step = mistakes.within((STEP,), _amount, written[STEP], parse) if STEP in written else None
    mistakes.raise_any()
    return Distribution(name, amounts, step).checked()


def distribution_text(written: Mapping[str, object]) -> DistributionText:
    """Return a distribution as the texts that a level keeps; raises ValueError for a nested mapping."""
    texts: dict[str, str | tuple[str, ...]] = {}
    for key, value in written.items():
        if isinstance(value, str):
            texts[key] = str(value)
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            texts[key] = tuple(str(one) for one in value)
        else:
            raise ValueError(f"{key}: expected one value, or a list of values")
    return DistributionText(texts)


def parse_distribution(text: DistributionText, parse: Parse) -> Distribution:
    """Read the distribution of a level; raises UnitError."""
    plain = {key: list(one) if isinstance(one, tuple) else one for key, one in text.keys.items()}
    try:
        return read_distribution(plain, parse)
    except ValueError as error:
        errors = getattr(error, "errors", None)
        first = errors(include_url=False)[0] if errors else None
        raise UnitError(str(first["ctx"]["error"]) if first else str(error)) from error


def _amounts(name: str, written: object, parse: Parse) -> tuple[Any, ...]:
    if name != "uniform":
        return (_amount(written, parse),)
    if not isinstance(written, list) or len(written) != 2:
        raise ValueError(f"expected two values, such as {_example(name, parse)}")
    mistakes = Mistakes()
    found = [mistakes.within((index,), _amount, one, parse) for index, one in enumerate(written)]
    mistakes.raise_any()
    return tuple(found)


def _amount(written: object, parse: Parse) -> Any:
    if not isinstance(written, str):
        raise ValueError(f"expected one value, not {'a mapping' if isinstance(written, dict) else 'a list'}")
    return parse(str(written))


def _example(name: str, parse: Parse) -> str:
    """Return an example in the unit of the key, which its parser knows."""
    try:
        parse("1s")
        low, high = "1s", "5s"
    except UnitError:
        low, high = "4KB", "1MB"
    return f"{{{name}: [{low}, {high}]}}" if name == "uniform" else f"{{{name}: {low}}}"
