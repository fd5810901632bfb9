"""Take and release leases of hosts, so that only one campaign uses a machine at a time.

docs/decisions/0019-leases-and-heartbeats.md has the rules for taking over the lease of another campaign.
"""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from samovar.campaign.journal import JOURNAL, Note, fold, read_journal
from samovar.errors import CampaignError, TestbedError
from samovar.events import Emit, Event
from samovar.hosts import Claim, Lease, LeaseError, Session, Sessions, raise_host_errors
from samovar.units import format_duration

SILENT_S = 600.0
"""A lease may be taken over if its host has restored itself and no heartbeat has come for this long."""
SPOILS_TRIAL = "wait for the end of that campaign, or use --force, which spoils its trial"


def this_process() -> dict[str, str]:
    """Return values that identify this process among all processes of all machines, past and present."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return {
        "machine": f"{socket.gethostname()} {_first_line('/etc/machine-id')}".strip(),
        "boot": _first_line("/proc/sys/kernel/random/boot_id"),
        "space": space,
        "pid": str(os.getpid()),
        "started": _start_time(str(os.getpid())),
    }


def holder_of(lease: Lease) -> dict[str, str]:
    """Return the values that identify the process that holds a lease, with the keys of this_process()."""
    return {key: lease.values.get(key, "") for key in this_process()}


def holder_is_gone(lease: Lease) -> bool:
    """Return whether the process that holds a lease has ended; False if this machine cannot tell."""
    holder, here = holder_of(lease), this_process()
    if not holder["machine"] or holder["machine"] != here["machine"]:
        return False
    if holder["boot"] != here["boot"]:
        return bool(holder["boot"] and here["boot"])
    return holder["space"] == here["space"] and holder["started"] != _start_time(holder["pid"])


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user that has no name
        return str(os.getuid())


def _start_time(pid: str) -> str:
    """Return when a process started, in ticks since boot; empty if it does not run."""
    stat = _first_line(f"/proc/{pid}/stat") if pid.isdecimal() else ""
    fields = stat.rpartition(")")[2].split()  # proc_pid_stat(5), from the 3rd field on
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def _first_line(file: str) -> str:
    try:
        return Path(file).read_text(errors="replace").partition("\n")[0]
    except OSError:
        return ""


@dataclass(frozen=True)
class LeaseRequest:
    """A request to use a testbed's hosts for a campaign, from the controller that has locked its journal."""

    folder: Path
    testbed: str
    command: str = "fab run"
    force: bool = False

    @cached_property
    def token(self) -> str:
        """A random token that identifies the leases taken for this request."""
        return secrets.token_hex(16)

    def claim(self, host: str) -> Claim:
        """Return the claim, written to a host's lease, that tells other controllers who uses the host."""
        who = {
            "owner": f"{_user_name()}@{socket.gethostname()}",
            "command": self.command,
            "campaign": f"{self.folder.parent.name}/{self.folder.name}",
            "testbed": self.testbed,
            "host": host,
            "folder": str(self.folder.resolve()),
        }
        return Claim(self.token, {**who, **this_process()})

    def right(self, lease: Lease) -> str:
        """Return the reason why this request may take over a lease, or an empty string if it must not."""
        is_here = holder_of(lease)["machine"] == this_process()["machine"]
        if is_here and lease.values.get("folder") == str(self.folder.resolve()):
            return "the same campaign, whose journal no other controller has open"
        if self.force:
            return "--force"
        if lease.alive:
            return ""
        if holder_is_gone(lease) and (lease.left == "restored" or _nothing_changed(lease)):
            return "its controller is gone, and the host is restored"
        if lease.left == "restored" and lease.silent_s > SILENT_S:
            return f"its controller has been silent for {SILENT_S:.0f} s, and the host is restored"
        return ""


def _nothing_changed(lease: Lease) -> bool:
    """Return whether the holder's journal is on this machine and records the host as restored."""
    folder, host, testbed = (lease.values.get(key, "") for key in ("folder", "host", "testbed"))
    try:
        unrestored = fold(read_journal(Path(folder) / JOURNAL)).unrestored
    except CampaignError:
        return False
    # If several testbeds share the campaign, its journal names the host HOST@TESTBED.
    return host not in unrestored and f"{host}@{testbed}" not in unrestored


