"""The treatments of a part: which combinations of levels there are, and what their levels say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from samovar.errors import PlanError
from samovar.experiment import (
    Factor,
    Level,
    LevelText,
    Part,
    PerHost,
    Treatment,
    included_treatments,
    wanted_labels,
)
from samovar.plan.product import Combinations, Levels

ABSENT = object()


@dataclass(frozen=True)
class Design:
    """The factors of a part with their levels, those that are only included last, and the combinations."""

    part: Part
    factors: tuple[Factor, ...]
    combinations: Combinations

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The texts of the levels, by factor."""
        return tuple(factor.labels for factor in self.factors)

    @cached_property
    def setters(self) -> Mapping[str, tuple[int, ...]]:
        """The factors that set each target, by their number."""
        found: dict[str, list[int]] = {}
        for number, factor in enumerate(self.factors):
            for target in dict.fromkeys(target for level in factor.levels for target in level.texts):
                found.setdefault(target, []).append(number)
        return {target: tuple(numbers) for target, numbers in found.items()}

    @cached_property
    def per_host(self) -> frozenset[str]:
        """The targets that some level sets by host."""
        levels = (level for factor in self.factors for level in factor.levels)
        return frozenset(
            target for level in levels for target, value in level.texts.items() if isinstance(value, PerHost)
        )

    @cached_property
    def typed(self) -> Sequence[Sequence[Mapping[str, object]]]:
        """What each level of each factor sets, typed."""
        return [[_typed(factor, level) for level in factor.levels] for factor in self.factors]

    @cached_property
    def targets(self) -> Mapping[str, tuple[str, ...]]:
        """What is set below an owner such as path or traffic.bulk: the keys."""
        found: dict[str, list[str]] = {}
        for target in self.setters:
            owner, _, key = target.rpartition(".")
            found.setdefault(owner, []).append(key)
        return {owner: tuple(keys) for owner, keys in found.items()}


class Reader:
    """The levels of one treatment; remembers which factors were looked at, and whether the replicate was."""

    def __init__(self, design: Design, levels: Levels, replicate: int = 1) -> None:
        self.design, self._levels, self._replicate = design, levels, replicate
        self.read: set[int] = set()
        self.drawn = False

    @property
    def replicate(self) -> int:
        """The replicate, which random draws depend on."""
        self.drawn = True
        return self._replicate

    def get(self, target: str) -> object:
        """Return what the levels say for a target, typed; None when they say nothing."""
        for factor in self.design.setters.get(target, ()):
            self.read.add(factor)
            found = self.design.typed[factor][self._levels[factor]].get(target, ABSENT)
            if found is not ABSENT:
                return found
        return None

    def text(self, target: str) -> LevelText | None:
        """Return what the levels say for a target as it is written."""
        for factor in self.design.setters.get(target, ()):
            self.read.add(factor)
            found = self.design.factors[factor].levels[self._levels[factor]].texts.get(target)
            if found is not None:
                return found
        return None

    def labels(self) -> str:
        """Say the levels that were looked at: `path.rtt is 0ms, mtu is 600`."""
        factors = ((self.design.factors[one], self._levels[one]) for one in sorted(self.read))
        return ", ".join(f"{factor.name} is {factor.levels[level].label}" for factor, level in factors)

    def below(self, owner: str) -> dict[str, object]:
        """Return what the levels say for OWNER.KEY, by key."""
        keys = self.design.targets.get(owner, ())
        found = ((key, self.get(f"{owner}.{key}")) for key in keys)
        return {key: value for key, value in found if value is not None}


def design_of(name: str, part: Part) -> Design:
    """Return the treatments of a part, in the order of definition.treatments_of.

    Raises PlanError for lines of exclude and include that cannot be, should nobody have checked them.
    """
    own = tuple(part.factors.values())
    factors, added = _with_included(name, part, own)
    combinations = Combinations(_sizes(factors), _sizes(own))
    for line in part.exclude:
        combinations = _without(name, own, combinations, line)
    for levels in added:
        if combinations.holds(levels):
            words = " ".join(labels[level] for labels, level in zip(_labels(factors), levels, strict=True))
            raise PlanError(f"{name}: include: {words} is there already; expected another treatment")
        combinations = combinations.plus(levels)
    if not len(combinations):
        raise PlanError(f"{name}: every treatment is excluded; expected one that stays")
    return Design(part, factors, combinations)


def _sizes(factors: tuple[Factor, ...]) -> Levels:
    return tuple(len(factor.levels) for factor in factors)


def _labels(factors: tuple[Factor, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(factor.labels for factor in factors)


def _typed(factor: Factor, level: Level) -> Mapping[str, object]:
    unreadable = [target for target in level.texts if target not in level.values]
    if unreadable:
        raise PlanError(f"factor {factor.name}: level '{level.label}' cannot be read as {unreadable[0]}")
    return level.values


def _with_included(
    name: str, part: Part, factors: tuple[Factor, ...]
) -> tuple[tuple[Factor, ...], list[Levels]]:
    """Return the factors with the levels that only include lines have, and the levels of each line."""
    grown = {factor.name: list(factor.levels) for factor in factors}
    added: list[Levels] = []
    for line in _included(name, part):
        for factor, level in line.items():
            if level not in grown[factor]:
                grown[factor].append(level)
        added.append(tuple(grown[factor].index(level) for factor, level in line.items()))
    whole = tuple(replace(factor, levels=tuple(grown[factor.name])) for factor in factors)
    return whole, added


def _included(name: str, part: Part) -> list[Treatment]:
    try:
        return list(included_treatments(part))
    except (ValueError, KeyError) as error:
        raise PlanError(f"{name}: include: {error}") from error


def _without(
    name: str,
    factors: tuple[Factor, ...],
    combinations: Combinations,
    line: Mapping[str, str | tuple[str, ...]],
) -> Combinations:
    unknown = set(line) - {factor.name for factor in factors}
    matching = [_matching(factor, line.get(factor.name)) for factor in factors]
    if unknown or not all(matching):
        raise PlanError(f"{name}: exclude: {dict(line)} matches no treatment; expected one that there is")
    return combinations.without(matching)


def _matching(factor: Factor, wanted: str | tuple[str, ...] | None) -> list[int]:
    return [n for n, label in enumerate(factor.labels) if wanted is None or label in wanted_labels(wanted)]
