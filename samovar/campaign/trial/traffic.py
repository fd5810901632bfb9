"""The traffic of a trial: one instant for all hosts, then watched until all of it has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping

from samovar.campaign.verdict import Ending, Failure
from samovar.errors import TestbedError
from samovar.hosts import Session, Sessions
from samovar.recipes import NO_LIMITS, AbortLimits, StopRule, TrialScripts

DOUBT_S = 1.0
"""How long a client may outlive its server before the server is taken to have died."""
GRACE_S = 10.0
FAILURES = frozenset({"failed", "lost", "disk", "clock"})
"""The words by which a watch tells of a generator, a logger, the disk and the clock that end the trial."""


class Traffic:
    """The traffic of one trial on all of its hosts; used once.

    Each host that runs anything watches its own programs, its disk and its clock. What one host must know of
    another goes through here: the end of a flow that others wait for, and that something has failed, which
    ends the trial.
    """

    def __init__(
        self,
        scripts: TrialScripts,
        sessions: Sessions,
        t0_ns: Mapping[str, int],
        limits: AbortLimits = NO_LIMITS,
    ) -> None:
        self._scripts, self._sessions, self._t0_ns, self._limits = scripts, sessions, t0_ns, limits
        self._hosts = tuple(host for host in scripts.resolved.hosts if scripts.processes(host))
        self._clients = {host: frozenset(scripts.clients(host)) for host in self._hosts}
        self._busy = {host for host, clients in self._clients.items() if clients}
        self._ended: set[str] = set()
        self._done_rules: set[StopRule] = set()
        self._change = threading.Condition()
        self._over = False
        self.ending = Ending()

    def run(self, deadline_s: float) -> Ending:
        """Start everything and return when all has ended. Raises TestbedError when a host is lost."""
        self._until = time.monotonic() + deadline_s + GRACE_S
        self._sessions.map(self._attend, self._hosts)
        return self.ending

    def _attend(self, session: Session) -> None:
        t0_ns = self._t0_ns.get(session.host, 0)  # a host without an end of a flow starts nothing
        script = self._scripts.traffic(session.host, t0_ns, self._limits) or ""
        try:
            while not self._hear(session.host, self._watch(session, script)):
                script = self._scripts.follow(session.host, t0_ns)
        except TestbedError:
            self._stop()
            raise

    def _watch(self, session: Session, script: str) -> Iterator[list[str]]:
        left_s = max(1.0, self._until - time.monotonic())
        done = session.run(script, step="traffic", deadline_s=left_s)
        return (line.split(" ", 2) for line in done.text.splitlines())

    def _hear(self, host: str, told: Iterable[list[str]]) -> bool:
        """Act upon what a host's watch has told; True when the traffic is over."""
        for word, *rest in told:
            if word in FAILURES:
                self._fail(Failure(word, host, " ".join(rest)))
            elif word == "gone":
                self._doubt(rest[0])
            elif word == "ended":
                self._end({rest[0]})
            elif word == "idle":
                self._idle(host)
        with self._change:
            return self._over

    def _fail(self, failure: Failure) -> None:
        with self._change:
            self.ending.failures.append(failure)
        self._stop()

    def _doubt(self, server: str) -> None:
        """Ask after the client of a server that is gone, unless the flow ends just now."""
        client = f"{server.removesuffix('-server')}-client"
        with self._change:
            self._change.wait_for(lambda: self._over or client in self._ended, DOUBT_S)
            late = not self._over and client not in self._ended
        if late:
            self._order(client, "doubt")

    def _idle(self, host: str) -> None:
        with self._change:
            self._busy.discard(host)
            last = not self._busy
        self._end(self._clients[host])
        if last:
            self._stop()

    def _end(self, clients: Iterable[str]) -> None:
        with self._change:
            self._ended.update(clients)
            due = [rule for rule in self._scripts.rules if rule.when <= self._ended]
            fresh = [rule for rule in due if rule not in self._done_rules]
            self._done_rules.update(fresh)
            self._change.notify_all()
        for rule in fresh:
            for client in rule.finish:
                self._order(client, "halt")

    def _order(self, client: str, word: str) -> None:
        for host, clients in self._clients.items():
            if client in clients:
                self._sessions[host].order(self._scripts.order(f"{client}.{word}"))

    def _stop(self) -> None:
        """End what runs and let every host's watch end."""
        with self._change:
            first, self._over = not self._over, True
            if first:
                self.ending.t_end_s = time.time()
            self._change.notify_all()
        for host in self._hosts if first else ():
            self._sessions[host].order(self._scripts.order("stop"))
