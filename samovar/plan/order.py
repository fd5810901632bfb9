"""The order of trials: sequential, shuffled or in blocks; the same seed gives the same order.

Trials stay within their part, and parts follow each other as they stand in the file. A block holds the n-th
replicate of each treatment once, so that what drifts with time meets all treatments alike. The shuffle of
a block depends on the seed, the part and the block alone: more replicates append blocks and leave the others.

Treatments that need a reboot to follow one another are kept apart in whole plots, and within these
those that need an interface reset: what is costly to change changes least often. Where hosts differ in what
they need, plots are nested: what most hosts change with changes least often. Plots are shuffled, and
treatments within their plot (a split-plot design; Box, Hunter and Hunter, Statistics for
Experimenters, 2nd ed., section 9.1). A whole plot is run to its end, all its blocks, before the next one, so
that a level which takes a reboot is booted once; what takes a reset only is taken up anew in each block.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from samovar.plan.table import Order

Indices = list[int]


class Slot(NamedTuple):
    """One trial's place: which treatment (by its index), which replicate, in which block."""

    treatment: int
    replicate: int
    block: int


Nest: TypeAlias = "Sequence[Nest] | Indices"
"""Treatments of one plot, or plots within a larger one."""


@dataclass(frozen=True)
class Plots:
    """What must be rebooted and reset for each treatment: equal numbers need no change.

    There is a column for each set of hosts that change with one another, what is to change least often first.
    """

    reboots: Sequence[Sequence[int]] = ()
    resets: Sequence[Sequence[int]] = ()

    def wholes(self, treatments: Indices) -> Nest:
        """Return the treatments by whole plot, nested, in the order in which they come."""
        return _nested(treatments, self.reboots)

    def within(self, whole: Indices) -> Nest:
        """Return the treatments of a whole plot by plot, nested, in the order in which they come."""
        return _nested(whole, self.resets)


def _nested(treatments: Indices, columns: Sequence[Sequence[int]]) -> Nest:
    if not columns:
        return treatments
    found: dict[int, Indices] = {}
    for treatment in treatments:
        found.setdefault(columns[0][treatment], []).append(treatment)
    return [_nested(group, columns[1:]) for group in found.values()]


def _plots(nest: Nest, numbers: random.Random | None = None) -> Iterator[Indices]:
    """Yield plot by plot: in the order in which they come, or shuffled within each larger one."""
    plots = [one for one in nest if not isinstance(one, int)]
    if not plots:
        yield [one for one in nest if isinstance(one, int)]
        return
    if numbers is not None:
        numbers.shuffle(plots)
    for plot in plots:
        yield from _plots(plot, numbers)


def sequential(treatments: int, replicates: int, seed: str, plots: Plots) -> Order:
    """Return all replicates of the first treatment, then of the second, and so on, plot by plot."""
    del seed
    wholes = _plots(plots.wholes(list(range(treatments))))
    indices = [one for whole in wholes for plot in _plots(plots.within(whole)) for one in plot]
    every = array("I", [one for one in indices for _ in range(replicates)])
    return Order(every, array("I", range(1, replicates + 1)) * treatments, array("I", [1]) * len(every))


def shuffled(treatments: int, replicates: int, seed: str, plots: Plots) -> Order:
    """Return all trials of the part in one random order, plot by plot."""
    numbers = random.Random(seed)
    slots = array("L")
    wholes = _plots(plots.wholes(list(range(treatments))), numbers)
    for plot in (plot for whole in wholes for plot in _plots(plots.within(whole), numbers)):
        inside = [one * replicates + replicate for one in plot for replicate in range(replicates)]
        numbers.shuffle(inside)
        slots.extend(inside)
    return Order(
        array("I", [slot // replicates for slot in slots]),
        array("I", [slot % replicates + 1 for slot in slots]),
        array("I", [1]) * len(slots),
    )


def blocked(treatments: int, replicates: int, seed: str, plots: Plots) -> Order:
    """Return whole plot after whole plot, each block after block.

    A block holds every treatment of its whole plot once, in an order of its own.
    """
    nest = plots.wholes(list(range(treatments)))
    firsts = [whole[0] for whole in _plots(nest)]
    names = {
        one: f"{seed}/{number}" if len(firsts) > 1 else seed for number, one in enumerate(sorted(firsts))
    }
    every, blocks = array("I"), array("I")
    for whole in _plots(nest, random.Random(seed)):
        within = plots.within(whole)
        for block in range(1, replicates + 1):
            every.extend(_shuffled(within, random.Random(f"{names[whole[0]]}/{block}")))
            blocks.extend(array("I", [block]) * len(whole))
    return Order(every, blocks, blocks)


def _shuffled(nest: Nest, numbers: random.Random) -> Iterator[int]:
    for plot in _plots(nest, numbers):
        inside = list(plot)
        numbers.shuffle(inside)
        yield from inside


ORDERS: Mapping[str, Callable[[int, int, str, Plots], Order]] = {
    "sequential": sequential,
    "shuffled": shuffled,
    "blocked": blocked,
}
NO_PLOTS = Plots()


def order_of(
    kind: str, seed: int, part: str, treatments: int, replicates: int, plots: Plots = NO_PLOTS
) -> Order:
    """Return the order of one part's trials."""
    return ORDERS[kind](treatments, replicates, f"{seed}/{part}", plots)


def ordered(
    kind: str, seed: int, part: str, treatments: int, replicates: int, plots: Plots = NO_PLOTS
) -> list[Slot]:
    """Return the order of one part's trials, a slot for each."""
    order = order_of(kind, seed, part, treatments, replicates, plots)
    return list(map(Slot, order.treatments, order.replicates, order.blocks))
