"""The hosts of a testbed through a campaign: lost and awaited, put back, short of disk, in quarantine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from samovar.campaign.availability import Health, blamed, is_due, shortage
from samovar.campaign.context import CampaignContext
from samovar.campaign.journal import CampaignState, fold
from samovar.campaign.recovery import Recovery
from samovar.campaign.trial import BootSettings
from samovar.errors import TestbedError
from samovar.events import Event
from samovar.hosts import (
    ConnectionLostError,
    HostsError,
    Machine,
    Session,
    UnreachableError,
    read_boot_id,
    read_free_disk_bytes,
)
from samovar.plan import Trial

BETWEEN_LOOKS_S = 1.0
PROBE_DEADLINE_S = 10.0
PUT_BACK_ATTEMPTS = 2
"""How often a host that answers is put back before it is given up: it may have been lost once more."""
PATIENCE_SHARE = 0.5
"""So much of host_wait a host has to come back by itself before its power is switched."""
POWER_CYCLES = 3
"""How often a host's power is switched in one run: one that needs more is not fit for a night."""


@dataclass(frozen=True)
class Hardware:
    """What a host is: its system, and how it is switched off and on, where that is known."""

    system: str
    machine: Machine | None = None

    @property
    def switchable(self) -> Machine | None:
        """The machine, where there is a way to switch it."""
        return self.machine if self.machine and self.machine.power else None


@dataclass
class _Doubt:
    """What is known of a host that is to be looked at before it is used again."""

    reason: str
    lost: bool = False
    tries: int = 0
    silent: bool = False
    cycled: bool = False
    until_s: float = 0.0


