"""Report throughput while a trial runs, from the interface counters of the receiving hosts.

A counter is read as a small file over the existing SSH connection, which starts no program on the host. Hosts
without such a file, as on FreeBSD, are left out. The progress display shows the throughput; the verdict does
not use it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from samovar.hosts import Sessions
from samovar.plan import Resolved

INTERVAL_S = 2.0
COUNTER = "/sys/class/net/{interface}/statistics/rx_bytes"  # sysfs-class-net-statistics in Documentation/ABI


@contextmanager
def throughput_reports(
    sessions: Sessions, resolved: Resolved, report: Callable[[Mapping[str, float]], None]
) -> Iterator[None]:
    """While the context is active, call `report` every 2 s with the receive rate of each receiver in bit/s.

    `report` is called in another thread. A rate is the mean since the previous report.
    """
    files = {
        flow.to_host: [COUNTER.format(interface=name) for name in resolved.hosts[flow.to_host].interfaces]
        for flow in resolved.flows
    }
    over = threading.Event()

    def received_bytes(host: str) -> int | None:
        texts = [sessions[host].peek(file) for file in files[host]]
        counts = [int(text) for text in texts if text and text.strip().isdigit()]
        return sum(counts) if counts and len(counts) == len(texts) else None

    def watch() -> None:
        before: dict[str, tuple[float, int]] = {}
        while not over.wait(INTERVAL_S):
            counted = {host: (time.monotonic(), received_bytes(host)) for host in files}
            now = {host: (t_s, count) for host, (t_s, count) in counted.items() if count is not None}
            rates_bps = {
                host: round(max(0, count - before[host][1]) * 8 / (t_s - before[host][0]), 1)
                for host, (t_s, count) in now.items()
                if host in before
            }
            before = now
            if rates_bps and not over.is_set():
                report(rates_bps)

    threading.Thread(target=watch, name="throughput", daemon=True).start()
    try:
        yield
    finally:
        over.set()
