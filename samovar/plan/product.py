"""All combinations of levels as numbers: no combination is held, each is worked out when asked for.

Combination n is a number in mixed radix: the last factor's level is its lowest digit, so that the last
factor varies fastest. A column is one number per combination, made by repeating blocks, not by walking.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress, product
from math import prod
from typing import TypeAlias

Levels = tuple[int, ...]
Column: TypeAlias = "array[int]"


@dataclass(frozen=True)
class Combinations:
    """Combinations of so many levels each, some left out, some added.

    `sizes` counts the levels of each factor, `crossed` those of them that are combined with all others: the
    first ones. `kept` numbers the combinations of the crossed levels that stay (None: all of them do).
    `added` are further ones.
    """

    sizes: Levels
    crossed: Levels
    kept: Column | None = None
    added: tuple[Levels, ...] = ()

    def __len__(self) -> int:
        return self._crossed + len(self.added)

    def __getitem__(self, number: int) -> Levels:
        """Return the levels of one combination, as their numbers."""
        if number >= self._crossed:
            return self.added[number - self._crossed]
        rest = number if self.kept is None else self.kept[number]
        levels = []
        for size in reversed(self.crossed):
            rest, level = divmod(rest, size)
            levels.append(level)
        return tuple(reversed(levels))

    @property
    def _crossed(self) -> int:
        return prod(self.crossed) if self.kept is None else len(self.kept)

    def keys(self, factors: Sequence[int]) -> Column:
        """Return a number per combination that is the same exactly where these factors' levels are."""
        strides = self.strides(factors)
        column = _spread(self.crossed, strides)
        if self.kept is not None:
            column = array("Q", map(column.__getitem__, self.kept))
        column.extend(
            sum(one * step for one, step in zip(levels, strides, strict=True)) for levels in self.added
        )
        return column

    def column(self, factor: int) -> Column:
        """Return the level of one factor for all combinations."""
        return self.keys([factor])

    def strides(self, factors: Sequence[int]) -> Levels:
        """Return what a level of each factor counts in a key; 0 for a factor that is none of these."""
        strides, step = [0] * len(self.sizes), 1
        for factor in sorted(factors, reverse=True):
            strides[factor] = step
            step *= self.sizes[factor]
        return tuple(strides)

    def levels_of(self, key: int, factors: Sequence[int]) -> Levels:
        """Return the levels that a key stands for; 0 for every other factor."""
        levels = [0] * len(self.sizes)
        for factor in sorted(factors, reverse=True):
            key, levels[factor] = divmod(key, self.sizes[factor])
        return tuple(levels)

    def rows(self, words: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
        """Yield a word per factor for every combination, in order."""
        crossed = product(*(list(one)[:size] for one, size in zip(words, self.crossed, strict=True)))
        if self.kept is None:
            yield from crossed
        else:
            yield from compress(crossed, self._mask())
        for levels in self.added:
            yield tuple(one[level] for one, level in zip(words, levels, strict=True))

    def without(self, line: Sequence[Sequence[int]]) -> Combinations:
        """Return the combinations without those whose every level is in a line.

        The line gives the matching levels of each factor.
        """
        mask = bytearray(b"\1") * prod(self.crossed) if self.kept is None else self._mask()
        for number in _matched(self.crossed, line):
            mask[number] = 0
        return replace(self, kept=array("Q", compress(range(len(mask)), mask)))

    def holds(self, levels: Levels) -> bool:
        """Say whether a combination is one of these."""
        if levels in self.added:
            return True
        if any(level >= size for level, size in zip(levels, self.crossed, strict=True)):
            return False
        number = 0
        for level, size in zip(levels, self.crossed, strict=True):
            number = number * size + level
        return self.kept is None or number in self.kept

    def plus(self, levels: Levels) -> Combinations:
        """Return the combinations with one more."""
        return replace(self, added=(*self.added, levels))

    def _mask(self) -> bytearray:
        mask = bytearray(prod(self.crossed))
        for number in self.kept or ():
            mask[number] = 1
        return mask


def _matched(sizes: Levels, line: Sequence[Sequence[int]]) -> Column:
    numbers = array("Q", [0])
    for size, levels in zip(sizes, line, strict=True):
        numbers = array("Q", [number * size + level for number in numbers for level in levels])
    return numbers


def _spread(sizes: Levels, strides: Levels) -> Column:
    """Return the sum of stride x level for every combination."""
    block = array("Q", [0])
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if not stride:
            block = block * size
            continue
        longer = array("Q")
        for level in range(size):
            longer.extend(block if not level else array("Q", [one + level * stride for one in block]))
        block = longer
    return block
