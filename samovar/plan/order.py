"""The order of trials: sequential, shuffled or in blocks; the same seed gives the same order.

Trials stay within their part, and parts follow each other in the order of the file. A block contains one
replicate of each treatment, so that drift over time affects all treatments equally. The shuffle of a block
depends on the seed, the part and the block only: more replicates append blocks and leave the others
unchanged.

Treatments that need a reboot to follow one another belong to different whole plots, and within a whole plot
those that need an interface reset belong to different plots: the settings that are costly to change change
least often. If hosts differ in what they need, plots are nested. Whole plots are shuffled, and treatments
within their plot (a split-plot design; Box, Hunter and Hunter, Statistics for Experimenters, 2nd ed., section
9.1). A whole plot is run to its end, all its blocks, before the next one, so that each level that needs a
reboot is booted once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from samovar.plan.trials import Slot

Nest: TypeAlias = "Sequence[Nest] | list[int]"
"""The treatments of one plot, or the plots within a larger one."""


@dataclass(frozen=True)
class WholePlots:
    """Which treatments share a whole plot (no reboot between them) and a plot within it (no reset either).

    Each column has an entry for each treatment, and equal entries need no change. There is one column for
    each set of hosts that change together; the first is to change least often.
    """

    reboots: Sequence[Sequence[Hashable]] = ()
    resets: Sequence[Sequence[Hashable]] = ()


def _nested(treatments: list[int], columns: Sequence[Sequence[Hashable]]) -> Nest:
    """Return the treatments by plot, nested, in the order of the treatments."""
    if not columns:
        return treatments
    plots: dict[Hashable, list[int]] = {}
    for treatment in treatments:
        plots.setdefault(columns[0][treatment], []).append(treatment)
    return [_nested(plot, columns[1:]) for plot in plots.values()]


def _plots(nest: Nest, generator: random.Random | None = None) -> Iterator[list[int]]:
    """Yield plot by plot, in order, or shuffled within each larger one."""
    plots = [one for one in nest if not isinstance(one, int)]
    if not plots:
        yield [one for one in nest if isinstance(one, int)]
        return
    if generator is not None:
        generator.shuffle(plots)
    for plot in plots:
        yield from _plots(plot, generator)


def _sequential(treatments: list[int], replicates: int, seed: str, plots: WholePlots) -> Iterator[Slot]:
    """Yield all replicates of the first treatment, then of the second, and so on, plot by plot."""
    for whole in _plots(_nested(treatments, plots.reboots)):
        for plot in _plots(_nested(whole, plots.resets)):
            for treatment in plot:
                yield from (Slot(treatment, replicate, 1) for replicate in range(1, replicates + 1))


def _shuffled(treatments: list[int], replicates: int, seed: str, plots: WholePlots) -> Iterator[Slot]:
    """Yield all trials in one random order, plot by plot."""
    generator = random.Random(seed)
    for whole in _plots(_nested(treatments, plots.reboots), generator):
        for plot in _plots(_nested(whole, plots.resets), generator):
            slots = [
                Slot(treatment, replicate + 1, 1) for treatment in plot for replicate in range(replicates)
            ]
            generator.shuffle(slots)
            yield from slots


def _blocked(treatments: list[int], replicates: int, seed: str, plots: WholePlots) -> Iterator[Slot]:
    """Yield whole plot after whole plot, each block after block.

    A block contains every treatment of its whole plot once, in a random order of its own.
    """
    wholes = _nested(treatments, plots.reboots)
    numbers = {first: number for number, first in enumerate(sorted(whole[0] for whole in _plots(wholes)))}
    for whole in _plots(wholes, random.Random(seed)):
        own_seed = f"{seed}/{numbers[whole[0]]}" if len(numbers) > 1 else seed
        nest = _nested(whole, plots.resets)
        for block in range(1, replicates + 1):
            generator = random.Random(f"{own_seed}/{block}")
            for plot in _plots(nest, generator):
                shuffled = list(plot)
                generator.shuffle(shuffled)
                yield from (Slot(treatment, block, block) for treatment in shuffled)


ORDERS: Mapping[str, Callable[[list[int], int, str, WholePlots], Iterator[Slot]]] = {
    "sequential": _sequential,
    "shuffled": _shuffled,
    "blocked": _blocked,
}


def ordered(
    kind: str, seed: int, part: str, treatments: int, replicates: int, plots: WholePlots | None = None
) -> list[Slot]:
    """Return the order of one part's trials; treatments are counted from 0, replicates and blocks from 1."""
    plots = plots or WholePlots()
    return list(ORDERS[kind](list(range(treatments)), replicates, f"{seed}/{part}", plots))
