"""The clocks of the hosts against the controller's: read over the control session, with an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from samovar.errors import TestbedError
from samovar.testbed import Completed, Session, Sessions

FIRST_READINGS = 3
DRIFT = 100e-6
"""How fast two clocks may part: what crystals do, and what ntpd corrects at most times."""
STALE_SHARE = 0.5
"""A clock is read again when it may have drifted by this share of what is not known of it anyway."""
KEPT = 20
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
class ClockOffset:
    """What is known of a host's clock; `stepped` when its readings contradict each other."""

    host: str
    offset_s: float
    error_s: float
    stepped: bool = False

    @property
    def correction_s(self) -> float:
        """What to add to the controller's time to get the host's.

        None that is smaller than its own error: hosts that share a clock, or keep it well by NTP, would be
        put apart by what is only the noise of a reading.
        """
        return self.offset_s if abs(self.offset_s) > self.error_s else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the plain form that stands in the manifest."""
        plain = {"host": self.host, "offset_s": round(self.offset_s, 6), "error_s": round(self.error_s, 6)}
        return {**plain, "stepped": self.stepped}


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
        return drift_s > STALE_SHARE * estimate(host, known, now_s).error_s

    def _read(self, session: Session, script: str) -> list[Reading]:
        count = 1 if self.readings.get(session.host) else FIRST_READINGS
        runs = (session.run(script, step="clock", deadline_s=DEADLINE_S) for _ in range(count))
        return [reading_of(done) for done in runs]

    def offsets(self, hosts: Iterable[str]) -> Mapping[str, ClockOffset]:
        """Estimate each host's offset now."""
        return {host: estimate(host, self.readings[host], time.time()) for host in hosts}

    def longest_s(self) -> float:
        """How long the slowest of the latest readings took."""
        return max((readings[-1].took_s for readings in self.readings.values()), default=0.0)


def reading_of(done: Completed) -> Reading:
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
    """Take what all readings allow; when nothing does, a clock has stepped and the newest reading counts."""
    bounds = [reading.bounds(now_s) for reading in readings]
    least, greatest = max(low for low, _ in bounds), min(high for _, high in bounds)
    stepped = least > greatest
    if stepped:
        least, greatest = bounds[-1]
    return ClockOffset(host, (least + greatest) / 2, (greatest - least) / 2, stepped)
