"""The treatment matrix of a part: all combinations of levels, without `exclude` and with `include`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from samovar.errors import PlanError
from samovar.experiment import Factor, Part, included_treatments, wanted_labels

Row = tuple[int, ...]
"""A treatment: the number of its level of each factor."""


@dataclass(frozen=True)
class Matrix:
    """The treatments of a part, a row each.

    The last factor varies fastest and included treatments come last. A factor's levels that only `include`
    names follow its own.
    """

    part: Part
    factors: tuple[Factor, ...]
    rows: Sequence[Row]

    @cached_property
    def setters(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the factors that set each target, such as `path.rate`; raises PlanError."""
        found: dict[str, dict[int, None]] = {}
        for number, factor in enumerate(self.factors):
            for level in factor.levels:
                for target in level.texts:
                    found.setdefault(target, {})[number] = None
                    if target not in level.values:
                        raise PlanError(
                            f"factor {factor.name}: level '{level.label}' is not a value of {target}"
                        )
        return {target: list(numbers) for target, numbers in found.items()}

    def keys(self, owner: str) -> list[str]:
        """Return the keys that levels set of an owner, such as `path` or `traffic.bulk`."""
        split = (target.rpartition(".") for target in self.setters)
        return [key for own, _, key in split if own == owner]


def matrix_of(name: str, part: Part) -> Matrix:
    """Return the treatment matrix of a part.

    Raises PlanError for lines of `exclude` and `include` that the checks of an experiment refuse as well.
    """
    own = tuple(part.factors.values())
    rows: list[Row] = list(product(*(range(len(factor.levels)) for factor in own)))
    for line in part.exclude:
        matching = _matching(name, own, line)
        rows = [
            row for row in rows if any(level not in match for level, match in zip(row, matching, strict=True))
        ]
    factors, added = _with_included(name, part, own)
    for row in added:
        if row in rows:
            words = " ".join(factor.labels[level] for factor, level in zip(factors, row, strict=True))
            raise PlanError(f"{name}: include: the treatment {words} exists already; include another one")
        rows.append(row)
    if not rows:
        raise PlanError(f"{name}: every treatment is excluded; leave at least one")
    return Matrix(part, factors, rows)


def _matching(
    name: str, factors: Sequence[Factor], line: Mapping[str, str | tuple[str, ...]]
) -> list[frozenset[int]]:
    """Return the levels of each factor that a line of `exclude` matches."""
    wanted = [wanted_labels(line.get(factor.name, factor.labels)) for factor in factors]
    matching = [
        frozenset(number for number, label in enumerate(factor.labels) if label in labels)
        for factor, labels in zip(factors, wanted, strict=True)
    ]
    if line.keys() - {factor.name for factor in factors} or not all(matching):
        raise PlanError(
            f"{name}: exclude: {dict(line)} matches no treatment; use levels of the part's factors"
        )
    return matching


def _with_included(
    name: str, part: Part, factors: Sequence[Factor]
) -> tuple[tuple[Factor, ...], Sequence[Row]]:
    """Return the factors with the levels that `include` adds, and the included treatments."""
    levels = {factor.name: list(factor.levels) for factor in factors}
    rows: list[Row] = []
    try:
        for line in included_treatments(part):
            for factor, level in line.items():
                if level not in levels[factor]:
                    levels[factor].append(level)
            rows.append(tuple(levels[factor].index(level) for factor, level in line.items()))
    except (ValueError, KeyError) as error:
        raise PlanError(f"{name}: include: {error}") from error
    return tuple(replace(factor, levels=tuple(levels[factor.name])) for factor in factors), rows
