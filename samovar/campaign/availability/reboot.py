"""Booting hosts anew: ordered, awaited by a condition, helped by their power switch when they stay away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from samovar.campaign.availability.survey import power_on_silent
from samovar.campaign.context import CampaignContext
from samovar.errors import TestbedError
from samovar.events import Event
from samovar.hosts import Machine, Session, read_boot_id

SCRIPT_DEADLINE_S = 20.0
BETWEEN_LOOKS_S = 0.5


class Reboots:
    """Reboots hosts of a context; what was known of their clocks and state is forgotten."""

    def __init__(
        self, context: CampaignContext, systems: Mapping[str, str], machines: Mapping[str, Machine]
    ) -> None:
        self._context, self._systems, self._machines = context, systems, machines
        self._said: dict[str, str] = {}
        self._given_up = threading.Event()

    def run(self, script: Callable[[str], str], hosts: Sequence[str]) -> None:
        """Reboot hosts at the same time and wait until each answers with another boot id.

        The other hosts are connected to anew, for some testbeds boot as a whole. Raises TestbedError when one
        does not come back, whose power was switched where there is a way to. A host that is down already is
        switched on.
        """
        sessions = self._context.sessions
        power_on_silent(sessions, self._machines, self._context.emit)
        before = sessions.map(self._boot_id, hosts)
        # Nothing that a host would do on the loss of its controller is to happen while it goes down.
        sessions.map(lambda session: session.set_on_loss(None))
        sessions.map(lambda s: s.run(script(s.host), step="reboot", deadline_s=SCRIPT_DEADLINE_S), hosts)
        started_s = time.monotonic()
        sessions.close()
        for host in hosts:
            self._tell("host-rebooting", host, boot_id=before[host])
        self._context.last_states.clear()
        self._context.clocks.forget()
        self._given_up.clear()
        try:
            sessions.map(lambda session: self._await(session, before[session.host], started_s), hosts)
            sessions.map(self._await_any, [host for host in sessions.hosts if host not in before])
        except BaseException:  # Ctrl-C: nobody waits for what the hosts' threads still wait for
            self._given_up.set()
            raise

    def _await(self, session: Session, before: str, started_s: float) -> None:
        host = session.host
        self._context.boots[host] = now = self._came_back(session, before)
        self._tell("host-rebooted", host, boot_id=now, seconds=round(time.monotonic() - started_s, 1))

    def _await_any(self, session: Session) -> None:
        self._context.boots[session.host] = self._came_back(session, "")

    def _came_back(self, session: Session, before: str) -> str:
        host = session.host
        now = self._other_boot_id(session, before)
        if now is None and self._machine(host).power is not None and not self._given_up.is_set():
            self._tell("host-power-cycled", host)
            self._machine(host).switch("cycle")
            now = self._other_boot_id(session, before)
        if now is None:
            raise TestbedError(self._away(host))
        return now

    def _other_boot_id(self, session: Session, before: str) -> str | None:
        """Wait until a host answers, with another boot id than before; None when it does not in time."""
        until_s = time.monotonic() + self._machine(session.host).boot_timeout_s
        while time.monotonic() < until_s and not self._given_up.is_set():
            try:
                now = self._boot_id(session)
                self._said.pop(session.host, None)
            except TestbedError as error:  # it goes down, or is not up yet: the clock has the last word
                now, self._said[session.host] = before, str(error)
            if now != before:
                return now
            session.close()
            self._given_up.wait(BETWEEN_LOOKS_S)
        return None

    def _away(self, host: str) -> str:
        machine = self._machine(host)
        helped = ", nor after its power was switched" if machine.power else "; a `power:` could bring it back"
        said = f"; {self._said[host]}" if host in self._said else "; it answers as before"
        return (
            f"{host}: not back {machine.boot_timeout_s:g} s (its boot_timeout) after a reboot{helped}{said}"
        )

    def _boot_id(self, session: Session) -> str:
        system = self._systems[session.host]
        return read_boot_id(session, self._context.catalogue, system, SCRIPT_DEADLINE_S)

    def _machine(self, host: str) -> Machine:
        return self._machines.get(host) or Machine(host, host)

    def _tell(self, event: str, host: str, **values: object) -> None:
        self._context.note(event, host=host, **values)
        self._context.emit(Event(event, {"host": host, **values}))
