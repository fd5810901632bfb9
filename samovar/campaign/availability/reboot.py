"""Reboot hosts, wait until each has a new boot id, and power-cycle those that do not come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from samovar.campaign.availability.survey import power_on_silent
from samovar.campaign.context import CampaignContext
from samovar.errors import TestbedError
from samovar.hosts import Machine, Session, read_boot_id

SCRIPT_DEADLINE_S = 20.0
POLL_S = 0.5


class Reboots:
    """Reboots hosts of a testbed; `systems` maps hosts to their operating systems."""

    def __init__(
        self, context: CampaignContext, systems: Mapping[str, str], machines: Mapping[str, Machine]
    ) -> None:
        self._context, self._systems, self._machines = context, systems, machines
        self._last_errors: dict[str, str] = {}
        self._given_up = threading.Event()

    def run(self, script: Callable[[str], str], hosts: Sequence[str]) -> None:
        """Reboot hosts at the same time and wait until each answers with a new boot id.

        All other hosts of the testbed are reconnected too, because in some testbeds all hosts boot together.
        A host that is off is switched on first. Raises TestbedError if a host does not come back, even after
        a power cycle.
        """
        context, sessions = self._context, self._context.sessions
        power_on_silent(sessions, self._machines, context.emit)
        before = sessions.map(self._boot_id, hosts)
        # While a host shuts down, it must not run its script for the loss of the controller.
        sessions.map(lambda session: session.set_on_loss(None))
        sessions.map(lambda s: s.run(script(s.host), step="reboot", deadline_s=SCRIPT_DEADLINE_S), hosts)
        started_s = time.monotonic()
        sessions.close()
        for host in hosts:
            context.report("host-rebooting", host=host, boot_id=before[host])
        context.last_states.clear()
        context.clocks.forget()
        self._given_up.clear()

        def await_reboot(session: Session) -> None:
            host = session.host
            context.boots[host] = boot_id = self._await_boot(session, before[host])
            seconds = round(time.monotonic() - started_s, 1)
            context.report("host-rebooted", host=host, boot_id=boot_id, seconds=seconds)

        def await_answer(session: Session) -> None:
            context.boots[session.host] = self._await_boot(session, "")

        try:
            sessions.map(await_reboot, hosts)
            sessions.map(await_answer, [host for host in sessions.hosts if host not in before])
        except BaseException:  # Ctrl-C: end the waiting in the threads of the hosts too
            self._given_up.set()
            raise

    def _await_boot(self, session: Session, before: str) -> str:
        """Wait for a boot id other than `before`, if need be with a power cycle, and return it."""
        host = session.host
        machine = self._machine(host)
        boot_id = self._new_boot_id(session, before)
        if boot_id is None and machine.power is not None and not self._given_up.is_set():
            self._context.report("host-power-cycled", host=host)
            machine.switch("cycle")
            boot_id = self._new_boot_id(session, before)
        if boot_id is None:
            helped = (
                ", even after a power cycle"
                if machine.power
                else "; `power:` in the testbed file makes power cycles possible"
            )
            state = self._last_errors.get(host, "it answers, but has not rebooted")
            timeout = f"{machine.boot_timeout_s:g} s (its boot_timeout)"
            raise TestbedError(f"{host}: not back {timeout} after a reboot{helped}; {state}")
        return boot_id

    def _new_boot_id(self, session: Session, before: str) -> str | None:
        """Return the boot id once it differs from `before`, or None after the host's boot_timeout."""
        until_s = time.monotonic() + self._machine(session.host).boot_timeout_s
        while time.monotonic() < until_s and not self._given_up.is_set():
            try:
                now = self._boot_id(session)
                self._last_errors.pop(session.host, None)
            except TestbedError as error:  # shutting down, booting, or dead: only the timeout can tell
                now, self._last_errors[session.host] = before, str(error)
            if now != before:
                return now
            session.close()
            self._given_up.wait(POLL_S)
        return None

    def _boot_id(self, session: Session) -> str:
        system = self._systems[session.host]
        return read_boot_id(session, self._context.catalogue, system, SCRIPT_DEADLINE_S)

    def _machine(self, host: str) -> Machine:
        return self._machines.get(host) or Machine(host, host)
