"""Run the traffic of a trial: started at one instant on all hosts, watched until it has ended everywhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping

from samovar.campaign.verdict import TrafficFailure
from samovar.errors import TestbedError
from samovar.experiment import keys
from samovar.hosts import Session, Sessions
from samovar.recipes import StopRule, TrialScripts

SERVER_GONE_S = 1.0
"""A client may outlive its server for this long before the server counts as dead."""
GRACE_S = 10.0
FAILURES = frozenset({"failed", "lost", "disk", "clock"})
"""Keywords that a host's watch prints for a failed generator, logger, disk or clock. Each ends the trial."""


class Traffic:
    """The traffic of one trial on all of its hosts; used once.

    Each host watches its own programs, disk and clock. This class tells the other hosts of the end of a flow
    that they wait for, and of a failure, which ends the trial. `failures` lists the failures; `t_end_s` is
    the end of the traffic by the controller's clock.
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
        """Start everything and return once all has ended. Raises TestbedError if a host is lost."""
        self._until = time.monotonic() + deadline_s + GRACE_S
        self._sessions.map(self._watch, self._hosts)

    def _watch(self, session: Session) -> None:
        """Run the watch of one host again and again until the traffic is over."""
        host = session.host
        t0_ns = self._t0_ns.get(host, 0)  # a host without an end of a flow starts nothing
        script = self._scripts.traffic(host, t0_ns, self._limits.disk_bytes, self._limits.clock_step_s) or ""
        try:
            while True:
                left_s = max(1.0, self._until - time.monotonic())
                result = session.run(script, step="traffic", deadline_s=left_s)
                for line in result.text.splitlines():
                    self._handle(host, line)
                if self._over:
                    return
                script = self._scripts.follow(host, t0_ns)
        except TestbedError:
            self._stop()
            raise

    def _handle(self, host: str, line: str) -> None:
        """Act on one line of a host's watch."""
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
        """Check the client of a server that has exited, unless the flow is just ending."""
        client = f"{server.removesuffix('-server')}-client"
        with self._change:
            if self._change.wait_for(lambda: self._over or client in self._ended, SERVER_GONE_S):
                return
        self._order(client, "doubt")

    def _end(self, clients: Iterable[str]) -> None:
        """Note the clients that have ended, and stop the clients that were to run until then."""
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
        """Stop all running programs and let every host's watch end."""
        with self._change:
            first, self._over = not self._over, True
            if first:
                self.t_end_s = time.time()
            self._change.notify_all()
        for host in self._hosts if first else ():
            self._sessions[host].order(self._scripts.order("stop"))
