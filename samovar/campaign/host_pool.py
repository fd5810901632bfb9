"""Keep the hosts of a testbed usable during a campaign: wait for lost hosts, restore or quarantine them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from samovar.campaign.availability import shortage
from samovar.campaign.context import CampaignContext
from samovar.campaign.recovery import Recovery
from samovar.campaign.trial import BootSettings
from samovar.errors import TestbedError
from samovar.events import Event
from samovar.hosts import ConnectionLostError, Session, read_boot_id, read_free_disk_bytes
from samovar.plan import Trial

POLL_S = 1.0
PROBE_DEADLINE_S = 10.0
RESTORE_ATTEMPTS = 2
"""A host that answers but cannot be restored is quarantined after this many attempts."""
PATIENCE_SHARE = 0.5
"""The power of a lost host is cycled after this share of host_wait."""
POWER_CYCLES = 3
"""The power of a host is cycled at most this many times in one run. A host that needs more is unreliable."""


@dataclass
class _SuspectHost:
    """A host that must be checked before it is used again."""

    reason: str
    lost: bool = False
    restore_attempts: int = 0
    silent: bool = False
    power_cycled: bool = False
    until_s: float = 0.0

    @property
    def is_hopeless(self) -> bool:
        return time.monotonic() >= self.until_s or self.restore_attempts >= RESTORE_ATTEMPTS


class HostPool:
    """The hosts that a campaign uses on one testbed; lost or changed hosts are repaired between trials.

    `quarantined` has the reason for each host that this run no longer uses. `levels` maps `part` to the
    number of the plan's parts, and each factor to the number of its levels.
    """

    def __init__(
        self,
        context: CampaignContext,
        recovery: Recovery,
        boot_settings: BootSettings,
        levels: Mapping[str, int],
    ) -> None:
        self._context, self._recovery, self._boot_settings = context, recovery, boot_settings
        self._levels = levels
        self.quarantined: Mapping[str, str] = {}
        self._probation: frozenset[str] = frozenset()
        # For each host, the levels of the trials that failed on it in a row.
        self._failures: dict[str, list[Mapping[str, str]]] = {}
        self._power_cycles: Counter[str] = Counter()
        self._suspects: dict[str, _SuspectHost] = {}

    def restore_all(self, unreachable: Mapping[str, str]) -> None:
        """Restore all hosts that earlier controllers of this campaign left changed.

        Quarantines the `unreachable` hosts, each with its reason, and the hosts that cannot be restored.
        """
        state = self._context.state()
        self._probation = state.probation
        for host, reason in unreachable.items():
            self._quarantine(host, reason)
        for host in self._context.sessions.hosts:
            try:
                self._recovery.restore_host(state, host)
            except TestbedError as error:
                self._quarantine(host, str(error))
            else:
                saved = state.unrestored.get(host, ())
                self._boot_settings.adopt(one for one in saved if one.lasting)

    def trial_completed(self, hosts: Iterable[str]) -> None:
        """Reset the failure counts of hosts on which a trial has completed, and end their probation."""
        for host in hosts:
            self._failures.pop(host, None)
            if host in self._probation:
                self._probation -= {host}
                self._context.report("host-released", host=host)

    def trial_failed(self, trial: Trial, blamed: Mapping[str, str]) -> None:
        """Count a failed trial against the hosts that caused its failure, and quarantine unreliable hosts.

        Called when the trial is not retried any more; `blamed` maps the hosts to reasons. A host is
        quarantined after N failed trials in a row, where N is the key `quarantine` of config.yaml. These
        trials must have N levels of each factor, or all levels if there are fewer, because a single level may
        fail on every host. A host that an earlier run quarantined, and on which no trial has completed since,
        is quarantined after one failed trial.
        """
        least = self._context.policy.config.quarantine
        for host, reason in blamed.items():
            failures = self._failures.setdefault(host, [])
            failures.append({"part": trial.part, **trial.treatment})
            varied = all(
                len({levels.get(factor) for levels in failures}) >= min(least, count)
                for factor, count in self._levels.items()
            )
            if host in self._probation:
                self._quarantine(host, f"failed again, as in an earlier run: {reason}")
            elif len(failures) >= least and varied:
                self._quarantine(host, f"{len(failures)} failed trials in a row: {reason}")

    def check_before_next_trial(self, blamed: Mapping[str, str]) -> None:
        """Mark the hosts that repair() must check: those that made a trial fail or are not restored."""
        unrestored = self._context.state().unrestored.items()
        changed = [host for host, saved in unrestored if any(not one.lasting for one in saved)]
        names = [host for host in (*blamed, *changed) if host in self._context.sessions.hosts]
        self._suspects = {host: _SuspectHost(blamed.get(host, "not restored")) for host in names}

    def make_ready(self, needed_bytes: Mapping[str, int]) -> None:
        """Wait for lost hosts and restore them before the next trial; quarantine hosts that stay unusable.

        A host is quarantined if it does not come back, if it cannot be restored, or if its disk has less
        space than the trial needs. `needed_bytes` maps hosts to the disk space that the trial needs.
        """
        self.repair()
        if self._context.policy.config.free_space:
            self._check_disks(needed_bytes)

    def repair(self) -> None:
        """Wait for lost hosts and restore changed ones; quarantine those that stay lost or changed."""
        suspects, self._suspects = self._suspects, {}
        started_s = time.monotonic()
        host_wait_s = self._context.policy.config.host_wait_s
        for suspect in suspects.values():
            suspect.until_s = started_s + host_wait_s
        while suspects:
            self._restore_answering(suspects, started_s)
            if time.monotonic() - started_s >= PATIENCE_SHARE * host_wait_s:
                for host, suspect in suspects.items():
                    self._cycle_power(host, suspect)
            for host in [host for host, suspect in suspects.items() if suspect.is_hopeless]:
                self._quarantine(host, suspects.pop(host).reason)
            if suspects:
                self._context.pause(POLL_S)

    def _restore_answering(self, suspects: dict[str, _SuspectHost], started_s: float) -> None:
        """Restore the suspect hosts that answer, and remove from `suspects` each host that was restored."""
        away: Mapping[str, TestbedError] = {}
        try:
            self._context.sessions.run(dict.fromkeys(suspects, ":\n"), "probe", PROBE_DEADLINE_S)
        except TestbedError as error:
            away = error.by_host
        for host, suspect in list(suspects.items()):
            suspect.silent = isinstance(away.get(host), ConnectionLostError)
            if host in away:
                suspect.reason = str(away[host])
                if not suspect.lost:
                    self._context.report("host-lost", host=host, reason=suspect.reason)
                suspect.lost = True
            elif self._restore(host, suspect):
                del suspects[host]
                if suspect.lost:
                    seconds = round(time.monotonic() - started_s, 1)
                    self._context.report("host-back", host=host, seconds=seconds)

    def _cycle_power(self, host: str, suspect: _SuspectHost) -> None:
        """Cycle the power of a host that does not answer; it then has at least boot_timeout to come back.

        Does nothing if the host has no power command, was power-cycled for this failure before, or was
        power-cycled POWER_CYCLES times in this run.
        """
        machine = self._context.machine(host)
        if machine.power is None or not suspect.silent:
            return
        if suspect.power_cycled or self._power_cycles[host] >= POWER_CYCLES:
            return
        self._power_cycles[host] += 1
        suspect.power_cycled = True
        self._context.report("host-power-cycled", host=host)
        try:
            machine.switch("cycle")
        except TestbedError as error:
            self._context.emit(Event("host-not-switched", {"host": host, "reason": str(error)}))
        else:
            suspect.until_s = max(suspect.until_s, time.monotonic() + machine.boot_timeout_s)

    def _restore(self, host: str, suspect: _SuspectHost) -> bool:
        """Restore a reachable host to its state in the journal; return whether this succeeded.

        The host may have rebooted since it was lost, so its boot id is read again and clock readings are
        dropped. An attempt during which the connection is lost does not count as an attempt to restore it.
        """
        context = self._context
        context.last_states.pop(host, None)
        context.clocks.forget()
        try:
            self._recovery.restore_host(context.state(), host)
            context.boots[host] = read_boot_id(
                context.sessions[host], context.catalogue, context.machine(host).system
            )
        except TestbedError as error:
            suspect.reason = str(error)
            suspect.restore_attempts += not isinstance(error, ConnectionLostError)
            return False
        return True

    def _check_disks(self, needed_bytes: Mapping[str, int]) -> None:
        """Quarantine hosts with too little free disk space for the next trial."""
        context = self._context

        def free_bytes_of(session: Session) -> int:
            return read_free_disk_bytes(session, context.catalogue, context.machine(session.host).system)

        try:
            answers = context.sessions.map(free_bytes_of)
        except TestbedError as error:
            self._suspects = {host: _SuspectHost(reason) for host, reason in error.blamed.items()}
            self.repair()
            return
        for host, free_bytes in answers.items():
            short = shortage(free_bytes, context.policy.config.free_space, needed_bytes.get(host, 0))
            if short:
                self._quarantine(host, f"{host}: {short}")

    def _quarantine(self, host: str, reason: str) -> None:
        """Stop using a host for the rest of this run."""
        if host not in self.quarantined:
            self.quarantined = {**self.quarantined, host: reason}  # a new mapping, as other threads read it
            self._boot_settings.forget(host)
            self._suspects.pop(host, None)
            self._context.sessions.abandon(host)
            self._context.report("host-quarantined", host=host, reason=reason)
