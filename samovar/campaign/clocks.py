"""Estimate offset and drift of each host's clock against the controller's, with bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf

from samovar.hosts import ScriptResult, Session, Sessions, clock_offset

FIRST_READINGS = 3
DRIFT = 100e-6
"""The assumed largest drift between two clocks (100 ppm). Uncorrected crystals stay within it."""
STALE_SHARE = 0.5
"""A clock is read again once it may have drifted by half of the error of its estimated offset."""
STEERED_PPM = 500.0
"""NTP makes a clock at most this much faster or slower (adjtimex(2), ADJ_FREQUENCY)."""
WANDER_PPM = 5.0
"""The assumed largest deviation of a clock's rate from its mean. The rate of a crystal varies by about as
much when the temperature changes in the course of a day."""
MOST_READINGS = 20
LEAST_READINGS = 4
"""A drift is estimated from at least this many readings, because a drift with one step fits any three
readings."""
DEADLINE_S = 20.0


@dataclass(frozen=True)
class Reading:
    """A host's clock minus the controller's, with its error bound, at the controller's time `t_s`."""

    t_s: float
    offset_s: float
    error_s: float
    took_s: float

    def bounds(self, now_s: float) -> tuple[float, float]:
        """Return the lower and upper bound, in seconds, of the present offset according to this reading."""
        error_s = self.error_s + DRIFT * abs(now_s - self.t_s)
        return self.offset_s - error_s, self.offset_s + error_s


@dataclass(frozen=True)
class Drift:
    """Bounds of the rate at which a host's clock gains on the controller's; negative if it falls behind."""

    low_ppm: float = -inf
    high_ppm: float = inf

    def __and__(self, other: Drift) -> Drift:
        return Drift(max(self.low_ppm, other.low_ppm), min(self.high_ppm, other.high_ppm))

    @property
    def possible(self) -> bool:
        """Whether any drift lies within the bounds: the lower bound does not exceed the upper one."""
        return self.low_ppm <= self.high_ppm

    @property
    def least_ppm(self) -> float:
        """The smallest absolute drift within the bounds; 0 if the bounds include zero drift."""
        return max(self.low_ppm, -self.high_ppm, 0.0)

    def __str__(self) -> str:
        return f"{self.low_ppm:+.1f} to {self.high_ppm:+.1f} ppm"


@dataclass(frozen=True)
class ClockOffset:
    """The estimated offset of a clock; `stepped` is True if the latest reading contradicts earlier ones."""

    host: str
    offset_s: float
    error_s: float
    stepped: bool = False
    drift: Drift | None = None

    @property
    def correction_s(self) -> float:
        """Seconds to add to the controller's time to get the host's.

        The correction is 0 if the offset is within its error: the two clocks may then be the same clock, or
        NTP may keep their difference below that error.
        """
        return self.offset_s if abs(self.offset_s) > self.error_s else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the offset as manifest.json stores it."""
        bounds = (self.drift.low_ppm, self.drift.high_ppm) if self.drift else (None, None)
        low_ppm, high_ppm = (bound if bound is None else round(bound, 3) for bound in bounds)
        return {
            "host": self.host,
            "offset_s": round(self.offset_s, 6),
            "error_s": round(self.error_s, 6),
            "stepped": self.stepped,
            "drift_low_ppm": low_ppm,
            "drift_high_ppm": high_ppm,
        }


@dataclass
class Clocks:
    """The clock readings of a campaign by host. Each trial reads the clocks whose last reading is stale."""

    readings: dict[str, list[Reading]] = field(default_factory=dict)

    def read(self, sessions: Sessions, hosts: Iterable[str], script: Callable[[str], str]) -> None:
        """Read each clock whose last reading is stale; a clock without readings is read several times.

        Raises TestbedError.
        """

        def read_clock(session: Session) -> list[Reading]:
            count = 1 if self.readings.get(session.host) else FIRST_READINGS
            text = script(session.host)
            runs = (session.run(text, step="clock", deadline_s=DEADLINE_S) for _ in range(count))
            return [reading_of(result) for result in runs]

        stale = [host for host in hosts if self._is_stale(host, time.time())]
        for host, readings in sessions.map(read_clock, stale).items():
            self.readings[host] = [*self.readings.get(host, ()), *readings][-MOST_READINGS:]

    def forget(self) -> None:
        """Drop all readings, as after a reboot, which may change the offset of a host's clock."""
        self.readings.clear()

    def _is_stale(self, host: str, now_s: float) -> bool:
        readings = self.readings.get(host)
        if not readings:
            return True
        offset = estimate(host, readings, now_s)
        return offset.stepped or DRIFT * (now_s - readings[-1].t_s) > STALE_SHARE * offset.error_s

    def offsets(self, hosts: Iterable[str]) -> Mapping[str, ClockOffset]:
        """Return the estimated present offset of each host's clock, with its drift."""
        now_s = time.time()
        estimates = {host: estimate(host, self.readings[host], now_s) for host in hosts}
        return {host: replace(one, drift=drift_of(self.readings[host])) for host, one in estimates.items()}

    def longest_s(self) -> float:
        """Return the longest duration in seconds among the latest readings of all clocks."""
        return max((readings[-1].took_s for readings in self.readings.values()), default=0.0)


