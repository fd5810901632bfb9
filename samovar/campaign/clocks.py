"""The clocks of the hosts against the controller's: read over the control session, with an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf

from samovar.errors import TestbedError
from samovar.hosts import ScriptResult, Session, Sessions

FIRST_READINGS = 3
DRIFT = 100e-6
"""How fast two clocks may part: what crystals do, and what ntpd corrects at most times."""
STALE_SHARE = 0.5
"""A clock is read again when it may have drifted by this share of what is not known of it anyway."""
STEERED_PPM = 500.0
"""The most by which NTP's discipline changes a clock's rate, either way (adjtimex(2), ADJ_FREQUENCY)."""
WANDER_PPM = 5.0
"""How far a clock's rate may be from its mean, as a crystal's is with the day's temperature."""
KEPT = 20
CONTRADICTABLE = 4
"""Any three readings fit some drift and one step."""
DEADLINE_S = 20.0


@dataclass(frozen=True)
class Reading:
    """A host's clock minus the controller's at one time of the controller's, give or take an error."""

    t_s: float
    offset_s: float
    error_s: float
    took_s: float

    def bounds(self, now_s: float) -> tuple[float, float]:
        """Give the least and the greatest offset that this reading allows now."""
        error_s = self.error_s + DRIFT * abs(now_s - self.t_s)
        return self.offset_s - error_s, self.offset_s + error_s


@dataclass(frozen=True)
class Drift:
    """The least and the greatest rate at which a host's clock may gain on the controller's."""

    low_ppm: float = -inf
    high_ppm: float = inf

    def __and__(self, other: Drift) -> Drift:
        return Drift(max(self.low_ppm, other.low_ppm), min(self.high_ppm, other.high_ppm))

    @property
    def possible(self) -> bool:
        """Whether any rate is left."""
        return self.low_ppm <= self.high_ppm

    @property
    def telling(self) -> bool:
        """Whether it leaves out any rate at which a clock may be steered."""
        return self.low_ppm > -STEERED_PPM or self.high_ppm < STEERED_PPM

    @property
    def least_ppm(self) -> float:
        """How fast the clock runs off at least, either way."""
        return max(self.low_ppm, -self.high_ppm, 0.0)

    @property
    def most_ppm(self) -> float:
        """How fast the clock runs off at most, either way."""
        return max(self.high_ppm, -self.low_ppm)

    def __str__(self) -> str:
        return f"{self.low_ppm:+.1f} to {self.high_ppm:+.1f} ppm"


@dataclass(frozen=True)
class ClockOffset:
    """What is known of a host's clock; `stepped` when its newest reading contradicts those before."""

    host: str
    offset_s: float
    error_s: float
    stepped: bool = False
    drift: Drift | None = None

    @property
    def correction_s(self) -> float:
        """What to add to the controller's time to get the host's.

        None that is smaller than its own error: hosts that share a clock, or keep it well by NTP, would be
        put apart by what is only the noise of a reading.
        """
        return self.offset_s if abs(self.offset_s) > self.error_s else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the plain form that stands in the manifest."""
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
    """All readings of a campaign; a trial adds one of each host whose last has become stale."""

    readings: dict[str, list[Reading]] = field(default_factory=dict)

    def read(self, sessions: Sessions, hosts: Iterable[str], script: Callable[[str], str]) -> None:
        """Read each host's clock where that tells anything new, several times in the beginning.

        Raises TestbedError.
        """
        stale = [host for host in hosts if self._is_stale(host, time.time())]
        taken = sessions.map(lambda session: self._read(session, script(session.host)), stale)
        for host, readings in taken.items():
            self.readings[host] = [*self.readings.get(host, ()), *readings][-KEPT:]

    def forget(self) -> None:
        """Drop all readings, which say nothing of a clock whose machine has booted since."""
        self.readings.clear()

    def _is_stale(self, host: str, now_s: float) -> bool:
        known = self.readings.get(host)
        if not known:
            return True
        drift_s = DRIFT * (now_s - known[-1].t_s)
        offset = estimate(host, known, now_s)
        return offset.stepped or drift_s > STALE_SHARE * offset.error_s

    def _read(self, session: Session, script: str) -> list[Reading]:
        count = 1 if self.readings.get(session.host) else FIRST_READINGS
        runs = (session.run(script, step="clock", deadline_s=DEADLINE_S) for _ in range(count))
        return [reading_of(done) for done in runs]

    def offsets(self, hosts: Iterable[str]) -> Mapping[str, ClockOffset]:
        """Estimate each host's offset now, and its drift."""
        now_s = time.time()
        known = {host: self.readings[host] for host in hosts}
        return {
            host: replace(estimate(host, readings, now_s), drift=drift_of(readings))
            for host, readings in known.items()
        }

    def longest_s(self) -> float:
        """How long the slowest of the latest readings took."""
        return max((readings[-1].took_s for readings in self.readings.values()), default=0.0)


