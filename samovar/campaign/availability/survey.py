"""Survey the hosts before a campaign: power on hosts that do not answer, and gather the facts of all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from samovar.campaign.availability.needed_hosts import needed_hosts_by_trial
from samovar.errors import TestbedError
from samovar.events import Emit, Event
from samovar.hosts import HostFacts, Machine, Session, Sessions, UnreachableError
from samovar.plan import Plan

POLL_S = 0.5


@dataclass(frozen=True)
class HostSurvey:
    """The facts of the hosts that answer; `unreachable` maps each other host to the reason."""

    facts: Mapping[str, HostFacts] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)

    @property
    def boots(self) -> Mapping[str, str]:
        """The boot id of each host that answers."""
        return {host: fact.boot_id for host, fact in self.facts.items()}


def survey_hosts(
    sessions: Sessions, facts_of: Callable[[Sequence[str]], Mapping[str, HostFacts]]
) -> HostSurvey:
    """Connect to every host, and call `facts_of` with those that answer, to gather their facts."""
    unreachable: dict[str, str] = {}
    while left := [host for host in sessions.hosts if host not in unreachable]:
        try:
            sessions.map(Session.open, left)
            return HostSurvey(facts_of(left), unreachable)
        except TestbedError as error:
            if not error.blamed:
                raise
            unreachable.update(error.blamed)
    return HostSurvey({}, unreachable)


def require_reachable(
    plans: Sequence[Plan], surveys: Sequence[HostSurvey], fail_fast: bool, ids: Collection[str]
) -> None:
    """Raise TestbedError if hosts are unreachable and no trial in `ids` can run without them.

    If `ids` is empty, all trials of the plans are considered. With `fail_fast`, any unreachable host raises
    the error.
    """
    reasons = [reason for one in surveys for reason in one.unreachable.values()]
    if not reasons:
        return
    for plan, one in zip(plans, surveys, strict=True):
        needs, away = needed_hosts_by_trial(plan), one.unreachable.keys()
        if not fail_fast and any(not needs[id_] & away for id_ in ids or plan.ids):
            return
    raise TestbedError("\n".join(reasons))


def power_on_silent(sessions: Sessions, machines: Mapping[str, Machine], emit: Emit) -> None:
    """Connect to every host, and switch on the hosts that do not answer and have a power command.

    Waits until each host that was switched on answers, at most for its boot_timeout. If a host stays
    silent, no error is raised here: the first script that is to run on it raises the error.
    """
    given_up = threading.Event()
    try:
        sessions.map(Session.open)
    except TestbedError as error:
        off = [host for host in silent_hosts(error) if host in machines and machines[host].power is not None]
        try:
            sessions.map(lambda session: _switch_on(session, machines[session.host], emit, given_up), off)
        except BaseException:  # Ctrl-C: end the waiting in the threads of the hosts too
            given_up.set()
            raise


def silent_hosts(error: TestbedError) -> frozenset[str]:
    """Return the hosts that did not answer at all, according to an error.

    A host that refused the SSH key did answer.
    """
    return frozenset(host for host, one in error.by_host.items() if isinstance(one, UnreachableError))


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
        except TestbedError:  # it is booting, or will never answer: only the timeout can tell
            session.close()
            given_up.wait(POLL_S)
