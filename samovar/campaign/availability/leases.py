"""Who may use a host: one campaign per machine at a time, and when a lease that was left may be taken over.

docs/decisions/0019 has the rules.
"""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from samovar.campaign.context import Note
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import fold, read_journal
from samovar.errors import CampaignError, TestbedError
from samovar.events import Emit, Event
from samovar.hosts import Claim, Lease, LeaseError, Session, Sessions
from samovar.units import format_duration

SILENT_S = 600.0
"""A holder that nothing was heard of for so long does not come back to a host that it has put in order."""


@dataclass(frozen=True)
class Process:
    """One process on one machine, told apart from those that had its number before or have it elsewhere."""

    machine: str
    boot: str
    space: str
    pid: str
    started: str

    @property
    def is_gone(self) -> bool:
        """Whether it certainly does not run; False when that cannot be told from here."""
        here = this_process()
        if not self.machine or self.machine != here.machine:
            return False
        if self.boot != here.boot:
            return bool(self.boot and here.boot)
        return self.space == here.space and self.started != _started(self.pid)


def this_process() -> Process:
    """Identify the process that asks."""
    pid = str(os.getpid())
    machine = f"{socket.gethostname()} {_first_line('/etc/machine-id')}".strip()
    return Process(machine, _first_line("/proc/sys/kernel/random/boot_id"), _space(), pid, _started(pid))


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: str) -> str:
    """Say when a process began, in ticks since its machine's boot; empty when there is no such process.

    Where there is no /proc all that can be told is whether there is one.
    """
    if not pid.isdecimal():
        return ""
    if not Path("/proc/self/stat").exists():
        return "at some time" if _answers(int(pid)) else ""
    fields = _first_line(f"/proc/{pid}/stat").rpartition(")")[2].split()  # proc_pid_stat(5): the 3rd and on
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _first_line(file: str) -> str:
    try:
        return Path(file).read_text(errors="replace").partition("\n")[0]
    except OSError:
        return ""


@dataclass(frozen=True)
class LeaseRequest:
    """A controller that needs hosts for a campaign, whose journal it has locked."""

    folder: Path
    testbed: str
    command: str = "fab run"
    force: bool = False

    @cached_property
    def token(self) -> str:
        """What tells this claim from every other."""
        return secrets.token_hex(16)

    def claim(self, host: str) -> Claim:
        """Say who asks, in the words that another controller will read."""
        process = this_process()
        who = {
            "owner": f"{getpass.getuser()}@{socket.gethostname()}",
            "command": self.command,
            "campaign": f"{self.folder.parent.name}/{self.folder.name}",
            "testbed": self.testbed,
            "host": host,
            "folder": str(self.folder.resolve()),
        }
        return Claim(self.token, {**who, **{key: str(value) for key, value in vars(process).items()}})

    def right(self, lease: Lease) -> str:
        """Say why a lease may be taken over; empty when it may not."""
        holder = holder_of(lease)
        own = str(self.folder.resolve())
        if holder.machine == this_process().machine and lease.values.get("folder") == own:
            return "the same campaign, whose journal no other controller has open"
        if self.force:
            return "--force"
        if lease.alive:
            return ""
        if holder.is_gone and (lease.left == "restored" or _nothing_changed(lease)):
            return "its controller is gone, and the host was put back"
        if lease.left == "restored" and lease.silent_s > SILENT_S:
            return f"nothing was heard for {SILENT_S:.0f} s, and the host was put back"
        return ""


def holder_of(lease: Lease) -> Process:
    """Return the process that holds a lease."""
    return Process(*(lease.values.get(key, "") for key in ("machine", "boot", "space", "pid", "started")))


def _nothing_changed(lease: Lease) -> bool:
    """Whether the journal of the holder's campaign, on this machine, says that the host is as it was."""
    journal = Path(lease.values.get("folder", "")) / JOURNAL
    try:
        return lease.values.get("host", "") not in fold(read_journal(journal)).unrestored
    except CampaignError:
        return False


class Leases:
    """The hosts that a claimant holds: all of a testbed's, but for those that are `gone`."""

    def __init__(
        self, sessions: Sessions, claimant: LeaseRequest, note: Note, emit: Emit, gone: Collection[str] = ()
    ) -> None:
        self._sessions, self._claimant = sessions, claimant
        self._note, self._emit = note, emit
        self._hosts = [host for host in sessions.hosts if host not in gone]

    @contextmanager
    def held(self, changed: Callable[[], Iterable[str]] = tuple) -> Iterator[None]:
        """Hold the hosts, or none; in the end leave those that are `changed` to themselves.

        Raises LeaseError or HostsError with who has them.
        """
        try:
            self._sessions.map(self.take, self._hosts)
            yield
        finally:
            self._give_back(frozenset(changed()))

    @contextmanager
    def one(self, session: Session) -> Iterator[None]:
        """Hold one host; when what is done meanwhile fails it stays held. Raises LeaseError."""
        self.take(session)
        try:
            yield
        except BaseException:
            session.abandon()
            raise
        session.release()

    def take(self, session: Session) -> None:
        """Take one host, also from who may have it no more, which the journal then tells."""
        claim = self._claimant.claim(session.host)
        found = session.claim(claim)
        reason = self._claimant.right(found) if found else ""
        if found and reason:
            again = session.claim(claim, found)
            if again is None:
                self._tell(session.host, found, reason)
            found = again
        if found:
            raise LeaseError(refusal(session.host, found))

    def _tell(self, host: str, lease: Lease, reason: str) -> None:
        before = {key: lease.values.get(key, "") for key in ("owner", "campaign", "testbed")}
        silent_s = round(lease.silent_s, 1)
        values = {"host": host, **before, "silent_s": silent_s, "left": lease.left, "reason": reason}
        self._note("lease-taken", **values)
        self._emit(Event("lease-taken", values))

    def _give_back(self, changed: Collection[str]) -> None:
        """Release what is held; a host that is away, or changed, keeps a lease that says whose it was."""
        there = [host for host in self._hosts if host in self._sessions.hosts]
        try:
            self._sessions.map(lambda s: s.abandon() if s.host in changed else s.release(), there)
        except TestbedError as error:
            self._emit(Event("warning", {"text": str(error)}))


def refusal(host: str, lease: Lease, advice: str = "") -> str:
    """Say in one sentence who holds a host, since when, what was last heard, and what can be done."""
    told = {key: lease.values.get(key) or "?" for key in ("command", "owner", "pid", "campaign", "testbed")}
    who = "{command} of {owner} (process {pid}), campaign {campaign} on testbed {testbed}".format_map(told)
    times = f"for {_words(lease.age_s)}, last heard of {_words(lease.silent_s)} ago"
    return f"{host}: held by {who}, {times}; {advice or _advice(lease, told['testbed'])}"


def _advice(lease: Lease, testbed: str) -> str:
    if lease.alive and not holder_of(lease).is_gone:
        return (
            "accepted: waiting for its end, or --force, which ends what it runs there and puts the host back"
        )
    state = "has put the host back" if lease.left == "restored" else "may have left the host changed"
    return (
        f"it does not answer and {state}; accepted: going on with that campaign, "
        f"`fab restore {testbed}` where it was run, or --force"
    )


def _words(seconds: float) -> str:
    return format_duration(round(seconds), 2)
