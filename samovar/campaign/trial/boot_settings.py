"""Apply and restore boot settings: host settings that take effect only after a reboot.

Boot settings are applied before the first trial that needs them, and restored after the last. A recipe with
`change: reboot` prints the current value of each KEY, and as `planned.KEY` its value after the next reboot. A
host must be rebooted if its value after the next reboot is the requested value, but its current value is not.
"""

from __future__ import annotations

import threading
import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from samovar.campaign.availability import power_on_silent
from samovar.campaign.context import CampaignContext
from samovar.campaign.host_state import StateComparison, changed, parse_state, unmet
from samovar.campaign.journal import SavedState
from samovar.errors import TestbedError
from samovar.hosts import Session, raise_host_errors, read_boot_id
from samovar.recipes import TrialScripts

PLANNED = "planned."
REBOOT_DEADLINE_S = 20.0
POLL_S = 0.5


class BootSettings:
    """Applies and restores the boot settings of the hosts of a campaign.

    `scripts_of` returns the scripts of the trial with a given id. `_saved` maps each changed host to its
    state before each change, oldest first.
    """

    def __init__(self, context: CampaignContext, scripts_of: Callable[[str], TrialScripts]) -> None:
        self._context, self._scripts_of = context, scripts_of
        self._reboots = _Reboots(context)
        self._saved: dict[str, list[SavedState]] = {}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts whose boot settings must be restored."""
        return tuple(self._saved)

    def adopt(self, states: Iterable[SavedState]) -> None:
        """Add the saved states of hosts that an earlier controller has not restored, oldest first."""
        for state in states:
            self._saved.setdefault(state.host, []).append(state)

    def forget(self, host: str) -> None:
        """Forget the saved states of a quarantined host. The journal still lists the host as not restored."""
        self._saved.pop(host, None)

    def is_due(self, scripts: TrialScripts) -> bool:
        """Return whether a trial requests boot settings, or earlier trials may have left some on hosts."""
        return bool(self._saved) or any(scripts.settings(host, True) for host in scripts.resolved.hosts)

    def apply(self, scripts: TrialScripts) -> None:
        """Apply a trial's boot settings on its hosts, and restore boot settings that it does not request.

        Hosts that need a reboot are rebooted at the same time, and only once. Raises TestbedError.
        """
        wanting = [host for host in scripts.resolved.hosts if scripts.settings(host, True)]
        others = [host for host in self._saved if host not in wanting]
        due = [host for host in wanting if self._set(scripts, host)]
        due += [host for host in others if self._undo(host)]
        if due:
            self._reboots.run(scripts.reboot, due)
        for host in due:
            if host not in wanting:
                self._check_restored(host)
            elif missing := unmet(scripts.wanted(host, True), self._read(host, scripts)):
                raise _error(host, "are not in force after the reboot", missing)

    def restore(self) -> None:
        """Restore the boot settings of all hosts, and reboot where this is necessary.

        After an error, continues with the other hosts. Raises TestbedError.
        """
        due, failed = list[str](), dict[str, TestbedError]()

        @contextmanager
        def collected(host: str) -> Iterator[None]:
            try:
                yield
            except TestbedError as error:
                failed[host] = error

        for host in self.hosts:
            with collected(host):
                if self._undo(host):
                    due.append(host)
        if due:
            self._reboots.run(lambda host: self._scripts_of(self._saved[host][0].id).reboot(host), due)
        for host in due:
            with collected(host):
                self._check_restored(host)
        raise_host_errors(failed)

    def restore_body(self, host: str) -> str:
        """Return the commands with which a host restores its boot settings if it loses its controller."""
        states = reversed(self._saved.get(host, ()))
        return "".join(self._scripts_of(one.id).restore_body(host, one.state, True) for one in states)

    def _set(self, scripts: TrialScripts, host: str) -> bool:
        """Apply the boot settings of a trial on a host; return whether the host must be rebooted."""
        state, wanted = self._read(host, scripts), scripts.wanted(host, True)
        if not unmet(wanted, state):
            return False
        if self._saved.get(host):
            self._run_undo(host)
            state = self._read(host, scripts)
        saved = SavedState(scripts.trial.id, host, state, True)
        self._context.note("state-read", id=saved.id, host=host, state=dict(state), lasting=True)
        self._saved.setdefault(host, []).append(saved)
        missing = unmet(wanted, self._run(host, "set lasting", scripts.set(host, state, True)))
        keys = {line.partition("=")[0].rstrip("*") for line in wanted}
        met = keys - {one.key for one in missing}
        if failed := [one for one in missing if PLANNED + one.key not in met]:
            raise _error(host, "cannot be set", failed)
        return bool(missing)

    def _undo(self, host: str) -> bool:
        """Restore the boot settings of a host; return whether the host must be rebooted."""
        before, differences = self._before(host), changed(self._before(host), self._run_undo(host))
        if failed := [d for d in differences if PLANNED + d.key not in before or d.key.startswith(PLANNED)]:
            self._fail(host, failed)
        if not differences:
            self._note_restored(host)
        return bool(differences)

    def _run_undo(self, host: str) -> dict[str, str]:
        """Undo all changes to a host, newest first; return the state that it then has."""
        after: dict[str, str] = {}
        for saved in reversed(self._saved[host]):
            script = self._scripts_of(saved.id).restore(host, saved.state, lasting=True)
            after |= self._run(host, "restore lasting", script)
        return after

    def _before(self, host: str) -> dict[str, str]:
        """Return a host's original state: for each key, its value before the first change."""
        return dict(ChainMap(*(dict(saved.state) for saved in self._saved[host])))

    def _check_restored(self, host: str) -> None:
        """Raise TestbedError if the state of a host after its reboot differs from its original state."""
        after: dict[str, str] = {}
        for saved in self._saved[host]:
            after |= self._read(host, self._scripts_of(saved.id))
        if differences := changed(self._before(host), after):
            self._fail(host, differences)
        self._note_restored(host)

    def _note_restored(self, host: str) -> None:
        states = self._saved.pop(host)
        self._context.note("state-restored", id=states[0].id, host=host, lasting=True)

    def _fail(self, host: str, differences: Sequence[StateComparison]) -> None:
        id_, texts = self._saved[host][0].id, [str(one) for one in differences]
        self._context.note("restore-failed", id=id_, host=host, differences=texts, lasting=True)
        raise _error(host, f"cannot be restored to their state before trial {id_}", differences)

    def _read(self, host: str, scripts: TrialScripts) -> dict[str, str]:
        return self._run(host, "read lasting", scripts.read(host, True))

    def _run(self, host: str, step: str, script: str) -> dict[str, str]:
        limit_s = self._context.policy.config.step_timeout_s
        return parse_state(self._context.sessions[host].run(script, step=step, deadline_s=limit_s).text)