class Leases:
    """Takes and releases the leases of a testbed's hosts for a controller's LeaseRequest."""

    def __init__(self, sessions: Sessions, request: LeaseRequest, note: Note, emit: Emit) -> None:
        self._sessions, self._request, self._note, self._emit = sessions, request, note, emit

    @contextmanager
    def held(
        self, hosts: Collection[str] | None = None, changed: Callable[[], Iterable[str]] = tuple
    ) -> Iterator[None]:
        """Hold the leases of `hosts`, or of all hosts if `hosts` is None, while the context is active.

        At the end, `changed` returns the hosts that are not restored yet; their leases are kept, all others
        are released. A host that cannot be reached at the end keeps its lease. If a lease cannot be taken,
        all leases are released, and an error that names the holder is raised: LeaseError or HostsError.
        """
        wanted = self._sessions.hosts if hosts is None else hosts
        try:
            self._sessions.map(self.take, wanted)
            yield
        finally:
            kept = frozenset(changed())
            left = [host for host in wanted if host in self._sessions.hosts]
            try:
                self._sessions.map(lambda s: s.abandon() if s.host in kept else s.release(), left)
            except TestbedError as error:
                self._emit(Event("warning", {"text": str(error)}))

    def take(self, session: Session) -> None:
        """Take the lease of one host; raises LeaseError if another holder keeps it.

        If the lease of another campaign is taken over, the journal records this.
        """
        claim = self._request.claim(session.host)
        lease = session.claim(claim)
        reason = self._request.right(lease) if lease else ""
        if lease and reason:
            again = session.claim(claim, lease)
            if again is None:
                values = {
                    "host": session.host,
                    **{key: lease.values.get(key, "") for key in ("owner", "campaign", "testbed")},
                    "silent_s": round(lease.silent_s, 1),
                    "left": lease.left,
                    "reason": reason,
                }
                self._note("lease-taken", **values)
                self._emit(Event("lease-taken", values))
            lease = again
        if lease:
            raise _refusal(session.host, lease)


def leases_of(sessions: Sessions) -> Mapping[str, Lease]:
    """Return the leases on the hosts that answer.

    A host that does not answer is left out without an error.
    """

    def lease_of(session: Session) -> Lease | None:
        try:
            return session.lease()
        except TestbedError:
            return None

    return {host: lease for host, lease in sessions.map(lease_of).items() if lease}


def require_free(sessions: Sessions, request: LeaseRequest) -> None:
    """Raise LeaseError or HostsError if another campaign holds leases that must not be taken over."""
    leases = leases_of(sessions).items()
    raise_host_errors({host: _refusal(host, lease) for host, lease in leases if not request.right(lease)})


def require_idle(sessions: Sessions, force: bool) -> Mapping[str, Lease]:
    """Raise LeaseError or HostsError if a command would disturb a running campaign and `force` is not set.

    With `force`, returns the leases of the disturbed campaigns by host.
    """
    busy = {
        host: lease
        for host, lease in leases_of(sessions).items()
        if lease.alive and not holder_is_gone(lease) and holder_of(lease) != this_process()
    }
    if not force:
        raise_host_errors({host: _refusal(host, lease, SPOILS_TRIAL) for host, lease in busy.items()})
    return busy


def _refusal(host: str, lease: Lease, advice: str = "") -> LeaseError:
    """Return the error for a host whose lease another process holds.

    The error tells who holds the lease, for how long, when the last heartbeat came, and what to do.
    """
    known = {key: lease.values.get(key) or "?" for key in ("command", "owner", "pid", "campaign", "testbed")}
    who = "{command} of {owner} (process {pid}), campaign {campaign} on testbed {testbed}".format_map(known)
    age, silent = (format_duration(round(seconds), 2) for seconds in (lease.age_s, lease.silent_s))
    if not advice and lease.alive and not holder_is_gone(lease):
        advice = (
            "wait for the end of that campaign, or use --force, which ends its trial and restores the host"
        )
    elif not advice:
        state = "has restored itself" if lease.left == "restored" else "may still be changed"
        advice = (
            f"its controller is silent, and the host {state}; resume that campaign, run "
            f"`fab restore --testbed {known['testbed']}` where it was run, or use --force"
        )
    return LeaseError(f"{host}: held by {who}, for {age}, last heartbeat {silent} ago; {advice}")
