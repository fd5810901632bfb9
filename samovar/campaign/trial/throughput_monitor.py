"""Show throughput while a trial runs, from the receiving hosts' interface counters.

A reading is one small file over the existing connection: it starts no program and writes nothing. Hosts
without such a file are left out. No check uses it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from samovar.hosts import Sessions
from samovar.plan import Resolved

INTERVAL_S = 2.0
COUNTER = "/sys/class/net/{interface}/statistics/rx_bytes"  # sysfs-class-net-statistics in Documentation/ABI


class ThroughputMonitor:
    """While its context lasts: report from a thread what each receiving host received lately, in bit/s."""

    def __init__(
        self,
        sessions: Sessions,
        resolved: Resolved,
        report: Callable[[Mapping[str, float]], None],
        interval_s: float = INTERVAL_S,
    ) -> None:
        hosts = dict.fromkeys(flow.to_host for flow in resolved.flows)
        self._files = {
            host: [COUNTER.format(interface=name) for name in resolved.hosts[host].interfaces]
            for host in hosts
        }
        self._sessions, self._report, self._interval_s = sessions, report, interval_s
        self._over = threading.Event()

    def __enter__(self) -> ThroughputMonitor:
        threading.Thread(target=self._watch, name="throughput", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        before: dict[str, tuple[float, int]] = {}
        while not self._over.wait(self._interval_s):
            now = {host: reading for host in self._files if (reading := self._read(host))}
            rates_bps = {}
            for host, (t_s, count_bytes) in now.items():
                then_s, then_bytes = before.get(host, (t_s, 0))
                if t_s > then_s:
                    rates_bps[host] = round(max(0, count_bytes - then_bytes) * 8 / (t_s - then_s), 1)
            before = now
            if rates_bps and not self._over.is_set():
                self._report(rates_bps)

    def _read(self, host: str) -> tuple[float, int] | None:
        """Return the time and the bytes that a host has received; None if it cannot be read."""
        texts = [self._sessions[host].peek(file) for file in self._files[host]]
        counts = [int(text) for text in texts if text and text.strip().isdigit()]
        return (time.monotonic(), sum(counts)) if counts and len(counts) == len(texts) else None
