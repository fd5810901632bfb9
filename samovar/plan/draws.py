"""Random draws of a trial: from the stored seed, the part, the flow and the replicate, and nothing else.

All treatments of one replicate thus meet the same offsets, and another flow or replicate changes none.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import NamedTuple

from samovar.errors import PlanError

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


def uniform_s(draw: Draw, low_s: float, high_s: float) -> float:
    """Return an instant between two, in seconds."""
    return round(low_s + (high_s - low_s) * draw.numbers().random(), DIGITS)


def poisson_s(draw: Draw, rate_hz: float, until_s: float | None, count: int | None) -> tuple[float, ...]:
    """Return the instants of a Poisson process, in seconds: so many, or those before an instant.

    Raises PlanError when they are too many to be flows of one trial.
    """
    instants: list[float] = []
    for instant_s in _arrivals(draw.numbers(), rate_hz):
        if (until_s is not None and instant_s >= until_s) or (count is not None and len(instants) >= count):
            break
        if len(instants) >= MOST_ARRIVALS:
            message = f"more than {MOST_ARRIVALS} arrivals; expected a lower rate or an earlier end"
            raise PlanError(f"flow {draw.flow}: {message}")
        instants.append(instant_s)
    return tuple(instants)


def _arrivals(numbers: random.Random, rate_hz: float) -> Iterator[float]:
    """Yield instants with exponential gaps, by the inverse of the distribution."""
    now_s = 0.0
    while True:
        now_s += -math.log(1.0 - numbers.random()) / rate_hz
        yield round(now_s, DIGITS)