class HostPool:
    """What is known of the hosts that a campaign uses, and what is done about it between trials."""

    def __init__(
        self,
        context: CampaignContext,
        recovery: Recovery,
        lasting: BootSettings,
        known: Mapping[str, Hardware],
    ) -> None:
        self._context, self._recovery, self._lasting, self._known = context, recovery, lasting, known
        self._cycles: Counter[str] = Counter()
        self._health = Health(context.policy.quarantine)
        self._doubts: dict[str, _Doubt] = {}
        self._state = fold(())
        self._disks: dict[str, tuple[float, int]] = {}

    @property
    def quarantined(self) -> Mapping[str, str]:
        """The hosts that are not used any more in this run, and why."""
        return self._health.quarantined

    def begin(self, state: CampaignState, gone: Mapping[str, str], treatments: int) -> None:
        """Put back what earlier controllers changed; quarantine what is gone or cannot be put back."""
        self._health = Health(self._context.policy.quarantine, treatments, state.probation)
        for host, reason in gone.items():
            self._quarantine(self._health.without(host, reason))
        for host in self._context.sessions.hosts:
            try:
                self._recovery.host(state, host)
            except TestbedError as error:
                self._quarantine(self._health.without(host, str(error)))
            else:
                self._lasting.adopt(read for read in state.unrestored.get(host, ()) if read.lasting)

    def served(self, hosts: Iterable[str]) -> None:
        """Forget the failures of hosts on which a trial has completed."""
        released = self._health.probation & set(hosts)
        self._health = self._health.served(hosts)
        for host in sorted(released):
            self._tell("host-released", host=host)

    def failed(self, trial: Trial, blamed: Mapping[str, str]) -> None:
        """Count a trial that failed for good against the hosts that it names."""
        self._quarantine(self._health.failed(trial, blamed))

    def doubt(self, blamed: Mapping[str, str], state: CampaignState) -> None:
        """Remember which hosts are to be looked at before the next trial: those named, those not put back."""
        left = [host for host, reads in state.unrestored.items() if any(not read.lasting for read in reads)]
        names = [host for host in (*blamed, *left) if host in self._context.sessions.hosts]
        self._doubts = {host: _Doubt(blamed.get(host, "not put back")) for host in names}
        self._state = state

    def make_ready(self, needed_bytes: Mapping[str, int]) -> None:
        """Wait for hosts that were lost and put them back; quarantine those that stay away or are full."""
        self._await()
        if self._context.policy.free_bytes:
            self._look_at_disks(needed_bytes)

    def _await(self) -> None:
        doubts, self._doubts = self._doubts, {}
        started = time.monotonic()
        for doubt in doubts.values():
            doubt.until_s = started + self._context.policy.host_wait_s
        while doubts:
            self._look_after(doubts, started)
            self._help(doubts, started)
            for host in [host for host, one in doubts.items() if _is_hopeless(one)]:
                self._quarantine(self._health.without(host, doubts.pop(host).reason))
            if doubts:
                self._context.pause(BETWEEN_LOOKS_S)

    def _look_after(self, doubts: dict[str, _Doubt], started: float) -> None:
        """Put back the doubtful hosts that answer; those then are in doubt no more."""
        away = self._unanswered(doubts)
        for host, doubt in list(doubts.items()):
            doubt.silent = isinstance(away.get(host), (UnreachableError, ConnectionLostError))
            if host in away:
                doubt.reason = str(away[host])
                if not doubt.lost:
                    self._tell("host-lost", host=host, reason=doubt.reason)
                doubt.lost = True
            elif self._put_back(host, doubt):
                del doubts[host]
                if doubt.lost:
                    self._tell("host-back", host=host, seconds=round(time.monotonic() - started, 1))

    def _unanswered(self, hosts: Iterable[str]) -> Mapping[str, TestbedError]:
        """Say of each host that does not answer why not."""
        try:
            self._context.sessions.map(_probe, hosts)
        except HostsError as several:
            return several.errors
        except TestbedError as error:
            return {error.host: error} if error.host else {}
        return {}

    def _help(self, doubts: Mapping[str, _Doubt], started: float) -> None:
        """Switch the power of hosts that have been silent for long enough, where there is a way to."""
        if time.monotonic() - started < PATIENCE_SHARE * self._context.policy.host_wait_s:
            return
        for host, doubt in doubts.items():
            due = doubt.silent and not doubt.cycled and self._cycles[host] < POWER_CYCLES
            if due and (machine := self._known[host].switchable):
                self._cycle(machine, doubt)

    def _cycle(self, machine: Machine, doubt: _Doubt) -> None:
        """Switch a host off and on; it then has its boot_timeout to answer."""
        self._cycles[machine.host] += 1
        doubt.cycled = True
        self._tell("host-power-cycled", host=machine.host)
        try:
            machine.switch("cycle")
        except TestbedError as error:
            self._context.emit(Event("host-not-switched", {"host": machine.host, "reason": str(error)}))
        else:
            doubt.until_s = time.monotonic() + machine.boot_timeout_s

    def _put_back(self, host: str, doubt: _Doubt) -> bool:
        """Put a host that answers back as the journal says it was; it may have been booted meanwhile."""
        doubt.tries += 1
        context = self._context
        context.last_states.pop(host, None)
        context.clocks.forget()
        try:
            self._recovery.host(self._state, host)
            context.boots[host] = read_boot_id(
                context.sessions[host], context.catalogue, self._known[host].system
            )
        except TestbedError as error:
            doubt.reason = str(error)
            return False
        return True

    def _look_at_disks(self, needed_bytes: Mapping[str, int]) -> None:
        now_s, floor = time.monotonic(), self._context.policy.free_bytes
        due = [
            host
            for host in self._context.sessions.hosts
            if self._is_due(host, now_s, needed_bytes.get(host, 0))
        ]
        try:
            told = self._context.sessions.map(self._free_bytes, due)
        except TestbedError as error:
            self._doubts = {host: _Doubt(reason) for host, reason in blamed(error).items()}
            self._await()
            return
        for host, free_bytes in told.items():
            self._disks[host] = now_s, free_bytes
            short = shortage(free_bytes, floor, needed_bytes.get(host, 0))
            if short:
                self._quarantine(self._health.without(host, f"{host}: {short}"))

    def _is_due(self, host: str, now_s: float, needed_bytes: int) -> bool:
        seen_s, free_bytes = self._disks.get(host, (now_s, None))
        return is_due(now_s - seen_s, free_bytes, self._context.policy.free_bytes, needed_bytes)

    def _free_bytes(self, session: Session) -> int:
        return read_free_disk_bytes(session, self._context.catalogue, self._known[session.host].system)

    def _quarantine(self, health: Health) -> None:
        """Take over what is known, and go on without the hosts that are in quarantine now."""
        fresh = sorted(health.quarantined.keys() - self._health.quarantined.keys())
        self._health = health
        for host in fresh:
            self._lasting.forget(host)
            self._context.sessions.abandon(host)
            self._tell("host-quarantined", host=host, reason=health.quarantined[host])

    def _tell(self, event: str, **values: object) -> None:
        self._context.note(event, **values)
        self._context.emit(Event(event, values))


def _probe(session: Session) -> None:
    session.run(":\n", step="probe", deadline_s=PROBE_DEADLINE_S)


def _is_hopeless(doubt: _Doubt) -> bool:
    return time.monotonic() >= doubt.until_s or doubt.tries >= PUT_BACK_ATTEMPTS