def _error(host: str, problem: str, differences: Iterable[StateComparison]) -> TestbedError:
    lines = (f"{host}: settings that need a reboot {problem}:", *map(str, differences))
    return TestbedError("\n".join(lines), host)


class _Reboots:
    """Reboots hosts, waits until each has a new boot id, and power-cycles those that do not come back."""

    def __init__(self, context: CampaignContext) -> None:
        self._context = context
        self._last_errors: dict[str, str] = {}
        self._given_up = threading.Event()

    def run(self, script: Callable[[str], str], hosts: Sequence[str]) -> None:
        """Reboot hosts at the same time and wait until each answers with a new boot id.

        All other hosts that answer are reconnected too, because in some testbeds all hosts boot together. A
        host that is off is switched on first. Raises TestbedError if a host does not come back, even after a
        power cycle.
        """
        context, sessions = self._context, self._context.sessions
        power_on_silent(sessions, context.machines, context.emit)
        before = sessions.map(self._boot_id, hosts)

        def answers(session: Session) -> bool:
            try:
                # A host that shuts down loses its controller; it must not run its clean-up script then.
                session.set_on_loss(None)
            except TestbedError:
                if session.host in before:
                    raise
                return False
            return True

        others = [host for host, does in sessions.map(answers).items() if does and host not in before]
        sessions.map(lambda s: s.run(script(s.host), step="reboot", deadline_s=REBOOT_DEADLINE_S), hosts)
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
            sessions.map(await_answer, others)
        except BaseException:  # Ctrl-C: end the waiting in the threads of the hosts too
            self._given_up.set()
            raise

    def _await_boot(self, session: Session, before: str) -> str:
        """Wait for a boot id other than `before`, cycling the power if necessary; return the new boot id."""
        host = session.host
        machine = self._context.machine(host)
        boot_id = self._new_boot_id(session, before)
        if boot_id is None and machine.power is not None and not self._is_given_up():
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
        until_s = time.monotonic() + self._context.machine(session.host).boot_timeout_s
        while time.monotonic() < until_s and not self._is_given_up():
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

    def _is_given_up(self) -> bool:
        """Return whether Ctrl-C has ended the wait.

        With several testbeds, this thread does not get KeyboardInterrupt, but a request to end.
        """
        return self._given_up.is_set() or self._context.interrupt.requested.is_set()

    def _boot_id(self, session: Session) -> str:
        system = self._context.machine(session.host).system
        return read_boot_id(session, self._context.catalogue, system, REBOOT_DEADLINE_S)
