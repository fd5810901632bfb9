"""The order of trials: sequential, shuffled or in blocks; the same seed gives the same order.

Trials stay within their part, and parts follow each other as they stand in the file. A block holds the n-th
replicate of each treatment once, so that what drifts with time meets all treatments alike. The shuffle of
a block depends on the seed, the part and the block alone: more replicates append blocks and leave the others.

Treatments that need a reboot to follow one another are kept apart in whole plots, and within these
those that need an interface reset: what is costly to change changes least often. Plots are shuffled, and
treatments within their plot (a split-plot design; Box, Hunter and Hunter, Statistics for
Experimenters, 2nd ed., section 9.1). A whole plot is run to its end, all its blocks, before the next one, so
that a level which takes a reboot is booted once; what takes a reset only is taken up anew in each block.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from samovar.plan.table import Order

Indices = list[int]


class Slot(NamedTuple):
    """One trial's place: which treatment (by its index), which replicate, in which block."""

    treatment: int
    replicate: int
    block: int


@dataclass(frozen=True)
class Plots:
    """What must be rebooted and reset for each treatment: equal numbers need no change (None: never any)."""

    reboots: Sequence[int] | None = None
    resets: Sequence[int] | None = None

    def split(self, treatments: Indices) -> list[list[Indices]]:
        """Return the treatments by whole plot and, within these, by plot; in the order in which they come."""
        return [_grouped(plot, self.resets) for plot in _grouped(treatments, self.reboots)]


def _grouped(treatments: Indices, states: Sequence[int] | None) -> list[Indices]:
    if states is None:
        return [treatments]
    found: dict[int, Indices] = {}
    for treatment in treatments:
        found.setdefault(states[treatment], []).append(treatment)
    return list(found.values())


def sequential(treatments: int, replicates: int, seed: str, plots: Plots) -> Order:
    """Return all replicates of the first treatment, then of the second, and so on, plot by plot."""
    del seed
    indices = [one for whole in plots.split(list(range(treatments))) for plot in whole for one in plot]
    every = array("I", [one for one in indices for _ in range(replicates)])
    return Order(every, array("I", range(1, replicates + 1)) * treatments, array("I", [1]) * len(every))


def shuffled(treatments: int, replicates: int, seed: str, plots: Plots) -> Order:
    """Return all trials of the part in one random order, plot by plot."""
    numbers = random.Random(seed)
    slots = array("L")
    for plot in _shuffled_plots(list(range(treatments)), numbers, plots):
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
    wholes = plots.split(list(range(treatments)))
    names = [f"{seed}/{number}" for number in range(len(wholes))] if len(wholes) > 1 else [seed]
    order = list(range(len(wholes)))
    random.Random(seed).shuffle(order)
    every, blocks = array("I"), array("I")
    for number in order:
        length = sum(map(len, wholes[number]))
        for block in range(1, replicates + 1):
            every.extend(_shuffled(wholes[number], random.Random(f"{names[number]}/{block}")))
            blocks.extend(array("I", [block]) * length)
    return Order(every, blocks, blocks)


def _shuffled_plots(treatments: Indices, numbers: random.Random, plots: Plots) -> Iterator[Indices]:
    whole = plots.split(treatments)
    numbers.shuffle(whole)
    for inside in whole:
        numbers.shuffle(inside)
        yield from inside


def _shuffled(plots: Sequence[Indices], numbers: random.Random) -> Iterator[int]:
    inside = [list(plot) for plot in plots]
    numbers.shuffle(inside)
    for plot in inside:
        numbers.shuffle(plot)
        yield from plot


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
