"""Random draws of a trial: from the stored seed, the part, the flow and the replicate, and nothing else.

All treatments of one replicate thus meet the same offsets, and another flow or replicate changes none.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from samovar.errors import PlanError
from samovar.experiment import Drawn

DIGITS = 6  # microseconds: finer than any host can start a program, the same on every machine
MOST_ARRIVALS = 10_000


class Draw(NamedTuple):
    """What a draw depends on."""

    seed: int
    part: str
    flow: str
    replicate: int

    def numbers(self) -> random.Random:
        """Return the numbers of this draw, the same ones every time."""
        return random.Random("/".join(map(str, self)))


def drawn(draw: Draw, law: Drawn) -> float:
    """Return an amount drawn by a law, in the law's unit."""
    return law.value(draw.numbers().random())


def poisson_s(draw: Draw, rate_hz: float, until_s: float | None, count: int | None) -> tuple[float, ...]:
    """Return the instants of a Poisson process, in seconds: so many, or those before an instant.

    Raises PlanError when they are too many to be flows of one trial.
    """
    return renewals_s(draw, lambda share: -math.log(1.0 - share) / rate_hz, until_s, count)


def renewals_s(
    draw: Draw, gap_s: Callable[[float], float], until_s: float | None, count: int | None
) -> tuple[float, ...]:
    """Return instants in seconds, so many or those before one, whose gaps are drawn independently.

    `gap_s` makes a gap of a number from 0 up to 1. Raises PlanError for more than MOST_ARRIVALS.
    """
    instants: list[float] = []
    for instant_s in _instants(draw.numbers(), gap_s):
        if (until_s is not None and instant_s >= until_s) or (count is not None and len(instants) >= count):
            break
        if len(instants) >= MOST_ARRIVALS:
            message = f"more than {MOST_ARRIVALS} arrivals; expected a lower rate or an earlier end"
            raise PlanError(f"flow {draw.flow}: {message}")
        instants.append(instant_s)
    return tuple(instants)


def _instants(numbers: random.Random, gap_s: Callable[[float], float]) -> Iterator[float]:
    now_s = 0.0
    while True:
        now_s += gap_s(numbers.random())
        yield round(now_s, DIGITS)
