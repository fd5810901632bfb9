"""Hosts that are down when they are needed: switched on, where there is a way, before they are given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from samovar.errors import TestbedError
from samovar.events import Emit, Event
from samovar.hosts import HostsError, Machine, Session, Sessions, UnreachableError

BETWEEN_LOOKS_S = 0.5


def silent(error: TestbedError) -> frozenset[str]:
    """Name the hosts of which an error says that nothing answered; one that refuses a key is up."""
    if isinstance(error, HostsError):
        return frozenset(host for host, one in error.errors.items() if isinstance(one, UnreachableError))
    return frozenset({error.host} - {""}) if isinstance(error, UnreachableError) else frozenset()


def awaken(sessions: Sessions, machines: Mapping[str, Machine], emit: Emit) -> None:
    """Connect to every host, and switch on those that do not answer and can be; all else is left as it is.

    Each has its boot_timeout to answer. Whoever needs a host that does not is told so when using it.
    """
    given_up = threading.Event()
    try:
        sessions.map(Session.open)
    except TestbedError as error:
        able = [host for host in silent(error) if host in machines and machines[host].power is not None]
        try:
            sessions.map(lambda session: _switch_on(session, machines[session.host], emit, given_up), able)
        except BaseException:  # Ctrl-C: nobody waits for what the hosts' threads still wait for
            given_up.set()
            raise


def _switch_on(session: Session, machine: Machine, emit: Emit, given_up: threading.Event) -> None:
    emit(Event("host-switched-on", {"host": session.host}))
    try:
        machine.switch_on()
    except TestbedError as error:
        emit(Event("host-not-switched", {"host": session.host, "reason": str(error)}))
        return
    until_s = time.monotonic() + machine.boot_timeout_s
    while time.monotonic() < until_s and not given_up.is_set():
        try:
            session.open()
            return
        except TestbedError:  # it boots, or never will: the clock has the last word
            session.close()
            given_up.wait(BETWEEN_LOOKS_S)