def reading_of(done: ScriptResult) -> Reading:
    """Understand one run of a clock script.

    The host read its clock at some time of the run; half way is at most half the run away. Raises
    TestbedError.
    """
    text = done.text.strip()
    if not text.isdecimal():
        raise TestbedError(f"{done.host}: clock: {text!r}; accepted: nanoseconds since the epoch")
    middle_s = done.t_start_s + done.seconds / 2
    return Reading(middle_s, int(text) / 1e9 - middle_s, done.seconds / 2, done.seconds)


def estimate(host: str, readings: list[Reading], now_s: float) -> ClockOffset:
    """Take what the latest readings allow, as many as some offset explains.

    A clock has stepped when the newest stands alone. Those before it are of another time then, and no fault
    of the trials that come after a reading has agreed with it.
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
    """Bound the mean drift of a clock that may have been set once; None when that is not known.

    Its rate is taken to stay within WANDER_PPM of the mean, and readings to be in the order in which they
    were taken. Where one step does not explain them, the oldest are left out, at most half: the clock was
    set or steered otherwise then.
    """
    most = max(0, min(len(readings) // 2, len(readings) - CONTRADICTABLE))
    kept = (_stepped_once(readings[first:]) for first in range(most + 1))
    found = next((drift for drift in kept if drift.possible), None)
    return found if found and found.telling else None


def _stepped_once(readings: Sequence[Reading]) -> Drift:
    """Take every drift with which a step between some two readings, or none at all, explains them."""
    before, after = _even(readings), _even(readings[::-1])[::-1]
    ways = [early & late for early, late in zip(before[:-1], after[1:], strict=True)] or before
    allowed = [way for way in ways if way.possible]
    return Drift(
        min((way.low_ppm for way in allowed), default=inf),
        max((way.high_ppm for way in allowed), default=-inf),
    )


def _even(readings: Sequence[Reading]) -> list[Drift]:
    """Bound the drift by the first reading, the first two, and so on.

    Pairs are enough: a line of some slope meets all intervals as soon as one meets each two (Helly).
    """
    found: list[Drift] = []
    for count, last in enumerate(readings):
        pairs = (_between(earlier, last) for earlier in readings[:count])
        found.append(reduce(Drift.__and__, pairs, found[-1] if found else Drift()))
    return found


def _between(one: Reading, other: Reading) -> Drift:
    apart_s, gained_s = other.t_s - one.t_s, other.offset_s - one.offset_s
    error_s = one.error_s + other.error_s
    if apart_s == 0:
        return Drift() if abs(gained_s) <= error_s else Drift(inf, -inf)
    rate_ppm, error_ppm = gained_s / apart_s * 1e6, error_s / abs(apart_s) * 1e6 + WANDER_PPM
    return Drift(rate_ppm - error_ppm, rate_ppm + error_ppm)