def reading_of(result: ScriptResult) -> Reading:
    """Return the reading from the output of a clock script. Raises TestbedError."""
    offset_s, error_s = clock_offset(result)
    return Reading(result.t_start_s + error_s, offset_s, error_s, result.seconds)


def estimate(host: str, readings: list[Reading], now_s: float) -> ClockOffset:
    """Estimate the offset of a host's clock from the latest readings that agree with each other.

    Readings agree if one offset lies within the bounds of all of them. If the latest reading does not agree
    with the reading before it, the clock has been set in between, and the offset is marked `stepped`.
    Readings from before the step are ignored.
    """
    least, greatest = readings[-1].bounds(now_s)
    agreeing = 0
    for reading in reversed(readings):
        low, high = reading.bounds(now_s)
        if max(least, low) > min(greatest, high):
            break
        least, greatest, agreeing = max(least, low), min(greatest, high), agreeing + 1
    stepped = agreeing == 1 < len(readings)
    return ClockOffset(host, (least + greatest) / 2, (greatest - least) / 2, stepped)


def drift_of(readings: Sequence[Reading]) -> Drift | None:
    """Return bounds of the mean drift of a clock that was set at most once; None if the drift is unknown.

    `readings` must be in the order in which they were taken. The clock's rate is assumed to stay within
    WANDER_PPM of its mean. If no drift with one step explains all readings, the oldest are left out one by
    one, at most half of them. The drift is unknown if the bounds include every rate to which NTP may steer a
    clock.
    """
    most = max(0, min(len(readings) // 2, len(readings) - LEAST_READINGS))
    bounds = (_drift_with_one_step(readings[first:]) for first in range(most + 1))
    drift = next((one for one in bounds if one.possible), None)
    return drift if drift and (drift.low_ppm > -STEERED_PPM or drift.high_ppm < STEERED_PPM) else None


def _drift_with_one_step(readings: Sequence[Reading]) -> Drift:
    """Return bounds of the drift, assuming that the clock made at most one step between the readings."""
    before, after = _even_drifts(readings), _even_drifts(readings[::-1])[::-1]
    both = [early & late for early, late in zip(before[:-1], after[1:], strict=True)] or before
    possible = [drift for drift in both if drift.possible]
    return Drift(
        min((drift.low_ppm for drift in possible), default=inf),
        max((drift.high_ppm for drift in possible), default=-inf),
    )


def _even_drifts(readings: Sequence[Reading]) -> list[Drift]:
    """Return, for each n, bounds of the drift over the first n readings, assuming that no one set the clock.

    Comparing pairs of readings is enough: if for any two offset intervals a line of a given slope passes
    through both, then one line of this slope passes through all intervals (Helly's theorem).
    """
    drifts: list[Drift] = []
    for count, last in enumerate(readings):
        pairs = (_drift_between(earlier, last) for earlier in readings[:count])
        drifts.append(reduce(Drift.__and__, pairs, drifts[-1] if drifts else Drift()))
    return drifts


def _drift_between(one: Reading, other: Reading) -> Drift:
    """Return bounds of the drift between two readings.

    Each reading was made at most `error_s` before or after the controller's time `t_s`. In a time `error_s`,
    a clock with drift d advances by (1 + d) `error_s`.
    """
    first, last = sorted((one, other), key=lambda reading: reading.t_s)
    apart_s, gained_s = last.t_s - first.t_s, last.offset_s - first.offset_s
    error_s = first.error_s + last.error_s
    low_ppm = (gained_s - error_s) / (apart_s + error_s) * 1e6
    high_ppm = (gained_s + error_s) / (apart_s - error_s) * 1e6 if apart_s > error_s else inf
    return Drift(low_ppm - WANDER_PPM, high_ppm + WANDER_PPM)
