"""Random draws of a trial: from the stored seed, the part, the flow and the replicate, and nothing else.

All treatments of one replicate thus meet the same offsets, and another flow or replicate changes none.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from samovar.errors import PlanError
from samovar.experiment import Distribution

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


def drawn(draw: Draw, distribution: Distribution) -> float:
    """Return one random amount, in the unit of its distribution."""
    return distribution.quantile(draw.numbers().random())


def poisson_s(draw: Draw, rate_hz: float, until_s: float | None, count: int | None) -> tuple[float, ...]:
    """Return the arrivals of a Poisson process in seconds: the first `count`, or all before `until_s`.

    Raises PlanError for more than MOST_ARRIVALS.
    """
    arrivals: list[float] = []
    numbers, now_s = draw.numbers(), 0.0
    while count is None or len(arrivals) < count:
        now_s += -math.log(1.0 - numbers.random()) / rate_hz
        arrival_s = round(now_s, DIGITS)
        if until_s is not None and arrival_s >= until_s:
            break
        if len(arrivals) >= MOST_ARRIVALS:
            message = f"more than {MOST_ARRIVALS} arrivals; expected a lower rate or an earlier end"
            raise PlanError(f"flow {draw.flow}: {message}")
        arrivals.append(arrival_s)
    return tuple(arrivals)
