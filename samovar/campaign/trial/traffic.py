"""Run the traffic of a trial: start it on all hosts at the same time, and watch it until it ends on all.

While the traffic runs, the throughput is read from the interface counters of the receiving hosts. A counter
is read as a small file over the existing SSH connection, which starts no program on the host. Hosts without
such counter files, as on FreeBSD, are left out. The progress display shows the throughput; the verdict does
not use it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from samovar.campaign.verdict import TrafficFailure
from samovar.errors import SamovarError
from samovar.experiment import keys
from samovar.hosts import Session, Sessions
from samovar.plan import Resolved
from samovar.recipes import StopRule, TrialScripts

SERVER_GONE_S = 1.0
"""If a client still runs this long after its server has exited, the flow has failed."""
GRACE_S = 15.0
"""The traffic may end this much later than planned. A client that does not end at its limit is killed ten
seconds later (prelude.sh.j2)."""
FAILURES = frozenset({"failed", "lost", "disk", "clock"})
"""Keywords that the watch script of a host prints: a generator failed, a logger failed, the disk is nearly
full, or the clock was set. Each of these failures ends the trial."""
REPORT_INTERVAL_S = 2.0
COUNTER = "/sys/class/net/{interface}/statistics/rx_bytes"  # sysfs-class-net-statistics in Documentation/ABI


class Traffic:
    """Runs the traffic of one trial on all of its hosts. An object is used for one run only.

    On each host, a watch script watches the host's own programs, disk and clock, and prints what happens. The
    class reacts to this output: at the end of a flow, it stops clients on other hosts that were to run only
    until then; after a failure, it stops all hosts. `failures` lists the failures; `t_end_s` is the end of
    the traffic by the controller's clock.
    """

    def __init__(
        self, scripts: TrialScripts, sessions: Sessions, t0_ns: Mapping[str, int], limits: keys.Thresholds
    ) -> None:
        self._scripts, self._sessions, self._t0_ns, self._limits = scripts, sessions, t0_ns, limits
        self._hosts = tuple(host for host in scripts.resolved.hosts if scripts.processes(host))
        self._clients = {host: frozenset(scripts.clients(host)) for host in self._hosts}
        self._busy = {host for host, clients in self._clients.items() if clients}
        self._ended: set[str] = set()
        self._applied_rules: set[StopRule] = set()
        self._change = threading.Condition()
        self._over = False
        self.failures: list[TrafficFailure] = []
        self.t_end_s = 0.0

    def run(self, deadline_s: float) -> None:
        """Start the traffic on all hosts, and return once it has ended.

        Raises TestbedError if a host is lost, RecipeError if a script cannot be rendered, and OSError if a
        script's output cannot be recorded.
        """
        self._until = time.monotonic() + deadline_s + GRACE_S
        self._sessions.map(self._watch, self._hosts)

    def _watch(self, session: Session) -> None:
        """Run the watch script of one host, and rerun it after each report until the traffic has ended."""
        host = session.host
        t0_ns = self._t0_ns.get(host, 0)  # a host without clients and servers starts nothing
        try:
            script = self._scripts.traffic(host, t0_ns, self._limits) or ""
            while True:
                left_s = max(1.0, self._until - time.monotonic())
                result = session.run(script, step="traffic", deadline_s=left_s)
                for line in result.text.splitlines():
                    self._handle(host, line)
                if self._over:
                    return
                script = self._scripts.follow(host, t0_ns, limits=self._limits)
        except (SamovarError, OSError):  # OSError: the script's output cannot be recorded
            self._stop()
            raise

    def _handle(self, host: str, line: str) -> None:
        """Act on one line that the watch script of a host has printed."""
        word, *rest = line.split(" ", 2)
        if word in FAILURES:
            with self._change:
                self.failures.append(TrafficFailure(word, host, " ".join(rest)))
            self._stop()
        elif word == "gone":
            self._check_client_of(rest[0])
        elif word == "ended":
            self._end({rest[0]})
        elif word == "idle":
            with self._change:
                self._busy.discard(host)
                last = not self._busy
            self._end(self._clients[host])
            if last:
                self._stop()

    def _check_client_of(self, server: str) -> None:
        """Once a server has exited, declare its client failed unless the client ends within SERVER_GONE_S."""
        client = f"{server.removesuffix('-server')}-client"
        with self._change:
            if self._change.wait_for(lambda: self._over or client in self._ended, SERVER_GONE_S):
                return
        self._order(client, "doubt")

    def _end(self, clients: Iterable[str]) -> None:
        """Record that `clients` have ended, and stop other clients that were to run only until then."""
        with self._change:
            self._ended.update(clients)
            due = [rule for rule in self._scripts.rules if rule.when <= self._ended]
            new = [rule for rule in due if rule not in self._applied_rules]
            self._applied_rules.update(new)
            self._change.notify_all()
        for rule in new:
            for client in rule.finish:
                self._order(client, "halt")

    def _order(self, client: str, word: str) -> None:
        for host, clients in self._clients.items():
            if client in clients:
                self._sessions[host].order(self._scripts.order(f"{client}.{word}"))

    def _stop(self) -> None:
        """Order every host to stop its programs and to end its watch script."""
        with self._change:
            first, self._over = not self._over, True
            if first:
                self.t_end_s = time.time()
            self._change.notify_all()
        for host in self._hosts if first else ():
            self._sessions[host].order(self._scripts.order("stop"))


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
        while not over.wait(REPORT_INTERVAL_S):
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
