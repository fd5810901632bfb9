"""The order of trials: sequential, shuffled or in blocks; the same seed gives the same order.

Trials stay within their part, and parts follow each other as they stand in the file. A block holds the n-th
replicate of each treatment once, so that what drifts with time meets all treatments alike. The shuffle of
a block depends on the seed, the part and the block alone: more replicates append blocks and leave the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Slot(NamedTuple):
    """One trial's place: which treatment (by its index), which replicate, in which block."""

    treatment: int
    replicate: int
    block: int


def sequential(treatments: int, replicates: int, seed: str) -> list[Slot]:
    """Return all replicates of the first treatment, then of the second, and so on."""
    del seed
    return [Slot(index, one, 1) for index in range(treatments) for one in range(1, replicates + 1)]


def shuffled(treatments: int, replicates: int, seed: str) -> list[Slot]:
    """Return all trials of the part in one random order."""
    slots = sequential(treatments, replicates, seed)
    random.Random(seed).shuffle(slots)
    return slots


def blocked(treatments: int, replicates: int, seed: str) -> list[Slot]:
    """Return block after block; each holds every treatment once, in an order of its own."""
    slots: list[Slot] = []
    for block in range(1, replicates + 1):
        indices = list(range(treatments))
        random.Random(f"{seed}/{block}").shuffle(indices)
        slots += [Slot(index, block, block) for index in indices]
    return slots


ORDERS: Mapping[str, Callable[[int, int, str], list[Slot]]] = {
    "sequential": sequential,
    "shuffled": shuffled,
    "blocked": blocked,
}


def ordered(kind: str, seed: int, part: str, treatments: int, replicates: int) -> list[Slot]:
    """Return the order of one part's trials."""
    return ORDERS[kind](treatments, replicates, f"{seed}/{part}")
