"""What flows while a trial runs, for people to see: counters of the receiving hosts, read now and then.

A reading is one small file over the connection that is there, no program and nothing written; a host that has
no such file is left out. Nothing is judged by it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from samovar.hosts import Sessions
from samovar.plan import Resolved

INTERVAL_S = 2.0
COUNTER = "/sys/class/net/{interface}/statistics/rx_bytes"  # sysfs-class-net-statistics in Documentation/ABI

Tell = Callable[[Mapping[str, float]], None]


class Gauge:
    """Tells from a thread of its own, while its context lasts, what hosts received since the last time."""

    def __init__(
        self, sessions: Sessions, resolved: Resolved, tell: Tell, interval_s: float = INTERVAL_S
    ) -> None:
        hosts = dict.fromkeys(flow.to_host for flow in resolved.flows)
        self._places = {
            host: [COUNTER.format(interface=name) for name in resolved.hosts[host].interfaces]
            for host in hosts
        }
        self._sessions, self._tell, self._interval_s = sessions, tell, interval_s
        self._over = threading.Event()

    def __enter__(self) -> Gauge:
        threading.Thread(target=self._watch, name="gauge", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        before: dict[str, tuple[float, int]] = {}
        while not self._over.wait(self._interval_s):
            now = {host: seen for host in self._places if (seen := self._count(host))}
            rates = {host: _rate_bps(before[host], seen) for host, seen in now.items() if host in before}
            before = now
            if rates and not self._over.is_set():
                self._tell(rates)

    def _count(self, host: str) -> tuple[float, int] | None:
        """Return when and how many bytes a host had received, None where that cannot be told."""
        session = self._sessions[host]
        said = [session.peek(place) for place in self._places[host]]
        counts = [int(one) for one in said if one and one.strip().isdigit()]
        return (time.monotonic(), sum(counts)) if counts and len(counts) == len(said) else None


def _rate_bps(before: tuple[float, int], after: tuple[float, int]) -> float:
    seconds, count_bytes = after[0] - before[0], after[1] - before[1]
    return round(max(0, count_bytes) * 8 / seconds, 1) if seconds > 0 else 0.0
