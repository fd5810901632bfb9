"""A session: one host, one SSH connection, one shell, one script at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from samovar.hosts import host_lease
from samovar.hosts.host_lease import Claim, Lease, LeaseError
from samovar.hosts.remote_shell import (
    HEARTBEAT_TEXT,
    ConnectionLostError,
    RemoteShell,
    ShellFolder,
    UnansweredError,
    new_name,
    start_command,
)
from samovar.hosts.script_result import (
    NOT_ENDED,
    Recorder,
    ScriptResult,
    checked_result,
    discard_result,
)
from samovar.hosts.target import Dialer, SshTarget, UnreachableError
from samovar.hosts.transfer import RemoteFile, TransferDeadline, fetch_files, put_file, retry_transfer

if TYPE_CHECKING:
    from samovar.hosts.ssh import SshConnection

INTERRUPT_GRACE_S = 15.0
"""How long a host may take to end a script or transfer; the trial may have made the host busy."""
UNANSWERED = 4
"""Heartbeat intervals after which a connection without an answer is closed."""
_ATTEMPTS = 2
_SHELL_DEADLINE_S = 20.0
"""How long a shell may take to answer; a new one waits up to 10 s for the clean-up of a lost one."""
_Result = TypeVar("_Result")


class Session:
    """One host, reached over one persistent connection.

    Several threads may use a session; the scripts of one host run one at a time. A lost connection is an
    error once, in the call that notices it, because the host has ended whatever ran there. The next call
    reconnects, after the host has finished its clean-up.
    """

    def __init__(
        self, target: SshTarget, dialer: Dialer | None = None, record: Recorder = discard_result
    ) -> None:
        self.target = target
        self.record = record
        self._dialer = dialer
        self._lock = threading.RLock()
        self._connection: SshConnection | None = None
        self._shell: RemoteShell | None = None
        self._heartbeat: Heartbeat | None = None
        self._before: ShellFolder | None = None
        self._on_loss = ""
        self._claim: Claim | None = None
        self._interrupted = threading.Event()

    @property
    def host(self) -> str:
        """The name of the host in the testbed file."""
        return self.target.host

    def open(self) -> None:
        """Connect, unless connected.

        Raises TestbedError that says whether the host did not answer, its host key is not the known one, or
        it refused our key.
        """
        with self._lock:
            self._live()

    def run(self, script: str, *, step: str, deadline_s: float, check: bool = True) -> ScriptResult:
        """Run a POSIX sh script and return its result, which is also recorded.

        Raises RemoteError for a non-zero exit code if `check`; DeadlineError past the deadline, after the
        script's process group was killed; TestbedError if the connection is lost or an output exceeds
        remote_shell.OUTPUT_LIMIT_BYTES.
        """
        with self._lock:
            result = self._attempt(self._live(), step, script, deadline_s)
        self.record(result)
        return checked_result(result, deadline_s, check)

    def set_on_loss(self, script: str | None) -> None:
        """Store a script on the host that the host runs when its controller is gone; None clears it.

        The host runs it if the connection ends without close(), after killing the script that runs then.
        Raises TestbedError if it cannot be stored.
        """
        with self._lock:
            self._on_loss = script or ""
            known, live = self._shell, self._live()
            if live is known:  # a new shell has it already
                self._guard(lambda: live.keep_on_loss(self._on_loss, _SHELL_DEADLINE_S))

    def claim(self, claim: Claim, over: Lease | None = None) -> Lease | None:
        """Ask for the lease of the host; return the lease of another holder, or None if it is ours.

        It is ours until release(), also over reconnections. `over` is a lease, returned before, that may be
        taken over; the clean-up of its shell is done first. Raises TestbedError.
        """
        with self._lock:
            live = self._live()
            if over and over.shell and over.mine:
                before = over.shell
                self._guard(lambda: live.take_over(before, _SHELL_DEADLINE_S))
            lease = self._request_lease(live, claim, over.token if over else "")
            self._claim = None if lease else claim
            return lease

    def lease(self) -> Lease | None:
        """Return the lease of the host, even if it is ours; None if there is none. Raises TestbedError."""
        with self._lock:
            output = self._unrecorded(
                self._live(), "look", lambda _: host_lease.look_script(self.target.lease)
            )
            return host_lease.parse_answer(self.host, output)

    def release(self) -> None:
        """Release the lease of the host, if it is held. Raises TestbedError."""
        with self._lock:
            claim, self._claim = self._claim, None
            if claim:
                path = self.target.lease
                self._unrecorded(self._live(), "release", lambda f: host_lease.release_script(path, claim, f))

    def fetch(
        self, remote: str, local: Path, *, sha256: str, size_bytes: int, deadline_s: float = 600.0
    ) -> None:
        """Copy one file from the host; see fetch_all."""
        self.fetch_all([RemoteFile(remote, local, sha256, size_bytes)], deadline_s=deadline_s)

    def fetch_all(self, files: Sequence[RemoteFile], *, deadline_s: float = 600.0) -> None:
        """Copy files from the host, each to `.part`, renamed when size and SHA-256 on disk are right.

        Reconnects and resumes if the connection is lost. Raises TestbedError for the first file that differs
        from the host's checksum, DeadlineError past the deadline.
        """
        deadline = TransferDeadline(self.host, "fetch", deadline_s, self._interrupted.is_set)
        with self._lock:
            fetch = partial(fetch_files, host=self.host, files=files, deadline=deadline)
            retry_transfer(lambda: self._transfer(fetch), files, deadline)

    def put(self, data: bytes, remote: str, mode: int = 0o600, *, deadline_s: float = 60.0) -> None:
        """Write a file on the host, completely or not at all. Raises TestbedError or DeadlineError."""
        deadline = TransferDeadline(self.host, f"put {remote}", deadline_s, self._interrupted.is_set)
        with self._lock:
            self._transfer(lambda sftp: put_file(sftp, self.host, data, remote, mode, deadline))

    def order(self, text: str) -> None:
        """Have the host's shell run a short command beside the script that another thread runs here.

        There is no answer; if the connection is lost, the thread of that script gets the error.
        """
        shell = self._shell
        if shell:
            with suppress(OSError, EOFError):
                shell.order(text)

    def peek(self, path: str, *, size_bytes: int = 64, timeout_s: float = 2.0) -> bytes | None:
        """Return the beginning of a small file, read beside the script that another thread runs here.

        None if it cannot be read or the host is not connected.
        """
        connection = self._connection
        return connection.peek(path, size_bytes, timeout_s) if connection else None

    def interrupt(self) -> None:
        """End the script or transfer of another thread, which gets a TestbedError.

        Returns when the session is free again. Raises DeadlineError if that takes longer than
        INTERRUPT_GRACE_S.
        """
        deadline = TransferDeadline(self.host, "interrupt", INTERRUPT_GRACE_S)
        self._interrupted.set()
        try:
            free = self._lock.acquire(blocking=False)
            while not free:
                shell = self._shell
                if shell:  # repeatedly: the script may have been on its way to the host
                    with suppress(OSError):  # the thread that uses a lost connection gets the error
                        shell.kill()
                free = self._lock.acquire(timeout=min(0.2, deadline.left_s()))
            self._lock.release()
        finally:
            self._interrupted.clear()

    def close(self) -> None:
        """Disconnect with notice, so that the host does not run the script of set_on_loss()."""
        with self._lock:
            if self._shell:
                self._shell.bye()
            self._disconnect()
            self._before = None

    def abandon(self) -> None:
        """Disconnect without notice: the host runs the script of set_on_loss(), and its lease stays."""
        with self._lock:
            self._claim = None
            self._disconnect()

    def _live(self) -> RemoteShell:
        """Return the shell; connect first if there is none, twice if the first attempt fails."""
        attempt = 0
        while self._shell is None:
            attempt += 1
            try:
                self._shell = self._guard(self._connect)
            except (UnreachableError, ConnectionLostError):
                if attempt == _ATTEMPTS:
                    raise
        return self._shell

    def _connect(self) -> RemoteShell:
        from samovar.hosts.ssh import connect  # imports Fabric and paramiko, which takes time

        self._connection = connect(self.target, self._dialer)
        name = new_name()
        shell = RemoteShell(self._connection.channel(start_command(name)), self.host, name)
        shell.boot(self._before, _SHELL_DEADLINE_S, self.target.silence_s)
        self._before = shell.folder
        self._heartbeat = Heartbeat(self._connection, shell, self.target.keepalive_s)
        if self._claim:
            lease = self._request_lease(shell, self._claim)
            if lease:
                owner, campaign = (lease.values.get(key, "?") for key in ("owner", "campaign"))
                self._disconnect()
                raise LeaseError(f"{self.host}: {owner} took it over meanwhile, for campaign {campaign}")
        if self._on_loss:
            shell.keep_on_loss(self._on_loss, _SHELL_DEADLINE_S)
        return shell

    def _request_lease(self, shell: RemoteShell, claim: Claim, over: str = "") -> Lease | None:
        path = self.target.lease
        output = self._unrecorded(shell, "claim", lambda f: host_lease.claim_script(path, claim, f, over))
        return host_lease.parse_answer(self.host, output)

    def _unrecorded(self, shell: RemoteShell, step: str, script: Callable[[ShellFolder], str]) -> str:
        """Return the output of a script about the shell itself, which is not recorded with the trial."""
        assert shell.folder  # it has booted
        result = self._attempt(shell, step, script(shell.folder), host_lease.DEADLINE_S)
        return checked_result(result, host_lease.DEADLINE_S, True).text

    def _attempt(self, shell: RemoteShell, step: str, script: str, deadline_s: float) -> ScriptResult:
        begun = ScriptResult(self.host, step, script, NOT_ENDED, b"", b"", time.time(), 0.0, ending="lost")
        started_s = time.monotonic()
        try:
            frame, in_time = self._guard(lambda: shell.run(script, deadline_s))
        except UnansweredError:
            return replace(begun, ending="deadline", seconds=_since(started_s))
        except ConnectionLostError:
            return replace(begun, seconds=_since(started_s))
        interrupted = self._interrupted.is_set()
        return replace(
            begun,
            ending="interrupted" if interrupted else "exit" if in_time else "deadline",
            exit_code=frame.exit_code if in_time and not interrupted else NOT_ENDED,
            stdout=frame.stdout,
            stderr=frame.stderr,
            seconds=_since(started_s),
            host_seconds=frame.host_seconds,
        )

    def _transfer(self, work: Callable[[Any], None]) -> None:
        self._live()
        assert self._connection  # the live shell is on it
        connection = self._connection

        def with_client() -> None:
            with connection.sftp() as sftp:
                work(sftp)

        self._guard(with_client)

    def _guard(self, work: Callable[[], _Result]) -> _Result:
        """Return what `work` returns; disconnect if it finds that the connection is lost."""
        try:
            return work()
        except (UnreachableError, ConnectionLostError):
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        connection, self._connection, self._shell = self._connection, None, None
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat:
            heartbeat.stop()
        if connection:
            connection.close()


class Heartbeat:
    """Regular signs of life, by which controller and host notice in bounded time that the other is gone.

    Every `interval_s` the host's shell is ordered to note that its controller is alive (samovar_listen in
    shell.sh), and the SSH server is asked for an answer; without one the connection is closed. TCP alone
    would take a quarter of an hour to notice a link that was cut.
    """

    def __init__(self, connection: SshConnection, shell: RemoteShell, interval_s: float) -> None:
        self._connection, self._shell, self._interval_s = connection, shell, interval_s
        self._stopped = threading.Event()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        """Stop; returns at once."""
        self._stopped.set()

    def _beat(self) -> None:
        while not self._stopped.wait(self._interval_s):
            with suppress(OSError, EOFError):  # the thread that uses a lost connection gets the error
                self._shell.order(HEARTBEAT_TEXT)
            limit = threading.Timer(UNANSWERED * self._interval_s, self._connection.close)
            limit.daemon = True
            limit.start()
            try:
                if not self._connection.answers():
                    return
            finally:
                limit.cancel()


def _since(started_s: float) -> float:
    return round(time.monotonic() - started_s, 4)
